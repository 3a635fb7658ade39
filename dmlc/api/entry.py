"""The function ``compile``, whose keywords are the declared options; type checkers read ``entry.pyi``."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

from dmlc.api.chosen_options import chosen_options
from dmlc.api.compiled import compiled
from dmlc.api.program import Program
from dmlc.api.sources import ProgramSource
from dmlc.ir.collector import collector_paused
from dmlc.passes.options import OPTIONS, Option


@collector_paused(begins=True)
def compile(source: ProgramSource, **options: Any) -> Program:
    """Compile a ``.dml`` or ``.onnx`` file, a builder's graph or an ONNX model for a target.

    The source is not changed. ``strict`` raises the problems of ``Program.problems`` too. Raises ``DmlcError``, and
    ``TypeError`` for an option that does not exist.

    Options:
    """
    return compiled(source, chosen_options(options), asked=options.get("opset") is not None)


def _keyword(option: Option) -> inspect.Parameter:
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=option.takes
    )


def _line(option: Option) -> str:
    return textwrap.fill(f"{option.name}: {option.description}", 116, initial_indent="    ", subsequent_indent=" " * 8)


_SOURCE = inspect.Parameter("source", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="ProgramSource")
compile.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [_SOURCE, *map(_keyword, OPTIONS.values())], return_annotation="Program"
)
compile.__doc__ = "\n".join([inspect.cleandoc(compile.__doc__ or ""), *map(_line, OPTIONS.values())])
