"""Types that a model declares for what its nodes make: claims, which the inference of the nodes may contradict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from onnx import GraphProto, NodeProto, TensorShapeProto, TypeProto, ValueInfoProto

from dmlc.onnx_schema.nested import inner_graphs

#: The dims and element types of a tensor, sparse or dense.
_TENSORS = ("tensor_type", "sparse_tensor_type")
#: Types that hold one other type.
_HOLDERS = ("sequence_type", "optional_type")


def contradicts(a: TypeProto, b: TypeProto) -> bool:
    """True if no value has both types: they differ in kind, element type, rank, or a fixed size. An unknown part
    differs from nothing."""
    kind, other = a.WhichOneof("value"), b.WhichOneof("value")
    if kind is None or other is None:
        return False
    if kind != other:
        return True
    if kind in _TENSORS:
        return _tensors_differ(getattr(a, kind), getattr(b, kind))
    if kind in _HOLDERS:
        return contradicts(getattr(a, kind).elem_type, getattr(b, kind).elem_type)
    return False


def _tensors_differ(a: TypeProto.Tensor, b: TypeProto.Tensor) -> bool:
    if a.elem_type and b.elem_type and a.elem_type != b.elem_type:
        return True
    if not a.HasField("shape") or not b.HasField("shape"):
        return False
    if len(a.shape.dim) != len(b.shape.dim):
        return True
    sizes = zip(a.shape.dim, b.shape.dim, strict=True)
    return any(x.dim_value != y.dim_value and _is_fixed(x) and _is_fixed(y) for x, y in sizes)


def _is_fixed(size: TensorShapeProto.Dimension) -> bool:
    """Some exporters write -1 for a size that they do not know."""
    return bool(size.HasField("dim_value") and size.dim_value >= 0)


def open_negative_sizes(type: TypeProto) -> bool:
    """Take away, in place, sizes of -1; return whether there were any.

    ONNX's inference computes with them: two in the operand of a Reshape are -2 in its result, which contradicts a
    declaration of -1."""
    kind = type.WhichOneof("value")
    if kind in _HOLDERS:
        return open_negative_sizes(getattr(type, kind).elem_type)
    if kind not in _TENSORS:
        return False
    negative = [size for size in getattr(type, kind).shape.dim if size.dim_value < 0]
    for size in negative:
        size.ClearField("dim_value")
    return bool(negative)


def believed(declared: TypeProto, found: TypeProto) -> TypeProto:
    """``declared``, or ``found`` where it contradicts that, or where it knows no shape any more."""
    forgotten = found.HasField("tensor_type") and not found.tensor_type.HasField("shape")
    lost = forgotten and declared.HasField("tensor_type") and declared.tensor_type.HasField("shape")
    return found if lost or contradicts(declared, found) else declared


def completed(declared: TypeProto, found: TypeProto) -> TypeProto:
    """``declared``, or ``found`` where it contradicts that; with the shape that is found where none is declared.

    ONNX Runtime's Scan asks for the shape of each output of its body, at least its rank (core/providers/cpu/
    controlflow/scan_utils.cc), and its own inference may not know one. Sizes that are not numbers stay open: a name
    would be declared a second time.
    """
    if contradicts(declared, found):
        return found
    if not found.tensor_type.HasField("shape") or declared.tensor_type.HasField("shape"):
        return declared
    return fixed_sizes(found)


def with_known_sizes(declared: TypeProto, found: TypeProto, names: Set[str]) -> TypeProto:
    """``declared``, completed by ``found``; as it is where the two contradict each other.

    An open rank is taken from ``found``, and so is a size that is open here and a number there, or that is one of
    ``names`` there and not here.
    """
    if not found.tensor_type.HasField("shape") or contradicts(declared, found):
        return declared
    out = TypeProto()
    out.CopyFrom(declared)
    if not out.tensor_type.elem_type:
        out.tensor_type.elem_type = found.tensor_type.elem_type
    if not declared.tensor_type.HasField("shape"):
        out.tensor_type.shape.CopyFrom(fixed_sizes(found).tensor_type.shape)
    for size, known in zip(out.tensor_type.shape.dim, found.tensor_type.shape.dim, strict=True):
        if _is_fixed(known) and not _is_fixed(size):
            size.dim_value = known.dim_value
        elif known.dim_param in names and not _is_fixed(size) and size.dim_param not in names:
            size.dim_param = known.dim_param
    return out


def fixed_sizes(type: TypeProto) -> TypeProto:
    """A tensor's type with its rank and the sizes that are numbers; all others are open."""
    out = TypeProto()
    out.CopyFrom(type)
    for size in out.tensor_type.shape.dim:
        if not _is_fixed(size):
            size.Clear()
    return out


def common(a: TypeProto, b: TypeProto) -> TypeProto | None:
    """The most precise type that values of both types have; None where no type holds both."""
    kind = a.WhichOneof("value")
    if kind is None or kind != b.WhichOneof("value"):
        return None
    if a == b:
        return a
    out = TypeProto()
    out.CopyFrom(a)
    mine, theirs = getattr(out, kind), getattr(b, kind)
    if kind in _HOLDERS:
        item = common(mine.elem_type, theirs.elem_type)
        if item is not None:
            mine.elem_type.CopyFrom(item)
        return None if item is None else out
    if kind not in _TENSORS or mine.elem_type != theirs.elem_type:
        return None
    if not theirs.HasField("shape") or len(mine.shape.dim) != len(theirs.shape.dim):
        mine.ClearField("shape")
    for x, y in zip(mine.shape.dim, theirs.shape.dim, strict=False):
        if x != y:
            x.Clear()
    return out


def without_item_shapes(type: TypeProto) -> TypeProto:
    """The type without the shapes of what it holds: no runtime checks the shapes in a sequence that it is given."""
    kind = type.WhichOneof("value")
    if kind not in _HOLDERS:
        return type
    out = TypeProto()
    out.CopyFrom(type)
    held = out
    while kind in _HOLDERS:
        held = getattr(held, kind).elem_type
        kind = held.WhichOneof("value")
    if kind in _TENSORS:
        getattr(held, kind).ClearField("shape")
    return out


def declared_dims(graph: GraphProto, holders: Iterable[NodeProto] | None = None) -> set[str]:
    """The names of the dims that a graph and the graphs inside its nodes declare: they mean the same sizes.

    ``holders`` are the nodes that may have graphs inside; without them all are searched.
    """
    inside = inner_graphs(graph.node if holders is None else holders)
    for each in inside:
        inside += inner_graphs(each.node)
    return set().union(*map(own_dims, [graph, *inside]))


def own_dims(graph: GraphProto) -> set[str]:
    """The names of the dims that a graph itself declares, and no graph inside its nodes."""
    infos = [info for infos in (graph.input, graph.output, graph.value_info) for info in infos]
    return {size.dim_param for info in infos for size in info.type.tensor_type.shape.dim}


def claims(graph: GraphProto) -> Iterator[ValueInfoProto]:
    """The declarations of a graph that its nodes may contradict: of the values they make, and of its outputs."""
    yield from graph.value_info
    yield from graph.output
