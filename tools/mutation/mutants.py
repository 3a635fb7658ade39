"""Guards of rewrites, the sources without one of them, and sources in which each can be switched off."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Modules that guard no rewrite: the driver, the lists of passes, the options, advice, the counting of nodes.
NOT_RULES = frozenset((
    "choose_lowering", "emitted", "empty_advice", "f16_advice", "infer_shapes", "inventory", "manager",
    "options", "pipeline", "rewrite",
))  # fmt: skip
#: Path -> key of a mutant -> the test that killed it.
KILLERS = Path(__file__).with_name("killers.json")
#: Path -> key of a mutant that no test can tell from the original -> why: its guard only spares work.
HARMLESS = Path(__file__).with_name("harmless.json")
#: The function that a switched source asks whether a guard, by its number, is there.
SWITCH = "_guard_is_there"
#: Words that say a direction, and the other one.
_OTHER = {"first": "last", "last": "first"}
_NO, _YES = "False", "True"


@dataclass(frozen=True)
class Mutant:
    """A file without one guard. ``text`` is the guard as written, ``new`` what stands in its place.

    ``key`` tells the mutants of a file apart, wherever their lines move to. ``start`` and ``end`` are offsets.
    """

    path: str
    line: int
    kind: str
    text: str
    new: str
    key: str
    start: int
    end: int

    @property
    def place(self) -> str:
        """The path below the root, and the line."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class _Change:
    kind: str
    node: ast.expr
    new: str


def mutants(root: Path, folder: str = "dmlc/passes") -> Iterator[Mutant]:
    """All mutants of the rules, file after file, in the order of their places."""
    for path in sorted((root / folder).rglob("*.py")):
        if (path.parent.name if path.stem == "__init__" else path.stem) in NOT_RULES:
            continue
        source = path.read_text("utf-8")
        lines = source.splitlines(keepends=True)
        seen: Counter[str] = Counter()
        found = {(c.node.lineno, c.node.col_offset, c.new): c for c in _changes(ast.parse(source))}
        for (line, column, new), change in sorted(found.items()):
            start = _offset(lines, line, column)
            end = _offset(lines, change.node.end_lineno or line, change.node.end_col_offset or column)
            text = " ".join(source[start:end].split())
            key = f"{text} -> {new}"
            seen[key] += 1
            key = key if seen[key] == 1 else f"{key} #{seen[key]}"
            yield Mutant(path.relative_to(root).as_posix(), line, change.kind, text, new, key, start, end)


def without(source: str, mutant: Mutant) -> str:
    """The source of the mutant's file without its guard."""
    return source[: mutant.start] + mutant.new + source[mutant.end :]


def switched(source: str, numbered: Iterable[tuple[int, Mutant]]) -> str:
    """The source of a file in which a guard is there as long as ``SWITCH(its number)`` holds."""
    opening = [(m.start, -m.end, "((") for _, m in numbered]
    closing = [(m.end, -m.start, f") if {SWITCH}({n}) else {m.new})") for n, m in numbered]
    out = source
    # From the back; at one place what closes stands before what opens, the inner before the outer.
    for place, _, text in sorted([*opening, *closing], key=lambda p: (p[0], p[2] == "((", p[1]), reverse=True):
        out = out[:place] + text + out[place:]
    return out


def said(file: Path) -> dict[str, dict[str, str]]:
    """The entries of ``KILLERS`` or ``HARMLESS`` for each path and key."""
    known: dict[str, dict[str, str]] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return known


def _changes(tree: ast.AST) -> Iterator[_Change]:
    for node in _walk(tree):
        if isinstance(node, ast.If):
            yield from _of_if(node)
        elif isinstance(node, ast.IfExp):
            yield from _of_choice(node)
        elif isinstance(node, ast.FunctionDef):
            yield from _of_function(node)
        elif isinstance(node, (ast.Compare, ast.keyword)):
            words: Sequence[ast.expr] = node.comparators if isinstance(node, ast.Compare) else [node.value]
            for word in words:
                if isinstance(word, ast.Constant) and word.value in _OTHER:
                    yield _Change("direction", word, f'"{_OTHER[word.value]}"')


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those in strings, whose places are not known."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.JoinedStr):
            yield from _walk(child)


def _of_if(node: ast.If) -> Iterator[_Change]:
    """A statement that refuses drops one of its reasons, one that goes on drops one of its conditions."""
    if _refuses(node.body):
        yield from (_Change("refusal", part, _NO) for part in _parts(node.test, ast.Or))
    elif isinstance(node.body[-1], ast.Return):
        yield from (_Change("condition", part, _YES) for part in _parts(node.test, ast.And) if part is not node.test)


def _of_choice(node: ast.IfExp) -> Iterator[_Change]:
    """``None if reason else x`` and ``x if condition else None``."""
    if _is_nothing(node.body) and not isinstance(node.body, (ast.Tuple, ast.List)):
        yield from (_Change("refusal", part, _NO) for part in _parts(node.test, ast.Or))
    elif _is_nothing(node.orelse) and not isinstance(node.orelse, (ast.Tuple, ast.List)):
        yield from (_Change("condition", part, _YES) for part in _parts(node.test, ast.And))


def _of_function(node: ast.FunctionDef) -> Iterator[_Change]:
    """In what gives reasons against a rewrite, each is left out; in what gives a bool, each part of it."""
    gives = "" if node.returns is None else ast.unparse(node.returns)
    for inner in _walk(node):
        if not isinstance(inner, ast.Return) or inner.value is None:
            continue
        value = inner.value
        if "Miss" in gives and "None" in gives:
            parts = value.values if isinstance(value, ast.BoolOp) else [value]
            yield from (_Change("reason", part, "None") for part in parts if _asks(part))
        elif gives == "bool" and isinstance(value, ast.BoolOp):
            new = _YES if isinstance(value.op, ast.And) else _NO
            yield from (_Change("part", part, new) for part in _parts(value, type(value.op)))


def _parts(test: ast.expr, op: type[ast.boolop]) -> list[ast.expr]:
    """The operands of a test that are guards; without those that only tell types apart, or name a value."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, op) else [test]
    return [part for part in parts if not _tells_types(part) and not _names(part)]


def _tells_types(node: ast.expr) -> bool:
    """``x is None``, ``isinstance(...)``, and what combines such."""
    if isinstance(node, ast.UnaryOp):
        return _tells_types(node.operand)
    if isinstance(node, ast.BoolOp):
        return all(map(_tells_types, node.values))
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], (ast.Is, ast.IsNot)) and ast.unparse(node.comparators[0]) == "None"
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"


def _names(node: ast.expr) -> bool:
    return any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node))


def _refuses(body: list[ast.stmt]) -> bool:
    """True if it does nothing but go on to the next, or return nothing or a reason."""
    last = body[0]
    if len(body) != 1:
        return False
    return isinstance(last, ast.Continue) or (isinstance(last, ast.Return) and _is_nothing(last.value))


def _is_nothing(value: ast.expr | None) -> bool:
    if value is None or (isinstance(value, ast.Constant) and value.value in (None, False)):
        return True
    if isinstance(value, (ast.Tuple, ast.List)):
        return not value.elts
    return _is_miss(value)


def _is_miss(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "Miss"


def _asks(part: ast.expr) -> bool:
    """True if it may give a reason: a call, or a name that such a call's result has."""
    return isinstance(part, ast.Name) or (isinstance(part, ast.Call) and not _is_miss(part))


def _offset(lines: list[str], line: int, column: int) -> int:
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())
