"""Nodes of a model whose operand has an unknown rank, or whose axes are computed: repaired as ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from dmlc.ir import FOREIGN, DType, ForeignType, Graph, Node, Operation, TensorType, Value, product
from dmlc.ir.dtype import bool_, i64
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.rewrite import Match, Rewriter, Rule

#: The first opset at which the axes of a reduction are an operand.
_AXES_OPERAND = {"ReduceSum": 13}
_ALL_AXES_OPERAND = 18


def element_dtype(value: Value) -> DType | None:
    """The dtype of a value, of one of unknown rank too; None if it is not known."""
    if value.type.dtype is not FOREIGN:
        return value.type.dtype
    from dmlc.onnx_schema.types import dtype_of_foreign  # loads onnx, which a model has loaded already

    return dtype_of_foreign(value.type)


def unsized_type(dtype: DType) -> ForeignType:
    from dmlc.onnx_schema.types import unsized

    return unsized(dtype)


class OnnxMaker:
    """Makes nodes of ONNX operators of the domain ``ai.onnx`` at the emitted opset."""

    def __init__(self, rewriter: Rewriter, opset: int) -> None:
        self.rewriter = rewriter
        self.opset = opset

    def __call__(self, op_type: str, type: TensorType, *operands: Value | None, **attributes: Any) -> Value:
        given = tuple(sorted(attributes.items()))
        record = OpaqueAttributes(op_type=op_type, types=(type,), attributes=given)
        return self.rewriter.add(OPAQUE, operands, record)

    def constant(self, numbers: Any, dtype: DType) -> Value:
        return self.rewriter.constant(np.asarray(numbers, dtype.numpy))

    def reduce(self, op_type: str, type: TensorType, x: Value, axes: _Axes, keepdims: bool) -> Value:
        """A reduction over the axes of another node, in the form that the operator has at the opset."""
        given: dict[str, Any] = {"keepdims": int(keepdims)}
        operands = [x]
        if self.opset < _AXES_OPERAND.get(op_type, _ALL_AXES_OPERAND):
            if axes.plain is not None:
                given["axes"] = axes.plain
        else:
            operand = axes.operand
            if operand is None and axes.plain is not None:
                operand = self.constant(axes.plain, i64)
            operands += [] if operand is None else [operand]
            if axes.noop:
                given["noop_with_empty_axes"] = 1
        return self(op_type, type, *operands, **given)


class _Axes:
    """The axes of an opaque reduction: an operand, an attribute, or all."""

    def __init__(self, node: Node) -> None:
        self.operand: Value | None = node.operands[1] if len(node.operands) > 1 else None
        self.plain: Any = attribute_of(node, "axes")
        self.noop: bool = bool(attribute_of(node, "noop_with_empty_axes", 0))


class ForeignTruth(Rule[Match]):
    """A cast to bool of an unknown rank becomes Not(Equal(x, 0)), which asks for no rank."""

    name = "truth-of-unknown-rank"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("cast-bool", "cast-integer-bool", "cast-int-bool")

    def match(self, node: Node, graph: Graph) -> Match | None:
        op_type = next((name for name in ("Cast", "CastLike") if is_opaque(node, name)), None)
        if op_type is None or node.operands[0] is None or element_dtype(node.result) is not bool_:
            return None
        dtype = element_dtype(node.operands[0])
        if dtype is None or not any(self.capabilities.has_fault(f, op_type, "T1", dtype) for f in self.repairs):
            return None
        return Match(node)

    def describe(self, match: Match) -> str:
        return "a cast to bool"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, make = match.root, OnnxMaker(rewriter, self.capabilities.opset)
        x, type = root.operand(0), root.result.type
        dtype = element_dtype(x)
        assert dtype is not None
        return [make("Not", type, make("Equal", type, x, make.constant(0, dtype)))]


class ForeignLogSumExp(Rule[Match]):
    """A ReduceLogSumExp of unknown rank, or over computed axes, has its maximum over the same axes taken out."""

    name = "shift-log-sum-exp-of-unknown-rank"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("log-sum-exp",)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        if not is_opaque(node, "ReduceLogSumExp") or node.operands[0] is None:
            return None
        (failure,) = self.repairs
        dtype = element_dtype(node.operands[0])
        found = dtype is not None and self.capabilities.has_fault(failure, "ReduceLogSumExp", "T", dtype)
        return Match(node) if found else None

    def describe(self, match: Match) -> str:
        return "ReduceLogSumExp"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, make = match.root, OnnxMaker(rewriter, self.capabilities.opset)
        x, axes, keeps = root.operand(0), _Axes(root), bool(attribute_of(root, "keepdims", 1))
        dtype = element_dtype(x)
        assert dtype is not None
        home = dtype.accumulator
        any_shape = unsized_type(home)
        like_x = any_shape if x.type.dtype is FOREIGN else x.type.with_dtype(home)
        if home is not dtype:
            x = make("Cast", like_x, x, to=_number(home))
        largest = float(np.finfo(home.numpy).max)
        low, high = make.constant(-largest, home), make.constant(largest, home)

        def peak(keepdims: bool) -> Value:
            found = make.reduce("ReduceMax", any_shape, x, axes, keepdims)
            return make("Min", any_shape, make("Max", any_shape, found, low), high)  # no inf - inf

        top = peak(True)
        powers = make("Exp", like_x, make("Sub", like_x, x, top))
        total = make("Log", any_shape, make.reduce("ReduceSum", any_shape, powers, axes, keeps))
        out_type = root.result.type if home is dtype else any_shape
        out = make("Add", out_type, total, top if keeps else peak(False))
        return [out if home is dtype else make("Cast", root.result.type, out, to=_number(dtype))]


class ForeignMean(Rule[Match]):
    """A ReduceMean of integers of unknown rank, or over computed axes, becomes the sum in i64, divided and truncated.

    The number of elements of each mean is computed: the size of the operand by the size of the sum.
    """

    name = "exact-mean-of-unknown-rank"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("reduce-integers", "reduce-unsigned")

    def match(self, node: Node, graph: Graph) -> Match | None:
        if not is_opaque(node, "ReduceMean") or node.operands[0] is None:
            return None
        dtype = element_dtype(node.operands[0])
        if dtype is None or not any(self.capabilities.has_fault(f, "ReduceMean", "T", dtype) for f in self.repairs):
            return None
        return Match(node)

    def describe(self, match: Match) -> str:
        return "ReduceMean of integers"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, make = match.root, OnnxMaker(rewriter, self.capabilities.opset)
        x, axes, keeps = root.operand(0), _Axes(root), bool(attribute_of(root, "keepdims", 1))
        dtype = element_dtype(x)
        assert dtype is not None

        def total(value: Value) -> Value:
            return make.reduce("ReduceSum", unsized_type(i64), value, axes, keeps)

        if dtype is i64:
            return [_signed_mean(make, x, total, root.result.type)]
        mean = _wide_mean(make, x, dtype, total)[0] if dtype.bits == 64 else _narrow_mean(make, x, total)
        return [make("Cast", root.result.type, mean, to=_number(dtype))]


def _narrow_mean(make: OnnxMaker, x: Value, total: Callable[[Value], Value]) -> Value:
    """The mean in i64 of numbers of up to 32 bits, of which a sum fits i64."""
    sums = total(make("Cast", unsized_type(i64), x, to=_number(i64)))
    return make("Div", unsized_type(i64), sums, _elements_of_each(make, x, sums))


def _wide_mean(make: OnnxMaker, x: Value, dtype: DType, total: Callable[[Value], Value]) -> tuple[Value, Value]:
    """The mean in i64 of 64-bit numbers, each taken apart into 2^32 h + l so that no sum overflows; and its remainder.

    With H and L the sums, n elements and H = q n + r, the mean is 2^32 q + (2^32 r + L) / n. Divisions truncate.
    """
    any_shape, apart, base = unsized_type(i64), make.constant(2**32, dtype), make.constant(2**32, i64)
    high = make("Div", unsized_type(dtype), x, apart)
    low = make("Sub", unsized_type(dtype), x, make("Mul", unsized_type(dtype), high, apart))
    if dtype is not i64:
        high, low = (make("Cast", any_shape, part, to=_number(i64)) for part in (high, low))
    highs, lows = total(high), total(low)
    count = _elements_of_each(make, x, highs)

    def divided(value: Value) -> tuple[Value, Value]:
        quotient = make("Div", any_shape, value, count)
        return quotient, make("Sub", any_shape, value, make("Mul", any_shape, quotient, count))

    whole, rest = divided(highs)
    part, rest = divided(make("Add", any_shape, make("Mul", any_shape, rest, base), lows))
    return make("Add", any_shape, make("Mul", any_shape, whole, base), part), rest


def _signed_mean(make: OnnxMaker, x: Value, total: Callable[[Value], Value], type: TensorType) -> Value:
    """The mean of i64: the mean of 64-bit numbers, less one too many where its remainder has the other sign."""
    mean, rest = _wide_mean(make, x, i64, total)
    any_shape, zero, flag = unsized_type(i64), make.constant(0, i64), unsized_type(bool_)
    down = make("And", flag, make("Less", flag, zero, mean), make("Less", flag, rest, zero))
    up = make("And", flag, make("Less", flag, mean, zero), make("Less", flag, zero, rest))
    lowered = make("Sub", any_shape, mean, make("Cast", any_shape, down, to=_number(i64)))
    return make("Add", type, lowered, make("Cast", any_shape, up, to=_number(i64)))


def _elements_of_each(make: OnnxMaker, x: Value, reduced: Value) -> Value:
    """The number of elements in each group of ``x`` that was reduced to one; 1 if there are none, so that a division
    by it does not fail."""
    scalar, one = TensorType(i64, ()), make.constant(1, i64)
    results = make("Max", scalar, make("Size", scalar, reduced), one)
    return make("Max", scalar, make("Div", scalar, _size(make, x), results), one)


def _size(make: OnnxMaker, value: Value) -> Value:
    """The number of elements."""
    if isinstance(value.type, ForeignType) or not value.type.is_static:
        return make("Size", TensorType(i64, ()), value)
    return make.constant(product(value.shape), i64)


def _number(dtype: DType) -> int:
    from dmlc.onnx_schema.types import ELEMENT_TYPE

    return ELEMENT_TYPE[dtype]
