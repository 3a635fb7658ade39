"""Say whether a model computes what another one, or a program, says: both run on inputs built to break rewrites.

A is the original: a .dml program, which is computed by the reference, or an .onnx model, which runs on ONNX Runtime's
CPU provider without optimizations. B is the result: an .onnx model, or a program, which is compiled for that; or an
.dxdispatch.json file of dmlc, whose result files are compared once DxDispatch has run.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dmlc import api, importers
from dmlc.api.artifact_meaning import meaning, needs_reference
from dmlc.cli.console import Console, UsageError
from dmlc.cli.options import add_include, add_limits, add_report_options, limits_of
from dmlc.cli.source import STDIN, check_is_source, is_model, read_source
from dmlc.codegen.artifact import Artifact, signature_of
from dmlc.diagnostics import Source
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Graph
from dmlc.runtime import dxdispatch_files, files
from dmlc.verify import DEFAULT_INPUTS, Verdict, verify_graph, verify_models, verify_results
from dmlc.verify.verdict import NOT_VERIFIED

if TYPE_CHECKING:
    import onnx

_DISPATCHES = ".dxdispatch.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("original", metavar="A", help="a .dml program or an .onnx model; - reads a program from stdin")
    parser.add_argument(
        "result", metavar="B", help="an .onnx model, a .dml program, or a .dxdispatch.json file that DxDispatch ran"
    )
    parser.add_argument(
        "--inputs", type=int, default=DEFAULT_INPUTS, metavar="N", help=f"how many inputs (default: {DEFAULT_INPUTS})"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="SEED", help="other inputs (default: 0)")
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
    if args.inputs < 1:
        raise UsageError(f"--inputs is 1 or more, not {args.inputs}")
    if args.seed < 0:
        raise UsageError(f"a seed is 0 or more, not {args.seed}")
    if set(args.allow) - {"exact", "reassociates", "range"}:
        raise UsageError(f"there is no class of rewrites {args.allow[-1]}; classes are exact, reassociates, range")
    with console.progress(f"verifying {args.result}"):
        verdict = _verdict(args, console)
    console.result(verdict.headline() if console.quiet else verdict.to_text())
    console.warn(verdict.diagnostics)
    console.document({"original": args.original, "result": args.result, **verdict.to_json()}, ok=verdict.ok)
    return 0 if verdict.ok else 1


def _verdict(args: argparse.Namespace, console: Console) -> Verdict:
    allowed = ("exact",) if args.exact else ("exact", "reassociates", *args.allow)
    limits = Limits.of(limits_of(args))
    if args.result.lower().endswith(_DISPATCHES):
        return _results_verdict(args, allowed, limits)
    if args.output_path is not None:
        raise UsageError("--output-path is for a B that is a .dxdispatch.json file")
    result = _read_back(_result(args, limits), limits, console)
    if is_model(args.original):
        return verify_models(
            _checked(args.original, limits), result, inputs=args.inputs, seed=args.seed, allowed=allowed
        )
    source = read_source(args.original, limits)
    graph = _graph(source, args, limits)
    if graph.joined is not None:  # only ONNX Runtime computes it
        plain = _plain(source, args)
        given = {"inputs": args.inputs, "seed": args.seed, "folder": plain.folder}
        return verify_models(plain.payload, result, allowed=allowed, **given)
    return verify_graph(graph, result, inputs=args.inputs, seed=args.seed, allowed=allowed)


def _plain(source: Source, args: argparse.Namespace) -> Artifact:
    """The program A as an ONNX model that no rule touched."""
    program = api.compile(
        source, target="onnx", only_rules=(), model=args.model, include=args.include, limits=limits_of(args)
    )
    return api.emitted(program, "onnx")


def _graph(source: Source, args: argparse.Namespace, limits: Limits) -> Graph:
    return api.written_graph(source, args.model, args.include, limits)


def _results_verdict(args: argparse.Namespace, allowed: tuple[str, ...], limits: Limits) -> Verdict:
    """The verdict on the files that DxDispatch wrote; not verified where some are missing."""
    original: Graph | Path
    if is_model(args.original):
        original = _checked(args.original, limits)
        graph = api.compile(original, target="onnx", limits=limits_of(args)).source_graph
    else:
        original = graph = _graph(read_source(args.original, limits), args, limits)
    folder = None if args.output_path is None else Path(args.output_path)
    found = dxdispatch_files.read_run(Path(args.result), signature_of(graph), folder)
    if found.missing:
        names = ", ".join(map(str, found.missing))
        reason = f"there is no {names}; run DxDispatch in the folder of B, or name its results' with --output-path"
        return Verdict(NOT_VERIFIED, allowed, 0, 1, reason=reason)
    return verify_results(original, found.inputs, found.results, data=f"the files of {args.result}", allowed=allowed)


def _read_back(result: Path | onnx.ModelProto, limits: Limits, console: Console) -> Path | onnx.ModelProto | Graph:
    """The result; its graph where it says that ONNX Runtime's CPU provider need not run it."""
    if not isinstance(result, Path):
        return result
    model = importers.read_model(result, files.read_bytes(result, limits), limits)
    if not needs_reference(model):
        return result
    console.say(f"note: {result} is computed by the reference: it makes no promise for the CPU provider")
    return meaning(model, result.absolute().parent, limits)


def _result(args: argparse.Namespace, limits: Limits) -> Path | onnx.ModelProto:
    if args.result == STDIN:
        raise UsageError("B is a file, not stdin")
    check_is_source(args.result)
    if is_model(args.result):
        return _checked(args.result, limits)
    return api.emitted(
        api.compile(args.result, target="onnx", model=args.model, include=args.include, limits=limits_of(args)), "onnx"
    ).payload


def _checked(name: str, limits: Limits) -> Path:
    """The path of a model that can be read. Raises ``DmlcError``: E0420 (exit code 2), E0430."""
    path = Path(name)
    importers.read_model(path, files.read_bytes(path, limits, is_model=True), limits)
    return path
