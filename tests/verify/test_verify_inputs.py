"""Inputs: the same for the same seed, of the declared types and sizes, and hard on rewrites."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc.diagnostics import Source
from dmlc.ir import symbol
from dmlc.text import load
from dmlc.verifying import InputSpec, Interface, NoInputs
from dmlc.verifying.graph_subject import GraphSubject
from dmlc.verifying.inputs import SIZES, Feeds
from dmlc.verifying.patterns import PATTERNS
from tests.rows import each_row

COUNT = len(PATTERNS)
KINDS = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def breaking_inputs(interface: Interface, count: int, seed: int) -> list[Feeds]:
    chosen = list(islice(interface.bindings(seed), SIZES))
    chosen += interface.empty_bindings(chosen[0])[:1]
    return [interface.feeds(chosen, number, seed) for number in range(count)]


def feeds(kind: str, shape: tuple[Any, ...] = (6, 5), count: int = COUNT, seed: int = 0, **spec: Any) -> list[Any]:
    interface = Interface((InputSpec("x", kind, shape, **spec),))
    return [found["x"] for found in breaking_inputs(interface, count, seed)]


def interface_of(text: str) -> Interface:
    return GraphSubject(load(Source("m.dml", text))).interfaces()[0]


@each_row("kind", [*KINDS, "bool", "string", "bfloat16"])
@each_row("shape", [(), (1,), (6, 5), (0, 3), (2, 1, 3)], ids=str)
def test_types_and_shapes(kind: str, shape: tuple[int, ...]) -> None:
    for array in feeds(kind, shape, 2 * COUNT):
        assert array.shape == shape
        assert array.dtype == {"string": object, "bfloat16": np.float32}.get(
            kind, np.dtype(kind) if kind in KINDS else bool
        )


def test_the_same_seed_gives_the_same_and_more_only_adds() -> None:
    for kind in KINDS:
        first, again = feeds(kind, seed=3), feeds(kind, seed=3, count=2 * COUNT)
        assert all(np.array_equal(a, b, equal_nan=kind[0] == "f") for a, b in zip(first, again, strict=False))
        other = feeds(kind, seed=4)
        assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_floats_have_what_breaks_rewrites(kind: str) -> None:
    limits = np.finfo(kind)
    arrays = feeds(kind)
    normal = arrays[0]
    assert np.isfinite(normal).all()
    assert len(np.unique(normal)) > 20
    found = {
        "all equal": any(len(np.unique(x)) == 1 for x in arrays),
        "ties of the largest": any(np.isfinite(x).all() and (x == x.max()).sum() > 1 for x in arrays),
        "NaN in several places": any(1 < np.isnan(x).sum() < x.size for x in arrays),
        "NaN first": any(np.isnan(x.flat[0]) for x in arrays),
        "infinities": any(np.isposinf(x).any() and np.isneginf(x).any() for x in arrays),
        "a row of -infinity": any(np.isneginf(x).all(axis=-1).any() for x in feeds(kind, (40, 5))),
        "-0 beside 0": any((np.signbit(x[x == 0])).any() and (~np.signbit(x[x == 0])).any() for x in arrays),
        "extremes": any((x == limits.max).any() and (x == limits.min).any() for x in arrays),
        "denormals": any(((x != 0) & (np.abs(x) < limits.tiny)).any() for x in arrays),
        "a zero row": any((x == 0).all(axis=1).any() and x.any() for x in feeds(kind, (40, 3))),
        "a large mean": any(
            np.isfinite(x).all() and x.max() < 6e4 and abs(x.mean(dtype=float)) > 20 * x.std(dtype=float) > 0
            for x in map(np.float64, arrays)
        ),
        "small integers": any(
            np.isfinite(x).all() and (x == np.rint(x)).all() and np.abs(x).max() <= 3 for x in arrays
        ),
        "negatives only": any((x < 0).all() and np.isfinite(x).all() for x in arrays),
    }
    with np.errstate(all="ignore"):
        found["exponentials overflow"] = any(
            np.isfinite(x).all() and np.isinf(np.exp(x)).sum() > 1 and np.abs(x).max() < 3000 for x in arrays
        )
        found["badly scaled"] = any(
            np.isfinite(x).all()
            and (s := np.abs(x[x != 0])).size
            and s.min() > 1e-13
            and 1e3 < s.max() / s.min() < 1e30
            for x in map(np.float64, arrays)
        )
    assert all(found.values()), [name for name, there in found.items() if not there]


@each_row("kind", [k for k in KINDS if "int" in k])
def test_integers_have_what_breaks_rewrites(kind: str) -> None:
    limits = np.iinfo(kind)
    arrays = feeds(kind)
    assert any((x == limits.max).any() and (x == limits.min).any() for x in arrays)
    assert any(len(np.unique(x)) == 1 and x.flat[0] for x in arrays)
    assert any((x % 2 != 0).all() for x in arrays)
    if limits.bits < 64:
        near = [x for x in arrays if int(x.astype(np.int64).sum()) > limits.max and (np.abs(x) < limits.max).all()]
        assert near


def test_indices_and_divisors() -> None:
    for array in feeds("int64", limit=3, count=2 * COUNT):
        assert ((array >= 0) & (array < 3)).all()
    assert all((array != 0).all() for array in feeds("int32", nonzero=True))
    assert all((array == 1).all() for array in feeds("int32", value=1))
    text = """model m(t: f32[5, 2], i: u32[N], d: i32[N]) -> (a, b) {
    a = gather(t, i, axis=0)
    b = onnx.Div(d, d)
    return a, b
}
"""
    interface = interface_of(text)
    specs = {spec.name: spec for spec in interface.inputs}
    assert specs["i"].limit == 5
    assert specs["d"].nonzero
    assert interface.widest is not None


@pytest.mark.parametrize(("axes", "one_place"), [((1, 0), True), ((0, 1), True), ((0, 0), False)])
def test_an_index_into_two_things_fits_both(axes: tuple[int, int], one_place: bool) -> None:
    text = """dim K in 0..7
model m(i: u64[K, 1], v: u64[K, 1]) -> (a, b) {
    a = gather_elements(v, i, axis=%d)
    b = scatter_elements(v, i, v, axis=%d)
    return a, b
}
"""
    found = breaking_inputs(interface_of(text % axes), 2 * COUNT, 0)
    most = max(int(each["i"].max()) for each in found if each["i"].size)
    assert (most == 0) is one_place  # axis 0 has K of them


def test_what_divides_and_has_one_place_is_negative_or_nothing() -> None:
    text = """model m(i: %s[3], v: %s[1]) -> (r) {
    r = v // i + gather(v, i)
    return r
}
"""
    for found in breaking_inputs(interface_of(text % ("i64", "i64")), COUNT, 0):
        assert (found["i"] == -1).all()
    with pytest.raises(NoInputs, match="input i divides and is an index into one place, but no uint64"):
        breaking_inputs(interface_of(text % ("u64", "u64")), COUNT, 0)


def test_dims_are_bound_by_name_within_their_bounds() -> None:
    text = """dim A in 3..5
dim B in 2..9
model m(x: f32[A, B], y: f32[B, A + 1]) -> (y2) {
    return y * 2
}
"""
    sizes = set()
    for found in breaking_inputs(interface_of(text), 2 * COUNT, 0):
        a, b = found["x"].shape
        assert found["y"].shape == (b, a + 1)
        assert 3 <= a <= 5
        assert b >= 2
        sizes.add((a, b))
    assert len(sizes) >= 3


@pytest.mark.parametrize(("high", "fed"), [(8, True), (4096, True), (4097, False)])
def test_dims_are_as_large_as_they_may_be_where_that_is_little(high: int, fed: bool) -> None:
    interface = interface_of(f"dim N in 1..{high}\nmodel m(x: f32[N, 8]) -> (y) {{\n    return x + 1\n}}\n")
    sizes = {found["x"].shape[0] for found in breaking_inputs(interface, COUNT, 0)}
    assert (max(sizes) == high) == fed
    assert 1 in sizes and 2 in sizes


def test_conditions_between_sizes_are_kept() -> None:
    interface = interface_of("model m(x: f32[N]) -> (v, i) {\n    v, i = top_k(x, k=7)\n    return v, i\n}\n")
    assert all(found["x"].shape[0] >= 7 for found in breaking_inputs(interface, 10, 0))
    halves = interface_of("model m(x: f32[N]) -> (y) {\n    return reshape(x, shape=[N // 3, 3])\n}\n")
    assert all(found["x"].shape[0] % 3 == 0 for found in breaking_inputs(halves, 10, 0))


def test_a_dim_from_zero_is_empty_once() -> None:
    interface = interface_of("dim N in 0..4\nmodel m(x: f32[N, 2]) -> (y) {\n    return x + 1\n}\n")
    sizes = [found["x"].shape[0] for found in breaking_inputs(interface, COUNT, 0)]
    assert 0 in sizes
    assert sum(size == 0 for size in sizes) < COUNT / 2


def test_sizes_that_no_number_keeps() -> None:
    relation = interface_of("model m(x: f32[N]) -> (v, i) {\n    v, i = top_k(x, k=7)\n    return v, i\n}\n").conditions
    bounded = Interface((InputSpec("x", "float32", (symbol("N"),)),), {"N": (1, 3)}, relation)
    with pytest.raises(NoInputs, match="7 <= N"):
        breaking_inputs(bounded, 1, 0)


def test_operands_get_different_patterns_in_later_rounds() -> None:
    interface = Interface(tuple([InputSpec(name, "float32", (30,)) for name in "ab"]))
    found = breaking_inputs(interface, 3 * COUNT, 0)
    assert not any(np.array_equal(f["a"], f["b"]) for f in found[:1])
    nan = [f for f in found if np.isnan(f["a"]).any() or np.isnan(f["b"]).any()]
    assert nan
    assert not any(np.isinf(f["a"]).any() or np.isinf(f["b"]).any() for f in nan)


def test_no_index_is_fed_where_there_is_no_place() -> None:
    text = """dim M in %s
model m(x: f32[2, M], i: i64[3]) -> (y) {
    y = gather(x, i, axis=1)
    return y
}
"""
    sizes = {found["x"].shape[1] for found in breaking_inputs(interface_of(text % "0..4"), COUNT, 0)}
    assert sizes and 0 not in sizes
    with pytest.raises(NoInputs, match="an index into an axis without elements"):
        breaking_inputs(interface_of(text % "0..0"), COUNT, 0)


def test_an_index_of_rank_0_is_an_array_like_others() -> None:
    text = "model m(x: i64[3, 2], i: i32[]) -> (y) {\n    return gather(x, i, axis=0)\n}\n"
    assert dmlc.compile(dmlc.Source(text)).verify(inputs=40).status == "equal"
