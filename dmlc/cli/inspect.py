"""Show a program: inputs, outputs, dims, its nodes as written and as compiled, and the graph as text.

Of an .onnx file it shows inputs, outputs, opsets and nodes as they stand there.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from dmlc import api, ir
from dmlc.cli.console import Console, table
from dmlc.cli.options import add_compile_options, add_report_options, add_source, limits_of
from dmlc.cli.signatures import signature_json, signature_text
from dmlc.cli.source import compile_source
from dmlc.diagnostics.limits import Limits
from dmlc.ir.printer import print_graph


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_compile_options(parser)
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if Path(args.source).suffix.lower() == ".onnx":
        from dmlc.cli.onnx_page import onnx_facts, onnx_page

        found = onnx_facts(Path(args.source), Limits.of(limits_of(args)))
        console.result(onnx_page(found))
        console.document({"source": args.source, **found})
        return 0
    program = compile_source(args)
    console.warn(program.diagnostics)
    console.result(page(program))
    console.document(
        {
            "source": args.source,
            "target": program.target.name,
            "opset": program.opset,
            **signature_json(program.signature),
            "nodes": {"before": _count(program.source_graph), "after": _count(program.graph)},
            "graph": {"before": print_graph(program.source_graph), "after": print_graph(program.graph)},
        }
    )
    return 0


def page(program: api.Program) -> str:
    """The whole page as text."""
    before, after = _count(program.source_graph), _count(program.graph)
    rows = [["operation", "as written", "compiled"]]
    rows += [[name, str(before[name] or "-"), str(after[name] or "-")] for name in {**before, **after}]
    rows.append(["all", str(before.total()), str(after.total())])
    parts = [
        signature_text(program.signature),
        f"nodes for {program.target.name}\n" + table(rows, "  "),
        "as written\n\n" + print_graph(program.source_graph),
        "compiled\n\n" + print_graph(program.graph),
    ]
    return "\n".join(parts)


def _count(graph: ir.Graph) -> Counter[str]:
    """How many nodes each operation has; carried operators by their ONNX name."""
    return Counter(getattr(node.attributes, "op_type", node.op.name) for node in graph)
