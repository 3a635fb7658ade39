"""Results that another program computed, in files: expected outputs in ``.npz`` files, and a run of DxDispatch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from dmlc import api
from dmlc.api.sources import onnx_model
from dmlc.codegen.artifact import signature_of
from dmlc.debugging.source_insides import CompileOptions, SideSource
from dmlc.diagnostics import fail, option
from dmlc.diagnostics.catalogue.runs import BAD_ARRAY_FILE
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Array
from dmlc.runtime import dxdispatch_files, files
from dmlc.verifying.models import verify_results
from dmlc.verifying.verdict import NOT_VERIFIED, Verdict

_DISPATCHES = ".dxdispatch.json"


def holds_arrays(source: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a source is the path of an ``.npz`` file."""
    return isinstance(source, (str, os.PathLike)) and Path(source).suffix.lower() == ".npz"


def holds_dispatches(source: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a source is the path of a ``.dxdispatch.json`` file."""
    return isinstance(source, (str, os.PathLike)) and os.fspath(source).lower().endswith(_DISPATCHES)


def expected_results(
    path: str | os.PathLike[str], given: Mapping[str, Any], limits: Limits
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The inputs, those of the file and before them the ``given`` ones, and the expected outputs, by name.

    Raises ``DmlcError``: E0422 (exit code 2) for a file without outputs or, where none are given, without inputs, and
    E0420 (exit code 2) for a file that cannot be read.
    """
    inputs, outputs = files.named_arrays([path], limits)
    feeds = {**inputs, **given}
    if not outputs:
        message = f"{Path(path)} has no array out::NAME, which is an expected output"
        raise fail(
            BAD_ARRAY_FILE, message, help="save the outputs as out::NAME, and the inputs as in::NAME", exit_code=2
        )
    if not feeds:
        message = f"{Path(path)} has expected outputs, and no array in::NAME, which is an input"
        help = option("give --input, or save the inputs as in::NAME", "give inputs=, or save the inputs as in::NAME")
        raise fail(BAD_ARRAY_FILE, message, help=help, exit_code=2)
    return feeds, outputs


def verify_dispatches(
    a: SideSource,
    b: str | os.PathLike[str],
    options: CompileOptions,
    *,
    allowed: str | Iterable[str],
    results: str | os.PathLike[str] | None,
) -> Verdict:
    """Compare A with the files that DxDispatch wrote for B, below the folder ``results`` or the folder of B.

    Nothing is verified where a file is missing. Raises ``DmlcError`` for a source or a file that cannot be read.
    """
    model, folder = None, None
    if not isinstance(a, api.Program):
        model, folder = onnx_model(a, Limits.of(options.limits)) or (None, None)
    graph = options.graph(a)
    run = dxdispatch_files.read_run(Path(b), signature_of(graph), None if results is None else Path(results))
    if run.missing:
        names = ", ".join(map(str, run.missing))
        other = option("name its results' with --output-path", "give the folder of its results as output_path=")
        reason = f"there is no {names}; run DxDispatch in the folder of B, or {other}"
        classes = (allowed,) if isinstance(allowed, str) else tuple(allowed)
        return Verdict(NOT_VERIFIED, classes, 0, 1, reason=reason)
    data = f"the files of {os.fspath(b)}"
    original = graph if model is None else model
    return verify_results(original, run.inputs, run.results, data=data, allowed=allowed, folder=folder)
