"""Declarations of operators in the installed onnx package."""

from __future__ import annotations

from functools import lru_cache

from onnx import defs

#: The newest version of a domain other than ONNX's own is not known; every version counts as known.
_LARGEST = 2**31 - 1


@lru_cache(maxsize=1024)
def installed_schema(domain: str, op_type: str, version: int) -> defs.OpSchema | None:
    """The declaration; None where the installed onnx does not know the operator at that version of its domain.

    Deprecated operators count as unknown: ONNX Runtime loads some of them.
    """
    if version < 1 or version > (defs.onnx_opset_version() if not domain else _LARGEST):
        return None
    if not defs.has(op_type, version, domain):
        return None
    schema = defs.get_schema(op_type, version, domain)
    return None if schema.deprecated else schema
