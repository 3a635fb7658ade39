"""The report page of a program, from facts in the words of the commands."""

from __future__ import annotations

import argparse
import inspect
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from dmlc import api
from dmlc.cli.command_words import compile_words, compiled_path
from dmlc.cli.compile_view import compared_rows, first_line
from dmlc.cli.console import UsageError
from dmlc.cli.model_comparison import ModelColumn, compare
from dmlc.cli.near_misses import near_misses
from dmlc.cli.next_steps import later_steps
from dmlc.cli.placement_view import requirements_of
from dmlc.cli.program_page import PROMISES
from dmlc.cli.rule_page import without_marks
from dmlc.inference.model_facts import types_by_name
from dmlc.ir import Array
from dmlc.passes.inventory import RuleFacts, all_rules
from dmlc.runtime import files
from dmlc.verifying import Verdict
from dmlc.views.details import SceneDetails
from dmlc.views.report import Figure, Missed, ProviderFault, ReportFacts, RuleChange, RuleUse, page
from dmlc.views.scene import scene_of

#: Effects of findings that a report names as faults of the provider.
_FAULTS = {"fails": "fails", "wrong": "wrong numbers", "imprecise": "less precise"}


def check_page(path: str) -> None:
    """Raises ``UsageError`` for a page that is not an HTML file."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"a report is an .html file, not {path}")


def write_page(
    args: argparse.Namespace,
    output: str,
    program: api.Program,
    plain: api.Program | None,
    verdict: Verdict | None,
    inputs: Mapping[str, Array],
) -> int:
    """Write the page about the program of SRC; its bytes.

    ``plain`` is the program as written, ``inputs`` are arrays whose sizes the next command takes. Raises ``DmlcError``.
    """
    words = compile_words(args, compiled_path(args.source))
    data = page(_report_facts(program, args.source, words, plain, verdict, inputs)).encode()
    files.spare_weights(program.source_graph, Path(output))
    files.write_bytes(Path(output), data)
    return len(data)


def _report_facts(
    program: api.Program,
    source: str,
    words: list[str],
    plain: api.Program | None,
    verdict: Verdict | None,
    inputs: Mapping[str, Array],
) -> ReportFacts:
    """The facts of a compilation. ``source`` names it; ``words`` are the command line that compiles it."""
    made = api.emitted(program, "onnx")
    found = compare(program, source, made.payload.ByteSize(), 0.0, plain)
    steps, sizes = ([], None) if program.target.provider is None else later_steps(words, program, inputs)
    before = None if found.before is None else scene_of(found.before.model, found.before.placed)
    after = scene_of(made.payload, found.after.placed, {} if before is None else before.paths)
    return ReportFacts(
        Path(source).name,
        first_line(program, found),
        figures_of(program, found.before, found.after, {} if sizes is None else sizes.binding),
        requirements_of(program).text(),
        after,
        _details(program, {name: str(type) for name, type in made.types.items()}, dict(made.locations)),
        before,
        _details(program, {name: str(type) for name, type in types_by_name(program.source_graph).items()}, {}),
        None if verdict is None else (verdict.answer, verdict.to_text()),
        [(step.command, step.effect) for step in steps],
        _rules(program),
        program.removed,
        _faults(found.before, found.after),
        [Missed(one.rule, one.node, one.reason, one.saves) for one in near_misses(program)],
        [(entry.rule, entry.before, entry.after) for entry in program.ledger],
    )


def figures_of(
    program: api.Program, before: ModelColumn | None, after: ModelColumn, sizes: dict[str, int]
) -> list[Figure]:
    """The rows of the table of ``compile``, all of them; of one column where there is nothing before."""
    rows = compared_rows(program, after if before is None else before, after, sizes, verbose=True)
    figures = [Figure(name, old, new, why) for name, old, new, why in rows if new != "unknown"]
    return figures if before is not None else [replace(each, before="") for each in figures]


def _details(program: api.Program, types: dict[str, str], places: dict[str, str]) -> SceneDetails:
    """The facts about nodes that their models lack."""
    spans = [span for entry in program.ledger for span in entry.spans]
    spans += [span for node in (*program.graph, *program.source_graph) for span in node.spans]
    lines = {span.place: span.source.line(span.line).strip() for span in spans}
    sources: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {}
    fates = {name: removal.text for removal in program.removed for name in removal.nodes}
    for entry in program.ledger:
        for name in entry.after:
            old_names, old_rules, _ = sources.get(name, ((), (), ""))
            sources[name] = ((*old_names, *entry.before), (*old_rules, entry.rule), entry.rewrite_class)
        if not entry.after:
            fates.update(dict.fromkeys(entry.before, f"{entry.rule}: {entry.text}"))
    return SceneDetails(types, PROMISES, places, lines, sources, fates)


def _rules(program: api.Program) -> list[RuleUse]:
    """The rules that fired, each with its page and its rewrites."""
    pages = {rule.name: _page(rule) for rule in all_rules()}
    found: dict[str, RuleUse] = {}
    for entry in program.ledger:
        promise = PROMISES.get(entry.rewrite_class, entry.rewrite_class)
        use = found.get(entry.rule) or RuleUse(entry.rule, promise, pages.get(entry.rule, entry.text), [])
        if promise not in use.promise:
            use = replace(use, promise=f"{use.promise}; {promise}")
        lines = dict.fromkeys(f"{span.place}  {span.source.line(span.line).strip()}" for span in entry.spans)
        use.changes.append(RuleChange(entry.before, entry.after, tuple(lines)))
        found[entry.rule] = use
    return list(found.values())


def _page(rule: RuleFacts) -> str:
    """The description of a rule, each paragraph in one line."""
    text = inspect.cleandoc(rule.kind.__doc__ or rule.summary)
    return "\n".join(" ".join(part.split()) for part in without_marks(text).split("\n\n"))


def _faults(before: ModelColumn | None, after: ModelColumn) -> list[ProviderFault]:
    """The faults of the provider that nodes of the source meet, each once."""
    if before is None or before.placed is None or after.placed is None:
        return []
    met = _met(before)
    left = _met(after)
    found = [ProviderFault(*key, number, left[key]) for key, number in met.items()]
    return sorted(found, key=lambda fault: list(_FAULTS.values()).index(fault.effect))


def _met(side: ModelColumn) -> Counter[tuple[str, str, str, str]]:
    findings = [] if side.placed is None else side.placed.findings
    return Counter(
        (node.op, _FAULTS[finding.effect], finding.limit, finding.source or "")
        for node, finding in findings
        if finding.effect in _FAULTS
    )
