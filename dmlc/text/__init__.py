"""The language as text: ``load`` makes a graph, ``parse`` a syntax tree, ``format_source`` the canonical text."""

from __future__ import annotations

from pathlib import Path

from dmlc.diagnostics import Source
from dmlc.ir import Graph
from dmlc.text.decode import decode
from dmlc.text.elaborate import elaborate
from dmlc.text.format import format_source
from dmlc.text.parser import parse

__all__ = ["decode", "format_source", "load", "parse"]


def load(source: Source, *, folder: Path | None = None, model: str | None = None, opset: int = 21) -> Graph:
    """The graph of a program.

    ``folder`` is where its ``load(...)`` may read; without one they are refused. ``model`` picks one of several.
    ``opset`` is the ONNX opset at which carried operators are typed. Raises ``DmlcError`` with every mistake found.
    """
    return elaborate(parse(source), folder, model, opset)
