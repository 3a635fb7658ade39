"""What families of rules declare of them is what the rules say, and no rule is loaded that no node may be a root of."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dmlc
from dmlc.passes.inventory import HasRules, all_rules
from dmlc.passes.later import Later, loaded
from dmlc.passes.manager import PassContext
from dmlc.passes.pipeline import default_pipeline
from dmlc.passes.rewrite import Rule
from dmlc.targets import load_target, target_names

FOLDER = Path(dmlc.__file__).parent / "passes"
FAMILIES = sorted(path.parent.name for path in FOLDER.glob("*_rules/__init__.py"))
DECLARED = {
    f"{family}.{name}": value
    for family in FAMILIES
    for name, value in vars(import_module(f"dmlc.passes.{family}")).items()
    if isinstance(value, Later)
}


@pytest.mark.parametrize("place", sorted(DECLARED))
def test_what_is_declared_is_what_the_rule_says(place: str) -> None:
    said = DECLARED[place]
    rule = said.load()
    assert said.place == f"{rule.__module__}:{rule.__name__}"
    assert rule.__module__.split(".")[-2:-1] == [place.split(".")[0]] and rule.__name__ == place.split(".")[1]
    assert (said.name, said.optional) == (rule.name, rule.optional)
    assert set(said.roots) == set(rule.roots) and len(said.roots) == len(set(said.roots))
    assert set(said.fed_by) == set(rule.fed_by)


@pytest.mark.parametrize("name", target_names())
def test_rules_of_passes_are_found_as_they_are_declared(name: str) -> None:
    target = load_target(name)
    context = PassContext(target, target.opset)
    rules = [
        rule for step in default_pipeline(target).passes if isinstance(step, HasRules) for rule in step.rules(context)
    ]
    assert rules
    for rule in rules:
        own = loaded(rule)
        assert isinstance(own, Rule)
        assert (rule.name, rule.optional) == (own.name, own.optional)
        assert set(rule.roots) == set(own.roots) and set(rule.fed_by) == set(own.fed_by)


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
