"""The command line of ``dmlc compile`` that has the options of another command."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from dmlc.cli.source import is_model, shapes_of
from dmlc.ir.fixed_shapes import shape_text
from dmlc.ops.ranges import range_text

#: Options of one value, by the name that they have among the arguments, and those that are a flag.
_SINGLE = ("target", "feature_level", "opset", "model", "f64", "accumulate")
_FLAGS = ("exact", "strict", "lower_hardmax")
_LISTS = ("include", "allow", "skip_rule", "only_rule", "fuse")


def compile_words(args: argparse.Namespace, output: str | Path | None, **changes: object) -> list[str]:
    """The words that compile ``args.source`` into ``output`` with the options of ``args``, but for ``changes``; without
    ``output`` into the file that ``compile`` chooses."""
    given = argparse.Namespace(**{**vars(args), **changes})
    words = ["dmlc", "compile", given.source, *(() if output is None else ("-o", str(output)))]
    for name in _SINGLE:
        value = getattr(given, name)
        if value is not None and (name, value) != ("target", "directml"):
            words += [_option(name), str(value)]
    words += [_option(name) for name in _FLAGS if getattr(given, name)]
    words += [word for name in _LISTS for value in getattr(given, name) or () for word in (_option(name), str(value))]
    words += [word for name, size in given.bind for word in ("--bind", f"{name}={size}")]
    words += [word for name, shape in shapes_of(given).items() for word in ("--shape", shape_text(name, shape))]
    words += [word for name, ends in given.range for word in ("--range", f"{name}={range_text(ends)}")]
    limits = [f"{name}={size}" for limit in given.limit for name, size in limit]
    return [*words, *(("--limit", ",".join(limits)) if limits else ())]


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


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
