"""Reductions: one declaration for each function of DML_REDUCE_OPERATOR_DESC but the arg ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import numpy as np

from dmlc.ir import (
    DTYPES,
    FLOATS,
    NUMERIC,
    Array,
    Attributes,
    DType,
    Inference,
    Node,
    Operand,
    Operation,
    TensorType,
    as_dtype,
)
from dmlc.ops.attributes import ALL, AxesKind, FlagKind, attribute
from dmlc.ops.binary import ADD, MAX, MIN, MUL
from dmlc.ops.elementwise import ABS, LOG
from dmlc.ops.literals import wide
from dmlc.ops.rules import check_not_empty, reduced_shape


class ReduceAttributes(Attributes, frozen=True, kw_only=True):
    """``axes`` may be empty in the graph: then only the elementwise part is applied. It never means "all"."""

    axes: Annotated[tuple[int, ...], attribute(AxesKind(), "the axes to reduce", default=ALL)]
    keepdims: Annotated[bool, attribute(FlagKind(), "keep the axes as size 1", default=True)]


class Reduction(Operation, frozen=True, eq=False, kw_only=True):
    """A reduction, and the algebra that rewrites of it rest on: it applies ``before`` to each element, reduces by
    ``total``, and applies ``after``. Every table of reductions elsewhere derives from these fields.

    ``total`` is the reduction without ``before`` and ``after``; None where it is the reduction itself. ``alone`` is the
    operation that is left of a reduction over no axes; None where it is the identity, or a square. ``join`` makes one
    total of two; a mean has none, its sum has. ``neutral`` changes no total when it is among the elements. ``dual`` is
    the name of the reduction that selects the other end; empty where the result is not one of the elements. ``onnx`` is
    the ONNX operator, ``directml`` the function of DML_REDUCE_OPERATOR_DESC.
    """

    onnx: str
    directml: str
    before: Literal["", "abs", "square", "exp"] = ""
    total: Reduction | None = None
    after: Literal["", "sqrt", "log"] = ""
    alone: Operation | None = None
    join: Operation | None = None
    neutral: float | Literal["lowest", "highest"] | None = None
    dual: str = ""

    def __repr__(self) -> str:
        return Operation.__repr__(self)

    @property
    def base(self) -> Reduction:
        """``total``, or the reduction itself."""
        return self.total or self

    def neutral_of(self, dtype: DType) -> float | int | None:
        """``neutral`` as a number of the dtype."""
        if self.neutral == "lowest":
            return dtype.lowest
        return dtype.highest if self.neutral == "highest" else self.neutral

    def of_nothing(self, dtype: DType) -> float | int:
        """The result over no element: the total of nothing; NaN for a mean."""
        if self.after == "log":
            return -math.inf
        found = self.neutral_of(dtype)
        return math.nan if found is None else found


def infer_reduction(call: Inference) -> list[TensorType]:
    """The operand's type over fewer axes, or over axes of size 1."""
    a: ReduceAttributes = call.attributes
    x = call.type(0)
    return [x.with_shape(reduced_shape(x.shape, a.axes, a.keepdims))]


def _infer_mean(call: Inference) -> list[TensorType]:
    a: ReduceAttributes = call.attributes
    if call.type(0).dtype.is_integer:
        for axis in a.axes:
            check_not_empty(call, call.type(0).shape[axis], axis, "reduce_mean of integers")
    return infer_reduction(call)


def _reference(function: Callable[[Array, tuple[int, ...], bool], Any]) -> Any:
    def reference(a: ReduceAttributes, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(wide(x), a.axes, a.keepdims)).astype(x.dtype)

    return reference


def _sum(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
    return np.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _prod(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
    return np.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _mean(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
    count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    if x.dtype.kind == "f":
        return np.divide(_sum(x, axes, keepdims), count)
    exact = np.sum(x.astype(object), axis=axes, keepdims=keepdims) if axes else x.astype(object)
    truncate = np.frompyfunc(lambda total: (abs(total) // count) * (1 if total >= 0 else -1), 1, 1)
    return truncate(exact)


def _extreme(ufunc: Any, lowest: bool) -> Callable[[Array, tuple[int, ...], bool], Any]:
    def function(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
        dtype: DType = as_dtype(x.dtype)
        start = dtype.lowest if lowest else dtype.highest
        return ufunc.reduce(x, axis=axes, keepdims=keepdims, initial=np.array(start, x.dtype)[()])

    return function


def _log_sum_exp(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
    peak = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(peak), peak, 0).astype(x.dtype)
    total = np.log(_sum(np.exp(x - shift), axes, True)) + shift
    return total if keepdims else np.squeeze(total, axis=axes)


def _reduce(
    name: str, dtypes: tuple[DType, ...], function: Callable[..., Any], summary: str, dml: str, *,
    notes: Mapping[str, str], **algebra: Any,
) -> Reduction:  # fmt: skip
    return Reduction(
        name=f"reduce_{name}",
        operands=(Operand("x", dtypes),),
        attributes=ReduceAttributes,
        infer=_infer_mean if name == "mean" else infer_reduction,
        reference=_reference(function),
        summary=summary,
        source=f"DML_REDUCE_OPERATOR_DESC, DML_REDUCE_FUNCTION_{dml}",
        notes={**notes, **_EMPTY_ON_DIRECTML},
        onnx="Reduce" + "".join(map(str.title, name.split("_"))),
        directml=dml,
        **algebra,
    )


_PROPAGATES = {"nan": "propagates"}
_TOTAL = {
    **_PROPAGATES,
    "overflow": "integers wrap modulo 2^n; f16 is accumulated in f32",
    "overflow on ONNX Runtime CPU": "from 1.27 integers stop at the ends of their type, and i64 passes through f64, "
    "which rounds numbers beyond 2^53; up to 1.26 they wrap",
}
_EMPTY_ON_DIRECTML = {
    "empty on DirectML": "there are no empty tensors; the execution provider leaves the result unwritten",
}
_EXTREME = {
    "nan": "unspecified which value wins; the reference propagates NaN",
    "nan on DirectML": "a NaN is passed over; a group of NaN gives the value of an empty one",
    "nan on ONNX Runtime CPU": "a NaN is kept only where its group starts with it",
    "ties": "the sign of a zero result is unspecified",
}
_FLOATS_ON_DIRECTML = {"dtypes on DirectML": "floats only"}

REDUCE_SUM = _reduce(
    "sum", NUMERIC, _sum, "The sum.", "SUM", neutral=0, join=ADD, notes={"empty": "0", **_TOTAL},
)  # fmt: skip
REDUCE_MEAN = _reduce(
    "mean", NUMERIC, _mean, "The mean; of integers truncated toward zero.", "AVERAGE",
    notes={"overflow": "an integer mean is computed from the exact sum; f16 is accumulated in f32",
           "empty": "NaN for floats, an error for integers", **_PROPAGATES, **_FLOATS_ON_DIRECTML},
)  # fmt: skip
REDUCE_MAX = _reduce(
    "max", DTYPES, _extreme(np.maximum, True), "The largest element; of bool whether any is true.", "MAX",
    neutral="lowest", join=MAX, dual="reduce_min",
    notes={"empty": "the type's lowest value (-inf for floats)", **_EXTREME},
)  # fmt: skip
REDUCE_MIN = _reduce(
    "min", DTYPES, _extreme(np.minimum, False), "The smallest element; of bool whether all are true.", "MIN",
    neutral="highest", join=MIN, dual="reduce_max",
    notes={"empty": "the type's highest value (inf for floats)", **_EXTREME},
)  # fmt: skip
REDUCE_PROD = _reduce(
    "prod", NUMERIC, _prod, "The product.", "MULTIPLY", neutral=1, join=MUL, notes={"empty": "1", **_TOTAL},
)  # fmt: skip
REDUCE_L1 = _reduce(
    "l1", NUMERIC, lambda x, a, k: _sum(np.abs(x), a, k), "The sum of absolute values.", "L1",
    before="abs", total=REDUCE_SUM, alone=ABS, neutral=0, notes={"empty": "0", **_TOTAL},
)  # fmt: skip
REDUCE_L2 = _reduce(
    "l2", FLOATS, lambda x, a, k: np.sqrt(_sum(x * x, a, k)), "The square root of the sum of squares.", "L2",
    before="square", total=REDUCE_SUM, after="sqrt", alone=ABS, neutral=0,
    notes={"overflow": "f16 squares are taken in f32", "empty": "0", **_PROPAGATES},
)  # fmt: skip
REDUCE_SUM_SQUARE = _reduce(
    "sum_square", NUMERIC, lambda x, a, k: _sum(x * x, a, k), "The sum of squares.", "SUM_SQUARE",
    before="square", total=REDUCE_SUM, neutral=0, notes={"empty": "0", **_TOTAL},
)  # fmt: skip
REDUCE_LOG_SUM = _reduce(
    "log_sum", FLOATS, lambda x, a, k: np.log(_sum(x, a, k)), "The logarithm of the sum.", "LOG_SUM",
    total=REDUCE_SUM, after="log", alone=LOG, neutral=0,
    notes={"overflow": "f16 is accumulated in f32", "empty": "-inf", "domain": "of a negative sum it is NaN",
           **_PROPAGATES},
)  # fmt: skip
REDUCE_LOG_SUM_EXP = _reduce(
    "log_sum_exp", FLOATS, _log_sum_exp,
    "The logarithm of the sum of exponentials, shifted by the maximum.", "LOG_SUM_EXP",
    before="exp", total=REDUCE_SUM, after="log", neutral=-math.inf,
    notes={"overflow": "none inside: the maximum is taken out first", "empty": "-inf", **_PROPAGATES,
           "overflow on DirectML": "the maximum is not taken out: large elements give inf, very negative ones -inf"},
)  # fmt: skip

REDUCTIONS: tuple[Reduction, ...] = (
    REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD,
    REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE, REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP,
)  # fmt: skip


def reduction_of(node: Node) -> Reduction:
    """The reduction that the node applies. Raises ``AssertionError`` where it applies another operation."""
    assert isinstance(node.op, Reduction)
    return node.op


_BY_NAME = {op.name: op for op in REDUCTIONS}
#: Each extreme, and that of the other end.
DUALS: dict[Operation, Reduction] = {op: _BY_NAME[op.dual] for op in REDUCTIONS if op.dual}
#: Reductions that are one of the elements.
EXTREMES = tuple(DUALS)
#: Reductions whose results over some axes another one, or the same, goes on from: their total.
GOES_ON: dict[Operation, Reduction] = {op: op.base for op in REDUCTIONS if not op.after}


def _merged(outer: Reduction, inner: Reduction) -> Reduction | None:
    """The reduction that is ``outer`` of ``inner``; None where there is none.

    The end of ``inner`` and the start of ``outer`` must cancel: nothing and nothing, or a root and a square. For totals
    that are never negative also a logarithm and an exponential, or nothing and a magnitude.
    """
    ends = (inner.after, outer.before)
    cancels = ends in (("", ""), ("sqrt", "square")) or (inner.before and ends in (("log", "exp"), ("", "abs")))
    if outer.base is not inner.base or not cancels:
        return None
    form = (inner.before, inner.base, outer.after)
    return next((op for op in REDUCTIONS if (op.before, op.base, op.after) == form), None)


#: (outer, inner) -> the one reduction over the axes of both.
MERGES: dict[tuple[Operation, Operation], Reduction] = {
    (outer, inner): one for outer in REDUCTIONS for inner in REDUCTIONS for one in [_merged(outer, inner)] if one
}


def axes_of(node: Node) -> tuple[int, ...]:
    """The axes of a reduction, a selection or a softmax."""
    attributes: Any = node.attributes
    axes: tuple[int, ...] = attributes.axes
    return axes
