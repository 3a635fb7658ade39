"""Nodes of imported models whose operands are constant or better known by now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, prod
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dmlc.ir import Array, ForeignType, Graph, Node, Operation, Tensor, TensorType, Value, dim_names
from dmlc.ops.constant import CONSTANT
from dmlc.ops.index import GATHER
from dmlc.ops.move import SLICE
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.rewrite import Match, Rewriter, Rule

# --- Operators of models computed of constants: Conv and Einsum in f64, rounded once, and Resize

_HALF = Fraction(1, 2)
#: Sizes up to this one are resized: positions up to it are exact in f32 to ``_MARGIN``.
_MOST_SIZE = 4096
#: A position nearer to where another element becomes the nearest is one that rounding decides.
_MARGIN = Fraction(1, 1000)
#: Multiplications of one result, or with the weights of an axis, at most.
_MOST_PRODUCTS = 1 << 26

#: The nearest element by the position, and the distance of a place where it changes from a whole position.
_NEAREST: Mapping[str, tuple[Callable[[Fraction], int], Fraction]] = {
    "floor": (floor, Fraction(0)),
    "ceil": (ceil, Fraction(0)),
    "round_prefer_floor": (lambda position: ceil(position - _HALF), _HALF),
    "round_prefer_ceil": (lambda position: floor(position + _HALF), _HALF),
}


def resized(node: Node, arrays: Sequence[Any]) -> Array:
    """The result of a Resize, or of an Upsample; raises ``ValueError`` where it is not followed."""
    if attribute_of(node, "antialias", 0):
        raise ValueError("weights of many elements are a kernel's")
    if attribute_of(node, "keep_aspect_ratio_policy", "stretch") != "stretch":
        raise ValueError("sizes that are computed from others are not followed")
    x: Array = arrays[0]
    mode = attribute_of(node, "mode", "nearest")
    coordinates = attribute_of(node, "coordinate_transformation_mode", "half_pixel")
    coordinates = "asymmetric" if _is_old(arrays) else coordinates
    if mode != "nearest" and x.dtype.kind != "f":
        raise ValueError("how integers are rounded is a kernel's")
    if x.shape == node.result.shape and _axes(node, arrays):
        raise ValueError("ONNX Runtime copies what keeps all its sizes, whatever the scales are")
    for axis, size, scale in _axes(node, arrays):
        have = x.shape[axis]
        if max(size, have) > _MOST_SIZE or min(size, have) < 1:
            raise ValueError("a size that is not followed")
        positions = [_position(coordinates, place, scale, have, size) for place in range(size)]
        if mode == "nearest":
            rounding = attribute_of(node, "nearest_mode", "round_prefer_floor")
            if _is_old(arrays):  # as ONNX Runtime takes it (core/providers/cpu/tensor/upsamplebase.h, ``SIMPLE``)
                rounding = "ceil" if scale < 1 else "floor"
            is_quotient = coordinates == "align_corners"
            x = np.take(x, _nearest(rounding, positions, have, scale, is_quotient=is_quotient), axis)
        else:
            weights = _WEIGHTS[mode](node, positions, have)
            if weights.size * (x.size // have) > _MOST_PRODUCTS:
                raise ValueError("too many products")
            x = np.moveaxis(np.tensordot(weights, x.astype(np.float64), (1, axis)), 0, axis)
    return x.astype(arrays[0].dtype)


def _axes(node: Node, arrays: Sequence[Any]) -> list[tuple[int, int, Fraction]]:
    """The axes that change, their new sizes, and the scales."""
    x: Array = arrays[0]
    scales = attribute_of(node, "scales", None) if len(arrays) == 1 else arrays[1 if _is_old(arrays) else 2]
    scales = scales if scales is not None and len(scales) else None
    given = attribute_of(node, "axes", None)
    found = []
    for number, axis in enumerate(range(x.ndim) if given is None else given):
        have, size = x.shape[axis], node.result.shape[axis]
        assert isinstance(size, int)
        scale = Fraction(size, have or 1) if scales is None else Fraction(float(scales[number]))
        if scale != 1:
            found.append((axis, size, scale))
    return found


def _is_old(arrays: Sequence[Any]) -> bool:
    """True for an Upsample and a Resize of opset 10: they have no region, and one way to count positions."""
    return len(arrays) < 3


def _position(mode: str, place: int, scale: Fraction, have: int, size: int) -> Fraction:
    if mode == "asymmetric":
        return place / scale
    if mode == "half_pixel" or mode == "pytorch_half_pixel":
        return Fraction(0) if mode != "half_pixel" and size == 1 else (place + _HALF) / scale - _HALF
    if mode == "align_corners":
        return Fraction(place * (have - 1), size - 1) if size > 1 else Fraction(0)
    raise ValueError("a mode that is not followed")


def _nearest(
    rounding: str, positions: Sequence[Fraction], have: int, scale: Fraction, *, is_quotient: bool
) -> list[int]:
    pick, offset = _NEAREST[rounding]
    is_exact = Fraction(float(np.float32(float(scale)))) == scale
    for position in positions:
        after = (position - offset) % 1
        distance = min(after, 1 - after)
        if distance < _MARGIN and (distance or not (is_exact or is_quotient)):
            raise ValueError("rounding decides which element is the nearest")
    return [min(max(pick(position), 0), have - 1) for position in positions]


def _linear(node: Node, positions: Sequence[Fraction], have: int) -> Array:
    weights = np.zeros((len(positions), have))
    for place, position in enumerate(positions):
        inside = min(max(position, Fraction(0)), Fraction(have - 1))
        first = floor(inside)
        weights[place, first] += float(1 - (inside - first))
        weights[place, min(first + 1, have - 1)] += float(inside - first)
    return weights


def _cubic(node: Node, positions: Sequence[Fraction], have: int) -> Array:
    a, excludes = float(attribute_of(node, "cubic_coeff_a", -0.75)), bool(attribute_of(node, "exclude_outside", 0))
    weights = np.zeros((len(positions), have))
    for place, position in enumerate(positions):
        first = floor(position)
        for near in range(first - 1, first + 3):
            if 0 <= near < have or not excludes:
                weights[place, min(max(near, 0), have - 1)] += _kernel(abs(float(position - near)), a)
    return weights / weights.sum(1, keepdims=True) if excludes else weights


def _kernel(distance: float, a: float) -> float:
    """The weight of an element at that distance, at most 2 (Keys 1981)."""
    if distance <= 1:
        return ((a + 2) * distance - (a + 3)) * distance**2 + 1
    return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a


_WEIGHTS: Mapping[str, Callable[[Node, Sequence[Fraction], int], Array]] = {"linear": _linear, "cubic": _cubic}


def convolved(node: Node, arrays: Sequence[Any]) -> Array:
    """The result of a Conv; raises ``ValueError`` where it is not followed."""
    x, w, bias = arrays[0], arrays[1], arrays[2] if len(arrays) > 2 else None
    rank, kernel = x.ndim - 2, w.shape[2:]
    group = attribute_of(node, "group", 1)
    strides, dilations = (attribute_of(node, name, (1,) * rank) for name in ("strides", "dilations"))
    mode, pads = attribute_of(node, "auto_pad", "NOTSET"), attribute_of(node, "pads", (0,) * 2 * rank)
    if mode not in ("NOTSET", "VALID") or min(pads, default=0) < 0:
        raise ValueError("pads that are not followed")
    if mode == "VALID":
        pads = (0,) * 2 * rank
    around = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(x.astype(np.float64), around)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [(n - r) // s + 1 for n, r, s in zip(padded.shape[2:], reach, strides, strict=True)]
    if min((*sizes, *kernel), default=1) < 1 or prod((*sizes, x.shape[0], *w.shape)) > _MOST_PRODUCTS:
        raise ValueError("no window, or too many products")
    padded = padded.reshape(x.shape[0], group, x.shape[1] // group, *padded.shape[2:])
    weights = w.astype(np.float64).reshape(group, w.shape[0] // group, *w.shape[1:])
    out = np.zeros((x.shape[0], *weights.shape[:2], *sizes))
    for place in np.ndindex(*kernel):
        steps = zip(place, dilations, sizes, strides, strict=True)
        window: Any = (Ellipsis, *[slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, n, s in steps])
        at: Any = (Ellipsis, *place)
        out += np.einsum("ngc...,gmc->ngm...", padded[window], weights[at])
    out = out.reshape(x.shape[0], w.shape[0], *sizes)
    if bias is not None:
        out += bias.reshape(-1, *[1] * rank)
    return out.astype(x.dtype)


def summed(node: Node, arrays: Sequence[Any]) -> Array:
    """The result of an Einsum; raises ``ValueError`` where it is not followed."""
    equation = attribute_of(node, "equation").replace(" ", "")
    if "." in equation:
        raise ValueError("axes without a letter are not followed")
    sizes = {
        letter: size
        for term, array in zip(equation.split("->")[0].split(","), arrays, strict=True)
        for letter, size in zip(term, array.shape, strict=True)
    }
    if prod(sizes.values()) > _MOST_PRODUCTS:
        raise ValueError("too many products")
    home = np.float64 if arrays[0].dtype.kind == "f" else arrays[0].dtype
    out: Array = np.asarray(np.einsum(equation, *[array.astype(home) for array in arrays]))
    return out.astype(arrays[0].dtype)


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


@simplifies(GATHER, SLICE, fed_by=(OPAQUE,))
def known_size(e: Sketch, node: Node, x: Term, *operands: Term | None) -> Lowered:
    """Sizes that are taken of a Shape, and that are known by now, become a constant.

    ``exact``. The importer does so with what it knows; types become known when a branch or a shape folds.
    """
    if not is_opaque(x.value.producer, "Shape"):
        return KEEP
    from dmlc.inference.shape_numbers import shape_numbers  # it loads onnx, which a program does without

    found, type = shape_numbers(node.result, e.graph.opset), node.result.type
    numbers = [size for size in found or () if isinstance(size, int)]
    if not found or len(numbers) != len(found):
        return KEEP
    return e.number(np.reshape(numbers, [size for size in type.shape if isinstance(size, int)]), type.dtype)
