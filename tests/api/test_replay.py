"""A ledger is replayed: the same rewrites in the same order, the same bytes; and no other ledger is taken for it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, parser

import dmlc
from dmlc.cli.main import main
from tests.rows import each_row
from tools.fuzz import onnx_models
from tools.fuzz.onnx_patterns import PATTERNS

ROOT = Path(__file__).parents[2]

HEAD = ROOT / "examples" / "04_detection_head" / "model.dml"
OPTIONS: list[dict[str, Any]] = [
    {"target": "directml"},
    {"target": "cpu", "allow": ("range",)},
    {"target": "onnx", "exact": True, "skip_rules": ("cse",)},
    {"target": "directml", "feature_level": "6.2", "f64": "f32", "accumulate": "f32", "lower_hardmax": True},
    {"target": "numpy", "only_rules": ("merge-nested-reductions", "dce")},
]
Document = dict[str, Any]


def as_file(program: dmlc.Program) -> Document:
    """The ledger as it comes back from a file."""
    found: Document = json.loads(json.dumps(program.ledger_document()))
    return found


def assert_replayed(source: Any, **options: Any) -> int:
    """The number of rewrites replayed."""
    program = dmlc.compile(source, **options)
    again = dmlc.replay(source, as_file(program))
    assert again.ledger_document() == program.ledger_document()
    assert again.to_bytes("onnx") == program.to_bytes("onnx")
    return len(program.ledger)


def pattern_model(pattern: Callable[[onnx_models.Grower], object]) -> ModelProto:
    """A small valid model of a written-out pattern."""
    for attempt in range(200):
        try:
            program = onnx_models.Grower(f"{pattern.__name__}/{attempt}").model(((1, pattern),))
        except onnx_models.MisfitError:
            continue
        if program.model.graph.node and onnx_models.is_valid(program.model):
            return program.model
    raise AssertionError(f"{pattern.__name__} yields no valid model")


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/model.dml")), ids=lambda path: path.parent.name)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: options["target"])
def test_examples(path: Path, options: dict[str, Any]) -> None:
    assert_replayed(path, **options)


def test_patterns() -> None:
    count = 0
    for number, (_, pattern) in enumerate(PATTERNS):
        count += assert_replayed(pattern_model(pattern), **OPTIONS[number % 2])
    assert count > len(PATTERNS)


def test_bound_dims_and_the_model_of_several() -> None:
    text = (
        "model {0}(x: f32[N, 4]) -> (y) {{\n    y = reduce_max(reduce_max(x, axes=[0]), axes=[1])\n    return y\n}}\n"
    )
    source = dmlc.diagnostics.Source("two.dml", text.format("a") + text.format("b"))
    assert assert_replayed(source, model="b", bind={"N": 3}) == 1
    program = dmlc.compile(source, model="b", bind={"N": 3})
    again = dmlc.replay(source, as_file(program))
    assert (again.signature.name, str(again.signature.inputs[0][1])) == ("b", "f32[3, 4]")


def test_a_model_that_keeps_its_old_opset() -> None:
    """Nothing is rewritten at an opset that no target has; that is replayed too."""
    inner = "b (float[3] i) => (float[3] o) { o = Abs (i) }"
    node = f"y = Scan <body = {inner}, num_scan_inputs = 1> (, x)"
    head = '<ir_version: 4, opset_import: ["": 8]> g (float[1, 2, 3] x) => (float[1, 2, 3] y)'
    model = parser.parse_model(f"{head} {{ {node} }}")
    program = dmlc.compile(model)
    assert program.opset == 8 and not program.ledger
    assert dmlc.replay(model, as_file(program)).to_bytes("onnx") == program.to_bytes("onnx")


def test_the_file_that_the_command_line_writes(tmp_path: Path) -> None:
    out, ledger = tmp_path / "head.onnx", tmp_path / "head.json"
    assert main(["compile", str(HEAD), "-o", str(out), "--ledger", str(ledger), "--bind", "batch=2", "-q"]) == 0
    program = dmlc.replay(HEAD, ledger)
    program.save(tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == out.read_bytes()
    document = json.loads(ledger.read_text(encoding="utf-8"))
    assert document["options"]["bind"] == {"batch": 2}
    places = {place for row in document["rewrites"] for place in row["places"]}
    assert places and all(place.startswith("model.dml:") for place in places)


# --- what is no such ledger


def refused(source: Any, ledger: Any) -> dmlc.Diagnostic:
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.replay(source, ledger)
    return caught.value.diagnostics[0]


def test_each_change_of_each_rewrite_is_found() -> None:
    good = as_file(dmlc.compile(HEAD, target="cpu"))
    assert len(good["rewrites"]) >= 4
    for number in range(len(good["rewrites"])):
        for key in ("rule", "class", "text", "before", "after"):
            bad = copy.deepcopy(good)
            row = bad["rewrites"][number]
            row[key] = [*row[key], "other"] if isinstance(row[key], list) else "other"
            found = refused(HEAD, bad)
            assert found.code.id == "E0559" and f"rewrite {number + 1} " in found.message
        for change in (_without, _twice):
            found = refused(HEAD, {**good, "rewrites": change(good["rewrites"], number)})
            assert found.code.id == "E0559"
    moved = {**good, "rewrites": good["rewrites"][::-1]}
    assert refused(HEAD, moved).code.id == "E0559"
    assert dmlc.replay(HEAD, good).ledger


def _without(rows: list[Document], number: int) -> list[Document]:
    return rows[:number] + rows[number + 1 :]


def _twice(rows: list[Document], number: int) -> list[Document]:
    return rows[: number + 1] + rows[number:]


def test_another_program_or_other_options() -> None:
    good = as_file(dmlc.compile(HEAD, target="cpu"))
    keypoints = ROOT / "examples" / "02_keypoints" / "model.dml"
    name = dmlc.compile(keypoints).signature.name
    assert refused(keypoints, {**good, "model": name}).code.id == "E0559"
    skipped = {**good, "options": {**good["options"], "skip_rules": ["cse"]}}
    assert refused(HEAD, skipped).code.id == "E0559"
    twice = "model m(x: f32[3, 4]) -> (y) {\n    y = reduce_sum(reduce_sum(x, axes=[0]), axes=[1])\n    return y\n}\n"
    source = dmlc.diagnostics.Source("twice.dml", twice)
    summed = as_file(dmlc.compile(source))
    assert [row["class"] for row in summed["rewrites"]] == ["reassociates"]
    exact = {**summed, "options": {**summed["options"], "exact": True}}
    assert refused(source, exact).code.id == "E0559"
    assert refused(dmlc.diagnostics.Source("twice.dml", twice.replace("x: f32", "x: i32")), summed).code.id == "E0559"
    graph = dmlc.Graph("another")
    graph.output("y", dmlc.abs(graph.input("x", dtype="float32", shape=(2,))))
    assert "another" in refused(graph, {**good, "rewrites": []}).message


@each_row(
    "change",
    [
        {"schema": 2},
        {"rewrites": None},
        {"rewrites": [1]},
        {"rewrites": [{"rule": "cse"}]},
        {"opset": "21"},
        {"opset": True},
        {"options": []},
        {"options": {}},
        {"model": 1},
        {"target": None},
    ],
    ids=str,
)
def test_what_is_no_ledger(change: Document) -> None:
    good = as_file(dmlc.compile(HEAD, target="cpu"))
    assert refused(HEAD, {**good, **change}).code.id == "E0429"


@each_row("field", ["bind", "shapes", "allow", "feature_level", "skip_rules", "only_rules", "f64", "exact"])
def test_options_of_another_form(field: str) -> None:
    good = as_file(dmlc.compile(HEAD, target="cpu"))
    assert refused(HEAD, {**good, "options": {**good["options"], field: 7}}).code.id == "E0429"


@each_row("data", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b"1" * 5000, b"null"])
def test_files_that_hold_no_ledger(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "l.json").write_bytes(data)
    assert refused(HEAD, tmp_path / "l.json").code.id == "E0429"
    assert refused(HEAD, tmp_path / "none.json").code.id == "E0420"


def test_an_unknown_target() -> None:
    good = as_file(dmlc.compile(HEAD, target="cpu"))
    assert refused(HEAD, {**good, "target": "abacus"}).code.id == "E0550"
