"""Counts of nodes before and after compiling, and times of passes: the same numbers for every verb."""

from __future__ import annotations

import argparse
from collections import Counter

from dmlc import api
from dmlc.cli.source import compile_source
from dmlc.diagnostics import DmlcError, Source
from dmlc.diagnostics.counted import counted
from dmlc.ir import Graph
from dmlc.ops.constant import CONSTANT


def nodes_after(program: api.Program) -> Counter[str]:
    """Return the nodes by operator of the ONNX model that a program becomes, as ``node_counts`` counts them.

    For target ``numpy`` there is no such model: these are the operations of its graph. Raises ``DmlcError`` where the
    program cannot be emitted.
    """
    if program.target.code == "numpy":
        return operations(program.graph)
    from dmlc.placement.node_counts import node_counts

    return node_counts(api.emitted(program, "onnx").payload)


def nodes_before(program: api.Program, plain: api.Program | None) -> Counter[str] | None:
    """Return the nodes of the imported model, or of ``plain``, the program ``as_written``; None if there is neither.

    For target ``numpy`` these are the operations of the graph as it was written.
    """
    if program.target.code == "numpy":
        return operations(program.source_graph)
    if program.source_model is not None:
        from dmlc.placement.node_counts import node_counts

        return node_counts(program.source_model)
    return None if plain is None else nodes_after(plain)


def as_written(args: argparse.Namespace, program: api.Program, source: Source | str) -> api.Program | None:
    """Compile the program with the mandatory rules alone; with no rule if it uses ONNX models, which stay as they are.

    None for an imported model, which counts as it is, and where only a rewrite makes a program of it.
    """
    if program.source_model is not None or program.target.code == "numpy":
        return None
    try:
        if program.source_graph.joined is not None:
            plain = api.with_models_untouched(program, source, args.model, args.include)
        else:
            plain = compile_source(args, source=source, as_written=True)
        api.emitted(plain, "onnx")
    except DmlcError:
        return None
    return plain


def timing_lines(program: api.Program) -> list[str]:
    """Return the time of each pass that changed something, and the time of all other passes together."""
    lines = [f"{spent * 1e3:8.2f} ms  {name}" for name, spent, changed in program.timings if changed]
    idle = [spent for _, spent, changed in program.timings if not changed]
    return [*lines, f"{sum(idle) * 1e3:8.2f} ms  {counted(len(idle), 'other pass')}"]


def operations(graph: Graph) -> Counter[str]:
    """Return the operations of a graph and its inner graphs by name, carried ones by their ONNX name; constants do not
    count."""
    found: Counter[str] = Counter()
    for node in graph:
        if node.op is not CONSTANT:
            found[getattr(node.attributes, "op_type", node.op.name)] += 1
        for region in node.regions:
            found.update(operations(region.graph))
    return found
