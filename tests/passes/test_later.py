"""Families alone declare their rules, and no rule is loaded that no node may be a root of."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dmlc
from dmlc.passes.inventory import all_rules
from dmlc.passes.later import Later

FOLDER = Path(dmlc.__file__).parent / "passes"
FAMILIES = sorted(path.parent.name for path in FOLDER.glob("*_rules/__init__.py"))
DECLARED = {
    f"{family}.{name}": value
    for family in FAMILIES
    for name, value in vars(import_module(f"dmlc.passes.{family}")).items()
    if isinstance(value, Later)
}


@pytest.mark.parametrize("place", sorted(DECLARED))
def test_a_rule_stands_where_it_is_declared(place: str) -> None:
    said = DECLARED[place]
    rule = said.load()
    assert said.place == f"{rule.__module__}:{rule.__name__}"
    assert rule.__module__.split(".")[-2:-1] == [place.split(".")[0]] and rule.__name__ == place.split(".")[1]
    assert len(said.roots) == len(set(said.roots)) > 0


@pytest.mark.parametrize("place", sorted(DECLARED))
def test_what_is_declared_is_said_once(place: str) -> None:
    tree = ast.parse(inspect.getsource(DECLARED[place].load()))
    body = next(part.body for part in tree.body if isinstance(part, ast.ClassDef))
    own = {ast.unparse(target) for part in body if isinstance(part, ast.Assign) for target in part.targets}
    assert not own & {"name", "roots", "fed_by", "optional"}


def test_every_declared_rule_is_listed() -> None:
    assert {said.load() for said in DECLARED.values()} <= {facts.kind for facts in all_rules()}


def test_only_rules_that_a_node_may_be_the_root_of_are_loaded() -> None:
    program = """import sys
import dmlc
from dmlc.diagnostics import Source
dmlc.compile(Source("m.dml", "model m(x: f32[2, 3]) -> (y) {\\n    y = OPERATION\\n    return y\\n}"))
print(*[name for name in sys.modules if "_rules." in name])
"""

    def modules(operation: str) -> set[str]:
        text = program.replace("OPERATION", operation)
        return set(
            subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout.split()
        )

    rising, search = "dmlc.passes.hoist_rules.extreme", "dmlc.passes.selection_rules.monotone"
    assert not {rising, search} & modules("x * 2")
    assert rising in modules("reduce_max(x, axes=[1])") and search in modules("argmax(x, axes=[1])")
