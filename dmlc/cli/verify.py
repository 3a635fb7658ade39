"""Report whether two models or programs compute the same, and where they differ.

Both run on inputs built to break rewrites, or on those of --input. A is the original: a .dml program, an .onnx model,
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

from dmlc import api, importers
from dmlc.api.artifact_meaning import needs_reference
from dmlc.cli.comparison import add_comparison, check_comparison
from dmlc.cli.console import Console, UsageError
from dmlc.cli.inputs import expected_outputs, given_inputs
from dmlc.cli.options import add_include, add_limits, add_report_options, limits_of
from dmlc.cli.source import STDIN, check_is_source, is_model, read_source
from dmlc.codegen.artifact import signature_of
from dmlc.debugging import LocatedVerdict, locate
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Array, Graph
from dmlc.runtime import dxdispatch_files, files
from dmlc.verifying import Verdict, verify_results
from dmlc.verifying.verdict import NOT_VERIFIED

_DISPATCHES = ".dxdispatch.json"


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
    parser.add_argument("--model", metavar="NAME", help="which model, where a program holds several")
    add_include(parser)
    classes = parser.add_mutually_exclusive_group()
    classes.add_argument("--exact", action="store_true", help="every bit must be the same")
    classes.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="range",
        help="B may have rewrites that are equal only under a precondition on values",
    )
    add_limits(parser)
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    check_comparison(args)
    if args.exact and (args.rtol is not None or args.atol is not None):
        raise UsageError("--exact allows no error, --rtol and --atol allow some: give one of them")
    if set(args.allow) - {"exact", "reassociates", "range"}:
        raise UsageError(f"there is no class of rewrites {args.allow[-1]}; classes are exact, reassociates, range")
    with console.progress(f"verifying {args.result or args.original}"):
        start = time.perf_counter()
        found = _found(args, console)
        found = replace(found, seconds=time.perf_counter() - start)
    verdict, ending = found.verdict, found.last_line()
    located = found.location.to_text() if found.location is not None else f"{found.note}\n" if found.note else ""
    text = verdict.to_text(whole=console.verbose) + located
    console.result(verdict.headline() if console.quiet else text.rstrip("\n"))
    if console.json:
        console.say(verdict.headline())
    console.warn(verdict.diagnostics)
    location = None if found.location is None else found.location.to_json()
    fields = {"original": args.original, "result": args.result, **verdict.to_json(), "seconds": found.seconds}
    if args.locate:
        fields |= {"located": location, "note": found.note or None}
    console.document({**fields, "summary": ending}, ok=verdict.ok)
    return 0 if verdict.ok else 1


def _found(args: argparse.Namespace, console: Console) -> LocatedVerdict:
    allowed = ("exact",) if args.exact else ("exact", "reassociates", *args.allow)
    limits = Limits.of(limits_of(args))
    name = args.result or ""
    if name.lower().endswith(_DISPATCHES):
        return LocatedVerdict(_results_verdict(args, allowed, limits), None, 0.0)
    if args.output_path is not None:
        raise UsageError("--output-path is for a B that is a .dxdispatch.json file")
    if name == STDIN:
        raise UsageError("B is a file, not stdin")
    for source in (args.original, name):
        if source and Path(source).suffix.lower() not in (".py", ".npz"):
            check_is_source(source)
    if Path(args.original).suffix.lower() == ".npz":
        raise UsageError("A is a program, a model or a .py file, not data")
    if name and Path(name).suffix.lower() not in (".py", ".npz") and is_model(name) and args.backend is None:
        path = Path(name)
        if needs_reference(importers.read_model(path, files.read_bytes(path, limits), limits)):
            console.say(f"note: {name} is computed by the reference: it makes no promise for the CPU provider")
    feeds, expected = _data(args)
    given = [name for name, _ in args.input]
    data = f"the data of {', '.join(given)}" if given else f"the inputs of {name}"
    return locate(
        read_source(STDIN, limits) if args.original == STDIN else args.original,
        None if expected or not name else name,
        inputs=feeds or args.inputs,
        expected=expected or None,
        backend=args.backend,
        seed=args.seed,
        allowed=allowed,
        rtol=args.rtol,
        atol=args.atol,
        search=args.locate,
        model=args.model,
        include=args.include,
        limits=limits_of(args),
        data=data,
    )


def _data(args: argparse.Namespace) -> tuple[dict[str, Array], dict[str, Array]]:
    """The inputs and the expected outputs that files give. Raises ``UsageError`` for outputs without inputs."""
    name = args.result or ""
    is_data = Path(name).suffix.lower() == ".npz"
    inputs, outputs = expected_outputs(args, more=[name] if is_data else [])
    given = given_inputs(args)
    if is_data and not outputs:
        raise UsageError(f"{name} has no array out::NAME, which is an expected output")
    if name and not is_data:
        outputs = {}
    feeds = {**(inputs if is_data or args.input else {}), **given}
    if outputs and not feeds:
        raise UsageError("expected outputs belong to inputs: give --input, or arrays in::NAME beside them")
    return feeds, outputs


def _results_verdict(args: argparse.Namespace, allowed: tuple[str, ...], limits: Limits) -> Verdict:
    """The verdict on the files that DxDispatch wrote; not verified where some are missing."""
    original: Graph | Path
    if is_model(args.original):
        original = _checked(args.original, limits)
        graph = api.compile(original, target="onnx", limits=limits_of(args)).source_graph
    else:
        source = read_source(args.original, limits)
        original = graph = api.written_graph(source, args.model, args.include, limits)
    folder = None if args.output_path is None else Path(args.output_path)
    found = dxdispatch_files.read_run(Path(args.result), signature_of(graph), folder)
    if found.missing:
        names = ", ".join(map(str, found.missing))
        reason = f"there is no {names}; run DxDispatch in the folder of B, or name its results' with --output-path"
        return Verdict(NOT_VERIFIED, allowed, 0, 1, reason=reason)
    return verify_results(original, found.inputs, found.results, data=f"the files of {args.result}", allowed=allowed)


def _checked(name: str, limits: Limits) -> Path:
    """The path of a model that can be read. Raises ``DmlcError``: E0420 (exit code 2), E0430."""
    path = Path(name)
    importers.read_model(path, files.read_bytes(path, limits, is_model=True), limits)
    return path
