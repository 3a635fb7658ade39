"""ONNX's own inference, asked within bounds: the one way in which dmlc asks it."""

from __future__ import annotations

from onnx import ModelProto, shape_inference

from dmlc.onnx_schema import fragile, growth


def infer(model: ModelProto, *, strict: bool = False) -> ModelProto | None:
    """A copy of the model with the types that ONNX infers; None where its shapes would grow without end.

    ``model`` itself is changed: of nodes that would end the process only the results' names are left to be inferred.
    With ``strict`` operands of wrong types are refused. Raises what ONNX raises: ``InferenceError``, ``RuntimeError``
    and protobuf's own errors among it.
    """
    can_infer, with_data = growth.can_infer(model)
    if not can_infer:
        return None
    fragile.hide(model)
    return shape_inference.infer_shapes(model, check_type=strict, strict_mode=strict, data_prop=with_data)


__all__ = ["infer"]
