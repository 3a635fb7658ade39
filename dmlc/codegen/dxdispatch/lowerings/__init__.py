"""The lowerings of the language's operations; importing this package registers them."""

from dmlc.codegen.dxdispatch.lowerings import elementwise, index, matmul, move, normalize, reduce, select

__all__ = ["elementwise", "index", "matmul", "move", "normalize", "reduce", "select"]
