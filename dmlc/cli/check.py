"""Report whether a program or a model runs on the target, and what improves it; only --fix writes.

A .dml program is compiled first. An .onnx model is checked as it is, which is what a user of it would load.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import Struct

from dmlc import api, importers
from dmlc.cli.check_view import headline, next_of_check, refusal_line, where_table
from dmlc.cli.command_words import compile_words, compiled_path
from dmlc.cli.console import Console
from dmlc.cli.counts import nodes_after
from dmlc.cli.findings import github_text, sarif_text, with_fix
from dmlc.cli.fixing import add_fix, check_fix, fixed, fixed_json
from dmlc.cli.library_page import show_library
from dmlc.cli.loading import begin_loading, kernel_help, why_not_loaded
from dmlc.cli.many import run_each
from dmlc.cli.next_steps import NextStep, requires_line, steps_text
from dmlc.cli.options import add_compile_options, add_report_options, add_sources, limits_of
from dmlc.cli.paste import pasteable
from dmlc.cli.placement_view import placement_json, placement_text
from dmlc.cli.signatures import signature_json
from dmlc.cli.source import STDIN, compile_source, is_model, shapes_of
from dmlc.diagnostics import Diagnostic, DmlcError, judged, refuses
from dmlc.diagnostics.catalogue.advice import ON_CPU
from dmlc.diagnostics.catalogue.runs import FEATURE_LEVEL, RUNTIME_FAILED
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.grouping import grouped
from dmlc.diagnostics.limits import Limits
from dmlc.inference.model_facts import types_by_name
from dmlc.passes.unknown_ranks import unknown_ranks
from dmlc.placement.advice import PLACEMENT_CODES, diagnose, located
from dmlc.placement.optimizer import optimizer_changes
from dmlc.placement.report import Placement, placement
from dmlc.placement.requirements import Requirements, requirements
from dmlc.runtime import files
from dmlc.runtime.session import opset_help
from dmlc.targets import Target, load_target, target_names
from dmlc.targets.directml import feature_levels, least_feature_level, level_key
from dmlc.text import LibraryError

#: The opsets that are tried where a fix is looked for, the target's own first.
_OTHER_OPSETS = (20, 18, 17, 13, 11)
#: The formats that hold the diagnostics alone.
_WRITERS = {"sarif": sarif_text, "github": github_text}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sources(parser)
    add_fix(parser)
    add_compile_options(parser)
    add_report_options(parser, ("text", "json", "sarif", "github"))


class _CheckResult(Struct, frozen=True):
    """The findings about a program or a model.

    ``program`` is None for a model that the target refuses, ``report`` for a target without a provider. Errors come
    first among the ``diagnostics``. ``written`` is the fixed model that was written and is checked instead. ``notes``
    are sentences about the model as it is.
    """

    program: api.Program | None
    report: Placement | None
    diagnostics: tuple[Diagnostic, ...]
    written: str = ""
    notes: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        return 1 if refuses(self.diagnostics) else 0


def run(args: argparse.Namespace, console: Console) -> int:
    check_fix(args)
    write = _WRITERS.get(args.format)
    if write is None:
        return run_each(args, console, _check)
    found: list[Diagnostic] = []

    def collect(one: argparse.Namespace, voice: Console) -> int:
        try:
            seen = _look(_fixed(one, voice), voice)
            code, diagnostics = seen.code, seen.diagnostics
        except LibraryError:
            code, diagnostics = 0, ()
        except DmlcError as error:
            code, diagnostics = error.exit_code, error.diagnostics
        found.extend([d.in_file(one.source) for d in diagnostics])
        return code

    code = run_each(args, console, collect)
    sys.stdout.write(write(args.sources[0], grouped(found)))
    return code


def _check(args: argparse.Namespace, console: Console) -> int:
    args = _fixed(args, console)
    try:
        return _show(args, console, _look(args, console))
    except LibraryError as error:
        return show_library(args, console, error.library, target=args.target)


def _fixed(args: argparse.Namespace, console: Console) -> argparse.Namespace:
    """The arguments with the program fixed, if that is asked for."""
    if not args.fix or _is_model(args):
        return args
    args = fixed(args, console)
    console.keep(fixed_json(args))
    return args


# --- looking


def _look(args: argparse.Namespace, console: Console) -> _CheckResult:
    """The program compiled, its placement and the diagnostics. Raises ``DmlcError`` for what does not compile."""
    target = _checked_target(args)
    begin_loading("onnx", args.target)
    with console.progress(args.source) as progress:
        if target.provider is None:
            program = compile_source(_options(args), progress=progress)
            api.emitted(program, _kind(program))
            progress("loading")
            return _loaded(args, program)
        compiled, refused = _compiled(args, progress)
        report = _report(args, target, compiled)
        progress("loading")
        found = [*refused, *_of_optimizer(args, compiled), *_of_level(report)]
        found += () if compiled is None else (*compiled.loading_problems(), *compiled.advice)
    locations = api.emitted(compiled, "onnx").locations if compiled is not None and not _is_model(args) else {}
    graph = compiled.source_graph if compiled is not None and not _is_model(args) else None
    found += located(report, locations, graph)
    diagnostics = judged([d.in_file(args.source) for d in found], strict=args.strict)
    if not args.strict:
        diagnostics = tuple(_with_cures(args, diagnostics, compiled))
    if any(d.severity == "error" and d.code in PLACEMENT_CODES for d in diagnostics):
        other = _other_options(args, target, report)
        if other is not None and args.fix and _is_model(args) and other.f64 == args.f64:
            return _written(args, other, report.feature_level)
        if other is not None:
            diagnostics = tuple(with_fix(d, _command(args, other)) for d in diagnostics)
    return _CheckResult(compiled, report, diagnostics, notes=_notes(compiled))


def _loaded(args: argparse.Namespace, program: api.Program) -> _CheckResult:
    """The problems of the program; for the target of the installed kernels ONNX Runtime makes a session too."""
    found = [d.in_file(args.source) for d in _of_optimizer(args, program)]
    problems = (*judged(found, strict=args.strict), *program.problems(strict=args.strict))
    is_certain = not program.load_check().unchecked and not program.loading_problems()
    if program.target.installed_kernels and is_certain:
        made = api.emitted(program, "onnx")
        why = why_not_loaded(made.payload, made.folder)
        if why:
            help = opset_help(made.payload, why) or kernel_help(why)
            refused = Diagnostic(RUNTIME_FAILED, f"ONNX Runtime refuses the model: {why}", help=help)
            problems = (refused.in_file(args.source), *problems)
    return _CheckResult(program, None, problems, notes=_notes(program))


def _notes(program: api.Program | None) -> tuple[str, ...]:
    note = "" if program is None else program.load_check().note
    return (note,) if note else ()


def _of_optimizer(args: argparse.Namespace, program: api.Program | None) -> list[Diagnostic]:
    """The warnings for what ONNX Runtime's optimizer changes in a model as it is."""
    model = program.source_model if program is not None and _is_model(args) else None
    return [] if model is None else optimizer_changes(model)


def _of_level(report: Placement) -> list[Diagnostic]:
    """The error for a feature level below the one that ONNX Runtime asks for."""
    least = least_feature_level()
    if level_key(report.feature_level) >= level_key(least):
        return []
    message = f"ONNX Runtime needs DirectML feature level {least}, not {report.feature_level}"
    return [Diagnostic(FEATURE_LEVEL, message, help=f"--feature-level {least}")]


def _checked_target(args: argparse.Namespace) -> Target:
    """Raises ``DmlcError`` E0550, E0556 for what there is not."""
    if args.feature_level not in (None, *feature_levels()) or args.target not in target_names():
        compile_source(args)  # raises the error of all commands
    return load_target(args.target)


def _is_model(args: argparse.Namespace) -> bool:
    return is_model(args.source)


def _options(args: argparse.Namespace, **changes: object) -> argparse.Namespace:
    """The options for compiling: what the report itself looks after is left to it."""
    low = args.feature_level is not None and level_key(args.feature_level) < level_key(least_feature_level())
    given = {**vars(args), "strict": False, "feature_level": None if low else args.feature_level}
    return argparse.Namespace(**{**given, **changes})


def _compiled(args: argparse.Namespace, progress: object) -> tuple[api.Program | None, Iterable[Diagnostic]]:
    """The program; for a model that the target refuses, None and why: the report says it of the model as it is."""
    try:
        program = compile_source(_options(args), progress=progress)  # type: ignore[arg-type]
        api.emitted(program, "onnx")
        return program, ()
    except DmlcError as error:
        if not _is_model(args) or not all(d.code.id.startswith("E050") for d in error.diagnostics):
            raise
        return None, ()


def _report(args: argparse.Namespace, target: Target, program: api.Program | None) -> Placement:
    level = args.feature_level or target.feature_level
    if not _is_model(args) or (program is not None and (args.f64 or args.accumulate or args.fuse)):
        assert program is not None
        found: Placement = program.placement(level)
        return found
    path = Path(args.source)
    model = program.source_model if program is not None else None
    if model is None:
        limits = Limits.of(limits_of(args))
        model = importers.read_model(path, files.read_bytes(path, limits, is_model=True), limits)
    types = None if program is None else types_by_name(program.source_graph)
    binding = importers.fix_shapes(model, shapes_of(args), dict(args.bind))
    return placement(model, target, feature_level=level, binding=binding, types=types)


class _OtherOptions(Struct, frozen=True):
    """Options under which nothing is left of what is wrong, and the program that they make."""

    opset: int | None
    f64: str | None
    program: api.Program


def _written(args: argparse.Namespace, other: _OtherOptions, level: str) -> _CheckResult:
    """Write the model that ``_command`` names, and look at it: the result is about that one."""
    path = _output(args)
    other.program.save(path)
    report: Placement = other.program.placement(level)
    found = [d for _, d in diagnose(report)]
    diagnostics = judged([d.in_file(str(path)) for d in [*found, *other.program.advice]], strict=args.strict)
    return _CheckResult(other.program, report, diagnostics, str(path))


def _other_options(args: argparse.Namespace, target: Target, report: Placement) -> _OtherOptions | None:
    """Options that were tried and leave nothing of what is wrong; None where none do."""
    if args.source == STDIN:
        return None
    first = [] if not _is_model(args) and args.opset is None else [None]
    opsets = [*first, *(o for o in (target.opset, *_OTHER_OPSETS) if target.min_opset <= o <= target.max_opset)]
    tries = [(opset, args.f64) for opset in opsets]
    if args.f64 is None and any("f64" in finding.limit for _, finding in report.findings):
        tries += [(opset, "f32") for opset in [None, *opsets]]
    for opset, f64 in tries:
        try:
            program = compile_source(_options(args, opset=opset, f64=f64))
            after = [d for _, d in diagnose(program.placement(report.feature_level))]
        except DmlcError:
            continue
        if not refuses(judged(after, strict=args.strict)):
            return _OtherOptions(opset, f64, program)
    return None


def _output(args: argparse.Namespace) -> Path:
    path = Path(args.source)
    return path.with_name(f"{path.stem}.fixed.onnx") if _is_model(args) else path.with_suffix(".onnx")


def _command(args: argparse.Namespace, other: _OtherOptions) -> str:
    """The command line that compiles with other options."""
    return pasteable(compile_words(args, _output(args), opset=other.opset, f64=other.f64, strict=False))


def _with_cures(
    args: argparse.Namespace, diagnostics: Sequence[Diagnostic], program: api.Program | None
) -> list[Diagnostic]:
    """The diagnostics; those about nodes on the CPU that ``compile`` takes off it have its command."""
    if program is None or not _is_model(args) or program.losses()[0]:
        return list(diagnostics)
    left = {d.of_nodes.message for _, d in diagnose(program.placement()) if d.of_nodes is not None}
    command = pasteable(compile_words(args, compiled_path(args.source)))
    return [
        replace(d, help=command)
        if d.code is ON_CPU and d.of_nodes is not None and d.of_nodes.message not in left
        else d
        for d in diagnostics
    ]


# --- saying


def _show(args: argparse.Namespace, console: Console, found: _CheckResult) -> int:
    """The result as text or as the JSON document; the exit code."""
    if found.written:
        console.say(f"{args.source}: fixed in {found.written}")
    program, report, code = found.program, found.report, found.code
    fields: dict[str, Any] = {"source": args.source, "target": load_target(args.target).name}
    if not console.quiet or code or console.json:
        required = None if report is None else requirements(report)
        steps = [] if report is None or found.written else next_of_check(args, report, program)
        _say_answer(args, console, found, steps, required)
        if report is not None:
            fields |= {"next": [step.to_json() for step in steps], "requires": requirements(report).to_json()}
    console.warn(found.diagnostics)
    if found.written:
        fields["output"] = found.written
    if report is not None:
        fields |= placement_json(report)
    elif program is not None:
        fields |= {"opset": program.opset, "nodes": nodes_after(program).total()}
    if program is not None:
        notes = [*found.notes, *api.emitted(program, _kind(program)).report]
        fields |= {**signature_json(program.signature), "notes": notes}
        for sentence in notes if report is None else found.notes:
            console.say(f"note: {sentence}")
        causes = unknown_ranks(program.source_graph)
        if causes:
            fields["unknown_ranks"] = [cause.of(cause.value) for cause in causes]
            for cause in causes:
                console.say(f"note: {cause.of(cause.value)}")
        unchecked = program.load_check().unchecked
        if unchecked:
            fields["unchecked"] = unchecked
            console.say(f"note: {unchecked}")
    console.document(fields, ok=code == 0)
    return code


def _say_answer(
    args: argparse.Namespace,
    console: Console,
    found: _CheckResult,
    steps: Sequence[NextStep],
    required: Requirements | None,
) -> None:
    """Print the answer: the first line, the table, the next commands, and what is required."""
    text = f"{_first_line(args, found)}\n{_details(found.program, found.report, console)}"
    last = steps_text(steps)
    last += "" if required is None else requires_line(required)
    text += f"\n{last}" if last else ""
    # stdout is the program's where --fix prints it
    show = console.say if args.fix and STDIN in args.sources else console.result
    show(text)
    sys.stdout.flush()  # warnings on stderr come after it


def _kind(program: api.Program) -> str:
    return "numpy" if program.target.code == "numpy" else "onnx"


def _first_line(args: argparse.Namespace, found: _CheckResult) -> str:
    """The answer in one line."""
    program, report, name = found.program, found.report, found.written or args.source
    if found.code:
        return refusal_line(name, args.target, report, found.diagnostics)
    if report is not None:
        return headline(name, args.target, report)
    assert program is not None
    noun = "operation" if program.target.code == "numpy" else "node"
    return f"{name} on {args.target}: runs, {counted(nodes_after(program).total(), noun)}"


def _details(program: api.Program | None, report: Placement | None, console: Console) -> str:
    """The table of a placed model, and with ``-v`` each node; the number of shape checks."""
    text = "" if report is None or not report.nodes else f"\n{where_table(report)}"
    checks = 0 if program is None else len(program.signature.conditions)
    if checks:
        text += f"\n  {counted(checks, 'shape check')} at run time\n"
    if report is not None and console.verbose:
        text += f"\n{placement_text(report)}"
    return text
