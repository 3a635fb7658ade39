"""Initial states of zeros are left out of recurrent layers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import dmlc
from tests.kit import run

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
FILL = "s = Shape <start = 1, end = 2> (x) c = Concat <axis = 0> (one, s, four)"
ZEROS = f"{FILL} z = ConstantOfShape (c)"


def made(op: str, body: str, states: str, opset: int = 17) -> onnx.ModelProto:
    gates = 4 * GATES[op]
    return onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : {opset}]>
        made (float[3, N, 2] x, float[1, {gates}, 2] w, float[1, {gates}, 4] r, float[1, N, 4] h)
            => (float[3, 1, N, 4] y, float[1, N, 4] last) {{
            one = Constant <value_ints = [1]> ()
            two = Constant <value_ints = [2]> ()
            nought = Constant <value_ints = [0]> ()
            four = Constant <value_ints = [4]> ()
            {body}
            y, last = {op} <hidden_size = 4> (x, w, r, , , {states})
        }}
    """)


def states_of(model: onnx.ModelProto) -> list[str]:
    """The initial states of the layer, once the numbers of the compiled model are those of the model."""
    compiled = dmlc.compile(model, target="onnx").to_onnx()
    rng = np.random.default_rng(0)
    sizes = {i.name: [d.dim_value or 2 for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in sizes.items()}
    for got, wanted in zip(*(run(m, feeds).values() for m in (compiled, model)), strict=True):
        np.testing.assert_array_equal(got, wanted)
    (layer,) = [node for node in compiled.graph.node if node.op_type in GATES]
    return list(layer.input[5:])


@pytest.mark.parametrize("op", GATES)
def test_zeros_are_left_out(op: str) -> None:
    assert states_of(made(op, ZEROS, "z, z" if op == "LSTM" else "z")) == []


@pytest.mark.parametrize(
    "body",
    [
        f"{FILL} z = ConstantOfShape <value = float[1] {{0}}> (c)",
        f"{FILL} k = Constant <value = float {{0}}> () z = Expand (k, c)",
        f"{FILL.replace('one', 'two')} p = ConstantOfShape (c) z = Slice (p, nought, one, nought)",
        f"{ZEROS.replace('z =', 'p =')} q = Concat <axis = 0> (p, p) z = Slice (q, one, two, nought)",
    ],
)
def test_zeros_behind_layout_operations_are_left_out(body: str) -> None:
    assert states_of(made("GRU", body, "z")) == []


def test_state_beside_zeros_stays_in_its_place() -> None:
    assert states_of(made("LSTM", ZEROS, "z, h")) == ["", "h"]
    assert states_of(made("LSTM", ZEROS, "h, z")) == ["h"]


@pytest.mark.parametrize("value", ["1", "-0.0"])
def test_other_states_stay(value: str) -> None:
    assert states_of(made("GRU", f"{FILL} z = ConstantOfShape <value = float[1] {{{value}}}> (c)", "z")) != []
    body = f"{FILL} k = Constant <value = float {{{value}}}> () z = Expand (k, c)"
    assert states_of(made("GRU", body, "z")) != []


def test_zeros_beside_other_elements_stay() -> None:
    body = f"{FILL} q = ConstantOfShape (c) p = Concat <axis = 0> (q, h) z = Slice (p, one, two, nought)"
    assert states_of(made("GRU", body, "z")) != []


@pytest.mark.parametrize(("parts", "kept"), [("p, p", []), ("p, k", ["z"]), ("k, p", ["z"])])
def test_states_of_both_directions_are_zeros_where_both_parts_are(parts: str, kept: list[str]) -> None:
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        made (float[3, N, 2] x, float[2, 4, 2] w, float[2, 4, 4] r) => (float[3, 2, N, 4] y) {{
            one = Constant <value_ints = [1]> ()
            four = Constant <value_ints = [4]> ()
            {ZEROS.replace("z =", "p =")}
            k = ConstantOfShape <value = float[1] {{0.5}}> (c)
            z = Concat <axis = 0> ({parts})
            y = RNN <hidden_size = 4, direction = "bidirectional"> (x, w, r, , , z)
        }}
    """)
    assert states_of(model) == kept


def test_many_parts_are_not_looked_at() -> None:
    parts = ", ".join(["p"] * 20)
    body = f"{ZEROS.replace('z =', 'p =')} q = Concat <axis = 0> ({parts}) z = Slice (q, one, two, nought)"
    assert states_of(made("GRU", body, "z")) != []


def test_a_state_of_another_element_type_stays() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 22]>
        made (bfloat16[3, 5, 2] x, bfloat16[1, 12, 2] w, bfloat16[1, 12, 4] r) => (bfloat16[3, 1, 5, 4] y) {
            s = Constant <value_ints = [1, 5, 4]> ()
            ones = ConstantOfShape <value = bfloat16[1] {16256}> (s)
            y = GRU <hidden_size = 4> (x, w, r, , , ones)
        }
    """)
    (*_, layer) = dmlc.compile(model, target="onnx").to_onnx().graph.node
    assert layer.input[5:] == ["ones"]
