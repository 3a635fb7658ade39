"""``compile --list-rules``: every rewrite by the name that --skip-rule and --only-rule take."""

from __future__ import annotations

from dmlc.cli.console import Console
from dmlc.cli.layout import table
from dmlc.passes.inventory import RuleFacts, all_rules


def list_rules(console: Console) -> int:
    """Print the rules. Always fine."""
    rules = all_rules()
    rows = [["rule", "class", "passes", "description"]]
    rows += [[r.name, class_text(r), ", ".join(r.passes), r.summary] for r in rules]
    needed = "\nclass: of an application; `by case` depends on dtypes or the target; * a target cannot do without it\n"
    console.result(table(rows) + needed)
    console.document({"rules": [_plain(rule) for rule in rules]})
    return 0


def class_text(rule: RuleFacts) -> str:
    """The class of a rule as the list and its page show it."""
    return ("by case" if rule.depends else rule.rewrite_class) + ("" if rule.optional else " *")


def _plain(rule: RuleFacts) -> dict[str, object]:
    return {
        "rule": rule.name,
        "class": rule.rewrite_class,
        "by_case": rule.depends,
        "optional": rule.optional,
        "passes": list(rule.passes),
        "summary": rule.summary,
    }
