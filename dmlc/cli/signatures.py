"""A model's interface as text and as JSON."""

from __future__ import annotations

from typing import Any

from dmlc.cli.layout import table
from dmlc.codegen.artifact import Signature
from dmlc.ir import TensorType
from dmlc.runtime.feeds import bounds_text


def signature_json(signature: Signature) -> dict[str, Any]:
    """Inputs, outputs, dims and the relations that run time checks."""
    return {
        "model": signature.name,
        "inputs": [_typed(name, type_) for name, type_ in signature.inputs],
        "outputs": [_typed(name, type_) for name, type_ in signature.outputs],
        "dims": {name: {"min": low, "max": high} for name, (low, high) in signature.bounds.items()},
        "conditions": [str(condition) for condition in signature.conditions],
    }


def _typed(name: str, type_: TensorType) -> dict[str, Any]:
    shape = [size if isinstance(size, int) else str(size) for size in type_.shape]
    return {"name": name, "dtype": type_.dtype.long_name, "shape": shape}


def signature_text(signature: Signature) -> str:
    """The same for people."""
    out = f"model {signature.name}\n"
    for title, typed in (("inputs", signature.inputs), ("outputs", signature.outputs)):
        if typed:
            out += f"\n{title}\n" + table([[name, str(type_)] for name, type_ in typed], "  ")
    if signature.bounds:
        rows = [[name, bounds_text(interval)] for name, interval in signature.bounds.items()]
        out += "\ndims\n" + table(rows, "  ")
    if signature.conditions:
        out += "\nchecked when it runs\n" + table([[str(c), c.why] for c in signature.conditions], "  ")
    return out
