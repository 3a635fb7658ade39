"""Ranges of inputs: who may promise them, who checks them, and which rewrites rely on them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.api import compile as compile_program
from dmlc.diagnostics import Source
from dmlc.onnx_schema.metadata import model_facts
from dmlc.ops.ranges import broken_by, into_range
from dmlc.text import format_source
from dmlc.verifying import verify_models
from tests.command_line import Run
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("sessions_here")

PROGRAM = """model m(x: f32[N, 8, 4], obj: f32[N, 8, 1]{obj}) -> (y) {{
    return reduce_max(x * obj, axes=[2])
}}
"""


def source(promise: str = "") -> Source:
    return Source("t.dml", PROGRAM.format(obj=f" in {promise}" if promise else ""))


def rules(program: dmlc.Program) -> list[tuple[str, str]]:
    return [(entry.rule, entry.rewrite_class) for entry in program.ledger]


# --- rewrites


@pytest.mark.parametrize(
    ("inputs", "expression", "rule", "promise"),
    [
        ("x: f32[N, 8], o: f32[N, 1]", "reduce_max(x * o, axes=[1])", "rising-after-extreme", ("o", "0.0..1.0")),
        ("x: f32[N, 8], o: f32[N, 1]", "reduce_max(x * o, axes=[1])", "rising-after-extreme", ("o", "-2.0..0.0")),
        ("x: f32[N, 8], o: f32[N, 1]", "reduce_min(x / o, axes=[1])", "rising-after-extreme", ("o", "0.5..inf")),
        ("x: f32[N, 8], o: f32[N, 1]", "reduce_max(x * (o + 1), axes=[1])", "rising-after-extreme", ("o", "0.0..1.0")),
        ("x: f32[N, 8]", "reduce_max(sqrt(x), axes=[1])", "rising-after-extreme", ("x", "0.0..inf")),
        ("x: f32[N, 8]", "reduce_min(log(x), axes=[1])", "rising-after-extreme", ("x", "1.0..2.0")),
        ("x: f32[N, 8]", "reduce_max(softsign(x), axes=[1])", "rising-after-extreme", ("x", "-2.0..2.0")),
        ("x: f32[N, 8]", "exp(x) / reduce_sum(exp(x), axes=[1])", "written-out-softmax", ("x", "-5.0..5.0")),
        ("x: f32[N, 8]", "x / reduce_l2(x, axes=[1])", "normalize-by-norm", ("x", "0.5..1.0")),
    ],
)
def test_a_rewrite_whose_precondition_is_promised_is_applied_and_names_it(
    inputs: str, expression: str, rule: str, promise: tuple[str, str]
) -> None:
    name, bounds = promise
    text = f"model m({inputs}) -> (y) {{\n    return {expression}\n}}\n"
    plain = Source("t.dml", text)
    low, high = (float(end) for end in bounds.split(".."))
    end = text.index("]", text.index(f"{name}: ")) + 1
    promised = Source("t.dml", f"{text[:end]} in {bounds}{text[end:]}")
    assert rule not in [found for found, _ in rules(dmlc.compile(plain, target="cpu"))]
    for program in (
        dmlc.compile(promised, target="cpu"),
        dmlc.compile(plain, target="cpu", ranges={name: (low, high)}),
    ):
        (entry,) = [entry for entry in program.ledger if entry.rule == rule]
        assert entry.rewrite_class == "reassociates"
        assert f"promised: {name} in {bounds}" in entry.text
        assert program.verify(8).status in ("exact", "equal", "within")
    assert rule not in [found for found, _ in rules(dmlc.compile(promised, target="cpu", exact=True))]


@pytest.mark.parametrize("bounds", ["-1.0..1.0", "-1.0..inf", "-inf..inf"])
def test_a_range_that_gives_no_sign_changes_nothing(bounds: str) -> None:
    assert rules(dmlc.compile(source(bounds), target="cpu")) == []


def test_softsign_of_an_infinity_is_nan_in_one_form_alone() -> None:
    text = "model m(x: f32[2, 3] in 0.0..inf) -> (y) {\n    return reduce_max(softsign(x), axes=[1])\n}\n"
    assert "rising-after-extreme" not in dict(rules(dmlc.compile(Source("t.dml", text), target="cpu")))
    plain = Source("t.dml", text.replace(" in 0.0..inf", ""))
    assert dmlc.compile(plain, target="onnx").verify(16).status != "different"


def test_a_divisor_that_may_be_zero_has_no_sign() -> None:
    text = PROGRAM.format(obj=" in 0.0..1.0").replace("x * obj", "x / obj")
    assert rules(dmlc.compile(Source("t.dml", text), target="cpu")) == []


def test_a_ledger_keeps_the_ranges() -> None:
    program = dmlc.compile(source(), target="cpu", ranges={"obj": (0, float("inf"))})
    document = json.loads(json.dumps(program.ledger_document(), allow_nan=False))
    again = dmlc.compile(source(), target="cpu", **document["options"])
    assert rules(again) == rules(program) != []


# --- who promises


def test_an_onnx_model_takes_ranges() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N,8] x, float[N,1] o) => (float[N,1] y) '
        "{ p = Mul(x, o) a = Constant<value_ints = [1]>() y = ReduceMax(p, a) }"
    )
    assert rules(dmlc.compile(model, target="cpu")) == []
    program = dmlc.compile(model, target="cpu", ranges={"o": (0.0, 1.0)})
    assert ("rising-after-extreme", "reassociates") in rules(program)
    assert program.signature.ranges == {"o": (0.0, 1.0)}


def test_a_promise_beside_one_of_the_source_leaves_what_keeps_both() -> None:
    program = dmlc.compile(source("0.0..1.0"), ranges={"obj": (0.5, 2)})
    assert program.signature.ranges == {"obj": (0.5, 1.0)}


def test_a_promise_says_nothing_of_values_computed_without_it() -> None:
    """A sign that is known without the promise is not taken for one that is promised."""
    inputs = "x: f32[4, 8], o: f32[4, 1], z: f32[2] in 0.0..1.0"
    text = f"model m({inputs}) -> (y) {{\n    return reduce_max(x * exp(o), axes=[1])\n}}\n"
    program = dmlc.compile(Source("t.dml", text), allow=["range"])
    assert "rising-after-extreme" not in dict(rules(program))
    assert any("is not known" in remark.reason() for remark in program.remarks)


def test_a_number_over_what_is_maximized_keeps_its_place() -> None:
    """A promised sign of the numerator orders nothing: the divisor may have either sign."""
    text = "model m(x: f32[4, 8], o: f32[4, 1] in 1.0..2.0) -> (y) {\n    return reduce_max(o / x, axes=[1])\n}\n"
    program = dmlc.compile(Source("t.dml", text))
    assert "rising-after-extreme" not in dict(rules(program))
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    o = np.ones((4, 1), np.float32)
    np.testing.assert_array_equal(program.run({"x": x, "o": o})["y"], (o / x).max(axis=1, keepdims=True))


def test_a_text_has_no_range() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (string[2] x) => (string[2] y) { y = Identity(x) }'
    )
    with pytest.raises(dmlc.DmlcError, match="input x is not a tensor of numbers"):
        dmlc.compile(model, ranges={"x": (0, 1)})


def test_the_builder_takes_a_range() -> None:
    g = dmlc.Graph("g")
    x = g.input("x", "f32", ("N", 4))
    o = g.input("o", "f32", ("N", 1), range=(0.0, 1.0))
    g.output("y", dmlc.reduce_max(x * o, axes=1))
    assert rules(dmlc.compile(g, target="cpu")) == [("rising-after-extreme", "reassociates")]
    for wrong in ((1, 0), (0,), "01", (float("nan"), 1), 3, (False, True)):
        with pytest.raises(dmlc.DmlcError, match="E0342"):
            g.input("z", "f32", 3, range=wrong)  # type: ignore[arg-type]
    with pytest.raises(dmlc.DmlcError, match="E0311"):
        g.input("z", "u8", 3, range=(0, 256))


@each_row(
    ("type", "range", "code"),
    [
        ("f32[N]", "1.0..0.0", "E0342"), ("f32[N]", "0.0..N", "E0342"), ("f32[N]", "nan..1", "E0342"),
        ("bool[N]", "0..1", "E0342"), ("u8[N]", "0..256", "E0311"), ("u8[N]", "-1..3", "E0311"),
        ("i32[N]", "0.5..1", "E0311"), ("f16[N]", "0..70000", "E0311"), ("f32[N]", "true..false", "E0342"),
        ("f32[N]", "[0]..1", "E0342"), ("f32[N]", "0..", "E0101"), ("f32[N]", "q..1", "E0202"),
    ],
)  # fmt: skip
def test_wrong_ranges(type: str, range: str, code: str) -> None:
    with pytest.raises(dmlc.DmlcError) as info:
        dmlc.compile(Source("t.dml", f"model m(x: {type} in {range}, d: f32[N]) -> (y) {{\n    return x\n}}\n"))
    assert [d.code.id for d in info.value.diagnostics] == [code]


@each_row(
    ("ranges", "code"),
    [({"q": (0, 1)}, "E0342"), ({"obj": (2, 1)}, "E0342"), ({"obj": 3}, "E0342"), ([("obj", (0, 1))], "E0342")],
)
def test_wrong_ranges_of_compile(ranges: Any, code: str) -> None:
    with pytest.raises(dmlc.DmlcError, match=code):
        dmlc.compile(source(), ranges=ranges)


@each_row("bounds", ["0.0..1.0", "-1..1", "1 // 2..3 * 2", "0..inf", "-inf..-1"])
def test_bounds_are_expressions_of_numbers_and_text_stays(bounds: str) -> None:
    text = PROGRAM.format(obj=f" in {bounds}")
    assert format_source(Source("t.dml", text)) == text
    program = dmlc.compile(Source("t.dml", text), target="cpu")
    again = dmlc.compile(Source("u.dml", str(program.artifact("dml").payload)), target="cpu")
    assert again.signature.ranges == program.signature.ranges


# --- who carries it


def test_the_model_carries_the_ranges_and_reads_them_back(tmp_path: Path) -> None:
    program = dmlc.compile(source("0.0..inf"), target="cpu")
    (facts,) = model_facts(program.to_onnx())
    assert json.loads(facts["ranges"]) == {"obj": ["0.0", "inf"]}
    program.save(str(tmp_path / "m.onnx"))
    again = compile_program(str(tmp_path / "m.onnx"), target="cpu")
    assert again.signature.ranges == {"obj": (0.0, float("inf"))}
    assert pickle.loads(pickle.dumps(program)).signature.ranges == again.signature.ranges
    assert program.source_graph.clone({"N": 3}).ranges == again.signature.ranges


def test_verification_feeds_what_keeps_the_promise() -> None:
    original = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[3,8] x) => (float[3,1] y) '
        "{ s = Sqrt(x) a = Constant<value_ints = [1]>() y = ReduceMax(s, a) }"
    )
    program = dmlc.compile(original, target="cpu", ranges={"x": (0.25, 4.0)})
    assert rules(program)
    assert verify_models(original, program.to_onnx(), inputs=30).status in ("exact", "equal", "within")
    for seed in range(5):
        assert broken_by(program.random_feeds(seed)["x"], (0.25, 4.0)) == ""


@each_row("bounds", [(0.0, 1.0), (-3.0, -1.0), (2.0, 2.0), (0.0, np.inf), (-np.inf, 0.5), (-np.inf, np.inf)])
@each_row("dtype", [np.float16, np.float32, np.float64])
def test_data_is_moved_into_any_range(dtype: Any, bounds: tuple[float, float]) -> None:
    assert into_range(np.array(7, dtype), bounds).shape == ()
    data = np.array([0, -0.0, 1e-7, 1, -1, 300.5, -300.5, np.inf, -np.inf, np.nan, 6e4, -6e4], dtype)
    moved = into_range(data, bounds)
    assert moved.dtype == dtype
    assert broken_by(moved, bounds) == ""


# --- who checks


def feeds(value: float) -> dict[str, Any]:
    obj = np.full((2, 8, 1), 0.5, np.float32)
    obj[1, 2, 0] = value
    return {"x": np.ones((2, 8, 4), np.float32), "obj": obj}


@each_row("value", [1.5, -0.1, np.nan, np.inf])
def test_run_checks_ranges_where_asked(value: float) -> None:
    program = dmlc.compile(source("0.0..1.0"), target="cpu")
    program.run(feeds(value))
    program.run(feeds(1.0), check_ranges=True)
    with pytest.raises(dmlc.DmlcError, match="E0445") as info:
        program.run(feeds(value), check_ranges=True)
    assert "[1, 2, 0]" in str(info.value)


def test_numpy_code_checks_where_asked() -> None:
    namespace: dict[str, Any] = {}
    exec(dmlc.compile(source("0.0..1.0"), target="numpy").to_numpy(), namespace)
    model = namespace["m"]
    model(**feeds(2.0))
    model(**feeds(1.0), check_ranges=True)
    with pytest.raises(ValueError, match="obj"):
        model(**feeds(2.0), check_ranges=True)
    assert "check_ranges" not in dmlc.compile(source(), target="numpy").to_numpy()


def test_the_command_line_checks(tmp_path: Path, command_line: Run) -> None:
    path = tmp_path / "t.dml"
    path.write_text(PROGRAM.format(obj=""))
    for name, array in feeds(1.5).items():
        np.save(tmp_path / f"{name}.npy", array)
    given = [f"--input={name}={tmp_path / name}.npy" for name in ("x", "obj")]
    run = ["run", path, "--target", "cpu", *given]
    assert command_line(*run)[0] == 0
    code, _, err = command_line(*run, "--range", "obj=0.0..1.0")
    assert (code, "E0445" in err) == (1, True)
    assert command_line(*run, "--range", "obj=0.0..1.0", "--trust-ranges")[0] == 0
    assert command_line(*run, "--range", "obj=0..2")[0] == 0
    assert command_line(*run, "--range", "obj=2")[0] == 2
    assert command_line(*run, "--range", "q=0..1")[0] == 1
    compiled = tmp_path / "t.onnx"
    assert command_line("compile", path, "--target", "cpu", "-o", compiled, "--range", "obj=0.0..1.0")[0] == 0
    assert command_line("run", compiled, "--target", "cpu", *given)[0] == 1
    assert command_line("run", compiled, "--target", "cpu", "--random", "3")[0] == 0
    assert isinstance(onnx.load(compiled), onnx.ModelProto)


@pytest.mark.parametrize(("low", "high"), [(-3, -1), (1, 3), (0, 9), (-20, 20)])
def test_promised_indices_stay_within_the_axis(low: int, high: int) -> None:
    """Inputs that are made up keep both the promise and the size of the axis, and no size leaves nothing to choose."""
    text = f"dim K in 0..7\n\nmodel m(i: i64[K] in {low}..{high}, x: f32[K]) -> (y) {{\n    return gather(x, i)\n}}\n"
    program = dmlc.compile(dmlc.Source(text, name="m.dml"))
    assert program.verify(12).ok
    for seed in range(8):
        assert all(low <= index <= high for index in program.random_feeds(seed)["i"])
