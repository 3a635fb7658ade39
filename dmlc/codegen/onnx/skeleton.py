"""A model without its weights, so that its types can be inferred in little memory."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from dmlc.ir import FOREIGN, TensorType
from dmlc.onnx_schema.inference import infer, is_known
from dmlc.onnx_schema.inlining import inlined

#: Operators of ONNX Runtime whose first result has the type of their first operand; onnx infers nothing for them
#: (onnxruntime, docs/ContribOperators.md).
_LIKE_FIRST = frozenset(
    (
        *("SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
        *("Gelu", "FastGelu", "BiasGelu", "QuickGelu", "GroupNorm", "BiasAdd", "LayerNormalization"),
    )
)


def inferred(model: ModelProto, types: Mapping[str, TensorType] | None = None) -> ModelProto:
    """The model with the types of its values as ``value_info``, its functions inlined and its large weights turned into
    declarations without data. Where onnx refuses, with the types that it has.

    ``types`` are those that the caller knows, by name: where they are those of all that nodes make, there is nothing
    to infer, and the model is given back as it is.
    """
    if types and _is_told(model, types):
        return model
    bare = _bare(model)
    try:
        bare = inlined(bare)
        known = infer(_familiar(bare))
    except Exception:  # onnx raises what it likes: RuntimeError, ValueError, protobuf's own errors
        return bare
    if known is not None:
        _adopt(bare.graph, known.graph)
    return bare


def _is_told(model: ModelProto, types: Mapping[str, TensorType]) -> bool:
    if model.functions or model.ir_version < 4:  # below, weights are listed among the inputs
        return False
    for node in model.graph.node:
        if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute):
            return False
        for name in node.output:
            if name and (name not in types or types[name].dtype is FOREIGN):
                return False
    return True


def _bare(model: ModelProto) -> ModelProto:
    out = ModelProto(ir_version=max(model.ir_version, 4))
    out.opset_import.extend(model.opset_import)
    out.functions.extend(model.functions)
    source, graph = model.graph, out.graph
    graph.name = source.name
    graph.node.extend(source.node)
    graph.input.extend(source.input)
    graph.output.extend(source.output)
    graph.value_info.extend(source.value_info)
    listed = {info.name for info in source.input}
    for tensor in source.initializer:
        if tensor.name in listed:
            if model.ir_version >= 4:  # it can be overridden: nothing follows from its data
                continue
            _unlist(graph, tensor.name)  # every weight is listed there, and none is overridable
        if is_known(tensor):
            graph.initializer.append(tensor)
        else:
            graph.initializer.append(TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims))
    return out


def _unlist(graph: GraphProto, name: str) -> None:
    index = next((i for i, info in enumerate(graph.input) if info.name == name), None)
    if index is not None:
        del graph.input[index]


def _familiar(model: ModelProto) -> ModelProto:
    """The model with an Identity in the place of operators that onnx does not know, if that has the same type."""
    out = ModelProto()
    out.CopyFrom(model)
    for node in out.graph.node:
        if _is_like_first(node, model):
            operand, result = node.input[0], node.output[0]
            node.Clear()
            node.op_type = "Identity"
            node.input.append(operand)
            node.output.append(result)
    return out


def _is_like_first(node: NodeProto, model: ModelProto) -> bool:
    if node.op_type not in _LIKE_FIRST or not node.input or not node.output:
        return False
    opset = next((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), 1)
    return node.op_type != "LayerNormalization" or node.domain == "com.microsoft" or opset < 17


def _adopt(graph: GraphProto, known: GraphProto) -> None:
    """Take over the types that were inferred, those of inner graphs too."""
    del graph.value_info[:]
    graph.value_info.extend(known.value_info)
    del graph.output[:]
    graph.output.extend(known.output)
    for node, same in zip(graph.node, known.node, strict=True):
        if node.op_type != same.op_type:
            continue
        for attribute, other in zip(node.attribute, same.attribute, strict=True):
            if attribute.HasField("g"):
                _adopt(attribute.g, other.g)
            for inner, also in zip(attribute.graphs, other.graphs, strict=True):
                _adopt(inner, also)
