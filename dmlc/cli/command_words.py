"""The command line of ``dmlc compile`` that has the options of another command."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from dmlc.cli.compile_options import keywords_of, option_words
from dmlc.cli.source import is_model


def compile_words(args: argparse.Namespace, output: str | Path | None, **changes: object) -> list[str]:
    """The words that compile ``args.source`` into ``output`` with the options of ``args``, but for ``changes``; without
    ``output`` into the file that ``compile`` chooses."""
    given = argparse.Namespace(**{**vars(args), **changes})
    words = ["dmlc", "compile", given.source, *(() if output is None else ("-o", str(output)))]
    return [*words, *[word for name, value in keywords_of(given).items() for word in option_words(name, value)]]


def compiled_path(source: str) -> Path | None:
    """The file that a suggested command compiles a source into; None where ``compile`` names that file itself."""
    path = Path(source)
    if is_model(source):
        return writable(path.with_name(f"{path.stem}.dml.onnx"))
    own = path.with_suffix(".onnx")
    return None if writable(own) == own else writable(own)


def writable(path: Path) -> Path:
    """The path, or the file of that name in the current folder where nothing can be written into the path's own."""
    return path if os.access(path.parent, os.W_OK) else Path(path.name)
