"""``dmlc report``: one page with the facts of a compilation, escaped, that loads nothing."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import parser

from tests.command_line import Run
from tests.views.test_graph_command import HOSTILE, chain

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = EXAMPLES / "02_head_on_a_model" / "ppocr_cls_mobile.onnx"
_TEXT = """<ir_version: 8, opset_import: ["": 17]> g (float[B, 4] x, float[4, 8] w) => (float[B, 8] y) {
    [size] s = Shape(x)
    [same] r = Reshape(x, s)
    [product] m = MatMul(r, w)
    [last] y = Relu(m)
}"""


class _Page(HTMLParser):
    """The tags, the text and the places that a page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [f"{tag} {name}" for name, _ in attrs if name in ("src", "srcset", "data") or name[:2] == "on"]
        self.loaded += [value or "" for name, value in attrs if name == "href" and not (value or "").startswith("#")]

    def handle_data(self, data: str) -> None:
        self.text += f" {data} "


def data_of(text: str) -> Any:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Any:
    monkeypatch.chdir(tmp_path)

    def make(source: str | Path | onnx.ModelProto, *options: str) -> str:
        if isinstance(source, onnx.ModelProto):
            onnx.save(source, "g.onnx")
            source = "g.onnx"
        code, _, err = command_line("report", str(source), "-o", "r.html", *options)
        assert code == 0, err
        return Path("r.html").read_text("utf-8")

    return make


def test_report_has_the_counts_of_compile(report: Any) -> None:
    page = _Page(report(MODEL))
    words = " ".join(page.text.replace("\xa0", " ").split())
    assert "ppocr_cls_mobile.onnx" in words
    assert "nodes on the CPU 4 → 0" in words
    assert "nodes 258 → 169" in words
    assert "Verification: same on 2 inputs" in words
    assert "--shape x=1,_,128,128" in words
    assert "35 fold-batch-norm rounding may change" in words


def test_report_loads_nothing(report: Any) -> None:
    page = _Page(report(MODEL))
    assert page.loaded == []
    assert "Content-Security-Policy" in Path("r.html").read_text()


def test_a_made_node_has_its_sources_and_its_rule(report: Any) -> None:
    data = data_of(report(parser.parse_model(_TEXT), "--verify", "0"))
    assert [each["o"] for each in data["before"]] == ["x", "w", "Shape", "Reshape", "MatMul", "Relu", "y"]
    shape = next(each for each in data["before"] if each["o"] == "Shape")
    assert shape["g"], "a node that is gone has a reason"
    product = next(each for each in data_of(report(MODEL))["after"] if "fold-batch-norm" in each.get("r", ()))
    assert any(name.startswith("BatchNormalization") for name in product["s"])
    assert product["c"] == "rounding may change"


def test_a_program_shows_its_source_lines(report: Any) -> None:
    text = report(EXAMPLES / "more/detection_head" / "model.dml")
    after = data_of(text)["after"]
    assert any(line.startswith("model.dml:24:37") and "softmax" in line for each in after for line in each.get("l", ()))
    assert "before" not in data_of(text)


def test_report_twice_is_same_bytes(report: Any) -> None:
    assert report(MODEL, "--verify", "1") == report(MODEL, "--verify", "1")


def test_hostile_names_are_text(report: Any) -> None:
    model = parser.parse_model(_TEXT)
    for number, node in enumerate(model.graph.node):
        node.name = f"{HOSTILE}{number}"
    model.graph.name = HOSTILE
    text = report(model, "--verify", "0")
    page = _Page(text)
    assert page.loaded == []
    assert "img" not in page.tags
    assert page.tags.count("script") == 2
    assert text.count("</script>") == 2
    assert "\u202e" not in text
    assert "\x07" not in text
    assert any(
        each["n"] == HOSTILE.replace("\u202e", "\\u202e").replace("\x07", "\\u0007") + "2"
        for each in data_of(text)["before"]
    )


def test_six_hundred_nodes_fit_in_a_megabyte(report: Any) -> None:
    text = report(chain(600), "--verify", "0")
    assert len(text.encode()) < 1_000_000
    assert len(data_of(text)["before"]) == 603


def test_without_graphlay_a_list_takes_the_place_of_the_picture(report: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "graphlay", None)
    text = report(parser.parse_model(_TEXT), "--verify", "0")
    assert "pip install &quot;dmlc[report]&quot;" in text
    assert '<li class="n" data-i="3">' in text


def test_compile_writes_the_report_beside_the_model(report: Any, command_line: Run) -> None:
    onnx.save(parser.parse_model(_TEXT), "g.onnx")
    code, _, err = command_line("compile", "g.onnx", "-o", "o.onnx", "--report", "c.html", "--verify", "1")
    assert code == 0
    assert "c.html: " in err
    assert "Verification: same" in Path("c.html").read_text()
    for words in (("-o", "o.py", "--report", "c.html"), ("-o", "o.onnx", "--report", "c.onnx")):
        assert command_line("compile", "g.onnx", *words)[0] == 2


def test_faults_of_the_provider_are_listed_with_their_sources(report: Any) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[2, 1] y) '
    text += "{ y = ReduceLogSumExp<axes = [1]>(x) }"
    page = _Page(report(parser.parse_model(text), "--verify", "0"))
    words = " ".join(page.text.split())
    assert re.search(
        r"ReduceLogSumExp 1 nothing is subtracted before exp.* repaired measured: onnxruntime-directml", words
    )
