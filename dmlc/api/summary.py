"""Summary of a compiled program."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc import ir
from dmlc.codegen.artifact import Signature
from dmlc.ops.constant import CONSTANT

#: So many inputs, outputs and dims are printed.
_MOST_LISTED, _LONGEST = 6, 300


def summary(signature: Signature, target: str, graphs: tuple[ir.Graph, ir.Graph], rewrites: int) -> str:
    """Five lines: name and target, inputs, outputs, sizes before and after, and what was done."""
    sizes = [size for _, type in signature.inputs for size in type.shape]
    dims = dict.fromkeys(name for size in sizes for name in ir.dim_names(size))
    was, nodes = (sum(node.op is not CONSTANT for node in graph) for graph in graphs)
    return "\n".join(
        [
            f"{signature.name} for {target}",
            f"inputs: {_listed([f'{name}: {type_}' for name, type_ in signature.inputs])}",
            f"outputs: {_listed([f'{name}: {type_}' for name, type_ in signature.outputs])}",
            f"dynamic sizes: {_listed(list(dims))}",
            f"operations: {nodes:,} (was {was:,}), {rewrites:,} rewrites",
        ]
    )


def _listed(parts: Sequence[str]) -> str:
    """The first few parts, and how many more there are."""
    more = f", and {len(parts) - _MOST_LISTED} more" if len(parts) > _MOST_LISTED else ""
    text = ", ".join(parts[:_MOST_LISTED]) or "none"
    return (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...") + more
