"""Shape arithmetic in the fewest nodes: equal sizes are one value, and reshapes need no computed list."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, parser

import dmlc
from tests.rows import each_row


def model(body: str, inputs: str = "float[N, 4, 6] x, float[N, 4, 6] w", result: str = "float y") -> ModelProto:
    text = f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => ({result}) {{ {body} }}'
    made = parser.parse_model(text)
    for info in made.graph.output:
        info.type.tensor_type.ClearField("shape")
    return made


CONSTANTS = "zero = Constant<value_ints = [0]>() rest = Constant<value_ints = [-1]>() "


def operators(made: ModelProto) -> list[str]:
    return sorted(node.op_type for node in dmlc.compile(made, target="onnx").to_onnx().graph.node)


def same(made: ModelProto, batch: int) -> None:
    feeds = {i.name: np.random.default_rng(0).random((batch, 4, 6), np.float32) for i in made.graph.input}
    plain = dmlc.compile(made, target="onnx", only_rules=[])
    expected = plain.run(feeds)
    found = dmlc.compile(made, target="onnx").run(feeds)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def test_a_computed_reshape_becomes_one_node() -> None:
    made = model(CONSTANTS + "s = Shape(x) n = Gather(s, zero) l = Concat<axis = 0>(n, rest) y = Reshape(x, l)")
    assert operators(made) == ["Reshape"]
    same(made, 3)


@each_row("batch", [0, 1, 5])
def test_a_multiple_of_the_operands_own_size_may_be_zero(batch: int) -> None:
    """A computed size of 0 is the operand's own size too, so that a copy gives the same."""
    body = CONSTANTS + "f = Constant<value_ints = [4]>() s = Shape(x) n = Gather(s, zero) m = Mul(n, f) "
    made = model(body + "l = Concat<axis = 0>(m, rest) a = Reshape(x, l) y = Relu(a)")
    assert operators(made) == ["Relu", "Reshape"]
    if batch:
        same(made, batch)


def test_a_size_that_another_axis_gives_is_computed() -> None:
    """A 0 would be read as a copy of 4 there, and -1 be another size: the list stays as the model has it."""
    body = CONSTANTS + "f = Constant<value_ints = [-1]>() s = Shape(x) n = Gather(s, zero) "
    made = model(body + "l = Concat<axis = 0>(f, n) y = Reshape(x, l)")
    assert "Concat" in operators(made)
    same(made, 3)


def test_a_size_of_0_that_would_be_a_copy_and_fail_needs_no_computing() -> None:
    body = CONSTANTS + "f = Constant<value_ints = [24]>() s = Shape(x) n = Gather(s, zero) "
    made = model(body + "l = Concat<axis = 0>(f, n) y = Reshape(x, l)")
    assert operators(made) == ["Reshape"]
    same(made, 3)


def test_a_size_may_be_a_copy_of_what_a_slice_leaves_of_it() -> None:
    """As jax2tf cuts a batch at 1,000,000,000: that size is 0 where the batch is, so the result's shape is known."""
    body = CONSTANTS + "far = Constant<value_ints = [1000000000]>() one = Constant<value_ints = [1]>() "
    body += "axes = Constant<value_ints = [1, 2]>() s = Shape(x) c = Slice(x, zero, far, zero) "
    body += "m = ReduceMax<keepdims = 0>(c, axes) n = Gather(s, zero) l = Concat<axis = 0>(n, one) "
    made = model(body + "r = Reshape(m, l) y = Neg(r)")
    assert "y: f32[N, 1]" in str(dmlc.compile(made, target="onnx").graph)
    same(made, 3)


def test_shapes_of_values_of_one_shape_are_one() -> None:
    body = CONSTANTS + "a = Exp(x) s = Shape(x) t = Shape(a) m = Gather(s, zero) n = Gather(t, zero) "
    made = model(body + "k = Mul(m, n) e = Expand(k, zero) y = Add(m, n)", result="int64 y, int64 k")
    assert operators(made).count("Shape") == 1
    assert operators(made).count("Gather") == 1
    same(made, 3)


def test_sizes_of_other_dims_stay_apart() -> None:
    body = CONSTANTS + "s = Shape(x) t = Shape(w) m = Gather(s, zero) n = Gather(t, zero) y = Sub(m, n)"
    made = model(body, "float[N, 4, 6] x, float[M, 4, 6] w", "int64 y")
    feeds = {"x": np.zeros((5, 4, 6), np.float32), "w": np.zeros((3, 4, 6), np.float32)}
    np.testing.assert_array_equal(dmlc.compile(made, target="onnx").run(feeds)["y"], [2])


def test_equal_nodes_whose_results_have_new_sizes_are_one() -> None:
    """The count of the true elements is one size, whichever of two equal nodes gives it."""
    half = "h = Constant<value_float = 0.5>() c = Greater(x, h) "
    twice = "i = NonZero(c) t = Transpose(i) a = GatherND(x, t) j = NonZero(c) u = Transpose(j) b = GatherND(x, u) "
    made = model(half + twice + "y = Sub(a, b)")
    assert operators(made) == ["GatherND", "Greater", "NonZero", "Sub", "Transpose"]
    same(made, 3)


def test_new_sizes_of_nodes_with_other_operands_stay_apart() -> None:
    half = "h = Constant<value_float = 0.5>() c = Greater(x, h) d = Greater(w, h) "
    twice = "i = NonZero(c) t = Shape(i) j = NonZero(d) u = Shape(j) "
    made = model(half + twice + "y = Sub(t, u)", result="int64 y")
    assert operators(made).count("NonZero") == operators(made).count("Shape") == 2
    same(made, 3)


def test_a_size_that_the_model_reads_is_not_read_again() -> None:
    """The list of the second Expand is made of the sizes that Shape nodes of the model give."""
    body = CONSTANTS + "s = Shape<start = 0, end = 1>(x) n = Squeeze(s) "
    body += "a = Constant<value_int = 0>() b = Constant<value_int = 1>() r = Range(a, n, b) f = Cast<to = 1>(r) "
    body += "four = Constant<value_ints = [4]>() l = Concat<axis = 0>(four, s) e = Expand(f, l) y = Transpose(e)"
    made = model(body)
    assert operators(made).count("Shape") == 1
    same(made, 3)
