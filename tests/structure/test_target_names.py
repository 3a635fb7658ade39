"""Decisions ask a target's capabilities: its name and family are for messages, look-up and caches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dmlc
from dmlc.targets import load_target, target_names
from tests.rows import each_row

PACKAGE = Path(dmlc.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
NAMES = {*target_names(), *(load_target(name).family for name in target_names())}
#: Names that are also those of artifact kinds, execution backends and domains.
OTHER_MEANINGS = {"cpu", "numpy", "onnx", "webgpu"}
#: Uses that print a name, look it up, repeat what a user typed, or group pages: (module, source of the expression).
MESSAGES = {
    ("targets/target.py", "self.name.partition(':')"),
    ("cli/ops.py", "page.family == family"),
    ("api/program.py", "target.name not in self._lowered"),
    *[
        (f"cli/{name}.py", f"args.target {test} target_names()")
        for name in ("check", "compile")
        for test in ("in", "not in")
    ],
}


def is_target(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text == "target" or text.endswith((".target", "_target", "load_target()")) or text.startswith("load_target(")


def named(node: ast.AST) -> bool:
    """True if an expression reads the name or family of a target, or is the name that a user chose."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and (
            part.attr == "family" or (part.attr == "name" and is_target(part.value))
        ):
            return True
        if isinstance(part, ast.Attribute) and part.attr == "target" and ast.unparse(part) == "args.target":
            return True
    return False


SETS = ("frozenset", "set")
#: Methods of a text or of a table that decide.
ASKS = frozenset(("startswith", "endswith", "partition", "split", "get", "find", "count"))


def has_name(node: ast.AST) -> bool:
    """True if a comparison or a set holds a name that only targets have."""
    is_test = isinstance(node, (ast.Compare, ast.Set)) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SETS
    )
    parts = ast.walk(node) if is_test else ()
    return any(isinstance(part, ast.Constant) and part.value in NAMES - OTHER_MEANINGS for part in parts)


def decisions(tree: ast.Module) -> Iterator[ast.AST]:
    """The expressions that something is decided by: comparisons, look-ups, matches, tests of a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Match):
            yield node.subject
        elif isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Dict, ast.Name)):
            yield node.slice
        elif isinstance(node, (ast.Compare, ast.Set)):
            yield node
        elif isinstance(node, ast.Call):
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if method in ASKS or (isinstance(node.func, ast.Name) and node.func.id in SETS):
                yield node


#: Words of which a decision by a name has one.
MAY_DECIDE = re.compile("|".join(["family", "target", *map(re.escape, NAMES - OTHER_MEANINGS)]))


def found(source: str) -> list[str]:
    if not MAY_DECIDE.search(source):
        return []  # to parse and walk a file takes long
    return [ast.unparse(node) for node in decisions(ast.parse(source)) if named(node) or has_name(node)]


def test_no_decision_asks_for_a_name() -> None:
    wrong = [
        (module, text)
        for module in MODULES
        for text in found((PACKAGE / module).read_text(encoding="utf-8"))
        if (module, text) not in MESSAGES
    ]
    assert wrong == []


@each_row(
    "source",
    [
        "if context.target.name == 'numpy': pass",
        "x = self.facts.target.family != 'directml'",
        "x = target.family in WRAPPING",
        "x = self.goal.target.name.startswith('directml')",
        "x = TABLE[self.target.name]",
        "x = TABLE.get(target.family)",
        "WRAPPING = frozenset(('directml', 'numpy'))",
        "x = name == 'directml:ort-1.17'",
        "match target.name:\n    case 'cpu': pass",
    ],
)
def test_decisions_by_name_are_found(source: str) -> None:
    assert found(source)


@pytest.mark.parametrize(
    "source",
    [
        "x = f'{target.name} has no kernel'",
        "x = self._lowered[target.name]",
        "x = kind == 'onnx'",
        "x = op.name == 'cpu'",
    ],
)
def test_messages_and_caches_are_not(source: str) -> None:
    assert not found(source)
