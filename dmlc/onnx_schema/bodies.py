"""Operators that ONNX defines by others, for runtimes without a kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from onnx import FunctionProto
from onnx.defs import SchemaError, get_schema


def runs_by_body(op_type: str, opset: int, has_kernel: Callable[[str], bool]) -> bool:
    """Return whether ONNX Runtime can replace an operator by ONNX's definition of it, in a model of that opset.

    The operators of the definition must be unchanged between the opset it was written for and the model's (seen with
    1.31: ``Elu`` of f64 runs at opset 18 alone). Operators without a kernel must be replaceable too. A definition that
    depends on types (``GroupNormalization``) is assumed to hold everywhere.
    """
    body = _body(op_type, opset)
    return (
        _is_defined(op_type, opset)
        and body is not None
        and all(
            _body(inner, opset) == () or has_kernel(inner) or runs_by_body(inner, opset, has_kernel) for inner in body
        )
    )


def _is_defined(op_type: str, opset: int) -> bool:
    try:
        schema = get_schema(op_type, opset, "")
    except SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


@lru_cache(maxsize=4096)
def _body(op_type: str, opset: int) -> tuple[str, ...] | None:
    """The operators of the definition; none where there is no definition to look into, None where it does not hold."""
    try:
        schema = get_schema(op_type, opset, "")
    except SchemaError:
        return None
    if not schema.has_function:
        return ()
    written = max((v for v in schema.function_opset_versions if v <= opset), default=None)
    if written is None:
        return None
    body = FunctionProto()
    body.ParseFromString(schema.get_function_with_opset_version(written))
    kinds = tuple([node.op_type for node in body.node])
    return kinds if all(_version(kind, written) == _version(kind, opset) for kind in kinds) else None


def _version(op_type: str, opset: int) -> int:
    version: int = get_schema(op_type, opset, "").since_version
    return version
