"""Nodes that end the process, or keep it for ever: ONNX's inference reads through pointers and behind the ends of
arrays that it has not checked, so that it must not be asked about them (onnx 1.23; each was seen to do so)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

#: An operator that no domain has: nothing is inferred of it.
_HIDDEN = "dmlc.Hidden"
#: What has graphs that are inferred with it.
_WITH_GRAPHS = frozenset(("FlexAttention", "If", "Loop", "Scan", "SequenceMap"))
#: Steps are added up in 32 bits.
_LARGEST_STEP = 1 << 30
#: No shape is longer.
_MOST_AXES = 4096
#: The operands' letters, as they are walked through; another sign is walked on the spot.
_LETTERS = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*(,[A-Za-z]*(\.\.\.)?[A-Za-z]*)*")


def hide(model: ModelProto) -> None:
    """Make operators that nobody knows of the nodes of ``model`` that would end the process, or may."""
    if any(":" in text for f in model.functions for text in (f.domain, f.name, f.overload)):
        del model.functions[:]  # names are joined by colons: a function may call itself unseen
    _hide(model.graph.node, _Declared(model.graph))
    for function in model.functions:
        _hide(function.node, _Declared(GraphProto()))


class _Declared:
    """What is declared of the values of a node's own graph, by name; looked at when a node asks."""

    def __init__(self, graph: GraphProto) -> None:
        self._graph = graph

    @cached_property
    def types(self) -> dict[str, TypeProto]:
        graph = self._graph
        types = {info.name: info.type for infos in (graph.value_info, graph.input) for info in infos}
        for tensor in graph.initializer:
            types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        return types

    @cached_property
    def weights(self) -> dict[str, TensorProto]:
        return {tensor.name: tensor for tensor in self._graph.initializer}

    def type(self, node: NodeProto, index: int) -> TypeProto | None:
        return self.types.get(node.input[index]) if len(node.input) > index else None


def _hide(nodes: Iterable[NodeProto], declared: _Declared) -> None:
    for node in nodes:
        kind = node.op_type
        ends = _ENDS.get(kind)
        if ends is not None and ends(node, declared):
            node.op_type = _HIDDEN
        for attribute in node.attribute if kind in _WITH_GRAPHS else ():
            if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
                for inner in (attribute.g, *attribute.graphs):
                    _hide(inner.node, _Declared(inner))


def _of_untyped(node: NodeProto, declared: _Declared) -> bool:
    """The type of the first operand is read, whether or not there is one."""
    type = declared.type(node, 0)
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
    if any(a.name == "batch_dims" and (a.ref_attr_name or a.i < 0) for a in node.attribute):
        return True
    return _is_open(declared.type(node, 1))


def _of_negative_part(node: NodeProto, declared: _Declared) -> bool:
    """A place is held between 0 and a size, which must not be below; steps are added up in 32 bits."""
    return _is_open(declared.type(node, 0)) or not _has_small_steps(node, declared)


def _has_small_steps(node: NodeProto, declared: _Declared) -> bool:
    if len(node.input) < 5 or not node.input[4]:
        return True
    steps = declared.weights.get(node.input[4])
    if steps is None or steps.data_type not in (TensorProto.INT32, TensorProto.INT64):
        return False
    try:
        return all(abs(step) < _LARGEST_STEP for step in numpy_helper.to_array(steps).reshape(-1).tolist())
    except ValueError:  # other data than the shape says
        return False


def _of_negative_size(node: NodeProto, declared: _Declared) -> bool:
    """Elements are divided among sizes, which overflows where one is below 0."""
    type = declared.type(node, 0)
    return type is not None and _is_open(type)


def _is_open(type: TypeProto | None) -> bool:
    return type is None or any(dim.dim_value < 0 for dim in type.tensor_type.shape.dim)


def _of_long_shape(node: NodeProto, declared: _Declared) -> bool:
    """A size is made up for each element of the shape."""
    type = declared.type(node, 1)
    return type is not None and any(dim.dim_value > _MOST_AXES for dim in type.tensor_type.shape.dim)


def _of_other_letters(node: NodeProto, declared: _Declared) -> bool:
    """A sign that is no letter is never passed."""
    texts = [a.s.decode("utf-8", "replace") for a in node.attribute if a.name == "equation" and not a.ref_attr_name]
    return not texts or not all(_LETTERS.fullmatch(text.replace(" ", "").partition("->")[0]) for text in texts)


_ENDS: dict[str, Callable[[NodeProto, _Declared], bool]] = {
    "DictVectorizer": _of_untyped,
    "Einsum": _of_other_letters,
    "EyeLike": _of_untyped,
    "Expand": _of_long_shape,
    "GatherND": _of_negative_index,
    "LabelEncoder": _of_untyped,
    "LayerNormalization": _of_wide_axis,
    "RegexFullMatch": _of_untyped,
    "Reshape": _of_negative_size,
    "Slice": _of_negative_part,
    "Split": _of_other_count,
    "TreeEnsemble": _of_untyped,
}

__all__ = ["hide"]
