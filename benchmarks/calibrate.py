"""Measure lowerings on this machine, and write what its kernels cost relative to the base calibration.

``python -m benchmarks.calibrate NAME`` writes ``dmlc/targets/data/calibrations/NAME.json``. Times that are there stay,
so that a table of times from elsewhere gets its factors too. The file counts where ``cost_ort_cpu.json`` names it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

import dmlc
from benchmarks.nets import Net
from benchmarks.suites.reductions import LOGSUMEXP, REDUCE, SOFTMAX
from benchmarks.suites.selections import CLASSES, HARDMAX, LARGE, SMALL
from dmlc import builder
from dmlc.api.chosen_options import chosen_options
from dmlc.api.program import Program
from dmlc.api.tuning import TimedLowerings
from dmlc.diagnostics.steps import showing_steps
from dmlc.importers.model import import_model
from dmlc.ir import Graph, Node
from dmlc.passes.choose_lowering import FIRST, GROUPS
from dmlc.passes.choose_lowering.plan import UNCHANGED, Sizes, plans_by_root
from dmlc.passes.choose_lowering.price import Prices
from dmlc.passes.lowering import LoweredNode
from dmlc.passes.manager import PassContext
from dmlc.targets import load_target
from dmlc.targets.cost import CostModel, Step, Work, cost_model

FOLDER = Path(dmlc.__file__).parent / "targets" / "data" / "calibrations"
#: An operation, or an operator of a model; a dtype, a shape and axes.
Measured = tuple[str, str, tuple[int, ...], tuple[int, ...]]
_SOME = (((8, 64, 128, 128), (1,)), ((8, 64, 128, 128), (2, 3)), ((4096, 1024), (0,)), ((4096, 1024), (1,)))
#: Axes that are not neighbours, in types whose maxima ONNX Runtime gets wrong.
_APART = (((8, 64, 128, 128), (1, 3)), ((8, 64, 128, 128), (0, 2)))
#: Sizes that the suites lack: batches of 1, and many short rows.
_SUMS = (
    ((1, 64, 56, 56), (0, 2, 3)),
    ((1, 3, 512, 512), (1, 2, 3)),
    ((1, 64, 1, 56, 56), (1, 3, 4)),
    ((8, 1, 512, 128), (0, 2)),
    ((32, 64, 64, 32), (0, 2)),
    ((100000, 16), (0,)),
    ((16, 1000), (0,)),
    ((4, 1000000), (1,)),
    ((2, 21, 512, 512), (1,)),
    ((2, 8, 4, 4), (1, 3)),
)
_ROWS = (((16, 16), (0,)), ((2, 8, 16, 16), (1,)), ((1, 4, 8400), (1,)))
#: The weight of the factor of all kernels in the factor of one, which a few times may not determine.
_PULL = 0.05


def measured() -> Iterator[Measured]:
    yield from (("argmax", "f32", *case) for case in (*LARGE, *SMALL, *CLASSES))
    yield from (("argmax", dtype, *case) for dtype in ("f16", "i32", "i64", "u8") for case in _SOME)
    yield from (("argmax", "i64", *case) for case in _APART)
    yield from (("hardmax", "f32", *case) for case in HARDMAX)
    yield from (("hardmax", "f16", *case) for case in HARDMAX[-4:])
    yield from ((name, "f32", *case) for name in ("reduce_sum", "reduce_max") for case in (*REDUCE, *_SUMS))
    yield from (("softmax", "f32", *case) for case in (*SOFTMAX, *_ROWS))
    yield from ((name, "f32", *case) for name in ("ReduceLogSumExp", "reduce_l2") for case in (*LOGSUMEXP, *_ROWS))
    yield "GlobalMaxPool", "f32", (8, 64, 128, 128), (2, 3)


def graph_of(operation: str, dtype: str, shape: Sequence[int], axes: Sequence[int]) -> Graph:
    """A graph of the operation alone; an operator comes from a model."""
    if not operation.islower():
        net = Net()
        x, kind = net.input("x", shape), operation.removeprefix("Reduce")
        return import_model(net.model(net.op(kind, x) if kind == operation else net.reduce(kind, x, axes)))
    graph = dmlc.Graph("measured")
    graph.output("y", getattr(builder, operation)(graph.input("x", dtype=dtype, shape=shape), axes=axes))
    return graph.graph


def measure(path: Path, threads: int) -> None:
    """Add the times that a file lacks; a file of another machine stays as it is."""
    options = chosen_options({"target": "cpu", "tune": True, "tuning": path, "tune_seconds": 10**6})
    tuner = TimedLowerings(options, threads=threads)
    with showing_steps(logging.info):
        for one in measured():
            Program(graph_of(*one), replace(options, tuner=tuner))
            tuner.save()


# --- factors


def lowerings(row: Mapping[str, Any]) -> Iterator[tuple[list[Work], float]]:
    """The work of each lowering in a row of times, and its nanoseconds."""
    found = re.fullmatch(r"(\w+)\[(.*)\]", row["types"][0])
    axes = re.search(r"axes=\((.*?)\)", row["attributes"])
    if found is None or axes is None:
        return
    shape, dims = (tuple(map(int, filter(None, text.replace(" ", "").split(",")))) for text in (found[2], axes[1]))
    graph = graph_of(row.get("form") or row["operator"], found[1], shape, dims)
    context, times, sizes = PassContext(load_target("cpu"), 21), row["microseconds"], Sizes({})
    plans = plans_by_root([kind for group in (*FIRST, *GROUPS) for kind in group], context)
    prices = Prices(graph, plans, context.capabilities)
    node: Node = next(iter(graph.nodes_of(plans)))
    yield list(prices.unchanged(node, sizes)), times[UNCHANGED] * 1e3
    for plan in plans[node.op]:
        match = plan.match(node, graph)
        if plan.name in times and isinstance(match, LoweredNode):
            yield prices.of(plan, match, sizes), times[plan.name] * 1e3


def factors(rows: Sequence[Mapping[str, Any]], base: CostModel) -> dict[str, float]:
    """The factors of the kernels with which estimates are nearest to the times, as ratios."""
    known = [one for row in rows for one in lowerings(row)]
    kernels = sorted({step.kernel for work, _ in known for step in flat(work, base)})
    logs = np.zeros(len(kernels))
    times = np.log([time for _, time in known])
    for _ in range(50):
        model = base.scaled({"others": 1.0, **dict(zip(kernels, np.exp(logs), strict=True))})
        shares = np.zeros((len(known), len(kernels)))
        for row, (work, _) in enumerate(known):
            for step in flat(work, model):
                shares[row, kernels.index(step.kernel)] += model.step(step)
        totals = shares.sum(1)
        shares /= totals[:, None]
        pull = np.eye(len(kernels)) * _PULL
        error = shares.T @ (times - np.log(totals)) - _PULL * (logs - logs.mean())
        logs += np.clip(np.linalg.solve(shares.T @ shares + pull, error), -0.5, 0.5)
    overall = float(np.exp(logs.mean()))
    return {"others": round(overall, 2)} | {k: round(float(np.exp(x)), 2) for k, x in zip(kernels, logs, strict=True)}


def flat(work: Sequence[Work], model: CostModel) -> Iterator[Step]:
    for part in work:
        if isinstance(part, Step):
            yield part
        else:
            yield from flat(min(part.ways, key=model.total), model)


def write(path: Path, data: dict[str, Any]) -> None:
    """Write the file, a row of times in each line."""
    rows = [json.dumps(row) for row in data.pop("rows")]
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in data.items()]
    text = ",\n ".join(lines) + ',\n "rows": [\n  ' + ",\n  ".join(rows)
    path.write_text(f"{{\n {text}\n ]\n}}\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads of a node (default: 1)")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    path = FOLDER / f"{args.name}.json"
    data = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if "source" not in data:  # else a table of times from elsewhere
        measure(path, args.threads)
        data = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "threads": args.threads}
    base = cost_model(load_target("cpu"))
    assert base is not None
    data = {**data, **json.loads(path.read_text("utf-8"))}
    data["factors"] = factors(data["rows"], base)
    write(path, data)


if __name__ == "__main__":
    main()
