"""Compile a program and write ONNX or NumPy code.

OUT's suffix decides the form (.onnx .py), or --emit does. Without -o an .onnx file is written beside the program.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dmlc import api
from dmlc.cli.console import Console, UsageError, count
from dmlc.cli.options import add_compile_options, add_report_options, add_source
from dmlc.cli.signatures import signature_json
from dmlc.cli.source import STDIN, compile_source
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.runs import NOT_YET
from dmlc.runtime import files

STDOUT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="the file to write; - is stdout")
    parser.add_argument(
        "--emit", choices=("onnx", "numpy", "dxdispatch", "dml"), help="the form, whatever OUT's suffix"
    )
    add_compile_options(parser)
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    kind, output = _form(args)
    if output == STDOUT and console.json:
        raise UsageError("-o - and --format json both want stdout")
    if kind not in ("onnx", "numpy"):
        raise fail(NOT_YET, f"{kind} output is not available yet", help="emit onnx or numpy")
    program = compile_source(args, for_numpy=kind == "numpy")
    console.warn(program.diagnostics)
    data = program.to_bytes(kind)
    if output == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        files.write_bytes(Path(output), data)
    _report(console, program, kind, output, len(data))
    return 0


def _form(args: argparse.Namespace) -> tuple[str, str]:
    """What is emitted, and where to."""
    if args.output is None:
        if args.source == STDIN or Path(args.source).suffix.lower() == ".onnx":
            raise UsageError("-o is needed: SRC gives no name for OUT")
        kind = args.emit or ("numpy" if args.target == "numpy" else "onnx")
        suffix = next(suffix for suffix, name in api.SUFFIXES.items() if name == kind)
        output = str(Path(args.source).with_suffix(suffix))
    else:
        output = args.output
        default = "numpy" if args.target == "numpy" else "onnx"
        kind = args.emit or (default if output == STDOUT else api.kind_of(output))
    if output != STDOUT and args.source != STDIN and _same(Path(args.source), Path(output)):
        raise UsageError(f"OUT is SRC: {output} would be overwritten; name another file with -o")
    return kind, output


def _same(source: Path, output: Path) -> bool:
    try:
        return source.resolve() == output.resolve() or source.samefile(output)
    except (OSError, ValueError):  # one of them does not exist
        return False


def _report(console: Console, program: api.Program, kind: str, output: str, size: int) -> None:
    artifact = program.artifact(kind)
    nodes = len(artifact.payload.graph.node) if kind == "onnx" else len(program.graph)
    facts = [count(nodes, "node"), f"{size:,} bytes"]
    if kind == "onnx":
        facts.insert(0, f"opset {program.opset}")
    where = "stdout" if output == STDOUT else output
    console.say(f"{where}: {program.signature.name} for {program.target.name}, {', '.join(facts)}")
    for sentence in artifact.report:
        console.say(f"note: {sentence}")
    for name, seconds, changed in program.timings:
        console.detail(f"{seconds * 1e3:8.2f} ms  {name}{'' if changed else '  (changed nothing)'}")
    console.document(
        {
            "output": where,
            "kind": kind,
            "target": program.target.name,
            "opset": program.opset,
            "nodes": nodes,
            "bytes": size,
            **signature_json(program.signature),
            "notes": list(artifact.report),
            "rewrites": len(program.ledger),
        }
    )
