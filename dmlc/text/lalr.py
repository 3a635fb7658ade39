"""The parser: a pushdown machine that is driven by tables, which ``grammar.py`` makes of ``dml.lark``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from dmlc.text.tokens import Token

#: The start symbols of the grammar: the whole, and the pieces in which mistakes are looked for one by one.
STARTS = ("program", "header", "dim", "const", "def_head", "model_head", "statement")
#: Where the tables lie: those that read programs, and those that tell what is wrong with a piece.
TABLES = Path(__file__).with_name("dml_tables.json")
PIECE_TABLES = Path(__file__).with_name("dml_piece_tables.json")

#: What a state does with a symbol: the state after it, or the rule that is complete.
_State: TypeAlias = dict[str, Any]


class UnexpectedToken(Exception):
    """A token that cannot stand where it stands; ``accepts`` are the terminals that could."""

    def __init__(self, token: Token, accepts: set[str]) -> None:
        super().__init__(token.type)
        self.token = token
        self.accepts = accepts


#: What becomes of the parts that a rule joins. They stay as they are: the one that there is (1), as a list (2), in a
#: call (3). The last ones join the list that is the first (4). One of them, alone in a list (5). They are picked (6).
_PASS, _LIST, _CALL, _JOIN, _ONE, _PICK = range(1, 7)


def _how(row: dict[str, Any], call: object) -> int:
    """Most rules are of a plain kind, which takes the machine fewer steps."""
    size, kept, opened = row["size"], row["kept"], row["opened"]
    if row["single"] and size > 1:
        return _PICK
    if opened == [0] == kept[:1] and size > 1 and call is None:
        return _JOIN
    if opened or (kept != [*range(size)] and (len(kept) > 1 or call is not None)):
        return _PICK
    if row["single"]:
        return _PASS
    return _CALL if call is not None else _LIST if kept == [*range(size)] else _ONE


def _picked(row: dict[str, Any], call: Callable[[list[Any]], Any] | None) -> Callable[[list[Any]], Any]:
    """What makes the value of a rule of the given parts; those in ``opened`` are lists of parts themselves."""
    opened, single, size = row["opened"], row["single"], row["size"]
    kept = [(i, i in opened) for i in row["kept"]]
    if call is not None and len(opened) == 1 and not single:
        make, list_at, after = call, opened[0], size - sum(i > opened[0] for i in row["kept"])
        if list_at and row["kept"] == [*range(list_at + 1), *range(after, size)]:
            return lambda given: make([*given[:list_at], *given[list_at], *given[after:]])

    def value(given: list[Any]) -> Any:
        parts: list[Any] = []
        for i, is_open in kept:
            if not is_open:
                parts.append(given[i])
            elif parts:
                parts += given[i]
            else:
                parts = given[i]  # nobody else has that list: a long one is not copied for each part that joins it
        if single and len(parts) == 1:
            return parts[0]
        return parts if call is None else call(parts)

    return value


class Machine:
    """The grammar at work; ``builder`` has a method for each rule that makes a node."""

    def __init__(self, tables: dict[str, Any], builder: Any) -> None:
        states: list[_State] = [{} for _ in tables["states"]]
        rules = [self._rule(row, builder) for row in tables["rules"]]
        for state, row in zip(states, tables["states"], strict=True):
            for symbol, action in row.items():
                state[symbol] = states[action] if action >= 0 else rules[~action]
        self.starts = {start: states[number] for start, number in tables["starts"].items()}
        self.ends = {start: states[number] for start, number in tables["ends"].items()}

    def _rule(self, row: dict[str, Any], builder: Any) -> tuple[Any, ...]:
        """What is made, of how many parts, how, by which call; the parts that join or stand alone, from the end."""
        size = row["size"]
        call = getattr(builder, row["calls"]) if row["calls"] else None
        how = _how(row, call)
        back = tuple([i - size for i in row["kept"]])
        if how == _PICK:
            call = _picked(row, call)
        return row["makes"], size, how, call, back[1:] if how == _JOIN else back

    def run(self, start: str, tokens: Iterable[Token], end: Token) -> Any:
        """What the builder makes of tokens, which ``end`` follows. Raises ``UnexpectedToken``, and what the builder
        raises."""
        state, accepting = self.starts[start], self.ends[start]
        path, values = [state], list[Any]()
        for token in chain(tokens, (end,)):
            kind = token.type
            while True:
                action = state.get(kind)
                if action.__class__ is dict:
                    state = action
                    path.append(state)
                    values.append(token)
                    break
                if action is None:
                    raise UnexpectedToken(token, self._accepts(path, accepting))
                makes, size, how, call, back = action
                if how >= _CALL:
                    if how == _JOIN:
                        joined = values[-size]
                        for i in back:
                            joined.append(values[i])
                        del path[-size:], values[1 - size :]
                    elif size:
                        parts = [values[back[0]]] if how == _ONE else values[-size:]
                        del path[-size:], values[-size:]
                        values.append(parts if how == _ONE else call(parts))
                    else:
                        values.append(call([]))
                elif how == _PASS:
                    path.pop()
                elif size:
                    values[-size:] = [values[-size:]]
                    del path[-size:]
                else:
                    values.append([])
                state = path[-1][makes]
                path.append(state)
                if state is accepting and kind == "$END":
                    return values[-1]
        raise AssertionError("the end of the text is accepted or unexpected")

    def _accepts(self, path: Sequence[_State], accepting: _State) -> set[str]:
        """The terminals after which the machine could go on."""
        kinds = [kind for kind in path[-1] if kind.isupper()]
        return {kind for kind in kinds if self._goes_on(list(path), accepting, kind)}

    def _goes_on(self, path: list[_State], accepting: _State, kind: str) -> bool:
        while True:
            action = path[-1].get(kind)
            if action is None:
                return False
            if action.__class__ is dict:
                return True
            makes, size = action[:2]
            if size:
                del path[-size:]
            path.append(path[-1][makes])
            if path[-1] is accepting and kind == "$END":
                return True


@cache
def load_tables(path: Path = TABLES) -> dict[str, Any]:
    """The tables of a file, read once."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
