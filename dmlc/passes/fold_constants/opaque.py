"""Nodes of imported models whose operands are constant or better known by now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dmlc.ir import Array, ForeignType, Graph, Node, Operation, Tensor, TensorType, Value, dim_names
from dmlc.ops.constant import CONSTANT
from dmlc.ops.index import GATHER
from dmlc.ops.move import SLICE
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.fold_constants.operators import convolved, resized, summed
from dmlc.passes.rewrite import Match, Rewriter, Rule

Evaluator: TypeAlias = "Callable[[Node, Sequence[Any]], Array]"


#: Integers up to this one, and sums of them below it, are exact in f32.
_MOST_EXACT = 2**24


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


def _non_zero(node: Node, arrays: Sequence[Any]) -> Array:
    if not arrays[0].ndim:
        raise ValueError("the positions in a scalar have no axes")
    return np.stack(np.nonzero(arrays[0])).astype(np.int64)


def _range(node: Node, arrays: Sequence[Any]) -> Array:
    numbers = [a.reshape(()) for a in arrays]
    if arrays[0].dtype.kind == "f" and any(not float(n).is_integer() or abs(n) > _MOST_EXACT for n in numbers):
        raise ValueError("the rounding of a float range is a kernel's")
    start, limit, delta = map(int, numbers)
    return np.asarray(range(start, limit, delta), arrays[0].dtype)


def _eye_like(node: Node, arrays: Sequence[Any]) -> Array:
    rows, columns = arrays[0].shape
    return np.eye(rows, columns, attribute_of(node, "k", 0), node.result.type.dtype.numpy)


def _power(node: Node, arrays: Sequence[Any]) -> Array:
    base, exponent = arrays
    if base.dtype.kind != "f":
        raise ValueError("an integer to a negative power is unspecified")
    out: Array = np.power(base.astype(np.float64), exponent.astype(np.float64))
    return out.astype(base.dtype)


#: Operators of ONNX by name (onnx, docs/Operators.md). Each raises ``ValueError`` or ``LookupError`` for a result that
#: ONNX leaves open, or that it does not follow.
_EVALUATORS: dict[str, Evaluator] = {
    "ConstantOfShape": _constant_of_shape,
    "Conv": convolved,
    "Einsum": summed,
    "EyeLike": _eye_like,
    "GatherND": _gather_nd,
    "NonZero": _non_zero,
    "Pow": _power,
    "Range": _range,
    "Resize": resized,
    "ScatterND": _scatter_nd,
    "Tile": _tile,
    "Trilu": _trilu,
    "Upsample": resized,
}


#: Operators with sums or functions of floats, which targets round differently.
_ROUNDED = frozenset(("Conv", "Einsum", "Pow"))


def evaluated(node: Node, arrays: Sequence[Any]) -> Array | None:
    """The result of an opaque node of constants; None where no form is known, or ONNX leaves the result open."""
    a = node.attributes_as(OpaqueAttributes)
    form = None if a.domain else _EVALUATORS.get(a.op_type)
    if form is None:
        return None
    try:
        with np.errstate(all="ignore"):
            return form(node, arrays)
    except (ValueError, LookupError, TypeError, ZeroDivisionError, OverflowError):
        return None


def is_rounded(node: Node) -> bool:
    """True if targets may round the result of an opaque node differently."""
    if node.attributes_as(OpaqueAttributes).op_type in ("Resize", "Upsample"):
        return bool(attribute_of(node, "mode", "nearest") != "nearest")
    return node.attributes_as(OpaqueAttributes).op_type in _ROUNDED and node.result.type.dtype.is_float


class ReadMatch(Match, eq=False, kw_only=True):
    """``inner`` computes the results of the root from ``operands``."""

    inner: Graph
    operands: Sequence[Value]


class ReadAgain(Rule[ReadMatch]):
    """An operator kept as it is becomes an operation of the language once its operands are constants or have types.

    A Reshape to a shape that folded, a Range to a limit that did, and what follows in the types of their users.
    """

    name = "read-again"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)

    def match(self, node: Node, graph: Graph) -> ReadMatch | None:
        if node not in graph.outdated:
            return None
        del graph.outdated[node]
        if graph.reader is None or node.origin is None:
            return None
        found = graph.reader(node)
        if found is None or not _is_better(found[0], node):
            return None
        return ReadMatch(node, inner=found[0], operands=found[1])

    def describe(self, match: ReadMatch) -> str:
        return f"{match.root.attributes_as(OpaqueAttributes).full_name} with operands that are known by now"

    def build(self, match: ReadMatch, rewriter: Rewriter) -> Sequence[Value]:
        mapping = dict(zip(match.inner.inputs, match.operands, strict=True))
        made = dict(zip([n for n, _ in match.inner.outputs], rewriter.inline(match.inner, mapping), strict=True))
        results = [made.get(f"out_{i}", old) for i, old in enumerate(match.root.results)]
        for node in rewriter.made[:]:
            if node.op is CONSTANT and not node.is_used and node.result not in results:  # the importer read its numbers
                rewriter.made.remove(node)
                rewriter.graph.erase(node)
        return results


def _is_better(inner: Graph, node: Node) -> bool:
    """True if the inner graph has an operation where the node is opaque, or knows more of a result."""
    if not any(n.op is OPAQUE for n in inner):
        return True
    found = dict(inner.outputs)
    pairs = [(found.get(f"out_{i}"), old.type) for i, old in enumerate(node.results)]
    around = {name for value in inner.inputs for size in value.shape for name in dim_names(size)}
    return any(new is not None and _open(new.type, around) < _open(old, around) for new, old in pairs)


def _open(type: TensorType, around: set[str]) -> float:
    """A score of the sizes that are not known, those that no operand has twice; more than any for an unknown rank."""
    if isinstance(type, ForeignType):
        return 1000 if type.proto else 1001
    return sum([0 if isinstance(size, int) else 1 if dim_names(size) <= around else 2 for size in type.shape])


class SizeMatch(Match, eq=False, kw_only=True):
    numbers: tuple[int, ...]


class KnownSize(Rule[SizeMatch]):
    """Sizes that are taken of a Shape, and that are known by now, become a constant.

    ``exact``. The importer does so with what it knows; types become known when a branch or a shape folds.
    """

    name = "known-size"
    roots: ClassVar[tuple[Operation, ...]] = (GATHER, SLICE)
    fed_by: ClassVar[Collection[Operation]] = (OPAQUE,)

    def match(self, node: Node, graph: Graph) -> SizeMatch | None:
        maker = node.operand("x").producer
        if maker is None or not is_opaque(maker, "Shape"):
            return None
        from dmlc.inference.shape_numbers import shape_numbers  # it loads onnx, which a program does without

        found = shape_numbers(node.result, graph.opset)
        numbers = tuple([size for size in found or () if isinstance(size, int)])
        return SizeMatch(node, numbers=numbers) if found and len(numbers) == len(found) else None

    def build(self, match: SizeMatch, rewriter: Rewriter) -> Sequence[Value]:
        type = match.root.result.type
        shape = [size for size in type.shape if isinstance(size, int)]
        return [rewriter.constant(np.asarray(match.numbers, type.dtype.numpy).reshape(shape))]
