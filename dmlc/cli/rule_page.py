"""The page of a rule for ``dmlc explain``: what becomes of what, on which conditions, and an example."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

import dmlc
from dmlc import api
from dmlc.cli.compile_options import add_compile_options
from dmlc.cli.console import Console
from dmlc.cli.layout import table
from dmlc.cli.rule_list import RuleRow, class_text
from dmlc.cli.source import compile_source
from dmlc.diagnostics import Source
from dmlc.passes.decompose import Decompose
from dmlc.passes.inventory import RuleFacts

_FOLDER = Path(dmlc.__file__).parent / "rule_examples"
_COMMAND = "# dmlc compile "
#: The model of an example on which the rule fires, and the near miss that it does not change.
APPLIES, STAYS = "applies", "stays"


class Example(Struct, frozen=True):
    """A program on which a rule fires: a ``.dml`` file, or ONNX's text where only a model can hold what it wants.

    ``flags`` are the options that it is compiled with, its first line names them. A ``.dml`` file may have a near miss.
    """

    name: str
    text: str
    flags: tuple[str, ...]

    @property
    def is_model(self) -> bool:
        return self.name.endswith(".onnxtxt")

    @property
    def has_near_miss(self) -> bool:
        return f"model {STAYS}(" in self.text

    def compiled(self, model: str = APPLIES) -> api.Program:
        """The program of one of its models."""
        parser = argparse.ArgumentParser()
        add_compile_options(parser)
        args = parser.parse_args([*self.flags, *(() if self.is_model else ("--model", model))])
        if not self.is_model:
            return compile_source(args, source=Source(self.name, self.text))
        from onnx import parser as onnx_text

        body = self.text.partition("\n")[2] if self.flags else self.text
        return compile_source(args, source=onnx_text.parse_model(body))


class RulePage(RuleRow, frozen=True):
    """A rule, its conditions, and its example: what becomes of the model that it applies to, and why one stays."""

    conditions: str
    example: str | None
    applies: list[str]
    stays: list[str]


@cache
def example_files() -> Mapping[str, Path]:
    """The files of the examples, by rule."""
    return {path.stem: path for path in sorted(_FOLDER.iterdir()) if path.suffix in (".dml", ".onnxtxt")}


def example_of(rule: str) -> Example | None:
    """The example of a rule."""
    path = example_files().get(rule)
    if path is None:
        return None
    text = path.read_text("utf-8")
    first = text.partition("\n")[0]
    flags = first[len(_COMMAND) :].split() if first.startswith(_COMMAND) else ()
    return Example(path.name, text, tuple(flags))


def explain_rule(rule: RuleFacts, console: Console) -> int:
    """Show the page of a rule, or its JSON document."""
    summary, _, conditions = (inspect.getdoc(rule.kind) or "").partition("\n\n")
    example = example_of(rule.name)
    fired, missed = ([], []) if example is None else (_fired(example, rule.name), _missed(example, rule.name))
    rows = [["class", class_text(rule)], ["passes", ", ".join(rule.passes)]]
    way = f"--skip-rule {rule.name}" if rule.optional else "a target cannot do without it"
    rows.append(["to leave it out", "dmlc decompose --ops names others" if rule.passes == (Decompose.name,) else way])
    out = f"{rule.name}\n{table(rows, '  ')}\n{without_marks(summary)}\n"
    if conditions:
        out += f"\n{without_marks(conditions)}\n"
    if example is not None:
        out += f"\nfor example:\n\n{textwrap.indent(example.text, '    ')}"
        out += "".join(f"\n  {APPLIES}: {line}" for line in fired) + "".join(f"\n  {STAYS}: {line}" for line in missed)
        out += "\n"
    console.result(out)
    text = None if example is None else example.text
    texts = {"summary": without_marks(summary), "conditions": without_marks(conditions), "example": text}
    console.document(RulePage.of(rule, **texts, applies=fired, stays=missed))
    return 0


def without_marks(text: str) -> str:
    """The text of a docstring with plain quotes around names."""
    return text.replace("``", "`")


def _fired(example: Example, rule: str) -> list[str]:
    """The rewrites that the rule makes of its example: the nodes before and after."""
    entries = [entry for entry in example.compiled().ledger if entry.rule == rule]
    return [f"{', '.join(entry.before) or entry.text} -> {', '.join(entry.after) or 'nothing'}" for entry in entries]


def _missed(example: Example, rule: str) -> list[str]:
    """The reasons for which the rule leaves the near miss alone."""
    if not example.has_near_miss:
        return []
    remarks = [remark for remark in example.compiled(STAYS).remarks if remark.rule == rule and not remark.chosen]
    return [remark.reason() for remark in remarks] or ["the pattern is not there"]
