"""Branches whose rank no user takes: positive, near-miss and numerical tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import dmlc
from tools.model_checks import run, session

_HEAD = '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1, "other": 1]> g (float[N, 4, L] x, bool c{more}) => '
_HEAD += (
    "(float{shape} y) <float[2, 4, 1] w = {{1, 2, 3, 4, 5, 6, 7, 8}}, int64[1] two = {{2}}, int64[1] zero = {{0}}> "
)
#: Two axes where the condition holds, else three.
_SQUEEZED = (
    "v = If(c) <then_branch = a () => (float[i, j] p) { p = Squeeze(x, two) }, "
    "else_branch = b () => (float[i, j, k] q) { q = Identity(x) }>"
)
#: One axis more than v where the condition does not hold.
_WIDENED = (
    "u = If(c) <then_branch = e () => (float[] r) { r = Identity(v) }, "
    "else_branch = f () => (float[] s) { s = Unsqueeze(v, zero) }>"
)


def parsed(nodes: str, more: str = "", shape: str = "[r, s, t]") -> ModelProto:
    model = parser.parse_model(_HEAD.format(more=more, shape=shape) + "{" + nodes + "}")
    for node in model.graph.node:
        for attribute in node.attribute:
            for info in attribute.g.output:
                info.type.tensor_type.ClearField("shape")
    return model


def compiled(model: ModelProto) -> tuple[list[str], list[str]]:
    """The operators that are left, and the rules that fired."""
    program = dmlc.compile(model, target="onnx")
    return [node.op_type for node in program.to_onnx().graph.node], [entry.rule for entry in program.ledger]


FEEDS: dict[str, Any] = {"x": np.arange(24, dtype=np.float32).reshape(2, 4, 3), "c": np.array(False)}

#: Nodes behind v, and the condition with which the model runs.
TAKEN = {
    "a convolution": (f"{_SQUEEZED} y = Conv(v, w)", False),
    "a convolution behind others": (f"{_SQUEEZED} h = Relu(v) i = Neg(h) y = Conv(i, w)", False),
    "one axis more": (f"{_SQUEEZED} h = Unsqueeze(v, two) y = Conv(h, w)", True),
    "a second pair": (f"{_SQUEEZED} {_WIDENED} h = Unsqueeze(u, two) y = Conv(h, w)", True),
    "a user beside it": (
        f"{_SQUEEZED} k = Shape(v) n = Size(k) m = Cast<to = 1>(n) h = Conv(v, w) y = Mul(h, m)",
        False,
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_the_branch_that_users_take_is_all_that_is_left(name: str) -> None:
    nodes, condition = TAKEN[name]
    model = parsed(nodes)
    left, rules = compiled(model)
    assert "If" not in left
    assert "inline-branch" in rules
    feeds = {"x": FEEDS["x"][:, :, :1] if condition else FEEDS["x"], "c": np.array(condition)}
    expected = run(session(model), feeds)
    found = run(session(dmlc.compile(model, target="onnx").to_onnx()), feeds)
    assert np.array_equal(expected["y"], found["y"])
    other = {**feeds, "c": np.array(not condition), "x": FEEDS["x"][:, :, :1]}
    with pytest.raises(Exception, match=r"dimension|Invalid|rank|num_dims"):
        run(session(model), other)


@pytest.mark.parametrize(
    ("nodes", "more", "shape"),
    [
        (f"{_SQUEEZED} y = Relu(v)", "", ""),
        (f"{_SQUEEZED} k = Shape(v) n = Size(k) y = Cast<to = 1>(n)", "", ""),
        (f"{_SQUEEZED} y = Conv(v, z)", ", float z", ""),  # weights of unknown rank
        (f"{_SQUEEZED} y = other.Conv(v, w)", "", ""),
        (f"{_SQUEEZED} h = Unsqueeze(v, n) y = Conv(h, w)", ", int64[m] n", ""),
    ],
)
def test_branches_stay_where_no_user_tells(nodes: str, more: str, shape: str) -> None:
    model = parsed(nodes, more, shape)
    for info in (*model.graph.input, *model.graph.output):
        if info.name in ("z", "y"):
            info.type.tensor_type.ClearField("shape")
    left, rules = compiled(model)
    assert "If" in left
    assert "inline-branch" not in rules


def test_branches_that_both_fit_stay() -> None:
    nodes = _SQUEEZED.replace("Squeeze(x, two)", "Relu(x)") + " y = Conv(v, w)"
    assert "If" in compiled(parsed(nodes))[0]


def test_branches_that_both_fail_stay() -> None:
    nodes = _SQUEEZED.replace("Identity(x)", "Unsqueeze(x, two)") + " y = Conv(v, w)"
    assert "If" in compiled(parsed(nodes))[0]


def test_sizes_that_become_known_fold() -> None:
    """The channels of the convolution are those of its weights, once its rank is known."""
    nodes = f"{_SQUEEZED} h = Conv(v, w) k = Shape(h) one = Constant<value_ints = [1]>() n = Gather(k, one) "
    model = parsed(f"{nodes} y = ConstantOfShape(n)", shape="[r]")
    left, rules = compiled(model)
    assert {"Shape", "If"}.isdisjoint(left)
    assert "known-size" in rules
    assert "known-size" not in compiled(parsed(f"{nodes.replace('[1]', '[2]')} y = ConstantOfShape(n)", shape="[r]"))[1]
