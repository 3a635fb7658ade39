"""Write fused operators of a model in primitive ones: the reverse of fusion, for drivers that get a fused one wrong.

SRC is an .onnx model, whose other nodes stay as they are, or a .dml program, which is compiled for --target first. OUT
is an .onnx file; without -o it is SRC's name with .decomposed.onnx. ONNX Runtime may fuse the parts again unless its
optimizations are off.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from msgspec import field

from dmlc import api
from dmlc.api.decomposition import StayedNode, decompose, stayed
from dmlc.cli.compile import STDOUT, check_apart
from dmlc.cli.compile_options import add_options
from dmlc.cli.console import Console, UsageError
from dmlc.cli.options import add_report_options, add_source
from dmlc.cli.program_page import PROMISES
from dmlc.cli.source import STDIN, open_source
from dmlc.diagnostics.counted import counted
from dmlc.ir.answers import Answer
from dmlc.ir.history import RewriteClass
from dmlc.passes.decompose import OPERATORS
from dmlc.passes.manager import EXACT, REASSOCIATES


class DecomposeAnswer(Answer, frozen=True):
    """A model whose operators were decomposed; ``decomposed`` counts them by name, ``stayed`` are those that were
    not."""

    output: str
    opset: int
    decomposed: dict[str, int]
    stayed: tuple[StayedNode, ...]
    rewrite_class: RewriteClass = field(name="class")
    nodes: int
    bytes: int
    seconds: float


class OperatorList(Answer, frozen=True):
    """The operators that can be decomposed."""

    operators: tuple[str, ...]


ANSWERS = (DecomposeAnswer, OperatorList)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser, optional=True)
    parser.add_argument("-o", "--output", metavar="OUT", help="the .onnx file to write; - is stdout")
    help = "the operators, such as LayerNormalization,Softmax (default: all that can be decomposed); may be repeated"
    parser.add_argument("--ops", action="append", metavar="A,B", help=help)
    parser.add_argument(
        "--list", action="store_true", help="list the operators that can be decomposed; no SRC is needed"
    )
    parser.add_argument("--weights", choices=("inline", "copy", "reference"), help="as for compile")
    add_options(parser, "target", "model", "include", "limits")
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.list:
        console.result("\n".join(OPERATORS))
        console.document(OperatorList(tuple(OPERATORS)))
        return 0
    if args.source is None:
        raise UsageError("SRC is needed")
    output = _output(args, console)
    start = time.perf_counter()
    with console.progress(args.source) as progress:
        progress("reading")
        program = decompose(
            open_source(args),
            _names(args.ops),
            target=args.target,
            model=args.model,
            include=args.include,
            limits=dict(args.limits),
            progress=progress,
        )
        progress("writing")
        size = _write(args, program, output)
    _report(console, program, output, size, time.perf_counter() - start)
    return 0


def _names(given: list[str] | None) -> list[str] | None:
    return None if given is None else [name.strip() for part in given for name in part.split(",") if name.strip()]


def _output(args: argparse.Namespace, console: Console) -> str:
    if args.output == STDOUT and console.json:
        raise UsageError("-o - and --format json both want stdout")
    if args.output is None:
        source = Path(args.source)
        if args.source == STDIN or not source.name:
            raise UsageError("give an output file: -o OUT.onnx")
        return str(source.with_name(f"{source.stem}.decomposed.onnx"))
    output: str = args.output
    if output != STDOUT and api.kind_of(output) != "onnx":
        raise UsageError(f"OUT is an .onnx file, not {output}")
    check_apart("OUT", output, "SRC", args.source)
    return output


def _write(args: argparse.Namespace, program: api.Program, output: str) -> int:
    if output == STDOUT:
        data = program.to_bytes("onnx")
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return len(data)
    options: dict[str, Any] = {} if args.weights is None else {"weights": args.weights}
    program.save(output, kind="onnx", **options)
    return Path(output).stat().st_size


def _report(console: Console, program: api.Program, output: str, size: int, seconds: float) -> None:
    done = Counter(entry.text for entry in program.ledger)
    done.update(program.defined)
    nodes = len(api.emitted(program, "onnx").payload.graph.node)
    where = "stdout" if output == STDOUT else output
    is_exact = not program.defined and all(entry.rewrite_class == EXACT for entry in program.ledger)
    rewrite_class = EXACT if is_exact else REASSOCIATES
    parts = ", ".join(f"{number} {name}" for name, number in sorted(done.items())) or "nothing"
    of_class = f", {PROMISES[rewrite_class]}" if done else ""
    console.say(f"{where}: {parts} decomposed, {counted(nodes, 'node')}{of_class}, {seconds:.2f} s")
    rows = stayed(program)
    for row in rows:
        console.say(f"note: {row.operator} {row.node} stays: {row.reason}")
    console.document(
        DecomposeAnswer(where, program.opset, dict(sorted(done.items())), rows, rewrite_class, nodes, size, seconds)
    )
