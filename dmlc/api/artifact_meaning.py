"""Meaning of an artifact that ONNX Runtime's CPU provider need not run: the graph that its nodes say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dmlc import ir
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.onnx_schema.metadata import model_facts
from dmlc.targets.session_advice import RUNS_ON

if TYPE_CHECKING:
    import onnx


def needs_reference(model: onnx.ModelProto) -> bool:
    """Return whether a model says in its metadata that it need not run on ONNX Runtime's CPU provider."""
    return any(RUNS_ON in facts for facts in model_facts(model))


def meaning(model: onnx.ModelProto, folder: Path | None = None, limits: Limits = DEFAULTS) -> ir.Graph:
    """The graph of an emitted model, which the references of its operations compute. Raises ``DmlcError``."""
    from dmlc import importers

    return importers.import_model(model, folder=folder, limits=limits)
