"""Operators that a provider leaves to the CPU, in those that it has kernels of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from dmlc.ir import DType, Graph, Node, Operation, Value
from dmlc.ir.dtype import bool_, f32, i32, i64
from dmlc.ops.binary import ADD, AND, EQUAL, GREATER, LESS, MUL, OR, SUB, XOR
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.elementwise import EXP, FLOOR, LOG, NOT, ROUND, SIGN
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, ONE_HOT, GatherAttributes, OneHotAttributes
from dmlc.ops.move import (
    CONCAT,
    PAD,
    RESHAPE,
    SLICE,
    SPLIT,
    SQUEEZE,
    TRANSPOSE,
    UNSQUEEZE,
    ConcatAttributes,
    NewAxesAttributes,
    PadAttributes,
    SliceAttributes,
    SplitAttributes,
)
from dmlc.ops.normalize import LOG_SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, REDUCE_SUM, ReduceAttributes
from dmlc.ops.scan import CUMSUM
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K, ArgAttributes, HardmaxAttributes
from dmlc.passes.intervals import RangedRule
from dmlc.passes.node_maker import Maker, dtype_of
from dmlc.passes.rewrite import Match, Rewriter, Rule

#: f32 holds every integer up to this.
_EXACT = float(2**24)


class AbsentRule(RangedRule, Rule[Match]):
    """A rule about an operator without a kernel. ``operators`` are ONNX's names of the roots, ``needs`` what it
    becomes."""

    optional = False
    operators: ClassVar[dict[Operation, str]]
    needs: ClassVar[tuple[str, ...]]

    def match(self, node: Node, graph: Graph) -> Match | None:
        dtype, ask = dtype_of(node), self.capabilities
        is_left = ask.leaves(self.operators[node.op], dtype)
        return Match(node) if is_left and all(ask.computes(op, self.home(node)) for op in self.needs) else None

    def home(self, node: Node) -> DType:
        """The dtype in which the new nodes compute."""
        return dtype_of(node)

    def describe(self, match: Match) -> str:
        return f"{match.root.op.name} of {dtype_of(match.root)}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [self.made(match.root, Maker(rewriter), rewriter.graph)]

    def made(self, node: Node, make: Maker, graph: Graph) -> Value:
        """Return the replacement of the only result."""
        raise NotImplementedError


class TruthsByIntegers(AbsentRule):
    """``a | b`` of truths becomes ``!(!a & !b)``; ``a ^ b`` and ``a == b`` compare integers."""

    name = "truths-by-integers"
    operators: ClassVar = {OR: "Or", XOR: "Xor", EQUAL: "Equal"}
    roots: ClassVar = tuple(operators)
    needs: ClassVar = ("Equal",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        return super().match(node, graph) if dtype_of(node) is bool_ else None

    def home(self, node: Node) -> DType:
        return i32

    def made(self, node: Node, make: Maker, graph: Graph) -> Value:
        a, b = node.operand("a"), node.operand("b")
        if node.op is OR:
            return make(NOT, make(AND, make(NOT, a), make(NOT, b)))
        same = make(EQUAL, make.cast(a, i32), make.cast(b, i32))
        return same if node.op is EQUAL else make(NOT, same)


class StepsByComparison(AbsentRule):
    """``round`` and ``sign`` become comparisons and choices.

    The number below and the distance to it are exact. Half of the number below is a whole one where that is even.
    """

    name = "steps-by-comparison"
    operators: ClassVar = {ROUND: "Round", SIGN: "Sign"}
    roots: ClassVar = tuple(operators)
    needs: ClassVar = ("Where", "Floor", "Less")

    def made(self, node: Node, make: Maker, graph: Graph) -> Value:
        x, dtype = node.operand("x"), dtype_of(node)

        def number(value: float) -> Value:
            return make.constant(value, dtype)

        if node.op is SIGN:  # zeros and NaN are their own
            below = make(WHERE, make(LESS, x, number(0)), number(-1), x)
            return make(WHERE, make(GREATER, x, number(0)), number(1), below)
        low = make(FLOOR, x)
        part, half = make(SUB, x, low), make(MUL, low, number(0.5))
        is_odd = make(LESS, make(FLOOR, half), half)
        before = np.nextafter(np.asarray(0.5, dtype.numpy), np.asarray(0, dtype.numpy))
        least = make(WHERE, is_odd, number(before), number(0.5))
        return make(WHERE, make(GREATER, part, least), make(ADD, low, number(1)), low)


class LogSoftmaxInParts(AbsentRule):
    """``log_softmax`` becomes the distance to the maximum less the logarithm of the sum of its powers."""

    name = "log-softmax-in-parts"
    operators: ClassVar = {LOG_SOFTMAX: "LogSoftmax"}
    roots: ClassVar = tuple(operators)
    needs: ClassVar = ("ReduceMax", "Sub", "Exp", "ReduceSum", "Log")

    def made(self, node: Node, make: Maker, graph: Graph) -> Value:
        x, over = node.operand("x"), ReduceAttributes(axes=node.attributes_as(SoftmaxAttributes).axes, keepdims=True)
        below = make(SUB, x, make(REDUCE_MAX, x, attributes=over))
        return make(SUB, below, make(LOG, make(REDUCE_SUM, make(EXP, below), attributes=over)))


class OneHotByComparison(AbsentRule):
    """``one_hot``, and ``hardmax`` over one axis, become a comparison of the index with the places of the axis."""

    name = "one-hot-by-comparison"
    operators: ClassVar = {ONE_HOT: "OneHot", HARDMAX: "Hardmax"}
    roots: ClassVar = tuple(operators)
    needs: ClassVar = ("Equal", "Where")

    def match(self, node: Node, graph: Graph) -> Match | None:
        if node.op is ONE_HOT:
            known = isinstance(node.attributes_as(OneHotAttributes).depth, int)
            return Match(node) if known and self.capabilities.kernel("OneHot") is None else None
        axes = node.attributes_as(HardmaxAttributes).axes
        if len(axes) > 1 or not isinstance(node.operand("x").shape[axes[0]], int):
            return None
        return super().match(node, graph) if self.capabilities.computes("ArgMax", dtype_of(node)) else None

    def home(self, node: Node) -> DType:
        return i32

    def made(self, node: Node, make: Maker, graph: Graph) -> Value:
        if node.op is HARDMAX:
            x, (axis,) = node.operand("x"), node.attributes_as(HardmaxAttributes).axes
            first = ArgAttributes(axes=(axis,), ties="first", dtype=self._kind(i64), keepdims=True)
            index = make(ARGMAX, x, attributes=first)
            return make.cast(make(EQUAL, index, self._places(make, index, x.shape[axis], axis)), x.type.dtype)
        a = node.attributes_as(OneHotAttributes)
        given = node.operand("indices")
        index = make.cast(given, self._kind(given.type.dtype))
        index = make(UNSQUEEZE, index, attributes=NewAxesAttributes(axes=(a.axis,)))
        if self.interval(given, graph)[0] < 0:
            from_end = make(ADD, index, make.constant(a.depth, index.type.dtype))
            index = make(WHERE, make(LESS, index, make.constant(0, index.type.dtype)), from_end, index)
        hot = make(EQUAL, index, self._places(make, index, a.depth, a.axis))
        if (a.on, a.off) == (1, 0):
            return make.cast(hot, a.dtype)
        return make(WHERE, hot, make.constant(a.on, a.dtype), make.constant(a.off, a.dtype))

    def _kind(self, dtype: DType) -> DType:
        """The dtype in which indices are compared: i64 where the provider compares it, else i32."""
        return i64 if dtype is i64 and self.capabilities.computes("Equal", i64) else i32

    @staticmethod
    def _places(make: Maker, index: Value, depth: object, axis: int) -> Value:
        assert isinstance(depth, int)
        behind = index.type.rank - axis - 1
        return make.constant(np.arange(depth).reshape([depth] + [1] * behind), index.type.dtype)


class SliceByGather(AbsentRule):
    """A slice of integers with known ends becomes a gather of the elements along each axis."""

    name = "slice-by-gather"
    operators: ClassVar = {SLICE: "Slice"}
    roots: ClassVar = tuple(operators)
    needs: ClassVar = ("Gather",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        a, shape = node.attributes_as(SliceAttributes), node.operand("x").shape
        known = all(isinstance(d, int) for axis, start, end, _ in a.rows() for d in (shape[axis], start, end))
        return super().match(node, graph) if known else None

    def made(self, node: Node, make: Maker, graph: Graph) -> Value:
        out = node.operand("x")
        for axis, start, end, step in node.attributes_as(SliceAttributes).rows():
            size, first, last = out.shape[axis], start, end
            assert isinstance(size, int) and isinstance(first, int) and isinstance(last, int)
            places = np.arange(size)[first:last:step]
            if len(places) != size or step < 0:
                chosen = make.constant(places, i64)
                out = make(GATHER, out, chosen, attributes=GatherAttributes(axis=axis, batch_axes=0))
        return out


class PadByConcat(AbsentRule):
    """A pad of integers becomes a concat with constants along each axis."""

    name = "pad-by-concat"
    operators: ClassVar = {PAD: "Pad"}
    roots: ClassVar = tuple(operators)
    needs: ClassVar = ("Concat",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        sizes = (*node.operand("x").shape, *node.attributes_as(PadAttributes).pads)
        return super().match(node, graph) if all(isinstance(size, int) for size in sizes) else None

    def made(self, node: Node, make: Maker, graph: Graph) -> Value:
        out, a = node.operand("x"), node.attributes_as(PadAttributes)
        rank = out.type.rank
        for axis in range(rank):
            parts = []
            for count in (a.pads[axis], None, a.pads[rank + axis]):
                shape = [count if i == axis else size for i, size in enumerate(out.shape)]
                if count is None:
                    parts.append(out)
                elif count:
                    parts.append(make.constant(np.full(shape, a.value), out.type.dtype))
            if len(parts) > 1:
                out = make(CONCAT, *parts, attributes=ConcatAttributes(axis=axis))
        return out


class PartsByGather(AbsentRule):
    """``squeeze`` of integers becomes a reshape, ``split`` with known sizes a gather for each part."""

    name = "parts-by-gather"
    operators: ClassVar = {SQUEEZE: "Squeeze", SPLIT: "Split"}
    roots: ClassVar = tuple(operators)
    needs: ClassVar = ("Reshape", "Gather")

    def match(self, node: Node, graph: Graph) -> Match | None:
        if node.op is SPLIT:
            axis = node.attributes_as(SplitAttributes).axis
            if not all(isinstance(value.shape[axis], int) for value in node.results):
                return None
        return super().match(node, graph)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        node, make = match.root, Maker(rewriter)
        if node.op is SQUEEZE:
            return [make.reshape(node.operand("x"), node.result.shape)]
        axis, first, out = node.attributes_as(SplitAttributes).axis, 0, []
        for value in node.results:
            size = value.shape[axis]
            assert isinstance(size, int)
            places = make.constant(np.arange(first, first + size), i64)
            out.append(make(GATHER, node.operand("x"), places, attributes=GatherAttributes(axis=axis, batch_axes=0)))
            first += size
        return out


class IntegersInNarrower(AbsentRule):
    """A choice or running sum of integers is made in f32 or i32, where that holds each of them.

    ``gather_elements`` and ``top_k`` take floats alone; ``cumsum``, and what finds an extreme, no i64.
    """

    name = "integers-in-narrower"
    operators: ClassVar = {
        GATHER_ELEMENTS: "GatherElements",
        TOP_K: "TopK",
        ARGMAX: "ArgMax",
        ARGMIN: "ArgMin",
        REDUCE_MAX: "ReduceMax",
        REDUCE_MIN: "ReduceMin",
        CUMSUM: "CumSum",
    }
    roots: ClassVar = tuple(operators)
    needs: ClassVar = ()

    def match(self, node: Node, graph: Graph) -> Match | None:
        x, home = node.operand("x"), self.home(node)
        if not x.type.dtype.is_integer or not self.capabilities.computes("Cast", x.type.dtype, "T1"):
            return None
        if home is i32 and (x.type.dtype is not i64 or not x.type.is_static or 0 in x.shape):
            return None  # an extreme of nothing is the lowest number of its type
        most = _EXACT if home is f32 else float(i32.highest)
        ends = (*self.interval(x, graph), *(self.interval(node.results[0], graph) if node.op is CUMSUM else ()))
        fits = max(map(abs, ends)) <= most and self.capabilities.computes(self.operators[node.op], home)
        return super().match(node, graph) if fits else None

    def home(self, node: Node) -> DType:
        return f32 if node.op in (GATHER_ELEMENTS, TOP_K) else i32

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        node, make = match.root, Maker(rewriter)
        operands = [make.cast(node.operand(0), self.home(node)), *node.operands[1:]]
        made = rewriter.add_node(node.op, operands, node.attributes).results
        return [make.cast(made[0], node.results[0].type.dtype), *made[1:]]


class CastBeforeView(Rule[Match]):
    """The cast of a view of i64 becomes a view of the cast, where the provider has no kernel of the view.

    Casts of several views of one value become one.
    """

    name = "cast-before-view"
    optional = False
    views: ClassVar = {RESHAPE: "Reshape", SQUEEZE: "Squeeze", UNSQUEEZE: "Unsqueeze", TRANSPOSE: "Transpose"}
    roots: ClassVar = (CAST,)
    fed_by: ClassVar = tuple(views)

    def match(self, node: Node, graph: Graph) -> Match | None:
        view = node.operand("x").producer
        if dtype_of(node) is not i64 or view is None or view.op not in self.views:
            return None
        name = self.views[view.op]
        kernel = self.capabilities.kernel(name)
        is_absent = self.capabilities.leaves(name, i64) or (kernel is not None and "T" in kernel.int64)
        return Match(node, (view,)) if is_absent else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        (view,) = match.consumed
        cast = Maker(rewriter).cast(view.operand(0), match.root.result.type.dtype)
        return [rewriter.add(view.op, [cast, *view.operands[1:]], view.attributes)]


RULES: Sequence[type[Rule[Match]]] = (
    TruthsByIntegers,
    StepsByComparison,
    LogSoftmaxInParts,
    OneHotByComparison,
    SliceByGather,
    PadByConcat,
    PartsByGather,
    IntegersInNarrower,
    CastBeforeView,
)
