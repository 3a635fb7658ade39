"""A model without its weights, so that its types can be inferred in little memory."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, TensorProto

from dmlc.inference.annotate import annotate
from dmlc.ir import TensorType
from dmlc.onnx_schema.inference import is_known
from dmlc.onnx_schema.inlining import inlined


def inferred(model: ModelProto, types: Mapping[str, TensorType] | None = None) -> ModelProto:
    """The model with the types of its values as ``value_info``, its functions inlined and its large weights turned into
    declarations without data.

    ``types`` are those that the caller knows better, by name.
    """
    bare = _bare(model)
    try:
        bare = inlined(bare)
    except Exception:  # onnx raises what it likes: RuntimeError, ValueError, protobuf's own errors
        return bare
    annotate(bare, types)
    return bare


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
