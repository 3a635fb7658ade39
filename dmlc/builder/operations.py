"""The operations as functions. Their types for editors and type checkers stand in ``operations.pyi``."""

from dmlc.builder.functions import operation_functions
from dmlc.ops import OPERATIONS

_FUNCTIONS = operation_functions(OPERATIONS)
globals().update(_FUNCTIONS)

__all__ = list(_FUNCTIONS)
