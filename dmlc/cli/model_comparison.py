"""Effect of a compilation as data: a model before and after, and the answer of the command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
from msgspec import Struct

from dmlc import api
from dmlc.inference.model_facts import types_by_name
from dmlc.ir import TensorType
from dmlc.ir.answers import Answer, Size
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


class ModelSize(Answer, frozen=True):
    """A model: its nodes by operator, and what it costs; what is not known, or not of the target, is null.

    ``unknown`` counts the nodes whose bytes are not known. ``bytes`` are those of the file, ``external_bytes`` those of
    weights outside of it.
    """

    nodes: dict[str, int]
    total: int
    on_cpu: int | None
    copies: int | None
    fused_graphs: int | None
    dispatches: Size | None
    bytes_moved: Size | None
    unknown: int
    opset: int
    bytes: int
    external_bytes: int

    @classmethod
    def of_column(cls, side: ModelColumn) -> ModelSize:
        """Return the facts about a model."""
        unknown = {} if side.placed is not None else dict.fromkeys(("on_cpu", "copies", "fused_graphs"))
        return cls.of(side.facts, bytes=side.size, **unknown)


def compared_facts(found: ModelComparison) -> dict[str, Any]:
    """Return the fields of ``CompileAnswer`` and ``ProfileFacts`` about a model before and after."""
    before = None if found.before is None else ModelSize.of_column(found.before)
    return {"before": before, "after": ModelSize.of_column(found.after)}
