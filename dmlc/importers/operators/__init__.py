"""Readers of ONNX operators; importing this package registers them all."""

from dmlc.importers.operators import elementwise, move

__all__ = ["elementwise", "move"]
