"""The kernels that each operation's lowering needs, and through which wider type it may be computed exactly.

The intricate cases are rules of their own; what this table holds is decided by looking it up.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from dmlc.ir import Attributes, Dim, DType, Graph, Node, Operation, Tensor, Value, product
from dmlc.ir.dtype import bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from dmlc.ops import binary, choose, elementwise, index, matmul, move, normalize, reduce, scan, select
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.move import RESHAPE, ReshapeAttributes
from dmlc.passes.rewrite import Match, Rewriter, Rule
from dmlc.records import dataclass
from dmlc.targets import KernelTable, Target
from dmlc.targets.support import ProviderSupport

Wider = Mapping[DType, tuple[DType, ...]]

#: Types that hold every value in the same order: for operations that compare, choose or divide.
VALUE: Wider = {
    bool_: (u8, i32),
    i8: (i32, f32), u8: (i32, f32), i16: (i32, f32), u16: (i32, f32),
    i32: (i64, f64), u32: (i64, f64),
    f16: (f32,),
}  # fmt: skip
#: The same with f32 before i32: arg searches in f32 are the fastest on ONNX Runtime's CPU provider.
VALUE_FLOAT_FIRST: Wider = {**VALUE, i16: (f32, i32), u16: (f32, i32)}
#: Types to whose low bits the result's bits are the same: for what wraps, and for what only moves elements.
MODULAR: Wider = {
    bool_: (u8, i32),
    i8: (i32, i64), u8: (i32, i64), i16: (i32, i64), u16: (i32, i64),
    i32: (i64,), u32: (i32, i64), u64: (i64,),
    f16: (f32,),
}  # fmt: skip
#: No other type gives the same numbers.
NONE: Wider = {f16: (f32,)}


@dataclass(frozen=True, slots=True)
class Need:
    """``kernels`` are (ONNX operator, its type parameter); all of them must take the dtype.

    ``operands`` are those that have it, ``results`` those that are cast back (None: all). ``wrong`` are dtypes whose
    kernel exists and gives wrong numbers.
    """

    kernels: tuple[tuple[str, str], ...]
    wider: Wider = field(default_factory=lambda: NONE)
    operands: tuple[int, ...] | None = None
    results: tuple[int, ...] | None = None
    wrong: frozenset[DType] = frozenset()


def _need(
    *names: str,
    wider: Wider = NONE,
    parameter: str = "T",
    operands: tuple[int, ...] | None = None,
    results: tuple[int, ...] | None = None,
    wrong: tuple[DType, ...] = (),
) -> Need:
    return Need(tuple((name, parameter) for name in names), wider, operands, results, frozenset(wrong))


#: Comparing i64 in Max, Min, Clip, Sign, ReduceMax and ReduceMin is wrong on ONNX Runtime's CPU provider where two
#: numbers share the high half and differ in bit 31 (its pull requests 25280 and 32475 name a fault in Eigen's SSE2
#: code).
_WRONG_ORDER = (i64,)

#: The needs of every operation but those of ``UNCHECKED``.
NEEDS: dict[Operation, Need] = {
    **{op: _need(op.onnx) for op in elementwise.UNARY if op.onnx},
    elementwise.SIGN: _need("Sign", wrong=_WRONG_ORDER),
    elementwise.RELU: _need("Relu", wider={**VALUE, i32: ()}),
    elementwise.IS_NAN: _need("IsNaN", parameter="T1", results=()),
    elementwise.IS_INF: _need("IsInf", parameter="T1", results=()),
    binary.ADD: _need("Add", wider=MODULAR),
    binary.SUB: _need("Sub", wider=MODULAR),
    binary.MUL: _need("Mul", wider=MODULAR),
    binary.DIV: _need("Div", wider=VALUE),
    binary.MOD: _need("Mod", wider=VALUE),
    binary.FLOORDIV: _need("Div", "Floor"),
    binary.POW: _need("Pow"),
    binary.MIN: _need("Min", wider={**VALUE, i32: (), u32: ()}, wrong=_WRONG_ORDER),
    binary.MAX: _need("Max", wider={**VALUE, i32: (), u32: ()}, wrong=_WRONG_ORDER),
    binary.EQUAL: _need("Equal", wider=VALUE, results=()),
    binary.NOT_EQUAL: _need("Equal", wider=VALUE, results=()),
    binary.LESS: _need("Less", wider=VALUE, results=()),
    binary.LESS_EQUAL: _need("Less", wider=VALUE, results=()),
    binary.GREATER: _need("Greater", wider=VALUE, results=()),
    binary.GREATER_EQUAL: _need("Greater", wider=VALUE, results=()),
    choose.WHERE: _need("Where", wider=MODULAR, operands=(1, 2)),
    choose.CLIP: _need("Clip", wider={**VALUE, i32: (), u32: ()}, wrong=_WRONG_ORDER),
    matmul.MATMUL: _need("MatMul", "Pad", wider=MODULAR),
    move.RESHAPE: _need("Reshape", wider=MODULAR),
    move.TRANSPOSE: _need("Transpose", wider=MODULAR),
    move.SQUEEZE: _need("Squeeze", wider=MODULAR),
    move.UNSQUEEZE: _need("Unsqueeze", wider=MODULAR),
    move.EXPAND: _need("Expand", wider=MODULAR),
    move.CONCAT: _need("Concat", wider=MODULAR),
    move.SPLIT: _need("Split", wider=MODULAR),
    move.SLICE: _need("Slice", wider=MODULAR),
    move.PAD: _need("Pad", wider=MODULAR),
    index.GATHER: _need("Gather", wider=MODULAR, operands=(0,)),
    index.GATHER_ELEMENTS: _need("GatherElements", wider=MODULAR, operands=(0,)),
    index.SCATTER_ELEMENTS: _need("ScatterElements", wider=MODULAR, operands=(0, 2)),
    select.ARGMAX: _need("ArgMax", wider=VALUE_FLOAT_FIRST, results=()),
    select.ARGMIN: _need("ArgMin", wider=VALUE_FLOAT_FIRST, results=()),
    select.TOP_K: _need("TopK", wider=VALUE, results=(0,)),
    select.HARDMAX: _need("Hardmax"),
    reduce.REDUCE_SUM: _need("ReduceSum"),
    reduce.REDUCE_MEAN: _need("ReduceMean", "ReduceSum", "Div"),
    reduce.REDUCE_MAX: _need("ReduceMax", wider={**VALUE, u32: ()}, wrong=_WRONG_ORDER),
    reduce.REDUCE_MIN: _need("ReduceMin", wider={**VALUE, u32: ()}, wrong=_WRONG_ORDER),
    reduce.REDUCE_PROD: _need("ReduceProd"),
    reduce.REDUCE_L1: _need("ReduceL1"),
    reduce.REDUCE_L2: _need("ReduceL2"),
    reduce.REDUCE_SUM_SQUARE: _need("ReduceSumSquare"),
    reduce.REDUCE_LOG_SUM: _need("ReduceLogSum"),
    reduce.REDUCE_LOG_SUM_EXP: _need("ReduceMax", "Exp", "ReduceSum", "ReduceLogSum", "Log"),
    normalize.SOFTMAX: _need("Softmax", "ReduceMax"),
    normalize.LOG_SOFTMAX: _need("LogSoftmax", "ReduceMax"),
    normalize.MEAN_VARIANCE_NORM: _need("ReduceMean", "Sqrt"),
    normalize.LP_NORM: _need("LpNormalization"),
    scan.CUMSUM: _need("CumSum", wider=MODULAR),
    scan.CUMPROD: _need("Mul", "Pad", wider=MODULAR),
}

#: Operations that are right for every dtype as they stand, with the reason.
UNCHECKED: dict[Operation, str] = {
    choose.CAST: "Cast takes every pair of types from opset 11 on",
    elementwise.NOT: "Not and BitwiseNot take every type that is declared; below opset 18 a rule rewrites integers",
    binary.AND: "And and BitwiseAnd take every type that is declared; below opset 18 a rule rewrites integers",
    binary.OR: "Or and BitwiseOr take every type that is declared; below opset 18 a rule rewrites integers",
    binary.XOR: "Xor and BitwiseXor take every type that is declared; below opset 18 a rule rewrites integers",
    normalize.LAYER_NORM: "one node that takes f16, or parts in f32; f64 has the kernels of its parts",
    normalize.RMS_NORM: "one node that takes f16, or parts in f32; f64 has the kernels of its parts",
    index.ONE_HOT: "its lowering picks a type that OneHot takes and that holds both values",
    index.IOTA: "counted in i64 and cast",
    index.FULL: "ConstantOfShape takes every type from opset 11 on",
}


class KernelSupport:
    """The kernel table at one opset, asked by operation and dtype. Answers are kept: each is asked once.

    f16 stays f16 for DirectML, which has the kernels. For the others it is computed in f32 by casts that stand in the
    graph: those that ONNX Runtime would insert do not round what one node hands to the next.
    """

    def __init__(self, table: KernelTable, opset: int, target: Target) -> None:
        self.table = table
        self.opset = opset
        self.target = target
        self.support = ProviderSupport(target, opset)
        self._answers: dict[tuple[Operation, DType], DType | None] = {}

    @property
    def sums_on_provider(self) -> bool:
        """True if an execution provider adds i64, and has no matrix product of it to do so."""
        return self.support.computes("ReduceSum", i64) and not self.support.computes("MatMul", i64)

    def home(self, op: Operation, dtype: DType) -> DType | None:
        """The dtype itself where the kernels take it, else the wider one to compute in, else None."""
        key = (op, dtype)
        if key not in self._answers:
            self._answers[key] = self._find(op, dtype)
        return self._answers[key]

    def has(self, op: Operation, dtype: DType) -> bool:
        """Return whether the kernels take the dtype as it is."""
        return self.home(op, dtype) is dtype

    def _find(self, op: Operation, dtype: DType) -> DType | None:
        need = NEEDS[op]
        for candidate in (dtype, *need.wider.get(dtype, ())):
            if candidate not in need.wrong and all(
                candidate in self.table.dtypes(name, self.opset, parameter, inserted=self.target.native_f16)
                for name, parameter in need.kernels
            ):
                return candidate
        return None


class Maker:
    """Short spellings for the nodes that rules make."""

    __slots__ = ("rewriter",)

    def __init__(self, rewriter: Rewriter) -> None:
        self.rewriter = rewriter

    def __call__(self, op: Operation, *operands: Value, attributes: Attributes | None = None) -> Value:
        return self.rewriter.add(op, operands, attributes)

    def constant(self, value: Any, dtype: DType) -> Value:
        """A constant; integers wrap to the dtype."""
        array = np.asarray(value)
        if dtype.is_integer and array.dtype == object:
            array = np.asarray(array % 2**64).astype(np.uint64)
        return self(CONSTANT, attributes=ConstantAttributes(value=Tensor(array.astype(dtype.numpy))))

    def cast(self, value: Value, dtype: DType) -> Value:
        """The value in that dtype; itself where it has it, a new constant where it is one."""
        if value.type.dtype is dtype:
            return value
        data = constant_of(value)
        if data is not None:
            return self.constant(data.array, dtype)
        return self(CAST, value, attributes=CastAttributes(to=dtype))

    def reshape(self, value: Value, shape: Sequence[Dim]) -> Value:
        return (
            value
            if value.shape == tuple(shape)
            else self(RESHAPE, value, attributes=ReshapeAttributes(shape=tuple(shape)))
        )


class LegalRule(Rule[Match]):
    """A rule whose root alone says whether it fires. A node as an imported model has it is what its user runs.

    ``keeps_promise`` rules see to what the language says and ONNX does not (integers that wrap): imported models have
    what their runtime does.
    """

    optional = False
    keeps_promise: ClassVar[bool] = False

    def __init__(self, facts: KernelSupport) -> None:
        self.facts = facts

    def match(self, node: Node, graph: Graph) -> Match | None:
        if (node.origin is not None and not _is_lowered(node, graph)) or (self.keeps_promise and graph.dims.least == 0):
            return None
        return Match(node) if self.wants(node, graph) else None

    @abstractmethod
    def wants(self, node: Node, graph: Graph) -> bool:
        """Return whether the node is not legal as it stands."""

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [self.make(match.root, Maker(rewriter))]

    def make(self, node: Node, make: Maker) -> Value:
        """Return the replacement of the only result."""
        raise NotImplementedError


#: From here on a lower opset takes what a higher one does, but for types that the language lacks.
_WIDE_OPSET = 20


def _is_lowered(node: Node, graph: Graph) -> bool:
    """Return whether an imported node has an older opset, whose operator may not take its type."""
    return bool(graph.opset < min(node.origin.version, _WIDE_OPSET))


def dtype_of(node: Node) -> DType:
    """The dtype of the first operand."""
    return node.operand(0).type.dtype


def groups(axes: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted axes as runs of neighbours: (first, last + 1) of each."""
    out: list[tuple[int, int]] = []
    for axis in axes:
        if out and out[-1][1] == axis:
            out[-1] = (out[-1][0], axis + 1)
        else:
            out.append((axis, axis + 1))
    return out


def around(shape: Sequence[Dim], first: int, last: int) -> tuple[Dim, Dim, Dim]:
    """Return the number of elements before, within and after the axes ``first`` to before ``last``."""
    return product(shape[:first]), product(shape[first:last]), product(shape[last:])
