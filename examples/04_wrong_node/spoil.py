"""Writes a model with one weight moved: ``python spoil.py MODEL.onnx OUT.onnx``."""

from __future__ import annotations

import sys

import onnx
from onnx import numpy_helper

model = onnx.load(sys.argv[1])
weights = [
    attribute.t
    for node in model.graph.node
    if node.op_type == "Constant"
    for attribute in node.attribute
    if attribute.name == "value" and len(attribute.t.dims) == 4
]
weight = weights[len(weights) // 2]
array = numpy_helper.to_array(weight).copy()
array.flat[array.size // 2] += 0.5
weight.CopyFrom(numpy_helper.from_array(array, weight.name))
onnx.save(model, sys.argv[2])
