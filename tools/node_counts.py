"""Table of what is left of each fixture on each target: ``python -m tools.node_counts [MODEL.onnx ...] > before.tsv``.

A row says the nodes; for a target with a provider how many of them are on the CPU, copies, fused graphs, dispatches;
the codes of all findings, a digest of the graph without its names, and the rules that fired. ``diff`` compares two
tables, made before and after a change of the rules.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dmlc
from dmlc.onnx_schema.nested import all_nodes
from tools.canonical_form import canonical_form
from tools.fixture_folder import PARTS, fixtures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.node_counts", description=__doc__)
    parser.add_argument("models", nargs="*", type=Path, help="files; the fixtures without any")
    parser.add_argument("--targets", default="directml,cpu,onnx", help="with commas; %(default)s")
    args = parser.parse_args()
    print("model", "target", "nodes", "cpu", "copies", "graphs", "dispatches", "codes", "form", "rules", sep="\t")
    for path in args.models or [path for part in PARTS for path in fixtures(part).values()]:
        for target in args.targets.split(","):
            print(path.stem, target, *_row(path, target), sep="\t", flush=True)
    return 0


def _row(path: Path, target: Any) -> Sequence[object]:
    try:
        program = dmlc.compile(path, target=target)
        model = program.to_onnx()
    except dmlc.DmlcError as error:
        return ["-"] * 5 + [",".join(sorted({found.code.id for found in error.diagnostics})), "-", "-"]
    placed: list[object] = ["-"] * 4
    if program.target.provider is not None:
        report = program.placement()
        placed = [report.count("cpu"), len(report.transfers), report.partitions, report.dispatches]
    codes = sorted({found.code.id for found in (*program.diagnostics, *program.advice)})
    rules = sorted({entry.rule for entry in program.ledger})
    form, _ = canonical_form(model)
    nodes = len(list(all_nodes(model.graph.node)))
    return [nodes, *placed, ",".join(codes) or "-", form[:12], ",".join(rules) or "-"]


if __name__ == "__main__":
    sys.exit(main())
