"""``dmlc compile --profile``: one model for each combination of sizes, and the index that says which is which."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from dmlc import api
from dmlc.cli.compile_answer import CompileAnswer, ProfileFacts
from dmlc.cli.compile_view import first_line
from dmlc.cli.console import Console, UsageError
from dmlc.cli.counts import as_written
from dmlc.cli.model_comparison import compare, compared_facts
from dmlc.cli.source import compile_keywords, compile_source, open_source
from dmlc.diagnostics import Diagnostic
from dmlc.diagnostics.counted import counted
from dmlc.runtime.profiles import index_path, profile_path
from dmlc.verifying import Verdict


def check_profile_usage(args: argparse.Namespace, kind: str, is_stdout: bool) -> None:
    """Raises ``UsageError`` for options that have no meaning for several files."""
    if kind != "onnx":
        raise UsageError(f"--profile writes ONNX models, and OUT is {kind}: NumPy code and programs take every size")
    if is_stdout and not args.dry_run:
        raise UsageError("--profile writes several files, so OUT is not stdout: name OUT with -o")
    for option in ("ledger", "diff"):
        if getattr(args, option):
            raise UsageError(f"--{option} is about one program, and --profile makes several: use --bind")


def written_paths(args: argparse.Namespace, output: str) -> list[Path]:
    """Every file that is written, the index last."""
    from dmlc.runtime.profiles import checked_profiles

    path, given = Path(output), compile_keywords(args)["profiles"]
    return [*[profile_path(path, sizes) for sizes in checked_profiles(given, {})], index_path(path)]


def compile_profiles(args: argparse.Namespace, console: Console, output: str) -> int:
    """Compile every profile, then write all files; the exit code. Raises ``DmlcError``; nothing is written then."""
    start = time.perf_counter()
    source = open_source(args)
    verdicts: list[Verdict] = []
    with console.progress(args.source) as progress:
        program = compile_source(args, source=source, progress=progress)
        profiles = {tuple(sizes): one for sizes, one in program.profiles.items()}
        for one in profiles.values():
            api.emitted(one, "onnx")
            one.require_sound()
        if args.verify is not None:
            progress("verifying")
            verdicts = [one.verify(args.verify, seed=args.verify_seed) for one in profiles.values()]
            for verdict in verdicts:
                console.judged(verdict)
        is_fine = all(verdict.ok for verdict in verdicts)
        if is_fine and not args.dry_run:
            progress("writing")
            program.save(output, kind="onnx", weights=args.weights)
    console.warn(_each_once(profiles.values()))
    fields: dict[str, Any] = {
        "output": str(index_path(Path(output))),
        "written": is_fine and not args.dry_run,
        "kind": "onnx",
        "target": program.target.name,
    }
    if verdicts:
        fields["verification"] = [verdict.facts() for verdict in verdicts]
    if is_fine:
        fields["profiles"] = _report(args, console, program, output, source)
        fields["seconds"] = round(time.perf_counter() - start, 3)
        shown = f"{fields['output']}{' (not written)' if args.dry_run else ''}"
        names = ", ".join(name for name, _ in next(iter(profiles)))
        console.say(f"{shown}: {counted(len(profiles), 'profile')} of {names}, {fields['seconds']:.2f} s")
    console.document(CompileAnswer(**fields), ok=is_fine)
    return 0 if is_fine else 1


def _each_once(programs: Any) -> list[Diagnostic]:
    """The diagnostics of all programs, those that several share once."""
    found = {(d.code.id, d.message, str(d.span)): d for one in programs for d in reversed(one.problems())}
    return list(reversed(list(found.values())))


def _report(
    args: argparse.Namespace, console: Console, program: api.Program, output: str, source: Any
) -> list[ProfileFacts]:
    """Print a line for each file, and return what the document says of each."""
    rows = []
    for sizes, one in program.profiles.items():
        path = profile_path(Path(output), dict(sizes))
        size = len(one.to_bytes("onnx")) if args.dry_run else path.stat().st_size
        bound = argparse.Namespace(**{**vars(args), "bind": [*args.bind, *sizes], "profiles": []})
        found = compare(one, args.source, size, 0.0, as_written(bound, one, source))
        where = f"{path}{' (not written)' if args.dry_run else ''}"
        console.say(f"{where}: {first_line(one, found)}")
        rows.append(ProfileFacts(dict(sizes), str(path), one.opset, size, **compared_facts(found)))
    return rows
