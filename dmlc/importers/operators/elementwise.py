"""Readers of operators that compute: elementwise ones, reductions, norms and selections."""

from __future__ import annotations

import math

import numpy as np

from dmlc.importers.registry import Found, Made, Reading, Same, reads
from dmlc.inference.query import within
from dmlc.ir import FOREIGN, Operation, Tensor, Value, as_dtype
from dmlc.ir.dtype import i64
from dmlc.onnx_schema.types import DTYPE_OF
from dmlc.ops import binary as b
from dmlc.ops import elementwise as e
from dmlc.ops import reduce as ops
from dmlc.ops.attributes import WordKind, attribute_specs
from dmlc.ops.choose import CAST, CLIP, WHERE, CastAttributes, ClipAttributes
from dmlc.ops.constant import constant_of
from dmlc.ops.index import ONE_HOT, OneHotAttributes
from dmlc.ops.normalize import (
    LAYER_NORM,
    LOG_SOFTMAX,
    LP_NORM,
    RMS_NORM,
    SOFTMAX,
    LpNormAttributes,
    NormAttributes,
    SoftmaxAttributes,
)
from dmlc.ops.reduce import ReduceAttributes
from dmlc.ops.scan import CUMSUM, ScanAttributes
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K, ArgAttributes, HardmaxAttributes, TopKAttributes

_UNARY: dict[str, e.UnaryOperation] = {
    **{op.onnx: op for op in e.UNARY if op.onnx and op is not e.IS_INF}, "Not": e.NOT, "BitwiseNot": e.NOT,
}  # fmt: skip
_BINARY: dict[str, Operation] = {
    "Add": b.ADD, "Sub": b.SUB, "Mul": b.MUL, "Div": b.DIV,
    "Equal": b.EQUAL, "Less": b.LESS, "LessOrEqual": b.LESS_EQUAL, "Greater": b.GREATER,
    "GreaterOrEqual": b.GREATER_EQUAL, "And": b.AND, "Or": b.OR, "Xor": b.XOR,
    "BitwiseAnd": b.AND, "BitwiseOr": b.OR, "BitwiseXor": b.XOR,
}  # fmt: skip
_VARIADIC: dict[str, Operation] = {"Sum": b.ADD, "Min": b.MIN, "Max": b.MAX}


@reads(*_UNARY)
def unary(r: Reading) -> Found:
    """Attributes are floats and words with the name and default that ONNX gives them."""
    op = _UNARY[r.op_type]
    given: dict[str, float | str] = {}
    for spec in attribute_specs(op.attributes):
        if isinstance(spec.kind, WordKind):
            given[spec.name] = word = r.word(spec.name, spec.default)
            if word not in spec.kind.words:
                return None
        else:
            given[spec.name] = r.real(spec.name, spec.default)
    return Made(op, [r.x], op.attributes(**given) if given else None)


@reads("IsInf")
def is_inf(r: Reading) -> Found:
    both = r.integer("detect_negative", 1) and r.integer("detect_positive", 1)
    return Made(e.IS_INF, [r.x]) if both else None


@reads(*_BINARY)
def two(r: Reading) -> Found:
    return _two(r, _BINARY[r.op_type])


def _two(r: Reading, op: Operation) -> Found:
    first, second = r.inputs
    if first is None or second is None or not _ends_together(r, first, second):
        return None
    return Made(op, [first, second])


def _ends_together(r: Reading, first: Value, second: Value) -> bool:
    """False if the last axes of the operands do not meet. Before opset 7 ``axis`` says where the second one begins."""
    if r.opset >= 7 or "axis" not in r.attributes or not first.type.rank:
        return True
    return bool(r.integer("axis", 0) % first.type.rank + second.type.rank == first.type.rank)


@reads(*_VARIADIC)
def variadic(r: Reading) -> Found:
    if len(r.inputs) == 1:
        return Same([r.x])
    return _two(r, _VARIADIC[r.op_type]) if len(r.inputs) == 2 else None


@reads("Mod")
def mod(r: Reading) -> Found:
    """With ``fmod=1`` the sign is the dividend's, which the language does not have."""
    return None if r.integer("fmod", 0) else _two(r, b.MOD)


@reads("Pow")
def power(r: Reading) -> Found:
    """A constant exponent of another dtype is that number in the base's dtype, where it is one there."""
    exponent = r.input(1)
    if exponent is None or not _ends_together(r, r.x, exponent):
        return None
    if exponent.type.dtype is not r.x.type.dtype:
        same = _in_dtype_of(r, exponent)
        if same is None:
            return None
        exponent = same
    return Made(b.POW, [r.x, exponent])


def _in_dtype_of(r: Reading, exponent: Value) -> Value | None:
    tensor, dtype = constant_of(exponent), r.x.type.dtype
    if tensor is None or tensor.size != 1 or not dtype.is_float:
        return None
    with np.errstate(all="ignore"):
        array = tensor.array.astype(dtype.numpy)
    return r.scope.constant(Tensor(array)) if array.astype(np.float64) == tensor.array.astype(np.float64) else None


@reads("Where")
def where(r: Reading) -> Found:
    operands = [v for v in r.inputs if v is not None]
    return Made(WHERE, operands) if len(operands) == 3 else None


@reads("Clip")
def clip(r: Reading) -> Found:
    """Bounds that are not constants of one element are carried. Infinity is not a bound; one that is not given is the
    largest finite number (of f32 before opset 11), as ONNX has it."""
    dtype = r.x.type.dtype
    if not dtype.is_float and not dtype.is_integer:
        return None
    bounds: list[float | int | None] = []
    for index, (name, outermost) in enumerate((("min", dtype.lowest), ("max", dtype.highest)), start=1):
        number = _clip_bound(r, index, name, outermost)
        if number != number:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            bounds.append(None if np.array(number).astype(dtype.numpy) == outermost else number)
    low, high = bounds
    if low is not None and high is not None and low > high:
        return None
    if low is None and high is None:
        return Same([r.x])
    return Made(CLIP, [r.x], ClipAttributes(min=low, max=high))


def _clip_bound(r: Reading, index: int, name: str, outermost: int | float) -> int | float:
    """NaN where it is not a number that is known here."""
    if r.opset < 11:
        given = r.attribute(name)
        return math.copysign(float(np.finfo(np.float32).max), outermost) if given is None else float(given.f)
    if r.input(index) is None:
        dtype = r.x.type.dtype
        return math.copysign(float(np.finfo(dtype.numpy).max), outermost) if dtype.is_float else outermost
    array = r.array(index)
    return math.nan if array is None or array.size != 1 else array.item()


@reads("Cast")
def cast(r: Reading) -> Found:
    dtype = DTYPE_OF.get(r.integer("to", 0))
    return None if dtype is None else Made(CAST, [r.x], CastAttributes(to=dtype))


@reads("CastLike")
def cast_like(r: Reading) -> Found:
    like = r.input(1)
    known = like is not None and like.type.dtype is not FOREIGN and r.x.type.dtype is not FOREIGN
    return Made(CAST, [r.x], CastAttributes(to=like.type.dtype)) if known and like is not None else None


@reads("Identity")
def identity(r: Reading) -> Found:
    return Same([r.x])


@reads("Dropout")
def dropout(r: Reading) -> Found:
    """In inference it does nothing; a mask that is wanted, or a training mode that may be on, is carried."""
    if r.wants(1):
        return None
    if r.opset >= 12 and r.input(2) is not None:
        mode = r.array(2)
        if mode is None or mode.any():
            return None
    return Same([r.x])


# --- Reductions in all their spellings: axes as attribute or operand, by default all or none, pooling over a whole map

_KINDS: dict[str, Operation] = {op.onnx: op for op in ops.REDUCTIONS}
_POOLS: dict[str, Operation] = {"GlobalAveragePool": ops.REDUCE_MEAN, "GlobalMaxPool": ops.REDUCE_MAX}


@reads(*_KINDS)
def reduction(r: Reading) -> Found:
    """Axes that are computed while running are carried."""
    rank = r.x.type.rank
    axes = r.integers("axes")
    if axes is None and len(r.inputs) > 1 and r.inputs[1] is not None:
        axes = r.ints(1)
        if axes is None:
            return None
    if not axes:
        axes = () if r.integer("noop_with_empty_axes", 0) else tuple(range(rank))
    found = r.axes(axes, rank)
    if found is None:
        return None
    return Made(_KINDS[r.op_type], [r.x], ReduceAttributes(axes=found, keepdims=bool(r.integer("keepdims", 1))))


@reads(*_POOLS)
def global_pool(r: Reading) -> Found:
    rank = r.x.type.rank
    if rank < 3:
        return None
    return Made(_POOLS[r.op_type], [r.x], ReduceAttributes(axes=tuple(range(2, rank)), keepdims=True))


# --- Selections, and what is counted or placed by an index


@reads("ArgMax", "ArgMin")
def arg(r: Reading) -> Found:
    axes = r.axes([r.integer("axis", 0)], r.x.type.rank)
    if axes is None:
        return None
    ties = "last" if r.integer("select_last_index", 0) else "first"
    record = ArgAttributes(axes=axes, ties=ties, dtype=i64, keepdims=bool(r.integer("keepdims", 1)))
    return Made(ARGMAX if r.op_type == "ArgMax" else ARGMIN, [r.x], record)


@reads("TopK")
def top_k(r: Reading) -> Found:
    """A ``k`` that is computed while running is carried, as is one whose results may come in any order."""
    axis = within(r.integer("axis", -1), r.x.type.rank)
    known = (r.integer("k", 0),) if r.opset < 10 else r.ints(1)
    if axis is None or known is None or len(known) != 1 or known[0] < 1:
        return None
    if known[0] > 1 and not r.integer("sorted", 1):
        return None
    order = "largest" if r.integer("largest", 1) else "smallest"
    return Made(TOP_K, [r.x], TopKAttributes(k=known[0], axis=axis, order=order, dtype=i64))


@reads("Hardmax")
def hardmax(r: Reading) -> Found:
    axes = softmax_axes(r)
    return None if axes is None else Made(HARDMAX, [r.x], HardmaxAttributes(axes=axes))


def softmax_axes(r: Reading) -> tuple[int, ...] | None:
    """Before opset 13 all axes from ``axis`` on together, by default from 1; then that axis, by default the last."""
    rank = r.x.type.rank
    axis = r.integer("axis", 1 if r.opset < 13 else -1)
    if r.opset >= 13:
        found = within(axis, rank)
        return None if found is None else (found,)
    axis = axis + rank if axis < 0 else axis
    return tuple(range(axis, rank)) if 0 <= axis < rank else None


@reads("OneHot")
def one_hot(r: Reading) -> Found:
    depth, values = r.ints(1), r.array(2)
    axis = within(r.integer("axis", -1), r.x.type.rank + 1)
    if depth is None or len(depth) != 1 or depth[0] < 1 or values is None or values.shape != (2,) or axis is None:
        return None
    try:
        dtype = as_dtype(values.dtype)
    except KeyError:
        return None
    off, on = values.tolist()
    return Made(ONE_HOT, [r.x], OneHotAttributes(depth=depth[0], axis=axis, on=on, off=off, dtype=dtype))


@reads("CumSum")
def cumsum(r: Reading) -> Found:
    axes = r.ints(1)
    axis = None if axes is None or len(axes) != 1 else within(axes[0], r.x.type.rank)
    if axis is None or r.x.type.dtype not in DTYPE_OF.values():
        return None
    record = ScanAttributes(axis=axis, exclusive=bool(r.integer("exclusive", 0)), reverse=bool(r.integer("reverse", 0)))
    return Made(CUMSUM, [r.x], record)


# --- Softmax and the norms


@reads("Softmax", "LogSoftmax")
def softmax(r: Reading) -> Found:
    axes = softmax_axes(r)
    op = SOFTMAX if r.op_type == "Softmax" else LOG_SOFTMAX
    return None if axes is None else Made(op, [r.x], SoftmaxAttributes(axes=axes))


@reads("LayerNormalization")
def layer_norm(r: Reading) -> Found:
    """The mean and the inverse deviation, which it may give too, are not of the language."""
    scale = r.input(1)
    if r.wants(1) or r.wants(2) or scale is None:
        return None
    bias = r.input(2)
    return _norm(r, [r.x, scale] if bias is None else [r.x, scale, bias], LAYER_NORM)


@reads("SimplifiedLayerNormalization", "RMSNormalization")
def rms_norm(r: Reading) -> Found:
    scale = r.input(1)
    if r.wants(1) or scale is None:
        return None
    return _norm(r, [r.x, scale], RMS_NORM)


def _norm(r: Reading, operands: list[Value], op: object) -> Found:
    axis = within(r.integer("axis", -1), r.x.type.rank)
    if axis is None or r.integer("stash_type", 1) != 1:
        return None
    record = NormAttributes(axis=axis, epsilon=r.real("epsilon", 1e-5))
    return Made(LAYER_NORM if op is LAYER_NORM else RMS_NORM, operands, record)


@reads("LpNormalization")
def lp_norm(r: Reading) -> Found:
    axis = within(r.integer("axis", -1), r.x.type.rank)
    return None if axis is None else Made(LP_NORM, [r.x], LpNormAttributes(axis=axis, p=r.integer("p", 2)))
