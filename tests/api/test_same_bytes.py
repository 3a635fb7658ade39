"""A build is checked by compiling again and comparing bytes; the options that its ledger reports are enough."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dmlc
from dmlc.cli.main import main
from tools.fuzz.onnx_models import of_pattern
from tools.fuzz.onnx_patterns import PATTERNS

ROOT = Path(__file__).parents[2]

HEAD = ROOT / "examples" / "more/detection_head" / "model.dml"
OPTIONS: list[dict[str, Any]] = [
    {"target": "directml"},
    {"target": "cpu", "allow": ("range",)},
    {"target": "onnx", "exact": True, "skip_rules": ("cse",)},
    {"target": "directml", "feature_level": "6.2", "f64": "f32", "accumulate": "f32", "lower_hardmax": True},
    {"target": "numpy", "only_rules": ("merge-nested-reductions", "dce")},
]


def assert_same_again(source: Any, **options: Any) -> int:
    """Compile, compile again as the ledger reports, compare; the number of rewrites."""
    program = dmlc.compile(source, **options)
    ledger = json.loads(json.dumps(program.ledger_document()))
    again = dmlc.compile(source, target=ledger["target"], opset=ledger["opset"], **ledger["options"])
    assert again.to_bytes("onnx") == program.to_bytes("onnx")
    assert again.ledger_document() == ledger == program.ledger_document()
    return len(ledger["rewrites"])


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: options["target"])
def test_examples_compiled_again_have_the_same_bytes(options: dict[str, Any]) -> None:
    """Each with one of the options, and one with all."""
    for number, path in enumerate([HEAD, *sorted((ROOT / "examples").rglob("model.dml"))]):
        if path == HEAD or number % len(OPTIONS) == OPTIONS.index(options):
            assert_same_again(path, **options)


def test_patterns_compiled_again_have_the_same_bytes() -> None:
    count = 0
    for number, (_, pattern) in enumerate(PATTERNS):
        count += assert_same_again(of_pattern(pattern), **OPTIONS[number % 2])
    assert count > len(PATTERNS)


def test_another_program_or_other_options_give_other_bytes() -> None:
    build = dmlc.compile(HEAD, target="cpu").to_bytes("onnx")
    assert dmlc.compile(HEAD, target="cpu", skip_rules=("cse",)).to_bytes("onnx") != build
    assert dmlc.compile(HEAD, target="cpu", bind={"batch": 2}).to_bytes("onnx") != build
    text = HEAD.read_text(encoding="utf-8").replace("order=largest", "order=smallest")
    source = dmlc.Source(text, name="model.dml")
    assert dmlc.compile(source, target="cpu", include=[HEAD.parent]).to_bytes("onnx") != build


def test_the_command_line_writes_the_same_files_again(tmp_path: Path) -> None:
    files = [(tmp_path / f"{name}.onnx", tmp_path / f"{name}.json") for name in ("first", "again")]
    for out, ledger in files:
        assert main(["compile", str(HEAD), "-o", str(out), "--ledger", str(ledger), "--bind", "batch=2", "-q"]) == 0
    (out, ledger), (out_again, ledger_again) = files
    assert out_again.read_bytes() == out.read_bytes() == dmlc.compile(HEAD, bind={"batch": 2}).to_bytes("onnx")
    assert ledger_again.read_bytes() == ledger.read_bytes()
    document = json.loads(ledger.read_text(encoding="utf-8"))
    assert document["options"]["bind"] == {"batch": 2}
    places = {place for row in document["rewrites"] for place in row["places"]}
    assert places and all(place.startswith("model.dml:") for place in places)
