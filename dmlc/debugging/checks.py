"""Checks of a part of a model: a backend beside another one, a command of the user, a function."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from onnx import ModelProto

from dmlc.debugging.counterpart import ModelCounterpart
from dmlc.debugging.insides import Inside
from dmlc.debugging.source_insides import CompileOptions, compiled_inside, inside_of
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.searches import NO_ANSWER
from dmlc.runtime import files
from dmlc.runtime.runnable import NotRunnable, RunFailed
from dmlc.verifying.check import verify_given
from dmlc.verifying.comparison import DIFFERENT
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.subject import Subject
from dmlc.verifying.tolerance import EXACT, REASSOCIATES, Tolerance
from dmlc.verifying.verdict import Verdict

GOOD: Literal["good"] = "good"
BAD: Literal["bad"] = "bad"
SKIP: Literal["skip"] = "skip"
#: Exit codes of a command as ``git bisect run`` reads them: https://git-scm.com/docs/git-bisect
_SKIPPED, _NOT_RUN, _SIGNALS = 125, (126, 127), 128
#: A function that checks: True for a good model, False for a bad one, None for one that it cannot check. It is given
#: the model, its inputs and the expected outputs.
CheckFunction = Callable[[ModelProto, dict[str, Any], dict[str, Any]], "bool | None"]


class PartResult(Struct, frozen=True):
    """``status`` is ``good``, ``bad`` or ``skip``; ``details`` are lines about what differs, or why it was skipped.

    ``fails`` is set where the model did not run."""

    status: Literal["good", "bad", "skip"]
    details: tuple[str, ...] = ()
    fails: bool = False


class Originals:
    """Right models: each part itself on the backend ``against``, or the part of another model that stands for it."""

    def __init__(self, against: str | None, options: CompileOptions, other: ModelCounterpart | None = None) -> None:
        self._against, self._options = against, options
        self.other: ModelCounterpart | None = other

    def part(self, model: ModelProto) -> ModelProto:
        """The model that a part is compared with. Raises ``LookupError`` where the other model has no such part."""
        return model if self.other is None else self.other.part(model)

    def values(self, model: ModelProto) -> Inside:
        """A model on the backend."""
        return inside_of(model, self._against, self._options, as_written=True)

    def side(self, model: ModelProto) -> Subject:
        return self.values(model).subject

    def original(self, model: ModelProto) -> Subject:
        """The side that a part is compared with. Raises ``LookupError`` as ``part`` does."""
        return self.side(self.part(model))


class BackendCheck:
    """A model on a backend, compared with the original on another one.

    Without a backend the model runs as what it ``compiles`` to for ``directml``, else as it is, without optimizations.
    """

    def __init__(
        self,
        backend: str | None,
        originals: Originals,
        options: CompileOptions,
        tolerance: Tolerance | None,
        *,
        compiles: bool,
    ) -> None:
        self.backend: str | None = backend
        self.originals: Originals = originals
        self.compiles: bool = compiles and backend is None
        self._options, self._tolerance = options, tolerance

    def values(self, model: ModelProto) -> Inside:
        """The side that may be wrong."""
        if self.compiles:
            return compiled_inside(self._options.program(model, as_written=False, target="directml"), None)
        return inside_of(model, self.backend, self._options, as_written=False)

    def result(self, model: ModelProto) -> Subject:
        return self.values(model).subject

    def check(self, model: ModelProto, feeds: Feeds, right: ModelProto | None = None) -> PartResult:
        """Compare a model with a right one, by default its original. Raises ``LookupError`` as ``Originals.part``."""
        right = self.originals.part(model) if right is None else right
        return result_of(verify_given(
            lambda: (self.originals.side(right), self.result(model)), feeds, data="the input",
            allowed=(EXACT, REASSOCIATES), tolerance=self._tolerance,
        ))  # fmt: skip


def result_of(verdict: Verdict) -> PartResult:
    """The result that a verdict is."""
    if verdict.ok:
        return PartResult(GOOD)
    reports = [output for output in verdict.outputs if output.status == DIFFERENT]
    if verdict.status == DIFFERENT:
        lines = tuple(line.strip() for output in reports for line in output.lines())
        return PartResult(BAD, lines or (verdict.reason,), fails=bool(verdict.reason))
    return PartResult(SKIP, (verdict.reason,), fails=True)


class UserCheck:
    """A command, or a function, that is given a model, its inputs and the outputs that ``against`` computes.

    In a command ``{model}`` is the path of the model and ``{inputs}`` the path of an ``.npz`` file with the inputs
    ``in::NAME`` and the expected outputs ``out::NAME``. It exits with 0 for good, 125 to skip, 126 and more if it did
    not check, and any other code for bad. Raises ``DmlcError`` E0568 where it did not check.
    """

    def __init__(self, check: str | CheckFunction, originals: Originals) -> None:
        self._check = check
        self.originals: Originals = originals

    def check(self, model: ModelProto, feeds: Feeds, right: ModelProto | None = None) -> PartResult:
        """Check a model; the expected outputs come from a right one, by default its original."""
        right = self.originals.part(model) if right is None else right
        try:
            expected = self.originals.side(right).run(feeds)
        except (NotRunnable, RunFailed) as error:
            return PartResult(SKIP, (f"the expected outputs cannot be computed: {error}",), fails=True)
        if isinstance(self._check, str):
            return _run(self._check, model, feeds, expected)
        found = self._check(model, dict(feeds), dict(expected))
        if found is None:
            return PartResult(SKIP, ("the check returned None",))
        if not isinstance(found, (bool, np.bool_)):  # an exit code would mean the opposite
            help = "it returns True for good, False for bad, None for a model that it cannot check"
            raise fail(NO_ANSWER, f"the check returned {_shown(found)}", help=help)
        return PartResult(GOOD if found else BAD)


def _run(command: str, model: ModelProto, feeds: Feeds, expected: Mapping[str, Any]) -> PartResult:
    with tempfile.TemporaryDirectory(prefix="dmlc-", ignore_cleanup_errors=True) as folder:
        paths = {"{model}": Path(folder) / "model.onnx", "{inputs}": Path(folder) / "inputs.npz"}
        paths["{model}"].write_bytes(model.SerializeToString())
        if "{inputs}" in command:
            paths["{inputs}"].write_bytes(files.npz_bytes(case_arrays(feeds, expected)))
        text = command
        for word, path in paths.items():
            text = text.replace(
                word, subprocess.list2cmdline([str(path)]) if sys.platform == "win32" else shlex.quote(str(path))
            )
        ended = subprocess.run(text, shell=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return _reading(ended.returncode, (ended.stdout + ended.stderr).decode("utf-8", "replace"), command)


def _reading(code: int, text: str, command: str) -> PartResult:
    last = tuple([line.strip() for line in text.splitlines() if line.strip()][-3:])
    if code == 0:
        return PartResult(GOOD, last)
    if code == _SKIPPED:
        return PartResult(SKIP, last or (f"the command ended with exit code {code}",))
    if 0 < code < _SIGNALS and code not in _NOT_RUN:
        return PartResult(BAD, last)
    ending = f"signal {-code}" if code < 0 else f"exit code {code}"
    said = f": {last[-1]}" if last else ""
    help = "it exits with 0 for good, 1 for bad, 125 for a model that it cannot check"
    raise fail(NO_ANSWER, f"the command {command!r} ended with {ending}{said}", help=help)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"a value of type {type(value).__name__}"


def case_arrays(feeds: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays ``in::NAME`` and ``out::NAME``; what is not a tensor is left out."""
    pairs = [*((f"in::{n}", x) for n, x in feeds.items()), *((f"out::{n}", x) for n, x in results.items())]
    return {name: np.asarray(x) for name, x in pairs if isinstance(x, np.ndarray | np.generic)}
