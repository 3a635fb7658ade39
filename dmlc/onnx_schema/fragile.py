"""Nodes that end the process: ONNX's inference reads through pointers and behind the ends of arrays that it has not
checked, so that it must not be asked about them (onnx 1.23, ``onnx/defs``; each was seen to end it)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TypeProto

#: An operator that no domain has: nothing is inferred of it.
_HIDDEN = "dmlc.Hidden"
#: What is declared of the values of a node's own graph, by name.
_Declared = Mapping[str, TypeProto]


def hide(model: ModelProto) -> None:
    """Make operators that nobody knows of the nodes of ``model`` that would end the process, or may."""
    _hide(model.graph.node, model.graph)
    for function in model.functions:
        _hide(function.node, None)


def _hide(nodes: Iterable[NodeProto], graph: GraphProto | None) -> None:
    declared: _Declared | None = None
    for node in nodes:
        ends = _ENDS.get(node.op_type)
        if ends is not None:
            declared = _declared(graph) if declared is None else declared
            if ends(node, declared):
                node.op_type = _HIDDEN
        for attribute in node.attribute:
            if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
                for inner in (attribute.g, *attribute.graphs):
                    _hide(inner.node, inner)


def _declared(graph: GraphProto | None) -> _Declared:
    if graph is None:
        return {}
    declared = {info.name: info.type for infos in (graph.value_info, graph.input) for info in infos}
    for tensor in graph.initializer:
        type = TypeProto.Tensor(elem_type=tensor.data_type)
        for size in tensor.dims:
            type.shape.dim.add(dim_value=size)
        declared[tensor.name] = TypeProto(tensor_type=type)
    return declared


def _of_untyped(node: NodeProto, declared: _Declared) -> bool:
    """The type of the first operand is read, whether or not there is one."""
    type = declared.get(node.input[0]) if node.input else None
    return type is None or not type.HasField("tensor_type")


def _of_wide_axis(node: NodeProto, declared: _Declared) -> bool:
    """The axis becomes an integer of 32 bits: what does not fit counts from before the first one."""
    return any(a.name == "axis" and (a.ref_attr_name or a.i >= 2**31) for a in node.attribute)


def _of_other_count(node: NodeProto, declared: _Declared) -> bool:
    """As many sizes are made as the attribute says, and as many are read as there are results."""
    named = [a for a in node.attribute if a.name == "num_outputs"]
    return any(a.ref_attr_name or a.i != len(node.output) for a in named)


def _of_negative_index(node: NodeProto, declared: _Declared) -> bool:
    """The last size of the indices says at which axis of the data to begin."""
    if any(a.name == "batch_dims" and (a.ref_attr_name or a.i < 0) for a in node.attribute) or len(node.input) < 2:
        return True
    type = declared.get(node.input[1])
    return type is None or any(dim.dim_value < 0 for dim in type.tensor_type.shape.dim)


def _of_negative_size(node: NodeProto, declared: _Declared) -> bool:
    """A place is held between 0 and a size, which must not be below."""
    type = declared.get(node.input[0]) if node.input else None
    return type is None or any(dim.dim_value < 0 for dim in type.tensor_type.shape.dim)


_ENDS: dict[str, Callable[[NodeProto, _Declared], bool]] = {
    "DictVectorizer": _of_untyped,
    "EyeLike": _of_untyped,
    "GatherND": _of_negative_index,
    "LabelEncoder": _of_untyped,
    "LayerNormalization": _of_wide_axis,
    "RegexFullMatch": _of_untyped,
    "Slice": _of_negative_size,
    "Split": _of_other_count,
    "TreeEnsemble": _of_untyped,
}

__all__ = ["hide"]
