"""The lowerings of the operations; importing this module registers them."""

from __future__ import annotations

from typing import Any

from dmlc.codegen.numpy import fast_selection, fast_top_k, support
from dmlc.codegen.numpy.expr import Argument, Expr, attribute, infix, method, name, prefix, sequence, subscript
from dmlc.codegen.numpy.literals import number
from dmlc.codegen.numpy.registry import Lower, NumpyCall, axis_or_axes, lowers
from dmlc.ir import Dim, DimExpr, product
from dmlc.ir.dtype import DType, f16, f32, i64, u64
from dmlc.ops import binary, choose, elementwise, index, matmul, move, normalize, reduce, scan, select
from dmlc.ops.constant import constant_of
from dmlc.ops.literals import attribute_array
from dmlc.ops.reduce import ReduceAttributes
from dmlc.ops.slicing import as_written

# --- Operations on each element of one tensor


def _unary(op: elementwise.UnaryOperation) -> Lower:
    """A function of NumPy, which computes f16 in f32 by itself, or a copy of the operation's own."""

    def lower(call: NumpyCall) -> Expr:
        if op.numpy:
            return call.np(op.numpy, call.operand())
        return call.narrow(
            call.support(op.function, call.wide(call.operand()), **elementwise.attributes_of(op, call.attributes))
        )

    return lower


for _op in elementwise.UNARY:
    if _op not in (elementwise.NEG, elementwise.NOT, elementwise.RELU, elementwise.ERF, elementwise.GELU):
        lowers(_op, quiet=_op in (elementwise.IS_NAN, elementwise.IS_INF))(_unary(_op))


@lowers(elementwise.NEG)
def _neg(call: NumpyCall) -> Expr:
    return prefix("-", call.operand())


@lowers(elementwise.NOT, quiet=True)
def _not(call: NumpyCall) -> Expr:
    return prefix("~", call.operand())


@lowers(elementwise.RELU)
def _relu(call: NumpyCall) -> Expr:
    zero = call.operand_dtype.numpy.type(0)
    return call.np("maximum", call.operand(), call.literal(zero))


@lowers(elementwise.ERF)
def _erf(call: NumpyCall) -> Expr:
    return call.cast(call.support(support._erf, call.operand()), call.operand_dtype)


@lowers(elementwise.GELU)
def _gelu(call: NumpyCall) -> Expr:
    is_erf = call.attributes.approximate == "none"
    return call.cast(call.support(support._gelu if is_erf else support._tanh_gelu, call.operand()), call.operand_dtype)


# --- Operations on the elements of two tensors

#: The largest exponent that reads better as an integer; beyond, floats do not hold all of them.
_EXACT = 2**11


def _infix(sign: str) -> Lower:
    def lower(call: NumpyCall) -> Expr:
        return infix(sign, *call.pair())

    return lower


def _function(name: str) -> Lower:
    def lower(call: NumpyCall) -> Expr:
        return call.np(name, *call.pair())

    return lower


def _comparison(sign: str, function: str) -> Lower:
    def lower(call: NumpyCall) -> Expr:
        left, right = call.pair()
        # `x == x` asks for NaN, and linters take it for a slip.
        return call.np(function, left, right) if left == right else infix(sign, left, right)

    return lower


for _operation, _sign in ((binary.ADD, "+"), (binary.SUB, "-"), (binary.MUL, "*"), (binary.MOD, "%")):
    lowers(_operation)(_infix(_sign))
for _operation, _sign in ((binary.AND, "&"), (binary.OR, "|"), (binary.XOR, "^")):
    lowers(_operation, quiet=True)(_infix(_sign))
for _operation in (
    binary.EQUAL,
    binary.NOT_EQUAL,
    binary.LESS,
    binary.LESS_EQUAL,
    binary.GREATER,
    binary.GREATER_EQUAL,
):
    assert _operation.symbol is not None
    lowers(_operation)(_comparison(_operation.symbol, _operation.name))
lowers(binary.MIN)(_function("minimum"))
lowers(binary.MAX)(_function("maximum"))


@lowers(binary.DIV)
def _div(call: NumpyCall) -> Expr:
    dtype = call.operand_dtype
    if dtype.is_float:
        return infix("/", *call.pair())
    if dtype.kind == "uint":
        return infix("//", *call.pair())
    return call.support(support._divide, *call.pair())


@lowers(binary.FLOORDIV)
def _floordiv(call: NumpyCall) -> Expr:
    if not call.operand_dtype.is_float:
        return infix("//", *call.pair())
    # The floor of the rounded quotient, which is not what // of floats is.
    return call.np("floor", infix("/", *call.pair()))


@lowers(binary.POW)
def _pow(call: NumpyCall) -> Expr:
    left, right = call.pair()
    exponent = constant_of(call.node.operand("b"))
    if not call.operand_dtype.is_float:
        negative = call.operand_dtype.kind == "int" and (exponent is None or bool((exponent.array < 0).any()))
        return call.support(support._power, call.operand(0), call.operand(1)) if negative else infix("**", left, right)
    if exponent is not None and exponent.array.size == 1 and right.is_name:
        power = float(exponent.array.reshape(-1)[0])
        if power.is_integer() and 0 <= power < _EXACT and right.text == repr(power):
            right = name(str(int(power)))
    return infix("**", left, right)


# --- Choosing and converting elements


@lowers(choose.WHERE, quiet=True)
def _where(call: NumpyCall) -> Expr:
    return call.np("where", call.operand(0), call.operand(1), call.operand(2))


@lowers(choose.CLIP)
def _clip(call: NumpyCall) -> Expr:
    a: choose.ClipAttributes = call.attributes
    dtype = call.operand_dtype
    low, high = [
        None if bound is None else call.literal(attribute_array(bound, dtype, None)[()]) for bound in (a.min, a.max)
    ]
    if low is None or high is None:
        return call.np("minimum" if low is None else "maximum", call.operand(), high if low is None else low)
    return call.np("clip", call.operand(), low, high)


@lowers(choose.CAST)
def _cast(call: NumpyCall) -> Expr:
    return call.cast(call.operand(), call.attributes.to)


# --- Operations on indices, and tensors made from attributes alone


@lowers(index.GATHER, quiet=True)
def _gather(call: NumpyCall) -> Expr:
    a: index.GatherAttributes = call.attributes
    if a.batch_axes:
        operands = call.operand(0), call.operand(1)
        return call.support(support._gather_batch, *operands, axis=a.axis, batch_axes=a.batch_axes)
    return call.support(support._gather, call.operand(0), call.operand(1), axis=a.axis)


@lowers(index.GATHER_ELEMENTS, quiet=True)
def _gather_elements(call: NumpyCall) -> Expr:
    return call.support(support._gather_along, call.operand(0), call.operand(1), axis=call.attributes.axis)


@lowers(index.SCATTER_ELEMENTS, quiet=True)
def _scatter_elements(call: NumpyCall) -> Expr:
    operands = [call.operand(i) for i in range(3)]
    return call.support(support._scatter, *operands, axis=call.attributes.axis)


@lowers(index.ONE_HOT, quiet=True)
def _one_hot(call: NumpyCall) -> Expr:
    a: index.OneHotAttributes = call.attributes
    hot = call.support(support._one_hot, call.operand(), depth=call.dim(a.depth), axis=a.axis)
    on, off = [attribute_array(v, a.dtype, None)[()] for v in (a.on, a.off)]
    if on == 1 and _is_plain_zero(off):
        return call.cast(hot, a.dtype)
    return call.np("where", hot, call.number(on), call.number(off))


def _is_plain_zero(value: Any) -> bool:
    return bool(value == 0) and not bool(value.tobytes().strip(b"\0"))


@lowers(index.IOTA)
def _iota(call: NumpyCall) -> Expr:
    a: index.IotaAttributes = call.attributes
    # NumPy fills small types wrong or not at all beyond their range.
    if a.dtype.bits < 32 or a.dtype.is_float:
        return call.cast(call.np("arange", call.dim(a.length)), a.dtype)
    return call.np("arange", call.dim(a.length), dtype=call.dtype(a.dtype))


@lowers(index.FULL, quiet=True)
def _full(call: NumpyCall) -> Expr:
    a: index.FullAttributes = call.attributes
    if isinstance(a.value, DimExpr):
        if not a.shape:
            return call.np(a.dtype.long_name, call.dim(a.value))
        return call.np("full", call.dims(a.shape), call.dim(a.value), dtype=call.dtype(a.dtype))
    value = number(attribute_array(a.value, a.dtype, None)[()], call.scope.numpy)
    return call.np("full", call.dims(a.shape), value, dtype=call.dtype(a.dtype))


# --- Matrix products


@lowers(matmul.MATMUL)
def _matmul(call: NumpyCall) -> Expr:
    left, right = call.operand(0), call.operand(1)
    if call.operand_dtype is f16:
        return call.narrow(call.np("matmul", call.wide(left), call.wide(right)))
    return infix("@", left, right)


# --- Operations that move elements and compute nothing


@lowers(move.RESHAPE, quiet=True)
def _reshape(call: NumpyCall) -> Expr:
    return method(call.operand(), "reshape", *(call.dims(call.attributes.shape) or (sequence(()),)))


@lowers(move.TRANSPOSE, quiet=True)
def _transpose(call: NumpyCall) -> Expr:
    perm = call.attributes.perm
    if perm == (1, 0):
        return attribute(call.operand(), "T")
    return method(call.operand(), "transpose", *perm) if perm else call.operand()


@lowers(move.SQUEEZE, quiet=True)
def _squeeze(call: NumpyCall) -> Expr:
    return call.np("squeeze", call.operand(), axis=axis_or_axes(call.attributes.axes))


@lowers(move.UNSQUEEZE, quiet=True)
def _unsqueeze(call: NumpyCall) -> Expr:
    return call.np("expand_dims", call.operand(), axis_or_axes(call.attributes.axes))


@lowers(move.EXPAND, quiet=True)
def _expand(call: NumpyCall) -> Expr:
    return call.np("broadcast_to", call.operand(), call.dims(call.node.result.shape))


@lowers(move.CONCAT, quiet=True)
def _concat(call: NumpyCall) -> Expr:
    parts = [call.operand(i) for i in range(len(call.node.operands))]
    return call.np("concatenate", sequence(parts, brackets="[]"), axis=call.attributes.axis)


@lowers(move.SPLIT, quiet=True)
def _split(call: NumpyCall) -> Expr:
    a: move.SplitAttributes = call.attributes
    cuts: list[Dim] = []
    for size in a.sizes[:-1]:
        cuts.append(size + (cuts[-1] if cuts else 0))
    parts = call.np("split", call.operand(), sequence(call.dims(tuple(cuts)), brackets="[]"), axis=a.axis)
    return subscript(parts, "0") if len(a.sizes) == 1 else parts


@lowers(move.SLICE, quiet=True)
def _slice(call: NumpyCall) -> Expr:
    a: move.SliceAttributes = call.attributes
    rows = {axis: (start, end, step) for axis, start, end, step in a.rows()}
    if not rows:
        return call.operand()
    shape = call.node.operand("x").type.shape
    pieces = [_range(call, shape[axis], *rows[axis]) if axis in rows else ":" for axis in range(max(rows) + 1)]
    return subscript(call.operand(), ", ".join(pieces))


def _range(call: NumpyCall, size: Dim, first: Dim, last: Dim, step: int) -> str:
    """``start:end:step`` without what NumPy does anyway."""
    forward = step > 0
    start, end = as_written(call.scope.graph.dims, size, first, last, step)
    is_first = start in (None, 0) if forward else isinstance(start, int) and start >= move.FAR
    is_last = end is None or (isinstance(end, int) and (end >= move.FAR if forward else end <= -move.FAR))
    places = [None if is_first or start is None else call.dim(start), None if is_last or end is None else call.dim(end)]
    # The formatter puts spaces around the colons beside anything but names and numbers.
    space = "" if all(place is None or place.is_name for place in places) else " "
    before, behind = [place.text if place else "" for place in places]
    text = f"{before + space if before else ''}:{space + behind if behind else ''}"
    return text if step == 1 else f"{text}{space}:{space}{step}"


@lowers(move.PAD, quiet=True)
def _pad(call: NumpyCall) -> Expr:
    a: move.PadAttributes = call.attributes
    rank = call.node.operand("x").type.rank
    ends = call.dims(a.pads)
    pads = sequence([sequence(pair) for pair in zip(ends[:rank], ends[rank:], strict=True)])
    value = call.number(attribute_array(a.value, call.operand_dtype, None)[()])
    return call.np("pad", call.operand(), pads, constant_values=value) if rank else call.operand()


@lowers(move.TILE, quiet=True)
def _tile(call: NumpyCall) -> Expr:
    return call.np("tile", call.operand(), sequence(call.dims(call.attributes.repeats)))


# --- Normalisation along axes. f16 is computed in f32 and rounded once


@lowers(normalize.SOFTMAX, normalize.LOG_SOFTMAX)
def _softmax(call: NumpyCall) -> Expr:
    function = support._softmax if call.node.op is normalize.SOFTMAX else support._log_softmax
    return call.narrow(call.support(function, call.wide(call.operand()), axes=axis_or_axes(call.attributes.axes)))


@lowers(normalize.MEAN_VARIANCE_NORM)
def _mean_variance_norm(call: NumpyCall) -> Expr:
    a: normalize.MeanVarianceAttributes = call.attributes
    if a.variance:
        return call.narrow(
            call.support(support._standardize, call.wide(call.operand()), axes=a.axes, epsilon=a.epsilon)
        )
    x = call.operand(often=True)
    return call.narrow(infix("-", x, call.support(support._mean, call.wide(x), axes=a.axes)))


def _trailing(call: NumpyCall) -> tuple[int, ...]:
    return tuple(range(call.attributes.axis, call.node.operand("x").type.rank))


@lowers(normalize.LAYER_NORM)
def _layer_norm(call: NumpyCall) -> Expr:
    x = call.support(
        support._standardize, call.wide(call.operand()), axes=_trailing(call), epsilon=call.attributes.epsilon
    )
    out = infix("*", x, call.operand(1))
    absent = call.node.operands[2:] in ((), (None,))  # a model may leave it out
    return call.narrow(out if absent else infix("+", out, call.operand(2)))


@lowers(normalize.RMS_NORM)
def _rms_norm(call: NumpyCall) -> Expr:
    x = call.operand(often=True)
    root = call.support(support._root_mean_square, call.wide(x), axes=_trailing(call), epsilon=call.attributes.epsilon)
    return call.narrow(infix("*", infix("/", x, root), call.operand(1)))


@lowers(normalize.LP_NORM)
def _lp_norm(call: NumpyCall) -> Expr:
    a: normalize.LpNormAttributes = call.attributes
    x = call.operand(often=True)
    length = call.support(support._length, call.wide(x), order=a.p, axis=a.axis)
    return call.narrow(infix("/", x, length))


# --- Reductions. Sums and products of f16 are taken in f32; sums and products of integers stay in their dtype and wrap


def _over(call: NumpyCall) -> dict[str, Argument]:
    """``axis=`` and, where it is true, ``keepdims=`` of a NumPy reduction."""
    a: ReduceAttributes = call.attributes
    return {"axis": axis_or_axes(a.axes), **({"keepdims": True} if a.keepdims else {})}


def _total(call: NumpyCall, function: str, x: Expr) -> Expr:
    """``np.sum`` or ``np.prod``, which would else widen small integers."""
    dtype = call.operand_dtype
    needs = dtype is f16 or (dtype.is_integer and dtype.bits < 64)
    kind = {"dtype": call.dtype(dtype.accumulator)} if needs else {}
    return call.np(function, x, **_over(call), **kind)


def _kept_or_not(call: NumpyCall, total: Expr) -> Expr:
    """A result whose axes are kept as size 1, as the attribute says."""
    a: ReduceAttributes = call.attributes
    return total if a.keepdims else call.np("squeeze", total, axis=axis_or_axes(a.axes))


@lowers(reduce.REDUCE_SUM, reduce.REDUCE_PROD)
def _sum(call: NumpyCall) -> Expr:
    x = call.operand()
    if not call.attributes.axes:
        return x
    return call.narrow(_total(call, "sum" if call.node.op is reduce.REDUCE_SUM else "prod", x))


@lowers(reduce.REDUCE_L1)
def _l1(call: NumpyCall) -> Expr:
    x = call.np("abs", call.operand())
    return call.narrow(_total(call, "sum", x)) if call.attributes.axes else x


def _squares(call: NumpyCall) -> Expr:
    """The sum of squares; of f16 it stays f32."""
    kind = {"dtype": call.dtype(f32)} if call.operand_dtype is f16 else {}
    squares = call.np("square", call.operand(), **kind)
    return _total(call, "sum", squares) if call.attributes.axes else squares


@lowers(reduce.REDUCE_SUM_SQUARE)
def _sum_square(call: NumpyCall) -> Expr:
    return call.narrow(_squares(call))


@lowers(reduce.REDUCE_L2)
def _l2(call: NumpyCall) -> Expr:
    return call.narrow(call.np("sqrt", _squares(call)))


@lowers(reduce.REDUCE_LOG_SUM)
def _log_sum(call: NumpyCall) -> Expr:
    if not call.attributes.axes:
        return call.np("log", call.operand())
    return call.narrow(call.np("log", _total(call, "sum", call.operand())))


@lowers(reduce.REDUCE_LOG_SUM_EXP)
def _log_sum_exp(call: NumpyCall) -> Expr:
    a: ReduceAttributes = call.attributes
    if not a.axes:
        return call.operand()  # the logarithm of its own exponential
    total = call.support(support._log_sum_exp, call.wide(call.operand()), axes=axis_or_axes(a.axes))
    return call.narrow(_kept_or_not(call, total))


@lowers(reduce.REDUCE_MAX, reduce.REDUCE_MIN)
def _extreme(call: NumpyCall) -> Expr:
    a: ReduceAttributes = call.attributes
    x, dtype = call.operand(), call.operand_dtype
    if not a.axes:
        return x
    largest = call.node.op is reduce.REDUCE_MAX
    if dtype.kind == "bool":
        return call.np("any" if largest else "all", x, **_over(call))
    start = {}
    if _may_be_empty(call):
        start["initial"] = call.number(dtype.numpy.type(dtype.lowest if largest else dtype.highest))
    return call.np("max" if largest else "min", x, **_over(call), **start)


def _may_be_empty(call: NumpyCall) -> bool:
    return any(call.scope.may_be_zero(call.operand_shape[axis]) for axis in call.attributes.axes)


@lowers(reduce.REDUCE_MEAN)
def _mean(call: NumpyCall) -> Expr:
    a: ReduceAttributes = call.attributes
    dtype = call.operand_dtype
    x = call.operand()
    if not a.axes:
        return x
    if dtype.is_integer:
        return _integer_mean(call, x, dtype)
    if not _may_be_empty(call):
        return call.np("mean", x, **_over(call))  # takes f16 in f32 by itself
    total = _total(call, "sum", x)  # the mean of nothing is NaN, for which np.mean would warn
    return call.narrow(infix("/", total, _count(call, dtype.accumulator)))


def _count(call: NumpyCall, dtype: DType) -> Expr:
    size = product([call.operand_shape[axis] for axis in call.attributes.axes])
    return call.np(dtype.long_name, call.dim(size))


def _integer_mean(call: NumpyCall, x: Expr, dtype: DType) -> Expr:
    """Truncated toward zero. A 64-bit sum holds the narrower types."""
    a: ReduceAttributes = call.attributes
    if dtype.bits == 64:
        mean = call.support(support._integer_mean, x, axes=a.axes)
        return mean if not a.keepdims else call.np("expand_dims", mean, axis_or_axes(a.axes))
    accumulator = i64 if dtype.kind == "int" else u64
    total = call.np("sum", x, **_over(call), dtype=call.dtype(accumulator))
    if dtype.kind == "int":
        return call.cast(call.support(support._divide, total, _count(call, accumulator)), dtype)
    return call.cast(infix("//", total, _count(call, accumulator)), dtype)


# --- Running sums and products


@lowers(scan.CUMSUM, scan.CUMPROD)
def _scan(call: NumpyCall) -> Expr:
    a: scan.ScanAttributes = call.attributes
    is_sum = call.node.op is scan.CUMSUM
    if not (a.exclusive or a.reverse):
        accumulator = call.operand_dtype.accumulator
        function = "cumsum" if is_sum else "cumprod"
        return call.narrow(call.np(function, call.operand(), axis=a.axis, dtype=call.dtype(accumulator)))
    return call.narrow(
        call.support(
            support._scan,
            call.ufunc("add" if is_sum else "multiply"),
            call.wide(call.operand()),
            axis=a.axis,
            exclusive=a.exclusive,
            reverse=a.reverse,
        )
    )


# --- Selection: argmax, argmin, top_k, hardmax


@lowers(select.ARGMAX, select.ARGMIN, quiet=True)
def _arg(call: NumpyCall) -> Expr:
    a: select.ArgAttributes = call.attributes
    largest = call.node.op is select.ARGMAX
    fast = call.is_fast()
    if len(a.axes) == 1 and a.ties == "first" and not (fast and _is_slow_for_numpy(call)):
        keep = {"keepdims": True} if a.keepdims else {}
        found = call.np("argmax" if largest else "argmin", call.operand(), axis=a.axes[0], **keep)
    else:
        function = fast_selection._arg if fast else support._arg
        found = call.support(function, call.operand(), axes=a.axes, largest=largest, last=a.ties == "last")
        if a.keepdims:
            found = call.np("expand_dims", found, axis_or_axes(a.axes))
    same = {"copy": False} if fast and a.dtype is i64 else {}  # indices are i64 already
    return method(found, "astype", call.dtype(a.dtype), **same)


def _is_slow_for_numpy(call: NumpyCall) -> bool:
    """Return whether NumPy's own function is slow here: it copies the data to reduce one axis, or compares halves."""
    behind = product(call.operand_shape[call.attributes.axes[0] + 1 :])
    return call.operand_dtype is f16 or behind != 1


@lowers(select.TOP_K, quiet=True)
def _top_k(call: NumpyCall) -> Expr:
    a: select.TopKAttributes = call.attributes
    kind = call.dtype(a.dtype)
    function = fast_top_k._top_k if call.is_fast() else support._top_k
    return call.support(
        function, call.operand(), k=call.dim(a.k), axis=a.axis, largest=a.order == "largest", dtype=kind
    )


@lowers(select.HARDMAX, quiet=True)
def _hardmax(call: NumpyCall) -> Expr:
    function = fast_selection._hardmax if call.is_fast() else support._hardmax
    return call.support(function, call.operand(), axes=call.attributes.axes)
