"""The types of a model's values, as onnx infers them."""

from __future__ import annotations

from onnx import ModelProto, TypeProto, shape_inference


def types_of(model: ModelProto) -> dict[str, TypeProto]:
    """The types of the main graph's values, as far as inference finds them."""
    try:
        found = shape_inference.infer_shapes(model, data_prop=True)
    except Exception:
        found = model
    graph = found.graph
    infos = [*graph.input, *graph.output, *graph.value_info]
    return {i.name: i.type for i in infos if i.type.WhichOneof("value")}
