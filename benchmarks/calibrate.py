"""Measure the lowerings of selections on this machine, and write what its kernels cost relative to the base
calibration.

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
from benchmarks.suites.selections import CLASSES, HARDMAX, LARGE, SMALL
from dmlc import builder
from dmlc.api.chosen_options import chosen_options
from dmlc.api.program import Program
from dmlc.api.tuning import TimedLowerings
from dmlc.diagnostics.steps import showing_steps
from dmlc.ir import Node
from dmlc.passes.choose_lowering import arg, hardmax
from dmlc.passes.choose_lowering.plan import Sizes, Work
from dmlc.passes.manager import PassContext
from dmlc.targets import load_target
from dmlc.targets.cost import CostModel, Step, cost_model

FOLDER = Path(dmlc.__file__).parent / "targets" / "data" / "calibrations"
#: An operation, a dtype, a shape and axes.
Selection = tuple[str, str, tuple[int, ...], tuple[int, ...]]
_SOME = (((8, 64, 128, 128), (1,)), ((8, 64, 128, 128), (2, 3)), ((4096, 1024), (0,)), ((4096, 1024), (1,)))
#: The weight of the factor of all kernels in the factor of one, which a few times may not determine.
_PULL = 0.05


def selections() -> Iterator[Selection]:
    yield from (("argmax", "f32", *case) for case in (*LARGE, *SMALL, *CLASSES))
    yield from (("argmax", dtype, *case) for dtype in ("f16", "i32", "i64", "u8") for case in _SOME)
    yield from (("hardmax", "f32", *case) for case in HARDMAX)
    yield from (("hardmax", "f16", *case) for case in HARDMAX[-4:])


def graph_of(operation: str, dtype: str, shape: Sequence[int], axes: Sequence[int]) -> dmlc.Graph:
    graph = dmlc.Graph("selection")
    graph.output("y", getattr(builder, operation)(graph.input("x", dtype=dtype, shape=shape), axes=axes))
    return graph


def measure(path: Path, threads: int) -> None:
    """Add the times that a file lacks; a file of another machine stays as it is."""
    options = chosen_options({"target": "cpu", "tune": True, "tuning": path, "tune_seconds": 10**6})
    tuner = TimedLowerings(options, threads=threads)
    with showing_steps(logging.info):
        for one in selections():
            Program(graph_of(*one).graph, replace(options, tuner=tuner))
            tuner.save()


# --- factors


def lowerings(row: Mapping[str, Any]) -> Iterator[tuple[list[Work], float]]:
    """The work of each lowering in a row of times, and its nanoseconds."""
    found = re.fullmatch(r"(\w+)\[(.*)\]", row["types"][0])
    axes = re.search(r"axes=\((.*?)\)", row["attributes"])
    if found is None or axes is None or row["operator"] not in ("argmax", "hardmax"):
        return
    shape, dims = (tuple(map(int, filter(None, text.replace(" ", "").split(",")))) for text in (found[2], axes[1]))
    graph = graph_of(row["operator"], found[1], shape, dims).graph
    node: Node = next(iter(graph.nodes_of(arg.SearchAsItStands.roots + hardmax.HardmaxAsItStands.roots)))
    context = PassContext(load_target("cpu"), 21)
    for plan in [kind(context) for kind in (*arg.PLANS, *hardmax.PLANS)]:
        if plan.name in row["microseconds"] and node.op in plan.roots and plan.applies(node, graph) is None:
            yield list(plan.steps(node, Sizes({}))), row["microseconds"][plan.name] * 1e3


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
    """Write the file, a row of times in each line; only selections are of use."""
    rows = [json.dumps(row) for row in data.pop("rows") if row["operator"] in ("argmax", "hardmax")]
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
