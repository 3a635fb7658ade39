"""The parser: a pushdown machine that is driven by tables, which ``grammar.py`` makes of ``dml.lark``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dmlc.text.tokens import Token

#: The start symbols of the grammar: the whole, and the pieces in which mistakes are looked for one by one.
STARTS = ("program", "header", "dim", "const", "def_head", "model_head", "statement")
#: Where the tables lie.
TABLES = Path(__file__).with_name("dml_tables.json")


class UnexpectedToken(Exception):
    """A token that cannot stand where it stands; ``accepts`` are the terminals that could."""

    def __init__(self, token: Token, accepts: set[str]) -> None:
        super().__init__(token.type)
        self.token = token
        self.accepts = accepts


#: What becomes of the parts that a rule joins: the part that stands for all, their list, a call with their list; or
#: they are picked from first.
_PASS, _LIST, _CALL, _PICK = range(4)


class _Rule(NamedTuple):
    """``size`` parts make a ``makes``. Of ``kept``, those in ``opened`` are lists of parts themselves.

    ``call`` makes the value of the list of parts; without it the list is the value. Where ``single`` is true, a list
    of one part stands for that part.
    """

    makes: str
    size: int
    how: int
    call: Callable[[list[Any]], Any] | None
    single: bool
    kept: tuple[int, ...]
    opened: frozenset[int]

    def value(self, given: list[Any]) -> Any:
        parts: list[Any] = []
        for i in self.kept:
            if i not in self.opened:
                parts.append(given[i])
            elif parts:
                parts += given[i]
            else:
                parts = given[i]  # nobody else has that list: a long one is not copied for each part that joins it
        if self.single and len(parts) == 1:
            return parts[0]
        return parts if self.call is None else self.call(parts)


class Machine:
    """The grammar at work; ``builder`` has a method for each rule that makes a node."""

    def __init__(self, tables: dict[str, Any], builder: Any) -> None:
        self.starts: dict[str, int] = tables["starts"]
        self.ends: dict[str, int] = tables["ends"]
        self.states: list[dict[str, int]] = tables["states"]
        self.rules = [self._rule(row, builder) for row in tables["rules"]]

    def _rule(self, row: dict[str, Any], builder: Any) -> _Rule:
        size, single, opened = row["size"], row["single"], frozenset(row["opened"])
        call = getattr(builder, row["calls"]) if row["calls"] else None
        how = _LIST if call is None else _CALL
        if opened or row["kept"] != [*range(size)] or (single and size > 1):
            how = _PICK
        elif single:
            how = _PASS
        return _Rule(row["makes"], size, how, call, single, tuple(row["kept"]), opened)

    def run(self, start: str, tokens: Sequence[Token]) -> Any:
        """What the builder makes of tokens. Raises ``UnexpectedToken``, and what the builder raises."""
        states, rules = self.states, self.rules
        state, end, last = self.starts[start], self.ends[start], tokens[-1]
        path, values = [state], list[Any]()
        for token in (*tokens, Token("$END", "", last.source, last.line, last.end)):
            kind = token.type
            while True:
                action = states[state].get(kind)
                if action is None:
                    raise UnexpectedToken(token, self._accepts(path, end))
                if action >= 0:
                    state = action
                    path.append(state)
                    values.append(token)
                    break
                rule = rules[~action]
                makes, size, how, call, _, _, _ = rule
                if how == _PASS:
                    path.pop()
                elif size:
                    parts = values[-size:]
                    del path[-size:], values[-size:]
                    values.append(rule.value(parts) if how == _PICK else parts if call is None else call(parts))
                else:
                    values.append([] if call is None else call([]))
                state = states[path[-1]][makes]
                path.append(state)
                if state == end and kind == "$END":
                    return values[-1]
        raise AssertionError("the end of the text is accepted or unexpected")

    def _accepts(self, path: Sequence[int], end: int) -> set[str]:
        """The terminals after which the machine could go on."""
        kinds = [kind for kind in self.states[path[-1]] if kind.isupper()]
        return {kind for kind in kinds if self._goes_on(list(path), end, kind)}

    def _goes_on(self, path: list[int], end: int, kind: str) -> bool:
        while True:
            action = self.states[path[-1]].get(kind)
            if action is None:
                return False
            if action >= 0:
                return True
            rule = self.rules[~action]
            if rule.size:
                del path[-rule.size :]
            path.append(self.states[path[-1]][rule.makes])
            if path[-1] == end and kind == "$END":
                return True


@cache
def load_tables() -> dict[str, Any]:
    """The tables, read once."""
    found: dict[str, Any] = json.loads(TABLES.read_text(encoding="utf-8"))
    return found
