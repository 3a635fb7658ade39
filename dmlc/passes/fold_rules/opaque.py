"""NumPy forms of ONNX operators that only move elements, so that opaque nodes of constants can be computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dmlc.ir import Array, Node
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of

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


#: Operators of ONNX by name (onnx, docs/Operators.md). Each raises ``ValueError`` or ``IndexError`` for a result that
#: ONNX leaves open.
_EVALUATORS: dict[str, Evaluator] = {
    "GatherND": _gather_nd,
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
    except (ValueError, IndexError, TypeError):
        return None
