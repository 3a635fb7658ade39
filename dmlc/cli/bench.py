"""Time a program or a model node by node on ONNX Runtime, and show where each node was expected to run.

Dynamic sizes are fixed to the sizes of the data. Each node has two times. One is from the profile of the whole model;
on DirectML it ends when the node's work is given to the device. The other is of the node alone, until the device is
done.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Mapping
from typing import Any

from dmlc import __version__, api
from dmlc.cli.bench_view import BenchAnswer, bench_answer, benchmark_text, timed_node
from dmlc.cli.compile_options import add_compile_options
from dmlc.cli.console import Console, UsageError
from dmlc.cli.inputs import add_inputs, feeds_of, given_inputs
from dmlc.cli.options import add_report_options, add_source
from dmlc.cli.source import compile_source, open_source
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.diagnostic import naming
from dmlc.ir.fixed_shapes import FixedShape, shape_text
from dmlc.passes.options import OPTIONS
from dmlc.runtime import bench, bench_nodes
from dmlc.runtime.session import has_directml, onnxruntime, session_options
from dmlc.runtime.webgpu import on_software

_ROUNDS = 20
ANSWERS = (BenchAnswer,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    help = "where to run; for webgpu a program is compiled for that target (default: dml where present, else cpu)"
    parser.add_argument("--provider", choices=("dml", "webgpu", "cpu"), help=help)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N", help=f"runs to time (default: {_ROUNDS})")
    add_inputs(parser)
    add_compile_options(parser)
    parser.set_defaults(target=None)
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.rounds < 1:
        raise UsageError(f"at least one round is timed, not {args.rounds}")
    given = given_inputs(args)
    backend = args.provider or ("dml" if has_directml() else "cpu")
    args.target = args.target or ("webgpu" if backend == "webgpu" else OPTIONS["target"].default)
    session_options(backend)  # reports what is missing before the work
    source = open_source(args)
    with console.progress(args.source) as progress, naming(args.source):
        program = compile_source(args, source=source, progress=progress)
        feeds: dict[str, Any] = feeds_of(args, given, program)
        sizes = bench.fed_sizes(api.emitted(program, "onnx"), feeds, program.source_model)
        shapes = bench.fed_shapes(feeds, program.source_model)
        if sizes or shapes:  # with open sizes DirectML fuses nothing
            args.bind = [*args.bind, *sizes.items()]
            args.shapes = [*args.shapes, *shapes.items()]
            program = compile_source(args, source=source, progress=progress)
        progress("running")
        found = _measure(program, feeds, backend, args.rounds, sizes, shapes)
    console.warn(program.diagnostics)
    console.result(benchmark_text(found))
    console.document(found)
    return 0


def _measure(
    program: api.Program,
    feeds: dict[str, Any],
    backend: str,
    rounds: int,
    sizes: dict[str, int],
    shapes: Mapping[str, FixedShape],
) -> BenchAnswer:
    artifact = api.emitted(program, "onnx")
    profile = bench.profile(artifact, feeds, backend, rounds)
    whole = bench.whole(artifact, feeds, backend, rounds)
    alone = bench_nodes.alone(artifact, feeds, backend, rounds, whole.idle_microseconds)
    notes = [f"sizes: {', '.join(f'{name}={size}' for name, size in sizes.items())}"] if sizes else []
    notes += [f"shape: {shape_text(name, shape)}" for name, shape in shapes.items()]
    report = None if program.target.provider is None else program.placement()
    if report is not None:
        notes.append(f"report: {report.verdict}")
    nodes = list(bench.nodes_of(artifact.payload.graph))
    placed = report.nodes if report is not None and len(report.nodes) == len(nodes) else [None] * len(nodes)
    rows, compares = [], program.target.backend == backend != "cpu"
    for number, ((node, inside), said) in enumerate(zip(nodes, placed, strict=True)):
        name = said.name if said else node.name or next(filter(None, node.output), "")
        ran, single = profile.nodes.get(number), alone.get(number)
        rows.append(timed_node(name, node.op_type, said, ran, single, inside=inside, compares=compares))
    partitions = None if report is None else report.partitions
    if backend == "webgpu" and on_software():
        notes.append("the provider runs on a driver that computes on the CPU: these times say nothing of a GPU")
    if backend != "cpu":
        notes.append("us: handing the work of a node to the device; us by itself: until the device is done with it")
    machine = _machine(backend, rounds)
    return bench_answer(
        backend, program.target.backend, machine, rounds, sizes, rows, profile.own, whole, partitions, notes
    )


def _machine(backend: str, rounds: int) -> str:
    return (
        f"dmlc {__version__}, onnxruntime {onnxruntime().__version__} on {backend}, {platform.platform()}, "
        f"Python {platform.python_version()}, medians of {counted(rounds, 'round')}"
    )
