"""Verification of two models on backends of choice, and the search for the first value that differs."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dmlc.api.arguments import check_arguments
from dmlc.codegen.artifact import signature_of
from dmlc.debugging.by_position import by_position, renaming_note
from dmlc.debugging.first_difference import Location, locate_first
from dmlc.debugging.insides import Inside
from dmlc.debugging.optimizer_blame import blamed_transformer
from dmlc.debugging.result_files import expected_results, holds_arrays, holds_dispatches, verify_dispatches
from dmlc.debugging.source_insides import CompileOptions, SideSource, backends_of, compiled_inside, inside_of
from dmlc.debugging.unlike_parts import unlike_parts
from dmlc.diagnostics import fail, option
from dmlc.diagnostics.catalogue.runs import INPUT_NAMES, NO_BACKEND, NOT_CODE, UNKNOWN_CHOICE
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.limits import Limits
from dmlc.diagnostics.parameters import parameters_of
from dmlc.diagnostics.paste import pasteable
from dmlc.diagnostics.shown import Rows, Shown
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


@dataclass(frozen=True, slots=True, repr=False)
class LocatedVerdict(Shown):
    """A verdict, the first value that parts (None where nothing differs, or no value can be blamed), and the seconds
    that both took. ``note`` has the reason why a difference was not located."""

    verdict: Verdict
    location: Location | None
    seconds: float
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.verdict.ok

    def headline(self) -> str:
        """Return the answer in one line."""
        return self.verdict.headline()

    def to_text(self, *, whole: bool = False) -> str:
        """Return the verdict and the location in lines for people; ``whole`` has a line for each output."""
        located = self.location.to_text() if self.location is not None else f"{self.note}\n" if self.note else ""
        return self.verdict.to_text(whole=whole) + located

    def to_rows(self) -> Rows:
        """Return the table of the verdict."""
        return self.verdict.to_rows()

    def last_line(self) -> str:
        """``PASSED`` or ``FAILED``, the number of inputs, the seconds."""
        return last_line(self.verdict, self.seconds)


def last_line(verdict: Verdict, seconds: float) -> str:
    """One line that ends a report: ``PASSED | 24 inputs | 0.61 s``."""
    count = counted(verdict.ran, "input")
    why = " | not verified" if verdict.status == NOT_VERIFIED else ""
    return f"{'PASSED' if verdict.ok else 'FAILED'}{why} | {count} | {seconds:.2f} s"


def verify(
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
    model: str | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    limits: Mapping[str, int] | None = None,
    output_path: str | os.PathLike[str] | None = None,
    data: str = "",
) -> Verdict:
    """Compare what two models or programs compute, as ``dmlc verify A B`` does.

    A is the original: a source of ``dmlc.compile``, a compiled program, or the path of a ``.py`` file with a function
    of arrays. B is the result: one of these, the path of an ``.npz`` file with inputs ``in::NAME`` and expected outputs
    ``out::NAME``, or the path of a ``.dxdispatch.json`` file, whose result files DxDispatch wrote below the folder
    ``output_path``. Without B, A is compared with the ``expected`` outputs, with itself where ``backend`` names two
    backends, else with its compiled form.

    ``inputs`` is the number of made-up inputs, or arrays by name, which the verdict calls ``data``. ``seed`` is that of
    made-up inputs. ``backend`` is one of ``cpu``, ``dml``, ``numpy``, ``reference`` for both, or two of them as
    ``cpu:reference``. By default a program is computed by the reference, and a model runs on ONNX Runtime's CPU
    provider without optimizations. ``allowed`` are the classes of rewrites that B may have. ``rtol`` and ``atol``
    replace the tolerance by ``|a - b| <= atol + rtol * |a|``. ``model``, ``include`` and ``limits`` are those of
    ``compile``.
    Raises ``DmlcError`` for a source that cannot be read, for backends that do not exist, and for arguments of another
    type (E0556).
    """
    comparison = _SideComparison(
        a, b, inputs, expected, backend, seed, allowed, rtol, atol, model, include, limits, output_path, data
    )
    return comparison.verdict()


@parameters_of(verify)
def locate(*sources: Any, **options: Any) -> LocatedVerdict:
    """Compare two models or programs as ``verify`` does, with its arguments, and find the first value that differs.

    Raises ``DmlcError`` as ``verify`` does.
    """
    start = time.perf_counter()
    given = inspect.signature(verify).bind(*sources, **options)
    given.apply_defaults()
    comparison = _SideComparison(**given.arguments)
    verdict = comparison.verdict()
    location, note = _location_of(verdict, comparison.sides, comparison.tolerance)
    return LocatedVerdict(verdict, location, time.perf_counter() - start, note)


@dataclass(slots=True)
class _SideComparison:
    """The arguments of ``verify``, and the two sides once they are read."""

    a: SideSource
    b: SideSource | None
    inputs: int | Mapping[str, Any]
    expected: Mapping[str, Any] | None
    backend: str | None
    seed: int
    allowed: str | Iterable[str]
    rtol: float | None
    atol: float | None
    model: str | None
    include: Sequence[str | os.PathLike[str]]
    limits: Mapping[str, int] | None
    output_path: str | os.PathLike[str] | None
    data: str
    sides: list[Inside] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raises ``DmlcError`` E0556 (exit code 2) for an argument of another type, or without a use for B."""
        check_arguments(
            inputs=self.inputs, expected=self.expected, backend=self.backend, seed=self.seed, allowed=self.allowed,
            rtol=self.rtol, atol=self.atol, model=self.model, include=self.include, output_path=self.output_path,
            data=self.data,
        )  # fmt: skip
        if self.output_path is not None and not holds_dispatches(self.b):
            name = option("--output-path", "output_path=")
            raise fail(UNKNOWN_CHOICE, f"{name} is for a B that is a .dxdispatch.json file", exit_code=2)

    @property
    def options(self) -> CompileOptions:
        return CompileOptions(self.model, self.include, self.limits)

    @property
    def tolerance(self) -> Tolerance | None:
        return asked_tolerance(self.rtol, self.atol)

    def verdict(self) -> Verdict:
        """Compare the sides. Raises ``DmlcError`` for a source that cannot be read."""
        if holds_dispatches(self.b):
            allowed, folder = self.allowed, self.output_path
            return verify_dispatches(self.a, self.b, self.options, allowed=allowed, results=folder)
        if holds_arrays(self.b):
            self._take_results(Path(self.b))
        backends = _backends(self.backend, alone=self.b is None and self.expected is None)
        inputs = self.inputs if isinstance(self.inputs, Mapping) else int(self.inputs)

        def left() -> Subject:
            self.sides.append(_original(self.a, backends[0], self.options, self.b))
            if not isinstance(inputs, int):
                _check_feeds(self.sides[0], inputs)
            return self.sides[0].subject

        def right() -> Subject:
            if self.expected is not None:
                self.sides.append(Inside(RecordedSubject(self.sides[0].subject, self.expected), (), frozenset()))
            else:
                other = _result(self.a, self.b, backends, self.options, self.sides[0])
                self.sides.append(replace(other, subject=by_position(self.sides[0].subject, other.subject)))
            return self.sides[1].subject

        chosen = set([self.allowed] if isinstance(self.allowed, str) else self.allowed)
        # kernels, references and NumPy round differently
        chosen |= set() if chosen == {"exact"} else {REASSOCIATES}
        how: Any = {"allowed": chosen, "tolerance": self.tolerance}
        if isinstance(inputs, int):
            verdict = verify_sides(left, right, inputs=inputs, seed=self.seed, **how)
        else:
            data = self.data or "the given inputs"
            verdict = verify_given(lambda: (left(), right()), dict(inputs), data=data, **how)
        is_named = self.b is not None or self.expected is not None or verdict.status == NOT_VERIFIED
        other = () if is_named else (_other_side(self.a, backends[1]),)
        return replace(verdict, notes=(*other, *verdict.notes, *self._notes(verdict)))

    def _notes(self, verdict: Verdict) -> Iterator[str]:
        """Parts that differ, and the transformer of ONNX Runtime's own optimizer that changes the numbers of B."""
        if len(self.sides) < 2:
            return
        renamed = renaming_note(self.sides[1].subject)
        if renamed:
            yield renamed
        paths = [os.fspath(each) for each in (self.a, self.b) if isinstance(each, (str, os.PathLike))]
        shown_by = option(f"dmlc diff {pasteable(paths)}" if len(paths) == 2 else "", "dmlc.diff(a, b)")
        yield from unlike_parts(*self.sides, is_compiled=self.b is None, shown_by=shown_by)
        names = [each.name for each in verdict.outputs if any(reason == BY_OPTIMIZER for reason, _ in each.reasons)]
        if names and verdict.case is not None:
            what = blamed_transformer(self.sides[1].subject, verdict.case, names) or "optimizer"
            unlike = f"ONNX Runtime's own {what} changes the numbers of B"
            yield f"{unlike}: dmlc compile writes a model that it does not change"

    def _take_results(self, path: Path) -> None:
        """Take the inputs and the expected outputs of an ``.npz`` file, and no B."""
        given = self.inputs if isinstance(self.inputs, Mapping) else {}
        self.data = self.data or ("the given inputs" if given else f"the inputs of {path}")
        self.inputs, self.expected = expected_results(path, given, Limits.of(self.limits))
        self.b = None


def _other_side(a: SideSource, backend: str | None) -> str:
    """The side that a source is compared with where none is named, in words."""
    name = Path(a).name if isinstance(a, (str, os.PathLike)) else "the source"
    if backend is None:
        return f"{name} was compared with what dmlc compile makes of it for directml"
    return f"{name} was compared with itself on {backend}"


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
    parts = backends_of(text)
    if len(parts) == 2:
        return parts[0], parts[1]
    return (None, parts[0]) if alone else (parts[0], parts[0])


def _is_code(source: SideSource | None) -> bool:
    return isinstance(source, (str, os.PathLike)) and Path(source).suffix.lower() == ".py"


def _original(a: SideSource, backend: str | None, options: CompileOptions, b: SideSource | None) -> Inside:
    """The first side; code shows its steps by the reference, or by B's steps."""
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
