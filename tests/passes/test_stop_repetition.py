"""Quantizations that ONNX Runtime would repeat behind a layout operation with a crash, or with other numbers."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper
from onnx.parser import parse_model

import dmlc
from tests.rows import each_row
from tools.model_checks import run, session

TARGETS = ("onnx", "cpu", "directml")
LAYOUT = {
    "Reshape": "m = Reshape (d, sh)",
    "Squeeze": "m = Squeeze (d, one)",
    "Unsqueeze": "m = Unsqueeze (d, one)",
    "Transpose": "m = Transpose <perm = [2, 0, 1]> (d)",
    "Slice": "m = Slice (d, zero, one)",
    "MaxPool": "m = MaxPool <kernel_shape = [2]> (d)",
    "two of them": "k = Reshape (d, sh)  m = Transpose (k)",
    "beside another": "n = Reshape (d, sh)  m = Reshape (d, sh)  k = ReduceMax (n)",
    "a reduction over one element": "m = ReduceSum <keepdims = 0> (d, one)",
}
CAPTURED = {
    "If": """y = If (c) <then_branch: graph = t () => (float[] a) { a = Neg (m) },
        else_branch: graph = e () => (float[] b) { b = Abs (m) }>""",
    "Loop": "y = Loop (n2, c) <body: graph = l (int64 i, bool p) => (bool o, float[] a) { o = Not (p)  a = Neg (m) }>",
    "Scan": """y = Scan (items) <body: graph = l (float i) => (float[] a) { a = Mul (m, i) }, num_scan_inputs: int = 1,
        scan_output_directions: ints = [1]>""",
    "nested": """y = If (c) <then_branch: graph = t () => (float[] a) {
            a = If (c) <then_branch: graph = t2 () => (float[] a2) { a2 = Neg (m) },
                else_branch: graph = e2 () => (float[] b2) { b2 = Exp (m) }> },
        else_branch: graph = e () => (float[] b) { b = Abs (m) }>""",
}
TYPES = {"int8": np.int8, "uint8": np.uint8, "int32": np.int32, "int16": np.int16, "uint16": np.uint16}


def model(layout: str, then: str, *, type: str = "int8", zero: bool = True, opset: int = 17) -> onnx.ModelProto:
    made = parse_model(f"""
        <ir_version: 10, opset_import: ["": {opset}]> g ({type}[2, 1, 3] q, bool c) => (float[] y)
        <float s = {{0.5}}, {type} z = {{0}}, int8 p = {{0}}, int64[1] one = {{1}}, int64[1] zero = {{0}},
         int64[2] sh = {{2, 3}}, int64 n2 = {{2}}, float[2] items = {{1, 2}}>
        {{ d = DequantizeLinear (q, s{", z" if zero else ""})  {layout}  {then} }}
    """)
    forget_shapes(made.graph)
    return made


def forget_shapes(graph: onnx.GraphProto) -> None:
    for info in graph.output:
        info.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                forget_shapes(attribute.g)


def operators(program: dmlc.Program) -> list[str]:
    return [node.op_type for node in program.to_onnx().graph.node]


def check(source: onnx.ModelProto, program: dmlc.Program, feeds: dict[str, np.ndarray]) -> None:
    """The program loads with default optimizations and gives what the source gives without."""
    emitted = program.to_onnx()
    assert "Max" in [node.op_type for node in emitted.graph.node]
    names = {info.name for info in source.graph.input}
    feeds = {name: array for name, array in feeds.items() if name in names}
    want = run(session(source), feeds)["y"]
    for optimized in (False, True):
        np.testing.assert_array_equal(run(session(emitted, optimized=optimized), feeds)["y"], want)


def fed(type: str) -> dict[str, np.ndarray]:
    data = np.array([1, 2, 3, 120, 5, 6]) * (1 if type in ("int8", "uint8") else 100)
    data[1] *= -1 if type.startswith("int") else 1
    return {"q": data.astype(TYPES[type]).reshape(2, 1, 3), "c": np.array(True)}


@each_row("then", CAPTURED)
@each_row("layout", LAYOUT)
def test_results_that_a_body_captures(layout: str, then: str) -> None:
    """The targets take turns, so that each meets each layout and each body."""
    source = model(LAYOUT[layout], CAPTURED[then])
    target = TARGETS[([*LAYOUT].index(layout) + [*CAPTURED].index(then)) % 3]
    check(source, dmlc.compile(source, target=target), fed("int8"))


@each_row("opset", [13, 17, 20, 21])
@each_row("zero", [True, False])
@each_row("type", ["int8", "uint8", "int32"])
def test_data_that_a_body_captures(type: str, zero: bool, opset: int) -> None:
    source = model(LAYOUT["Reshape"], CAPTURED["If"], type=type, zero=zero, opset=opset)
    check(source, dmlc.compile(source, target="onnx", opset=opset), fed(type))


@each_row(
    ("type", "zero", "opset"),
    [
        *[("int8", False, opset) for opset in (13, 20, 21)],
        *[("int32", zero, opset) for zero in (False, True) for opset in (13, 20, 21)],
        ("int16", False, 21),  # DequantizeLinear takes int16 from opset 21 on
    ],
)
@each_row("layout", LAYOUT)
def test_data_that_would_be_made_uint8(layout: str, type: str, zero: bool, opset: int) -> None:
    """The targets take turns, so that each meets each layout and each opset."""
    source = model(LAYOUT[layout], "y = Neg (m)", type=type, zero=zero, opset=opset)
    target = TARGETS[([*LAYOUT].index(layout) + opset + zero) % 3]
    check(source, dmlc.compile(source, target=target, opset=opset), fed(type))


def test_data_in_a_body() -> None:
    body = f"d = DequantizeLinear (q, s)  m = Reshape (d, sh)  {CAPTURED['If'].replace('y =', 'r =')}"
    other = "else_branch: graph = v () => (float[] w) { w = DequantizeLinear (q, s) }"
    source = model("", f"y = If (c) <then_branch: graph = u () => (float[] r) {{ {body} }}, {other}>")
    del source.graph.node[0]
    program = dmlc.compile(source, target="onnx")
    emitted = program.to_onnx()
    assert "Max" in [node.op_type for a in emitted.graph.node[0].attribute for node in a.g.node]
    feeds = fed("int8")
    for optimized in (False, True):
        found = run(session(emitted, optimized=optimized), feeds)["y"]
        np.testing.assert_array_equal(found, -0.5 * feeds["q"].reshape(2, 3).astype(np.float32))


NEAR_MISSES = {
    "not captured": model(LAYOUT["Reshape"], "y = Neg (m)"),
    "captured without a layout": model("m = Neg (d)", CAPTURED["If"]),
    "captured directly": model("m = Identity (d)", CAPTURED["If"]),
    "behind another operator": model("k = Neg (d)  m = Reshape (k, sh)", CAPTURED["If"]),
    "u8": model(LAYOUT["Reshape"], "y = Neg (m)", type="uint8", zero=False),
    "quantized again": model(
        "m = Transpose (d)", "k = QuantizeLinear (m, s, z)  y = DequantizeLinear (k, s, z)", zero=True
    ),
    "given to a loop": model(
        LAYOUT["Reshape"],
        """y = Loop (n2, c, m) <body: graph = l (int64 i, bool p, float[] v) => (bool o, float[] a) {
            o = Not (p)  a = Neg (v) }>""",
    ),
}


AGAIN = "m = Transpose (d)  k = QuantizeLinear (m, s, p)  w = DequantizeLinear (k, s, p)"
NEAR_MISSES |= {
    "i8 without a zero point, quantized again": model(AGAIN, "y = Neg (w)", zero=False),
    "i32, quantized again": model(AGAIN, "y = Neg (w)", zero=False, type="int32"),
    "quantized by one of two": model(AGAIN, "y = Add (w, m)", zero=False),
    "captured and quantized": model(AGAIN, CAPTURED["If"].replace("Abs (m)", "Abs (w)")),
}


@each_row("name", NEAR_MISSES)
def test_near_misses(name: str) -> None:
    source = NEAR_MISSES[name]
    program = dmlc.compile(source, target="onnx")
    assert "Max" not in operators(program)
    names = {info.name for info in source.graph.input}
    feeds = {k: v for k, v in fed("uint8" if name == "u8" else "int8").items() if k in names}
    feeds["q"] = feeds["q"].astype(helper.tensor_dtype_to_np_dtype(source.graph.input[0].type.tensor_type.elem_type))
    want = run(session(source), feeds)["y"]
    np.testing.assert_array_equal(run(session(program.to_onnx(), optimized=True), feeds)["y"], want)


def test_indices_of_a_pooling_are_left_alone() -> None:
    """Nothing reads the numbers that the quantization would be repeated behind."""
    for type in ("int8", "int32"):
        source = parse_model(f"""<ir_version: 10, opset_import: ["": 17]> g ({type}[1, 2, 3] q) => (int64[1, 2, 2] y)
            <float s = {{0.5}}> {{ d = DequantizeLinear (q, s)  m, y = MaxPool <kernel_shape = [2]> (d) }}""")
        program = dmlc.compile(source, target="onnx")
        assert operators(program) == ["DequantizeLinear", "MaxPool"]
        feeds = {"q": np.arange(6, dtype=TYPES[type]).reshape(1, 2, 3)}
        want = run(session(source), feeds)["y"]
        np.testing.assert_array_equal(run(session(program.to_onnx(), optimized=True), feeds)["y"], want)


@each_row("body", [
    "d = DequantizeLinear (q, s)  y = Reshape (d, sh)",  # ONNX Runtime has no Max of bfloat16
    "d = com.microsoft.DequantizeLinear (q, s)  y = Reshape (d, sh)",  # a result of unknown type
])  # fmt: skip
def test_other_results_are_left_alone(body: str) -> None:
    source = parse_model(f"""<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
        g (int8[2, 3] q, bfloat16 s, int64[2] sh) => (bfloat16[3, 2] y) {{ {body} }}""")
    assert "Max" not in operators(dmlc.compile(source, target="onnx"))


def test_a_dequantization_of_nothing_compiles() -> None:
    source = parse_model("""<ir_version: 10, opset_import: ["": 17, "com.microsoft": 1]> g (float x) => (float[3, 2] y)
        <float[2, 3] d> { d = com.microsoft.DequantizeLinear ()  y = Transpose (d) }""")
    assert "DequantizeLinear" in operators(dmlc.compile(source, target="onnx"))


def test_scales_per_axis_are_left_alone() -> None:
    source = parse_model("""<ir_version: 10, opset_import: ["": 17]> g (int8[2, 3] q) => (float[3, 2] y)
        <float[2] s = {0.5, 0.25}> { d = DequantizeLinear <axis = 0> (q, s)  y = Transpose (d) }""")
    assert "Max" not in operators(dmlc.compile(source, target="onnx"))


def test_the_ledger_names_the_nodes() -> None:
    source = model(LAYOUT["Reshape"], CAPTURED["If"])
    source.graph.node[0].name, source.graph.node[1].name = "dequantize", "flat"
    entries = [e for e in dmlc.compile(source, target="onnx").ledger if e.rule == "stop-repetition"]
    assert [e.text for e in entries] == ["Max between dequantize and flat"]
