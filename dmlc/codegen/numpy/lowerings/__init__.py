"""The lowerings, a file for each family of operations; importing this package registers them."""

from dmlc.codegen.numpy.lowerings import (
    binary,
    choose,
    elementwise,
    index,
    matmul,
    move,
    normalize,
    reduce,
    scan,
    select,
)

__all__ = ["binary", "choose", "elementwise", "index", "matmul", "move", "normalize", "reduce", "scan", "select"]
