"""A placement report as text and as plain data."""

from __future__ import annotations

import re
from typing import Annotated, Any

from dmlc import api
from dmlc.cli.console import human_bytes
from dmlc.cli.layout import wrapped
from dmlc.diagnostics.counted import counted, first_of
from dmlc.ir import Dim
from dmlc.ir.answers import Answer, Size, words
from dmlc.placement.costs import total
from dmlc.placement.node import Finding, NodePlacement
from dmlc.placement.report import Placement
from dmlc.placement.requirements import Requirements, obstacles, requirements, requirements_of_opset
from dmlc.placement.transfers import Transfer

#: The text names so many readers of a copy, the JSON document all.
_MOST_READERS = 3
_SIZES, _OPERAND = re.compile(r"dynamic sizes: .*"), re.compile(r"operand \d+ \([^()]*\)")
#: The text names so many nodes that depend on one thing.
_MOST_NAMES = 2


def placement_text(report: Placement) -> str:
    """Each node with its costs, by verdict, the worst first; then the sums, obstacles and copies."""
    sums = [
        f"opset {report.opset}" + (f", feature level {report.feature_level}" if report.feature_level else ""),
        *([counted(report.partitions, "fused graph")] if report.feature_level else ()),
        f"dispatches about {_amount(report.dispatches)}",
        f"bytes about {_bytes(report.bytes)}",
        _copies_sum(report),
        *([f"feature level {report.level} suffices"] if report.level else ()),
    ]
    folded = report.count("folded")
    if folded:
        sums.append(f"{folded} computed while loading")
    if report.dims:
        sums.append(f"dynamic sizes {', '.join(report.dims)}: --bind fixes them")
    if report.shapes:
        options = " ".join(f"--shape {name}=..." for name in report.shapes)
        sums.append(f"dynamic sizes without a name: {options} fixes them")
    found = obstacles(report)
    text = wrapped(f"not one fused graph: {'; '.join(found)}", "  ") if found else ""
    text += _dependence_text(report)
    text += "".join(wrapped(f"CPU/GPU copy: {_copy_line(copy)}", "  ") for copy in report.transfers)
    return _groups_text(report) + wrapped("; ".join(sums), "  ") + text


def _groups_text(report: Placement) -> str:
    """Each verdict with the number of its nodes, their cost and their names, the worst first."""
    groups: dict[tuple[str, str], list[NodePlacement]] = {}
    for node in report.nodes:
        if node.where != "folded":
            groups.setdefault((_WHERE.get(node.where, ""), kind_of_verdict(node.verdict)), []).append(node)
    out = ""
    for (where, verdict), nodes in sorted(groups.items(), key=lambda item: _rank(item[1][0])):
        costs = [text for text in (_dispatches(nodes), _fixed_bytes(nodes)) if text]
        said = counted(len(nodes), "node") + (f" {where}, {verdict}" if where else f": {verdict}")
        out += wrapped(f"{said} ({', '.join(costs)})" if costs else said, "  ", "    ")
        out += "".join(wrapped(_line(node), "      ") for node in nodes)
    return out


def kind_of_verdict(verdict: str) -> str:
    """The verdict without the sizes and operands of one node, so that it is that of many."""
    return _OPERAND.sub("an operand", _SIZES.sub("dynamic sizes", verdict))


#: The words for places; where the verdict says it there are none.
_WHERE = {"provider": "on the GPU", "cpu": "on the CPU", "unknown": ""}


def _rank(node: NodePlacement) -> int:
    """The order of the groups: what fails, what is wrong, the CPU, the unknown, alone, in a fused graph."""
    effects = {finding.effect for finding in node.findings}
    states = ["fails" in effects, "wrong" in effects, node.where == "cpu", node.where == "unknown", bool(node.alone)]
    return states.index(True) if any(states) else len(states)


def _dispatches(nodes: list[NodePlacement]) -> str:
    number = total([node.dispatches for node in nodes])
    return f"{number:,} dispatch{'' if number == 1 else 'es'}" if isinstance(number, int) else ""


def _fixed_bytes(nodes: list[NodePlacement]) -> str:
    number = total([node.bytes for node in nodes])
    return human_bytes(number) if isinstance(number, int) else ""


def _dependence_text(report: Placement) -> str:
    """One line on what placements depend on besides the model, with the nodes; empty where nothing does."""
    named: dict[str, list[str]] = {}
    for node in report.nodes:
        for dependence in node.hangs_on:
            named.setdefault(dependence, []).append(node.name)
    parts = [f"{dependence} ({first_of(names, _MOST_NAMES)})" for dependence, names in named.items()]
    return wrapped(f"depends on: {'; '.join(parts)}", "  ") if parts else ""


def _copies_sum(report: Placement) -> str:
    copies = len(report.transfers)
    text = counted(copies, "CPU/GPU copy")
    if report.transfers:
        text += f" of about {_bytes(report.transferred)}"
    if report.possible_transfers:
        text += f", {report.possible_transfers} more possible"
    return text


def _copy_line(copy: Transfer) -> str:
    readers = first_of(copy.readers, _MOST_READERS)
    size = f"{copy.kind.text}, {_bytes(copy.bytes)}"
    sides = f"{copy.from_device.upper()} to {copy.to_device.upper()}"
    return f"{copy.value} ({size}), {sides}, {copy.maker} to {readers}" + (f"; {copy.cure}" if copy.cure else "")


def _line(node: NodePlacement) -> str:
    """One node: its operators, its fused graph, what it costs, the feature level, and its verdict."""
    refused = any(finding.effect == "fails" for finding in node.findings)
    level = node.level or ("none" if refused else "not in the tables" if node.where == "provider" else "")
    parts = [
        " ".join([node.op, node.name, *(["->", " + ".join(node.directml)] if node.directml else [])]),
        f"fused graph {node.partition + 1}" if node.partition is not None else "",
        f"dispatches {_amount(node.dispatches)}",
        _bytes(node.bytes),
        f"level {level}" if level else "",
    ]
    verdict = node.verdict if kind_of_verdict(node.verdict) != node.verdict else ""
    return "; ".join(filter(None, [", ".join(filter(None, parts)), verdict]))


def _amount(value: Dim | None) -> str:
    return "unknown" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _bytes(value: Dim | None) -> str:
    return human_bytes(value) if isinstance(value, int) else _amount(value)


class NodeFacts(Answer, frozen=True, rename={"op": "operator", "level": "first_feature_level"}):
    """A node: where it runs and why, its DirectML operators, what it costs, and what is known to go wrong.

    ``partition`` is the number of its fused graph; ``alone`` is the reason if it is in none. ``source`` is null for an
    operator that no table has.
    """

    name: str
    op: str
    directml: tuple[str, ...]
    where: Annotated[str, words("provider", "cpu", "folded", "unknown")]
    why: str
    source: str | None
    partition: int | None
    alone: str
    dispatches: Size | None
    bytes: Size | None
    level: str | None
    verdict: str
    hangs_on: tuple[str, ...]
    findings: tuple[Finding, ...]


class CopyFacts(Answer, frozen=True, rename={"maker": "from"}):
    """A copy between CPU and GPU; ``bytes`` is null if a size or the type is not known."""

    value: str
    type: str
    maker: str
    to: str
    readers: tuple[str, ...]
    from_device: str
    to_device: str
    bytes: Size | None
    open_dims: list[str]
    cure: str


class CopiesFacts(Answer, frozen=True):
    """The copies between CPU and GPU; ``possible`` counts those of nodes of which it is not known where they run."""

    count: int
    bytes: Size | None
    possible: int
    edges: list[CopyFacts]


def placement_facts(report: Placement) -> dict[str, Any]:
    """Return the fields of ``CheckAnswer`` about a placement."""
    return {
        "opset": report.opset,
        "feature_level": report.feature_level,
        "first_feature_level": report.level,
        "verdict": report.verdict,
        "partitions": report.partitions,
        "obstacles": obstacles(report),
        "dispatches": report.dispatches,
        "bytes": report.bytes,
        "transfers": copies_facts(report),
        "open_dims": report.dims,
        "open_inputs": report.shapes,
        "counts": {where: report.count(where) for where in ("provider", "cpu", "folded", "unknown")},
        "nodes": [NodeFacts.of(node) for node in report.nodes],
    }


def requirements_of(program: api.Program) -> Requirements:
    """Return what the ONNX model of a program requires."""
    if program.target.provider is None:
        return requirements_of_opset(program.opset)
    return requirements(program.placement())


def copies_facts(report: Placement) -> CopiesFacts:
    """Return the copies between CPU and GPU."""
    edges = [CopyFacts.of(copy, type=copy.kind.text, to=copy.readers[0]) for copy in report.transfers]
    # a sum of sizes is written as its text
    total: Any = report.transferred
    return CopiesFacts(len(edges), total, report.possible_transfers, edges)
