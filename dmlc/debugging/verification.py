"""Verification of two sides on backends of choice, and the search for the value that parts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dmlc import api
from dmlc.api.arguments import check_arguments
from dmlc.codegen.artifact import signature_of
from dmlc.debugging.first_difference import Location, locate_first
from dmlc.debugging.insides import Inside
from dmlc.debugging.optimizer_blame import blamed_transformer
from dmlc.debugging.source_insides import CompileOptions, SideSource, compiled_inside, inside_of
from dmlc.debugging.unlike_parts import unlike_parts
from dmlc.diagnostics import did_you_mean, fail
from dmlc.diagnostics.catalogue.runs import INPUT_NAMES, NO_BACKEND, NOT_CODE, UNKNOWN_CHOICE
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.limits import Limits
from dmlc.runtime.feeds import FeedChecker
from dmlc.runtime.python_file import PythonFile
from dmlc.runtime.runnable import NoEvidence, NotRunnable, RunFailed
from dmlc.verifying.check import BY_OPTIMIZER, verify_given, verify_sides
from dmlc.verifying.comparison import DIFFERENT
from dmlc.verifying.graph_subject import GraphSubject
from dmlc.verifying.models import DEFAULT_CLASSES, DEFAULT_INPUTS, CodeSubject, RecordedSubject, RunnableSubject
from dmlc.verifying.subject import Subject
from dmlc.verifying.tolerance import REASSOCIATES, Tolerance, asked_tolerance
from dmlc.verifying.verdict import NOT_VERIFIED, Verdict


@dataclass(frozen=True, slots=True)
class LocatedVerdict:
    """A verdict, the first value that parts (None where nothing differs, or no value can be blamed), and the seconds
    that both took. ``note`` has the reason why a difference was not located."""

    verdict: Verdict
    location: Location | None
    seconds: float
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.verdict.ok

    def last_line(self) -> str:
        """``PASSED`` or ``FAILED``, the number of inputs, the seconds."""
        return last_line(self.verdict, self.seconds)


def last_line(verdict: Verdict, seconds: float) -> str:
    """One line that ends a report: ``PASSED | 24 inputs | 0.61 s``."""
    count = counted(verdict.ran, "input")
    why = " | not verified" if verdict.status == NOT_VERIFIED else ""
    return f"{'PASSED' if verdict.ok else 'FAILED'}{why} | {count} | {seconds:.2f} s"


def locate(
    a: SideSource,
    b: SideSource | None = None,
    *,
    inputs: int | Mapping[str, Any] = DEFAULT_INPUTS,
    expected: Mapping[str, Any] | None = None,
    backend: str | None = None,
    seed: int = 0,
    allowed: str | Iterable[str] = DEFAULT_CLASSES,
    rtol: float | None = None,
    atol: float | None = None,
    search: bool = True,
    model: str | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    limits: Mapping[str, int] | None = None,
    data: str = "the given inputs",
) -> LocatedVerdict:
    """Verify B against A, and find the first value that parts.

    A and B are sources of ``dmlc.compile``, or ``.py`` files with a function of arrays. Without B, A is compared with
    the ``expected`` outputs, with itself where ``backend`` names two backends, else with its compiled form.
    ``inputs`` is the number of made-up inputs, or arrays by name. ``backend`` is one of ``cpu``, ``dml``, ``numpy``,
    ``reference`` for both sides, or two of them as ``cpu:reference``. By default a program is computed by the
    reference, and a model runs on ONNX Runtime's CPU provider without optimizations. ``rtol`` and ``atol`` replace the
    tolerance by ``|a - b| <= atol + rtol * |a|``. Without ``search`` only the verdict is made.
    Raises ``DmlcError`` for a source that cannot be read, for backends that do not exist, and for arguments of another
    type (E0556).
    """
    check_arguments(
        inputs=inputs, expected=expected, backend=backend, seed=seed, allowed=allowed, rtol=rtol, atol=atol,
        search=search, model=model, include=include, data=data,
    )  # fmt: skip
    inputs, start = inputs if isinstance(inputs, Mapping) else int(inputs), time.perf_counter()
    options, backends = CompileOptions(model, include, limits), _backends(backend, alone=b is None and expected is None)
    tolerance = asked_tolerance(rtol, atol)
    sides: list[Inside] = []

    def left() -> Subject:
        sides.append(_original(a, backends[0], options, b))
        if not isinstance(inputs, int):
            _check_feeds(sides[0], inputs)
        return sides[0].subject

    def right() -> Subject:
        if expected is not None:
            sides.append(Inside(RecordedSubject(sides[0].subject, expected), (), frozenset()))
        else:
            sides.append(_result(a, b, backends, options, sides[0]))
        return sides[1].subject

    chosen = set([allowed] if isinstance(allowed, str) else allowed)
    # kernels, references and NumPy round differently
    chosen |= set() if chosen == {"exact"} else {REASSOCIATES}
    if isinstance(inputs, int):
        verdict = verify_sides(left, right, inputs=inputs, seed=seed, allowed=chosen, tolerance=tolerance)
    else:
        verdict = verify_given(lambda: (left(), right()), dict(inputs), data=data, allowed=chosen, tolerance=tolerance)
    verdict = replace(verdict, notes=(*verdict.notes, *_notes(verdict, sides)))
    location, note = _location_of(verdict, sides, tolerance) if search else (None, "")
    return LocatedVerdict(verdict, location, time.perf_counter() - start, note)


def _notes(verdict: Verdict, sides: Sequence[Inside]) -> Iterator[str]:
    """Parts that differ, and the transformer of ONNX Runtime's own optimizer that changes the numbers of the result."""
    if len(sides) < 2:
        return
    yield from unlike_parts(*sides)
    names = [each.name for each in verdict.outputs if any(reason == BY_OPTIMIZER for reason, _ in each.reasons)]
    if names and verdict.case is not None:
        found = blamed_transformer(sides[1].subject, verdict.case, names)
        what = found or "optimizer"
        yield f"ONNX Runtime's own {what} changes the numbers of B: dmlc compile writes a model that it leaves alone"


def _location_of(verdict: Verdict, sides: Sequence[Inside], tolerance: Tolerance | None) -> tuple[Location | None, str]:
    """The first value that parts on the input of the first difference, or the reason why none is found."""
    if verdict.status != DIFFERENT:
        return None, ""
    if verdict.case is None or len(sides) < 2:
        return None, f"no value can be blamed: {verdict.reason}"
    different = [output.name for output in verdict.outputs if output.status == DIFFERENT]
    names = different or [output.name for output in verdict.outputs]  # B fails as a whole
    try:
        return locate_first(sides[0], sides[1], verdict.case, names, tolerance), ""
    except (RunFailed, NotRunnable, NoEvidence) as error:
        return None, f"the values inside cannot be read: {error}"


def _check_feeds(original: Inside, feeds: Mapping[str, Any]) -> None:
    """Raises ``DmlcError`` E0423 to E0426 where the feeds do not match the original."""
    if isinstance(original.subject, GraphSubject):
        FeedChecker(signature_of(original.subject.model.graph, checked=True)).check(feeds)
    missing = [name for name in original.subject.inputs if name not in feeds]
    if missing:
        raise fail(INPUT_NAMES, f"input {missing[0]} is not given", help=f"give --input {missing[0]}=FILE")


def _backends(text: str | None, *, alone: bool) -> tuple[str | None, str | None]:
    """The backend of each side; of one that stands alone without B, that of the second. Raises E0553."""
    if text is None:
        return None, None
    parts = text.split(":")
    if len(parts) > 2:
        raise fail(NO_BACKEND, f"{text} names more than two backends", help="write A:B, as in cpu:reference")
    for part in parts:
        if part not in api.BACKENDS:
            help = did_you_mean(part, api.BACKENDS) or f"it is one of {', '.join(api.BACKENDS)}"
            raise fail(NO_BACKEND, f"there is no backend {part}", help=help)
    if len(parts) == 2:
        return parts[0], parts[1]
    return (None, parts[0]) if alone else (parts[0], parts[0])


def _is_code(source: SideSource | None) -> bool:
    return isinstance(source, (str, os.PathLike)) and Path(source).suffix.lower() == ".py"


def _original(a: SideSource, backend: str | None, options: CompileOptions, b: SideSource | None) -> Inside:
    """The first side; code shows its steps by the reference, or by those of B."""
    if not _is_code(a):
        found = inside_of(a, backend, options, as_written=True)
        if isinstance(found.subject, CodeSubject):
            found.subject.traced_by = inside_of(a, None, options, as_written=True).subject
        return found
    like = None if b is None or _is_code(b) else inside_of(b, None, options, as_written=True).subject
    return _code(a, backend, like, options)


def _result(
    a: SideSource,
    b: SideSource | None,
    backends: tuple[str | None, str | None],
    options: CompileOptions,
    first: Inside,
) -> Inside:
    backend = backends[1]
    if b is None and _is_code(a):
        raise fail(UNKNOWN_CHOICE, "a .py file is compared with another file: name it behind the first", exit_code=2)
    if b is None and backend is None:
        return compiled_inside(options.program(a, as_written=False, target="directml"), None)
    if b is None:
        return inside_of(a, backend, options, as_written=True)
    if _is_code(b):
        return _code(b, backend, first.subject, options)
    return inside_of(b, backend, options, as_written=False)


def _code(source: SideSource, backend: str | None, like: Subject | None, options: CompileOptions) -> Inside:
    """A Python file with the inputs and outputs of ``like``, by default with those of its function.

    Raises ``DmlcError`` E0420 (exit code 2), E0448, E0553.
    """
    assert isinstance(source, (str, os.PathLike))
    if backend not in (None, "numpy"):
        message = f"{Path(source)} runs as NumPy code, not on {backend}"
        raise fail(NO_BACKEND, message, help="leave --backend out for it")
    code = PythonFile(Path(source), () if like is None else like.outputs, Limits.of(options.limits))
    if like is not None and len(like.inputs) != len(code.inputs):
        parameters = f"{len(code.inputs)} parameters, not {len(like.inputs)}"
        raise fail(NOT_CODE, f"the function {code.name} of {Path(source)} has {parameters}")
    subject = RunnableSubject(code, like)
    subject.traced_by = like
    return Inside(subject, (), None)
