"""Int8 models stay at an opset at which ONNX Runtime loads them with its default optimizations."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.diagnostics import DmlcError, Source
from dmlc.targets import load_target, target_names
from tests.kit import refusal
from tests.rows import each_row
from tests.versions import needs_onnx_runtime

TARGETS = [name for name in target_names() if load_target(name).kernels is not None]
#: Operators behind which ONNX Runtime repeats a quantization, at opsets 13 to 20 and 21.
LAYOUT = {
    "Transpose": "Transpose<perm=[1, 0, 2]>(f)",
    "Reshape": "Reshape(f, six)",
    "Unsqueeze": "Unsqueeze(f, zero)",
    "Squeeze": "Squeeze(f)",
    "Slice": "Slice(f, zero, one)",
    "MaxPool": "MaxPool<kernel_shape=[2]>(f)",
    "Flatten": "Flatten<axis=2>(f)",
}
#: Others, of which it makes kernels for integers or which it does not change.
OTHERS = {
    "Relu": "Relu(f)", "Add": "Add(f, f)", "Concat": "Concat<axis=0>(f, f)", "Gather": "Gather(f, zero)",
    "Exp": "Exp(f)", "ReduceSum": "ReduceSum(f, zero)",
}  # fmt: skip


def model(operator: str, *, opset: int = 17, type: str = "int8", after: str = "y = Neg(h)") -> onnx.ModelProto:
    result = type if "Quantize" in after else "float"
    ir, first = 10 if opset > 20 else 8, 1 if operator.startswith("Squeeze") else 2
    made: onnx.ModelProto = parser.parse_model(f"""
        <ir_version: {ir}, opset_import: ["": {opset}]> g ({type}[{first}, 3, 4] x) => ({result}[?, ?, ?] y)
        <float s = {{0.5}}, {type} z = {{3}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[2] six = {{6, 4}}>
        {{ f = DequantizeLinear(x, s, z)  h = {operator}  {after} }}
    """)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


def loads(emitted: onnx.ModelProto) -> bool:
    return not refusal(emitted)


@each_row("target", TARGETS)
@each_row("opset", [13, 17, 20])
@each_row("operator", LAYOUT)
def test_it_is_not_raised_over_20(operator: str, opset: int, target: str) -> None:
    program = dmlc.compile(model(LAYOUT[operator], opset=opset), target=target)
    assert program.opset <= 20 and not program.diagnostics
    assert loads(program.to_onnx())
    if program.target.opset > 20:
        assert any("do not load DequantizeLinear f of i8" in note for note in program.artifact("onnx").report)


@each_row(
    "source",
    [
        *[model(text) for text in OTHERS.values()],
        model(LAYOUT["Reshape"], type="uint8"),
        model(LAYOUT["Reshape"], opset=21, type="int16"),
        model(LAYOUT["Transpose"], after="y = QuantizeLinear(h, s, z)"),
    ],
)
def test_others_are_raised(source: onnx.ModelProto) -> None:
    program = dmlc.compile(source, target="cpu")
    assert program.opset == 21 and loads(program.to_onnx())


@each_row("source", [
    model(LAYOUT["Transpose"], after="y = QuantizeLinear(h, s, z)  k = Neg(h)"),  # one of two readers quantizes
    parser.parse_model("""<ir_version: 10, opset_import: ["": 21]> g (int8[1, 3, 4] x) => (int64[1, 3, 3] y)
        <float s = {0.5}, int8 z = {3}>
        { f = DequantizeLinear(x, s, z)  h, y = MaxPool<kernel_shape = [2]>(f) }"""),  # nothing reads the numbers
    parser.parse_model("""<ir_version: 10, opset_import: ["": 21]> g (float[3, 4] x) => (int8[4, 3] y)
        <float s = {0.5}, int8 z = {3}> { f = QuantizeLinear(x, s, z)  y = Transpose(f) }"""),
])  # fmt: skip
def test_who_asks_for_21_gets_it_without_a_warning_where_it_loads(source: onnx.ModelProto) -> None:
    if len(source.graph.node) == 4:
        source.graph.output.append(onnx.helper.make_tensor_value_info("k", onnx.TensorProto.FLOAT, None))
    program = dmlc.compile(source, target="cpu", opset=21)
    assert not program.diagnostics
    assert loads(program.to_onnx())


@needs_onnx_runtime(1, 31, "ends the process while it loads a Transpose of data with a scale for each row")
def test_a_scale_for_each_row_loads_at_21() -> None:
    source = parser.parse_model("""<ir_version: 10, opset_import: ["": 21]> g (int8[3, 4] x) => (float[4, 3] y)
        <float[3] s = {0.5, 1, 2}, int8[3] z = {3, 2, 1}>
        { f = DequantizeLinear<axis = 0>(x, s, z)  y = Transpose(f) }""")
    program = dmlc.compile(source, target="cpu", opset=21)
    assert not program.diagnostics
    assert loads(program.to_onnx())


def test_two_operators_before_a_quantization_count() -> None:
    source = model(LAYOUT["Reshape"], after="t = Transpose(h)  y = QuantizeLinear(t, s, z)")
    program = dmlc.compile(source, target="cpu")
    assert loads(program.to_onnx())


LOG_SOFTMAX = """<ir_version: 8, opset_import: ["": 14]> g (int8[3,4,2] x) => (float[?,?,?] y)
    <float s = {0.1}, int8 z = {3}, int64[2] a = {1,2}> {
        d = DequantizeLinear (x, s, z)  m = ReduceMax <axes = [1,2], keepdims = 1> (d)  c = Sub (d, m)  e = Exp (c)
        t = ReduceSum <keepdims = 1> (e, a)  l = Log (t)  y = Sub (c, l) }"""
OF_UNKNOWN_RANK = """<ir_version: 8, opset_import: ["": 20]> g (int8[] x) => (float[1,3,1] y)
    <float s = {0.1}, int8 z = {0}, int64[1] a = {0}> { d = DequantizeLinear (x, s, z)  y = Unsqueeze (d, a) }"""


@each_row("text", [LOG_SOFTMAX, OF_UNKNOWN_RANK])
@each_row("target", TARGETS)
def test_what_is_made_of_several_axes_or_of_unknown_rank_counts(text: str, target: str) -> None:
    """A log-softmax over two axes begins with a reshape."""
    source = parser.parse_model(text)
    if text is OF_UNKNOWN_RANK:
        source.graph.input[0].type.tensor_type.ClearField("shape")
    assert loads(dmlc.compile(source, target=target).to_onnx())


@pytest.mark.parametrize("target", ["cpu", "directml"])
def test_inside_of_a_branch_too(target: str) -> None:
    source = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]> g (int8[2, 3] x, bool c) => (float[?, ?] y)
        <float s = {0.5}, int8 z = {0}> {
            y = If(c) <
                then_branch = a () => (float[3, 2] p) { f = DequantizeLinear(x, s, z)  p = Transpose(f) },
                else_branch = b () => (float[2, 3] q) { q = DequantizeLinear(x, s, z) }
            >
        }
    """)
    program = dmlc.compile(source, target=target)
    assert program.opset == 20 and loads(program.to_onnx())


@pytest.mark.emits_invalid("ONNX Runtime does not load it, as the warning says")
@each_row("operator", LAYOUT)
def test_who_asks_for_21_gets_it_with_a_warning(operator: str) -> None:
    source = model(LAYOUT[operator])
    program = dmlc.compile(source, target="cpu", opset=21)
    assert program.opset == 21
    (warning,) = program.diagnostics
    assert (warning.code.id, warning.severity) == ("W0609", "warning")
    assert "DequantizeLinear f of i8" in warning.message
    with pytest.raises(DmlcError, match="W0609"):
        dmlc.compile(source, target="cpu", opset=21, strict=True)


@pytest.mark.emits_invalid("ONNX Runtime does not load the source either")
def test_a_model_of_21_stays() -> None:
    assert dmlc.compile(model(LAYOUT["Transpose"], opset=21), target="cpu").opset == 21


@pytest.mark.emits_invalid("ONNX Runtime does not load it, as the warning says")
def test_an_index_over_several_axes_begins_with_a_reshape() -> None:
    text = "model q(x: i8[2, 3, 4]) -> (y) {\n    f = onnx.DequantizeLinear(x, 0.5 as f32, 3 as i8)\n"
    source = Source("q.dml", text + "    return argmax(f, axes=[1, 2])\n}\n")
    program = dmlc.compile(source, target="onnx")
    assert program.opset == 20 and loads(program.to_onnx())
    (warning,) = dmlc.compile(source, target="onnx", opset=21).diagnostics
    assert warning.code.id == "W0609"


def test_a_program_of_the_language_goes_down_too() -> None:
    text = """
model q(x: i8[2, 3]) -> (y) {
    f = onnx.DequantizeLinear(x, 0.5 as f32, 3 as i8)
    y = transpose(f, perm=[1, 0])
    return y
}
"""
    program = dmlc.compile(Source("q.dml", text), target="cpu")
    assert program.opset == 20 and loads(program.to_onnx())
    got = program.run({"x": np.array([[1, 2, 3], [4, 5, -6]], np.int8)}, backend="cpu")["y"]
    assert got.tolist() == [[-1.0, 0.5], [-0.5, 1.0], [0.0, -4.5]]
