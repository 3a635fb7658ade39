"""Nodes of imported models with constant operands, and branches whose condition is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dmlc.ir import Array, Graph, Node, Tensor, Value
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.rewrite import Match, Rewriter, Rule

Evaluator: TypeAlias = "Callable[[Node, Sequence[Any]], Array]"


def _scatter_nd(node: Node, arrays: Sequence[Any]) -> Array:
    data, indices, updates = arrays
    if attribute_of(node, "reduction", "none") != "none":
        raise ValueError("updates that are joined have an order")
    out: Array = data.copy()
    places = tuple(np.moveaxis(indices, -1, 0))
    if len(np.unique(indices.reshape(-1, indices.shape[-1]), axis=0)) < indices[..., 0].size:
        raise ValueError("which of two updates of one place wins is not stated")
    out[places] = updates
    return out


def _gather_nd(node: Node, arrays: Sequence[Any]) -> Array:
    data, indices = arrays
    if attribute_of(node, "batch_dims", 0):
        raise ValueError("batches are not followed")
    found: Array = data[tuple(np.moveaxis(indices, -1, 0))]
    return found


def _trilu(node: Node, arrays: Sequence[Any]) -> Array:
    offset = int(arrays[1].reshape(())) if len(arrays) > 1 and arrays[1] is not None else 0
    cut = np.triu if attribute_of(node, "upper", 1) else np.tril
    return cut(arrays[0], offset)


def _tile(node: Node, arrays: Sequence[Any]) -> Array:
    return np.tile(arrays[0], arrays[1])


def _constant_of_shape(node: Node, arrays: Sequence[Any]) -> Array:
    value = attribute_of(node, "value")
    if value is not None and not isinstance(value, Tensor):
        raise ValueError("an element type that is not followed")
    out: Array = np.full(arrays[0], np.float32(0) if value is None else value.array.reshape(-1)[0])
    return out


def _range(node: Node, arrays: Sequence[Any]) -> Array:
    if arrays[0].dtype.kind not in "iu":
        raise ValueError("the rounding of a float range is a kernel's")
    start, limit, delta = (int(a.reshape(())) for a in arrays)
    return np.asarray(range(start, limit, delta), arrays[0].dtype)


#: Operators of ONNX by name (onnx, docs/Operators.md). Each raises ``ValueError`` or ``IndexError`` for a result that
#: ONNX leaves open.
_EVALUATORS: dict[str, Evaluator] = {
    "ConstantOfShape": _constant_of_shape,
    "GatherND": _gather_nd,
    "Range": _range,
    "ScatterND": _scatter_nd,
    "Tile": _tile,
    "Trilu": _trilu,
}


def evaluated(node: Node, arrays: Sequence[Any]) -> Array | None:
    """The result of an opaque node of constants; None where no form is known, or ONNX leaves the result open."""
    if node.op is not OPAQUE or node.attributes_as(OpaqueAttributes).domain:
        return None
    form = _EVALUATORS.get(node.attributes_as(OpaqueAttributes).op_type)
    if form is None:
        return None
    try:
        return form(node, arrays)
    except (ValueError, IndexError, TypeError, ZeroDivisionError):
        return None


class InlineBranch(Rule[Match]):
    """An If of a constant condition becomes the nodes of the branch that it takes."""

    name = "inline-branch"
    roots = (OPAQUE,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        if not is_opaque(node, "If") or constant_of(node.operands[0]) is None:
            return None
        return Match(node)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        node = match.root
        condition = constant_of(node.operands[0])
        assert condition is not None
        wanted = "then_branch" if condition.array.all() else "else_branch"
        region = next(r for r in node.regions if r.attribute == wanted)
        around = {inner: node.operand(place) for inner, place in zip(region.captured, region.captures, strict=True)}
        return rewriter.inline(region.graph, around)
