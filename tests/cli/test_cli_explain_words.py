"""``explain`` as one look-up: files, codes, operations, rules, targets; each rule fires on its example."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from dmlc.cli.rule_page import APPLIES, STAYS, example_files, example_of
from dmlc.diagnostics import CODES
from dmlc.passes.inventory import all_rules
from dmlc.targets import target_names
from tests.command_line import Run
from tests.rows import each_row

RULES = {rule.name: rule for rule in all_rules()}


@pytest.fixture
def explain(command_line: Run) -> Run:
    """Runs ``explain``; gives exit code, stdout, stderr."""
    return partial(command_line, "explain")


def test_nearly_every_rule_has_an_example() -> None:
    """A new rule may be added without one: its page has all but the example."""
    assert set(example_files()) <= set(RULES)
    of_compile = [rule for rule in RULES.values() if rule.passes != ("decompose",)]
    assert len(example_files()) > 0.95 * len(of_compile)


@each_row("name", sorted(example_files()))
def test_a_rule_fires_on_its_example(name: str) -> None:
    example = example_of(name)
    assert example is not None
    assert name in [entry.rule for entry in example.compiled(APPLIES).ledger]
    if example.has_near_miss:
        assert name not in [entry.rule for entry in example.compiled(STAYS).ledger]


def test_near_misses_are_many() -> None:
    """A rule without conditions has none."""
    missed = [name for name in RULES if (example := example_of(name)) is not None and example.has_near_miss]
    assert len(missed) > len(RULES) // 4


def test_pass_lists_its_rules(explain: Run) -> None:
    code, out, _ = explain("fuse-softmax", "--format", "json")
    assert (code, json.loads(out)["rules"][0]["passes"]) == (0, ["fuse-softmax"])


def test_the_page_of_a_rule(explain: Run) -> None:
    code, out, _ = explain("merge-nested-reductions")
    assert code == 0
    assert "reduce_sum(x, axes=[1, 2])" in out
    assert "--skip-rule merge-nested-reductions" in out
    assert "applies: y/ReduceSum, t0/ReduceSum -> y/ReduceSum" in out
    assert "stays: integer means truncate, so the mean of means may differ from the mean" in out
    document = json.loads(explain("merge-nested-reductions", "--format", "json")[1])
    assert document["rule"] == "merge-nested-reductions"
    assert document["by_case"] and document["optional"]
    assert "Integer means truncate" in document["conditions"]
    assert document["passes"] == ["canonicalize-reduce"]
    assert "model stays" in document["example"]


def test_a_rule_that_a_target_needs_and_one_of_onnx_models(explain: Run) -> None:
    assert "a target cannot do without it" in explain("lower-rank")[1]
    page = explain("inline-branch")[1]
    assert "If (is_large)" in page
    assert "applies:" in page


@each_row(
    ("word", "text"),
    [
        ("E0301", "E0301: "),
        ("e0301", "E0301: "),
        ("argmax", "argmax(x, *, axes"),
        ("+", "a + b"),
        ("directml", "DirectML execution provider"),
    ],
)
def test_words(word: str, text: str, explain: Run) -> None:
    code, out, _ = explain(word)
    assert code == 0
    assert text in out


def test_each_listed_word_and_each_sign_has_a_page(explain: Run) -> None:
    listed = json.loads(explain("--list", "--format", "json")[1])
    words = [*listed["operations"], *listed["targets"], *list(listed["codes"])[::10], *list(listed["rules"])[::10]]
    signs = ["+", "*", "/", "//", "%", "**", "==", "!=", "<", ">=", "!"]
    missing = [word for word in [*words, *signs] if explain(word)[0] != 0]
    assert not missing


def test_a_file_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, explain: Run) -> None:
    monkeypatch.chdir(tmp_path)
    Path("argmax").write_text("model m(x: f32[3, 4]) -> (y) {\n    y = relu(x)\n    return y\n}\n", "utf-8")
    assert explain("argmax")[1].startswith("m for directml")


def test_a_word_that_nothing_has(explain: Run) -> None:
    code, _, err = explain("merge-nested")
    assert code == 2
    assert 'did you mean "merge-nested-reductions"?' in err
    assert explain("nosuch")[0] == 2
    assert "dmlc verify --help" in explain("verify")[2]
    assert explain()[0] == 2
    assert "E0420" in explain("nosuch.dml")[2]


def test_lists(explain: Run) -> None:
    everything = explain("--list")[1]
    assert all(word in everything for word in [*RULES, *target_names(), "reduce_sum", "E0301"])
    document = json.loads(explain("--list", "--format", "json")[1])
    assert {"schema", "codes", "rules", "operations", "targets"} <= set(document)
    assert set(document["codes"]) == set(CODES)
    assert set(document["rules"]) == set(RULES)
    targets = json.loads(explain("--list", "targets", "--format", "json")[1])["targets"]
    assert set(targets) == set(target_names())
    assert explain("argmax", "--list")[0] == 2


@each_row(
    "word", ["dynamic size", "reassociates", "fused graph", "f16", "opset", "CPU/GPU copy", "feature level", "ledger"]
)
def test_words_of_the_output_have_pages(explain: Run, word: str) -> None:
    code, out, err = explain(word)
    assert (code, err) == (0, "")
    assert out.startswith(f"{word}\n\n")
    assert explain(*word.split()) == (code, out, err), "blanks need no quotes"
    assert json.loads(explain(word, "--format", "json")[1])["word"] == word


def test_every_word_of_tables_and_promises_has_a_page() -> None:
    """Names of rows and places, and what a class promises."""
    from dmlc.cli.glossary import find_word

    rows = ["nodes on the CPU", "CPU/GPU copies", "fused graphs", "GPU dispatches", "bytes moved"]
    places = ["GPU, one at a time", "folded while loading", "shape computations"]
    promises = ["same bits", "rounding may change", "needs a value range", "exact", "reassociates", "range"]
    others = [
        "requires",
        "feature level",
        "INT64 on the device",
        "removed",
        "rewritten",
        "not rewritten",
        "shape check",
    ]
    others += ["same", "different", "not comparable", "identical", "same up to rounding", "largest difference", "ulp"]
    others += ["not defined", "overflowed", "first difference", "wrong numbers", "not known", "file size", "next"]
    others += ["kernel", "backend", "tolerance", "beyond the precondition", "not deterministic", "weights"]
    assert [word for word in (*rows, *places, *promises, *others) if find_word(word) is None] == []


def test_words_do_not_hide_other_pages(explain: Run) -> None:
    from dmlc.cli.glossary import WORDS
    from dmlc.cli.ops import names

    assert not WORDS.keys() & {*RULES, *names(), *target_names()}
    code, out, err = explain("fused", "graphs", "of", "mine")
    assert (code, out) == (2, "")
    assert "unexpected argument graphs" in err
    assert "fused graph" in explain("--list", "words")[1]


def test_pages_are_found_in_capitals_too(explain: Run) -> None:
    assert explain("Softmax") == explain("softmax")
    assert explain("CPU") == explain("cpu")
