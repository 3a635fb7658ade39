"""Sizes that follow from the nodes that use them: in a run with other sizes a node fails."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import dmlc
from tests.rows import each_row
from tools.model_checks import run, session

_TABLE = ", ".join(map(str, range(64)))
_WEIGHTS = f"float[64] t = {{{_TABLE}}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] many = {{64}}, "
_WEIGHTS += "int64[1] four = {4}, int64[1] rest = {-1}, int64[3] split = {0, 4, -1}"
_LENGTH = "sh = Shape(x) n = Slice(sh, zero, one)"


def parsed(signature: str, nodes: str) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {signature} <{_WEIGHTS}> {{ {nodes} }}')


def check_numbers(model: ModelProto, feeds: dict[str, Any]) -> None:
    expected = run(session(model), feeds)
    found = run(session(dmlc.compile(model, target="onnx").to_onnx()), feeds)
    assert all(np.array_equal(expected[name], found[name]) for name in expected)


#: Parts of an axis that are added to the whole, and whether the sum is as long as the whole in each run.
PARTS = {
    "p = Slice(t, zero, n) y = Add(x, p)": True,
    "p = Slice(t, zero, n) y = Sub(p, x)": True,
    "m = Min(n, many) p = ConstantOfShape(m) y = Add(x, p)": True,
    "m = Neg(n) p = Slice(t, m, many) y = Add(x, p)": False,  # all of t where n is 0
    "k = Shape(w) m = Min(n, k) p = ConstantOfShape(m) y = Add(x, p)": False,  # k may be 0 beside an n of 1
    "m = Max(n, many) p = ConstantOfShape(m) y = Add(x, p)": False,
}


@pytest.mark.parametrize("nodes", PARTS)
def test_a_broadcast_with_a_part_of_a_size_gives_the_size(nodes: str) -> None:
    model = parsed("(float[s] x, float[r] w) => (float[q] y)", f"{_LENGTH} {nodes}")
    ((_, value),) = dmlc.compile(model, target="onnx").graph.outputs
    assert (str(value.type) == "f32[s]") == PARTS[nodes]


@each_row("size", (0, 1, 5, 64))
@each_row("nodes", list(PARTS)[:3])
def test_a_part_is_added_as_before(nodes: str, size: int) -> None:
    model = parsed("(float[s] x, float[r] w) => (float[q] y)", f"{_LENGTH} {nodes}")
    check_numbers(model, {"x": np.ones(size, np.float32), "w": np.ones(2, np.float32)})


_SPLIT = "h = Reshape(x, split)"
_GIVEN = "k = Shape(w) h = Reshape(x, k)"
#: Heads merged with the batch by a computed size: a size of 0 would copy the 4 there.
_MERGE = f"{_LENGTH} c = Concat<axis = 0>(rest, n, four) y = Reshape(h, c)"
SPLITS = {
    f"{_SPLIT} {_MERGE}": True,
    f"{_GIVEN} {_MERGE}": False,
    f"{_GIVEN} unused = Reshape(x, split) {_MERGE}": False,
}


@pytest.mark.parametrize("nodes", SPLITS)
def test_a_size_beside_what_is_left_is_not_0(nodes: str) -> None:
    model = parsed("(float[s, 16] x, float[s, 4, 4] w) => (float[p, q, r] y)", nodes)
    program = dmlc.compile(model, target="onnx")
    assert (program.graph.dims.bounds.get("s") == (1, inf)) == SPLITS[nodes]
    assert (str(program.graph.outputs[0][1].type) == "f32[4, s, 4]") == SPLITS[nodes]
    check_numbers(model, {"x": np.arange(48, dtype=np.float32).reshape(3, 16), "w": np.ones((3, 4, 4), np.float32)})


def test_a_node_inside_a_branch_says_nothing_of_sizes() -> None:
    nodes = "y = If(c) <then_branch = a () => (float[i, j, k] p) { p = Reshape(x, split) }, "
    nodes += "else_branch = b () => (float[i, j, k] q) { q = Unsqueeze(x, one) }>"
    model = parsed("(bool c, float[s, 16] x) => (float[i, j, k] y)", nodes)
    assert not dmlc.compile(model, target="onnx").graph.dims.bounds


def test_onnx_runtime_infers_no_size_beside_0() -> None:
    model = parsed("(float[s, 16] x) => (float[p, q, r] h)", _SPLIT)
    with pytest.raises(Exception, match="cannot be reshaped"):
        run(session(model), {"x": np.ones((0, 16), np.float32)})


def test_the_program_of_such_a_model_reads_back(tmp_path: Path) -> None:
    """A dim of a program is 1 or more anyway, and is not declared for it."""
    program = dmlc.compile(parsed("(float[s, 16] x) => (float[p, q, r] y)", "y = Reshape(x, split)"), target="onnx")
    program.save(tmp_path / "m.dml")
    again = dmlc.compile(tmp_path / "m.dml", target="onnx")
    assert [node.op_type for node in again.to_onnx().graph.node] == ["Reshape"]
