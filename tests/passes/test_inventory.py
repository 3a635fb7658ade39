"""The rules that users can name: read off the pipelines, described, chosen and refused."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec import NODEFAULT

import dmlc
from dmlc import passes
from dmlc.diagnostics import DmlcError
from dmlc.ir.history import CLASSES
from dmlc.passes.inventory import all_rules, chosen_rules, pass_names
from dmlc.passes.manager import Pass
from dmlc.passes.rewrite import Match, RewritePass, Rule
from tests.rows import each_row

RULES = {rule.name: rule for rule in all_rules()}


@each_row("rule", all_rules(), ids=lambda rule: rule.name)
def test_every_rule_reads_well(rule: object) -> None:
    facts = RULES[rule.name]  # type: ignore[attr-defined]
    assert facts.rewrite_class in CLASSES
    assert facts.summary, f"{facts.kind} needs a docstring"
    assert len(facts.summary) < 140
    assert facts.summary.endswith("."), facts.summary
    assert "``" not in facts.summary
    assert facts.passes


def test_what_is_in_the_list() -> None:
    assert {"fold", "cse", "dce", "merge-nested-reductions", "lower-hardmax", "widen-dtype"} <= set(RULES)
    assert RULES["move-nothing"].passes[:2] == ("fold-constants", "canonicalize-reduce")
    assert RULES["merge-nested-reductions"].depends
    assert not RULES["move-nothing"].depends
    needed = {rule.name for rule in all_rules() if not rule.optional}
    assert {"lower-hardmax", "lower-rank", "widen-dtype"} <= needed
    assert not needed & {"fold", "cse", "dce", "merge-nested-reductions", "move-nothing"}
    assert "infer-shapes" in pass_names()
    assert "infer-shapes" not in RULES


def rule_classes() -> set[type[Rule[Any]]]:
    """All classes of rules in the package; a class without a name is a base of others."""
    for module in pkgutil.walk_packages(passes.__path__, "dmlc.passes."):
        import_module(module.name)
    found: set[type[Rule[Any]]] = set()
    waiting: list[type[Rule[Any]]] = [Rule]
    while waiting:
        more = waiting.pop().__subclasses__()
        waiting += more
        found |= {cls for cls in more if hasattr(cls, "name") and not inspect.isabstract(cls)}
    return {cls for cls in found if cls.__module__.startswith("dmlc.") and "<locals>" not in cls.__qualname__}


def test_every_rule_class_is_in_a_pass() -> None:
    assert rule_classes() <= {facts.kind for facts in all_rules()}


@each_row("rule", sorted(rule_classes(), key=lambda cls: cls.name), ids=lambda cls: cls.name)
def test_a_rule_states_its_facts_itself(rule: type[Rule[Any]]) -> None:
    assert "name" in vars(rule)
    assert len(rule.roots) == len(set(rule.roots)) > 0


@each_row("rule", sorted(rule_classes(), key=lambda cls: cls.name), ids=lambda cls: cls.name)
def test_rules_are_made_with_their_context_alone(rule: type[Rule[Any]]) -> None:
    assert rule.__init__ is Rule.__init__


def test_fields_of_matches_have_no_defaults() -> None:
    """A near miss is a reason that the rule returns, not a match with fields left out."""
    rule_classes()  # loads all of them
    waiting, found = [Match], []
    while waiting:
        more = waiting.pop().__subclasses__()
        waiting += more
        found += [cls for cls in more if cls.__module__.startswith("dmlc.")]
    assert len(found) > 10
    for cls in found:
        assert cls.__match_args__ == ("root", "consumed"), cls
        assert [each for each in cls.__struct_defaults__ if each is not NODEFAULT] == [()], cls


def test_a_pass_is_one_module_or_folder_of_its_name() -> None:
    modules = {name.replace("-", "_") for name in pass_names()}
    folder = Path(passes.__file__).parent
    assert all((folder / f"{name}.py").exists() != (folder / name / "__init__.py").exists() for name in modules)
    for file in folder.glob("*/__init__.py"):
        module = import_module(f"dmlc.passes.{file.parent.name}")
        kinds = [*Pass.__subclasses__(), *RewritePass.__subclasses__()]
        names = {vars(cls)["name"] for cls in kinds if cls.__module__ == module.__name__}
        assert names == {file.parent.name.replace("_", "-")}


def test_each_name_is_one_rule() -> None:
    """A rule and another pass of its name would make --skip-rule mean two things."""
    for name, rule in RULES.items():
        assert name not in pass_names() or rule.passes == (name,)


def test_names_are_checked() -> None:
    assert chosen_rules((), None) == (frozenset(), None)
    assert chosen_rules(["cse"], ["fold"]) == (frozenset({"cse"}), frozenset({"fold"}))
    assert chosen_rules("cse", ())[1] == frozenset()
    for skip, only, text in (
        (["csee"], None, 'did you mean "cse"?'),
        ((), ["merge-nested-reduction"], 'did you mean "merge-nested-reductions"?'),
        (["canonicalize-reduce"], None, "it is a pass; its rules are"),
        (["qqq"], None, "--list-rules"),
        (["lower-hardmax"], None, "cannot be skipped"),
    ):
        with pytest.raises(DmlcError, match=r"E0556") as caught:
            chosen_rules(skip, only)
        assert caught.value.exit_code == 2
        assert text in str(caught.value)


PROGRAM = """\
model m(x: f32[2, 3], y: f64[2, 3]) -> (a, b, c) {
    s = reduce_sum(reduce_sum(x, axes=[0]), axes=[1])
    unused = exp(x)
    return s + abs(x), s * abs(x), hardmax(y, axes=[0, 1])
}
"""


def fired(tmp_path: Path, **options: object) -> set[str]:
    path = tmp_path / "m.dml"
    path.write_text(PROGRAM)
    program = dmlc.compile(path, **options)
    program.to_onnx()
    return {entry.rule for entry in program.ledger}


def test_rules_are_left_out_and_left_alone(tmp_path: Path) -> None:
    everything = fired(tmp_path)
    assert {"merge-nested-reductions", "cse", "dce", "lower-hardmax"} <= everything
    for rule in ("merge-nested-reductions", "cse", "dce"):
        assert fired(tmp_path, skip_rules=[rule]) == everything - {rule}
    needed = {name for name in everything if not RULES[name].optional}
    assert fired(tmp_path, only_rules=[]) == needed
    assert fired(tmp_path, only_rules=["cse"]) == needed | {"cse"}
    assert fired(tmp_path, only_rules=["cse", "dce"], skip_rules=["cse"]) == needed | {"dce"}


def test_the_ledger_of_cse_and_dce_names_nodes(tmp_path: Path) -> None:
    path = tmp_path / "m.dml"
    path.write_text(PROGRAM)
    ledger = {entry.rule: entry for entry in dmlc.compile(path).ledger}
    assert (ledger["cse"].before, ledger["cse"].after) == (("Abs", "Abs"), ("Abs",))
    assert (ledger["dce"].before, ledger["dce"].after) == (("unused/Exp",), ())
    assert ledger["dce"].text == "1 unused node removed"


def test_progress_names_the_passes(tmp_path: Path) -> None:
    path = tmp_path / "m.dml"
    path.write_text(PROGRAM)
    steps: list[str] = []
    program = dmlc.compile(path, progress=steps.append)
    assert steps == [name for name, _, _ in program.timings]
