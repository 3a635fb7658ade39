"""Slices that cover an axis become a split: positive, near-miss and numerical tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pass_helpers import Building, check_numbers, context, names, run

import dmlc
from dmlc.diagnostics import Source
from dmlc.ir import Value
from dmlc.ir.dtype import f32, i64
from dmlc.ops.elementwise import NEG
from dmlc.ops.index import GATHER
from dmlc.ops.move import SLICE, SPLIT
from dmlc.passes.split_from_slices import SplitFromSlices
from tests.rows import each_row

PASS = SplitFromSlices()


def part(b: Building, x: Value, start: int, end: int, axis: int = 1, step: int = 1) -> Value:
    return b(SLICE, x, starts=(start,), ends=(end,), axes=(axis,), steps=(step,))


@each_row("bounds", [[(0, 2), (2, 3), (3, 6)], [(3, 99), (0, 3)], [(-2, 6), (0, -4), (2, -2)]])
@each_row("dtype", [f32, i64])
@each_row("target", ["onnx", "cpu"])
def test_slices_that_cover_an_axis_become_a_split(bounds: Any, dtype: Any, target: str) -> None:
    b = Building()
    x = b.input("x", (3, 6, "N"), dtype)
    parts = [part(b, x, *ends) for ends in bounds]
    ctx = check_numbers(PASS, b.done(*parts), context(target), binding={"N": 2})
    assert names(b.graph) == ["split"]
    ((entry,),) = [ctx.ledger]
    assert (entry.rule, entry.rewrite_class, len(entry.before)) == ("split-from-slices", "exact", len(bounds))


def test_the_split_comes_before_what_uses_its_parts() -> None:
    b = Building()
    x = b.input("x", (3, 6))
    second = b(NEG, part(b, x, 3, 6))
    check_numbers(PASS, b.done(second, part(b, x, 0, 3), x), context("onnx"))
    assert names(b.graph) == ["split", "neg"]


def test_slices_of_two_axes_become_two_splits() -> None:
    b = Building()
    x = b.input("x", (4, 6))
    parts = [part(b, x, 0, 3), part(b, x, 0, 1, axis=0), part(b, x, 3, 6), part(b, x, 1, 4, axis=0)]
    check_numbers(PASS, b.done(*parts), context("onnx"))
    assert names(b.graph) == ["split", "split"]


@pytest.mark.parametrize(
    "bounds", [[(0, 2), (3, 6)], [(0, 3), (2, 6)], [(0, 3), (3, 5)], [(1, 3), (3, 6)], [(0, 3), (0, 3), (3, 6)]]
)
def test_slices_that_leave_out_or_repeat_elements_stay(bounds: Any) -> None:
    b = Building()
    x = b.input("x", (3, 6))
    assert not run(PASS, b.done(*[part(b, x, *ends) for ends in bounds]), context("onnx")).ledger


def test_slices_with_steps_of_more_axes_or_open_sizes_stay() -> None:
    b = Building()
    x, other = b.input("x", (4, 6)), b.input("y", (4, "N"))
    turned = [part(b, x, 2, -7, step=-1), part(b, x, 3, 6)]
    both = [b(SLICE, x, starts=(0, 0), ends=(4, 3), axes=(0, 1), steps=(1, 1)), part(b, other, 0, 1)]
    assert not run(PASS, b.done(*turned, *both), context("onnx")).ledger


def test_slices_of_one_place_cover_an_axis_whatever_their_step() -> None:
    b = Building()
    x = b.input("x", (3, 4))
    parts = [b(SLICE, x, starts=(start,), ends=(99,), axes=(1,), steps=(4,)) for start in range(4)]
    check_numbers(PASS, b.done(*parts), context("onnx"))
    assert names(b.graph) == ["split"]


def test_one_slice_of_all_stays() -> None:
    b = Building()
    assert not run(PASS, b.done(part(b, b.input("x", (3, 6)), 0, 6)), context("onnx")).ledger


@pytest.mark.parametrize("options", [{"target": "directml"}, {"target": "onnx", "skip_rules": ["split-from-slices"]}])
def test_targets_that_confuse_the_parts_keep_slices(options: Any) -> None:
    text = "model m(x: f32[N, 6]) -> (y) {\n y = x[:, :3] * sigmoid(x[:, 3:])\n return y\n}"
    found = [node.op_type for node in dmlc.compile(Source("m.dml", text), **options).to_onnx().graph.node]
    assert sorted(found) == ["Mul", "Sigmoid", "Slice", "Slice"]


def test_a_split_of_the_source_stays() -> None:
    b = Building()
    parts = b.node(SPLIT, b.input("x", (3, 6)), axis=1, sizes=(2, 4))
    assert not run(PASS, b.done(*parts), context("onnx")).ledger
    assert np.size(parts) == 2


def test_places_that_cover_an_axis_become_a_split_where_each_node_is_a_dispatch() -> None:
    """A negative place counts from the end."""
    for target, expected in (("webgpu", ["split", *["reshape"] * 3]), ("onnx", ["gather"] * 3)):
        b = Building()
        x = b.input("x", (4, 3, 2))
        places = [b.constant(np.array(place), i64) for place in (1, 0, -1)]
        parts = [b(GATHER, x, place, axis=1, batch_axes=0) for place in places]
        check_numbers(PASS, b.done(*parts), context(target))
        assert [name for name in names(b.graph) if name != "constant"] == expected


@pytest.mark.parametrize("leads", [True, False])
def test_a_split_of_a_transpose_that_leads_to_another_is_flattened(leads: bool) -> None:
    last = "transpose(c, perm=[0, 2, 1])" if leads else "c"
    text = f"""model m(x: f32[4, 3, 4]) -> (y) {{
        a = transpose(x, perm=[1, 0, 2])
        b, c, d = split(a, sizes=[1, 1, 1], axis=0)
        y = matmul(matmul(b, {last}), d)
        return y
    }}"""
    program = dmlc.compile(Source("m.dml", text), target="webgpu")
    assert ("Flatten" in [node.op_type for node in program.to_onnx().graph.node]) is leads
    feeds = {"x": np.random.default_rng(0).random((4, 3, 4)).astype("f4")}
    np.testing.assert_allclose(program.run(feeds, "cpu")["y"], program.run(feeds, "reference")["y"], rtol=1e-6)
