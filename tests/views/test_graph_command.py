"""``dmlc graph``: pictures and diagram texts of graphs, whole, escaped, and the same each time."""

from __future__ import annotations

import re
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper, parser

from tests.command_line import Run

_OPSET = '<ir_version: 8, opset_import: ["": 17]>'
#: Two groups, a node on the CPU for a shape, and a constant that is folded.
_GROUPS = f"""{_OPSET} g (float[B, 4] x) => (float[B, 4] y) {{
    a = Relu(x)
    b = Exp(a)
    s = Shape(b)
    c = Reshape(b, s)
    y = Neg(c)
}}"""
HOSTILE = '</script><img src=x onerror="alert(1)">\'"&\u202etxt\x07'


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = parser.parse_model(_GROUPS)
    for node, group in zip(made.graph.node, "aabbb", strict=True):
        node.name = f"/net/{group}/{node.op_type}"
    onnx.save(made, "g.onnx")
    return tmp_path / "g.onnx"


def chain(length: int) -> onnx.ModelProto:
    """A chain of blocks of ten nodes; every tenth value is read again far below."""
    nodes, skips = [], []
    for number in range(length):
        name = f"/net/block.{number // 10}/Relu_{number}"
        nodes.append(helper.make_node("Relu", [f"v{number}"], [f"v{number + 1}"], name=name))
        if number % 10 == 9:
            skips.append(f"v{number + 1}")
    nodes.append(helper.make_node("Sum", skips, ["y"], name="/net/Sum"))
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("v0", "y"))
    graph = helper.make_graph(nodes, "g", [given], [made])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_graph_of_source_has_each_node_with_its_place(model: Path, command_line: Run) -> None:
    assert command_line("graph", "g.onnx", "-o", "g.svg", "--stage", "source")[0] == 0
    root = ElementTree.parse("g.svg").getroot()
    titles = [found.text or "" for found in root.iter("{http://www.w3.org/2000/svg}title")]
    assert [title.split("\n")[0] for title in titles] == [
        *("x", "/net/a/Relu", "/net/a/Exp", "/net/b/Shape", "/net/b/Reshape", "/net/b/Neg", "y")
    ]
    assert titles[3].split("\n")[1].startswith("GPU, one at a time")
    texts = "".join(found.text or "" for found in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "GPU, one at a time (5)" in texts
    assert "net/b" in texts


def test_graph_of_compiled_differs_from_source(model: Path, command_line: Run) -> None:
    for stage in ("source", "compiled"):
        assert command_line("graph", "g.onnx", "-o", f"{stage}.mmd", "--stage", stage)[0] == 0
    assert "Reshape" in Path("source.mmd").read_text()
    assert "Reshape" not in Path("compiled.mmd").read_text()


def test_graph_twice_is_same_bytes(model: Path, command_line: Run) -> None:
    for suffix in ("svg", "mmd", "dot"):
        for name in ("one", "two"):
            assert command_line("graph", "g.onnx", "-o", f"{name}.{suffix}")[0] == 0
        assert Path(f"one.{suffix}").read_bytes() == Path(f"two.{suffix}").read_bytes()


def test_hostile_names_are_text_in_every_form(model: Path, command_line: Run) -> None:
    found = onnx.load("g.onnx")
    found.graph.node[1].name = f"/{HOSTILE}/{HOSTILE}"
    found.graph.node[0].name = f"/{HOSTILE}/a"
    found.graph.input[0].name = found.graph.node[0].input[0] = HOSTILE
    onnx.save(found, "g.onnx")
    for suffix in ("svg", "mmd", "dot"):
        assert command_line("graph", "g.onnx", "-o", f"g.{suffix}", "--stage", "source")[0] == 0
        text = Path(f"g.{suffix}").read_text()
        assert "\u202e" not in text
        assert "\x07" not in text
        assert suffix == "dot" or "<img" not in text
    ElementTree.parse("g.svg")
    assert '\\"alert' in Path("g.dot").read_text()
    assert all(line.count('"') in (0, 2) for line in Path("g.mmd").read_text().splitlines())


def test_two_thousand_nodes_are_drawn_in_seconds(model: Path, command_line: Run) -> None:
    onnx.save(chain(1990), "long.onnx")
    start = time.process_time()
    assert command_line("graph", "long.onnx", "-o", "long.svg", "--stage", "source")[0] == 0
    assert time.process_time() - start < 10, "5 s on a machine of its own"
    data = Path("long.svg").read_bytes()
    assert len(data) < 2_000_000
    assert data.count(b"<title>") == 1993


def test_more_than_two_thousand_nodes_are_grouped(model: Path, command_line: Run) -> None:
    onnx.save(chain(2500), "long.onnx")
    assert command_line("graph", "long.onnx", "-o", "long.svg", "--stage", "source")[0] == 0
    text = Path("long.svg").read_text()
    assert "block.7 (10)" in text
    assert text.count("<title>") == 253


def test_branches_are_inside_of_their_node(model: Path, command_line: Run) -> None:
    text = f"""{_OPSET} g (bool c, float[4] x) => (float[4] y) {{
        [choice] y = If(c) <
            then_branch = t () => (float[4] a) {{ [left] a = Relu(x) }},
            else_branch = e () => (float[4] b) {{ [right] b = Exp(x) }}
        >
    }}"""
    onnx.save(parser.parse_model(text), "if.onnx")
    assert command_line("graph", "if.onnx", "-o", "if.dot", "--stage", "source")[0] == 0
    found = Path("if.dot").read_text()
    assert set(re.findall(r'tooltip="(.*?)"', found)) == {"c", "x", "choice", "choice/left", "choice/right", "y"}


def test_a_suffix_that_is_none_of_three_is_refused(model: Path, command_line: Run) -> None:
    code, _, err = command_line("graph", "g.onnx", "-o", "g.png")
    assert code == 2
    assert "none of .svg, .mmd, .dot" in err
    code, _, err = command_line("graph", "g.onnx", "-o", "g.onnx")
    assert code == 2


def test_svg_without_graphlay_says_what_to_install(
    model: Path, command_line: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "graphlay", None)
    code, _, err = command_line("graph", "g.onnx", "-o", "g.svg")
    assert code == 1
    assert 'pip install "dmlc[report]"' in err
    assert command_line("graph", "g.onnx", "-o", "g.dot")[0] == 0
