"""GELU: the erf form as ONNX Runtime's own operator, the tanh form in a spelling that its optimizer does not change."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import repair_helpers as r
from onnx import numpy_helper, parser

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row
from tools.model_checks import optimized_copy

X = np.array([[-30, -4, -2.68, -1, -0.25], [0, 0.25, 1, 2.68, 30]])
TOLERANCE = {"float": 2e-6, "float16": 4e-3}
NUMPY = {"float": np.float32, "float16": np.float16, "double": np.float64}

#: The erf form: names are x, and constants by their numbers.
ERF = {
    "exporter": "d = Div(x, 1.4142135) e = Erf(d) f = Add(e, 1) h = Mul(x, f) y = Mul(h, 0.5)",
    "half first": "h = Mul(x, 0.5) d = Div(x, 1.4142135) e = Erf(d) f = Add(1, e) y = Mul(h, f)",
    "half of the sum": "d = Div(x, 1.4142135) e = Erf(d) f = Add(e, 1) g = Mul(f, 0.5) y = Mul(x, g)",
    "times the root": "d = Mul(0.70710678, x) e = Erf(d) f = Add(e, 1) h = Mul(f, x) y = Mul(0.5, h)",
    "over two": "d = Div(x, 1.4142135) e = Erf(d) f = Add(e, 1) h = Mul(x, f) y = Div(h, 2)",
    "spread": "h = Mul(x, 0.5) d = Mul(x, 0.70710678) e = Erf(d) p = Mul(h, e) y = Add(h, p)",
    "half erf": "d = Mul(x, 0.70710678) e = Erf(d) g = Mul(e, 0.5) f = Add(g, 0.5) y = Mul(x, f)",
    "negative": "n = Neg(x) d = Div(n, 1.4142135) e = Erf(d) f = Sub(1, e) h = Mul(x, f) y = Mul(h, 0.5)",
    "of twice": "d = Mul(x, 0.35355339) b = Add(d, d) e = Erf(b) f = Add(e, 1) h = Mul(x, f) y = Mul(h, 0.5)",
    "of half": "h = Mul(x, 0.5) d = Mul(h, 1.4142135) e = Erf(d) f = Add(e, 1) y = Mul(h, f)",
}
_ERF = "d = Div(x, 1.4142135) e = Erf(d) f = Add(e, 1)"
_CUBED = "c = Mul(x, x) u = Mul(c, x) v = Mul(u, 0.044715) w = Add(x, v) z = Mul(w, 0.7978845)"
TANH = {
    "exporter": "u = Pow(x, 3) v = Mul(u, 0.044715) w = Add(x, v) z = Mul(w, 0.7978845) t = Tanh(z) f = Add(t, 1)"
    " h = Mul(x, 0.5) y = Mul(h, f)",
    "factored": "a = Mul(x, 0.044715) b = Mul(a, x) c = Add(b, 1) d = Mul(x, 0.7978845) z = Mul(d, c) t = Tanh(z)"
    " f = Add(t, 1) h = Mul(x, 0.5) y = Mul(h, f)",
    "products": f"{_CUBED} t = Tanh(z) f = Add(t, 1) h = Mul(x, f) y = Mul(h, 0.5)",
    "half last": f"{_CUBED} t = Tanh(z) g = Mul(t, 0.5) f = Add(g, 0.5) y = Mul(x, f)",
}
NEAR = {
    "another root": "d = Div(x, 1.5) e = Erf(d) f = Add(e, 1) h = Mul(x, f) y = Mul(h, 0.5)",
    "not half of the tanh form": f"{_CUBED} t = Tanh(z) f = Add(t, 1) y = Mul(x, f)",
    "another addend": "d = Div(x, 1.4142135) e = Erf(d) f = Add(e, 2) h = Mul(x, f) y = Mul(h, 0.5)",
    "the complement": "d = Div(x, 1.4142135) e = Erf(d) f = Sub(1, e) h = Mul(x, f) y = Mul(h, 0.5)",
    "another factor": "z = Exp(x) d = Div(x, 1.4142135) e = Erf(d) f = Add(e, 1) h = Mul(z, f) y = Mul(h, 0.5)",
    "square": "d = Div(x, 1.4142135) e = Erf(d) f = Add(e, 1) g = Mul(x, x) h = Mul(g, f) y = Mul(h, 0.5)",
    "another cube": _CUBED.replace("0.044715", "0.05") + " t = Tanh(z) f = Add(t, 1) h = Mul(x, f) y = Mul(h, 0.5)",
    "over x and two": f"{_ERF} g = Add(x, 2) h = Div(f, g) y = Mul(x, h)",
    "over x": f"{_ERF} h = Div(f, x) y = Mul(x, h)",
    "over zero": f"{_ERF} h = Div(f, 0) y = Mul(x, h)",
    "a power between the third and the fourth": "u = Pow(x, 3.5) v = Mul(u, 0.044715) w = Add(x, v)"
    " z = Mul(w, 0.7978845) t = Tanh(z) f = Add(t, 1) h = Mul(x, f) y = Mul(h, 0.5)",
    "fourth powers that cancel": "a = Mul(x, x) b = Mul(a, a) c = Add(x, b) u = Sub(c, b) d = Mul(u, 0.70710678)"
    " e = Erf(d) f = Add(e, 1) h = Mul(x, f) y = Mul(h, 0.5)",
    "an argument of more than eight steps": "a = Mul(x, 0.5) b = Sub(a, x) c = Sub(x, b) g = Sub(c, x) i = Sub(x, g)"
    " j = Sub(i, x) k = Sub(x, j) l = Sub(k, x) m = Sub(x, l) n = Sub(m, x) d = Mul(n, 1.4142135) e = Erf(d)"
    " f = Sub(1, e) h = Mul(x, f) y = Mul(h, 0.5)",
    "no cube": "z = Mul(x, 0.7978845) t = Tanh(z) f = Add(t, 1) h = Mul(x, f) y = Mul(h, 0.5)",
}


def model(body: str, kind: str = "float", opset: int = 17, outputs: str = "") -> Any:
    """A model of ``body``, in which constants are written as numbers."""
    words, constants = [], {}
    for word in body.replace("(", "( ").replace(")", " )").split():
        number = word.rstrip(",")
        if number.replace(".", "").isdigit() and number != ".":
            name = constants.setdefault(number, f"k{len(constants)}")
            word = name + word[len(number) :]
        words.append(word)
    text = f"g ({kind}[2,5] x) => ({kind}[2,5] y{outputs}) {{ {' '.join(words)} }}"
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]> {text}')
    for number, name in constants.items():
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(float(number), NUMPY[kind]), name))
    return made


def kinds(program: dmlc.Program) -> list[str]:
    return [f"{n.domain}.{n.op_type}".lstrip(".") for n in program.to_onnx().graph.node]


def optimized(program: dmlc.Program) -> list[str]:
    """The operators that are left when ONNX Runtime has optimized the model."""
    left = optimized_copy(program.to_onnx(), "extended")
    return [f"{n.domain}.{n.op_type}".lstrip(".") for n in left.graph.node]


def compiled(made: Any, rule: str, kind: str = "float", **options: Any) -> dmlc.Program:
    """The model for DirectML: the rule fired, all is on DirectML, and the numbers are those of the model."""
    program = dmlc.compile(made, target="directml", **options)
    assert (rule, "reassociates") in r.fired(program), [m.reason() for m in program.remarks]
    assert program.placement().count("cpu") == 0
    feed = {"x": X.astype(NUMPY[kind])}
    r.same(r.run(made, feed), program.run(feed, backend="cpu"), TOLERANCE[kind])
    return program


@each_row("kind", TOLERANCE)
@each_row("opset", [14, 17, 20, 21])
@each_row("form", ERF)
def test_erf_form_becomes_one_node(form: str, opset: int, kind: str) -> None:
    program = compiled(model(ERF[form], kind, opset), "erf-gelu", kind)
    assert kinds(program) == ["com.microsoft.Gelu"]
    if kind == "float":
        assert optimized(program) == ["com.microsoft.Gelu"]


@each_row("kind", TOLERANCE)
@each_row("opset", [17, 21])
@each_row("form", TANH)
def test_tanh_form_stays_in_operators(form: str, opset: int, kind: str) -> None:
    program = compiled(model(TANH[form], kind, opset), "tanh-gelu", kind)
    assert kinds(program) == ["Mul", "Mul", "Add", "Mul", "Sigmoid", "Mul"]
    if kind == "float":
        assert not {"com.microsoft.FastGelu", "com.microsoft.QuickGelu", "Gelu"} & {*optimized(program)}


@each_row("opset", [17, 21])
@each_row("form", NEAR)
def test_near_misses_stay(form: str, opset: int) -> None:
    made = model(NEAR[form], opset=opset)
    program = dmlc.compile(made, target="directml")
    assert not {"erf-gelu", "tanh-gelu"} & dict(r.fired(program)).keys()
    feed = {"x": X.astype(np.float32)}
    r.same(r.run(made, feed), program.run(feed, backend="cpu"), 2e-6)


#: Multiples of the erf form.
SCALED = {
    "twice": "d = Div(x, 1.4142135) e = Erf(d) f = Add(e, 1) y = Mul(x, f)",
    "minus": "n = Neg(x) d = Div(x, 1.4142135) e = Erf(d) f = Add(e, 1) y = Mul(n, f)",
    "a third": "h = Div(x, 3) d = Mul(x, 0.70710678) e = Erf(d) p = Mul(h, e) y = Add(h, p)",
}


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("form", SCALED)
def test_multiple_of_the_erf_form_is_gelu_times_a_number(form: str, kind: str) -> None:
    program = compiled(model(SCALED[form], kind, 17), "erf-gelu", kind)
    assert kinds(program) == ["com.microsoft.Gelu", "Mul"]


WEIGHTS = np.arange(25).reshape(5, 5) % 7 - 3
#: Nodes that other passes put the last factor of a product into. ``v`` is the GELU.
AFTER = {
    "sum": "m = ReduceSum(v, a) y = Expand(m, z)",
    "mean": "m = ReduceMean<axes = [1]>(v) y = Expand(m, z)",
    "matmul": "y = MatMul(v, q)",
}


@each_row("after", AFTER)
@each_row("form", ERF)
def test_erf_form_before_what_takes_its_factor(form: str, after: str) -> None:
    made = model(ERF[form].replace("y = ", "v = ") + " " + AFTER[after])
    arrays = {"q": np.float32(WEIGHTS), "z": np.array([2, 5]), "a": np.array([1])}
    made.graph.initializer.extend([numpy_helper.from_array(array, name) for name, array in arrays.items()])
    left = kinds(compiled(made, "erf-gelu"))
    assert left.count("com.microsoft.Gelu") == 1
    assert {"Erf", "Mul", "Div"}.isdisjoint(left)


@each_row("form", ERF)
def test_erf_form_before_a_convolution(form: str) -> None:
    made = model(ERF[form].replace("y = ", "v = ") + " y = Conv(v, w)")
    made.graph.initializer.append(numpy_helper.from_array(np.float32(WEIGHTS)[:, :, None], "w"))
    for info in (made.graph.input[0], made.graph.output[0]):
        info.type.tensor_type.shape.dim.add().dim_value = 1
    program = dmlc.compile(made, target="directml")
    assert kinds(program) == ["com.microsoft.Gelu", "Conv"]
    feed = {"x": X.astype(np.float32)[:, :, None]}
    r.same(r.run(made, feed), program.run(feed, backend="cpu"), 2e-5)


def test_product_that_is_used_twice_is_a_multiple() -> None:
    made = model(ERF["exporter"], outputs=", float[2,5] h")
    assert sorted(kinds(compiled(made, "erf-gelu"))) == ["Mul", "Mul", "com.microsoft.Gelu"]


def test_part_that_is_used_outside_stays() -> None:
    made = model(ERF["exporter"], outputs=", float[2,5] f")
    assert "Erf" in r.operators(r.left_alone(made, "erf-gelu"))
    made = model(ERF["half first"], outputs=", float[2,5] h")  # the half stays where it was
    assert sorted(kinds(compiled(made, "erf-gelu"))) == ["Mul", "com.microsoft.Gelu"]


def test_f64_stays() -> None:
    assert "Erf" in r.operators(r.left_alone(model(ERF["exporter"], "double"), "erf-gelu"))


def test_other_targets_keep_operators() -> None:
    for target in ("onnx", "cpu"):
        program = dmlc.compile(model(ERF["exporter"]), target=target)
        assert "com.microsoft.Gelu" not in kinds(program)


@pytest.mark.parametrize("rank", [0, 3])
def test_constant_that_adds_axes_to_the_result_is_not_lost(rank: int) -> None:
    made = model(ERF["exporter"])
    for tensor in made.graph.initializer:
        tensor.dims.extend([1] * rank)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    program = dmlc.compile(made, target="directml")
    assert ("erf-gelu" in dict(r.fired(program))) == (rank < 3)
    feed = {"x": X.astype(np.float32)}
    r.same(r.run(made, feed), program.run(feed, backend="cpu"), 2e-6)


@each_row("rank", [2, 3])
def test_last_constant_that_adds_an_axis_is_not_lost(rank: int) -> None:
    made = model(f"{_ERF} h = Mul(x, f) y = Mul(h, w)")
    made.graph.initializer.append(numpy_helper.from_array(np.full([1] * rank, 0.5, np.float32), "w"))
    made.graph.output[0].type.tensor_type.ClearField("shape")
    program = dmlc.compile(made, target="directml")
    assert (kinds(program) == ["com.microsoft.Gelu"]) == (rank == 2)
    feed = {"x": X.astype(np.float32)}
    r.same(r.run(made, feed), program.run(feed, backend="cpu"), 2e-6)


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = Gelu(x)", ["com.microsoft.Gelu"]),
        ('y = Gelu<approximate = "none">(x)', ["com.microsoft.Gelu"]),
        ('y = Gelu<approximate = "tanh">(x)', ["Mul", "Mul", "Add", "Mul", "Sigmoid", "Mul"]),
    ],
)
def test_operator_of_onnx(body: str, expected: list[str], kind: str) -> None:
    program = compiled(model(body, kind, 20), "gelu-operator", kind)
    assert kinds(program) == expected


def test_declared_result_is_declared_once() -> None:
    made = model("h = Gelu(x) y = Exp(h)", opset=20)
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("h", r.FLOAT, [2, 5]))
    infos = [info.name for info in compiled(made, "gelu-operator").to_onnx().graph.value_info]
    assert infos == ["h"]


@pytest.mark.parametrize("bias", [False, True])
def test_fast_gelu_becomes_the_tanh_form(bias: bool) -> None:
    made = model(f"y = com.microsoft.FastGelu(x{', b' if bias else ''})")
    if bias:
        made.graph.initializer.append(numpy_helper.from_array(np.linspace(-1, 1, 5).astype(np.float32), "b"))
    program = compiled(made, "gelu-operator")
    assert kinds(program) == ["Add"] * bias + ["Mul", "Mul", "Add", "Mul", "Sigmoid", "Mul"]


@pytest.mark.parametrize(
    "call", ["onnx.Gelu(x)", "0.5 * x * (1 + erf(x / 1.4142135))", "x * (erf(x * 0.70710678) + 1) / 2"]
)
def test_programs_get_it_too(call: str) -> None:
    source = Source("m.dml", f"model m(x: f32[N, 5]) -> (y) {{\n    y = {call}\n    return y\n}}\n")
    assert kinds(dmlc.compile(source, target="directml")) == ["com.microsoft.Gelu"]


def test_approximation_that_a_program_asks_for_is_kept() -> None:
    source = Source("m.dml", 'model m(x: f32[N, 5]) -> (y) {\n    return onnx.Gelu(x, approximate="tanh")\n}\n')
    program = dmlc.compile(source, target="directml")
    assert kinds(program) == ["Mul", "Mul", "Add", "Mul", "Sigmoid", "Mul"]


def test_exact_keeps_the_operators_on_the_gpu() -> None:
    program = dmlc.compile(model(ERF["exporter"], opset=21), target="directml", exact=True)
    assert "Erf" in kinds(program)
    assert program.placement().count("cpu") == 0
    assert not program.diagnostics
    older = dmlc.compile(model(ERF["exporter"], opset=19), target="directml", exact=True, opset=19)
    assert older.placement().count("cpu") == 0


def test_fused_tanh_form_is_warned_of_where_it_stays() -> None:
    for form in ("exporter", "factored"):
        program = dmlc.compile(model(TANH[form]), target="directml", exact=True)
        assert [d.code.id for d in program.diagnostics] == ["W0610"]
        assert "FastGeluFusion makes FastGelu of it" in program.diagnostics[0].message
    assert not dmlc.compile(model(TANH["products"]), target="directml", exact=True).diagnostics
