"""The tables of the parser, made of ``dml.lark`` by Lark; they lie beside it, so that no process makes them again.

``python -m dmlc.text.grammar`` writes them anew after a change of the grammar, which a test would notice.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lark import Lark

from dmlc.text.build import Builder
from dmlc.text.lalr import STARTS, TABLES


def grammar() -> str:
    """The text of ``dml.lark``."""
    return Path(__file__).with_name("dml.lark").read_text(encoding="utf-8")


def tables() -> dict[str, Any]:
    """What ``lalr.Machine`` and ``lexer.Patterns`` are made of, as JSON has it."""
    lark = Lark(grammar(), parser="lalr", lexer="basic", start=list(STARTS), maybe_placeholders=False)
    table: Any = lark.parser.parser._parse_table
    numbers: dict[int, int] = {}  # of Lark's states, in the order in which they are reached
    rules: dict[Any, int] = {}
    states: list[dict[str, int]] = []
    for start in STARTS:
        numbers.setdefault(table.start_states[start], len(numbers))
    pending = list(numbers)
    for state in pending:
        row: dict[str, int] = {}
        states.append(row)
        for symbol, (kind, argument) in sorted(table.states[state].items()):
            if kind.name != "Shift":
                row[symbol] = ~rules.setdefault(argument, len(rules))
                continue
            if argument not in numbers:
                numbers[argument] = len(numbers)
                pending.append(argument)
            row[symbol] = numbers[argument]
    return {
        "starts": {start: numbers[table.start_states[start]] for start in STARTS},
        "ends": {start: numbers[table.end_states[start]] for start in STARTS},
        "states": states,
        "rules": [_rule(rule) for rule in rules],
        "terminals": [_terminal(terminal) for terminal in sorted(lark.terminals, key=_order)],
    }


def _order(terminal: Any) -> tuple[Any, ...]:
    """Longer ones first, so that ``->`` is not ``-`` and ``>``."""
    return (-terminal.priority, -terminal.pattern.max_width, terminal.name)


def _rule(rule: Any) -> dict[str, Any]:
    """Which of the parts that a rule joins are kept, which of these are lists of parts, and what is called with them.

    As Lark does it: what begins with an underscore is left out where it is a token, and joins its parts where it is a
    rule; a rule with a question mark is its part where there is just one.
    """
    name = str(rule.alias or rule.origin.name)
    kept = [i for i, part in enumerate(rule.expansion) if not (part.is_term and part.filter_out)]
    opened = [i for i in kept if not rule.expansion[i].is_term and rule.expansion[i].name.startswith("_")]
    return {
        "makes": str(rule.origin.name),
        "size": len(rule.expansion),
        "calls": name if hasattr(Builder, name) else "",
        "single": bool(rule.options.expand1 and not rule.alias),
        "kept": kept,
        "opened": opened,
    }


def _terminal(terminal: Any) -> dict[str, Any]:
    pattern = terminal.pattern
    return {
        "name": str(terminal.name),
        "word": pattern.value if pattern.type == "str" and pattern.value.isalpha() else "",
        "pattern": pattern.to_regexp(),
    }


def text_of(made: dict[str, Any]) -> str:
    """The tables as they lie in their file, one state, rule or terminal a line."""
    parts = []
    for key, value in made.items():
        if isinstance(value, list):
            rows = ",\n".join(json.dumps(row, sort_keys=True) for row in value)
            parts.append(f"{json.dumps(key)}: [\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    TABLES.write_text(text_of(tables()), encoding="utf-8", newline="\n")
