"""ONNX's own inference, asked within bounds: the one way in which dmlc asks it."""

from __future__ import annotations

from onnx import ModelProto, TensorProto, shape_inference

from dmlc.onnx_schema import fragile, growth

#: Constants up to this many elements take part in the inference: shapes, axes, scales, pads.
KNOWN_SIZE = 1024


def is_known(tensor: TensorProto) -> bool:
    """Whether a weight takes part in the inference with its data, and not with its type alone."""
    count = 1
    for size in tensor.dims:
        count *= size
    return count <= KNOWN_SIZE and tensor.data_location != TensorProto.EXTERNAL


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


__all__ = ["KNOWN_SIZE", "infer", "is_known"]
