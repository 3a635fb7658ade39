"""NumPy code: a graph as one readable Python file."""

from dmlc.codegen.numpy import lowerings as _lowerings
from dmlc.codegen.numpy.emitter import emit
from dmlc.codegen.numpy.registry import LOWERINGS, Style

assert _lowerings.__doc__  # imported because that registers them

__all__ = ["LOWERINGS", "Style", "emit"]
