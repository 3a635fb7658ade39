"""Graphs, programs and results in the interpreter and in notebooks: ``repr``, ``str`` and HTML."""

from __future__ import annotations

import re
import xml.etree.ElementTree
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import dmlc
from dmlc.cli.main import main
from tests.rows import each_row

NAME = 'x<b>&"y'  # ONNX allows any text
TEXT = "model m(x: f32[2, N]) -> (y) {\n    y = relu(softmax(x))\n    return y\n}\n"


@cache
def a_model(*ops: str) -> ModelProto:
    names = [NAME, *[f"t{n}" for n in range(1, len(ops))], "<y>"]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in (names[0], names[-1])]
    nodes = [helper.make_node(op, [names[n]], [names[n + 1]], name=f"<{n}>") for n, op in enumerate(ops)]
    graph = helper.make_graph(nodes, "g<i>", infos[:1], infos[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def a_graph() -> dmlc.Graph:
    g = dmlc.Graph("g<i>")
    g.output("<y>", dmlc.softmax(g.input(NAME, "f32", ("N", 3))) * np.ones(3, np.float32))
    return g


def many_differences() -> dmlc.ModelDiff:
    return dmlc.diff(a_model(*["Exp"] * 30), a_model(*["Exp", "Sin"] * 15))


SHOWN: dict[str, Callable[[], Any]] = {
    "builder": a_graph,
    "empty builder": lambda: dmlc.Graph("empty"),
    "source graph": lambda: dmlc.compile(a_graph()).source_graph,
    "graph": lambda: dmlc.compile(a_model("Softmax")).graph,
    "program": lambda: dmlc.compile(a_model("Softmax", "Relu", "Exp")),
    "program of a text": lambda: dmlc.compile(a_graph()),
    "program for numpy": lambda: dmlc.compile(a_graph(), target="numpy"),
    "program for cpu": lambda: dmlc.compile(a_model("Softmax"), target="cpu"),
    "placement": lambda: dmlc.compile(a_model("Softmax", "Exp")).placement(),
    "check": lambda: dmlc.check(a_model("Softmax", "Exp")),
    "check for cpu": lambda: dmlc.check(a_model("Softmax"), target="cpu"),
    "same": lambda: dmlc.verify(a_model("Softmax"), a_model("Softmax"), inputs=1),
    "different": lambda: dmlc.verify(a_model("Softmax"), a_model("LogSoftmax"), inputs=2),
    "located": lambda: dmlc.locate(a_model("Softmax", "Exp"), a_model("LogSoftmax", "Exp"), inputs=2),
    "equal": lambda: dmlc.diff(a_model("Softmax"), a_model("Softmax")),
    "diff": many_differences,
}


@each_row("make", SHOWN.values(), ids=SHOWN)
def test_each_result_has_a_line_a_text_and_a_table(make: Callable[[], Any]) -> None:
    shown = make()
    assert re.fullmatch(r"<\w+ .*>", repr(shown))
    assert str(shown) == str(shown).rstrip("\n") != ""
    assert type(shown).__name__ == "Graph" or str(shown).count("\n") < 15
    html = shown._repr_html_()
    (table,) = xml.etree.ElementTree.fromstring(html).findall("table")
    (head,) = table.findall("thead/tr")
    assert len(head.findall("th")) >= 2
    assert all(len(row.findall("td")) == len(head) for row in table.findall("tbody/tr"))
    assert f"<b>{NAME[-2:]}" not in html and "x<b>" not in html and "<y>" not in html


@pytest.mark.parametrize("target", ["directml", "numpy"])
def test_a_graph_prints_as_a_program_that_compiles_to_it(target: str) -> None:
    program = dmlc.compile(dmlc.Source(TEXT), target=target)
    assert "y = softmax(x)" in str(program.graph)
    again = dmlc.compile(dmlc.Source(str(program.graph)), target=target)
    assert str(again.graph) == str(program.graph)
    assert str(program.source_graph) != str(program.graph)  # relu of a softmax has no effect


def test_a_graph_prints_large_constants_as_a_file() -> None:
    g = dmlc.Graph("g")
    g.output("y", g.input("x", "f32", (100,)) + np.arange(100, dtype=np.float32))
    assert 'load("g.npz", "w0")' in str(g)


def test_a_graph_that_no_program_says_prints_all_the_same() -> None:
    g = dmlc.Graph("g")
    x = g.input("x", "f32", (2,))
    assert "no outputs yet" not in str(g) and "x: f32[2]" in str(g)
    g.output("y", x)
    assert "return x" in str(g)


def test_a_program_shows_its_figures_and_its_graph_in_both_themes() -> None:
    html = SHOWN["program"]()._repr_html_()
    assert html.count("class='figure'") > 4
    assert '<g class="n fused"' in html and "prefers-color-scheme:dark" in html and "data-jp-theme-light=false" in html
    assert '<p class="verdict good">' in SHOWN["same"]()._repr_html_()
    assert '<p class="verdict poor">' in SHOWN["diff"]()._repr_html_()


def test_a_long_table_is_cut() -> None:
    g = dmlc.Graph("long")
    y = g.input("x", "f32", (2,))
    for _ in range(200):
        y = dmlc.exp(y)
    g.output("y", y)
    assert "... and 102 more" in g._repr_html_()


def test_a_program_prints_the_table_of_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = a_model("Softmax", "Relu", "Exp")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    main(["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out.onnx")])
    told = capsys.readouterr().err.splitlines()
    shown = str(dmlc.compile(model)).splitlines()
    table = [line for line in told if re.match(r"  (nodes|GPU|fused)", line)]
    assert table and set(table) <= set(shown)
    assert f"  inputs: {NAME}: f32[2, 3]" in shown


def test_a_check_prints_the_table_of_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(a_model("Softmax", "Exp").SerializeToString())
    main(["check", str(path)])
    shown = str(dmlc.check(path))
    told = capsys.readouterr().out.splitlines()
    assert told[0] == shown.splitlines()[0]
    assert set(shown.splitlines()) <= set(told)


def test_a_verdict_prints_the_text_of_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, op in (("a", "Softmax"), ("b", "LogSoftmax")):
        (tmp_path / f"{name}.onnx").write_bytes(a_model(op).SerializeToString())
    a, b = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    main(["verify", a, b])
    told = " ".join(capsys.readouterr().out.split())  # the command wraps long lines
    assert told.replace(f"dmlc diff {a} {b}", "dmlc.diff(a, b)") == " ".join(str(dmlc.verify(a, b)).split())


def test_a_long_diff_prints_its_answer_and_the_first_differences() -> None:
    found = many_differences()
    lines = str(found).split("\n")
    assert lines[0] == found.headline()
    assert lines[-1].endswith(" more lines, which to_text() returns")
