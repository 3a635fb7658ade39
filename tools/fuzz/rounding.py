"""The distance that a program's own roundings move its results: no other way of computing them is held to less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmlc.ir import Array, DimExpr, Graph, Node, evaluate
from dmlc.ops.binary import MAX, MIN, POW
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.elementwise import GELU, HARD_SIGMOID, SIGN, SILU, UNARY
from dmlc.ops.normalize import LAYER_NORM, LOG_SOFTMAX, MEAN_VARIANCE_NORM
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN, REDUCE_PROD, REDUCE_SUM, ReduceAttributes
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K
from dmlc.verify.comparison import DIFFERENT, compare_values
from dmlc.verify.inputs import Feeds
from dmlc.verify.tolerance import REASSOCIATES

#: Every inexact result moves by up to so many units in the last place, in so many samples; and how much further than
#: they do another way of computing may go.
_UNITS, _SAMPLES, _FURTHER = 4, 32, 8
#: In how many samples casts to f16 are left out here and there.
_DROPS = 8
#: Multiples of this part of 1 need no rounding, so that ties among small integers and halves stay ties.
_PARTS = 64
_SELECTIONS = (ARGMAX, ARGMIN, TOP_K, HARDMAX, REDUCE_MAX, REDUCE_MIN, MAX, MIN)
#: Operations that kernels compute by approximations whose error is one of the largest result, not of each.
_ABSOLUTE = (
    *(op for op in UNARY if op.rises and op.rounding == "approximate" and op.bounds[1] < np.inf),
    *(LOG_SOFTMAX, GELU, HARD_SIGMOID, SILU),
)
#: Operations that take elements in any order.
_IN_ANY_ORDER = (REDUCE_PROD, REDUCE_SUM, REDUCE_MEAN)
_SUMS = (REDUCE_SUM, REDUCE_MEAN)
#: Operations that subtract a mean: the rounding of that is one of the operand.
_CENTRED = (MEAN_VARIANCE_NORM, LAYER_NORM)


def explains(graph: Graph, feeds: Feeds, results: Mapping[str, Any]) -> bool:
    """True if all that differs in ``results`` from the references moves as far when every operation rounds anew."""
    rng = np.random.default_rng(0)
    plain = _run(graph, feeds, _Plain())
    samples = [_run(graph, feeds, _Moving(rng)) for _ in range(_SAMPLES)]
    for other in (_Wide(), _Vanishing(), *[_Dropped(rng)] * _DROPS):
        found = _run(graph, feeds, other)
        with np.errstate(all="ignore"):
            samples.append({name: found[name].astype(plain[name].dtype) for name in plain})
    return all(_within(plain[name], results[name], [s[name] for s in samples]) for name in plain)


def _run(graph: Graph, feeds: Feeds, way: _Plain) -> dict[str, Array]:
    values = {v: way.fed(feeds[v.name or ""]) for v in graph.inputs}
    binding = {
        size.name: got
        for value in graph.inputs
        for size, got in zip(value.shape, values[value].shape, strict=True)
        if isinstance(size, DimExpr) and size.name
    }
    for node in graph:
        attributes = node.attributes.substitute(binding) if node.attributes.dims() else node.attributes
        operands = [None if v is None else way.read(values[v], node, v.type.dtype.numpy) for v in node.operands]
        with np.errstate(all="ignore"):
            found = way.computed(node, attributes, operands)
            arrays = found if isinstance(found, tuple) else (found,)
            for value, array in zip(node.results, arrays, strict=True):
                assert array.shape == tuple(evaluate(size, binding) for size in value.shape)
                values[value] = way.made(array, node)
    return {name: values[value] for name, value in graph.outputs}


def _is_exact(x: Array) -> bool:
    """True if no element needed rounding."""
    if x.dtype.kind != "f":
        return True
    with np.errstate(all="ignore"):
        parts, most = x * _PARTS, 2.0 ** (np.finfo(x.dtype).nmant + 1)
        return np.array_equal(parts, np.round(parts)) and not (np.isfinite(x) & (np.abs(parts) > most)).any()


class _Plain:
    """As the references compute."""

    def fed(self, x: Array) -> Array:
        return x

    def read(self, x: Array, node: Node, dtype: Any) -> Array:
        return x

    def computed(self, node: Node, attributes: Any, operands: list[Any]) -> Any:
        return node.op.reference(attributes, *operands)  # type: ignore[misc]

    def made(self, x: Array, node: Node) -> Array:
        return x


class _Wide(_Plain):
    """Partial results that nothing rounds, and that neither overflow nor vanish."""

    def fed(self, x: Array) -> Array:
        return x.astype(np.float64) if x.dtype.kind == "f" else x

    def computed(self, node: Node, attributes: Any, operands: list[Any]) -> Any:
        if node.op is CAST and node.attributes_as(CastAttributes).to.is_float:
            return operands[0].astype(np.float64)
        found = super().computed(node, attributes, operands)
        if node.op is REDUCE_PROD and operands[0].dtype.kind == "f":  # 0 times what has not overflowed
            over = {"axis": attributes.axes, "keepdims": attributes.keepdims}
            vanishes = (operands[0] == 0).any(**over) & ~np.isnan(operands[0]).any(**over)
            found = np.where(vanishes, 0, found).astype(found.dtype)
        return found

    def made(self, x: Array, node: Node) -> Array:
        return self.fed(x)


class _Dropped(_Wide):
    """As ONNX Runtime on the CPU computes f16: in f32, and back only before some of those that read a result."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def read(self, x: Array, node: Node, dtype: Any) -> Array:
        if dtype != np.float16 or self._rng.random() < 0.5:
            return x
        with np.errstate(all="ignore"):
            return self.fed(x.astype(dtype))


class _Vanishing(_Plain):
    """Subnormal results are 0, as where a processor or an approximation flushes them; so is what is left of neighbours
    of their mean."""

    def read(self, x: Array, node: Node, dtype: Any) -> Array:
        if node.op not in _CENTRED:
            return x
        fraction, exponent = np.frexp(x)
        scale = 1 / (_UNITS * np.finfo(x.dtype).eps)
        rounded: Array = np.ldexp(np.round(fraction * scale) / scale, exponent)
        return rounded.astype(x.dtype)

    def made(self, x: Array, node: Node) -> Array:
        return x if x.dtype.kind != "f" else np.where(np.abs(x) < np.finfo(x.dtype).tiny, x.dtype.type(0), x)


class _Moving(_Plain):
    """Every operation rounds anew; NaN wins or loses and zeros have signs at random where that is unspecified."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def read(self, x: Array, node: Node, dtype: Any) -> Array:
        if node.op is POW and x.dtype.kind == "f":  # -inf ** 0.5 is unspecified
            return np.where(np.isneginf(x), -x, x)
        if node.op in _CENTRED:
            return self._moved(x)
        if node.op in _IN_ANY_ORDER:  # an overflow meets a 0, or one of the other sign, by chance
            return self._shuffled(x, node.attributes_as(ReduceAttributes).axes)
        if node.op not in _SELECTIONS or x.dtype.kind != "f":
            return x
        return np.where(np.isnan(x), self._rng.choice([np.nan, np.inf, -np.inf], x.shape), x).astype(x.dtype)

    def computed(self, node: Node, attributes: Any, operands: list[Any]) -> Any:
        if node.op in _SUMS and operands[0].dtype.kind == "f" and operands[0].size and self._rng.random() < 0.5:
            return self._one_by_one(operands[0], attributes, mean=node.op is REDUCE_MEAN)
        found = super().computed(node, attributes, operands)
        if node.op is HARDMAX and operands[0].dtype.kind == "f":  # no element need be 1 beside a NaN
            found = np.where(np.isnan(operands[0]).any(attributes.axes, keepdims=True), 0, found).astype(found.dtype)
        return found

    def made(self, x: Array, node: Node) -> Array:
        if node.op is SIGN and x.dtype.kind == "f":  # the sign of NaN is unspecified, NaN or 0
            return np.where(np.isnan(x), self._rng.choice([0, np.nan]), x).astype(x.dtype)
        if x.dtype.kind != "f":
            return x
        x = np.where(x == 0, np.copysign(x, self._rng.choice([-1, 1], x.shape)), x).astype(x.dtype)
        if _is_exact(x):
            return x
        return self._moved(self._approximated(x) if node.op in _ABSOLUTE else x)

    def _approximated(self, x: Array) -> Array:
        """A number smaller than the error may as well be 0."""
        steps = self._steps(x)
        gone = (np.abs(x) < _UNITS * np.finfo(x.dtype).eps) & (steps < 0)
        return np.where(gone, 0, np.where(np.isfinite(x), x + steps, x)).astype(x.dtype)

    def _shuffled(self, x: Array, axes: tuple[int, ...]) -> Array:
        for axis in axes:
            x = self._rng.permuted(x, axis=axis)
        return x

    def _one_by_one(self, x: Array, attributes: Any, *, mean: bool) -> Array:
        """The sum in some order, element after element: what overflows on the way hangs on the order."""
        axes: tuple[int, ...] = attributes.axes
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
        flat = x.transpose(*kept, *axes).reshape(*[x.shape[axis] for axis in kept], -1)
        total = np.cumsum(self._rng.permuted(flat, axis=-1), axis=-1, dtype=np.promote_types(x.dtype, np.float32))
        found = (total[..., -1] / flat.shape[-1] if mean else total[..., -1]).astype(x.dtype)
        return found.reshape(shape) if attributes.keepdims else found

    def _moved(self, x: Array) -> Array:
        return np.where(np.isfinite(x), x * (1 + self._steps(x)), x).astype(x.dtype)

    def _steps(self, x: Array) -> Array:
        steps: Array = np.multiply(self._rng.integers(-_UNITS, _UNITS + 1, x.shape), np.finfo(x.dtype).eps)
        return steps


def _within(a: Array, b: Array, samples: list[Array]) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "f":  # a subnormal number may be 0
        a, b = (np.where(np.abs(x) < _UNITS * np.finfo(x.dtype).tiny, x.dtype.type(0), x) for x in (a, b))
    if _is_exact(a):  # a choice: where it falls otherwise in one sample, it may in another fall anywhere
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f") or any((s != a).any() for s in samples)
    with np.errstate(all="ignore"):
        apart = np.fmax.reduce([np.abs(s.astype(np.float64) - a.astype(np.float64)) for s in samples])
        most = np.nan_to_num(apart, nan=0.0, posinf=np.inf)
        changed = np.logical_or.reduce([_became_other(a, s) for s in samples])
    slack = _FURTHER * np.maximum(most, np.median(most) if most.size else 0.0)
    found = compare_values("", a, np.where(changed, a, b), frozenset({REASSOCIATES}), None, slack)
    return found.status != DIFFERENT


def _became_other(a: Array, b: Array) -> Array:
    """Elements where a number, an infinity or NaN became another of these."""
    same: Array = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(a) & np.isfinite(b))
    return ~same
