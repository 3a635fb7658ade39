"""List the targets, or show one: what it is, its opsets, and where the facts come from."""

from __future__ import annotations

import argparse
import dataclasses

from dmlc.cli.console import Console, UsageError, table
from dmlc.cli.options import add_report_options
from dmlc.diagnostics import did_you_mean
from dmlc.targets import Target, load_target, target_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="a target")
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.name is None:
        targets = [load_target(name) for name in target_names()]
        rows = [["target", "opset", "opsets", "what it is"]]
        rows += [[t.name, str(t.opset), f"{t.min_opset} to {t.max_opset}", t.summary] for t in targets]
        console.result(table(rows))
        console.document({"targets": [dataclasses.asdict(t) for t in targets]})
        return 0
    if args.name not in target_names():
        near = did_you_mean(args.name, target_names())
        raise UsageError(f"there is no target {args.name}; {near or 'dmlc targets lists them'}")
    target = load_target(args.name)
    console.result(_page(target))
    console.document({"target": dataclasses.asdict(target)})
    return 0


def _page(target: Target) -> str:
    rows = [
        ["what it is", target.summary],
        ["ONNX opset", f"{target.opset}; with --opset {target.min_opset} to {target.max_opset}"],
        ["ONNX IR version", str(target.ir_version)],
        ["source", target.source],
    ]
    return f"{target.name}\n" + table(rows, "  ")
