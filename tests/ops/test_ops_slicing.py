"""Slices of open axes: the places of NumPy's clamping, their lengths, and slices that mean them without min and max."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dmlc
from dmlc.ir import Dim, DimTable, Graph, TensorType, evaluate, symbol
from dmlc.ir.dtype import f32
from dmlc.ops.call import CallSite
from dmlc.ops.indexing import SliceItem, index_tensor
from dmlc.ops.move import SLICE, SliceAttributes
from dmlc.ops.slicing import Written, as_written, clamped
from tests.rows import each_row

N, M = symbol("N"), symbol("M")
PLACES = st.one_of(st.none(), st.integers(-7, 7))
SIZES = st.sampled_from([N, 2 * N, N + 1, N - 1, N // 2, N * M])
BOUNDS = st.tuples(st.integers(1, 4), st.integers(0, 5)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def table(n: tuple[int, int]) -> DimTable:
    return DimTable({"N": n, "M": (1, 3)})


def bindings(dims: DimTable) -> list[dict[str, int]]:
    ranges = [range(int(low), int(high) + 1) for low, high in (dims.bounds["N"], dims.bounds["M"])]
    return [{"N": n, "M": m} for n, m in itertools.product(*ranges)]


def at(place: Written, binding: dict[str, int]) -> int | None:
    return None if place is None else evaluate(place, binding)


@given(SIZES, PLACES, PLACES, BOUNDS)
@settings(max_examples=60)
def test_places_are_clamped_as_by_numpy(size: Dim, start: Written, stop: Written, bounds: tuple[int, int]) -> None:
    dims = table(bounds)
    places = clamped(dims, size, start, stop)
    assert places is not None
    written = as_written(dims, size, *places, 1)
    for binding in bindings(dims):
        axis = np.arange(max(evaluate(size, binding), 0))
        wanted = axis[start:stop].tolist()  # type: ignore[misc]
        first, last = [evaluate(place, binding) for place in places]
        assert 0 <= first <= last <= len(axis)
        assert axis[first:last].tolist() == wanted
        assert axis[at(written[0], binding) : at(written[1], binding)].tolist() == wanted


@given(PLACES, PLACES)
@settings(max_examples=50)
def test_places_of_one_dim_are_written_without_min_and_max(start: Written, stop: Written) -> None:
    places = clamped(DimTable(), N, start, stop)
    assert places is not None
    assert not any(getattr(place, "is_clamped", False) for place in as_written(DimTable(), N, *places, 1))


@given(SIZES, PLACES, PLACES, st.sampled_from([1, 2, 3, -1, -2, None]), BOUNDS)
@settings(max_examples=60)
def test_an_index_needs_no_condition_and_has_its_length(
    size: Dim, start: Written, stop: Written, step: int | None, bounds: tuple[int, int]
) -> None:
    graph = Graph("g")
    for name, interval in table(bounds).bounds.items():
        graph.declare_dim(name, (int(interval[0]), int(interval[1])))
    x = graph.add_input("x", TensorType(f32, (size, N, M)))
    y = index_tensor(graph, x, [SliceItem(start, stop, step)], CallSite())
    for binding in bindings(graph.dims):
        length = evaluate(size, binding)
        if length >= 0:
            assert evaluate(y.type.shape[0], binding) == len(range(length)[start:stop:step])  # type: ignore[misc]
    if size in (N, N + 1, 2 * N):  # proofs about others are not promised
        assert not graph.conditions


CASES = ["0:3", ":5", "-5:", ":-3", "2:-2", "-5:3", "4:2", "5::-1", "-3::-1", ":2:-1", ":-4:-1", "1:7:2", "-6:9:2",
         "6:", "::-2", "-9:-7", "3:1:-1", ":M", "M:", "-M:", ":M - 1", "M:M + 3", "N // 2:", ":N - 2"]  # fmt: skip


TARGETS = ("onnx", "directml", "numpy")


@pytest.mark.parametrize("target", TARGETS)
@each_row("index", CASES)
def test_open_slices_are_numpys_on_each_target(index: str, target: dmlc.TargetName) -> None:
    """The program that is printed and read again takes the targets in turn."""
    text = (
        f"model m(x: f32[N, 2], w: f32[M]) -> (y, z) {{\n y = x[{index}]\n z = -exp(x)[{index}, 0]\n return y, z\n}}\n"
    )
    program = dmlc.compile(dmlc.Source(text, name="t.dml"), target=target)
    programs = [program]
    if CASES.index(index) % 3 == TARGETS.index(target):
        programs.append(dmlc.compile(dmlc.Source(program.to_bytes("dml").decode(), name="e.dml"), target=target))
    for n, m in ((3, 2), (1, 1), (6, 4), (2, 5)):
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        if "N - 2" in index and n < 2:
            continue  # the data must not decide whether a size counts from the end
        wanted = eval(f"x[{index}]", {"x": x, "N": n, "M": m})
        for one in programs:
            found = one.run({"x": x, "w": np.zeros(m, np.float32)})
            np.testing.assert_array_equal(found["y"], wanted)
            np.testing.assert_allclose(found["z"], -np.exp(wanted[:, 0]), rtol=1e-6)


@each_row("index", [":5", "-5:", ":-3", "2:-2", "-5:3", "1:7:2", "5::-1", "-9:-7"])
def test_an_open_slice_is_one_node_of_constants(index: str) -> None:
    text = f"model m(x: f32[N, 2]) -> (y) {{\n y = x[{index}]\n return y\n}}\n"
    nodes = dmlc.compile(dmlc.Source(text), target="directml").to_onnx().graph.node
    assert [node.op_type for node in nodes] == ["Slice"]


def test_equal_slices_have_equal_sizes_and_others_say_how_they_differ() -> None:
    text = "model m(x: f32[N, 2], y: f32[N, 2]) -> (z) {{\n z = x[{}] + y[{}]\n return z\n}}\n"
    for one, other in ((":5", ":5"), (":5", "-5:"), (":-2", "2:"), ("1:-1", "2:"), ("1:-1", "1:N - 1")):
        if "N - 1" not in other:
            dmlc.compile(dmlc.Source(text.format(one, other)))
    with pytest.raises(dmlc.DmlcError, match=r"min\(N, 5\)"):
        dmlc.compile(dmlc.Source(text.format(":5", ":4")))


def test_a_slice_that_may_be_short_asks_for_the_bounds_of_its_dim() -> None:
    text = "model m(x: f32[N, 2], w: f32[4]) -> (y) {\n y = x[:4, 0] + w\n return y\n}\n"
    with pytest.raises(dmlc.DmlcError, match=r"dim N in 4\.\.1000"):
        dmlc.compile(dmlc.Source(text))
    dmlc.compile(dmlc.Source("dim N in 4..1000\n" + text))


def test_a_written_type_of_a_clamped_size_is_a_condition() -> None:
    text = "model m(x: f32[N]) -> (y: f32[5]) {\n y = x[:5]\n return y\n}\n"
    program = dmlc.compile(dmlc.Source(text))
    assert program.run({"x": np.zeros(7, np.float32)})["y"].shape == (5,)
    with pytest.raises(dmlc.DmlcError, match=r"min\(N, 5\) == 5"):
        program.run({"x": np.zeros(3, np.float32)})


def test_a_chain_of_slices_stays_short() -> None:
    graph = Graph("g")
    y = graph.add_input("x", TensorType(f32, (N,)))
    for _ in range(40):
        y = index_tensor(graph, y, [SliceItem(1, -1)], CallSite())
    assert str(y.type) == "f32[max(N - 80, 0)]"
    assert not graph.conditions


def test_a_program_of_many_slices_has_a_node_for_each() -> None:
    lines = "".join(f" v{k + 1} = v{k}[1:-1]\n" for k in range(12))
    text = f"model m(v0: f32[N, 2]) -> (y) {{\n{lines} return v12\n}}\n"
    program = dmlc.compile(dmlc.Source(text))
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Slice"] * 12
    for n in (1, 23, 24, 25, 30):
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        np.testing.assert_array_equal(program.run({"v0": x})["y"], x[12 : max(n - 12, 12)])


def test_slices_that_interleave_never_grow_without_end() -> None:
    graph = Graph("g")
    y = graph.add_input("x", TensorType(f32, (N, M)))
    for k in range(30):
        y = index_tensor(graph, y, [SliceItem(k % 5, M, 1 + k % 2)], CallSite())
    assert len(str(y.type)) < 2000
    assert all(isinstance(node.attributes, SliceAttributes) for node in graph if node.op is SLICE)
