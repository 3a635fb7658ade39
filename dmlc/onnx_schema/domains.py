"""Domains of ONNX operators: one name for each, and the versions that a model imports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import NodeProto, OperatorSetIdProto

#: The domain of ONNX Runtime's own operators.
MICROSOFT = "com.microsoft"


def plain_domain(domain: str) -> str:
    """The domain by the one name that dmlc uses: ONNX's own has two."""
    return "" if domain == "ai.onnx" else domain


def imported_versions(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """The version of each domain that a model or a function imports."""
    return {plain_domain(entry.domain): entry.version for entry in imports}


def operator_of(node: NodeProto) -> str:
    """The operator with its domain, where that is not ONNX's own: ``com.microsoft.Gelu``."""
    domain = plain_domain(node.domain)
    return f"{domain}.{node.op_type}" if domain else node.op_type
