"""Say whether a program compiles for the target; nothing is written."""

from __future__ import annotations

import argparse

from dmlc.cli.console import Console, count
from dmlc.cli.options import add_compile_options, add_report_options, add_source
from dmlc.cli.signatures import signature_json
from dmlc.cli.source import compile_source, node_count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_compile_options(parser)
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    with console.progress(args.source) as progress:
        program = compile_source(args, progress=progress)
    console.warn(program.diagnostics)
    artifact = program.artifact("numpy" if program.target.name == "numpy" else "onnx")
    signature = program.signature
    parts = [
        count(len(signature.inputs), "input"),
        count(len(signature.outputs), "output"),
        count(node_count(program.graph), "node"),
    ]
    if signature.conditions:
        parts.append(f"{count(len(signature.conditions), 'relation')} of sizes left to run time")
    if not console.quiet:
        console.result(f"{args.source}: {signature.name} is fine for {program.target.name}: {', '.join(parts)}")
    for sentence in artifact.report:
        console.say(f"note: {sentence}")
    console.document(
        {
            "source": args.source,
            "target": program.target.name,
            "opset": program.opset,
            "nodes": node_count(program.graph),
            **signature_json(signature),
            "notes": list(artifact.report),
        }
    )
    return 0
