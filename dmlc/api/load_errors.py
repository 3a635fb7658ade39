"""Refusals of ONNX Runtime's load phase in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmlc.diagnostics import Diagnostic
from dmlc.diagnostics.catalogue.models import BROKEN_MODEL
from dmlc.onnx_schema.domains import plain_domain

if TYPE_CHECKING:
    from onnx import NodeProto

    from dmlc.verifying.load_phase import LoadRefusal


def source_error(refusal: LoadRefusal) -> Diagnostic:
    """The error where the source does not load."""
    what = "" if refusal.node is not None else "ONNX Runtime refuses the model: "
    return Diagnostic(BROKEN_MODEL, what + refusal.text, help=operator_page(refusal.node))


def operator_page(node: NodeProto | None) -> str:
    if node is None or plain_domain(node.domain):
        return "onnx.checker.check_model(model, full_check=True) may say more"
    return f"https://onnx.ai/onnx/operators/onnx__{node.op_type}.html describes its operands and attributes"
