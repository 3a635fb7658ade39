"""A model's interface as text and as JSON."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from dmlc.cli.layout import table
from dmlc.codegen.artifact import Signature
from dmlc.ir import TensorType
from dmlc.ir.answers import Answer, Real, Size
from dmlc.runtime.feeds import bounds_text


class TypedValue(Answer, frozen=True):
    """An input or an output."""

    name: str
    dtype: str
    shape: list[Size]


class DimBounds(Answer, frozen=True):
    """The smallest and the largest value of a dim; a dim without a bound has the text ``inf``."""

    min: Real
    max: Real


class SignatureFacts(Answer, frozen=True, kw_only=True):
    """The interface of a model, if it is known; ``conditions`` are the relations of sizes that run time checks."""

    model: str | UnsetType = UNSET
    inputs: list[TypedValue] | UnsetType = UNSET
    outputs: list[TypedValue] | UnsetType = UNSET
    dims: dict[str, DimBounds] | UnsetType = UNSET
    conditions: list[str] | UnsetType = UNSET


def signature_facts(signature: Signature) -> dict[str, Any]:
    """Return the fields of ``SignatureFacts``."""
    return {
        "model": signature.name,
        "inputs": [_typed(name, type_) for name, type_ in signature.inputs],
        "outputs": [_typed(name, type_) for name, type_ in signature.outputs],
        "dims": {name: DimBounds(*bounds) for name, bounds in signature.bounds.items()},
        "conditions": list(map(str, signature.conditions)),
    }


def _typed(name: str, type_: TensorType) -> TypedValue:
    shape = [size if isinstance(size, int) else str(size) for size in type_.shape]
    return TypedValue(name, type_.dtype.long_name, shape)


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
