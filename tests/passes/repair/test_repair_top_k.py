"""top_k of a small k as searches, where DirectML's dispatch for each row is more work."""

from typing import Any

import numpy as np
import pytest
import repair_helpers as r

import dmlc
from dmlc.diagnostics import Source
from dmlc.targets import dispatch_cost
from tests.rows import each_row

RULE = "top-k-by-search"
ROWS = 64


def top_k(
    k: int, dtype: str = "f32", shape: list[Any] | None = None, *, axis: int = -1, largest: int = 1, used: str = "vi"
) -> r.onnx.ModelProto:
    shape = shape or [ROWS, 7]
    out = [k if i == axis % len(shape) else d for i, d in enumerate(shape)]
    made = r.node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)
    outs = {"v": ("v", r.KINDS[dtype], out), "i": ("i", r.KINDS["i64"], out)}
    return r.model(made, [("x", r.KINDS[dtype], shape)], [outs[name] for name in used], k=np.array([k]))


def rows_with_ties(dtype: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, (ROWS, 7)).astype(dtype)
    if x.dtype.kind == "f":
        x[::3][x[::3] == -2] = -np.inf
        x[1::3][x[1::3] == 2] = np.inf
        x[0], x[1], x[2] = -np.inf, np.inf, -0.0
        x[3, ::2] = 0.0
    else:
        info = np.iinfo(x.dtype)
        x[0], x[1] = info.min, info.max
        x[2, ::2], x[3, 1::2] = info.min, info.max
    return x


@each_row("k", [1, 2, 3, 7])
@each_row("largest", [0, 1])
def test_ties_and_infinities(k: int, largest: int) -> None:
    m = top_k(k, largest=largest, shape=[ROWS * 4, 7])
    feeds = {"x": np.tile(rows_with_ties(np.float32), (4, 1))}
    program = dmlc.compile(m, exact=True)
    assert r.fired(program) == [(RULE, "exact")] and "TopK" not in r.operators(program)
    assert not r.refusals(program) and program.placement().count("cpu") == 0
    r.same(r.run(m, feeds), program.run(feeds, "cpu"))


@pytest.mark.parametrize(("dtype", "array"), [("i32", np.int32), ("i64", np.int64), ("f16", np.float16)])
def test_dtypes(dtype: str, array: Any) -> None:
    for largest in (0, 1):
        m, feeds = top_k(3, dtype, largest=largest), {"x": rows_with_ties(array)}
        program = dmlc.compile(m)
        if dtype == "f16":
            assert (RULE, "exact") in r.fired(program)
            feeds["x"] = feeds["x"].clip(-9, 9)
        out = program.run(feeds, "cpu")
        falling = -feeds["x"] if dtype == "f16" else ~feeds["x"]  # ~ never leaves an integer's range
        order = np.argsort(falling if largest else feeds["x"], 1, "stable")
        np.testing.assert_array_equal(out["i"], order[:, :3])
        np.testing.assert_array_equal(out["v"], np.take_along_axis(feeds["x"], order[:, :3], 1))


def test_i64_beyond_32_bits() -> None:
    x = np.zeros((ROWS, 7), np.int64)
    x[:, 3], x[:, 5] = 2**31 + 5, 2**31 - 1  # these share the high half and differ in bit 31
    for k in (1, 2):
        for exact in (True, False):
            out = dmlc.compile(top_k(k, "i64"), exact=exact).run({"x": x}, "cpu")
            assert (out["i"][:, 0] == 3).all() and (out["v"][:, 0] == 2**31 + 5).all()


def test_indices_stay_apart_beside_a_nan() -> None:
    x = rows_with_ties(np.float32)
    x[::2, 0], x[::3, 4], x[5] = np.nan, np.nan, np.nan
    program = dmlc.compile(top_k(3))
    assert (RULE, "exact") in r.fired(program)
    index = program.run({"x": x}, "cpu")["i"]
    assert ((index >= 0) & (index < 7)).all()
    assert all(len(set(row)) == 3 for row in index.tolist())


def test_other_axes_and_used_results() -> None:
    x = rows_with_ties(np.float32).reshape(2, ROWS // 2, 7)
    for axis in (0, 1):
        m = top_k(2, shape=list(x.shape), axis=axis)
        feeds = {"x": x}
        r.same(r.run(m, feeds), dmlc.compile(m, exact=True).run(feeds, "cpu"))
    for used, last in (("v", "GatherElements"), ("i", "Concat")):
        m = top_k(2, used=used)
        program = dmlc.compile(m)
        assert r.operators(program)[-1] == last
        r.same(r.run(m, {"x": x.reshape(ROWS, 7)}), program.run({"x": x.reshape(ROWS, 7)}, "cpu"))


def test_a_program_of_the_language() -> None:
    text = "model t(x: f32[64, 7]) -> (v, i) {\n    v, i = top_k(x, k=2, order=smallest)\n    return v, i\n}\n"
    program = dmlc.compile(Source("t.dml", text))
    assert r.fired(program) == [(RULE, "exact")]
    feeds = {"x": rows_with_ties(np.float32)}
    r.same(program.run(feeds, "reference"), program.run(feeds, "cpu"))
    assert program.run(feeds, "cpu")["i"].dtype == np.uint32


@pytest.mark.parametrize("shape", [[4, 7], [1, 1000], ["N", 7], [64, "N"]])
def test_where_top_k_is_less_work_or_may_be(shape: list[Any]) -> None:
    program = r.left_alone(top_k(3, shape=shape), RULE)
    assert r.operators(program) == ["TopK"]
    (reason,) = [remark.reason() for remark in program.remarks if remark.rule == RULE]
    assert "us," in reason or "dynamic size" in reason


def test_bounds_decide() -> None:
    text = "dim N in {}..100000\nmodel t(x: f32[N, 7]) -> (i) {{\n    _, i = top_k(x, k=2)\n    return i\n}}\n"
    assert RULE not in dict(r.fired(dmlc.compile(Source("t.dml", text.format(1)))))
    assert RULE in dict(r.fired(dmlc.compile(Source("t.dml", text.format(32)))))


def test_near_misses() -> None:
    assert r.operators(r.left_alone(top_k(9, shape=[4096, 16]), RULE)) == ["TopK"]
    assert r.operators(r.left_alone(top_k(2, "i8"), RULE))
    assert r.operators(r.left_alone(top_k(2), RULE, target="cpu")) == ["TopK"]
    assert r.operators(r.left_alone(top_k(2), RULE, skip_rules=[RULE])) == ["TopK"]


def test_the_costs_say_that_they_are_assumed() -> None:
    cost = dispatch_cost()
    assert "assumed" in cost.source
    assert cost.microseconds(2, 0) == 2 * cost.dispatch_us
    assert cost.microseconds(0, cost.bytes_per_us) == 1
