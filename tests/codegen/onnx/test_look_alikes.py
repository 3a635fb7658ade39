"""Patterns that ONNX Runtime's optimizer takes for something else: right numbers with every level of optimization."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import dmlc
from tests.command_line import Run
from tests.rows import each_row
from tools.model_checks import run, session

pytestmark = pytest.mark.every_emitted
LEVELS = [
    onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
]
TARGETS = ["directml", "cpu", "onnx"]
#: An f16 number has 11 bits and goes through eight operations, one of f32 has 24.
TOLERANCE = {"float": 2e-5, "float16": 1e-2}
DTYPES = {"float": np.float32, "float16": np.float16}


@dataclass
class Norm:
    """A normalization in parts, written as ONNX text; each field is a part that a case has otherwise."""

    power: float = 2.0
    epsilon: float = 0.3
    keeps: tuple[int, int] = (1, 1)
    centre: str = "x, m"
    quotient: str = "n = Div(c, s)"
    total: str = "v, e"
    size: int = 5
    vector: int = 5
    dtype: str = "float"
    opset: int = 18
    rest: str = "k = Mul(n, w) y = Add(k, b)"

    @property
    def model(self) -> onnx.ModelProto:
        def mean(x: str, keeps: int) -> str:
            inside = f"axes = [-1], keepdims = {keeps}" if self.opset < 18 else f"keepdims = {keeps}"
            return f"ReduceMean<{inside}>({x}{', axes' if self.opset >= 18 else ''})"

        t, n = self.dtype, self.vector
        made = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {self.opset}]>
g ({t}[5, {self.size}] x, {t}[{n}] w, {t}[{n}] b) => ({t}[5, {max(n, self.size)}] y)
<int64[1] axes = {{-1}}, {t}[1] one = {{1}}> {{
  m = {mean("x", self.keeps[0])}
  c = Sub({self.centre})
  p = Pow(c, power)
  v = {mean("p", self.keeps[1])}
  q = Add({self.total})
  s = Sqrt(q)
  {self.quotient}
  {self.rest}
}}""")
        for name, number in (("power", self.power), ("e", self.epsilon)):
            made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(number, DTYPES[t]), name))
        return made

    def expected(self, x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The numbers by NumPy, in f64."""
        x, w, b = (each.astype(np.float64) for each in (x, w, b))
        mean = x.mean(-1, keepdims=bool(self.keeps[0]))
        c = mean - x if self.centre == "m, x" else x - mean
        root = np.sqrt((c**self.power).mean(-1, keepdims=bool(self.keeps[1])) + float(DTYPES[self.dtype](self.epsilon)))
        quotient = root / c if self.quotient == "n = Div(s, c)" else c / root
        return quotient * w + b

    def feeds(self) -> dict[str, np.ndarray]:
        rng, dtype = np.random.default_rng(0), DTYPES[self.dtype]
        shapes = {"x": (5, self.size), "w": (self.vector,), "b": (self.vector,)}
        return {name: (rng.uniform(0.5, 2, shape) * 2 - 1).astype(dtype) for name, shape in shapes.items()}


CASES = {
    "power 4": Norm(power=4),
    "power 6": Norm(power=6),
    "power 3, opset 13": Norm(power=3, opset=13, epsilon=9),
    "power 4, opset 11": Norm(power=4, opset=11),
    "power -2": Norm(power=-2, opset=21),
    "power 4 of f16": Norm(power=4, dtype="float16", opset=17),
    "mean without its axis": Norm(keeps=(0, 1)),
    "mean of squares without its axis": Norm(keeps=(1, 0), opset=17),
    "no axis kept, opset 11": Norm(keeps=(0, 0), opset=11),
    "mean less data": Norm(centre="m, x", opset=13),
    "root over difference": Norm(quotient="n = Div(s, c)"),
    "quotient of one": Norm(power=4, quotient="r = Div(one, s) n = Mul(c, r)"),
    "reciprocal": Norm(power=4, quotient="r = Reciprocal(s) n = Mul(c, r)", opset=13),
    "epsilon first": Norm(total="e, v"),
    "epsilon of f16": Norm(dtype="float16", opset=17),
    "scale that enlarges": Norm(size=1, vector=4),
    "scale of one": Norm(vector=1),
}


def assert_right(model: onnx.ModelProto, feeds: dict[str, np.ndarray], expected: np.ndarray, tolerance: float) -> None:
    for level in LEVELS:
        found = run(session(model, level=level), feeds)["y"]
        assert found.shape == expected.shape, level
        np.testing.assert_allclose(
            found.astype(np.float64), expected, rtol=tolerance, atol=tolerance, err_msg=str(level)
        )


@each_row("target", TARGETS)
@each_row("norm", CASES.values(), ids=CASES)
def test_norm_look_alike_is_right_at_every_level(norm: Norm, target: str) -> None:
    model = dmlc.compile(norm.model, target=target).to_onnx()
    assert_right(model, norm.feeds(), norm.expected(**norm.feeds()), TOLERANCE[norm.dtype])


@pytest.mark.parametrize("target", TARGETS)
def test_look_alike_that_no_rule_touches_is_right_at_every_level(target: str) -> None:
    norm = Norm(power=4)
    model = dmlc.compile(norm.model, target=target, only_rules=()).to_onnx()
    assert [node.op_type for node in model.graph.node].count("Pow") == 1
    assert_right(model, norm.feeds(), norm.expected(**norm.feeds()), TOLERANCE["float"])


def test_a_provider_without_sum_gets_other_nodes() -> None:
    """They are as exact: -0 stays."""
    norm = Norm(power=4)
    model = dmlc.compile(norm.model, target="webgpu").to_onnx()
    assert {"Neg", "Sub"} <= {node.op_type for node in model.graph.node}
    assert_right(model, norm.feeds(), norm.expected(**norm.feeds()), TOLERANCE["float"])
    text = """<ir_version: 8, opset_import: ["" : 18]>
g (float[4, 4] x, float[4] z) => (float[4] y) { t = Transpose (x) y = MatMul (t, z) }"""
    program = dmlc.compile(parser.parse_model(text), target="webgpu")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Transpose", "Where", "MatMul"]
    assert program.placement().count("cpu") == 0
    for x in (np.full((4, 4), -0.0, np.float32), np.arange(16, dtype=np.float32).reshape(4, 4)):
        z = np.ones(4, np.float32)
        assert_right(program.to_onnx(), {"x": x, "z": z}, x.T @ z, 0)


@pytest.mark.parametrize("rest", ["y = Mul(n, w)", "y = Mul(w, n)"])
def test_rms_look_alike_is_right_at_every_level(rest: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
g (float[5, 5] x, float[5] w) => (float[5, 5] y) <int64[1] axes = {{-1}}, float four = {{4}}, float e = {{0.3}}> {{
  p = Pow(x, four)  v = ReduceMean<keepdims = 0>(p, axes)  q = Add(v, e)  s = Sqrt(q)  n = Div(x, s)  {rest}
}}"""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 5), (5,)))
    expected = x / np.sqrt((x.astype(np.float64) ** 4).mean(-1) + 0.3) * w
    for target in TARGETS:
        assert_right(dmlc.compile(parser.parse_model(text), target=target).to_onnx(), {"x": x, "w": w}, expected, 2e-5)


def test_computed_epsilon_stays_what_it_is() -> None:
    """LayerNormFusion takes 1e-5 for an epsilon that is not a constant."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
g (float[5, 5] x, float[5] w, float[5] b, float e) => (float[5, 5] y) <int64[1] axes = {-1}, float two = {2}> {
  m = ReduceMean(x, axes)  c = Sub(x, m)  p = Pow(c, two)  v = ReduceMean(p, axes)  q = Add(v, e)  s = Sqrt(q)
  n = Div(c, s)  k = Mul(n, w)  y = Add(k, b)
}"""
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("x", (5, 5)), ("w", 5), ("b", 5))}
    feeds["e"] = np.array(0.7, np.float32)
    c = feeds["x"] - feeds["x"].mean(-1, keepdims=True)
    expected = c / np.sqrt((c**2).mean(-1, keepdims=True) + 0.7) * feeds["w"] + feeds["b"]
    for target in TARGETS:
        model = dmlc.compile(parser.parse_model(text), target=target).to_onnx()
        assert_right(model, feeds, expected, 2e-5)


def test_look_alike_inside_a_branch_is_right_at_every_level() -> None:
    """The transformers go into the graphs of If, Loop and Scan."""
    inner = parser.parse_graph("""g () => (float[5, 5] z) <int64[1] axes = {-1}, float four = {4}, float e = {0.3}> {
  m = ReduceMean(x, axes)  c = Sub(x, m)  p = Pow(c, four)  v = ReduceMean(p, axes)  q = Add(v, e)  s = Sqrt(q)
  n = Div(c, s)  k = Mul(n, w)  z = Add(k, b)
}""")
    other = parser.parse_graph("h () => (float[5, 5] o) { o = Neg(x) }")
    outer = Norm().model
    del outer.graph.node[:]
    outer.graph.input.append(onnx.helper.make_tensor_value_info("t", onnx.TensorProto.BOOL, []))
    outer.graph.node.append(onnx.helper.make_node("If", ["t"], ["y"], then_branch=inner, else_branch=other))
    norm = Norm(power=4)
    for target in TARGETS:
        model = dmlc.compile(outer, target=target).to_onnx()
        assert_right(model, {**norm.feeds(), "t": np.array(True)}, norm.expected(**norm.feeds()), 2e-5)


PROGRAM = """
model m(x: f32[5, 8], w: f32[8], b: f32[8]) -> (y) {
    c = x - reduce_mean(x, axes=[1])
    v = reduce_mean(c ** 4, axes=[1])
    y = c / sqrt(v + 0.00001) * w + b
    return y
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_program_means_the_same_at_every_level(target: str) -> None:
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("x", (5, 8)), ("w", 8), ("b", 8))}
    program = dmlc.compile(dmlc.Source(PROGRAM, name="m.dml"), target=target)
    expected = program.run(feeds, backend="reference")["y"]
    assert_right(program.to_onnx(), feeds, expected, 2e-5)


@pytest.mark.parametrize("opset", [13, 18])
def test_layer_norm_in_parts_is_left_to_onnx_runtime(opset: int) -> None:
    """ONNX Runtime's rewrite is right here, so that nothing keeps it from making one node."""
    norm = Norm(opset=opset)
    model = dmlc.compile(norm.model, target="onnx", opset=opset, only_rules=()).to_onnx()
    kinds = [node.op_type for node in norm.model.graph.node]
    assert [node.op_type for node in model.graph.node] == kinds
    assert_right(model, norm.feeds(), norm.expected(**norm.feeds()), 2e-5)


def test_root_that_scales_nothing_is_left_alone() -> None:
    norm = Norm(power=4, rest="y = Add(n, b)")
    model = dmlc.compile(norm.model, target="onnx", only_rules=()).to_onnx()
    assert [node.op_type for node in model.graph.node] == [node.op_type for node in norm.model.graph.node]


@pytest.mark.parametrize("target", [*TARGETS, "numpy"])
@pytest.mark.parametrize("norm", [Norm(power=4), Norm(keeps=(1, 0), opset=17), Norm(centre="m, x")])
def test_check_warns_of_a_source_that_onnx_runtime_changes(
    norm: Norm, target: str, tmp_path: Path, command_line: Run
) -> None:
    source, compiled = tmp_path / "source.onnx", tmp_path / "compiled.onnx"
    onnx.save(norm.model, source)
    code, _, err = command_line("check", source, "--target", target)
    assert code == 0
    assert "W0613" in err
    assert "LayerNormFusion makes LayerNormalization of Div n" in err
    assert command_line("check", source, "--target", target, "--strict")[0] == 1
    assert command_line("compile", source, "-o", compiled)[0] == 0
    assert "W0613" not in command_line("check", compiled)[2]


@pytest.mark.parametrize("norm", [Norm(), Norm(opset=13), Norm(epsilon=1e-5, dtype="float16", opset=17)])
def test_check_says_nothing_of_norms_that_onnx_runtime_keeps(norm: Norm, tmp_path: Path, command_line: Run) -> None:
    onnx.save(norm.model, tmp_path / "source.onnx")
    assert "W0613" not in command_line("check", tmp_path / "source.onnx")[2]


@pytest.mark.parametrize("norm", [Norm(power=4), Norm(keeps=(1, 0)), Norm(quotient="n = Div(s, c)")])
def test_verify_sees_what_only_the_optimizer_does_wrong(norm: Norm, tmp_path: Path, command_line: Run) -> None:
    """The same model on both sides: its numbers are those of the original only as long as nothing is optimized."""
    onnx.save(norm.model, tmp_path / "a.onnx")
    code, out, _ = command_line("verify", tmp_path / "a.onnx", tmp_path / "a.onnx", "--inputs", "3")
    assert code == 1
    assert "the result differs with ONNX Runtime's default optimizations" in out
    assert command_line("compile", tmp_path / "a.onnx", "-o", tmp_path / "b.onnx")[0] == 0
    assert command_line("verify", tmp_path / "a.onnx", tmp_path / "b.onnx", "--inputs", "3")[0] == 0


@pytest.mark.parametrize("operator", ["Pow", "Sqrt", "Div", "Add"])
def test_check_of_a_pattern_without_its_operands_is_an_error_with_the_node(
    operator: str, tmp_path: Path, command_line: Run
) -> None:
    model = Norm(power=4).model
    (node, *_) = [node for node in model.graph.node if node.op_type == operator]
    del node.input[-1]
    onnx.save(model, tmp_path / "source.onnx")
    for target in ("directml", "cpu", "numpy"):
        code, _, err = command_line("check", tmp_path / "source.onnx", "--target", target)
        assert code == 1
        assert "error[E0" in err and "I0901" not in err


def test_quantization_that_a_branch_captures_is_right_at_every_level() -> None:
    """ONNX Runtime's QDQFinalCleanupTransformer removes the pair between them, and ends the process."""
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
g (float[3] x, bool t) => (float[3] y, float[3] d) <float s = {0.25}, uint8 z = {3}> {
  q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  r = QuantizeLinear(d, s, z)
  y = If(t) <then_branch = a () => (float[3] o) { o = DequantizeLinear(r, s, z) },
             else_branch = b () => (float[3] p) { p = Neg(x) }>
}""")
    warnings = [found.message for found in dmlc.check(model).diagnostics]
    assert any("QDQFinalCleanupTransformer makes nothing of QuantizeLinear r" in text for text in warnings)
    x = np.array([-0.5, 0.3, 2], np.float32)
    for target in TARGETS:
        made = dmlc.compile(model, target=target).to_onnx()
        assert "DequantizeLinear" not in {node.op_type for node in made.graph.node if node.output[0] == "d"}, target
        assert_right(made, {"x": x, "t": np.array(True)}, np.array([-0.5, 0.25, 2]), 0)


#: Nodes between the inputs and the result y, by the transformer that changes them.
CHANGED = {
    "DivMulFusion": "q = Div(one, i) y = Mul(j, q)",
    "DivMulFusion.": "o = Identity(v) q = Div(r, u) y = Mul(o, q)",
    "TransposeOptimizer": (
        "t = Transpose<perm = [0, 2, 1]>(x) p = Pad(t, pads, , axes) y = Transpose<perm = [0, 2, 1]>(p)"
    ),
    "TransposeOptimizer.": (
        "t = Transpose<perm = [0, 2, 1]>(x) p = Resize<axes = [1]>(t, , twice) a = Abs(p) "
        "y = Transpose<perm = [0, 2, 1]>(a)"
    ),
    "MatmulTransposeFusion": "t = Transpose(w) f = Cast<to = 1>(t) y = MatMul(f, pair)",
    "QDQPropagationTransformer": "d = DequantizeLinear(b, s) y = Transpose<perm = [1, 0]>(d)",
    "ReluQuantFusion": "r1 = Relu(x) q = QuantizeLinear(r1, below, c) y = DequantizeLinear(q, below, c)",
    "QDQSelectorActionTransformer": (
        "d = DequantizeLinear(b, s, c) e = DequantizeLinear<axis = 0>(k, rows, zeros) y = MatMul(d, e)"
    ),
    "QDQPropagationTransformer..": (
        "m, i2 = MaxPool<kernel_shape = [2]>(x) q = QuantizeLinear(m, s, c) e = Cast<to = 1>(i2) "
        "d = DequantizeLinear(q, s, c) y = Add(d, e)"
    ),
    "QDQPropagationTransformer.": "d = DequantizeLinear(w, s, z) y = Transpose<perm = [1, 0]>(d)",
}
KEPT = {
    "another dividend": "q = Div(two, i) y = Mul(j, q)",
    "all axes": "t = Transpose<perm = [0, 2, 1]>(x) p = Pad(t, all) y = Transpose<perm = [0, 2, 1]>(p)",
    "no transpose behind": "t = Transpose<perm = [0, 2, 1]>(x) y = Pad(t, pads, , axes)",
    "scales of columns": (
        "d = DequantizeLinear(b, s, c) e = DequantizeLinear<axis = 1>(k, rows, zeros) y = MatMul(d, e)"
    ),
    "zero point": "d = DequantizeLinear(b, s, c) y = Transpose<perm = [1, 0]>(d)",
    "plain product": "q = Div(r, u) y = Mul(v, q)",
}


@each_row("form", {**CHANGED, **KEPT})
def test_check_names_the_transformer_that_changes_a_source(form: str) -> None:
    inputs = "int64[n] i, int64[n] j, float[n] u, float[n] v, float[2, 3, 4] x, int8[2, 3] b, int32[2, 3] w"
    weights = "int64 one = {1}, int64 two = {2}, float r = {1}, int64[2] pads = {1, 0}, int64[1] axes = {1}, "
    weights += "int64[6] all = {0, 1, 0, 0, 0, 0}, float[1] twice = {2}, "
    weights += "float[2] pair = {1, 2}, float s = {0.5}, int32 z = {0}, int8 c = {0}, "
    weights += "int8[3, 3] k = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] rows = {1, 2, 3}, int8[3] zeros = {0, 0, 0}, "
    weights += "float below = {-0.5}"
    result = "int64" if "(j" in {**CHANGED, **KEPT}[form] else "float"
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
g ({inputs}) => ({result}[] y) <{weights}> {{ {({**CHANGED, **KEPT})[form]} }}""")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    found = [d.message for d in dmlc.check(model, target="cpu").diagnostics if "ONNX Runtime's" in d.message]
    assert [text.split()[2] for text in found] == ([] if form in KEPT else [form.rstrip(".")])
