"""Calls with a dim in an attribute that is a number: the operations that take it as an operand instead.

``epsilon=1 / N`` has no value before the sizes are known, and no ONNX operator takes it as an operand. Where the size
is fixed later, the rewrites of fused operations put these together again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dmlc.ir import DType, Operation, Value
from dmlc.ir.dtype import bool_, f16, f32
from dmlc.ops import elementwise, index, move, normalize
from dmlc.ops.binary import ADD, DIV, LESS, MAX, MIN, MUL, SUB
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.reduce import REDUCE_MEAN


class OpenNumberCall(Protocol):
    """A call as the compositions see it. ``record`` has its attributes, with any number for the open ones."""

    operands: Sequence[Value]
    record: Any

    def add(self, op: Operation, *operands: Value, **attributes: Any) -> Value:
        """Add a node; return its result."""

    def number(self, name: str, dtype: DType) -> Value | None:
        """The number of a keyword, or its default, as a scalar; None where it has neither."""


def _needed(value: Value | None) -> Value:
    assert value is not None
    return value


def _full(call: OpenNumberCall) -> Value:
    a: index.FullAttributes = call.record
    return call.add(move.EXPAND, _needed(call.number("value", a.dtype)), shape=a.shape)


def _clip(call: OpenNumberCall) -> Value:
    x = call.operands[0]
    for name, op in (("min", MAX), ("max", MIN)):
        bound = call.number(name, x.type.dtype)
        x = x if bound is None else call.add(op, x, bound)
    return x


def _pad(call: OpenNumberCall) -> Value:
    x = call.operands[0]
    pads, inside = call.record.pads, call.add(index.FULL, shape=x.shape, value=True, dtype=bool_)
    inside = call.add(move.PAD, inside, pads=pads, value=False)
    return call.add(WHERE, inside, call.add(move.PAD, x, pads=pads), _needed(call.number("value", x.type.dtype)))


def _one_hot(call: OpenNumberCall) -> Value:
    a: index.OneHotAttributes = call.record
    hot = call.add(index.ONE_HOT, call.operands[0], depth=a.depth, axis=a.axis, on=True, off=False, dtype=bool_)
    return call.add(WHERE, hot, *[_needed(call.number(name, a.dtype)) for name in ("on", "off")])


def _negative_part(op: Operation | None) -> Callable[[OpenNumberCall], Value]:
    """``where(x < 0, alpha * op(x), x)``."""

    def compose(call: OpenNumberCall) -> Value:
        x = call.operands[0]
        part = x if op is None else call.add(op, x)
        part = call.add(MUL, part, _needed(call.number("alpha", x.type.dtype)))
        return call.add(WHERE, call.add(LESS, x, _zero(call, x)), part, x)

    return compose


def _zero(call: OpenNumberCall, x: Value) -> Value:
    return call.add(index.FULL, shape=(), value=0, dtype=x.type.dtype)


def _hard_sigmoid(call: OpenNumberCall) -> Value:
    x = call.operands[0]
    slope, offset = [_needed(call.number(name, x.type.dtype)) for name in ("alpha", "beta")]
    return call.add(CLIP, call.add(ADD, call.add(MUL, x, slope), offset), min=0, max=1)


def _normalized(call: OpenNumberCall, x: Value, axes: Sequence[int], *, centred: bool) -> Value:
    """``x`` less its mean, over the root of its mean square and epsilon."""
    if centred:
        x = call.add(SUB, x, call.add(REDUCE_MEAN, x, axes=axes))
    square = call.add(REDUCE_MEAN, call.add(MUL, x, x), axes=axes)
    root = call.add(elementwise.SQRT, call.add(ADD, square, _needed(call.number("epsilon", x.type.dtype))))
    return call.add(DIV, x, root)


def _wide(call: OpenNumberCall, x: Value) -> Value:
    return call.add(CAST, x, to=f32) if x.type.dtype is f16 else x


def _mean_variance_norm(call: OpenNumberCall) -> Value:
    a: normalize.MeanVarianceAttributes = call.record
    x = call.operands[0]
    if not a.variance:
        return call.add(normalize.MEAN_VARIANCE_NORM, x, axes=a.axes, variance=False)
    return _narrow(call, _normalized(call, _wide(call, x), a.axes, centred=True), x)


def _trailing_norm(*, centred: bool) -> Callable[[OpenNumberCall], Value]:
    def compose(call: OpenNumberCall) -> Value:
        x, *affine = [_wide(call, operand) for operand in call.operands]
        out = _normalized(call, x, list(range(call.record.axis, x.type.rank)), centred=centred)
        for op, operand in zip((MUL, ADD), affine, strict=False):
            out = call.add(op, out, operand)
        return _narrow(call, out, call.operands[0])

    return compose


def _narrow(call: OpenNumberCall, out: Value, x: Value) -> Value:
    return call.add(CAST, out, to=f16) if x.type.dtype is f16 else out


#: Functions that compute a call with an open number, by its operation.
COMPOSED: dict[Operation, Callable[[OpenNumberCall], Value]] = {
    index.FULL: _full,
    CLIP: _clip,
    move.PAD: _pad,
    index.ONE_HOT: _one_hot,
    elementwise.ELU: _negative_part(elementwise.ELU),
    elementwise.LEAKY_RELU: _negative_part(None),
    elementwise.HARD_SIGMOID: _hard_sigmoid,
    normalize.MEAN_VARIANCE_NORM: _mean_variance_norm,
    normalize.LAYER_NORM: _trailing_norm(centred=True),
    normalize.RMS_NORM: _trailing_norm(centred=False),
}
