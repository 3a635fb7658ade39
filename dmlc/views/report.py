"""The report page: one HTML file about a compilation, for people who did not run the command. It loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template

from msgspec import Struct, field

from dmlc import __version__
from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.counted import counted
from dmlc.ir.removed import Removal
from dmlc.views.details import SceneDetails, details_of
from dmlc.views.escape import markup, script
from dmlc.views.layout import drawing
from dmlc.views.places import INPUT, OUTPUT, PLACES
from dmlc.views.scene import Scene, grouped
from dmlc.views.svg import marks, places_in, style

#: Pictures of more nodes are grouped first.
MOST_NODES = 2000
#: Rewrites that are listed of one rule, and names that are listed of one rewrite or removal.
_MOST_CHANGES, _MOST_NAMES = 12, 8


class Figure(Struct, frozen=True):
    """An amount before and after, as text, and the reason for it; ``before`` is empty where there is none."""

    name: str
    before: str
    after: str
    why: str = ""


class RuleChange(Struct, frozen=True):
    """One rewrite: the names of the nodes that it took and made, and its source lines."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    lines: tuple[str, ...] = ()


class RuleUse(Struct, frozen=True):
    """A rule that fired: its promise in words, its page, and its rewrites."""

    name: str
    promise: str
    page: str
    changes: list[RuleChange]


class ProviderFault(Struct, frozen=True):
    """A fault of the provider that nodes of the source meet; ``left`` counts the nodes that meet it afterwards."""

    operator: str
    effect: str
    limit: str
    source: str
    number: int
    left: int


class Missed(Struct, frozen=True):
    """A rewrite that was missed, the reason, and the nodes that it would save, None where that is not known."""

    rule: str
    node: str
    reason: str
    saves: int | None


class ReportFacts(Struct):
    """Everything that a report shows, as the commands word it.

    ``verdict`` is the answer of the verification and its lines, None where none was made. ``steps`` are commands and
    their effects. ``before`` is None where there is no model of the program as written.
    """

    source: str
    headline: str
    figures: list[Figure]
    requires: str
    after: Scene
    after_details: SceneDetails
    before: Scene | None = None
    before_details: SceneDetails = field(default_factory=SceneDetails)
    verdict: tuple[str, str] | None = None
    steps: list[tuple[str, str]] = field(default_factory=list)
    rules: list[RuleUse] = field(default_factory=list)
    removed: Sequence[Removal] = ()
    faults: list[ProviderFault] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    ledger: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)


def page(facts: ReportFacts) -> str:
    """The HTML of the report; the same text for the same facts. Without graphlay lists take the place of pictures."""
    panes = [("before", facts.before, facts.before_details), ("after", facts.after, facts.after_details)]
    shown = [(key, grouped(scene, MOST_NODES), more) for key, scene, more in panes if scene is not None]
    data = {key: details_of(scene, more) for key, scene, more in shown}
    return Template(asset("report.html")).substitute(
        title=markup(facts.source),
        headline=markup(facts.headline),
        css=f"{asset('report.css')}\n{style('.pic')}",
        verdict="" if facts.verdict is None else verdict_html(facts.verdict[0], facts.verdict[1], "Verification: "),
        compared="Before and after" if facts.before is not None else "The result",
        figures="".join(map(figure_html, facts.figures)),
        steps=_steps(facts),
        legend=legend_html([scene for _, scene, _ in shown]),
        panes="".join(_pane(key, key.capitalize() if len(shown) > 1 else "", scene) for key, scene, _ in shown),
        rules=_rules(facts),
        faults=_faults(facts.faults),
        missed=_missed(facts.missed),
        ledger=counted(len(facts.ledger), "rewrite"),
        version=markup(__version__),
        data=script({**data, "ledger": facts.ledger, "places": {key: place.label for key, place in PLACES.items()}}),
        js=asset("report.js"),
    )


def asset(name: str) -> str:
    """The text of a template, a style sheet or a script."""
    return (files("dmlc") / "views" / "assets" / name).read_text("utf-8")


# --- the head


def verdict_html(answer: str, text: str, label: str = "") -> str:
    """An answer with its sign and its colour, and the lines below it."""
    kind = {"same": "good", "different": "poor"}.get(answer, "open")
    sign = {"good": "\u2713", "poor": "\u2717", "open": "?"}[kind]
    first, *more = text.strip().split("\n")
    rest = f'<pre class="more">{markup_lines(more)}</pre>' if more else ""
    return f'<p class="verdict {kind}"><b aria-hidden="true">{sign}</b> {label}{markup(first)}</p>{rest}'


def markup_lines(lines: Iterable[str]) -> str:
    """The lines as HTML text."""
    return "\n".join(map(markup, lines))


def figure_html(figure: Figure) -> str:
    """An amount in large letters, with the amount before and the reason."""
    before = f'<span class="old">{_unbroken(figure.before)}</span><span class="arrow" aria-label="to">\u2192</span>'
    shown = "" if not figure.before or figure.before == figure.after else before
    long = " long" if len(figure.before + figure.after) > 18 else ""
    why = f'<dd class="why">{markup(figure.why)}</dd>' if figure.why else ""
    amount = f'<dd class="amount{long}">{shown}<span class="new">{_unbroken(figure.after)}</span></dd>'
    return f"<div class='figure'><dt>{markup(figure.name)}</dt>{amount}{why}</div>\n"


def _unbroken(amount: str) -> str:
    """The amount with its unit in the same line."""
    return markup(amount) if "*" in amount else markup(amount).replace(" ", "\u00a0")


def _steps(facts: ReportFacts) -> str:
    out = "".join(
        f'<li><code class="command">{markup(command)}</code><p>{markup(effect)}</p></li>'
        for command, effect in facts.steps
    )
    out = f'<h2 id="next">What to bind</h2><ul class="steps">{out}</ul>' if out else ""
    return out + (f'<p class="requires"><b>Requires</b> {markup(facts.requires)}</p>' if facts.requires else "")


# --- the pictures


def legend_html(scenes: Sequence[Scene]) -> str:
    """The places that nodes have, each with its colour, letter and line."""
    keys = [key for key in PLACES if any(key in places_in(scene) for scene in scenes)]
    items = ""
    for key in keys:
        place = PLACES[key]
        letter = f'<text class="m" x="13" y="14">{place.letter}</text>' if place.letter else ""
        swatch = f'<g class="n {key}"><rect x="1" y="1" width="24" height="18"/>{letter}</g>'
        items += (
            f'<li><svg class="pic" width="26" height="20" aria-hidden="true">{swatch}</svg>{markup(place.label)}</li>'
        )
    return items


def _pane(key: str, label: str, scene: Scene) -> str:
    nodes = sum(node.members for node in scene.nodes if node.place not in (INPUT, OUTPUT))
    title = f"{label}: {counted(nodes, 'node')}" if label else counted(nodes, "node")
    zoom = "".join(
        f'<button type="button" data-zoom="{step}" aria-label="{action} {key}">{sign}</button>'
        for step, sign, action in (("out", "\u2212", "Zoom out"), ("in", "+", "Zoom in"), ("fit", "Fit", "Fit"))
    )
    picture = _picture(key, scene)
    return (
        f'<section class="pane" data-pane="{key}"><header><h3>{markup(title)}</h3>'
        f'<div class="zoom">{zoom}</div></header>'
        f'<div class="scroll" tabindex="0" role="group" aria-label="Graph {key}">{picture}</div></section>\n'
    )


def _picture(key: str, scene: Scene) -> str:
    try:
        drawn = drawing(scene)
    except DmlcError as error:
        rows = "".join(
            f'<li class="n" data-i="{number}">{PLACES[node.place].letter} {markup(node.label)} {markup(node.name)}</li>'
            for number, node in enumerate(scene.nodes)
        )
        return f"<p>{markup(error.diagnostics[0].message)}; {markup(str(error.diagnostics[0].help))}</p><ol>{rows}</ol>"
    size = f'viewBox="0 0 {drawn.width} {drawn.height}" width="{drawn.width}" height="{drawn.height}"'
    head = (
        f'<svg class="pic" {size} role="img" aria-label="Picture of the graph {key}; the table of nodes has the same">'
    )
    return f"{head}{marks(scene, drawn, titles=False)}</svg>"


# --- the lists


def _rules(facts: ReportFacts) -> str:
    out = ""
    for removal in facts.removed:
        names = _names(removal.nodes)
        out += f"<details><summary><b>{markup(removal.text)}</b></summary><p>{names}</p></details>\n"
    for use in sorted(facts.rules, key=lambda use: (-len(use.changes), use.name)):
        changes = "".join(map(_change, use.changes[:_MOST_CHANGES]))
        more = len(use.changes) - _MOST_CHANGES
        changes += f"<li>and {more:,} more, in the ledger below</li>" if more > 0 else ""
        out += (
            f'<details id="rule-{markup(use.name)}"><summary><b>{len(use.changes):,} {markup(use.name)}</b>'
            f'<span class="promise">{markup(use.promise)}</span></summary>'
            f'<p class="page">{markup_lines(use.page.splitlines())}</p><ul class="changes">{changes}</ul></details>\n'
        )
    return out or "<p>Nothing was rewritten.</p>"


def _change(change: RuleChange) -> str:
    lines = "".join(f"<br><code>{markup(line)}</code>" for line in change.lines)
    return f"<li>{_names(change.before)} \u2192 {_names(change.after) or 'nothing'}{lines}</li>"


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    shown = ", ".join(f"<code>{markup(name)}</code>" for name in names[:_MOST_NAMES])
    return shown + (f" and {more:,} more" if more > 0 else "")


def _faults(faults: Sequence[ProviderFault]) -> str:
    if not faults:
        return ""
    rows = "".join(
        f"<tr><td>{markup(fault.operator)}</td><td>{fault.number:,}</td><td>{markup(fault.limit)}</td>"
        f"<td>{'repaired' if not fault.left else f'{fault.left:,} left'}</td><td>{markup(fault.source)}</td></tr>"
        for fault in faults
    )
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("operator", "nodes", "fault", "now", "source"))
    return (
        '<h2 id="faults">Faults of the provider</h2><div class="wide" tabindex="0" role="region" '
        f'aria-label="Faults"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _missed(missed: Sequence[Missed]) -> str:
    if not missed:
        return ""
    rows = "".join(
        f"<li><b>{markup(one.rule)}</b>{_saves(one)} at <code>{markup(one.node)}</code>: {markup(one.reason)}</li>"
        for one in missed
    )
    count = counted(len(missed), "missed rewrite")
    head = f"<summary>{count}, first what would save most</summary>"
    return f'<h2 id="missed">Missed rewrites</h2><details>{head}<ul>{rows}</ul></details>'


def _saves(one: Missed) -> str:
    return f" would save {counted(one.saves, 'node')}" if one.saves else ""
