"""Report whether two models or programs compute the same, and where they differ.

Both run on inputs built to break rewrites, or on data of --input. A is the original: a .dml program, an .onnx model,
or a .py file with a function of arrays. The reference computes a program; a model runs on ONNX Runtime's CPU provider
without optimizations. B is the result: one of these, but a program is compiled; an .npz file with expected outputs; or
a .dxdispatch.json file of dmlc, whose result files are compared once DxDispatch has run. Without B, A is compared with
the expected outputs in the files of --input, with itself on two backends, or with its compiled form.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from dmlc import api, importers
from dmlc.api.artifact_meaning import needs_reference
from dmlc.cli.comparison import add_comparison, check_comparison
from dmlc.cli.compile_options import add_options, limits_of
from dmlc.cli.console import Console, UsageError
from dmlc.cli.inputs import expected_outputs, given_inputs
from dmlc.cli.layout import prose
from dmlc.cli.options import add_report_options
from dmlc.cli.schemas import CommandFailure
from dmlc.cli.source import STDIN, check_is_source, is_model, read_source
from dmlc.debugging import LocatedVerdict, Location, locate, verify
from dmlc.ir.history import CLASSES
from dmlc.passes.options import Options
from dmlc.runtime import files
from dmlc.verifying.verdict import VerdictFacts


class VerifyAnswer(VerdictFacts, frozen=True, kw_only=True):
    """The verdict on two models or programs; ``located`` and ``note`` are there if ``--locate`` is given."""

    original: str
    result: str | None
    seconds: float
    located: Location | UnsetType | None = UNSET
    note: str | UnsetType | None = UNSET
    summary: str


class VerifyFailure(CommandFailure):
    """A failure, such as a file that cannot be read."""

    verdict: Literal["not comparable"]


ANSWERS, FAILURE = (VerifyAnswer,), VerifyFailure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("original", metavar="A", help="a .dml program, an .onnx model or a .py file; - reads a program")
    parser.add_argument(
        "result",
        metavar="B",
        nargs="?",
        help="an .onnx model, a .dml program, a .py file, an .npz file with expected outputs out::NAME, or a "
        ".dxdispatch.json file that DxDispatch ran",
    )
    parser.add_argument("--locate", action="store_true", help="find the first tensor that differs, and its node")
    add_comparison(parser, inputs="how many inputs")
    parser.add_argument(
        "--backend", metavar="A:B", help=f"where the sides run, as in cpu:reference: {', '.join(api.BACKENDS)}"
    )
    parser.add_argument(
        "--output-path", metavar="DIR", help="the folder DxDispatch wrote results below (default: the one B is in)"
    )
    add_options(parser, "model", "include", "exact", "allow", "limits")
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    console.keep({"verdict": "not comparable"})  # for a failure; an answer has its own
    check_comparison(args)
    if args.exact and args.allow:
        raise UsageError("--exact and --allow contradict each other: give one of them")
    with console.progress(f"verifying {args.result or args.original}"):
        start = time.perf_counter()
        found = _found(args, console)
        found = replace(found, seconds=time.perf_counter() - start)
    verdict, ending = found.verdict, found.last_line()
    answer, _, details = found.to_text(whole=console.verbose).partition("\n")
    console.result(answer if console.quiet else f"{answer}\n{prose(details)}")
    if console.json:
        console.say(verdict.headline())
    console.record(verdict.diagnostics)
    fields = {"original": args.original, "result": args.result, "seconds": found.seconds, "summary": ending}
    fields |= {"located": found.location, "note": found.note or None} if args.locate else {}
    document = VerifyAnswer.of(verdict.facts(), **{"located": UNSET, "note": UNSET, **fields})
    console.document(document, ok=verdict.ok)
    return 0 if verdict.ok else 1


def _found(args: argparse.Namespace, console: Console) -> LocatedVerdict:
    limits = limits_of(args)
    name = args.result or ""
    if name == STDIN:
        raise UsageError("B is a file, not stdin")
    for source in (args.original, name):
        if source and not _ends(source, ".py", ".npz", ".dxdispatch.json"):
            check_is_source(source)
    if _ends(args.original, ".npz"):
        raise UsageError("A is a program, a model or a .py file, not data")
    if name and not _ends(name, ".py", ".npz", ".dxdispatch.json") and is_model(name) and args.backend is None:
        path = Path(name)
        if needs_reference(importers.read_model(path, files.read_bytes(path, limits), limits)):
            console.say(f"note: {name} is computed by the reference: it makes no promise for the CPU provider")
    inputs, expected = expected_outputs(args)
    feeds = {**inputs, **given_inputs(args)}
    given = [name for name, _ in args.input]
    options: dict[str, Any] = {
        "inputs": feeds or args.inputs,
        "expected": expected if expected and not name else None,
        "backend": args.backend,
        "seed": args.seed,
        "allowed": sorted(Options(exact=args.exact, allow=args.allow).allowed, key=CLASSES.index),
        "rtol": args.rtol,
        "atol": args.atol,
        "model": args.model,
        "include": args.include,
        "limits": dict(args.limits),
        "output_path": args.output_path,
        "data": f"the data of {', '.join(given)}" if given else "",
    }
    original = read_source(STDIN, limits) if args.original == STDIN else args.original
    if args.locate:
        return locate(original, args.result, **options)
    return LocatedVerdict(verify(original, args.result, **options), None, 0.0)


def _ends(name: str, *suffixes: str) -> bool:
    return name.lower().endswith(suffixes)
