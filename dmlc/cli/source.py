"""The program that a command names."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmlc import api, text
from dmlc.cli.compile_options import keywords_of, limits_of
from dmlc.cli.console import UsageError
from dmlc.cli.progress import Progress
from dmlc.diagnostics import Source, fail
from dmlc.diagnostics.catalogue.runs import CANNOT_READ
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.passes.options import AS_WRITTEN
from dmlc.runtime import files

if TYPE_CHECKING:
    import onnx

STDIN = "-"
_NOT_SOURCES = {".py", ".json", ".npy", ".npz", ".data"}


def is_model(name: str) -> bool:
    """Tell by the content of SRC if it is an ONNX model; stdin is a program."""
    return name != STDIN and files.is_model_file(Path(name))


def check_is_source(name: str) -> None:
    """Raises ``UsageError`` for a file of data, or of a form that dmlc writes and does not read."""
    if Path(name).suffix.lower() in _NOT_SOURCES:
        raise UsageError(f"cannot read {name}: expected a .dml program or an ONNX model")


def read_source(name: str, limits: Limits = DEFAULTS) -> Source:
    """The text of SRC. Raises ``UsageError``, ``DmlcError`` E0420 (exit code 2) where it cannot be opened, E01 if it is
    not text."""
    check_is_source(name)
    if name == STDIN:
        if sys.stdin is None:  # closed by the caller, as `<&-` does
            raise fail(CANNOT_READ, "cannot open stdin: it is closed", exit_code=2)
        return text.decode("<stdin>", sys.stdin.buffer.read(limits.text_bytes + 1), limits)
    return text.decode(name, files.read_bytes(Path(name), limits), limits)


def open_source(args: argparse.Namespace) -> Source | str:
    """Return the input of ``compile_source``: the text of stdin, read once, or the name of a file.

    ``args.text`` is a program that was read before, and fixed.
    """
    name: str = args.source
    given: Source | None = getattr(args, "text", None)
    if given is not None:
        return given
    check_is_source(name)
    return read_source(STDIN, limits_of(args)) if name == STDIN else name


def compile_source(
    args: argparse.Namespace,
    *,
    source: Source | str | onnx.ModelProto | None = None,
    for_numpy: bool = False,
    as_written: bool = False,
    progress: Progress | None = None,
) -> api.Program:
    """The program of SRC under the options of the command line. Raises ``DmlcError``.

    ``source`` is what ``open_source`` gave, where it is compiled twice. ``for_numpy`` compiles for NumPy whatever
    ``--target`` says: what ONNX cannot express does not matter there, nor in DxDispatch's JSON. ``as_written`` lets
    no rule fire but the mandatory rules of the target.
    """
    keywords = compile_keywords(args, for_numpy=for_numpy, as_written=as_written)
    passes = None if progress is None else progress.next_pass
    return api.compile(open_source(args) if source is None else source, **keywords, progress=passes)


def compile_keywords(args: argparse.Namespace, *, for_numpy: bool = False, as_written: bool = False) -> dict[str, Any]:
    """The keywords of ``dmlc.compile`` that the command line gives; see ``compile_source``. Raises ``UsageError``."""
    given = keywords_of(args)
    if for_numpy:
        given |= {"target": "numpy", "fuse": ()}
    return given | ({**AS_WRITTEN, "profiles": None, "strict": False} if as_written else {})
