"""The intermediate representation: dtypes, dims, types, values, nodes, graphs."""

from dmlc.ir.dim import Dim, DimExpr, DimTable, Shape, dim_names, evaluate, floordiv, product, substitute, symbol
from dmlc.ir.dtype import (
    DTYPE_BY_NAME,
    DTYPES,
    FLOATS,
    INDEX,
    INTEGERS,
    NUMERIC,
    DType,
    as_dtype,
)
from dmlc.ir.graph import Graph, Node, OutputAttributes, Value
from dmlc.ir.operation import (
    Array,
    Attributes,
    Condition,
    Inference,
    InferRule,
    Operand,
    Operation,
    OpError,
    Place,
    Reference,
)
from dmlc.ir.tensor import Tensor
from dmlc.ir.types import TensorType

__all__ = [
    "DTYPES",
    "DTYPE_BY_NAME",
    "FLOATS",
    "INDEX",
    "INTEGERS",
    "NUMERIC",
    "Array",
    "Attributes",
    "Condition",
    "DType",
    "Dim",
    "DimExpr",
    "DimTable",
    "Graph",
    "InferRule",
    "Inference",
    "Node",
    "OpError",
    "Operand",
    "Operation",
    "OutputAttributes",
    "Place",
    "Reference",
    "Shape",
    "Tensor",
    "TensorType",
    "Value",
    "as_dtype",
    "dim_names",
    "evaluate",
    "floordiv",
    "product",
    "substitute",
    "symbol",
]
