"""Show a program: inputs, outputs, dims, its nodes as written and as compiled, and the graph as text.

For an .onnx file: inputs, outputs, opsets, nodes, what the model requires, and its metadata.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from msgspec import UNSET, UnsetType, structs

from dmlc import api
from dmlc.cli.compile_options import add_compile_options, limits_of
from dmlc.cli.console import Console
from dmlc.cli.counts import as_written, nodes_after, nodes_before, operations
from dmlc.cli.layout import table
from dmlc.cli.library_page import LibraryAnswer, show_library
from dmlc.cli.many import run_each
from dmlc.cli.options import add_report_options, add_sources
from dmlc.cli.signatures import SignatureFacts, signature_facts, signature_text
from dmlc.cli.source import compile_source, is_model, open_source
from dmlc.ir.answers import BeforeAfter
from dmlc.ir.printer import print_graph
from dmlc.placement.requirements import RequirementFacts
from dmlc.targets import load_target
from dmlc.text import LibraryError


class InspectAnswer(SignatureFacts, frozen=True, kw_only=True):
    """A program. ``nodes`` are counted by ONNX operator, null if no model of the program as written can be made;
    ``operations`` are those of the language, and ``graph`` is its text."""

    source: str
    target: str
    opset: int
    nodes: BeforeAfter[dict[str, int] | None]
    operations: BeforeAfter[dict[str, int]]
    graph: BeforeAfter[str]
    requires: RequirementFacts | UnsetType = UNSET


def answers() -> tuple[type, ...]:
    """Return the records of the documents."""
    from dmlc.cli.onnx_page import ModelAnswer

    return InspectAnswer, ModelAnswer, LibraryAnswer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sources(parser)
    add_compile_options(parser)
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    return run_each(args, console, _inspect)


def _inspect(args: argparse.Namespace, console: Console) -> int:
    if is_model(args.source):
        from dmlc.cli.onnx_page import onnx_facts, onnx_page

        found = onnx_facts(Path(args.source), limits_of(args), load_target(args.target))
        console.result(onnx_page(found))
        console.document(structs.replace(found, source=args.source))
        return 0
    source = open_source(args)
    with console.progress(args.source) as progress:
        try:
            program = compile_source(args, source=source, progress=progress)
        except LibraryError as error:
            return show_library(args, console, error.library)
        before, after = nodes_before(program, as_written(args, program, source)), nodes_after(program)
    console.warn(program.diagnostics)
    from dmlc.cli.onnx_page import requires_text
    from dmlc.cli.placement_view import requirements_of

    required = UNSET if program.target.code == "numpy" else requirements_of(program).facts()
    last = f"\n{requires_text(required)}" if required else ""
    console.result(page(program, before, after) + last)
    console.document(
        InspectAnswer(
            source=args.source,
            target=program.target.name,
            opset=program.opset,
            **signature_facts(program.signature),
            nodes=BeforeAfter(before, after),
            operations=BeforeAfter(operations(program.source_graph), operations(program.graph)),
            graph=BeforeAfter(print_graph(program.source_graph), print_graph(program.graph)),
            requires=required,
        )
    )
    return 0


def page(program: api.Program, before: Counter[str] | None, after: Counter[str]) -> str:
    """The whole page as text; ``before`` and ``after`` are nodes by operator."""
    known: Counter[str] = Counter() if before is None else before
    rows = [["operation" if program.target.code == "numpy" else "operator", "as written", "compiled"]]
    rows += [[name, str(known[name] or "-"), str(after[name] or "-")] for name in {**known, **after}]
    rows.append(["all", "unknown" if before is None else str(before.total()), str(after.total())])
    parts = [
        signature_text(program.signature),
        f"nodes for {program.target.name}\n" + table(rows, "  "),
        "as written\n\n" + print_graph(program.source_graph),
        "compiled\n\n" + print_graph(program.graph),
    ]
    return "\n".join(parts)
