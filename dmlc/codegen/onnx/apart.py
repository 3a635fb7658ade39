"""Nodes that keep ONNX Runtime's optimizer from merging two others into one that computes something else."""

from __future__ import annotations

from dmlc.codegen.onnx.writer import NodeWriter
from dmlc.ir import DType


def apart(writer: NodeWriter, name: str, dtype: DType) -> str:
    """Return a copy of a value by a node that ONNX Runtime neither removes nor looks through.

    It removes Identity, Expand to the same shape, and arithmetic with 0 or 1, before it looks for patterns.
    """
    if dtype.is_integer and writer.opset < 12:  # Max takes floats only
        return writer.op("Neg", [writer.op("Neg", [name])])
    return writer.op("Max", [name, name])
