"""The plots, written as SVG text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from benchmarks.records import OURS, Case

_COLOURS = ("#1b6ca8", "#c0392b", "#7f8c8d", "#27ae60", "#8e44ad", "#d68910", "#16a085", "#2c3e50")
_LABELS, _BARS, _ROW = 300, 560, 9


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" font-family="sans-serif"'
    back = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([f'{head} font-size="11">', back, *parts, "</svg>", ""])


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#dddddd") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def bound_bars(title: str, cases: Sequence[Case]) -> str | None:
    """Per case a bar for each variant, as long as its time over the bound, on a logarithmic scale."""
    cases = [c for c in cases if c.bound in c.seconds]
    variants = list(dict.fromkeys(v for c in cases for v in c.seconds if v != c.bound))
    ratios = [r for c in cases for v in variants if (r := c.over_bound(v)) is not None]
    if not ratios:
        return None
    low, high = math.floor(math.log2(min(1.0, *ratios))), math.ceil(math.log2(max(2.0, *ratios)))
    scale = _BARS / (high - low)

    def at(ratio: float) -> float:
        return _LABELS + (math.log2(ratio) - low) * scale

    parts = [_text(10, 18, title, size=14)]
    y = 40.0 + 14 * ((len(variants) + 3) // 4)
    for n, variant in enumerate(variants):
        left, line = _LABELS + (n % 4) * 140.0, 38 + 14 * (n // 4)
        parts.append(_rect(left, line - 8, 9, 9, _COLOURS[n % len(_COLOURS)]))
        parts.append(_text(left + 13, line, variant))
    top = y
    bars: list[str] = []
    for case in cases:
        shown = [(n, r) for n, v in enumerate(variants) if (r := case.over_bound(v)) is not None]
        bars.append(_text(_LABELS - 6, y + (len(shown) * _ROW) / 2 + 4, case.name, "end", 10))
        for n, ratio in shown:
            left, right = sorted((at(1), at(ratio)))
            bars.append(_rect(left, y, max(right - left, 1), _ROW - 2, _COLOURS[n % len(_COLOURS)]))
            y += _ROW
        y += 8
    for power in range(low, high + 1):
        x = at(2.0**power)
        parts += [_line(x, top - 4, x, y), _text(x, y + 14, f"{2.0**power:g}x", "middle")]
    axis = f"time / time of {' or '.join(sorted({c.bound for c in cases if c.bound}))} (logarithmic; left is faster)"
    parts.append(_text(_LABELS + _BARS / 2, y + 30, axis, "middle"))
    return _svg(_LABELS + _BARS + 40, y + 44, [*parts, *bars])


def growth_lines(title: str, cases: Sequence[Case]) -> str | None:
    """Seconds over nodes of chains, both logarithmic, a line a variant."""
    points = {
        v: sorted((c.figures["nodes"], c.seconds[v]) for c in cases if v in c.seconds and "nodes" in c.figures)
        for v in dict.fromkeys(v for c in cases for v in c.seconds)
    }
    points = {v: found for v, found in points.items() if len(found) > 1}
    if OURS not in points:
        return None
    every = [p for found in points.values() for p in found]
    x0, x1 = [round_(f(math.log10(p[0]) for p in every)) for f, round_ in ((min, math.floor), (max, math.ceil))]
    y0, y1 = [round_(f(math.log10(p[1]) for p in every)) for f, round_ in ((min, math.floor), (max, math.ceil))]
    left, top, width, height = 70, 40, 480, 320

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x0) / max(x1 - x0, 1)
        up = (math.log10(y) - y0) / max(y1 - y0, 1)
        return left + across * width, top + height - up * height

    parts = [_text(10, 18, title, size=14)]
    for power in range(x0, x1 + 1):
        x, _ = at(10.0**power, 10.0**y0)
        parts += [_line(x, top, x, top + height), _text(x, top + height + 15, f"{10**power:,}", "middle")]
    for power in range(y0, y1 + 1):
        _, y = at(10.0**x0, 10.0**power)
        parts += [_line(left, y, left + width, y), _text(left - 6, y + 4, f"{10.0**power:g}", "end")]
    for n, (variant, found) in enumerate(points.items()):
        colour = _COLOURS[n % len(_COLOURS)]
        places = [at(*p) for p in found]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(places[-1][0] + 6, places[-1][1] + 4, variant))
    parts.append(_text(left + width / 2, top + height + 34, "nodes of the model (logarithmic)", "middle"))
    parts.append(_text(left, top - 8, "CPU time in seconds (logarithmic; lower is faster)"))
    return _svg(left + width + 110, top + height + 48, parts)


def plots(cases: Sequence[Case]) -> dict[str, str]:
    """The SVG texts by file name."""
    found: dict[str, str | None] = {}
    for suite, threads in dict.fromkeys((c.suite, c.threads) for c in cases):
        chosen = [c for c in cases if (c.suite, c.threads) == (suite, threads)]
        count = f"{threads} thread{'s' if threads > 1 else ''}"
        found[f"{suite}_{threads}.svg"] = bound_bars(f"{suite}, {count}", chosen)
        for form in ("chain", "dag"):
            lines = growth_lines(f"load, fuse and emit, {form}", [c for c in chosen if form in c.tags])
            found[f"{suite}_{form}.svg"] = lines if suite == "compile" else None
    return {name: text for name, text in found.items() if text is not None}
