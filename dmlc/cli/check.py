"""Report whether a program or a model runs on the target, and what improves it; only --fix writes.

A .dml program is compiled first. An .onnx model is checked as it is, which is what a user of it would load.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NotRequired

from msgspec import UNSET, Struct, UnsetType, structs

from dmlc import api
from dmlc.api.checking import CheckResult, check
from dmlc.cli.check_view import details, first_line, next_of_check
from dmlc.cli.command_words import compile_words, compiled_path, writable
from dmlc.cli.compile_options import add_compile_options
from dmlc.cli.console import Console
from dmlc.cli.counts import nodes_after
from dmlc.cli.findings import github_text, sarif_text, with_fix
from dmlc.cli.fixing import FixedJson, add_fix, check_fix, fixed, fixed_json
from dmlc.cli.inputs import add_sized_inputs
from dmlc.cli.library_page import LibraryAnswer, show_library
from dmlc.cli.loading import begin_loading
from dmlc.cli.many import run_each
from dmlc.cli.next_steps import NextStep, requires_line, steps_text
from dmlc.cli.node_data import check_node_data, write_node_data
from dmlc.cli.options import add_report_options, add_sources
from dmlc.cli.placement_view import CopiesFacts, NodeFacts, placement_facts
from dmlc.cli.schemas import CommandFailure
from dmlc.cli.signatures import SignatureFacts, signature_facts
from dmlc.cli.source import STDIN, compile_keywords, compile_source, is_model, open_source
from dmlc.diagnostics import Diagnostic, DmlcError, judged, refuses
from dmlc.diagnostics.catalogue.advice import ON_CPU
from dmlc.diagnostics.grouping import grouped
from dmlc.diagnostics.paste import pasteable
from dmlc.ir.answers import Size
from dmlc.passes.unknown_ranks import notes_on_ranks, unknown_ranks
from dmlc.placement.advice import PLACEMENT_CODES, diagnose
from dmlc.placement.report import Placement
from dmlc.placement.requirements import RequirementFacts, Requirements, requirements
from dmlc.targets import Target, load_target
from dmlc.targets.directml import least_feature_level, level_key
from dmlc.text import LibraryError

#: The opsets that are tried where a fix is looked for, the target's own first.
_OTHER_OPSETS = (20, 18, 17, 13, 11)
#: The formats that hold the diagnostics alone.
_WRITERS = {"sarif": sarif_text, "github": github_text}


class CheckAnswer(SignatureFacts, frozen=True, kw_only=True):
    """The findings about a program or a model.

    Those about its placement are there if the target has a provider; without one ``nodes`` is their number. A model
    that the target refuses has no interface. ``fixed``, ``text`` and ``output`` are those of ``--fix``.
    """

    source: str
    target: str
    next: list[NextStep] | UnsetType = UNSET
    requires: RequirementFacts | UnsetType = UNSET
    output: str | UnsetType = UNSET
    opset: int
    feature_level: str | UnsetType | None = UNSET
    first_feature_level: str | UnsetType | None = UNSET
    verdict: str | UnsetType = UNSET
    partitions: int | UnsetType = UNSET
    obstacles: list[str] | UnsetType = UNSET
    dispatches: Size | UnsetType | None = UNSET
    bytes: Size | UnsetType | None = UNSET
    transfers: CopiesFacts | UnsetType = UNSET
    open_dims: list[str] | UnsetType = UNSET
    open_inputs: list[str] | UnsetType = UNSET
    counts: dict[str, int] | UnsetType = UNSET
    nodes: int | list[NodeFacts]
    notes: list[str] | UnsetType = UNSET
    unknown_ranks: list[str] | UnsetType = UNSET
    unchecked: str | UnsetType = UNSET
    fixed: list[FixedJson] | UnsetType = UNSET
    text: str | UnsetType = UNSET


class CheckFailure(CommandFailure):
    """A program that does not compile; ``fixed`` and ``text`` are those of ``--fix``."""

    fixed: NotRequired[list[FixedJson]]
    text: NotRequired[str]


ANSWERS, FAILURE = (CheckAnswer, LibraryAnswer), CheckFailure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sources(parser)
    add_fix(parser)
    add_sized_inputs(parser)
    help = "write where each node of one SRC runs, as node data for Model Explorer"
    parser.add_argument("--node-data", metavar="OUT.json", help=help)
    add_compile_options(parser)
    add_report_options(parser, ("text", "json", "sarif", "github"))


class _Findings(Struct, frozen=True):
    """The result of the check; ``written`` is the fixed model that was written and is checked instead."""

    result: CheckResult
    written: str = ""

    @property
    def code(self) -> int:
        return 0 if self.result.ok else 1


def run(args: argparse.Namespace, console: Console) -> int:
    check_fix(args)
    if args.node_data is not None:
        check_node_data(args)
    write = _WRITERS.get(args.format)
    if write is None:
        return run_each(args, console, _check)
    found: list[Diagnostic] = []

    def collect(one: argparse.Namespace, voice: Console) -> int:
        try:
            seen = _look(_fixed(one, voice), voice)
            code, diagnostics = seen.code, seen.result.diagnostics
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


def _look(args: argparse.Namespace, console: Console) -> _Findings:
    """The findings, with the command that mends each. Raises ``DmlcError`` for what does not compile."""
    begin_loading("onnx", args.target)
    with console.progress(args.source) as progress:
        found = check(open_source(args), **compile_keywords(args), progress=progress)
    report, diagnostics = found.placement, found.diagnostics
    if report is None:
        return _Findings(found)
    if not args.strict:
        diagnostics = tuple(_with_cures(args, diagnostics, found.program))
    if any(d.severity == "error" and d.code in PLACEMENT_CODES for d in diagnostics):
        other = _other_options(args, load_target(args.target), report)
        if other is not None and args.fix and _is_model(args) and other.f64 == args.f64:
            return _written(args, other, report.feature_level)
        if other is not None:
            diagnostics = tuple(with_fix(d, _command(args, other)) for d in diagnostics)
    return _Findings(structs.replace(found, diagnostics=diagnostics))


def _is_model(args: argparse.Namespace) -> bool:
    return is_model(args.source)


def _options(args: argparse.Namespace, **changes: object) -> argparse.Namespace:
    """The options for compiling: what the report itself looks after is left to it."""
    low = args.feature_level is not None and level_key(args.feature_level) < level_key(least_feature_level())
    given = {**vars(args), "strict": False, "feature_level": None if low else args.feature_level}
    return argparse.Namespace(**{**given, **changes})


class _OtherOptions(Struct, frozen=True):
    """Options under which nothing is left of what is wrong, and the program that they make."""

    opset: int | None
    f64: str | None
    program: api.Program


def _written(args: argparse.Namespace, other: _OtherOptions, level: str | None) -> _Findings:
    """Write the model that ``_command`` names, and look at it: the result is about that one."""
    path = _output(args)
    other.program.save(path)
    report: Placement = other.program.placement(level)
    found = [d for _, d in diagnose(report)]
    diagnostics = judged([d.in_file(str(path)) for d in [*found, *other.program.advice]], strict=args.strict)
    result = CheckResult(str(path), other.program.target.name, other.program, report, diagnostics)
    return _Findings(result, str(path))


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
    return writable(path.with_name(f"{path.stem}.fixed.onnx") if _is_model(args) else path.with_suffix(".onnx"))


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


def _show(args: argparse.Namespace, console: Console, found: _Findings) -> int:
    """The result as text or as the JSON document; the exit code."""
    if found.written:
        console.say(f"{args.source}: fixed in {found.written}")
    result, code = found.result, found.code
    program, report = result.program, result.placement
    fields: dict[str, Any] = {"source": args.source, "target": load_target(args.target).name}
    if not console.quiet or code or console.json:
        required = None if report is None else requirements(report)
        steps = [] if report is None or found.written else next_of_check(args, report, program)
        _say_answer(args, console, found, steps, required)
        if report is not None:
            fields |= {"next": steps, "requires": requirements(report).facts()}
    console.warn(result.diagnostics)
    if found.written:
        fields["output"] = found.written
    if report is not None:
        fields |= placement_facts(report)
    elif program is not None:
        fields |= {"opset": program.opset, "nodes": nodes_after(program).total()}
    if program is not None:
        notes = [*result.notes, *api.emitted(program, "numpy" if program.target.code == "numpy" else "onnx").report]
        fields |= {**signature_facts(program.signature), "notes": notes}
        for sentence in notes if report is None else result.notes:
            console.say(f"note: {sentence}")
        causes = unknown_ranks(program.source_graph)
        if causes:
            fields["unknown_ranks"] = list(map(str, causes))
            for note in notes_on_ranks(causes, verbose=console.verbose):
                console.say(f"note: {note}")
        unchecked = program.load_check().unchecked
        if unchecked:
            fields["unchecked"] = unchecked
            console.say(f"note: {unchecked}")
    if args.node_data is not None:
        write_node_data(args.node_data, result, console)
    console.document(CheckAnswer(**fields), ok=code == 0)
    return code


def _say_answer(
    args: argparse.Namespace,
    console: Console,
    found: _Findings,
    steps: Sequence[NextStep],
    required: Requirements | None,
) -> None:
    """Print the answer: the first line, the table, the next commands, and what is required."""
    name = found.written or args.source
    text = f"{first_line(found.result, name, args.target)}\n{details(found.result, verbose=console.verbose)}"
    last = steps_text(steps)
    last += "" if required is None else requires_line(required)
    text += f"\n{last}" if last else ""
    # stdout is the program's where --fix prints it
    show = console.say if args.fix and STDIN in args.sources else console.result
    show(text)
    sys.stdout.flush()  # warnings on stderr come after it
