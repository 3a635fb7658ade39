"""``dmlc doctor --probe``: single nodes on the device, and what the tables of the package say otherwise."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import msgspec

from dmlc.api.chosen_target import chosen_target
from dmlc.cli.console import Console, UsageError
from dmlc.debugging.probe import nodes_of_source, nodes_of_table, probe
from dmlc.diagnostics.counted import counted
from dmlc.ir.answers import Answer
from dmlc.placement.probed import ProbedNode
from dmlc.runtime import files
from dmlc.runtime.session import has_directml

_FINE = {True: "right", False: "wrong", None: "not compared"}


class ProbeAnswer(Answer, frozen=True):
    """The outcome of a probe; ``unlike`` are the rows, as text, for which the package's table says otherwise."""

    output: str
    device: str
    rows: int
    states: dict[str, int]
    unlike: list[str]
    notes: list[str]


def show_probe(args: argparse.Namespace, console: Console) -> int:
    """Write the file, and show what is not fine; the exit code is 1 where a table says otherwise. Raises ``DmlcError``
    E0553 where the provider or its device is not there."""
    backend = args.backend or ("dml" if has_directml() else "cpu")
    target, output = chosen_target(backend, None), args.output or f"{args.probe or backend}.probe.json"
    if args.probe and Path(output).exists() and Path(output).samefile(args.probe):
        raise UsageError(f"OUT is MODEL: {output} would be overwritten")
    expected, left = {}, 0
    with console.progress(args.probe or "probe"):
        if args.probe:
            nodes, left = nodes_of_source(args.probe)
        else:
            of_table = list(nodes_of_table(target))
            nodes = {single.key: single for single, _ in of_table}
            expected = {single.key: takes for single, takes in of_table}
        found, skipped = probe(nodes, backend, target, force=args.force)
    files.write_bytes(Path(output), msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    unlike = [text_of(row) for row in found.nodes if expected.get(row.key) not in (None, is_fine(row))]
    states = Counter(f"{row.state}, {_FINE[row.right]}" if row.state == "runs" else row.state for row in found.nodes)
    notes = [f"{counted(left, 'node')} of open sizes not run: dmlc compile --bind fixes them"] if left else []
    notes += [f"{counted(skipped, 'node')} known to end the process not run: --force runs them"] if skipped else []
    bad = unlike if expected else [text_of(row) for row in found.nodes if not is_fine(row)]
    lines = [f"{output}: {counted(len(found.nodes), 'node')} on {found.device}, ONNX Runtime {found.onnxruntime}"]
    lines += [f"  {number} {state}" for state, number in states.most_common()]
    lines += [f"{len(unlike)} unlike the table of the package"] * bool(expected)
    console.result("\n".join((*lines, *[f"  {text}" for text in bad], *[f"note: {note}" for note in notes])) + "\n")
    console.document(ProbeAnswer(output, found.device, len(found.nodes), dict(states), unlike, notes), ok=not unlike)
    return 1 if unlike else 0


def is_fine(row: ProbedNode) -> bool:
    """Return whether the device runs the node, with right numbers as far as that is known."""
    return row.state == "runs" and row.right is not False


def text_of(row: ProbedNode) -> str:
    """A row as a line: the node, and what came of it."""
    what = "other numbers" if row.state == "runs" and row.right is False else row.state
    return f"{row.operator}({', '.join(row.types)}) {row.attributes}: {what}".replace(" :", ":")
