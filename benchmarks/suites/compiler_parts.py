"""Parts of the compiler: reading text, starting, and the builder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import dmlc
from benchmarks.records import OURS, Case, Settings
from benchmarks.suites.graphs import text

_TEN_LINES = """model head(x: f32[8, 64, 32, 32]) -> (best, spread, focus) {
    centred = x - reduce_mean(x, axes=[2, 3])
    variance = reduce_mean(centred * centred, axes=[2, 3])
    best = argmax(x, axes=[1, 2, 3])
    spread = sqrt(variance + 1e-6)
    total = reduce_sum(reduce_sum(x, axes=[3]), axes=[2])
    focus = softmax(total, axes=[1])
    return best, spread, focus
}
"""


def _cpu(run: Callable[[], object], rounds: int) -> float:
    """The least CPU seconds of several calls."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def parse(settings: Settings) -> Iterator[Case]:
    """Syntax trees with places, of programs of growing length."""
    from dmlc.diagnostics import Source
    from dmlc.text import parse as read

    read(Source("warm.dml", text(20)))
    first = 0.0
    for lines in (20, 200) if settings.quick else (1000, 10_000, 100_000):
        source = Source("generated.dml", text(lines))
        rounds = 1 if settings.quick else max(3, min(settings.rounds, 100_000 // lines))
        seconds = _cpu(partial(read, source), rounds)
        case = Case("parse", f"{lines} lines", settings.threads, (f"{lines} lines",))
        case.seconds[OURS] = seconds
        first = first or seconds / lines
        case.figures = {"lines": lines, "lines/s": lines / seconds, "line over first": seconds / lines / first}
        yield case


def startup(settings: Settings) -> Iterator[Case]:
    """Processes from start to end, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "head.dml"
        program.write_text(_TEN_LINES, encoding="utf-8")
        compiling = ["-m", "dmlc", "compile", str(program), "-o", str(Path(folder) / "head.onnx"), "-q"]
        # byte code is cached as after any first run, whatever this environment says
        environment = dict(os.environ)
        if environment.pop("PYTHONDONTWRITEBYTECODE", ""):
            environment.setdefault("PYTHONPYCACHEPREFIX", folder)
        run = partial(subprocess.run, check=True, capture_output=True, env=environment)
        yield _processes("--version", {OURS: ["-m", "dmlc", "--version"], "python": ["-c", "pass"]}, run, settings)
        rivals = {OURS: compiling, "imports": ["-c", "import lark, numpy, onnx"]}
        yield _processes("compile ten lines", rivals, run, settings)


def _processes(
    name: str, commands: dict[str, list[str]], run: Callable[[list[str]], object], settings: Settings
) -> Case:
    case = Case("startup", name, settings.threads, (name,))
    for arguments in () if settings.quick else commands.values():
        run([sys.executable, *arguments])
    case.seconds = dict.fromkeys(commands, float("inf"))
    for _ in range(1 if settings.quick else settings.rounds):
        for variant, arguments in commands.items():
            start = time.perf_counter()
            run([sys.executable, *arguments])
            case.seconds[variant] = min(case.seconds[variant], time.perf_counter() - start)
    return case


def build(nodes: int) -> dmlc.Graph:
    """A graph of checked nodes: four of five with two operands, one of five a sum."""
    graph = dmlc.Graph("built")
    x = y = graph.input("x", dtype="f32", shape=(2, 8, 16))
    for n in range(nodes):
        y = dmlc.reduce_sum(y, axes=(2,)) if n % 5 == 4 else (y + x) if n % 2 else (y * x)
    graph.output("y", y)
    return graph


def builder(settings: Settings) -> Iterator[Case]:
    import onnx
    from onnx import TensorProto, helper

    nodes = 100 if settings.quick else 10_000

    def by_helper() -> onnx.ModelProto:
        value, out = "x", []
        for n in range(nodes):
            op = "ReduceSum" if n % 5 == 4 else "Add" if n % 2 else "Mul"
            out.append(helper.make_node(op, [value, "axes" if n % 5 == 4 else "x"], [f"v{n}"]))
            value = f"v{n}"
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 8, 16]) for name in ("x", value)]
        axes = helper.make_tensor("axes", TensorProto.INT64, [1], [2])
        return helper.make_model(helper.make_graph(out, "built", ends[:1], ends[1:], [axes]))

    case = Case("builder", f"{nodes} nodes", settings.threads)
    rounds = max(1, min(settings.rounds, 5))
    case.seconds = {OURS: _cpu(lambda: build(nodes), rounds), "onnx.helper, unchecked": _cpu(by_helper, rounds)}
    case.figures = {"nodes": nodes}
    yield case
