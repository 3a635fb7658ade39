"""Inputs made up for a program: of sizes that fit together, and with indices within their axes."""

from __future__ import annotations

from collections.abc import Mapping

from dmlc.codegen.artifact import Signature
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.runs import OUT_OF_MEMORY
from dmlc.ir import Array, Graph
from dmlc.ops.input_uses import uses_of
from dmlc.runtime.random_feeds import random_feeds


def made_up_feeds(graph: Graph, signature: Signature, seed: int, *, is_model: bool) -> dict[str, Array]:
    """Arrays for the inputs of a graph, the same for the same seed. Raises ``DmlcError`` E0427, E0558.

    In an imported model the first axes of all inputs are one batch, which many exporters name once an input.
    """
    shapes = [getattr(type, "shape", ()) for _, type in signature.inputs]
    batch_dims = {getattr(shape[0], "name", None) for shape in shapes if shape} if is_model else set()

    def takes(binding: Mapping[str, int]) -> bool:
        batches = {size for name, size in binding.items() if name in batch_dims}
        return len(batches) <= 1 and graph.takes(binding)

    limits = {value.name or "": size for value, size in uses_of(graph).limits.items()}
    try:
        return random_feeds(signature, seed, limits, takes)
    except MemoryError as error:
        help = "declare smaller sizes, or bind them"
        raise fail(OUT_OF_MEMORY, f"there is not enough memory for inputs: {error}", help=help) from None
