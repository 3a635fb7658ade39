"""A placement report as a table and as plain data."""

from __future__ import annotations

from typing import Any

from dmlc.cli.console import count, human_bytes, table
from dmlc.ir import Dim, DimExpr
from dmlc.placement.node_placement import NodePlacement
from dmlc.placement.obstacles import obstacles
from dmlc.placement.report import Placement
from dmlc.placement.transfers import Transfer

#: The text names so many obstacles and transfers, the JSON document all.
_MOST_OBSTACLES = _MOST_TRANSFERS = 3
#: The text names so many nodes that depend on one thing.
_MOST_NAMES = 2


def placement_text(report: Placement) -> str:
    """One line a node, then the sums."""
    rows = [["node", "operator", "DirectML", "where", "dispatches", "bytes", "level", "verdict"]]
    rows += [_row(node) for node in report.nodes if node.where != "folded"]
    sums = [
        f"opset {report.opset}, feature level {report.feature_level}",
        f"{report.partitions} fused graph{'' if report.partitions == 1 else 's'}",
        f"dispatches about {_amount(report.dispatches)}",
        f"bytes about {_bytes(report.bytes)}",
        _transfer_sum(report),
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
    text += _dependence_text(report)
    text += "".join(f"  transfer: {_transfer_line(copy)}\n" for copy in report.transfers[:_MOST_TRANSFERS])
    if len(report.transfers) > _MOST_TRANSFERS:
        text += f"  {len(report.transfers) - _MOST_TRANSFERS} more transfers with --format json\n"
    return table(rows, "  ") + f"  {'; '.join(sums)}\n{text}"


def _dependence_text(report: Placement) -> str:
    """One line on what placements depend on besides the model, with the nodes; empty where nothing does."""
    named: dict[str, list[str]] = {}
    for node in report.nodes:
        for dependence in node.hangs_on:
            named.setdefault(dependence, []).append(node.name)
    parts = []
    for dependence, names in named.items():
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        parts.append(f"{dependence} ({', '.join(names[:_MOST_NAMES])}{more})")
    return f"  hangs on: {'; '.join(parts)}\n" if parts else ""


def _transfer_sum(report: Placement) -> str:
    text = count(len(report.transfers), "transfer")
    if report.transfers:
        text += f" between CPU and GPU of about {_bytes(report.transferred)}"
    if report.possible_transfers:
        text += f", {report.possible_transfers} more possible"
    return text


def _transfer_line(copy: Transfer) -> str:
    readers = ", ".join(copy.readers[:_MOST_TRANSFERS])
    readers += f" and {len(copy.readers) - _MOST_TRANSFERS} more" if len(copy.readers) > _MOST_TRANSFERS else ""
    size = f"{copy.kind.text}, {_bytes(copy.bytes)}"
    sides = f"{copy.from_device.upper()} to {copy.to_device.upper()}"
    return f"{copy.value} ({size}), {sides}, {copy.maker} to {readers}" + (f"; {copy.cure}" if copy.cure else "")


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
        "transfers": transfers_json(report),
        "open_dims": report.dims,
        "open_inputs": report.shapes,
        "counts": {where: report.count(where) for where in ("provider", "cpu", "folded", "unknown")},
        "nodes": [_node_json(node) for node in report.nodes],
    }


def transfers_json(report: Placement) -> dict[str, Any]:
    """The copies between CPU and GPU as plain data; ``bytes`` are null where a size or a type is not known."""
    edges = [
        {
            "value": copy.value,
            "type": copy.kind.text,
            "from": copy.maker,
            "to": copy.readers[0],
            "readers": list(copy.readers),
            "from_device": copy.from_device,
            "to_device": copy.to_device,
            "bytes": _plain(copy.bytes),
            "open_dims": copy.open_dims,
            "cure": copy.cure,
        }
        for copy in report.transfers
    ]
    total, possible = _plain(report.transferred), report.possible_transfers
    return {"count": len(edges), "bytes": total, "possible": possible, "edges": edges}


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
        "hangs_on": list(node.hangs_on),
        "findings": [
            {"effect": f.effect, "operator": f.operator, "limit": f.limit, "source": f.source, "repair": f.repair}
            for f in node.findings
        ],
    }
