"""The kernels that each operation's lowering needs, and through which wider type it may be computed exactly.

The intricate cases are rules of ``legalize``; what this table holds is decided by looking it up.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from dmlc.ir import DType, Operation
from dmlc.ir.dtype import bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from dmlc.ops import binary, choose, elementwise, index, matmul, move, normalize, reduce, scan, select

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


class Need(Struct, frozen=True):
    """``kernels`` are (ONNX operator, its type parameter); all of them must take the dtype.

    ``operands`` are those that have it, ``results`` those that are cast back (None: all). ``wrong`` are dtypes whose
    kernel exists and gives wrong numbers. ``rounded_inside`` are dtypes that the lowering itself computes in a wider
    one, since it rounds between its nodes.
    """

    kernels: tuple[tuple[str, str], ...]
    wider: Wider = field(default_factory=lambda: NONE)
    operands: tuple[int, ...] | None = None
    results: tuple[int, ...] | None = None
    wrong: frozenset[DType] = frozenset()
    rounded_inside: frozenset[DType] = frozenset()


def _need(
    *names: str,
    wider: Wider = NONE,
    parameter: str = "T",
    operands: tuple[int, ...] | None = None,
    results: tuple[int, ...] | None = None,
    wrong: tuple[DType, ...] = (),
    rounded_inside: tuple[DType, ...] = (),
) -> Need:
    kernels = tuple((name, parameter) for name in names)
    return Need(kernels, wider, operands, results, frozenset(wrong), frozenset(rounded_inside))


#: Comparing i64 in Max, Min, Clip, Sign, ReduceMax and ReduceMin is wrong on ONNX Runtime's CPU provider where two
#: numbers share the high half and differ in bit 31 (its pull requests 25280 and 32475 name a fault in Eigen's SSE2
#: code).
_WRONG_ORDER = (i64,)


#: The rows of ``NEEDS``.
_ROWS: dict[Operation, Need] = {
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
    binary.FLOORDIV: _need("Div", "Floor", rounded_inside=(f16,)),
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
    move.TILE: _need("Tile", wider=MODULAR),
    index.GATHER: _need("Gather", "GatherND", wider=MODULAR, operands=(0,)),
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


class _Needs(dict[Operation, Need]):
    """Rows by operation; a missing one is a mistake of whoever added the operation."""

    def __missing__(self, op: Operation) -> Need:
        raise KeyError(f"{op.name} has no row in {__name__}: add its kernels to NEEDS, or a reason to UNCHECKED")


#: The needs of every operation that is not in ``UNCHECKED``.
NEEDS = _Needs(_ROWS)

#: Operations that are right for every dtype as they stand, with the reason.
UNCHECKED: dict[Operation, str] = {
    **{op: "`compose` writes it in others: no opset here has an operator" for op in elementwise.UNARY if not op.onnx},
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
