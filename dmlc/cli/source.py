"""The program that a command names."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dmlc import api, text
from dmlc.cli.console import UsageError
from dmlc.cli.options import limits_of
from dmlc.cli.progress import Progress
from dmlc.diagnostics import Source, fail
from dmlc.diagnostics.catalogue.runs import CANNOT_READ
from dmlc.diagnostics.catalogue.shapes import SHAPE_DOES_NOT_FIT
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.ir.fixed_shapes import FixedShape, shape_text
from dmlc.runtime import files

if TYPE_CHECKING:
    import onnx

STDIN = "-"
_Value = TypeVar("_Value")
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
    return read_source(STDIN, Limits.of(limits_of(args))) if name == STDIN else name


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
    return {
        "target": "numpy" if for_numpy else args.target,
        "opset": args.opset,
        "bind": _each_once("--bind", args.bind),
        "shapes": shapes_of(args),
        "ranges": _each_once("--range", args.range),
        "profiles": None if as_written else profiles_of(args),
        "model": args.model,
        "include": args.include,
        "exact": args.exact,
        "allow": tuple(args.allow),
        "strict": args.strict and not as_written,
        "lower_hardmax": args.lower_hardmax,
        "feature_level": args.feature_level,
        "skip_rules": () if as_written else args.skip_rule,
        "only_rules": () if as_written else args.only_rule,
        "f64": None if as_written else args.f64,
        "accumulate": None if as_written else args.accumulate,
        "fuse": () if as_written or for_numpy else args.fuse,
        "limits": limits_of(args),
    }


def profiles_of(args: argparse.Namespace) -> dict[str, list[int]] | None:
    """The sizes of ``--profile`` by dim; None in a verb without that option. Raises ``UsageError``."""
    given: list[tuple[str, list[int]]] = getattr(args, "profile", [])
    found = _each_once("--profile", given)
    for name, sizes in found.items():
        if name in dict(args.bind):
            raise UsageError(f"--bind {name} and --profile {name} both fix {name}; give one of them")
        if len(set(sizes)) < len(sizes):
            raise UsageError(f"--profile {name} names a size twice")
    return found or None


def _each_once(option: str, given: list[tuple[str, _Value]]) -> dict[str, _Value]:
    """The values by name. Raises ``UsageError`` for a name that is given twice."""
    names = [name for name, _ in given]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{option} {name} is given twice")
    return dict(given)


def shapes_of(args: argparse.Namespace) -> dict[str, FixedShape]:
    """The shapes of the command line by input. Raises ``DmlcError`` E0337 where an input is given two."""
    out: dict[str, FixedShape] = {}
    for name, shape in args.shape:
        before = out.get(name, shape)
        pairs = list(zip(before, shape, strict=False))
        if len(before) != len(shape) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
            message = f"{name} is given two shapes: {shape_text(name, before)} and {shape_text(name, shape)}"
            raise fail(SHAPE_DOES_NOT_FIT, message, help="give one of them")
        out[name] = tuple([size if old is None else old for old, size in pairs])
    return out
