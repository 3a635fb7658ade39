"""Near misses of the repairs for DirectML: each test fails where one guard of theirs is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import repair_helpers as r
from onnx import parser

import dmlc
from tests.rows import each_row


def fired(m: r.onnx.ModelProto, **options: Any) -> set[str]:
    return {entry.rule for entry in dmlc.compile(m, **options).ledger}


@pytest.mark.parametrize(
    ("equation", "shapes", "out"),
    [
        ("ij,jk->ik", [[2, 3], [3, 4]], [2, 4]),  # no ellipsis
        ("...i->i", [[2, 3]], [3]),  # none in the result
    ],
)
def test_equations_that_stay(equation: str, shapes: list[list[int]], out: list[int]) -> None:
    inputs = [(f"x{i}", r.FLOAT, shape) for i, shape in enumerate(shapes)]
    made = r.node("Einsum", [name for name, *_ in inputs], ["y"], equation=equation)
    assert "spell-ellipsis" not in fired(r.model(made, inputs, [("y", r.FLOAT, out)], opset=13))


def test_more_is_cut_off_than_there_is() -> None:
    made = r.node("Pad", ["x", "pads"], ["y"])
    m = r.model(made, [("x", r.FLOAT, [2, 3])], [("y", r.FLOAT, None)], pads=np.array([-2, 0, -1, 2]))
    assert "slice-negative-pads" not in fired(m)


def test_results_of_other_operators_stay() -> None:
    made = r.node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2], strides=[2, 2])
    outs = [("y", r.FLOAT, [1, 2, 2, 2]), ("i", r.KINDS["i64"], [1, 2, 2, 2])]
    assert "one-layer-norm-result" not in fired(r.model(made, [("x", r.FLOAT, [1, 2, 4, 4])], outs))


#: Nodes that a rule leaves: the rule, the graph.
LEFT = {
    "an equation of another domain": (
        "matmul-of-letters",
        "(float[2,3,4] x, float[3,4,5] z) => (float[2,5] y)"
        ' { y = com.microsoft.Einsum<equation = "abc,bcd->ad">(x, z) }',
    ),
    "an equation of six terms": (
        "matmul-of-letters",
        '(float[1,2] x) => (float[1,1] y) { y = Einsum<equation = "ab,cd,ef,gh,ij,kl->ai">(x, x, x, x, x, x) }',
    ),
    "six operands": (
        "einsum-of-pairs",
        '(float[1,2] x) => (float[1,1] y) { y = Einsum<equation = "ab,cd,ef,gh,ij,kl->ai">(x, x, x, x, x, x) }',
    ),
    "two operands": (
        "einsum-of-pairs",
        '(float[2,3] x, float[3,4] z) => (float[2,4] y) { y = Einsum<equation = "ab,bc->ac">(x, z) }',
    ),
    "three operands of another domain": (
        "einsum-of-pairs",
        '(float[2,2] x) => (float[2,2] y) { y = com.microsoft.Einsum<equation = "ab,bc,cd->ad">(x, x, x) }',
    ),
    "three operands of doubles": (
        "einsum-of-pairs",
        '(double[2,2] x) => (double[2,2] y) { y = Einsum<equation = "ab,bc,cd->ad">(x, x, x) }',
    ),
    "a diagonal beside two operands": (
        "einsum-of-pairs",
        '(float[2,2] x) => (float[2,2] y) { y = Einsum<equation = "aa,ab,bc->ac">(x, x, x) }',
    ),
    "three operands of which one broadcasts": (
        "einsum-of-pairs",
        '(float[2,2] x, float[1,2] z) => (float[2,2] y) { y = Einsum<equation = "ab,bc,bd->ad">(x, x, z) }',
    ),
    "an equation of doubles": (
        "matmul-of-letters",
        '(double[2,3,4] x, double[3,4,5] z) => (double[2,5] y) { y = Einsum<equation = "abc,bcd->ad">(x, z) }',
    ),
    "an equation of integers": (
        "matmul-of-letters",
        '(int32[2,3,4] x, int32[3,4,5] z) => (int32[2,5] y) { y = Einsum<equation = "abc,bcd->ad">(x, z) }',
    ),
    "a product of doubles": (
        "merge-matmul-batch",
        "(double[2,3,2,4,5] a, double[2,3,2,5,3] b) => (double[2,3,2,4,3] y) { y = MatMul(a, b) }",
    ),
    "an opaque product by a vector": (
        "merge-product-batch",
        "(uint8[2,3,2,4,5] a, uint8[5] b) => (int32[2,3,2,4] y) { y = MatMulInteger(a, b) }",
    ),
    "a product whose batch is transposed": (
        "merge-product-batch",
        "(float[4,2,3,2,5] a, float[2,3,2,5,3] b) => (float[2,3,2,4,3] y)"
        " { y = com.microsoft.FusedMatMul<transBatchA = 1>(a, b) }",
    ),
    "a beta of a normalization": (
        "plain-skip-norm",
        "(float[2,3,4] x, float[2,3,4] s, float[4] g) => (float[2,3,4] y)"
        " { y = com.microsoft.SkipLayerNormalization(x, s, g, g) }",
    ),
    "a norm of doubles": ("lp-norm-in-parts", "(double[2,3] x) => (double[2,3] y) { y = LpNormalization(x) }"),
    "a sigmoid of too few operands": (
        "explicit-zero-points",
        "(uint8[4] x, float s) => (uint8[4] y) { y = com.microsoft.QLinearSigmoid(x, s) }",
    ),
    "a bias of one axis": (
        "full-attention-bias",
        "(float[3,2,8] q, float[2] b) => (float[3,2,8] y)"
        " { y = com.microsoft.MultiHeadAttention<num_heads = 2>(q, q, q, , , b) }",
    ),
    "an operator with a list for each axis": (
        "merge-resize-axes",
        "(float[2,2,2,2,5] x) => (uint8[2,2,2,2,5] y) <float[5] s = {1, 1, 1, 1, 1}, uint8[5] z = {1, 1, 1, 1, 1}>"
        " { y = QuantizeLinear<axis = 4>(x, s, z) }",
    ),
}


@each_row("name", LEFT)
def test_nodes_that_only_look_like_those_of_a_rule(name: str) -> None:
    rule, body = LEFT[name]
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g {body}')
    (node,) = made.graph.node
    assert r.operators(r.left_alone(made, rule)) == [node.op_type]


def test_zero_point_of_a_type_that_the_language_lacks() -> None:
    made = r.node("QLinearMatMul", ["a", "s", "z", "b", "s", "z", "s", "f"], ["y"])
    inputs = [("a", r.KINDS["u8"], [2, 2, 2, 3, 4]), ("b", r.KINDS["u8"], [2, 2, 2, 4, 5])]
    inputs.append(("f", r.TensorProto.FLOAT8E4M3FN, []))
    m = r.model(made, inputs, [("y", r.TensorProto.FLOAT8E4M3FN, [2, 2, 2, 3, 5])], s=np.float32(1), z=np.uint8(3))
    assert r.operators(r.left_alone(m, "merge-product-batch")) == ["QLinearMatMul"]


#: Nodes of nine axes, ``w`` to ``z``, that do not become nodes of fewer axes.
NINE = {
    "not elementwise": "z = ReverseSequence<batch_axis = 0, time_axis = 2>(w, n)",
    "of an operand of unknown rank": "p = Reshape(q, k) z = PRelu(w, p)",
}


@each_row("name", NINE)
def test_nodes_of_nine_axes_that_stay(name: str) -> None:
    lists = "int64[9] nine = {2, 1, 3, 2, 2, 1, 2, 1, 2}, int64[1] flat = {-1}, int64[2] n = {1, 3}"
    inputs = "float[24,4] x, float[4] q, int64[r] k"
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => (float[96] y) <{lists}>'
        f" {{ w = Reshape(x, nine) {NINE[name]} y = Reshape(z, flat) }}"
    )
    made.graph.value_info.append(r.helper.make_tensor_value_info("z", r.FLOAT, [2, 1, 3, 2, 2, 1, 2, 1, 2]))
    program = r.left_alone(made, "merge-elementwise-axes")
    assert "E0591" in r.refusals(program)
    assert "merge-elementwise-axes" not in {remark.rule for remark in program.remarks}


def test_resize_of_unknown_rank_to_declared_sizes() -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[24] x, int64[k] s) => (float[2,2,2,4,4] y)'
        " <int64[5] sizes = {2, 2, 2, 4, 4}> { h = Reshape(x, s) y = Resize(h, , , sizes) }"
    )
    assert r.operators(r.left_alone(made, "merge-resize-axes")) == ["Reshape", "Resize"]


def test_results_of_no_fault_are_not_spoken_of() -> None:
    made = r.node("GRU", ["x", "w", "v"], ["y", "h"], hidden_size=4)
    inputs = [("x", r.FLOAT, [2, 3, 4]), ("w", r.FLOAT, [1, 12, 4]), ("v", r.FLOAT, [1, 12, 4])]
    program = r.left_alone(r.model(made, inputs, [("y", r.FLOAT, [2, 1, 3, 4])]), "drop-unused-result")
    assert "drop-unused-result" not in {remark.rule for remark in program.remarks}


@each_row("axes", [[1], [0, 1]])
def test_means_of_floats_over_computed_axes_are_not_truncated(axes: list[int]) -> None:
    inputs = [("x", r.FLOAT, [2, 3]), ("a", r.KINDS["i64"], ["k"])]
    m = r.model(r.node("ReduceMean", ["x", "a"], ["y"]), inputs, [("y", r.FLOAT, ["p", "q"])])
    feed = {"x": np.array([[0.5, 1, 2], [-1, 4, 0.25]], np.float32), "a": np.array(axes)}
    r.same(r.run(m, feed), r.left_alone(m, "exact-mean-of-unknown-rank").run(feed, "cpu"), 1e-6)
