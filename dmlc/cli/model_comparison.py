"""Effect of a compilation as data: a model before and after, and the same as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
from msgspec import Struct

from dmlc import api
from dmlc.cli.placement_view import size_json
from dmlc.inference.model_facts import types_by_name
from dmlc.ir import TensorType
from dmlc.placement.report import Placement, placement
from dmlc.placement.statistics import Statistics, statistics
from dmlc.targets import Target


class ModelColumn(Struct, frozen=True):
    """A model: its statistics, its placement (None for a target without a provider), the bytes of its file."""

    model: onnx.ModelProto
    facts: Statistics
    placed: Placement | None
    size: int


class ModelComparison(Struct, frozen=True):
    """A model before and after. ``before`` is None where there is no ONNX model of the program as written."""

    before: ModelColumn | None
    after: ModelColumn
    seconds: float


def column(
    model: onnx.ModelProto,
    types: Mapping[str, TensorType],
    size: int,
    target: Target,
    placed: Placement | None = None,
) -> ModelColumn:
    """The column of a model whose values have these types; ``placed`` is its placement, where that is known."""
    if placed is None and target.provider is not None:
        placed = placement(model, target, types=types)
    return ModelColumn(model, statistics(model, types, target, placed), placed, size)


def compare(program: api.Program, source: str, size: int, seconds: float, plain: api.Program | None) -> ModelComparison:
    """Compare a compiled program with the model that was imported, or with ``plain``, the program ``as_written``."""
    made, target = api.emitted(program, "onnx"), program.target
    placed = None if target.provider is None else program.placement()
    after = column(made.payload, made.types, size, target, placed)
    if program.source_model is not None:
        types, before_size = types_by_name(program.source_graph), Path(source).stat().st_size
        return ModelComparison(column(program.source_model, types, before_size, target), after, seconds)
    if plain is None:
        return ModelComparison(None, after, seconds)
    written = api.emitted(plain, "onnx")
    before = column(written.payload, written.types, written.payload.ByteSize(), target)
    return ModelComparison(before, after, seconds)


def comparison_json(found: ModelComparison) -> dict[str, Any]:
    """The same as plain data: sizes that depend on dims as expressions, unknown ones as null."""
    before = None if found.before is None else _plain(found.before)
    return {"before": before, "after": _plain(found.after), "seconds": round(found.seconds, 3)}


def _plain(side: ModelColumn) -> dict[str, Any]:
    facts, is_placed = side.facts, side.placed is not None
    return {
        "nodes": facts.nodes,
        "total": facts.total,
        "on_cpu": facts.on_cpu if is_placed else None,
        "copies": facts.copies if is_placed else None,
        "fused_graphs": facts.fused_graphs if is_placed else None,
        "dispatches": size_json(facts.dispatches),
        "bytes_moved": size_json(facts.bytes_moved),
        "unknown": facts.unknown,
        "opset": facts.opset,
        "bytes": side.size,
        "external_bytes": facts.external_bytes,
    }
