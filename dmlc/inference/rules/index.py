"""Operators that pick elements by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, TypeProto

from dmlc.inference.fact import FLOATS, MOST_ELEMENTS, OPEN, Element, Elements, Fact, Open, fitting, of_elements
from dmlc.inference.protos import of_proto, sequence_of
from dmlc.inference.query import Fault, Query, place
from dmlc.inference.registry import rule
from dmlc.ir import Dim, Shape, product
from dmlc.onnx_schema.declared import common, fixed_sizes
from dmlc.onnx_schema.types import tensor_type_proto
from dmlc.ops.rules import reduced_shape


@rule("Gather")
def gather(q: Query) -> Sequence[Fact]:
    data, indices = q.shape(0), q.shape(1)
    if data is None or indices is None:
        return [Fact(q.element(0))]
    axis = q.axis(0, len(data))
    elements, places = q.elements(0), q.elements(1)
    size = data[axis]
    if places is not None and isinstance(size, int):
        beyond = [p for p in places.ravel().tolist() if isinstance(p, int) and not -size <= p < size]
        if beyond:
            q.fails(f"index {beyond[0]} does not exist: axis {axis} has {size} elements")
    if elements is not None and places is not None:
        return [of_elements(q.element(0), _picked(elements, places, axis))]
    return [Fact(q.element(0), (*data[:axis], *indices, *data[axis + 1 :]))]


def _picked(elements: Elements, places: Elements, axis: int) -> Elements:
    """The elements at the places; those at a place that is not known, or does not exist, are open."""
    size = elements.shape[axis]
    known = [p if isinstance(p, int) and -size <= p < size else None for p in places.ravel().tolist()]
    if size == 0:
        out = np.empty((*elements.shape[:axis], *places.shape, *elements.shape[axis + 1 :]), object)
        out[...] = OPEN
        return out
    taken = elements.take([0 if p is None else p for p in known], axis=axis)
    if None in known:
        taken = taken.copy()
        at = [slice(None)] * taken.ndim
        for i, p in enumerate(known):
            if p is None:
                at[axis] = slice(i, i + 1)
                taken[tuple(at)] = OPEN
    return taken.reshape((*elements.shape[:axis], *places.shape, *elements.shape[axis + 1 :]))


@rule("GatherElements")
def gather_elements(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0), q.shape(1))]


@rule("GatherND")
def gather_nd(q: Query) -> Sequence[Fact]:
    data, indices = q.shape(0), q.shape(1)
    if data is None or indices is None or not indices or not isinstance(indices[-1], int):
        return [Fact(q.element(0))]
    depth = indices[-1] + q.integer("batch_dims")
    if depth > len(data):
        raise Fault(f"{depth} indices choose from {len(data)} axes")
    return [Fact(q.element(0), (*indices[:-1], *data[depth:]))]


@rule("Compress", counts=True)
def compress(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    if "axis" not in q.attributes:
        return [Fact(q.element(0), (q.new_dim(),))]
    if shape is None:
        return [Fact(q.element(0))]
    axis = q.axis(0, len(shape))
    return [Fact(q.element(0), (*shape[:axis], q.new_dim(), *shape[axis + 1 :]))]


@rule("NonZero", counts=True)
def non_zero(q: Query) -> Sequence[Fact]:
    rank, numbers = q.rank(0), q.numbers(0)
    count: Dim = q.new_dim() if numbers is None else sum([number != 0 for number in numbers])
    return [Fact(TensorProto.INT64, (q.new_dim() if rank is None else max(rank, 1), count))]


@rule("Unique", counts=True)
def unique(q: Query) -> Sequence[Fact]:
    count, shape = q.new_dim(), q.shape(0)
    lists = [
        Fact(TensorProto.INT64, (count,)),
        Fact(TensorProto.INT64, (q.new_dim(),)),
        Fact(TensorProto.INT64, (count,)),
    ]
    if "axis" not in q.attributes:
        return [Fact(q.element(0), (count,)), *lists]
    if shape is None:
        return [Fact(q.element(0)), *lists]
    axis = q.axis(0, len(shape))
    return [Fact(q.element(0), (*shape[:axis], count, *shape[axis + 1 :])), *lists]


@rule("OneHot")
def one_hot(q: Query) -> Sequence[Fact]:
    indices, depth = q.shape(0), q.elements(1)
    if indices is None:
        return [Fact(q.element(2))]
    axis = place(q.integer("axis", -1), len(indices) + 1)
    size = depth.ravel()[0] if depth is not None and depth.size == 1 else None
    length = size if isinstance(size, int) and not isinstance(size, bool) else None
    if length is None and size is not None and size is not OPEN and not isinstance(size, float):
        length = size
    hot = _hot(q, length, axis) if isinstance(length, int) else None
    if hot is not None:
        return [of_elements(q.element(2), hot)]
    return [Fact(q.element(2), (*indices[:axis], q.new_dim() if length is None else length, *indices[axis:]))]


def _hot(q: Query, length: int, axis: int) -> Elements | None:
    """The elements, where both values are known and few; PyTorch counts repetitions so."""
    places, values = q.elements(0), q.elements(2)
    if places is None or values is None or values.size != 2 or not 0 < length * places.size <= MOST_ELEMENTS:
        return None
    off, on = values.ravel().tolist()
    out = np.full((places.size, length), off, object)
    for row, index in zip(out, places.ravel().tolist(), strict=True):
        if not isinstance(index, int):
            row[:] = OPEN
        elif -length <= index < length:
            row[index] = on
    return np.moveaxis(out.reshape(*places.shape, length), -1, axis)


@rule("NonMaxSuppression", counts=True)
def suppression(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.INT64, (q.new_dim(), 3))]


# --- Reductions and selections

#: The opset from which axes are an operand.
_AXES_SINCE = {"ReduceSum": 13}


@rule(
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
def reduction(q: Query) -> Sequence[Fact]:
    element, shape = q.element(0), q.shape(0)
    keep = q.integer("keepdims", 1)
    since = _AXES_SINCE.get(q.op_type, 18)
    given: tuple[int, ...] | None
    if q.opset < since:
        given = q.integers("axes") or ()
    else:
        given = q.numbers(1) if q.has(1) else ()
        if q.has(1) and given is None:
            return [Fact(element, _of_unknown_axes(q, shape, keep))]
        if not given and q.integer("noop_with_empty_axes"):
            return [Fact(element, shape)]
    if shape is None:
        return [Fact(element, None if given or keep else ())]
    out = reduced_shape(shape, [place(a, len(shape)) for a in given or range(len(shape))], bool(keep))
    total = _joined(q) if len(shape) == 1 else OPEN
    if isinstance(total, Open):
        return [Fact(element, out)]
    elements = np.empty((1,) if keep else (), object)
    elements[...] = total
    return [of_elements(element, elements)]


def _joined(q: Query) -> Element:
    """The one element that is left of a known list: a largest, a smallest, a product or a sum."""
    elements = q.elements(0)
    items: list[Any] = [] if elements is None else elements.tolist()
    if not items or any(isinstance(e, Open) for e in items):
        return OPEN
    if len(items) == 1 and q.op_type in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceMean"):
        return fitting(q.element(0), items[0])
    if q.element(0) in FLOATS or q.op_type not in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"):
        return OPEN
    if q.op_type in ("ReduceProd", "ReduceSum"):
        total: Dim = product(items) if q.op_type == "ReduceProd" else sum(items)
        return total
    if not all(isinstance(e, int) for e in items):
        return OPEN
    best: int = max(items) if q.op_type == "ReduceMax" else min(items)
    return best


def _of_unknown_axes(q: Query, shape: Shape | None, keep: int) -> Shape | None:
    """Every axis may be reduced where axes are kept; a size of 1 stays. Where they are not kept, one of them goes, but
    two may name the same: ONNX Runtime takes an axis that is given twice."""
    if shape is None:
        return None
    if keep:
        return tuple([1 if size == 1 else q.new_dim() for size in shape])
    count = q.shape(1)
    return q.fresh_shape(len(shape) - 1) if count == (1,) and shape else None


@rule("ArgMax", "ArgMin")
def selection(q: Query) -> Sequence[Fact]:
    shape, keep = q.shape(0), q.integer("keepdims", 1)
    if shape is None:
        return [Fact(TensorProto.INT64)]
    return [Fact(TensorProto.INT64, reduced_shape(shape, [q.axis(0, len(shape))], bool(keep)))]


@rule("TopK")
def top_k(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    if shape is None:
        return [Fact(q.element(0)), Fact(TensorProto.INT64)]
    axis = q.axis(-1, len(shape))
    sizes = [q.integer("k")] if q.opset < 10 else (q.sizes(1) or [])
    k = q.size_of(sizes[0]) if sizes else q.new_dim()
    size = shape[axis]
    if isinstance(k, int) and isinstance(size, int) and k > size:
        why = f"{k} elements are picked from {size}"
        if q.opset >= 10:
            raise Fault(why)
        q.fails(why)  # ONNX does not look at it
    out = (*shape[:axis], k, *shape[axis + 1 :])
    return [Fact(q.element(0), out), Fact(TensorProto.INT64, out)]


@rule("LayerNormalization")
def layer_norm(q: Query) -> Sequence[Fact]:
    shape, element = q.shape(0), q.element(0)
    statistics = q.integer("stash_type", 1) if q.domain == "" else TensorProto.FLOAT
    if q.results > 1 and statistics not in (TensorProto.FLOAT, TensorProto.BFLOAT16):
        raise Fault(f"stash_type is {statistics}: Mean and InvStdDev are float or bfloat16")
    first = Fact(element, shape)
    if shape is None:
        return [first, Fact(statistics), Fact(statistics)]
    axis = q.axis(-1, len(shape))
    kept = (*shape[:axis], *[1] * (len(shape) - axis))
    return [first, Fact(statistics, kept), Fact(statistics, kept)]


# --- Sequences and optionals: their types are kept as ONNX writes them


def _item(fact: Fact, element: int = 0) -> TypeProto:
    """The type of a tensor as an item, of ``element`` where its own is unknown; empty where that is too."""
    element = fact.element or element
    return fixed_sizes(tensor_type_proto(element, fact.shape)) if element else TypeProto()


def _proto(q: Query) -> TypeProto:
    return TypeProto.FromString(q.fact(0).proto)


def _held(q: Query, item: TypeProto) -> Fact:
    """The fact about one value of a container."""
    return of_proto(item, q.new_dim)


@rule("SequenceConstruct")
def construct(q: Query) -> Sequence[Fact]:
    facts = [q.fact(index) for index in range(len(q.operands))]
    element = max([fact.element for fact in facts], default=0)
    item: TypeProto | None = _item(q.fact(0), element)
    for fact in facts[1:]:
        item = None if item is None else common(item, _item(fact, element))
    return [sequence_of(item)]


@rule("SequenceEmpty")
def empty(q: Query) -> Sequence[Fact]:
    return [sequence_of(tensor_type_proto(q.integer("dtype", TensorProto.FLOAT), None))]


@rule("SequenceInsert")
def inserted(q: Query) -> Sequence[Fact]:
    item = _proto(q).sequence_type.elem_type
    return [sequence_of(common(item, _item(q.fact(1), item.tensor_type.elem_type)))]


@rule("SequenceErase")
def erased(q: Query) -> Sequence[Fact]:
    return [sequence_of(_proto(q).sequence_type.elem_type)]


@rule("SplitToSequence")
def split(q: Query) -> Sequence[Fact]:
    return [sequence_of(fixed_sizes(tensor_type_proto(q.element(0), _part(q))) if q.element(0) else None)]


def _part(q: Query) -> Shape | None:
    """The shape of the parts of a split tensor, open along the axis where they differ."""
    shape = q.shape(0)
    axis = None if shape is None else q.axis(0, len(shape))
    if shape is None or axis is None:
        return None
    if not q.has(1):
        return (*shape[:axis], *([1] if q.integer("keepdims", 1) else []), *shape[axis + 1 :])
    numbers, size = q.numbers(1), shape[axis]
    if numbers and q.rank(1) == 0:
        numbers = numbers if isinstance(size, int) and numbers[0] > 0 and size % numbers[0] == 0 else ()
    part = numbers[0] if numbers and len(set(numbers)) == 1 else q.new_dim()
    return (*shape[:axis], part, *shape[axis + 1 :])


@rule("SequenceAt")
def at(q: Query) -> Sequence[Fact]:
    return [_held(q, _proto(q).sequence_type.elem_type)]


@rule("OptionalGetElement")
def element(q: Query) -> Sequence[Fact]:
    if not q.fact(0).proto:
        return [q.fact(0)]
    proto = _proto(q)
    if proto.HasField("optional_type"):
        return [_held(q, proto.optional_type.elem_type)]
    return [q.fact(0)]


@rule("Optional")
def optional(q: Query) -> Sequence[Fact]:
    fact, declared = q.fact(0), q.attributes.get("type")
    if isinstance(declared, Fact) and not q.has(0):
        fact = declared
    if not fact.element and not fact.proto:
        return [Fact()]
    out = TypeProto()
    out.optional_type.elem_type.CopyFrom(TypeProto.FromString(fact.proto) if fact.proto else _item(fact))
    return [Fact(proto=out.SerializeToString(deterministic=True))]


@rule("SequenceLength")
def length(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.INT64, ())]


@rule("ConcatFromSequence")
def concat(q: Query) -> Sequence[Fact]:
    item = _held(q, _proto(q).sequence_type.elem_type)
    if item.shape is None:
        return [Fact(item.element)]
    is_new = bool(q.integer("new_axis"))
    axis = q.axis(0, len(item.shape) + is_new)
    if axis is None:
        return [Fact(item.element)]
    return [Fact(item.element, (*item.shape[:axis], q.new_dim(), *item.shape[axis + (not is_new) :]))]
