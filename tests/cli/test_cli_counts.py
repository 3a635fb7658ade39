"""Every verb prints the same number of nodes: those of the ONNX model, nested graphs included, Constant left out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import onnx
import pytest
from onnx import parser

from dmlc.cli.main import main
from dmlc.placement.node_counts import node_counts

EXAMPLES = Path(__file__).parents[2] / "examples"
BRANCHES = """
<ir_version: 8, opset_import: ["": 17]>
g (float[N, 4] x, bool c) => (float[N, 4] y) <float[1] one = {1}> {
    two = Constant <value = float[1] {2}> ()
    i = Identity(x)
    y = If (c) <
        then_branch = t () => (float[N, 4] a) {
            k = Constant <value = float[1] {3}> ()  p = Mul(i, k)  a = Add(p, one)
        },
        else_branch = e () => (float[N, 4] b) { b = Mul(i, two) }
    >
}
"""
LOOP = """
<ir_version: 8, opset_import: ["": 17]>
g (float[4] x, int64 trips) => (float[4] y) {
    yes = Constant <value = bool {1}> ()
    y = Loop (trips, yes, x) <
        body = b (int64 i, bool go, float[4] v) => (bool more, float[4] w) {
            more = Identity(go)
            s = ReduceSum(v)
            far = Greater(s, trip_limit)
            w = If (far) <
                then_branch = t () => (float[4] p) { p = Neg(v) },
                else_branch = e () => (float[4] q) { h = Constant <value = float[1] {0.5}> ()  q = Mul(v, h) }
            >
            trip_limit = Constant <value = float {100}> ()
        }
    >
}
"""
FUNCTION = """
<ir_version: 8, opset_import: ["": 17, "local": 1]>
g (float[N, 4] x) => (float[N, 4] y) { a = local.twice(x)  b = local.twice(a)  y = Exp(b) }
<domain: "local", opset_import: ["": 17, "local": 1]>
twice (v) => (w) { u = local.step(v)  w = local.step(u) }
<domain: "local", opset_import: ["": 17]>
step (v) => (w) { k = Constant <value = float[1] {2}> ()  w = Mul(v, k) }
<domain: "local", opset_import: ["": 17]>
unused (v) => (w) { w = Neg(v) }
"""
SHAPES = """
<ir_version: 8, opset_import: ["": 17]>
g (float[N, 4] x) => (float[M, 2] y) <int64[1] two = {2}, int64[1] zero = {0}> {
    s = Shape(x)  n = Gather(s, zero)  m = Mul(n, two)  t = Concat<axis = 0>(m, two)
    e = Exp(x)  y = Reshape(e, t)
}
"""
CHAIN = """
<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
g (float[N, 3, 4] x) => (float[1, 1] y) {
    r = ReduceMean<axes = [2]>(x)  q = ReduceMean<axes = [1], keepdims = 0>(r)  i = Identity(q)
    z = com.microsoft.Gelu(i)  y = ReduceMax<axes = [0]>(z)
}
"""
MODELS = {"branches": BRANCHES, "loop": LOOP, "function": FUNCTION, "shapes": SHAPES, "chain": CHAIN}
PROGRAMS = {
    "selections": """
model m(x: f32[N, 4, 5]) -> (i, v, h) {
    i = argmax(x, axes=[1, 2])
    v, _ = top_k(x, k=2, axis=1)
    h = hardmax(x, axes=[1, 2])
    return i, v, h
}
""",
    "constants": "model m(x: f64[4]) -> (y, c) {\n    return x + 1.0, full(shape=[4], value=2, dtype=f32)\n}\n",
    "empty": "model m(x: f32[4]) -> (y) {\n    return x\n}\n",
}
BOUND = ["--bind", "batch=2", "--bind", "anchors=100", "--bind", "H=4", "--bind", "W=4"]
Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*argv: str) -> tuple[str, str]:
        capsys.readouterr()
        assert main(list(argv)) == 0
        out, err = capsys.readouterr()
        return out, err

    return call


def counted(run: Run, source: str, *options: str) -> dict[str, tuple[int | None, int]]:
    """(before, after) of each verb and format."""

    def document(verb: str, *more: str) -> dict:
        return json.loads(run(verb, source, *options, *more, "--format", "json")[0])

    found: dict[str, tuple[int | None, int]] = {}
    made = document("compile", "--dry-run")
    found["compile"] = (made["before"]["total"], made["after"]["total"])
    assert made["nodes"] == made["after"]["total"] == sum(made["after"]["nodes"].values())
    text = run("compile", source, *options, "--dry-run", "-v")[1]
    (numbers,) = re.findall(r"^  nodes +([\d,]+) +([\d,]+)", text, re.MULTILINE)
    found["compile as text"] = (int(numbers[0]), int(numbers[1]))
    assert re.search(rf", {numbers[1]} nodes?(,| in) ", text)
    explained = document("explain")["nodes"]
    found["explain"] = (explained["before"], explained["after"])
    (numbers,) = re.findall(r": (\d+) nodes? as written, (\d+) after", run("explain", source, *options)[0])
    found["explain as text"] = (int(numbers[0]), int(numbers[1]))
    return found


def of_the_file(model: onnx.ModelProto) -> int:
    """Nodes but Constant, nested ones too; written without the code that is judged."""

    def total(nodes: Iterable[onnx.NodeProto]) -> int:
        number = 0
        for node in nodes:
            body = [f for f in model.functions if (f.domain, f.name) == (node.domain, node.op_type)]
            number += total(body[0].node) if body else node.op_type != "Constant"
            number += sum(total(a.g.node) for a in node.attribute if a.type == onnx.AttributeProto.GRAPH)
        return number

    return total(model.graph.node)


def the_same(found: dict[str, tuple[int | None, int]]) -> tuple[int | None, int]:
    assert len(set(found.values())) == 1, found
    return next(iter(found.values()))


def numbers_of(checked: str) -> int:
    """The sum of the numbers in the table of ``check``."""
    return sum(int(number) for number in re.findall(r"^ +(\d+)   \S", checked, re.MULTILINE))


@pytest.mark.parametrize("options", [[], ["--target", "cpu"], ["--target", "onnx", "--opset", "17"]], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_models(run: Run, name: str, options: list[str]) -> None:
    text = MODELS[name]
    if name == "loop":  # nodes of text stand in order
        text = text.replace("            trip_limit = Constant <value = float {100}> ()\n", "").replace(
            "            far", "            trip_limit = Constant <value = float {100}> ()\n            far"
        )
    model = parser.parse_model(text)
    onnx.save(model, "m.onnx")
    found = counted(run, "m.onnx", *options)
    inspected = json.loads(run("inspect", "m.onnx", *options, "--format", "json")[0])
    assert sum(inspected["nodes"].values()) == of_the_file(model)
    before, after = the_same(found)
    assert before == of_the_file(model)
    run("compile", "m.onnx", *options, "-o", "out.onnx")
    assert after == of_the_file(onnx.load("out.onnx"))
    checked = json.loads(run("check", "m.onnx", *options, "--format", "json")[0])["nodes"]
    if not options:  # the report is that of the model as it is
        assert len(checked) == before
        assert numbers_of(run("check", "m.onnx")[0]) == before
    else:
        assert checked == after


def programs() -> dict[str, tuple[str, list[str]]]:
    out = {name: (text, []) for name, text in PROGRAMS.items()}
    for name in ("03_language", "more/detection_head"):
        out[name] = (str(EXAMPLES / name / "model.dml"), [])
    out["bound"] = (str(EXAMPLES / "more/detection_head" / "model.dml"), BOUND)
    return out


@pytest.mark.parametrize(
    ("name", "target"), [*((name, "directml") for name in programs()), *((name, "cpu") for name in PROGRAMS)]
)
def test_programs(run: Run, name: str, target: str) -> None:
    source, options = programs()[name]
    if name in PROGRAMS:
        Path("m.dml").write_text(source)
        source = "m.dml"
    options = [*options, "--target", target]
    found = counted(run, source, *options)
    inspected = json.loads(run("inspect", source, *options, "--format", "json")[0])["nodes"]
    found["inspect"] = (sum(inspected["before"].values()), sum(inspected["after"].values()))
    (numbers,) = re.findall(r"^  all +(\d+) +(\d+)", run("inspect", source, *options)[0], re.MULTILINE)
    found["inspect as text"] = (int(numbers[0]), int(numbers[1]))
    _, after = the_same(found)
    run("compile", source, *options, "-o", "out.onnx")
    assert after == of_the_file(onnx.load("out.onnx"))
    checked = json.loads(run("check", source, *options, "--format", "json")[0])
    if target == "directml":
        assert len(checked["nodes"]) == sum(checked["counts"].values()) == after
        assert numbers_of(run("check", source, *options)[0]) == after
    else:
        assert checked["nodes"] == after
        assert re.search(rf", {after} nodes?\b", run("check", source, *options)[0])


def test_operations_of_numpy_code(run: Run) -> None:
    """NumPy code has no ONNX model: the operations of its graph are counted, by each verb the same."""
    Path("m.dml").write_text(PROGRAMS["selections"])
    made = json.loads(run("compile", "m.dml", "--target", "numpy", "--format", "json")[0])
    explained = json.loads(run("explain", "m.dml", "--target", "numpy", "--format", "json")[0])["nodes"]
    inspected = json.loads(run("inspect", "m.dml", "--target", "numpy", "--format", "json")[0])["nodes"]
    checked = json.loads(run("check", "m.dml", "--target", "numpy", "--format", "json")[0])
    assert made["nodes"] == explained["after"] == sum(inspected["after"].values()) == checked["nodes"]
    assert explained["before"] == sum(inspected["before"].values())
    assert "operations" in run("compile", "m.dml", "--target", "numpy")[1]


def test_operators_have_the_domain_that_is_not_onnx_s() -> None:
    found = node_counts(parser.parse_model(CHAIN))
    assert found == Counter({"ReduceMean": 2, "Identity": 1, "ReduceMax": 1, "com.microsoft.Gelu": 1})
    assert list(found)[:2] == ["ReduceMean", "Identity"]


def test_a_function_that_calls_itself_is_counted_and_ends() -> None:
    text = '<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[4] x) => (float[4] y) { y = local.f(x) }'
    text += '<domain: "local", opset_import: ["": 17, "local": 1]> f (v) => (w) { u = Neg(v)  w = local.f(u) }'
    assert node_counts(parser.parse_model(text)) == Counter({"Neg": 1})


def test_dispatches_of_a_compilation_are_those_of_a_check(run: Run) -> None:
    """Det has no kernel on DirectML: it runs on the CPU, without a dispatch."""
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[4, 4] x) => (float y) {h = Neg(x) d = Det(h) y = Exp(d)}'
    onnx.save(parser.parse_model(text), "a.onnx")
    for target in ("directml", "cpu"):
        found = json.loads(run("compile", "a.onnx", "-o", "b.onnx", "--target", target, "--format", "json")[0])
        assert (found["after"]["total"], found["after"]["dispatches"]) == (3, 2)
    assert json.loads(run("check", "b.onnx", "--format", "json")[0])["dispatches"] == 2
