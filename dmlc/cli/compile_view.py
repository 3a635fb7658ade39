"""Output of ``dmlc compile``: the first line, the table of before and after, the rewrites."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping

from dmlc import api
from dmlc.cli.amounts import amount_at, amount_text
from dmlc.cli.changes import copies_reason, cpu_reason, file_reason, fused_reason, growth_reason, left_cpu
from dmlc.cli.console import human_bytes
from dmlc.cli.layout import WIDTH, terminal_width, wrapped
from dmlc.cli.model_comparison import ModelColumn, ModelComparison
from dmlc.diagnostics.counted import counted
from dmlc.ir import Dim
from dmlc.placement.node import CPU, PROVIDER
from dmlc.placement.report import Placement

#: Rules that are named in the line of rewrites, the others counted.
_MOST_RULES = 4
#: Rewrites that remove what has no effect or is not used: they are named last.
_TIDY = frozenset(("dce", "cse", "fold", "move-nothing", "cast-to-same", "reshape-chain"))
#: A row: its name, the text before, the text after, the reason or difference.
_Row = tuple[str, str, str, str]


def nodes_text(total: int, placed: Placement | None) -> str:
    """The nodes of a compiled model and where they run: ``180 nodes in 1 fused graph``."""
    text = counted(total, "node")
    if placed is None or not total:
        return text
    on_cpu, unknown = placed.count(CPU), placed.count("unknown")
    alone = sum(node.where == PROVIDER and bool(node.alone) for node in placed.nodes)
    if not (alone or on_cpu or unknown):
        return f"{text} in {counted(placed.partitions, 'fused graph')}" if placed.partitions else f"{text} on the GPU"
    parts = [text, f"{on_cpu} on the CPU" if on_cpu else "all on the GPU" if not unknown else ""]
    parts += [f"{unknown} unknown" if unknown else ""]
    parts += [counted(placed.partitions, "fused graph") if placed.partitions else "nothing fused" if alone > 1 else ""]
    return ", ".join(filter(None, parts))


def first_line(program: api.Program, found: ModelComparison) -> str:
    """Target, opset, nodes and where they run, dispatches, and the size of the file."""
    after = found.after
    facts = [program.target.name, f"opset {program.opset}", nodes_text(after.facts.total, after.placed)]
    if found.before is None and after.placed is not None and isinstance(after.facts.dispatches, int):
        facts.append(dispatches_text(after.facts.dispatches))
    if after.placed is not None and after.placed.transfers:
        copies = len(after.placed.transfers)
        facts.append(counted(copies, "CPU/GPU copy"))
    facts.append(human_bytes(after.size, short=True))
    if after.facts.external_bytes:
        facts.append(f"{human_bytes(after.facts.external_bytes, short=True)} of weights in other files")
    return ", ".join(facts)


def dispatches_text(number: int) -> str:
    """A number of dispatches in words."""
    return f"{number:,} dispatch{'' if number == 1 else 'es'}"


# --- the table


def table_text(program: api.Program, found: ModelComparison, sizes: Mapping[str, int], *, verbose: bool) -> str:
    """The rows that changed, with a reason for each number that rises; all rows, and each operator, if ``verbose``.

    ``sizes`` are sizes of dynamic dims at which amounts that depend on them are compared.
    """
    if found.before is None:
        return ""
    rows = compared_rows(program, found.before, found.after, sizes, verbose=verbose)
    if verbose:
        rows += _operator_rows(found.before, found.after)
        rows.append(("opset", str(found.before.facts.opset), str(found.after.facts.opset), ""))
        rows.append(("seconds", "", f"{found.seconds:.2f}", ""))
    elif all(row[0] == "file size" for row in rows):
        return ""
    return _aligned([("", "before", "after", ""), *rows]) + (_remark(found.after) if verbose else "")


def compared_rows(
    program: api.Program, before: ModelColumn, after: ModelColumn, sizes: Mapping[str, int], *, verbose: bool
) -> list[_Row]:
    """The rows of ``table_text``: a name, the amounts before and after, and the reason for a rise."""
    a, b = before.facts, after.facts
    rows: list[_Row] = []

    def add(name: str, old: Dim | None, new: Dim | None, why: Callable[[], str], *, as_bytes: bool = False) -> None:
        at = ""
        is_compared = old != new or (verbose and sizes)
        if is_compared and not (isinstance(old, int) and isinstance(new, int)):
            old_fixed, new_fixed = amount_at(old, sizes), amount_at(new, sizes)
            if old_fixed is None or new_fixed is None:
                if verbose:
                    rows.append((name, amount_text(old, as_bytes=as_bytes), amount_text(new, as_bytes=as_bytes), ""))
                return
            at = f"at {', '.join(f'{dim}={size}' for dim, size in sizes.items())}"
            old, new = old_fixed, new_fixed
        if old == new and not verbose:
            return
        rises = isinstance(old, int) and isinstance(new, int) and new > old
        rows.append(
            (
                name,
                amount_text(old, as_bytes=as_bytes),
                amount_text(new, as_bytes=as_bytes),
                "; ".join(filter(None, (at, why() if rises else ""))),
            )
        )

    def growth() -> str:
        return growth_reason(program, before, after)

    def dispatches() -> str:
        return left_cpu(before, after) or growth()

    if before.placed is not None and after.placed is not None:
        placed = after.placed
        if a.on_cpu != b.on_cpu or b.on_cpu or verbose:
            rows.append(("nodes on the CPU", f"{a.on_cpu:,}", f"{b.on_cpu:,}", cpu_reason(placed)))
        add("CPU/GPU copies", a.copies, b.copies, lambda: copies_reason(placed))
        is_loose = any(node.where == PROVIDER and node.alone for node in placed.nodes)
        if a.fused_graphs != b.fused_graphs or is_loose or verbose:
            rows.append(("fused graphs", f"{a.fused_graphs:,}", f"{b.fused_graphs:,}", fused_reason(placed)))
        add("GPU dispatches", a.dispatches, b.dispatches, dispatches)
        add("bytes moved", a.bytes_moved, b.bytes_moved, growth, as_bytes=True)
    add("nodes", a.total, b.total, growth)
    add("file size", before.size, after.size, lambda: file_reason(before.model, after.model), as_bytes=True)
    if a.external_bytes or b.external_bytes:
        add("weights in other files", a.external_bytes, b.external_bytes, lambda: "folded weights", as_bytes=True)
    return rows


def _operator_rows(before: ModelColumn, after: ModelColumn) -> list[_Row]:
    old, new = Counter(before.facts.nodes), Counter(after.facts.nodes)
    return [(f"  {name}", f"{old[name]:,}", f"{new[name]:,}", "") for name in {**old, **new}]


def _remark(after: ModelColumn) -> str:
    if after.facts.bytes_moved is not None:
        return ""
    return f"bytes moved: {counted(after.facts.unknown, 'node')} of unknown size; --bind or --shape may fix the sizes\n"


def _aligned(rows: list[_Row]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    start = 2 + sum(widths) + 4 + 3
    room = max((terminal_width() or WIDTH) - start, 20)
    out = ""
    for name, old, new, why in rows:
        head = f"  {name.ljust(widths[0])}  {old.rjust(widths[1])}  {new.rjust(widths[2])}"
        for line in textwrap.wrap(why, room, break_long_words=False) or [""]:
            out += f"{head}   {line}".rstrip() + "\n"
            head = " " * (start - 3)
    return out


# --- the rewrites


def rewritten_text(program: api.Program, found: ModelComparison) -> str:
    """The line of rewrites: the nodes that were removed for the most frequent cause, the rules that fired most, and the
    opset before and after; empty where nothing was done."""
    fired = Counter(entry.rule for entry in program.ledger)
    ranked = sorted(fired.items(), key=lambda item: (item[0] in _TIDY, -item[1], item[0]))
    parts = [removal.text.partition(":")[0] for removal in program.removed[:1]]
    parts += [f"{number} {rule}" for rule, number in ranked[:_MOST_RULES]]
    others = sum(number for _, number in ranked[_MOST_RULES:])
    parts += [f"{others} by other rules"] if others else []
    text = ", ".join(parts)
    old = None if found.before is None else found.before.facts.opset
    if old is not None and old != program.opset:
        text += f"{'; ' if text else ''}opset {old} -> {program.opset}"
    return wrapped(f"rewritten: {text}", "  ", "           ") if text else ""
