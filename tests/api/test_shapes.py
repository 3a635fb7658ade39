"""``dmlc.compile(shapes=...)`` fixes sizes and ranks of inputs before anything is inferred."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.cli.main import main
from dmlc.diagnostics import Source
from tests.rows import each_row

PROGRAM = Source(
    "m.dml",
    """dim n in 2..64

model m(x: f32[n, 2 * k], y: f32[n + 1], w: f32[k, 3]) -> (a, b, c) {
    a = reduce_sum(x, axes=[1])
    b = y + 1
    c = w * 2
    return a, b, c
}
""",
)
FOLDED = "s = Shape(x) t = Slice(s, one, two) p = Concat <axis = 0> (t, m1)"


def model(x: str = "[N, ?, 4]", more: str = "", text: str = "") -> onnx.ModelProto:
    """A model of one input whose sizes are read by a Shape, with more inputs and nodes."""
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float{x} x{more}) => (float[] y)
        <int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] m1 = {{-1}}>
        {{ {FOLDED} y = Reshape(x, p) {text} }}"""
    )


def sizes_of(info: onnx.ValueInfoProto) -> list[Any]:
    assert info.type.tensor_type.HasField("shape")
    return [d.dim_value if d.HasField("dim_value") else d.dim_param for d in info.type.tensor_type.shape.dim]


def refused(source: Any, **options: Any) -> dmlc.diagnostics.Diagnostic:
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(source, **options)
    return caught.value.diagnostics[0]


# --- models


@each_row("target", ["directml", "cpu", "onnx"])
@each_row(
    ("declared", "shape", "wanted"),
    [
        ("[N, ?, 4]", (2, 3, 4), [2, 3, 4]),
        ("[N, ?, 4]", (None, 3, None), ["N", 3, 4]),
        ("[?, ?, ?]", (2, 3, 4), [2, 3, 4]),
        ("[?, ?, ?]", [np.int64(2), 3, None], [2, 3, ""]),
        ("[N, N, M]", (3, None, 4), [3, 3, 4]),
        ("", (2, 3, 4), [2, 3, 4]),
        ("", (None, 3, None), ["", 3, ""]),
    ],
)
def test_sizes_are_declared_and_fold_what_reads_them(declared: str, shape: Any, wanted: list[Any], target: str) -> None:
    source = model("" if declared == "" else declared)
    if declared == "":
        source.graph.input[0].type.tensor_type.ClearField("shape")
    before = source.SerializeToString()
    program = dmlc.compile(source, shapes={"x": shape}, target=target)
    assert source.SerializeToString() == before
    emitted = program.to_onnx()
    assert sizes_of(emitted.graph.input[0]) == wanted
    assert [node.op_type for node in emitted.graph.node if node.op_type != "Constant"] == ["Reshape"]
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    if 3 == wanted[0] == wanted[1]:
        x = np.arange(36, dtype=np.float32).reshape(3, 3, 4)
    assert (program.run({"x": x})["y"] == x.reshape(x.shape[1], -1)).all()


def test_a_named_dim_is_bound_everywhere() -> None:
    then, other = "t () => (float[N, 2] r) { r = Identity(z) }", "e () => (float[N, 2] q) { q = Neg(z) }"
    branches = f"<then_branch = {then}, else_branch = {other}>"
    source = model(more=", float[N, 2] z, bool c", text=f"v = If (c) {branches}")
    source.graph.output.append(onnx.helper.make_tensor_value_info("v", 1, ["N", 2]))
    emitted = dmlc.compile(source, shapes={"x": (5, None, None)}).to_onnx()
    assert sizes_of(emitted.graph.input[1]) == [5, 2]
    assert sizes_of(emitted.graph.output[1]) == [5, 2]
    assert b"N" not in [d.dim_param.encode() for i in emitted.graph.value_info for d in i.type.tensor_type.shape.dim]


def test_outputs_are_declared_with_the_sizes_that_follow() -> None:
    assert sizes_of(dmlc.compile(model(), shapes={"x": (2, 3, 4)}).to_onnx().graph.output[0]) == [3, 8]
    assert sizes_of(dmlc.compile(model(), shapes={"x": (None, 3, None)}).to_onnx().graph.output[0])[0] == 3


def test_a_default_of_that_shape_stays() -> None:
    source = model(more=", float[?, 4] w", text="")
    source.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((3, 4), np.float32), "w"))
    source.graph.node.append(onnx.helper.make_node("Neg", ["w"], ["v"]))
    source.graph.output.append(onnx.helper.make_tensor_value_info("v", 1, None))
    program = dmlc.compile(source, shapes={"w": (3, None)})
    assert sizes_of(program.to_onnx().graph.input[1]) == [3, 4]
    x = np.zeros((1, 2, 4), np.float32)
    assert (program.run({"x": x})["v"] == -1).all()
    assert (program.run({"x": x, "w": np.full((3, 4), 5, np.float32)})["v"] == -5).all()
    assert "the default of w has 3 there" in refused(source, shapes={"w": (5, 4)}).message
    source.ir_version = 3
    assert refused(source, shapes={"w": (3, 4)}).message == "the model has no input w"


MODEL_FAULTS = {
    "a fixed size": ({"x": (None, None, 5)}, {}, "x=_,_,5 gives axis 2 the size 5, and x has 4 there"),
    "another rank": ({"x": (2, 3)}, {}, "x=2,3 has 2 sizes, and x has 3 axes: [N, _, 4]"),
    "a dim twice": ({"x": (2, 3, 4), "z": (3, 2)}, {}, "N is 2 by x=2,3,4, and 3 by axis 0 of z=3,2"),
    "a dim that is bound": ({"x": (2, 3, 4)}, {"N": 3}, "N is 3 by N=3, and 2 by axis 0 of x=2,3,4"),
    "no such input": ({"X": (2, 3, 4)}, {}, "the model has no input X"),
    "a weight": ({"one": (1,)}, {}, "the model has no input one"),
    "a sequence": ({"q": (1,)}, {}, "q=1: q is a sequence, which has no shape"),
    "a node refuses": ({"z": (7, 2), "u": (2, 2)}, {}, "the model does not take z=7,2, u=2,2: node Add v: "),
}  # fmt: skip


@each_row("fault", MODEL_FAULTS)
def test_what_contradicts_a_model_is_refused(fault: str) -> None:
    shapes, bind, text = MODEL_FAULTS[fault]
    source = model(more=", float[N, 2] z, seq(float[2]) q, float[?, 2] u", text="v = Add(z, u)")
    source.graph.output.append(onnx.helper.make_tensor_value_info("v", 1, None))
    found = refused(source, shapes=shapes, bind=bind)
    assert found.code.id == "E0337"
    assert found.message.startswith(text)
    assert found.help


def test_bound_sizes_that_a_node_refuses_are_not_the_models_fault() -> None:
    source = model(more=", float[N, 2] z, float[M, 2] u", text="v = Add(z, u)")
    source.graph.output.append(onnx.helper.make_tensor_value_info("v", 1, None))
    found = refused(source, bind={"N": 2, "M": 3})
    assert found.code.id == "E0555"
    assert found.message.startswith("the model does not take N=2, M=3: node Add v: ")
    assert found.help == "give it sizes that fit together: bind={'N': 4, 'M': 4}"
    assert {array.shape[0] for array in dmlc.compile(source, target="numpy").random_feeds(0).values()} == {4}


def test_bound_sizes_that_a_table_does_not_have_are_refused() -> None:
    """A slice of 64 positions, up to the length of the input, is added to the input."""
    text = "s = Shape <start = 1, end = 2> (x) p = Slice (table, zero, s, one) y = Add (x, p)"
    weights = "int64[1] zero = {0}, int64[1] one = {1}, float one_position = {1}"
    table = "table = Expand (one_position, shape)"
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    source = parser.parse_model(
        f"{head} g (float[N, L] x) => (float[N, K] y) <{weights}, int64[2] shape = {{1, 64}}> {{ {table} {text} }}"
    )
    for given in ({"bind": {"L": 128}}, {"shapes": {"x": (None, 128)}}):
        found = refused(source, **given)
        assert found.code.id == ("E0555" if "bind" in given else "E0337")
        assert found.message.endswith("node Add y: sizes 128 and 64 do not broadcast")
    program = dmlc.compile(source, bind={"L": 64})
    x = np.zeros((2, 64), np.float32)
    assert (program.run({"x": x})["y"] == 1).all()


def test_bound_sizes_that_contradict_a_declaration_are_refused() -> None:
    """The model declares a reshape to a computed shape by a dim: the emitted model would not load."""
    text = "q = Reshape (x, k) y = Add (q, table)"
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    weights = "float[2] table = {1, 1}, float[L] q"
    source = parser.parse_model(f"{head} g (float[L] x, int64[1] k) => (float[K] y) <{weights}> {{ {text} }}")
    assert refused(source, bind={"L": 3}).code.id == "E0555"
    found = dmlc.compile(source, bind={"L": 2}).run({"x": np.zeros(2, np.float32), "k": np.array([2])})
    assert found["y"].tolist() == [1, 1]


# --- programs


@each_row(
    ("shapes", "bind", "signature"),
    [
        ({"x": (3, 8)}, {}, ["f32[3, 8]", "f32[4]", "f32[4, 3]"]),
        ({"y": (5,)}, {}, ["f32[4, 2 * k]", "f32[5]", "f32[k, 3]"]),
        ({"x": (None, 8), "y": (5,)}, {}, ["f32[4, 8]", "f32[5]", "f32[4, 3]"]),
        ({"x": (None, None)}, {"k": 2}, ["f32[n, 4]", "f32[n + 1]", "f32[2, 3]"]),
        ({"x": (3, 8)}, {"n": 3, "k": 4}, ["f32[3, 8]", "f32[4]", "f32[4, 3]"]),
    ],
)
def test_dims_of_a_program_follow_from_the_shapes(shapes: Any, bind: dict[str, int], signature: list[str]) -> None:
    program = dmlc.compile(PROGRAM, shapes=shapes, bind=bind)
    assert [str(type) for _, type in program.signature.inputs] == signature


PROGRAM_FAULTS = {
    "a fixed size": ({"w": (4, 5)}, {}, "E0337", "w=4,5 gives axis 1 the size 5, and w has 3 there"),
    "another rank": ({"x": (3,)}, {}, "E0337", "x=3 has 1 size, and x has 2 axes: [n, 2 * k]"),
    "a dim twice": ({"x": (3, 8), "y": (5,)}, {}, "E0337", "n + 1 is 4 by x=3,8, and 5 by axis 0 of y=5"),
    "a dim that is bound": ({"x": (3, 8)}, {"n": 5}, "E0337", "n is 5 by n=5, and 3 by axis 0 of x=3,8"),
    "no such size": ({"x": (3, 7)}, {}, "E0337", "x=3,7: no one size of k makes 2 * k 7"),
    "out of bounds": ({"x": (99, 8)}, {}, "E0555", "n=99 is out of bounds: n is 2 to 64"),
    "no such input": ({"X": (3, 8)}, {}, "E0337", "the model has no input X"),
}


@each_row("fault", PROGRAM_FAULTS)
def test_what_contradicts_a_program_is_shown_on_its_line(fault: str) -> None:
    shapes, bind, code, text = PROGRAM_FAULTS[fault]
    found = refused(PROGRAM, shapes=shapes, bind=bind)
    assert (found.code.id, found.message) == (code, text)
    if code == "E0337" and fault != "no such input":
        assert found.span is not None
        assert found.span.line == 3


def test_a_builder_graph() -> None:
    g = dmlc.Graph("g")
    x = g.input("x", dtype="float32", shape=("N", 3))
    g.output("y", dmlc.softmax(x, axes=(1,)))
    assert str(dmlc.compile(g, shapes={"x": (2, 3)}).signature.inputs[0][1]) == "f32[2, 3]"


# --- both


@each_row("shape", ["2,3", 5, (1.5, 2), (-1, 2), (True, 2), (2**63, 2), ("N", 2), None])
@each_row("source", [PROGRAM, model()], ids=["program", "model"])
def test_what_is_no_shape_is_wrong_usage(source: Any, shape: Any) -> None:
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(source, shapes={"x": shape})
    assert caught.value.exit_code == 2
    assert caught.value.diagnostics[0].code.id == "E0337"


@pytest.mark.parametrize(("source", "shapes"), [(PROGRAM, {"x": (3, 8)}), (model(), {"x": (None, 3, 4)})])
def test_a_ledger_keeps_the_shapes(source: Any, shapes: Any) -> None:
    program = dmlc.compile(source, shapes=shapes)
    ledger = json.loads(json.dumps(program.ledger_document()))
    assert ledger["options"]["shapes"] == {"x": list(shapes["x"])}
    assert dmlc.compile(source, **ledger["options"]).to_onnx() == program.to_onnx()


MAX = "y = ReduceMax<axes = [2], keepdims = 0>(x)"
JOIN = "y = Concat<axis = 0>(x, z)"
OPEN = [
    # model, options, sizes of the output that is declared with names of its own
    ("g (float[B, S, 4] x) => (float[u, v] y) { " + MAX + " }", {"bind": {"B": 2}}, [2, "S"]),
    ("g (float[B, S, 4] x) => (float[u, v] y) { " + MAX + " }", {"x": (None, 3, 4)}, ["B", 3]),
    ("g (float[?, ?, 4] x) => (float[u, v] y) { " + MAX + " }", {"x": (2, None, 4)}, [2, "v"]),
    ("g (float[A, B] x, float[C, B] z) => (float[u, v] y) { " + JOIN + " }", {"x": (2, None)}, ["u", "B"]),
    ("g (float[A, B] x, float[C, B] z) => (float[B, v] y) { " + JOIN + " }", {"x": (2, 3), "z": (4, 3)}, [6, 3]),
    (
        "g (float[A, B] x) => (float[u, v] y) { s = Shape(x) e = ConstantOfShape(s) y = Add(x, e) }",
        {"x": (2, None)},
        [2, "B"],
    ),
    ("g (float[A, 4] x) => (float[u, 4] y) { y = Concat<axis = 0>(x, x) }", {"x": (3, None)}, [6, 4]),
    ("g (float[A, B] x) => (float y) { y = Transpose(x) }", {"x": (None, 7)}, [7, "A"]),
]


@each_row("target", ["directml", "cpu", "onnx"])
@each_row(("text", "options", "expected"), OPEN)
def test_sizes_that_follow_are_written_into_outputs(
    text: str, options: dict[str, Any], expected: list[int | str], target: str
) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    given = options if "bind" in options else {"shapes": options}
    (output,) = dmlc.compile(model, target=target, **given).to_onnx().graph.output
    assert [d.dim_value or d.dim_param for d in output.type.tensor_type.shape.dim] == expected


WRONG = [
    ({"shapes": {"x": (1, 10**30)}}, ["--shape", f"x=1,{10**30}"], "2**63 - 1"),
    ({"shapes": {"x": (1,)}}, ["--shape", "x=1"], "2 axes"),
    ({"shapes": {"x": (1, 3), "z": (2, 3)}}, ["--shape", "x=1,3", "--shape", "z=2,3"], "A is 1"),
    ({"shapes": {"x": (2, 3)}, "bind": {"A": 1}}, ["--shape", "x=2,3", "--bind", "A=1"], "A is 1"),
    ({"shapes": {"q": (2, 3)}}, ["--shape", "q=2,3"], "no input q"),
]


@each_row(("keywords", "flags", "says"), WRONG)
def test_advice_is_spelled_as_the_user_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], keywords: dict[str, Any], flags: list[str], says: str
) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[A, B] x, float[A, B] z)'
    text += " => (float[A, B] y) { y = Add(x, z) }"
    model = parser.parse_model(text)
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(dmlc.DmlcError) as raised:
        dmlc.compile(model, **keywords)
    assert "E0337" in str(raised.value)
    assert says in str(raised.value)
    assert "--" not in str(raised.value)
    assert main(["check", str(tmp_path / "m.onnx"), *flags]) in (1, 2)
    error = capsys.readouterr().err
    assert says in error
    assert "shapes=" not in error
    assert "None" not in error


def test_sizes_of_thousands_of_digits_are_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flags in (["--shape", "x=" + "9" * 5000], ["--bind", "N=" + "9" * 5000]):
        with contextlib.suppress(SystemExit):
            assert main(["check", "m.onnx", *flags]) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_sizes_that_directml_cannot_hold_are_refused() -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[A, 2] x) => (float[A, 2] y) { y = Relu(x) }'
    for given in ({"bind": {"A": 2**32}}, {"shapes": {"x": (2**32, 2)}}):
        with pytest.raises(dmlc.DmlcError, match=r"E0555.*DirectML holds sizes up to 2\^32 - 1"):
            dmlc.compile(parser.parse_model(text), **given)
    dmlc.compile(parser.parse_model(text), target="cpu", bind={"A": 2**32})
