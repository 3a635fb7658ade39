"""The language as text: ``load`` makes a graph, ``parse`` a syntax tree, ``format_source`` the canonical text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dmlc.diagnostics import Source, naming
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.ir import Graph
from dmlc.text.decode import decode
from dmlc.text.elaborate import elaborate
from dmlc.text.parser import parse

if TYPE_CHECKING:
    from dmlc.text.format import format_source as format_source

__all__ = ["decode", "format_source", "load", "parse"]


def load(
    source: Source,
    *,
    folder: Path | None = None,
    model: str | None = None,
    opset: int = 21,
    limits: Limits = DEFAULTS,
) -> Graph:
    """The graph of a program.

    ``folder`` is where its ``load(...)`` may read; without one they are refused. ``model`` picks one of several.
    ``opset`` is the ONNX opset at which carried operators are typed. Raises ``DmlcError`` with every mistake found.
    """
    with naming(source.name):
        return elaborate(parse(source, limits), folder, model, opset, limits)


def __getattr__(name: str) -> object:
    """The formatter is loaded when it is first asked for."""
    if name != "format_source":
        raise AttributeError(f"module 'dmlc.text' has no attribute {name!r}")
    from dmlc.text.format import format_source

    return format_source
