"""``check(source)``: report whether a program or a model runs on a target, and what improves it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dmlc import api
from dmlc.api.chosen_options import require_options
from dmlc.api.chosen_target import check_feature_level, chosen_target
from dmlc.api.measured_file import checked_probe
from dmlc.api.program import Program, emitted
from dmlc.api.sources import ProgramSource, name_of, onnx_model
from dmlc.diagnostics import Diagnostic, DmlcError, judged, option, refuses
from dmlc.diagnostics.catalogue.runs import FEATURE_LEVEL
from dmlc.diagnostics.limits import Limits
from dmlc.diagnostics.parameters import parameters_of
from dmlc.diagnostics.shown import Shown
from dmlc.ir.fixed_shapes import checked_shapes
from dmlc.passes.options import NUMBERS, OPTIONS
from dmlc.runtime.binding import checked_binding
from dmlc.targets import Target
from dmlc.targets.directml import least_feature_level, level_key

if TYPE_CHECKING:
    import onnx

    from dmlc.placement.report import Placement


class CheckResult(Shown, Struct, frozen=True):
    """The findings about a program or a model on a target.

    ``placement`` has each node of the model, and where it runs; it is None for a target without a provider.
    ``program`` is None for a model that the target refuses. Errors come first among the ``diagnostics``. ``notes`` are
    sentences about the model as it is.
    """

    source: str
    target: str
    program: Program | None
    placement: Placement | None
    diagnostics: tuple[Diagnostic, ...]
    notes: tuple[str, ...] = ()

    def headline(self) -> str:
        """Return the answer in one line."""
        return self.to_text().partition("\n")[0]

    @property
    def ok(self) -> bool:
        """False if a diagnostic is an error."""
        return not refuses(self.diagnostics)


@parameters_of(api.compile)
def check(source: ProgramSource, **options: Any) -> CheckResult:
    """Report whether a source of ``dmlc.compile`` runs on a target, and what improves it: ``dmlc check`` in Python.

    The keywords are those of ``dmlc.compile``. A program is compiled first. An ONNX model is checked as it is, which is
    what a user of it would load. With ``strict`` each warning is an error. Raises ``DmlcError`` for a source that
    cannot be read, and for a program that does not compile.
    """
    require_options("check", options)
    strict, level = options.pop("strict", False), options.pop("feature_level", None)
    goal = chosen_target(options.get("target", "directml"), None)
    if level is not None:
        check_feature_level(level)
    if goal.provider is None:
        return _loaded(source, api.compile(source, **options, feature_level=level), strict=strict)
    return _placed(source, goal, level, options, strict=strict)


def _placed(
    source: ProgramSource, goal: Target, level: str | None, options: Mapping[str, Any], *, strict: bool
) -> CheckResult:
    """The findings for a target with a provider, where ONNX Runtime places each node."""
    is_low = level is not None and level_key(level) < level_key(least_feature_level())
    program, model = _compiled(source, {**options, "feature_level": None if is_low else level})
    report = _placement(program, model, goal, level, options)
    if options.get("progress") is not None:
        options["progress"]("loading")
    found = [*_of_optimizer(program), *_of_level(report)]
    found += () if program is None else (*program.loading_problems(), *program.advice)
    found += _located(report, program, model)
    name = name_of(source)
    diagnostics = judged([d.in_file(name) for d in found], strict=strict)
    return CheckResult(name, goal.name, program, report, diagnostics, _notes(program))


def _compiled(source: ProgramSource, options: Mapping[str, Any]) -> tuple[Program | None, onnx.ModelProto | None]:
    """The program, and the model if the source is one. A model that the target refuses has no program."""
    try:
        program = api.compile(source, **options)
        emitted(program, "onnx")
        return program, program.source_model
    except DmlcError as error:
        if not all(d.code.id.startswith("E050") for d in error.diagnostics):
            raise
        found = onnx_model(source, Limits.of(options.get("limits")))
        if found is None:
            raise
        return None, found[0]


def _placement(
    program: Program | None,
    model: onnx.ModelProto | None,
    goal: Target,
    level: str | None,
    options: Mapping[str, Any],
) -> Placement:
    """The placement of a model as it is, or of what the program compiles to."""
    from dmlc import importers
    from dmlc.inference.model_facts import types_by_name
    from dmlc.placement.report import placement

    level = level or goal.feature_level
    is_changed = any(options.get(one.name) for one in OPTIONS.values() if one.group == NUMBERS)
    if program is not None and (model is None or is_changed):
        return program.placement(level)
    assert model is not None
    types = None if program is None else types_by_name(program.source_graph)
    shapes, binding = checked_shapes(options.get("shapes")), checked_binding(options.get("bind"))
    binding = importers.fix_shapes(model, shapes, binding)
    probe = checked_probe(options.get("probed"))
    return placement(model, goal, feature_level=level, binding=binding, types=types, probe=probe)


def _loaded(source: ProgramSource, program: Program, *, strict: bool) -> CheckResult:
    """The findings for other targets; for the target of the installed kernels ONNX Runtime makes a session too."""
    name = name_of(source)
    emitted(program, "numpy" if program.target.code == "numpy" else "onnx")
    found = [d.in_file(name) for d in _of_optimizer(program)]
    problems = (*judged(found, strict=strict), *program.problems(strict=strict))
    is_certain = not program.load_check().unchecked and not program.loading_problems()
    if program.target.installed_kernels and is_certain:
        from dmlc.api.load_check import session_check

        problems = (*[d.in_file(name) for d in session_check(emitted(program, "onnx"))], *problems)
    return CheckResult(name, program.target.name, program, None, problems, _notes(program))


def _notes(program: Program | None) -> tuple[str, ...]:
    note = "" if program is None else program.load_check().note
    return (note,) if note else ()


def _of_optimizer(program: Program | None) -> list[Diagnostic]:
    """The warnings for what ONNX Runtime's optimizer changes in a model as it is."""
    if program is None or program.source_model is None:
        return []
    from dmlc.placement.optimizer import optimizer_changes

    return optimizer_changes(program.source_model)


def _of_level(report: Placement) -> list[Diagnostic]:
    """The error for a feature level below the one that ONNX Runtime asks for."""
    least = least_feature_level()
    if report.feature_level is None or level_key(report.feature_level) >= level_key(least):
        return []
    message = f"ONNX Runtime needs DirectML feature level {least}, not {report.feature_level}"
    return [Diagnostic(FEATURE_LEVEL, message, help=option(f"--feature-level {least}", f"feature_level={least!r}"))]


def _located(report: Placement, program: Program | None, model: onnx.ModelProto | None) -> Iterable[Diagnostic]:
    """The findings of the placement, for a program at the source lines of the nodes."""
    from dmlc.placement.advice import located

    if program is None or model is not None:
        return located(report, {}, None)
    return located(report, emitted(program, "onnx").locations, program.source_graph)
