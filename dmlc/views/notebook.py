"""HTML of records for notebooks: figures, tables and pictures of the report, in the notebook's light or dark theme."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.shown import Rows
from dmlc.views.escape import markup
from dmlc.views.layout import drawing
from dmlc.views.report import Figure, asset, figure_html, legend_html, verdict_html
from dmlc.views.scene import Scene, grouped
from dmlc.views.svg import colors, marks, style

#: The most rows of a table, and the most nodes of a picture; more nodes are grouped.
_MOST_ROWS, _MOST_NODES = 100, 150
#: Rules of the report's style sheet that its parts need in a notebook.
_TAKEN = re.compile(r"(\.(verdict|figures?|amount|old|arrow|why|legend|pic)|table|th|td)\b")
_VARIABLES = re.compile(r":root\{([^}]*)\}")


def record_html(
    headline: str, rows: Rows, *, answer: str = "", figures: Sequence[Figure] = (), scene: Scene | None = None
) -> str:
    """The HTML of a record, with nothing of it unescaped. ``answer`` is ``same``, ``different``, another one, or empty
    for a record that answers nothing. Without graphlay there is no picture of the scene."""
    head = verdict_html(answer, headline) if answer else f'<p class="headline">{markup(headline)}</p>'
    amounts = f'<dl class="figures">{"".join(map(figure_html, figures))}</dl>' if figures else ""
    return f'<div class="dmlc">\n<style>{_style()}</style>\n{head}{amounts}\n{_table(rows)}{_picture(scene)}\n</div>'


def _style() -> str:
    css = asset("report.css")
    light, dark = [f"{rules};{colors(theme)}" for theme, rules in enumerate(_VARIABLES.findall(css))]
    rules = [f".dmlc {line}" for line in css.splitlines() if _TAKEN.match(line)]
    return "\n".join(
        [
            f".dmlc{{{light}}}",
            f"@media(prefers-color-scheme:dark){{.dmlc{{{dark}}}}}",
            f"[data-jp-theme-light=true] .dmlc,.vscode-light .dmlc{{{light};color-scheme:light}}",
            f"[data-jp-theme-light=false] .dmlc,.vscode-dark .dmlc{{{dark};color-scheme:dark}}",
            *rules,
            style(".dmlc .pic", with_colors=False),
            asset("notebook.css"),
        ]
    )


def _table(table: Rows) -> str:
    headings, *rows = [tuple(map(markup, row)) for row in table[: _MOST_ROWS + 1]]
    lines = [f"<table>\n<thead>{_row(headings, 'th')}</thead>", "<tbody>", *[_row(row, "td") for row in rows]]
    if len(table) > len(rows) + 1:
        lines.append(f'<tr><td colspan="{len(headings)}">... and {len(table) - len(rows) - 1} more</td></tr>')
    return "\n".join([*lines, "</tbody>\n</table>"])


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def _picture(scene: Scene | None) -> str:
    if scene is None:
        return ""
    scene = grouped(scene, _MOST_NODES)
    try:
        drawn = drawing(scene)
    except DmlcError:
        return ""
    size = f'viewBox="0 0 {drawn.width} {drawn.height}" width="{drawn.width}" height="{drawn.height}"'
    svg = f'<svg class="pic" {size} role="img" aria-label="Graph">{marks(scene, drawn, titles=True)}</svg>'
    return f'\n<ul class="legend">{legend_html([scene])}</ul><div class="picture">{svg}</div>'
