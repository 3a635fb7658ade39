"""Obstacles: the operators that keep a model from being one fused graph wholly on the provider, and why."""

from __future__ import annotations

from collections import defaultdict

from dmlc.diagnostics.counted import first_of
from dmlc.placement.node import CPU, OF_SHAPES, PROVIDER, UNKNOWN
from dmlc.placement.node_placement import NodePlacement
from dmlc.placement.report import Placement

#: Operators that hold graphs: ONNX Runtime's DirectML provider fuses nothing in a graph that has one.
_HOLDERS = ("If", "Loop", "Scan", "SequenceMap")
#: So many nodes of one operator are named, the others counted.
_MOST_NAMES = 2


def obstacles(report: Placement) -> list[str]:
    """List what keeps the model from being one fused graph wholly on the provider, a sentence for each operator and
    reason; empty where it is one.

    Operators that turn fusion off or have no kernel come first, then those that are only not fused.
    """
    if report.feature_level is None:
        return []
    named: dict[tuple[int, str, str], list[str]] = defaultdict(list)
    for node in report.nodes:
        found = _obstacle(node)
        if found is not None:
            rank, reason = found
            named[rank, node.op, reason].append(node.name)
    is_off = any(rank == 0 for rank, _, _ in named)
    out = []
    for (rank, op, reason), names in sorted(named.items(), key=lambda item: item[0][0]):
        if is_off and rank > 1:
            continue  # these have a fused graph to join only where fusion is on
        out.append(f"{op} {first_of(names, _MOST_NAMES)}: {reason}")
    if not out and report.partitions > 1:
        out.append(_unconnected(report))
    return out


def _obstacle(node: NodePlacement) -> tuple[int, str] | None:
    """The rank of the reason, and the reason; None for a node that is not an obstacle."""
    if node.op in _HOLDERS:
        return (
            0,
            f"{node.why}; a node with a graph inside turns fusion off" if node.where == CPU else "it turns fusion off",
        )
    if node.where in (CPU, UNKNOWN):
        return 2 if node.why == OF_SHAPES else 1, node.why
    if node.where == PROVIDER and node.alone:
        return 2, f"not fused: {node.alone}"
    return None


def _unconnected(report: Placement) -> str:
    """The sentence on fused graphs that no value connects: the provider merges only what is connected."""
    first: dict[int, str] = {}
    for node in report.nodes:
        if node.partition is not None:
            first.setdefault(node.partition, f"{node.op} {node.name}")
    begin = first_of([*first.values()], _MOST_NAMES + 1)
    return f"{report.partitions} fused graphs that no value connects begin at {begin}"
