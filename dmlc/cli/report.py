"""Effect of a compilation: the table of ``dmlc compile``, and the same as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx
from msgspec import Struct

from dmlc import api
from dmlc.cli.console import human_bytes
from dmlc.cli.placement_view import size_json
from dmlc.diagnostics.counted import counted
from dmlc.inference.model_facts import types_by_name
from dmlc.ir import Dim, TensorType
from dmlc.placement.report import Placement
from dmlc.placement.statistics import Statistics, statistics
from dmlc.targets import Target

_FILE_SIZE = "file size"
#: Terms of an expression of dims that are shown.
_TERMS = 3


class ModelColumn(Struct, frozen=True):
    """One column: the model's statistics and the size of its file."""

    facts: Statistics
    size: int


class ModelComparison(Struct, frozen=True):
    """A model before and after. ``before`` is None where there is no ONNX model of the program as written."""

    before: ModelColumn | None
    after: ModelColumn
    seconds: float


def side(model: onnx.ModelProto, types: Mapping[str, TensorType], size: int, target: Target) -> ModelColumn:
    """The column of a model whose values have these types."""
    return ModelColumn(statistics(model, types, target), size)


def compare(program: api.Program, source: str, size: int, seconds: float, plain: api.Program | None) -> ModelComparison:
    """Compare a compiled program with the model that was imported, or with ``plain``, the program ``as_written``."""
    made = api.emitted(program, "onnx")
    after = side(made.payload, made.types, size, program.target)
    if program.source_model is not None:
        types, before_size = types_by_name(program.source_graph), Path(source).stat().st_size
        before = side(program.source_model, types, before_size, program.target)
        return ModelComparison(before, after, seconds)
    if plain is None:
        return ModelComparison(None, after, seconds)
    written = api.emitted(plain, "onnx")
    before = side(written.payload, written.types, written.payload.ByteSize(), program.target)
    return ModelComparison(before, after, seconds)


# --- as text


def summary_line(program: api.Program, found: ModelComparison, placed: Placement | None) -> str:
    """Target, opset, nodes, dispatches, transfers if there are any, and size in one line, with the number before where
    it was another."""
    before, after = found.before, found.after
    nodes, dispatches = after.facts.total, after.facts.dispatches
    old = (None, None) if before is None else (before.facts.total, before.facts.dispatches)
    facts = [program.target.name, f"opset {program.opset}", counted(nodes, "node") + _was(nodes, old[0])]
    if isinstance(dispatches, int):
        facts.append(_dispatches(dispatches) + _was(dispatches, old[1]))
    elif dispatches is not None:
        facts.append(f"{_amount(dispatches, False)} dispatches")
    if placed is not None and placed.transfers:
        facts.append(counted(len(placed.transfers), "transfer"))
    facts.append(human_bytes(found.after.size, short=True))
    if after.facts.external_bytes:
        facts.append(f"{human_bytes(after.facts.external_bytes, short=True)} of weights beside it")
    return ", ".join(facts)


def _dispatches(number: int) -> str:
    return f"{number:,} dispatch{'' if number == 1 else 'es'}"


def _was(number: int, before: Dim | None) -> str:
    return "" if before is None or before == number else f" (was {_amount(before, False)})"


def changes_text(found: ModelComparison) -> str:
    """The rows of the table whose numbers changed; empty where only the size of the file did."""
    rows = [row for row in _rows(found) if row[1] != row[2]]
    if all(row[0] == _FILE_SIZE for row in rows):
        return ""
    return _aligned([["", "before", "after", ""], *rows]) + _remark(found.after.facts)


def comparison_text(found: ModelComparison) -> str:
    """The whole table, numbers to the right."""
    rows = [["", "before", "after", ""], *_rows(found), ["seconds", "", f"{found.seconds:.2f}", ""]]
    return _aligned(rows) + _remark(found.after.facts)


def _rows(found: ModelComparison) -> list[list[str]]:
    before, after = found.before, found.after
    rows = [_row("nodes", before, after, lambda s: s.facts.total)]
    names = {**({} if before is None else before.facts.nodes), **after.facts.nodes}
    rows += [_row(f"  {name}", before, after, _count_of(name)) for name in names]
    rows.append(_row("dispatches, about", before, after, lambda s: s.facts.dispatches))
    rows.append(_row("bytes moved, about", before, after, lambda s: s.facts.bytes_moved, as_bytes=True))
    rows.append(_row("opset", before, after, lambda s: s.facts.opset, difference=False))
    rows.append(_row(_FILE_SIZE, before, after, lambda s: s.size, as_bytes=True))
    if after.facts.external_bytes or (before is not None and before.facts.external_bytes):
        rows.append(_row("weights beside it", before, after, lambda s: s.facts.external_bytes, as_bytes=True))
    return rows


def _count_of(name: str) -> Callable[[ModelColumn], int]:
    return lambda side: side.facts.nodes.get(name, 0)


def _remark(facts: Statistics) -> str:
    if facts.bytes_moved is not None:
        return ""
    return f"bytes moved: {counted(facts.unknown, 'node')} of unknown size; --bind or --shape may make them known\n"


def _row(
    name: str,
    before: ModelColumn | None,
    after: ModelColumn,
    value: Callable[[ModelColumn], Dim | None],
    *,
    as_bytes: bool = False,
    difference: bool = True,
) -> list[str]:
    old, new = None if before is None else value(before), value(after)
    change = ""
    if difference and isinstance(old, int) and isinstance(new, int) and old != new:
        percent = "" if old == 0 else f" ({(new - old) / old:+.0%})"
        change = f"{new - old:+,}{percent}" if not as_bytes else percent.strip(" ()")
    return [name, "" if before is None else _amount(old, as_bytes), _amount(new, as_bytes), change]


def _amount(value: Dim | None, as_bytes: bool) -> str:
    if value is None:
        return "unknown"
    number = human_bytes if as_bytes else "{:,}".format
    if isinstance(value, int):
        return number(value)
    terms = sorted(value.terms, key=lambda term: (-len(term[0]), -abs(term[1])))
    texts = []
    for atoms, factor in terms[:_TERMS]:
        factors = [number(factor)] if factor != 1 or as_bytes or not atoms else []
        texts.append(" * ".join([*factors, *map(str, atoms)]))
    return " + ".join(texts + ["..."] * (len(terms) > _TERMS))


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)


# --- as data


def comparison_json(found: ModelComparison) -> dict[str, Any]:
    """The same as plain data: sizes that depend on dims as expressions, unknown ones as null."""
    before = None if found.before is None else _plain(found.before)
    return {"before": before, "after": _plain(found.after), "seconds": round(found.seconds, 3)}


def _plain(side: ModelColumn) -> dict[str, Any]:
    facts = side.facts
    return {
        "nodes": facts.nodes,
        "total": facts.total,
        "dispatches": size_json(facts.dispatches),
        "bytes_moved": size_json(facts.bytes_moved),
        "unknown": facts.unknown,
        "opset": facts.opset,
        "bytes": side.size,
        "external_bytes": facts.external_bytes,
    }
