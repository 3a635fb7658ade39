"""The lowerings of the language's operations; importing this package registers them."""

from dmlc.codegen.dxdispatch.lowerings import elementwise, move

__all__ = ["elementwise", "move"]
