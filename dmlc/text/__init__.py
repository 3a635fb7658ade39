"""The language as text: ``load`` makes a graph, ``parse`` a syntax tree, ``format_source`` the canonical text."""

from __future__ import annotations

from pathlib import Path

from dmlc.diagnostics import Source, naming
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.ir import Graph
from dmlc.text.elaborate.names import ModelReading
from dmlc.text.elaborate.program import LibraryError, LibraryItems, elaborate
from dmlc.text.syntax.format import format_source
from dmlc.text.syntax.parser import decode, parse

__all__ = ["LibraryError", "LibraryItems", "decode", "format_source", "load", "parse"]


def load(
    source: Source,
    *,
    folder: Path | None = None,
    model: str | None = None,
    opset: int = 21,
    limits: Limits = DEFAULTS,
    include: tuple[Path, ...] = (),
    models: ModelReading | None = None,
) -> Graph:
    """The graph of a program.

    ``folder`` is where its ``load`` and ``use`` may read, then the ``include`` folders in order; without one they are
    refused. ``models`` reads the ONNX models that are used. ``model`` picks one of several.
    ``opset`` is the ONNX opset at which carried operators are typed. Raises ``DmlcError`` with every mistake found.
    """
    with naming(source.name):
        return elaborate(
            parse(source, limits), folder, model, opset, limits, name=source.name, include=include, models=models
        )
