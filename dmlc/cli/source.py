"""The program that a command names."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dmlc import api, text
from dmlc.cli.console import UsageError
from dmlc.diagnostics import Source, fail
from dmlc.diagnostics.catalogue.runs import CANNOT_READ
from dmlc.runtime import files

STDIN = "-"


def read_source(name: str) -> Source:
    """The text of SRC. Raises ``DmlcError`` E0420 (exit code 2) where it cannot be opened, E01 where it is no text."""
    if name == STDIN:
        if sys.stdin is None:  # closed by the caller, as `<&-` does
            raise fail(CANNOT_READ, "cannot open stdin: it is closed", exit_code=2)
        return text.decode("<stdin>", sys.stdin.buffer.read())
    return text.decode(name, files.read_bytes(Path(name)))


def compile_source(args: argparse.Namespace, *, for_numpy: bool = False) -> api.Program:
    """The program of SRC under the options of the command line. Raises ``DmlcError``.

    ``for_numpy`` compiles for NumPy whatever ``--target`` says: what ONNX cannot express does not matter there.
    """
    return api.compile(
        read_source(STDIN) if args.source == STDIN else args.source,
        target="numpy" if for_numpy else args.target,
        opset=args.opset,
        bind=_bindings(args.bind),
        model=args.model,
        exact=args.exact,
        allow=tuple(args.allow),
        strict=args.strict,
        lower_hardmax=args.lower_hardmax,
        feature_level=args.feature_level,
    )


def _bindings(given: list[tuple[str, int]]) -> dict[str, int]:
    names = [name for name, _ in given]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--bind {name} is given twice")
    return dict(given)
