"""Sizes that are not known to fit, so that a product or a sum of attention stayed an operator of the model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, zip_longest

from dmlc.ir import Dim, Graph, Node, dim_names
from dmlc.ops.opaque import is_opaque
from dmlc.passes.rewrite import Miss

#: Operators whose operands have to fit.
_FIT = ("MatMul", "Add", "Sub", "Mul", "Div", "Where")


def sizes_that_are_open(node: Node | None, graph: Graph) -> Miss | None:
    """The reason where the node is one of the model whose operands are not known to fit, and the options that help."""
    if node is None or not any(is_opaque(node, name) for name in _FIT):
        return None
    pairs = [(a, b) for a, b in _pairs(node) if a != b and 1 not in (a, b)]
    names = {name for pair in pairs for dim in pair for name in dim_names(dim)}
    if not names:
        return None
    from dmlc.inference.open_sizes import fixing_options, nameless_dims  # loads onnx, as a model has already

    given = {name for value in graph.inputs for dim in value.shape for name in dim_names(dim)}
    options = fixing_options(names if names <= given else given, nameless_dims(graph))
    shown = ", ".join(f"{a} and {b}" for a, b in dict.fromkeys(pairs))
    return Miss("the sizes {0} are not known to fit{1}", (shown, f": {options}" if options else ""), node.result)


def is_open_product(node: Node) -> bool:
    """True if the node is a product of matrices as the model has it."""
    return is_opaque(node, "MatMul") and len(node.operands) == 2


def _pairs(node: Node) -> Iterator[tuple[Dim, Dim]]:
    """The sizes that have to fit: those that broadcast, and those that a product sums over."""
    shapes = [value.shape[::-1] for value in node.operands if value is not None]
    if is_open_product(node) and all(len(shape) > 1 for shape in shapes):
        a, b = shapes
        yield a[0], b[1]
        shapes = [a[2:], b[2:]]
    for sizes in zip_longest(*shapes, fillvalue=1):
        others = [d for d in dict.fromkeys(sizes) if d != 1]
        yield from pairwise(others)
