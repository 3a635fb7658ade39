"""The tables of the parser, made of ``dml.lark`` by Lark; they lie beside it, so that no process makes them again.

``python -m dmlc.text.grammar`` writes them anew after a change of the grammar, which a test would notice.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lark import Lark

from dmlc.text.build import Builder
from dmlc.text.lalr import PIECE_TABLES, STARTS, TABLES


def grammar() -> str:
    """The text of ``dml.lark``."""
    return Path(__file__).with_name("dml.lark").read_text(encoding="utf-8")


def piece_tables() -> dict[str, Any]:
    """What ``lalr.Machine`` is made of, as JSON has it: Lark's tables."""
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


def tables(pieces: dict[str, Any]) -> dict[str, Any]:
    """The same for whole programs, in fewer steps. They accept the same, but may see a mistake later.

    Rules that pass their one part on take no step: the state after the part does what the states after the rule would
    have done.
    """
    rules = [_unwrapped(rule, pieces["rules"]) for rule in pieces["rules"]]
    states = _Shortener(pieces["states"], rules).states(pieces["starts"]["program"])
    ends = {"program": states[0]["program"]}
    return _merged({**pieces, "starts": {"program": 0}, "ends": ends, "states": states, "rules": rules})


def _unwrapped(rule: dict[str, Any], rules: list[dict[str, Any]]) -> dict[str, Any]:
    """A symbol that always stands for one part needs no list around it."""
    of_one = {r["makes"] for r in rules if r["makes"].startswith("_")}
    of_one -= {r["makes"] for r in rules if r["size"] != 1 or r["opened"] or not r["kept"]}
    opened = [i for i in rule["opened"] if rule["parts"][i] not in of_one]
    plain = {key: value for key, value in rule.items() if key != "parts"}
    return {**plain, "opened": opened, "single": rule["single"] or rule["makes"] in of_one}


class _Shortener:
    """Makes the states of the shorter machine: each is one of Lark's, or one as it is where the one before is known."""

    def __init__(self, plain: list[dict[str, int]], rules: list[dict[str, Any]]) -> None:
        self.plain = plain
        self.rules = rules
        self.numbers: dict[tuple[int, ...], int] = {}
        self.pending: list[tuple[int, ...]] = []

    def states(self, start: int) -> list[dict[str, int]]:
        self.number((start,))
        return [
            {symbol: action if action < 0 else self.after(at, action) for symbol, (at, action) in self.row(key).items()}
            for key in self.pending  # which grows on the way
        ]

    def number(self, key: tuple[int, ...]) -> int:
        if key not in self.numbers:
            self.numbers[key] = len(self.numbers)
            self.pending.append(key)
        return self.numbers[key]

    def after(self, before: int, state: int) -> int:
        passes = any(self.passed(action) for action in self.plain[state].values())
        return self.number((before, state) if passes else (state,))

    def passed(self, action: int) -> str:
        """What a rule makes of its one part, where the part stands for it."""
        rule = self.rules[~action] if action < 0 else {"single": False}
        return str(rule["makes"]) if rule["single"] and rule["size"] == 1 else ""

    def row(self, key: tuple[int, ...]) -> dict[str, tuple[int, int]]:
        """For each symbol the action, and the state whose action it is."""
        *before, state = key
        row = {symbol: (state, action) for symbol, action in self.plain[state].items()}
        for symbol, action in self.plain[state].items():
            made = self.passed(action) if before else ""
            if not made:
                continue
            further = self.row((before[0], self.plain[before[0]][made]))
            del row[symbol]
            row |= {s: what for s, what in further.items() if s == symbol or s not in self.plain[state]}
        return row


def _merged(made: dict[str, Any]) -> dict[str, Any]:
    """The tables with states and rules that do the same made one, and without the rules that no state has."""
    used = sorted({~action for row in made["states"] for action in row.values() if action < 0})
    kinds: dict[str, int] = {}
    rule_of = {i: kinds.setdefault(json.dumps(made["rules"][i], sort_keys=True), len(kinds)) for i in used}
    (end,) = made["ends"].values()
    count, group = 0, [int(n == end) for n in range(len(made["states"]))]
    while count < len(set(group)):
        count = len(set(group))
        rows = [
            (group[n], *sorted((s, ~rule_of[~a] if a < 0 else group[a]) for s, a in row.items()))
            for n, row in enumerate(made["states"])
        ]
        seen: dict[Any, int] = {}
        group = [seen.setdefault(row, len(seen)) for row in rows]
    states: dict[int, dict[str, int]] = {}
    for n, row in enumerate(made["states"]):
        states.setdefault(group[n], {s: ~rule_of[~a] if a < 0 else group[a] for s, a in row.items()})
    return {
        **made,
        "starts": {start: group[n] for start, n in made["starts"].items()},
        "ends": {start: group[n] for start, n in made["ends"].items()},
        "states": list(states.values()),
        "rules": [json.loads(rule) for rule in kinds],
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
        "parts": [str(part.name) for part in rule.expansion],
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
    made = piece_tables()
    PIECE_TABLES.write_text(text_of(made), encoding="utf-8", newline="\n")
    TABLES.write_text(text_of(tables(made)), encoding="utf-8", newline="\n")
