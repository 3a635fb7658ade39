"""Inputs that may be fed to a model, and the messages for those that may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc.codegen.artifact import Signature, signature_of
from dmlc.ir import DTYPES
from dmlc.runtime.feeds import FeedChecker
from dmlc.runtime.random_feeds import random_feeds
from tests.rows import each_row


@pytest.fixture
def signature() -> Signature:
    """``x: f32[N, 8]``, ``y: i32[2 * N]``, with N in 2..6 and at least M, ``flag: bool[M]``."""
    g = dmlc.Graph("m")
    n = g.dim("N", min=2, max=6)
    x = g.input("x", "f32", ("N", 8))
    g.input("y", "i32", (n * 2,))
    g.input("flag", "bool", ("M",))
    v, _ = dmlc.top_k(x, k="M", axis=0)
    g.output("v", v)
    return signature_of(g.graph)


def good(**changes: Any) -> dict[str, Any]:
    feeds = {"x": np.zeros((3, 8), np.float32), "y": np.zeros(6, np.int32), "flag": np.zeros(2, np.bool_)}
    return {name: value for name, value in {**feeds, **changes}.items() if value is not ...}


def problems(signature: Signature, feeds: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(dmlc.DmlcError) as caught:
        FeedChecker(signature).check(feeds)
    assert caught.value.exit_code == 1
    return [(d.code.id, d.message) for d in caught.value.diagnostics]


def test_what_matches_is_passed_on_in_order(signature: Signature) -> None:
    feeds = good()
    checker = FeedChecker(signature)
    arrays = checker.check(dict(reversed(feeds.items())))
    assert list(arrays) == ["x", "y", "flag"]
    assert all(arrays[name] is feeds[name] for name in feeds)
    assert checker.binding == {"N": 3, "M": 2}


def test_names(signature: Signature) -> None:
    assert problems(signature, good(x=...)) == [("E0423", "input x is not given: it is f32[N, 8]")]
    assert problems(signature, good(flg=np.zeros(2, np.bool_))) == [("E0423", "the model has no input flg")]
    with pytest.raises(dmlc.DmlcError, match='did you mean "flag"'):
        FeedChecker(signature).check(good(flg=1))


@each_row("feeds", [None, np.zeros(3), [np.zeros(3)], "x"])
def test_feeds_are_a_dict(signature: Signature, feeds: Any) -> None:
    assert problems(signature, feeds)[0][0] == "E0423"


def test_dtypes_are_exact_for_arrays(signature: Signature) -> None:
    assert problems(signature, good(x=np.zeros((3, 8)))) == [("E0424", "input x: expected f32[N, 8], got f64[3, 8]")]
    assert problems(signature, good(y=np.zeros(6, np.int64)))[0][0] == "E0424"
    assert problems(signature, good(y=np.array(["a"] * 6)))[0] == ("E0424", "input y: expected i32[2 * N], got <U1[6]")
    assert problems(signature, good(flag=np.zeros(2, np.uint8)))[0][0] == "E0424"


def test_numbers_of_python_are_converted_where_they_fit(signature: Signature) -> None:
    arrays = FeedChecker(signature).check(good(x=[[0.1] * 8] * 3, y=(1, 2, 3, 4, 5, 6), flag=[True, False]))
    assert [a.dtype for a in arrays.values()] == [np.float32, np.int32, np.bool_]
    assert FeedChecker(signature).check(good(x=[[1] * 8] * 3))["x"].dtype == np.float32
    for wrong in ([1.5] * 6, [2**31] * 6, [-(2**31) - 1] * 6, [True] * 6, ["1"] * 6, [10**30] * 6, [None] * 6):
        assert problems(signature, good(y=wrong))[0][0] == "E0424", wrong
    assert problems(signature, good(flag=[0, 1]))[0][0] == "E0424"
    assert problems(signature, good(x=[[1.0], [1.0, 2.0]]))[0][0] == "E0425"


def test_limits_of_integers_fit() -> None:
    g = dmlc.Graph("g")
    g.output("y", g.input("x", "i8", 2))
    checker = FeedChecker(signature_of(g.graph))
    assert checker.check({"x": [-128, 127]})["x"].tolist() == [-128, 127]
    for wrong in ([-129, 0], [0, 128]):
        with pytest.raises(dmlc.DmlcError):
            checker.check({"x": wrong})


def test_other_byte_orders_and_layouts(signature: Signature) -> None:
    big = np.arange(24).reshape(3, 8).astype(">f4")
    x = FeedChecker(signature).check(good(x=big))["x"]
    assert x.dtype == np.dtype("f4")
    np.testing.assert_array_equal(x, big)
    FeedChecker(signature).check(good(x=np.zeros((8, 3), np.float32).T))


def test_shapes(signature: Signature) -> None:
    cases = [
        (good(x=np.zeros(8, np.float32)), "input x: expected f32[N, 8], got f32[8]: rank 2 is declared, 1 is given"),
        (
            good(x=np.zeros((3, 7), np.float32)),
            "input x: expected f32[N, 8], got f32[3, 7]: axis 1 has size 7, not 8",
        ),
        (
            good(y=np.zeros(5, np.int32)),
            "input y: expected i32[2 * N], got i32[5]: axis 0 has size 5, not 2 * N = 6",
        ),
        (good(x=np.zeros((7, 8), np.float32), y=np.zeros(14, np.int32)), "dim N is 7, it must be 2 to 6"),
        (good(flag=np.zeros(0, np.bool_)), "dim M is 0, it must be 1 or more"),
    ]
    for feeds, message in cases:
        assert problems(signature, feeds)[0] == ("E0425", message)


def test_a_dim_has_one_size() -> None:
    g = dmlc.Graph("g")
    g.output("z", g.input("x", "f32", ("N",)))
    g.input("y", "f32", (3, "N"))
    feeds = {"x": np.zeros(2, np.float32), "y": np.zeros((3, 4), np.float32)}
    ((code, message),) = problems(signature_of(g.graph), feeds)
    assert code == "E0425"
    assert "dim N is 2 in axis 0 of x, but 4 in axis 1 of y" in message


def test_relations_of_sizes(signature: Signature) -> None:
    assert problems(signature, good(flag=np.zeros(4, np.bool_))) == [("E0426", "M <= N does not hold: M is 4, N is 3")]
    FeedChecker(signature).check(good(flag=np.zeros(3, np.bool_)))


def test_all_mistakes_are_told_at_once(signature: Signature) -> None:
    found = problems(signature, {"x": np.zeros((3, 7), np.float32), "y": np.zeros(6), "z": 1})
    assert [code for code, _ in found] == ["E0423", "E0424", "E0423", "E0425"]


def test_a_checked_shape_is_remembered_only_while_it_is_the_same(signature: Signature) -> None:
    checker = FeedChecker(signature)
    for _ in range(2):
        checker.check(good())
    with pytest.raises(dmlc.DmlcError):
        checker.check(good(flag=np.zeros(4, np.bool_)))
    with pytest.raises(dmlc.DmlcError):
        checker.check(good(x=np.zeros((3, 8))))
    checker.check(good())
    checker.check(good(flag=np.zeros(3, np.bool_)))
    assert checker.binding == {"N": 3, "M": 3}


# --- inputs made up


def test_random_feeds_match_and_repeat(signature: Signature) -> None:
    seen = set()
    for seed in range(20):
        feeds = random_feeds(signature, seed)
        seen.add(feeds["x"].shape)
        FeedChecker(signature).check(feeds)
        again = random_feeds(signature, seed)
        assert all(np.array_equal(feeds[name], again[name]) for name in feeds)
    assert len(seen) > 1


def test_random_feeds_of_every_dtype() -> None:
    g = dmlc.Graph("g")
    for dtype in DTYPES:
        g.output(f"out {dtype}", g.input(str(dtype), dtype, (4, 5)))
    feeds = random_feeds(signature_of(g.graph), 3)
    FeedChecker(signature_of(g.graph)).check(feeds)
    assert all(np.unique(array).size > 1 for array in feeds.values())


@pytest.mark.parametrize("k", [3, 40, 700])
def test_random_sizes_keep_relations(k: int) -> None:
    g = dmlc.Graph("g")
    values, _ = dmlc.top_k(g.input("x", "f32", ("N",)), k=k)
    g.output("v", values)
    assert random_feeds(signature_of(g.graph), 0)["x"].size >= k


def test_random_sizes_that_cannot_be() -> None:
    g = dmlc.Graph("g")
    x = g.input("x", "f32", ("N",))
    g.output("y", dmlc.reshape(x, shape=(1000, 1000)))
    with pytest.raises(dmlc.DmlcError, match="bind=") as caught:
        random_feeds(signature_of(g.graph), 0)
    assert caught.value.diagnostics[0].code.id == "E0427"


@pytest.mark.parametrize(
    ("array", "help"),
    [
        (np.ones((3, 8)), "convert it, such as x.astype(np.float32)"),
        (np.ones((3, 8), np.complex128), "give its real part: x.real.astype(np.float32)"),
        (np.full((3, 8), "a"), "give an array of numbers"),
        (np.full((3, 8), None), "give an array of numbers"),
    ],
)
def test_the_help_for_a_wrong_dtype_works(array: np.ndarray, help: str) -> None:
    g = dmlc.Graph("m")
    g.output("y", g.input("x", "f32", ("N", 8)) + 1)
    with pytest.raises(dmlc.DmlcError, match="E0424") as caught:
        dmlc.compile(g).run({"x": array}, "reference")
    assert caught.value.diagnostics[0].help == help
