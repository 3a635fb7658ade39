"""Say whether a program or a model will run on the target, node by node; nothing is written.

A .dml program is compiled first; an .onnx model is looked at as it is, which is what a user of it would load.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from dmlc import api, importers
from dmlc.cli.console import Console, count
from dmlc.cli.findings import diagnostics_of, github_text, sarif_text
from dmlc.cli.options import add_compile_options, add_report_options, add_source, limits_of
from dmlc.cli.placement_view import placement_json, placement_text
from dmlc.cli.signatures import signature_json
from dmlc.cli.source import STDIN, compile_source, node_count, read_source
from dmlc.codegen.onnx.placement import Placement, placement
from dmlc.diagnostics import Diagnostic, DmlcError, Source
from dmlc.diagnostics.catalogue.runs import FEATURE_LEVEL
from dmlc.diagnostics.limits import Limits
from dmlc.records import dataclass
from dmlc.runtime import files
from dmlc.targets import Target, load_target, target_names
from dmlc.targets.directml import feature_levels, least_feature_level, level_key

#: The opsets that are tried where a fix is looked for, the target's own first.
_OTHER_OPSETS = (20, 18, 17, 13, 11)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_compile_options(parser)
    add_report_options(parser, ("text", "json", "sarif", "github"))


@dataclass(frozen=True, slots=True)
class _Found:
    """What was looked at: the program that was compiled, the report, and what is to be said; how much of that is
    advice of the passes."""

    program: api.Program | None
    report: Placement
    diagnostics: list[Diagnostic]
    advice: int


def run(args: argparse.Namespace, console: Console) -> int:
    if args.format not in ("sarif", "github"):
        return _run(args, console)
    try:
        found = _look(args, console)
        code, said = _code(args, found), found.diagnostics
    except DmlcError as error:
        code, said = error.exit_code, list(error.diagnostics)
    write = sarif_text if args.format == "sarif" else github_text
    sys.stdout.write(write(args.source, said))
    return code


def _run(args: argparse.Namespace, console: Console) -> int:
    target = load_target(args.target) if args.target in target_names() else None
    if target is None or target.provider is None:
        return _compiles(args, console)
    found = _look(args, console)
    code = _code(args, found)
    console.warn(found.diagnostics)
    if not console.quiet or code:
        console.result(_summary(args, found, code) + placement_text(found.report))
    fields = {"source": args.source, "target": target.name, **placement_json(found.report)}
    if found.program is not None:
        fields |= signature_json(found.program.signature)
        fields["notes"] = list(found.program.artifact("onnx").report)
    console.document(fields, ok=code == 0)
    return code


def _code(args: argparse.Namespace, found: _Found) -> int:
    report = found.report
    low = level_key(report.feature_level) < level_key(least_feature_level())
    strict = args.strict and (report.count("cpu") or report.count("unknown") or found.advice)
    return 1 if report.fails or low or strict else 0


# --- looking


def _look(args: argparse.Namespace, console: Console) -> _Found:
    target = _checked_target(args)
    with console.progress(args.source) as progress:
        program, refused = _compiled(args, progress)
        report = _report(args, target, program)
    advice = [] if program is None else list(program.advice)
    said = [*refused, *advice]
    if level_key(report.feature_level) < level_key(least_feature_level()):
        message = f"ONNX Runtime needs DirectML feature level {least_feature_level()}, not {report.feature_level}"
        said.append(Diagnostic(FEATURE_LEVEL, message, help=f"--feature-level {least_feature_level()}"))
    bad = [finding for _, finding in report.findings if finding.effect in _effects(args)]
    fix = _fix(args, target, report) if bad else ""
    locations = program.artifact("onnx").locations if program is not None and not _is_model(args) else {}
    is_read = not _is_model(args) and args.source != STDIN
    source = read_source(args.source, Limits.of(limits_of(args))) if is_read else Source(args.source, "")
    said += diagnostics_of(report, fix=fix, strict=args.strict, locations=locations, source=source)
    return _Found(program, report, said, len(advice))


def _checked_target(args: argparse.Namespace) -> Target:
    """Raises ``DmlcError`` E0550, E0556 for what there is not."""
    if args.feature_level not in (None, *feature_levels()) or args.target not in target_names():
        compile_source(args)  # which says it as it always does
    return load_target(args.target)


def _is_model(args: argparse.Namespace) -> bool:
    return Path(args.source).suffix.lower() == ".onnx"


def _options(args: argparse.Namespace, **changes: object) -> argparse.Namespace:
    """The options for compiling: what the report itself looks after is left to it."""
    low = args.feature_level is not None and level_key(args.feature_level) < level_key(least_feature_level())
    given = {**vars(args), "strict": False, "feature_level": None if low else args.feature_level}
    return argparse.Namespace(**{**given, **changes})


def _compiled(args: argparse.Namespace, progress: object) -> tuple[api.Program | None, Iterable[Diagnostic]]:
    """The program; for a model that the target refuses, None and why: the report says it of the model as it is."""
    try:
        program = compile_source(_options(args), progress=progress)  # type: ignore[arg-type]
        program.artifact("onnx")
        return program, ()
    except DmlcError as error:
        if not _is_model(args) or not all(d.code.id.startswith("E050") for d in error.diagnostics):
            raise
        return None, ()


def _report(args: argparse.Namespace, target: Target, program: api.Program | None) -> Placement:
    level = args.feature_level or target.feature_level
    if not _is_model(args) or (program is not None and (args.f64 or args.accumulate)):
        assert program is not None
        found: Placement = program.placement(level)
        return found
    path = Path(args.source)
    model = program.source_model if program is not None else None
    if model is None:
        limits = Limits.of(limits_of(args))
        model = importers.read_model(path, files.read_bytes(path, limits), limits)
    return placement(model, target, feature_level=level, binding=dict(args.bind))


def _effects(args: argparse.Namespace) -> tuple[str, ...]:
    return ("fails", "wrong", "cpu") if args.strict else ("fails", "wrong")


def _fix(args: argparse.Namespace, target: Target, report: Placement) -> str:
    """A command line that was tried and leaves nothing of what is wrong; empty where none does."""
    if args.source == STDIN:
        return ""
    first = [] if not _is_model(args) and args.opset is None else [None]
    opsets = [*first, *(o for o in (target.opset, *_OTHER_OPSETS) if target.min_opset <= o <= target.max_opset)]
    tries = [(opset, args.f64) for opset in opsets]
    if args.f64 is None and any("f64" in finding.limit for _, finding in report.findings):
        tries += [(opset, "f32") for opset in [None, *opsets]]
    for opset, f64 in tries:
        try:
            program = compile_source(_options(args, opset=opset, f64=f64))
            after = program.placement(report.feature_level)
        except DmlcError:
            continue
        if not any(finding.effect in _effects(args) for _, finding in after.findings):
            return _command(args, opset, f64)
    return ""


def _command(args: argparse.Namespace, opset: int | None, f64: str | None) -> str:
    path = Path(args.source)
    out = path.with_name(f"{path.stem}.fixed.onnx") if _is_model(args) else path.with_suffix(".onnx")
    words = ["dmlc", "compile", args.source, "-o", str(out)]
    words += ["--target", args.target] if args.target != "directml" else []
    words += ["--opset", str(opset)] if opset is not None else []
    words += ["--f64", f64] if f64 is not None else []
    words += ["--accumulate", args.accumulate] if args.accumulate is not None else []
    for name, size in args.bind:
        words += ["--bind", f"{name}={size}"]
    return shlex.join(words)


# --- saying


def _summary(args: argparse.Namespace, found: _Found, code: int) -> str:
    report = found.report
    if code:
        warned = f"; {count(found.advice, 'warning')} of numbers and sizes" if found.advice else ""
        return f"{args.source}: not fine for {report.target}: {report.verdict}{warned}\n"
    if found.program is None:
        return f"{args.source}: fine for {report.target}: {report.verdict}\n"
    signature = found.program.signature
    parts = [count(len(signature.inputs), "input"), count(len(signature.outputs), "output"), report.verdict]
    if signature.conditions:
        parts.append(f"{count(len(signature.conditions), 'relation')} of sizes left to run time")
    return f"{args.source}: {signature.name} is fine for {report.target}: {', '.join(parts)}\n"


def _compiles(args: argparse.Namespace, console: Console) -> int:
    """Whether it compiles for a target of whose placement nothing is told."""
    with console.progress(args.source) as progress:
        program = compile_source(args, progress=progress)
    console.warn(program.diagnostics)
    artifact = program.artifact("numpy" if program.target.name == "numpy" else "onnx")
    signature = program.signature
    parts = [
        count(len(signature.inputs), "input"),
        count(len(signature.outputs), "output"),
        count(node_count(program.graph), "node"),
    ]
    if signature.conditions:
        parts.append(f"{count(len(signature.conditions), 'relation')} of sizes left to run time")
    if not console.quiet:
        console.result(f"{args.source}: {signature.name} is fine for {program.target.name}: {', '.join(parts)}")
    for sentence in artifact.report:
        console.say(f"note: {sentence}")
    console.document(
        {
            "source": args.source,
            "target": program.target.name,
            "opset": program.opset,
            "nodes": node_count(program.graph),
            **signature_json(signature),
            "notes": list(artifact.report),
        }
    )
    return 0
