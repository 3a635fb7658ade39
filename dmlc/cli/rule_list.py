"""``compile --list-rules``: every rewrite by the name that --skip-rule and --only-rule take."""

from __future__ import annotations

from typing import Annotated

from dmlc.cli.console import Console
from dmlc.cli.layout import table
from dmlc.ir.answers import Answer, words
from dmlc.ir.history import CLASSES
from dmlc.passes.inventory import RuleFacts, all_rules


class RuleRow(Answer, frozen=True, rename={"name": "rule", "rewrite_class": "class", "depends": "by_case"}):
    """A rule: its class, if that depends on the case, if it is optional, and the passes that have it."""

    name: str
    rewrite_class: Annotated[str, words(*CLASSES)]
    depends: bool
    optional: bool
    passes: tuple[str, ...]
    summary: str


class RuleList(Answer, frozen=True):
    """Every rule."""

    rules: list[RuleRow]


def list_rules(console: Console, of_pass: str = "") -> int:
    """Print all rules, or the rules of one pass."""
    rules = [rule for rule in all_rules() if not of_pass or of_pass in rule.passes]
    rows = [["rule", "class", "passes", "description"]]
    rows += [[r.name, class_text(r), ", ".join(r.passes), r.summary] for r in rules]
    needed = "\nclass: of an application; `by case` depends on dtypes or the target; * a target cannot do without it\n"
    console.result(table(rows) + needed)
    console.document(RuleList([RuleRow.of(rule) for rule in rules]))
    return 0


def class_text(rule: RuleFacts) -> str:
    """The class of a rule as the list and its page show it."""
    return ("by case" if rule.depends else rule.rewrite_class) + ("" if rule.optional else " *")
