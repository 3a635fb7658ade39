"""ONNX models become graphs."""

from dmlc.importers.model import import_model, read_model
from dmlc.importers.opset import choose_opset, says_flattened

__all__ = ["choose_opset", "import_model", "read_model", "says_flattened"]
