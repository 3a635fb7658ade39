"""Readers of ONNX operators, a file a family; importing this package registers them all."""

from dmlc.importers.operators import elementwise, index, move, normalize, reduce, select, shape

__all__ = ["elementwise", "index", "move", "normalize", "reduce", "select", "shape"]
