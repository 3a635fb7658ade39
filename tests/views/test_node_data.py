"""``check --node-data``: an overlay for Model Explorer, in the form that its node data builder writes."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser

from tests.command_line import Run

_TEXT = """<ir_version: 8, opset_import: ["": 17]> g (float[B, 4] x) => (float[B, 4] y) {
    s = Shape(x)
    k = Constant<value = int64[1] {0}>()
    d = Gather(s, k)
    [grown] e = Expand(x, s)
    y = Relu(e)
}"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(parser.parse_model(_TEXT), "g.onnx")
    Path("m.dml").write_text("model m(x: f32[N, 3]) -> (y) {\n    return softmax(x, axes=[1])\n}\n")


def test_node_data_has_the_place_of_each_node_by_its_name(command_line: Run) -> None:
    assert command_line("check", "g.onnx", "--node-data", "n.json")[0] == 0
    results = json.loads(Path("n.json").read_text())["results"]
    assert results.keys() == {"s", "d", "grown", "y"}
    assert results["y"]["value"] == "GPU, one at a time"
    assert results["d"]["value"] == "CPU"
    assert all(set(each) == {"value", "bgColor", "textColor"} for each in results.values())


def test_node_data_of_a_program_is_about_the_model_that_it_becomes(command_line: Run) -> None:
    assert command_line("check", "m.dml", "--node-data", "n.json")[0] == 0
    assert json.loads(Path("n.json").read_text())["results"].keys() == {"y/Softmax"}


@pytest.mark.parametrize(
    "words",
    [
        ("g.onnx", "m.dml", "--node-data", "n.json"),
        ("g.onnx", "--node-data", "n.txt"),
        ("g.onnx", "--node-data", "n.json", "--target", "cpu"),
    ],
)
def test_node_data_that_cannot_be_is_wrong_usage(command_line: Run, words: tuple[str, ...]) -> None:
    assert command_line("check", *words)[0] == 2
    assert not Path("n.json").exists()
