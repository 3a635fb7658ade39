"""``dmlc verify --locate``: a planted fault is located to its node, and a right model is not blamed."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, numpy_helper, parser

import dmlc
from dmlc.debugging.first_difference import BATCH
from tests.command_line import Run
from tests.rows import each_row
from tests.versions import NEEDS_EXACT_LAYER_NORM

pytestmark = pytest.mark.usefixtures("sessions_here")

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
#: A model with a weight, an epsilon, an axis and ties; the graph inside the node is one more place for faults.
TEXT = f"""{HEAD} g (float[4, 8] x, bool c) => (float[4, 8] y, int64[4, 1] i)
<float[8, 8] w, float[8] s, float[8] b> {{
    [mm] m = MatMul(x, w)
    [norm] n = LayerNormalization<axis = -1, epsilon = 0.00001>(m, s, b)
    [soft] p = Softmax<axis = -1>(n)
    [cast] q = Cast<to = 9>(p)
    [back] r = Cast<to = 1>(q)
    [sel] i = ArgMax<axis = 1, keepdims = 1, select_last_index = 0>(r)
    [if] t = If (c) <then_branch = t () => (float[4, 8] u) {{ u = Relu(r) }},
                     else_branch = e () => (float[4, 8] v) {{ v = Neg(r) }}>
    [mul] z = Mul(t, p)
    [add] y = Add(z, x)
}}"""
WEIGHTS = {"w": np.linspace(-1, 1, 64).reshape(8, 8), "s": np.linspace(0.5, 2, 8), "b": np.linspace(-1, 1, 8)}
FEEDS = {
    "x": np.tile(np.linspace(-1, 1, 4, dtype=np.float32), 8).reshape(4, 8) + np.eye(4, 8, dtype=np.float32),
    "c": np.array(True),
}


def model() -> ModelProto:
    made = parser.parse_model(TEXT)
    del made.graph.initializer[:]
    made.graph.initializer.extend(
        numpy_helper.from_array(array.astype(np.float32), name) for name, array in WEIGHTS.items()
    )
    return made


def node(made: ModelProto, name: str) -> NodeProto:
    return next(found for found in made.graph.node if found.name == name)


def attribute(made: ModelProto, name: str, key: str) -> onnx.AttributeProto:
    return next(found for found in node(made, name).attribute if found.name == key)


def plant(made: ModelProto, fault: str) -> str:
    """Break the model in one place; the name of the node that is wrong then."""
    if fault == "weight":
        tensor = made.graph.initializer[0]
        array = numpy_helper.to_array(tensor).copy()
        array[3, 5] += np.float32(1e-2)
        tensor.CopyFrom(numpy_helper.from_array(array, "w"))
        return "mm"
    if fault == "epsilon":
        attribute(made, "norm", "epsilon").f = 1e-1
        return "norm"
    if fault == "axis":
        attribute(made, "soft", "axis").i = 0
        return "soft"
    if fault == "dtype":
        attribute(made, "cast", "to").i = onnx.TensorProto.BFLOAT16
        return "cast"
    if fault == "tie":
        attribute(made, "sel", "select_last_index").i = 1
        return "sel"
    if fault == "operand":
        node(made, "mul").input[1] = "n"
        return "mul"
    if fault == "branch":
        attribute(made, "if", "then_branch").g.node[0].op_type = "Neg"
        return "if"
    node(made, "add").op_type = "Sub"
    return "add"


BACKENDS = ["cpu", "cpu:reference"]
FAULTS = ["weight", "epsilon", "axis", "dtype", "tie", "operand", "branch", "operator"]


@each_row(
    "fault, backend",
    [*[(fault, None) for fault in FAULTS], *[(fault, BACKENDS[n % 2]) for n, fault in enumerate(FAULTS)]],
)
def test_fault_is_located_to_its_node(fault: str, backend: str | None) -> None:
    wrong = model()
    name = plant(wrong, fault)
    found = dmlc.locate(model(), wrong, inputs=FEEDS, backend=backend)
    assert not found.ok
    location = found.location
    assert location is not None
    assert location.node is not None
    assert location.other_node is not None
    assert (location.node.name, location.other_node.name) == (name, name)
    assert all(value.status != "different" for value in location.inputs)
    assert location.compared <= location.held


def as_another_exporter_names(made: ModelProto) -> ModelProto:
    """The model with other names of everything but its inputs and outputs."""
    kept = {info.name for info in (*made.graph.input, *made.graph.output)}
    text = made.graph

    def rename(graph: onnx.GraphProto) -> None:
        for found in graph.node:
            found.name = f"other_{found.name}"
            found.input[:] = [name if name in kept or not name else f"t_{name}" for name in found.input]
            found.output[:] = [name if name in kept else f"t_{name}" for name in found.output]
            for entry in found.attribute:
                if entry.type == onnx.AttributeProto.GRAPH:
                    rename(entry.g)
                    for info in entry.g.output:
                        info.name = f"t_{info.name}"

    rename(text)
    for tensor in text.initializer:
        tensor.name = f"t_{tensor.name}"
    del text.value_info[:]
    onnx.checker.check_model(made)
    return made


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "operand"])
def test_fault_is_located_where_no_name_is_shared(fault: str) -> None:
    wrong = model()
    name = plant(wrong, fault)
    location = dmlc.locate(model(), as_another_exporter_names(wrong), inputs=FEEDS).location
    assert location is not None and location.node is not None and location.other_node is not None
    if fault == "dtype":
        name = "back"  # such a pair counts only where the dtypes agree
    assert (location.node.name, location.other_node.name) == (name, f"other_{name}")


@each_row("fault", ["weight", "epsilon", "operator", "branch"])
def test_a_right_model_of_other_names_is_bisected_against(fault: str) -> None:
    wrong = model()
    name = plant(wrong, fault)
    right = as_another_exporter_names(model())
    found = dmlc.bisect(wrong, against=right, inputs=FEEDS)
    assert found.node is not None and found.node.name == name
    assert [each.name for each in dmlc.repro(wrong, against=right, inputs=FEEDS).nodes] == [name]


def test_another_operand_is_between_what_agrees_and_what_differs() -> None:
    wrong = model()
    plant(wrong, "operand")
    location = dmlc.locate(model(), as_another_exporter_names(wrong), inputs=FEEDS).location
    assert location is not None
    assert "other_mul" in [found.name for found in location.behind]
    assert location.agreeing


def test_of_like_nodes_those_of_the_same_weights_pair() -> None:
    """Three products of one value, in another order: one has a wrong weight."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[2, 3] x) => (float[2, 3] y) {{
        {a} = MatMul (x, w{a})
        {b} = MatMul (x, w{b})
        {c} = MatMul (x, w{c})
        s = Mul ({q}, {k})
        y = Sub (s, {v})
    }}"""
    rng = np.random.default_rng(5)
    weights = {name: rng.normal(size=(3, 3)).astype(np.float32) for name in "qkv"}
    right = parser.parse_model(text.format(a="q", b="k", c="v", q="q", k="k", v="v"))
    right.graph.initializer.extend(numpy_helper.from_array(array, f"w{name}") for name, array in weights.items())
    wrong = parser.parse_model(text.format(a="t3", b="t2", c="t1", q="t1", k="t2", v="t3").replace(" s ", " t4 "))
    wrong = parser.parse_model(onnx.printer.to_text(wrong).replace("(s,", "(t4,"))
    weights["k"] = weights["k"] + np.float32(0.5)
    names = {"q": "wt1", "k": "wt2", "v": "wt3"}
    wrong.graph.initializer.extend(numpy_helper.from_array(array, names[name]) for name, array in weights.items())
    location = dmlc.locate(right, wrong, inputs={"x": rng.normal(size=(2, 3)).astype(np.float32)}).location
    assert location is not None and location.value.name == "k" and location.value.other == "t2"


def test_evidence_of_a_weight() -> None:
    wrong = model()
    plant(wrong, "weight")
    location = dmlc.locate(model(), wrong, inputs=FEEDS).location
    assert location is not None
    (change,) = location.constants
    assert change.worst is not None
    assert (change.name, change.worst.index, change.worst.count) == ("w", (3, 5), 1)
    assert location.value.worst is not None
    row, column = location.value.worst.index
    assert column == 5
    values = (FEEDS["x"] @ numpy_helper.to_array(made.graph.initializer[0]) for made in (model(), wrong))
    a, b = (float(array[row, 5]) for array in values)
    assert (location.value.worst.a, location.value.worst.b) == pytest.approx((a, b), rel=1e-5)


def test_evidence_of_an_attribute() -> None:
    wrong = model()
    plant(wrong, "epsilon")
    location = dmlc.locate(model(), wrong, inputs=FEEDS).location
    assert location is not None
    assert location.details == ("epsilon 1e-05 -> 0.1",)
    assert location.agreeing == ("m",)
    assert [node.name for node in location.behind] == ["norm"]


@each_row("target, fault", [("directml", "weight"), ("cpu", "axis"), ("onnx", "operator"), ("directml", "axis")])
def test_fault_in_a_compiled_model(target: str, fault: str) -> None:
    """A node of the result names the nodes of the original that it stands for."""
    compiled = dmlc.compile(model(), target=target).to_onnx()
    assert dmlc.locate(model(), compiled).ok
    found = {"weight": "MatMul", "axis": "Softmax", "operator": "Add"}[fault]
    place = next(n for n in compiled.graph.node if n.op_type in (found, "Gemm"))
    if fault == "weight":
        tensor = next(t for t in compiled.graph.initializer if list(t.dims) == [8, 8])
        array = numpy_helper.to_array(tensor).copy()
        array[3, 5] += np.float32(1e-2)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    elif fault == "axis":
        next(a for a in place.attribute if a.name == "axis").i = 0
    else:
        place = next(n for n in compiled.graph.node if n.output[0] == "y")
        place.op_type = "Sub"
    location = dmlc.locate(model(), compiled, inputs=FEEDS).location
    assert location is not None
    assert place.name in [node.name for node in location.behind]


def test_value_that_a_rename_hides_is_found_by_metadata() -> None:
    original, renamed = model(), model()
    for number, found in enumerate(renamed.graph.node):
        found.metadata_props.add(key="dmlc.from", value=found.name)
        found.name = f"other{number}"
        for names in (found.input, found.output):
            names[:] = [f"{name}_" if name in ("m", "n", "p", "q", "r", "t", "z") else name for name in names]
        for entry in found.attribute:
            for inner in entry.g.node:
                inner.input[:] = [f"{name}_" for name in inner.input]
    assert dmlc.locate(original, renamed, inputs=FEEDS).ok
    next(a for found in renamed.graph.node for a in found.attribute if a.name == "epsilon").f = 0.1
    location = dmlc.locate(original, renamed, inputs=FEEDS).location
    assert location is not None
    assert (location.value.name, location.value.other) == ("n", "n_")


def test_result_that_fails_is_located() -> None:
    wrong = model()
    node(wrong, "sel").input[0] = "d"
    wrong.graph.initializer.append(numpy_helper.from_array(np.array([3, 3], np.int64), "to"))
    wrong.graph.node.insert(5, onnx.helper.make_node("Reshape", ["r", "to"], ["d"], "cut"))
    location = dmlc.locate(model(), wrong, inputs=FEEDS).location
    assert location is not None
    assert location.value.name == "i"
    assert "B fails" in location.value.what
    assert "cut" in [found.name for found in location.behind]


def test_search_stops_at_the_batch_of_the_fault() -> None:
    depth = 3 * BATCH
    lines = "\n".join(f"v{n + 1} = Sin(v{n})" for n in range(depth - 1))
    text = f"{HEAD} g (float[4] x) => (float[4] y) {{ v0 = Sin(x)\n{lines}\n y = Identity(v{depth - 1}) }}"
    a, b = parser.parse_model(text), parser.parse_model(text)
    b.graph.node[5].op_type = "Cos"
    location = dmlc.locate(a, b, inputs={"x": np.ones(4, np.float32)}).location
    assert location is not None
    assert location.value.name == "v5"
    assert (location.compared, location.held) == (BATCH, depth + 1)


def test_small_fault_that_grows_is_traced_to_its_origin() -> None:
    """The difference is within the tolerance at first, and a subtraction of like numbers lifts it beyond."""
    text = (
        HEAD
        + """ g (float[4] x) => (float[4] y) <float k = {1000.0}, float e = {%s}> {
        a = Add(x, k)
        s = Mul(a, e)
        r = Relu(s)
        y = Sub(r, k)
    }"""
    )
    a, b = parser.parse_model(text % "1.0"), parser.parse_model(text % "1.00004")
    location = dmlc.locate(a, b, inputs={"x": np.linspace(0.1, 1, 4, dtype=np.float32)}).location
    assert location is not None
    assert location.value.name == "s"
    assert [change.name for change in location.constants] == ["e"]


@each_row(("rtol", "atol", "ok"), [(1e-1, None, True), (None, 1.0, True), (1e-7, None, False), (0, 0, False)])
def test_tolerance_that_is_asked_for(rtol: float | None, atol: float | None, ok: bool) -> None:
    text = HEAD + " g (float[4] x) => (float[4] y) <float e = {%s}> { y = Mul(x, e) }"
    models = [parser.parse_model(text % factor) for factor in ("1.0", "1.01")]
    feeds = {"x": np.linspace(1, 2, 4, dtype=np.float32)}
    assert dmlc.locate(*models, inputs=feeds, rtol=rtol, atol=atol).ok is ok


# --- programs and files


PROGRAM = """\
model head(x: f32[N, 8], w: f32[8]) -> (y, i) {
    c = x - reduce_mean(x, axes=[1])
    y = c / sqrt(reduce_mean(c * c, axes=[1]) + 1e-5) * w
    i = argmax(exp(y) + 1, axes=[1])
    return y, i
}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("a.dml").write_text(PROGRAM)
    Path("b.dml").write_text(PROGRAM.replace("1e-5", "1e-1"))
    for name in ("a", "b"):
        for suffix in ("onnx", "py"):
            dmlc.compile(f"{name}.dml").save(f"{name}.{suffix}")
    rng = np.random.default_rng(3)
    feeds = {"x": rng.standard_normal((3, 8), np.float32), "w": rng.standard_normal(8, np.float32)}
    outputs = dmlc.compile("a.dml").run(feeds, "reference")
    arrays = {f"in::{n}": x for n, x in feeds.items()} | {f"out::{n}": x for n, x in outputs.items()}
    np.savez("case.npz", **arrays)
    np.savez("inputs.npz", **feeds)

    return partial(command_line, "verify")


@pytest.mark.parametrize("a", ["a.dml", "a.onnx", "a.py"])
@pytest.mark.parametrize("b", ["dml", "onnx", "py"])
def test_each_form_on_either_side(run: Run, a: str, b: str) -> None:
    given = ("--input", "x=inputs.npz", "--input", "w=inputs.npz", "--locate")
    code, out, _ = run(a, f"a.{b}", *given)
    assert code == 0, out
    assert out.startswith("same on ")
    if (a, b) != ("a.py", "py"):
        code, out, _ = run(a, f"a.{b}", "--inputs", "6")
        assert (code, out[:17]) == (0, "same on 6 inputs:")
    code, out, _ = run(a, f"b.{b}", *given)
    assert code == 1
    assert out.startswith("different: ")
    if (a, b) == ("a.py", "py"):
        return
    assert "first difference: y: " in out
    assert "help: dmlc explain E0562" in out


def test_lines_of_the_source_are_named(run: Run) -> None:
    out = run("a.dml", "b.dml", "--locate", "--inputs", "4")[1]
    assert "a.dml:3:" in out
    assert "b.dml:3:" in out
    assert "largest magnitude" in " ".join(out.split())


CPU = pytest.param("cpu", marks=NEEDS_EXACT_LAYER_NORM)


@pytest.mark.parametrize("backend", ["cpu:reference", "reference:cpu", "numpy:reference", "numpy", "reference", CPU])
def test_one_side_on_two_backends(run: Run, backend: str) -> None:
    given, count = ((), 24) if backend == "cpu" else (("--inputs", "6"), 6)
    code, out, _ = run("a.dml", "--backend", backend, "--locate", *given)
    assert code == 0, out
    assert out.startswith(f"same on {count} inputs: ")


@NEEDS_EXACT_LAYER_NORM
def test_alone_it_is_compared_with_what_it_compiles_to(run: Run) -> None:
    assert run("a.dml")[1].startswith("same on 24 inputs: ")
    assert run("a.onnx")[1].startswith("same on 24 inputs: ")


@pytest.mark.parametrize("source", ["dml", "onnx"])
def test_expected_outputs(run: Run, source: str) -> None:
    assert run(f"a.{source}", "case.npz")[0] == 0
    assert run(f"b.{source}", "case.npz")[0] == 1
    given = ("--input", "x=case.npz", "--input", "w=case.npz:in::w")
    assert run(f"a.{source}", *given)[0] == 0
    code, out, _ = run(f"b.{source}", *given, "--locate", "--format", "json")
    document = json.loads(out)
    assert (code, document["located"]["value"]["a"]) == (1, "y")
    assert document["outputs"][1]["status"] == "exact"
    largest = document["outputs"][0]["largest_error"]
    assert 0 < largest["relative_to_largest"] < 1
    with np.load("case.npz") as case:
        scale = np.abs(case["out::y"]).max()
    assert largest["relative_to_largest"] == pytest.approx(largest["absolute"] / scale, rel=0.1)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("a.dml", "a.onnx", "--backend", "cp"), 1),
        (("a.dml", "a.onnx", "--backend", "cpu:numpy:cpu"), 1),
        (("a.dml", "a.onnx", "--rtol", "-1"), 2),
        (("a.dml", "a.onnx", "--exact", "--rtol", "1"), 2),
        (("a.dml", "a.onnx", "--input", "x"), 2),
        (("a.dml", "inputs.npz"), 2),
        (("case.npz", "a.dml"), 2),
        (("a.py",), 2),
        (("a.dml", "none.py"), 2),
        (("a.dml", "a.py", "--backend", "cpu"), 1),
        (("a.dml", "a.onnx", "--input", "x=inputs.npz"), 1),
    ],
)
def test_wrong_use(run: Run, words: tuple[str, ...], code: int) -> None:
    found, _, err = run(*words)
    assert found == code
    assert err


def test_file_that_is_not_code(run: Run) -> None:
    for text in ("x = 1\n", "def f(x):\n    return x\n", "raise ValueError\n", "def ("):
        Path("c.py").write_text(text)
        code, _, err = run("a.dml", "c.py")
        assert (code, "E0448" in err) == (1, True)


# --- faults inside the graphs of If, Loop and Scan

BODIES = {
    "If": """<ir_version: 8, opset_import: ["" : 17]> g (float[3, 4] x, bool c) => (float[3, 4] y) {
        h = Relu(x)
        t = If(c) <then_branch = tb () => (float[3, 4] r) <float k = {2.0}>
                   { s = Sigmoid(h)  r = Mul(s, k) },
                   else_branch = eb () => (float[3, 4] q) <float k = {3.0}>
                   { s = Sigmoid(h)  r = Mul(s, k) q = Neg(r) }>
        y = Exp(t)
    }""",
    "Loop": """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) <int64 n = {5}, bool tr = {1}> {
        h = Abs(x)
        y = Loop(n, tr, h) <body = b (int64 i, bool ci, float[4] a) => (bool co, float[4] r) <float k = {2.0}>
            { co = Identity(ci)  s = Sigmoid(h)  m = Mul(s, k)  r = Add(m, a) }>
    }""",
    "Scan": """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x, float[5, 4] xs) => (float[4] y, float[5, 4] ys) {
        h = Abs(x)
        y, ys = Scan<num_scan_inputs = 1, body = b (float[4] a, float[4] e) => (float[4] r, float[4] z)
            <float k = {2.0}>
            { s = Sigmoid(h)  m = Mul(s, k)  r = Add(m, a)  z = Neg(r) }>(x, xs)
    }""",
}


def _bodies(made: ModelProto) -> list[onnx.GraphProto]:
    return [entry.g for node in made.graph.node for entry in node.attribute if entry.type == onnx.AttributeProto.GRAPH]


@pytest.mark.parametrize("fault", ["node", "constant"])
@pytest.mark.parametrize("operator", BODIES)
def test_fault_inside_a_body_is_named(operator: str, fault: str) -> None:
    """Values of the body have other names for every other operator and fault."""
    renamed = list(BODIES).index(operator) % 2 == (fault == "node")
    a, b = onnx.parser.parse_model(BODIES[operator]), onnx.parser.parse_model(BODIES[operator])
    for body in _bodies(b):
        if fault == "constant":
            (k,) = body.initializer
            k.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(k) + np.float32(1), k.name))
        for inner in body.node:
            inner.op_type = "Tanh" if (inner.op_type, fault) == ("Sigmoid", "node") else inner.op_type
            inner.input[:] = [f"{name}2" if renamed and name == "s" else name for name in inner.input]
            inner.output[:] = [f"{name}2" if renamed and name == "s" else name for name in inner.output]
    location = dmlc.locate(a, b, inputs=4).location
    assert location is not None
    assert location.node is not None
    assert location.node.operator == operator
    said = "Sigmoid" if fault == "node" else "k: f32[]"
    assert any(said in line for line in location.bodies), location.bodies
    assert all(f"inside it {line}" in location.to_text() for line in location.bodies)
    assert not any("Mul" in line for line in location.bodies) or renamed


def test_equal_bodies_have_no_differences() -> None:
    for text in BODIES.values():
        a, b = onnx.parser.parse_model(text), onnx.parser.parse_model(text)
        next(node for node in b.graph.node if node.op_type in ("Relu", "Abs")).op_type = "Neg"
        location = dmlc.locate(a, b, inputs=4).location
        assert location is not None
        assert not location.bodies


@pytest.mark.parametrize("backend", ["numpy", "cpu:numpy", "reference:numpy"])
def test_missing_numpy_code_is_no_verdict(backend: str) -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1, 2, 5] x) => (float[1, 2, 3] y) <float[2, 1, 3] w = '
        "{1, 2, 3, 4, 5, 6}> { y = Conv <group = 2> (x, w) }"
    )
    found = dmlc.locate(made, backend=backend)
    assert found.verdict.status == "not verified"
    assert found.verdict.diagnostics[0].code.id == "E0570"
    with pytest.raises(dmlc.DmlcError, match="cannot be checked"):
        dmlc.bisect(made, backend="numpy", against="cpu")
