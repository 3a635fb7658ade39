"""Output of ``dmlc check``: the answer in the first line, and where the nodes run and why."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from dmlc import api
from dmlc.api.checking import CheckResult
from dmlc.cli.changes import dynamic_text, operators_text
from dmlc.cli.command_words import compile_words, compiled_path
from dmlc.cli.compile_view import nodes_text
from dmlc.cli.counts import nodes_after
from dmlc.cli.inputs import sized_inputs
from dmlc.cli.layout import WIDTH, terminal_width, wrapped
from dmlc.cli.next_steps import NextStep, later_steps
from dmlc.cli.placement_view import kind_of_verdict, placement_text
from dmlc.cli.source import STDIN, is_model
from dmlc.diagnostics import Diagnostic
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.paste import pasteable
from dmlc.placement.advice import PLACEMENT_CODES
from dmlc.placement.node import CPU, FOLDED, OF_SHAPES, OPEN_SIZES, PROVIDER, UNKNOWN, NodePlacement
from dmlc.placement.report import Placement

#: Reasons that are shown of one place, the others counted.
_MOST_REASONS = 2
#: The reason for nodes on the CPU that is as it should be.
_SHAPES = "shape computations"
#: Places of nodes that a warning or an error is about.
_WARNED = ("fails", "wrong numbers", "CPU", "not known")
_ALONE = "GPU, one at a time"
#: The places of nodes, the worst first.
_PLACES = (*_WARNED, _ALONE, "GPU, fused", "GPU", "folded while loading")


def first_line(result: CheckResult, name: str, target: str) -> str:
    """The answer in one line, which calls the source and the target by these names."""
    program, report = result.program, result.placement
    if not result.ok:
        return refusal_line(name, target, report, result.diagnostics)
    if report is not None:
        return headline(name, target, report)
    assert program is not None
    noun = "operation" if program.target.code == "numpy" else "node"
    return f"{name} on {target}: runs, {counted(nodes_after(program).total(), noun)}"


def details(result: CheckResult, *, verbose: bool) -> str:
    """The table of a placed model, and with ``verbose`` each node; the number of shape checks."""
    program, report = result.program, result.placement
    text = "" if report is None or not report.nodes else f"\n{where_table(report)}"
    checks = 0 if program is None else len(program.signature.conditions)
    if checks:
        text += f"\n  {counted(checks, 'shape check')} at run time\n"
    if report is not None and verbose:
        text += f"\n{placement_text(report)}"
    return text


def headline(name: str, target: str, report: Placement) -> str:
    """The answer for a placed model: ``swin.onnx on directml: runs, with 342 of 643 nodes on the CPU and nothing
    fused``."""
    effects = Counter(finding.effect for _, finding in report.findings)
    if effects["fails"]:
        return f"{name} on {target}: does not load, because of {counted(effects['fails'], 'node')}"
    if effects["wrong"]:
        return f"{name} on {target}: gives wrong numbers, because of {counted(effects['wrong'], 'node')}"
    return f"{name} on {target}: runs{_placed_text(report)}"


def _placed_text(report: Placement) -> str:
    total, on_cpu, unknown = len(report.nodes), report.count(CPU), report.count(UNKNOWN)
    if not total:
        return ", and has no nodes"
    loose = sum(node.where == PROVIDER and bool(node.alone) for node in report.nodes)
    graphs = counted(report.partitions, "fused graph")
    fused = f" in {graphs}" if not loose and report.partitions else f", {graphs}" if report.partitions else ""
    nothing = "nothing fused" if loose and not report.partitions else ""
    if not on_cpu and not unknown:
        folded = report.count(FOLDED)
        on_gpu = total - folded
        all_nodes = "its 1 node" if on_gpu == 1 else f"all {on_gpu} nodes"
        where = f"{all_nodes} on the GPU{fused}" if on_gpu else ""
        return "".join([f", {part}" for part in (where, nothing, folded and f"{folded} folded while loading") if part])
    parts = [f"{on_cpu} of {counted(total, 'node')} on the CPU" if on_cpu else ""]
    parts += [f"{unknown} of {counted(total, 'node')} where nobody knows" if unknown else ""]
    parts += [nothing or (graphs if report.partitions else "")]
    return f", with {' and '.join(filter(None, parts))}"


def refusal_line(name: str, target: str, report: Placement | None, diagnostics: Iterable[Diagnostic]) -> str:
    """The first line where the check fails: the nodes at fault, and other errors and warnings."""
    others = Counter(d.severity for d in diagnostics if d.code not in PLACEMENT_CODES)
    ours = Counter(d.severity for d in diagnostics if d.code in PLACEMENT_CODES)
    counts = ", ".join(counted(others[s], f"other {s}" if ours else s) for s in ("error", "warning") if others[s])
    if report is None or not report.fails:
        what = counts if not ours["error"] else f"{counted(ours['error'], 'node')} with an error"
        extra = f", {counts}" if counts and ours["error"] else ""
        return f"{name} on {target}: check failed: {what}{extra}"
    return headline(name, target, report) + (f"; {counts}" if counts else "")


# --- the table


def where_table(report: Placement) -> str:
    """The number of nodes by where they run and why, the worst first."""
    rows = where_rows(report)
    widths = [max(len(row[0]) for row in rows), max(len(row[1]) for row in rows)]
    hanging = " " * (widths[0] + widths[1] + 5)
    out = ""
    for number, where, why in rows:
        line = f"{number.rjust(widths[0])}   {where.ljust(widths[1])}   {why}".rstrip()
        out += _cut(line) if where in _WARNED and not why.startswith(_SHAPES) else _wrapped_row(line, hanging)
    return out


def _cut(line: str) -> str:
    """A row of the table in one line; a warning has the whole reason."""
    width = (terminal_width() or WIDTH) - 2
    return f"  {line}\n" if len(line) <= width else f"  {line[: width - 3].rstrip()}...\n"


def _wrapped_row(line: str, hanging: str) -> str:
    """A row of a table in lines that fit; blanks between its columns stay."""
    width = terminal_width() or WIDTH
    if len(line) + 2 <= width:
        return f"  {line}\n"
    head, tail = line[: len(hanging) + 1], line[len(hanging) + 1 :]
    text = wrapped(tail, " " * (len(head) + 2), "")
    return f"  {head}{text.lstrip()}"


def where_rows(report: Placement) -> list[tuple[str, str, str]]:
    """The rows of ``where_table``, first the headings."""
    places: dict[str, dict[str, list[NodePlacement]]] = defaultdict(lambda: defaultdict(list))
    for node in report.nodes:
        where, why = _where(node, report)
        places[where][why].append(node)
    graphs = f", {counted(report.partitions, 'fused graph')}" if report.partitions else ""
    rows = [("nodes", "where", "why")]
    for where in _PLACES:
        reasons = sorted(places[where].items(), key=lambda item: -len(item[1]))
        if where == _ALONE and reasons:
            rows.append(_alone_row(reasons))
            continue
        label = f"GPU{graphs}" if where == "GPU, fused" else where
        rows += [(str(len(nodes)), label, _reason_text(why, nodes)) for why, nodes in reasons[:_MOST_REASONS]]
        rest = [node for _, nodes in reasons[_MOST_REASONS:] for node in nodes]
        if rest:
            more = counted(len(reasons) - _MOST_REASONS, "other reason")
            rows.append((str(len(rest)), label, f"{more} (-v): {operators_text(rest)}"))
    return rows


def _alone_row(reasons: Sequence[tuple[str, list[NodePlacement]]]) -> tuple[str, str, str]:
    """The row of the nodes that are not fused, with the most frequent reason."""
    total, (why, nodes) = sum(len(nodes) for _, nodes in reasons), reasons[0]
    others = total - len(nodes)
    return str(total), _ALONE, f"{why}; {others} for other reasons (-v)" if others else why


def _reason_text(why: str, nodes: list[NodePlacement]) -> str:
    return f"{why}: {operators_text(nodes)}" if why == _SHAPES else why  # warnings have the operators of others


def _where(node: NodePlacement, report: Placement) -> tuple[str, str]:
    """The place of a node, and the reason in words that other nodes share."""
    first = next((f for f in node.findings if f.effect in ("fails", "wrong")), None)
    if first is not None:
        return ("fails" if first.effect == "fails" else "wrong numbers"), first.limit
    if node.where == CPU:
        return "CPU", _SHAPES if node.why == OF_SHAPES else node.why
    if node.where == UNKNOWN:
        return "not known", node.why
    if node.where == FOLDED:
        return "folded while loading", ""
    if not node.alone:
        return "GPU, fused" if node.is_fused else "GPU", ""
    reason = dynamic_text(report) if node.alone.startswith(OPEN_SIZES) else ""
    return _ALONE, reason or kind_of_verdict(node.alone)


# --- what comes next


def next_of_check(args: argparse.Namespace, report: Placement, program: api.Program | None) -> list[NextStep]:
    """The commands that come next: to compile a model that gains from it, to fix the dynamic sizes, and to promise
    ranges."""
    if program is None or args.source == STDIN or program.losses()[0]:
        return []
    inputs = sized_inputs(args, program)
    words = compile_words(args, compiled_path(args.source))
    steps = []
    after = program.placement()
    if is_model(args.source) and (_badness(after) < _badness(report) or report.fails):
        steps.append(NextStep(pasteable(words), nodes_text(len(after.nodes), after)))
    return [*steps, *later_steps(words, program, inputs)[0]]


def _badness(report: Placement) -> tuple[int, int]:
    """The nodes on the CPU or somewhere unknown, and the nodes that are alone on the GPU."""
    return sum(node.where in (CPU, UNKNOWN) for node in report.nodes), sum(bool(node.alone) for node in report.nodes)
