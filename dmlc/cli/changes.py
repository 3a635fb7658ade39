"""Reasons for what a compilation leaves or raises: nodes on the CPU, copies, graphs that are not fused, more nodes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from onnx import ModelProto

from dmlc import api
from dmlc.cli.console import human_bytes
from dmlc.cli.model_comparison import ModelColumn
from dmlc.diagnostics.counted import counted
from dmlc.onnx_schema.nested import all_nodes
from dmlc.placement.node import CPU, OF_SHAPES, OPEN_SIZES, PROVIDER, NodePlacement
from dmlc.placement.report import Placement

#: The repair of a node that another opset alone brings to the provider.
_OPSET = re.compile(r"opset \d+")
#: Operators, or dims, that are named; the others are counted.
_MOST, _MOST_DIMS = 3, 5


def listed(names: Sequence[str], most: int = _MOST) -> str:
    """Names as a sentence has them: ``a, b and c``; of many the first, and how many more."""
    shown = list(names[:most])
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""


def operators_text(nodes: Iterable[NodePlacement], most: int = _MOST) -> str:
    """The most frequent operators with their numbers: ``132 Unsqueeze, 62 Gather, ...``."""
    found = Counter(node.op for node in nodes).most_common()
    return ", ".join([f"{number} {op}" for op, number in found[:most]] + ["..."] * (len(found) > most))


def dynamic_text(placed: Placement) -> str:
    """The sizes that are dynamic: ``s33, s50 and s6 are dynamic``; empty where none is."""
    names = [*placed.dims, *[f"sizes of {name}" for name in placed.shapes]]
    if not names:
        return ""
    return f"{listed(names, _MOST_DIMS)} {'is' if len(placed.dims) == 1 and not placed.shapes else 'are'} dynamic"


def cpu_reason(placed: Placement) -> str:
    """The reasons for the nodes on the CPU, the most frequent first."""
    groups: dict[str, list[NodePlacement]] = defaultdict(list)
    for node in placed.nodes:
        if node.where == CPU:
            groups[node.why].append(node)
    parts = []
    for why, nodes in sorted(groups.items(), key=lambda item: -len(item[1])):
        if why == OF_SHAPES:
            dynamic = dynamic_text(placed)
            parts.append(f"shape computations{f', because {dynamic}' if dynamic else ''}")
        else:
            parts.append(f"{operators_text(nodes)}: {why}")
    more = f"; {counted(len(parts) - 2, 'more reason')}" if len(parts) > 2 else ""
    return "; ".join(parts[:2]) + more


def copies_reason(placed: Placement) -> str:
    """The values that are copied."""
    return f"between the GPU and {listed([copy.maker for copy in placed.transfers])}"


def fused_reason(placed: Placement) -> str:
    """The number of nodes in fused graphs, and the reason for those that are in none."""
    fused = sum(node.partition is not None for node in placed.nodes)
    alone = [node for node in placed.nodes if node.where == PROVIDER and node.alone]
    text = f"{counted(fused, 'node')} fused" if fused else ""
    if not alone:
        return text
    dynamic = dynamic_text(placed) if any(node.alone.startswith(OPEN_SIZES) for node in alone) else ""
    reason = dynamic or Counter(node.alone for node in alone).most_common(1)[0][0]
    return f"{text}, {len(alone)} not: {reason}" if text else reason


def left_cpu(before: ModelColumn, after: ModelColumn) -> str:
    """The number of nodes that left the CPU; empty where none did."""
    number = before.facts.on_cpu - after.facts.on_cpu
    return f"{counted(number, 'node')} came from the CPU" if number > 0 else ""


def growth_reason(program: api.Program, before: ModelColumn, after: ModelColumn) -> str:
    """The reason for more nodes or bytes: operators without a kernel are decomposed, else the rules that make more
    nodes than they take."""
    refused: Counter[str] = Counter()
    placed = before.placed
    for node in () if placed is None else placed.nodes:
        if node.where == CPU and _lacks_kernel(node) and not after.facts.nodes.get(node.op):
            refused[node.op] += 1
    if placed is not None and refused:
        names = listed([f"{number} {op}" for op, number in refused.most_common()])
        return f"{names} in operators that {placed.device} has"
    grown: Counter[str] = Counter()
    for entry in program.ledger:
        grown[entry.rule] += len(entry.after) - len(entry.before)
    rules = [f"{rule} adds {counted(number, 'node')}" for rule, number in grown.most_common(2) if number > 0]
    if not rules:
        fired = Counter(entry.rule for entry in program.ledger).most_common(2)
        rules = [f"by {listed([rule for rule, _ in fired])}"] if fired else []
    return "; ".join(rules) or "ONNX operators written as several"


def _lacks_kernel(node: NodePlacement) -> bool:
    """Return whether no opset alone brings the node to the provider."""
    return any(finding.effect == CPU and not _OPSET.fullmatch(finding.repair) for finding in node.findings)


def file_reason(before: ModelProto, after: ModelProto) -> str:
    """The part of the file that grew most."""
    old, new = _parts(before), _parts(after)
    grown = {name: new[name] - old[name] for name in new}
    name = max(grown, key=lambda part: grown[part])
    return f"{human_bytes(grown[name], short=True)} more of {name}"


def _parts(model: ModelProto) -> dict[str, int]:
    """The bytes of the parts of a model, by what they are."""
    graph = model.graph
    notes = [entry for node in all_nodes(graph.node) for entry in node.metadata_props]
    noted = sum(entry.ByteSize() for entry in [*notes, *model.metadata_props])
    nodes = sum(node.ByteSize() for node in graph.node)
    return {
        "weights": sum(tensor.ByteSize() for tensor in graph.initializer),
        "notes on where each node is from": noted,
        "types of values": sum(info.ByteSize() for info in graph.value_info),
        "nodes": nodes - sum(entry.ByteSize() for entry in notes),
    }
