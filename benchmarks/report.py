"""The page of a run: the machine, charts, targets that were missed and reached, then every case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.bars import BARS, Bar
from benchmarks.records import OURS, Case
from benchmarks.registry import SERIAL
from benchmarks.suites import webgpu

_INTRODUCTION = """\
Times of what dmlc emits and of other ways to compute the same. Each time is the least of several rounds in turns.
`3.5x` means that the other way takes 3.5 times as long as dmlc, or dmlc 3.5 times as long as the bound.
"""


@dataclass(frozen=True)
class Verdict:
    """``reached`` is None where the figure is. ``broken`` are our cases that gave no right result: with one of them no
    bar of the suite is reached."""

    bar: Bar
    threads: int
    figure: float | None
    broken: int

    @property
    def reached(self) -> bool | None:
        return None if self.figure is None else self.bar.reached(self.figure) and not self.broken


def verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """Each bar of the suites that ran."""
    out = []
    for bar in BARS:
        suite = [c for c in cases if c.suite == bar.suite]
        for threads in sorted({c.threads for c in suite}):
            chosen = [c for c in suite if c.threads == threads]
            broken = sum(webgpu.is_broken(c) if bar.suite == "webgpu" else OURS not in c.seconds for c in chosen)
            out.append(Verdict(bar, threads, bar.figure(chosen), broken))
    return out


def document(cases: Sequence[Case], machine: dict[str, str], said: Sequence[str]) -> dict[str, Any]:
    """The document of ``--json``."""
    bars = [
        {
            "id": v.bar.id,
            "text": v.bar.text,
            "suite": v.bar.suite,
            "threads": v.threads,
            "wanted": f"{v.bar.direction} {v.bar.threshold:g}{v.bar.unit}",
            "measured": v.figure,
            "wrong results": v.broken,
            "reached": v.reached,
        }
        for v in verdicts(cases)
    ]
    return {"schema": 1, "machine": machine, "notes": list(said), "bars": bars, "cases": [c.to_json() for c in cases]}


def markdown(cases: Sequence[Case], machine: dict[str, str], said: Sequence[str], charts: Iterable[str] = ()) -> str:
    """The text of ``--markdown``, and of the terminal. ``charts`` are the names of SVG files."""
    parts = ["# Benchmarks\n", _INTRODUCTION, table([["machine", ""], *map(list, machine.items())])]
    parts += ["", *(f"- {sentence}" for sentence in said)]
    parts += [f"\n![chart of {name.removesuffix('.svg')}]({name})" for name in charts]
    found = verdicts(cases)
    parts += ["", "## Targets that were missed\n", _targets([v for v in found if v.reached is False])]
    parts += ["", "## Targets that were reached\n", _targets([v for v in found if v.reached is not False])]
    for suite in dict.fromkeys(c.suite for c in cases):
        for threads in sorted({c.threads for c in cases if c.suite == suite}):
            chosen = [c for c in cases if c.suite == suite and c.threads == threads]
            count = "" if suite in SERIAL else f", {threads} thread{'s' if threads > 1 else ''}"
            parts += ["", f"## {suite}{count}\n", *([_on_device(chosen)] if suite == "webgpu" else [_cases(chosen)])]
    return "\n".join(parts) + "\n"


def _targets(found: Sequence[Verdict]) -> str:
    rows = [["figure", "target", "threads", "measured", "remarks"]]
    for v in found:
        wanted = f"{v.bar.direction} {v.bar.threshold:,.10g}{v.bar.unit}"
        measured = "not measured" if v.figure is None else f"{number(v.figure)}{v.bar.unit}"
        remark = f"{v.broken} cases without a right result" if v.broken else ""
        rows.append([v.bar.text, wanted, "" if v.bar.suite in SERIAL else str(v.threads), measured, remark])
    return table(rows)


def _cases(cases: Sequence[Case]) -> str:
    """Milliseconds of ours and of the bound; of the others how many times ours they take."""
    others = list(dict.fromkeys(v for c in cases for v in c.seconds if v not in (OURS, c.bound)))
    figures = list(dict.fromkeys(key for c in cases for key in c.figures))
    bound = next((c.bound for c in cases if c.bound), None)
    head = ["case", "dmlc ms", *([f"over {_bounds(cases)}"] if bound else []), *others, *figures, "remarks"]
    rows = [head]
    for c in cases:
        row = [c.name, number(c.seconds[OURS] * 1e3) if OURS in c.seconds else ""]
        if bound:
            row.append(_times(c.over_bound(OURS)))
        row += [_times(c.ratio(v)) for v in others]
        row += [number(c.figures[key]) if key in c.figures else "" for key in figures]
        wrong = [f"{v} gives other results" for v in c.wrong]
        rows.append([*row, "; ".join([*wrong, *c.notes])])
    return table(rows)


def _on_device(cases: Sequence[Case]) -> str:
    """The sums, and for each case dispatches / nodes on the CPU / copies, and the times of others over ours."""
    names = {OURS: "webgpu"}
    shared = [note for note in cases[0].notes if all(note in c.notes for c in cases)]
    parts = [*(f"Times: {note}." for note in shared), ""]
    for tag in ("model", "pattern"):
        found = {variant: webgpu.sums(cases, tag, variant) for variant in webgpu.VARIANTS}
        count = found[OURS].pop("of")
        rows = [[f"{count:.0f} {tag}s", *found[OURS]]]
        rows += [[names.get(v, v), *(f"{sums[key]:,.0f}" for key in found[OURS])] for v, sums in found.items()]
        parts += [table(rows), ""] if count else []
    others = [variant for variant in webgpu.VARIANTS if variant != OURS]
    shown = [*others, OURS]
    rows = [["case", *(names.get(v, v) for v in shown), *(f"{v}, time" for v in others), "remarks"]]
    for c in cases:
        counts, times = [webgpu.counts_text(c, v) for v in shown], [_times(c.ratio(v)) for v in others]
        rows.append([c.name, *counts, *times, "; ".join(note for note in c.notes if note not in shared)])
    return "\n".join([*parts, table(rows)])


def _bounds(cases: Sequence[Case]) -> str:
    return " or ".join(sorted({c.bound for c in cases if c.bound}))


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}x"


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
