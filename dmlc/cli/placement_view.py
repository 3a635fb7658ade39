"""A placement report as a table and as plain data."""

from __future__ import annotations

from typing import Any

from dmlc.cli.console import table
from dmlc.cli.report import human_bytes
from dmlc.ir import Dim, DimExpr
from dmlc.placement.obstacles import obstacles
from dmlc.placement.report import NodePlacement, Placement

#: The text names so many obstacles, the JSON document all.
_MOST_OBSTACLES = 3


def placement_text(report: Placement) -> str:
    """One line a node, then the sums."""
    rows = [["node", "operator", "DirectML", "where", "dispatches", "bytes", "level", "verdict"]]
    rows += [_row(node) for node in report.nodes if node.where != "folded"]
    sums = [
        f"opset {report.opset}, feature level {report.feature_level}",
        f"{report.partitions} fused graph{'' if report.partitions == 1 else 's'}",
        f"dispatches about {_amount(report.dispatches)}",
        f"bytes about {_bytes(report.bytes)}",
        f"feature level {report.level} suffices",
    ]
    folded = report.count("folded")
    if folded:
        sums.append(f"{folded} computed while loading")
    if report.dims:
        sums.append(f"open sizes {', '.join(report.dims)}: --bind fixes them")
    if report.shapes:
        options = " ".join(f"--shape {name}=..." for name in report.shapes)
        sums.append(f"open sizes without a name: {options} fixes them")
    found = obstacles(report)
    more = f"; {len(found) - _MOST_OBSTACLES} more with --format json" if len(found) > _MOST_OBSTACLES else ""
    text = f"  not one fused graph: {'; '.join(found[:_MOST_OBSTACLES])}{more}\n" if found else ""
    return table(rows, "  ") + f"  {'; '.join(sums)}\n{text}"


def _row(node: NodePlacement) -> list[str]:
    where = {"provider": "DirectML", "cpu": "CPU"}.get(node.where, node.where)
    if node.partition is not None:
        where += f" #{node.partition + 1}"
    operators = " + ".join(node.directml) or "-"
    refused = any(finding.effect == "fails" for finding in node.findings)
    level = node.level or ("none" if refused else "not in the tables" if node.where == "provider" else "-")
    return [node.name, node.op, operators, where, _amount(node.dispatches), _bytes(node.bytes), level, node.verdict]


def _amount(value: Dim | None) -> str:
    return "unknown" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _bytes(value: Dim | None) -> str:
    return human_bytes(value) if isinstance(value, int) else _amount(value)


def placement_json(report: Placement) -> dict[str, Any]:
    """The same as plain data: sizes that depend on dims as expressions, unknown ones as null."""
    return {
        "opset": report.opset,
        "feature_level": report.feature_level,
        "first_feature_level": report.level,
        "verdict": report.verdict,
        "partitions": report.partitions,
        "obstacles": obstacles(report),
        "dispatches": _plain(report.dispatches),
        "bytes": _plain(report.bytes),
        "open_dims": report.dims,
        "open_inputs": report.shapes,
        "counts": {where: report.count(where) for where in ("provider", "cpu", "folded", "unknown")},
        "nodes": [_node_json(node) for node in report.nodes],
    }


def _plain(value: Dim | None) -> int | str | None:
    return str(value) if isinstance(value, DimExpr) else value


def _node_json(node: NodePlacement) -> dict[str, Any]:
    return {
        "name": node.name,
        "operator": node.op,
        "directml": list(node.directml),
        "where": node.where,
        "why": node.why,
        "source": node.source,
        "partition": node.partition,
        "alone": node.alone,
        "dispatches": _plain(node.dispatches),
        "bytes": _plain(node.bytes),
        "first_feature_level": node.level,
        "verdict": node.verdict,
        "findings": [
            {"effect": f.effect, "operator": f.operator, "limit": f.limit, "source": f.source, "repair": f.repair}
            for f in node.findings
        ],
    }
