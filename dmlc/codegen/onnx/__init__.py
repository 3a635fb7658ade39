"""ONNX code: one lowering file a family; importing this package registers them all."""

from dmlc.codegen.onnx import (
    carried,
    choose,
    elementwise,
    index,
    matmul,
    move,
    normalize,
    reduce,
    scan,
    select,
    softmax,
)
from dmlc.codegen.onnx.model import emit
from dmlc.codegen.onnx.registry import LOWERINGS, lowers

__all__ = [
    "LOWERINGS",
    "carried",
    "choose",
    "elementwise",
    "emit",
    "index",
    "lowers",
    "matmul",
    "move",
    "normalize",
    "reduce",
    "scan",
    "select",
    "softmax",
]
