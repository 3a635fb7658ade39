"""The Python builder: graphs, tensors, and one function for each operation, with the names of the language."""

from dmlc.builder import operations
from dmlc.builder.functions import shadows_python
from dmlc.builder.graph import Graph, Size, constant, size, unsolved_dims
from dmlc.builder.onnx_operators import OnnxOperators, onnx
from dmlc.builder.operations import *  # noqa: F403
from dmlc.builder.tensor import DTypeLike, Tensor, TensorLike

#: Names of the builder that ``from dmlc import *`` brings: the operations that shadow nothing of Python's.
PUBLIC: tuple[str, ...] = (
    "Graph",
    "Tensor",
    "constant",
    "onnx",
    "size",
    *[name for name in operations.__all__ if not shadows_python(name)],
)

__all__ = [
    "PUBLIC",
    "DTypeLike",
    "Graph",
    "OnnxOperators",
    "Size",
    "Tensor",
    "TensorLike",
    "constant",
    "onnx",
    "size",
    "unsolved_dims",
    *operations.__all__,
]
