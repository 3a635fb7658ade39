"""Operations that stand for a few others: a call adds the nodes of those, so that no pass and no target knows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import DTYPES, INDEX, NUMERIC, Attributes, DType, Inference, Operand, Operation, OpError, TensorType, Value
from dmlc.ir.dtype import bool_, u32
from dmlc.ops.attributes import AxesKind, AxisKind, DTypeKind, FlagKind, attribute
from dmlc.ops.move import CONCAT, FAR, SLICE, UNSQUEEZE, ConcatAttributes, NewAxesAttributes, SliceAttributes
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, ReduceAttributes, infer_reduction
from dmlc.ops.rules import check_selection
from dmlc.ops.select import TOP_K, TopKAttributes

#: Adds one node to the graph of the call; gives its results.
Add: TypeAlias = Callable[[Operation, Sequence[Value], Attributes], Sequence[Value]]


class DerivedOperation(Operation, frozen=True, eq=False, kw_only=True):
    """An operation that exists in calls only. ``infer`` checks the call in its own words; ``expand`` adds the nodes
    that compute it, and returns its results."""

    expand: Callable[[Add, Sequence[Value], Any], Sequence[Value]]

    def __repr__(self) -> str:
        return Operation.__repr__(self)


# --- sorting


class SortAttributes(Attributes, frozen=True, kw_only=True):
    axis: Annotated[int, attribute(AxisKind(), "the axis to sort along", default=-1)]
    descending: Annotated[bool, attribute(FlagKind(), "the largest first", default=False)]


class ArgSortAttributes(SortAttributes, frozen=True, kw_only=True):
    dtype: Annotated[DType, attribute(DTypeKind(INDEX), "the index type", default=u32)]


def _infer_sort(call: Inference) -> Sequence[TensorType]:
    if call.type(0).rank:
        check_selection(call, (call.attributes.axis,), "sort")
    return [call.type(0)]


def _infer_argsort(call: Inference) -> Sequence[TensorType]:
    check_selection(call, (call.attributes.axis,), "argsort")
    return [call.type(0).with_dtype(call.attributes.dtype)]


def _all_of(add: Add, x: Value, a: SortAttributes, dtype: DType) -> Sequence[Value]:
    order = "largest" if a.descending else "smallest"
    return add(TOP_K, [x], TopKAttributes(k=x.shape[a.axis], axis=a.axis, order=order, dtype=dtype))


_SORT_NOTES = {key: TOP_K.notes[key] for key in ("ties", "nan", "empty")}

SORT = DerivedOperation(
    name="sort",
    operands=(Operand("x", NUMERIC),),
    attributes=SortAttributes,
    infer=_infer_sort,
    expand=lambda add, operands, a: _all_of(add, operands[0], a, u32)[:1],
    summary="The elements along an axis in order: the values of top_k with k = the length.",
    source=TOP_K.source,
    notes=_SORT_NOTES,
)

ARGSORT = DerivedOperation(
    name="argsort",
    operands=(Operand("x", NUMERIC),),
    attributes=ArgSortAttributes,
    results=("index",),
    infer=_infer_argsort,
    expand=lambda add, operands, a: _all_of(add, operands[0], a, a.dtype)[1:],
    summary="The indices that sort x along an axis: the indices of top_k with k = the length.",
    source=TOP_K.source,
    notes=_SORT_NOTES,
)


# --- truth


def _truth(name: str, reduction: Operation, summary: str, empty: str) -> DerivedOperation:
    return DerivedOperation(
        name=name,
        operands=(Operand("x", (bool_,)),),
        attributes=ReduceAttributes,
        infer=infer_reduction,
        expand=lambda add, operands, a: add(reduction, operands, a),
        summary=f"{summary}: {reduction.name} of bool.",
        source=reduction.source,
        notes={"empty": empty},
    )


REDUCE_ANY = _truth("reduce_any", REDUCE_MAX, "True where an element is true", "false")
REDUCE_ALL = _truth("reduce_all", REDUCE_MIN, "True where all elements are true", "true")


# --- layout


class StackAttributes(Attributes, frozen=True, kw_only=True):
    axis: Annotated[int, attribute(AxisKind(extra=1), "the position of the new axis in the result", default=0)]


def _infer_stack(call: Inference) -> Sequence[TensorType]:
    first, axis = call.type(0), call.attributes.axis
    for i in range(1, len(call.types)):
        other = call.type(i)
        message = f"stack needs equal shapes: {first} and {other}"
        if other.rank != first.rank:
            raise OpError(codes.WRONG_SHAPE, message, at=i, about=0)
        for a, b in zip(first.shape, other.shape, strict=True):
            call.require(a, "==", b, OpError(codes.WRONG_SHAPE, message, at=i, about=0))
    return [first.with_shape((*first.shape[:axis], len(call.types), *first.shape[axis:]))]


def _stack(add: Add, operands: Sequence[Value], a: StackAttributes) -> Sequence[Value]:
    rows = [add(UNSQUEEZE, [x], NewAxesAttributes(axes=(a.axis,)))[0] for x in operands]
    return rows if len(rows) == 1 else add(CONCAT, rows, ConcatAttributes(axis=a.axis))


STACK = DerivedOperation(
    name="stack",
    operands=(Operand("x", DTYPES, variadic=True),),
    attributes=StackAttributes,
    infer=_infer_stack,
    expand=_stack,
    summary="The operands, of one shape, one after another along a new axis.",
    source="DML_JOIN_OPERATOR_DESC; numpy.stack",
    notes=CONCAT.notes,
)


class FlipAttributes(Attributes, frozen=True, kw_only=True):
    axes: Annotated[tuple[int, ...], attribute(AxesKind(), "the axes to reverse")]


def _flip(add: Add, operands: Sequence[Value], a: FlipAttributes) -> Sequence[Value]:
    count = len(a.axes)
    record = SliceAttributes(starts=(FAR,) * count, ends=(-FAR,) * count, axes=a.axes, steps=(-1,) * count)
    return add(SLICE, operands, record)


FLIP = DerivedOperation(
    name="flip",
    operands=(Operand("x", DTYPES),),
    attributes=FlipAttributes,
    infer=lambda call: [call.type(0)],
    expand=_flip,
    summary="The elements in reverse order along each named axis.",
    source="DML_SLICE1_OPERATOR_DESC; numpy.flip",
    notes={"nan": "elements are moved, not computed"},
)
