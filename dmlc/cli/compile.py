"""Compile a program or a model and write ONNX, NumPy code, DxDispatch JSON or a program.

OUT's suffix decides the form (.onnx .py .dxdispatch.json .dml), or --emit does. Without -o an .onnx file is written
next to a .dml program; for an .onnx model -o is required.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dmlc import api
from dmlc.cli.compile_options import add_compile_options
from dmlc.cli.console import Console, UsageError, human_bytes
from dmlc.cli.counts import as_written, nodes_after, operations, timing_lines
from dmlc.cli.inputs import add_sized_inputs, sized_inputs
from dmlc.cli.loading import begin_loading
from dmlc.cli.options import add_report_options, add_source
from dmlc.cli.signatures import signature_facts
from dmlc.cli.source import STDIN, compile_source, is_model, open_source
from dmlc.diagnostics.counted import counted
from dmlc.passes.options import OPTIONS
from dmlc.runtime import files
from dmlc.targets import load_target, target_names

if TYPE_CHECKING:
    from dmlc.codegen.artifact import Artifact
    from dmlc.ir import Array
    from dmlc.verifying import Verdict

STDOUT = "-"
#: The options that most people need; ``--help-all`` shows the others too.
COMMON_OPTIONS = ("--output", "--verify", "--verbose", *[one.flag for one in OPTIONS.values() if one.common])


def answers() -> tuple[type, ...]:
    """Return the records of the documents."""
    from dmlc.cli.compile_answer import CompileAnswer
    from dmlc.cli.rule_list import RuleList

    return CompileAnswer, RuleList


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser, optional=True)
    parser.add_argument("-o", "--output", metavar="OUT", help="the file to write; - is stdout")
    parser.add_argument(
        "--emit", choices=("onnx", "numpy", "dxdispatch", "dml"), help="the form, instead of OUT's suffix"
    )
    parser.add_argument(
        "--style",
        choices=("plain", "fast"),
        help="the style of NumPy code: plain (default), as written by hand, or fast argmax, hardmax and top_k",
    )
    parser.add_argument(
        "--weights",
        choices=("inline", "copy", "reference"),
        help="where weights in other files go: into OUT, into OUT.HASH.data, or they stay",
    )
    group = parser.add_argument_group("reports")
    group.add_argument("--dry-run", action="store_true", help="write no file")
    group.add_argument("--diff", action="store_true", help="show the graph's text before and after as a unified diff")
    group.add_argument("--ledger", metavar="OUT.json", help="write every rewrite that was applied")
    group.add_argument("--report", metavar="OUT.html", help="write a page about the compilation, as dmlc report does")
    group.add_argument("--list-rules", action="store_true", help="list the rewrites by name; no SRC is needed")
    group.add_argument("--verify", type=int, metavar="N", help="compare SRC and the result on N seeded inputs")
    group.add_argument(
        "--verify-seed", type=int, default=0, metavar="SEED", help="the seed of these inputs (default: 0)"
    )
    add_sized_inputs(parser)
    add_compile_options(parser, "compile")
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.list_rules:
        from dmlc.cli.rule_list import list_rules

        return list_rules(console)
    kind, output = _form(args)
    if args.tune and args.tuning is None and output != STDOUT and not args.dry_run:
        args.tuning = str(Path(output).with_suffix(".tuning.json"))
    _check_usage(args, console, kind, output)
    begin_loading(kind, args.target)
    if args.profiles:
        from dmlc.cli.profiles import compile_profiles

        return compile_profiles(args, console, output)
    start = time.perf_counter()
    source = open_source(args)
    with console.progress(args.source) as progress:
        progress("reading")
        program = compile_source(args, source=source, for_numpy=kind in ("numpy", "dxdispatch"), progress=progress)
        inputs = sized_inputs(args, program)
        progress("making code")
        if kind != "dml":  # the weights of a program go into a file as it is written
            _artifact(args, program, kind, output)
        if kind == "onnx":
            program.require_sound()
        progress("verifying")
        verdict, size = _verified(args, program, kind, output)
        if verdict is not None:
            console.judged(verdict)
        is_fine = verdict is None or verdict.ok
        progress("writing")
        if is_fine and not size:
            size = _write(args, program, kind, output)
    console.warn(program.problems() if kind == "onnx" else program.diagnostics)
    if verdict is not None and not is_fine:
        _document(console, _outcome(program, kind, output, verdict), ok=False)
        return 1
    seconds = time.perf_counter() - start
    if args.diff:
        console.result(_diff(program))
    _report(args, console, program, _Written(kind, output, size, seconds, inputs), source, verdict)
    if args.report is not None and not args.dry_run:
        from dmlc.cli.report_facts import write_page

        plain = None if program.source_graph.joined is None else as_written(args, program, source)
        size = write_page(args, args.report, program, plain, verdict, inputs)
        console.say(f"{args.report}: {human_bytes(size, short=True)}")
    return 0


# --- what is asked for


def _form(args: argparse.Namespace) -> tuple[str, str]:
    """Return the artifact kind and the output path."""
    if args.source is None:
        raise UsageError("SRC is needed")
    default = load_target(args.target).code if args.target in target_names() else "onnx"
    if args.output is None:
        source = Path(args.source)
        nameless = args.source == STDIN or is_model(args.source) or not source.name
        if nameless and not args.dry_run:
            if args.source != STDIN and not source.exists():
                files.read_bytes(source)
            raise UsageError("give an output file: -o OUT.onnx")
        kind = args.emit or default
        suffix = next(suffix for suffix, name in api.SUFFIXES.items() if name == kind)
        return kind, STDOUT if nameless else str(source.with_suffix(suffix))
    output: str = args.output
    return args.emit or (default if output == STDOUT else api.kind_of(output)), output


def _check_usage(args: argparse.Namespace, console: Console, kind: str, output: str) -> None:
    if output == STDOUT and not args.dry_run:
        if console.json:
            raise UsageError("-o - and --format json both want stdout")
        if args.diff:
            raise UsageError("-o - and --diff both want stdout")
    if args.style is not None and kind != "numpy":
        raise UsageError(f"--style is for NumPy code, and OUT is {kind}")
    args.style = args.style or "plain"
    if args.report is not None:
        _check_report(args, kind, output)
    if args.verify is not None and args.verify < 1:
        raise UsageError(f"--verify takes a number of inputs, 1 or more, not {args.verify}")
    if args.profiles:
        from dmlc.cli.profiles import check_profile_usage, written_paths

        if args.input:
            raise UsageError("--input is for the next command, and --profile prints none")
        check_profile_usage(args, kind, output == STDOUT)
        for path in written_paths(args, output):
            check_apart("a file of --profile", str(path), "SRC", args.source)
        return
    check_apart("OUT", output, "SRC", args.source)
    if args.tuning is not None:
        check_apart("--tuning", args.tuning, "SRC", args.source)
        check_apart("--tuning", args.tuning, "OUT", output)
    if args.ledger is not None:
        if args.ledger == STDOUT:
            raise UsageError("--ledger takes a file; --format json says where the ledger is of use on stdout")
        check_apart("--ledger", args.ledger, "SRC", args.source)
        check_apart("--ledger", args.ledger, "OUT", output)


def _check_report(args: argparse.Namespace, kind: str, output: str) -> None:
    from dmlc.cli.report_facts import check_page

    check_page(args.report)
    if kind != "onnx" or args.profiles:
        raise UsageError(f"--report is about one ONNX model, not about {'--profile' if args.profiles else kind}")
    check_apart("--report", args.report, "SRC", args.source)
    check_apart("--report", args.report, "OUT", output)


def check_apart(what: str, path: str, other: str, taken: str) -> None:
    """Raises ``UsageError`` where two files of the command line are one."""
    if STDOUT not in (path, taken) and _same(Path(path), Path(taken)):
        raise UsageError(f"{what} is {other}: {path} would be overwritten; name another file")


def _same(a: Path, b: Path) -> bool:
    try:
        return a.resolve() == b.resolve() or a.samefile(b)
    except (OSError, ValueError):  # one of them does not exist
        return False


# --- what is done


def _artifact(args: argparse.Namespace, program: api.Program, kind: str, output: str) -> Artifact:
    """The artifact for OUT, which the notes are about."""
    return api.emitted_to(program, kind, None if output == STDOUT else Path(output), args.style)


def _verified(args: argparse.Namespace, program: api.Program, kind: str, output: str) -> tuple[Verdict | None, int]:
    """The verdict, and the size of OUT if it was verified as it was written; the ledger comes before it."""
    if args.verify is None:
        return None, 0
    if kind != "onnx" or args.dry_run or output == STDOUT:
        return program.verify(args.verify, seed=args.verify_seed), 0
    from dmlc.api.verified import save_verified

    path, ledger = Path(output), partial(_write_ledger, args, program)
    given: dict[str, Any] = {"inputs": args.verify, "seed": args.verify_seed, "weights": args.weights}
    verdict = save_verified(program, path, **given, first=ledger)
    return verdict, path.stat().st_size if verdict.ok else 0


def _write_ledger(args: argparse.Namespace, program: api.Program) -> None:
    if args.ledger is not None and not args.dry_run:
        files.spare_weights(program.source_graph, Path(args.ledger))
        files.write_bytes(Path(args.ledger), _ledger(program))


def _write(args: argparse.Namespace, program: api.Program, kind: str, output: str) -> int:
    """Write OUT and the ledger; the size of OUT. The ledger comes first, so that where OUT is, all is."""
    _write_ledger(args, program)
    if args.dry_run or output == STDOUT:
        data = program.to_bytes(kind, args.style)
        if kind == "dxdispatch":
            data = _artifact(args, program, kind, output).payload.encode("utf-8")
        if not args.dry_run:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        return len(data)
    options: dict[str, Any] = {} if args.weights is None else {"weights": args.weights}
    program.save(output, kind=kind, style=args.style, **options)
    return Path(output).stat().st_size


def _ledger(program: api.Program) -> bytes:
    text = json.dumps(program.ledger_document(), indent=2, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "backslashreplace")


def _diff(program: api.Program) -> str:
    """The graph's text before and after; constants of more than a few elements are not shown."""
    from dmlc.ir.printer import print_graph

    before, after = (print_graph(graph).splitlines() for graph in (program.source_graph, program.graph))
    return "".join(line + "\n" for line in difflib.unified_diff(before, after, "as written", "compiled", lineterm=""))


# --- reports


class _Written(NamedTuple):
    """The file that was written: its kind, its path, its bytes, the seconds that all took, and the arrays of
    ``--input``."""

    kind: str
    output: str
    size: int
    seconds: float
    inputs: dict[str, Array]


def _report(
    args: argparse.Namespace,
    console: Console,
    program: api.Program,
    written: _Written,
    source: Any,
    verdict: Verdict | None,
) -> None:
    kind, output, size, seconds, _ = written
    nodes = (nodes_after(program) if kind == "onnx" else operations(program.graph)).total()
    notes = () if kind == "dml" else _artifact(args, program, kind, output).report
    if kind == "onnx" and program.load_check().unchecked:
        notes = (*notes, program.load_check().unchecked)
    if program.tuner is not None:
        notes = (*notes, program.tuner.summary())
    fields: dict[str, Any] = {
        **_outcome(program, kind, output, verdict),
        "written": not args.dry_run,
        "nodes": nodes,
        "bytes": size,
        **signature_facts(program.signature),
        "notes": list(notes),
        "rewrites": len(program.ledger),
    }
    if kind == "onnx" and (console.json or not console.quiet):
        _report_model(args, console, program, written, source, fields, notes)
    else:
        line = f"{_target(program, kind)}, {counted(nodes, 'operation')}, {human_bytes(size, short=True)}"
        console.say(f"{_where(args, output)}: {line}, {seconds:.2f} s\n")
        _say_notes(console, notes)
    for line in timing_lines(program):
        console.detail(line)
    if args.diff:
        fields["diff"] = _diff(program)
    _document(console, fields)


def _document(console: Console, fields: Mapping[str, Any], *, ok: bool = True) -> None:
    """Write the document, where JSON was asked for: only that loads what it needs."""
    if console.json:
        from dmlc.cli.compile_answer import CompileAnswer

        console.document(CompileAnswer(**fields), ok=ok)


def _report_model(
    args: argparse.Namespace,
    console: Console,
    program: api.Program,
    written: _Written,
    source: Any,
    fields: dict[str, Any],
    notes: Iterable[str],
) -> None:
    """Print the effect on an ONNX model, and add it to the fields of the document. It loads onnx's inference, which
    code for NumPy does without."""
    from dmlc.cli.compile_view import first_line, rewritten_text, table_text
    from dmlc.cli.model_comparison import compare, compared_facts
    from dmlc.cli.next_steps import NextStep, later_steps, requires_line, steps_text
    from dmlc.cli.placement_view import copies_facts, requirements_of

    is_model = program.source_model is not None or program.source_graph.joined is not None
    plain = as_written(args, program, source) if is_model or console.json or console.verbose else None
    found = compare(program, args.source, written.size, written.seconds, plain)
    steps: list[NextStep] = []
    sizes = None
    if program.target.provider is not None:
        steps, sizes = later_steps(["dmlc", "compile", *args.words], program, written.inputs)
        fields["transfers"] = copies_facts(program.placement())
    required = requirements_of(program)
    fields |= {**compared_facts(found), "seconds": round(written.seconds, 3)}
    fields |= {"next": steps, "requires": required.facts()}
    console.say(f"{_where(args, written.output)}: {first_line(program, found)}, {written.seconds:.2f} s")
    if not console.json:
        at = {} if sizes is None else sizes.binding
        table = table_text(program, found, at, verbose=console.verbose)
        parts = [f"\n{table}\n" if table else "", rewritten_text(program, found)]
        parts.append(steps_text(steps))
        parts.append(requires_line(required))
        console.say("".join(parts) or "")
    _say_notes(console, notes)


def _say_notes(console: Console, notes: Iterable[str]) -> None:
    for sentence in notes:
        console.say(f"note: {sentence}")


def _where(args: argparse.Namespace, output: str) -> str:
    if args.dry_run:
        return "dry run" if output == STDOUT else f"{output} (not written)"
    return "stdout" if output == STDOUT else output


def _target(program: api.Program, kind: str) -> str:
    return "directml" if kind == "dxdispatch" else program.target.name


def _outcome(program: api.Program, kind: str, output: str, verdict: Verdict | None) -> dict[str, Any]:
    """The fields of the JSON document that it has whatever the verdict is."""
    fields: dict[str, Any] = {
        "output": output if output != STDOUT else "stdout",
        "written": False,
        "kind": kind,
        "target": _target(program, kind),
        "opset": program.opset,
    }
    return fields if verdict is None else {**fields, "verification": verdict.facts()}
