"""ONNX code: one lowering file a family."""

from dmlc.codegen.onnx.model import emit
from dmlc.codegen.onnx.registry import lowering_of

__all__ = ["emit", "lowering_of"]
