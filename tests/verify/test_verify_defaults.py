"""Inputs with a default: every one is overridden, by values that the original accepts."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_pairs import verify_models
from onnx import parser

import dmlc
from dmlc.runtime.runnable import RunFailed
from dmlc.verifying.inputs import Default
from dmlc.verifying.overrides import candidates, find_overrides
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("sessions_here")

HEAD = '<ir_version: 8, opset_import: ["":17]> g '
#: Models whose inputs but the first have a default: one operator each, or more where what it tells matters.
MODELS = {
    "Reshape and a sum": "(float[3,4] x, int64[2] s) => (float[?] y) <int64[2] s={12,1}, int64[1] a={1}>"
    "{ r = Reshape(x, s) y = ReduceSum<keepdims=0>(r, a) }",
    "Reshape": "(float[3,4] x, int64[2] s) => (int64[2] y) <int64[2] s={12,1}> { r = Reshape(x, s) y = Shape(r) }",
    "Reshape to any rank": "(float[3,4] x, int64[K] s) => (float[?] y) <int64[1] s={12}> { y = Reshape(x, s) }",
    "TopK": "(float[3,8] x, int64[1] k) => (float[?,?] y) <int64[1] k={2}> { y, i = TopK(x, k) }",
    "Slice": "(float[3,8] x, int64[1] s, int64[1] e) => (float[?,?] y) <int64[1] s={1}, int64[1] e={3},"
    " int64[1] a={1}> { y = Slice(x, s, e, a) }",
    "Slice by axes and steps": "(float[3,8] x, int64[1] a, int64[1] t) => (float[?,?] y) <int64[1] s={0},"
    " int64[1] e={3}, int64[1] a={1}, int64[1] t={1}> { y = Slice(x, s, e, a, t) }",
    "Split": "(float[3,8] x, int64[2] s) => (float[?,?] y) <int64[2] s={3,5}> { y, z = Split<axis=1>(x, s) }",
    "Range": "(float[8] x, int64 s, int64 l, int64 d) => (int64[?] y) <int64 s={0}, int64 l={5}, int64 d={1}>"
    "{ y = Range(s, l, d) }",
    "Range of floats": "(float[8] x, float l) => (float[?] y) <float s={0}, float l={5}, float d={1}>"
    "{ y = Range(s, l, d) }",
    "ConstantOfShape": "(float[8] x, int64[2] s) => (float[?,?] y) <int64[2] s={2,3}> { y = ConstantOfShape(s) }",
    "OneHot": "(int64[4] x, int64 d) => (float[?,?] y) <int64 d={6}, float[2] v={0,1}> { y = OneHot(x, d, v) }",
    "Resize by scales": "(float[1,1,4,4] x, float[4] s) => (float[?,?,?,?] y) <float[4] s={1,1,2,2}>"
    '{ y = Resize<mode="nearest">(x, , s) }',
    "Resize to sizes": "(float[1,1,4,4] x, int64[4] s) => (float[?,?,?,?] y) <int64[4] s={1,1,8,8}>"
    '{ y = Resize<mode="nearest">(x, , , s) }',
    "Unsqueeze": "(float[3,4] x, int64[1] a) => (float[?,?,?] y) <int64[1] a={0}> { y = Unsqueeze(x, a) }",
    "Squeeze": "(float[1,3,1] x, int64[1] a) => (int64[?] y) <int64[1] a={0}> { z = Squeeze(x, a) y = Shape(z) }",
    "Expand": "(float[1,4] x, int64[2] s) => (float[?,?] y) <int64[2] s={3,4}> { y = Expand(x, s) }",
    "ReduceSum": "(float[3,4] x, int64[1] a) => (float[?] y) <int64[1] a={1}> { y = ReduceSum<keepdims=0>(x, a) }",
    "Tile": "(float[3,4] x, int64[2] r) => (float[?,?] y) <int64[2] r={1,2}> { y = Tile(x, r) }",
    "Pad": "(float[3,4] x, int64[4] p, float v) => (float[?,?] y) <int64[4] p={0,1,0,1}, float v={0}>"
    "{ y = Pad(x, p, v) }",
    "CumSum": "(float[3,4] x, int64 a) => (float[3,4] y) <int64 a={1}> { y = CumSum(x, a) }",
    "If": "(float[3] x, bool c) => (float[3] y) <bool c={1}> { y = If(c)<then_branch=t () => (float[3] a)"
    " {a = Neg(x)}, else_branch=e () => (float[3] b) {b = Abs(x)}> }",
    "Loop": "(float[3] x, int64 n) => (float[3] y) <int64 n={3}, bool c={1}> { y = Loop(n, c, x)<body=b"
    " (int64 i, bool d, float[3] v) => (bool e, float[3] w) {e = Identity(d) w = Add(v, v)}> }",
    "a shape inside of a Loop": "(float[3,4] x, int64[2] s) => (float[?,?] y) <int64 n={1}, bool c={1},"
    " int64[2] s={4,3}> { z, y = Loop(n, c, s)<body=b (int64 i, bool d, int64[2] v) => (bool e, int64[2] w,"
    " float[?,?] o) {e = Identity(d) w = Identity(v) o = Reshape(x, v)}> }",
    "a shape through arithmetic": "(float[3,4] x, int64[1] h) => (float[?,?] y) <int64[1] h={6}, int64[1] m={-1}>"
    "{ s = Concat<axis=0>(h, m) y = Reshape(x, s) }",
    "two shapes that agree": "(float[3,4] x, int64[2] s, int64[2] t) => (float[?,?] y) <int64[2] s={12,1},"
    " int64[2] t={12,1}> { a = Reshape(x, s) b = Reshape(x, t) c = Transpose(b) y = Gemm(c, a) }",
    "Gather": "(float[3,4] x, int64[2] i) => (float[2,4] y) <int64[2] i={0,2}> { y = Gather(x, i) }",
    "integers as data": "(int64[4] x, int64[4] w) => (int64[4] y) <int64[4] w={0,2,5,6}> { y = Add(x, w) }",
    "floats": "(float[3,4] x, float[4] w) => (float[3,4] y) <float[4] w={1,2,5,6}> { y = Mul(x, w) }",
    "floats of a free size": "(float[3,4] x, float[N] w) => (float[3,4] y) <float[4] w={1,2,5,6}> { y = Mul(x, w) }",
    "truth values as data": "(float[3,4] x, bool[4] w) => (float[3,4] y) <bool[4] w={0,1,1,0}, float z={0}>"
    "{ y = Where(w, x, z) }",
}


def read(text: str) -> onnx.ModelProto:
    return parser.parse_model(HEAD + text)


def folded(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model that takes the default of an input for a fact; the input is still there."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    constant = out.graph.initializer.add()
    constant.CopyFrom(next(tensor for tensor in out.graph.initializer if tensor.name == name))
    constant.name = f"{name} as it was"
    for node in out.graph.node:
        for place, read_name in enumerate(node.input):
            if read_name == name:
                node.input[place] = constant.name
    return out


CASES = [(case, info.name) for case, text in MODELS.items() for info in list(read(text).graph.input)[1:]]


@each_row(("case", "name"), CASES)
def test_a_default_taken_for_a_fact_is_found(case: str, name: str) -> None:
    model = read(MODELS[case])
    verdict = verify_models(model, folded(model, name), inputs=4)
    assert verdict.status == "different", verdict.to_text()
    assert not any(name in note.split() for note in verdict.notes)


@pytest.mark.parametrize("case", MODELS)
def test_the_model_itself_is_equal(case: str) -> None:
    """Whatever it accepts; no input is skipped because of values that it does not."""
    model = read(MODELS[case])
    verdict = verify_models(model, model, inputs=10)
    assert (verdict.status, verdict.skipped) == ("equal", ()), verdict.to_text()


@each_row("case", MODELS)
def test_few_inputs_are_enough(case: str) -> None:
    model = read(MODELS[case])
    name = model.graph.input[1].name
    if name in {default.name for default in _defaults(model)}:
        assert verify_models(model, folded(model, name), inputs=1).status == "different"


def _defaults(model: onnx.ModelProto) -> list[Default]:
    from dmlc.verifying.onnx_defaults import defaults

    return defaults(model, None)


def test_before_ir_version_4_nothing_is_overridden() -> None:
    model = read(MODELS["Reshape"])
    model.ir_version = 3
    assert verify_models(model, folded(model, "s")).status == "equal"


def test_an_artifact_that_fails_where_the_original_runs() -> None:
    model = read(MODELS["Reshape and a sum"])
    broken = (
        folded(model, "a") if False else read(MODELS["Reshape and a sum"].replace("Reshape(x, s)", "Reshape(x, f)"))
    )
    broken.graph.initializer.add().CopyFrom(onnx.numpy_helper.from_array(np.array([12, 1]), "f"))
    verdict = verify_models(model, broken)
    assert verdict.status == "different"
    gone = read(MODELS["Reshape"])
    del gone.graph.input[1]
    verdict = verify_models(read(MODELS["Reshape"]), gone)
    assert verdict.status == "different"
    assert "the result fails" in verdict.reason


def test_what_nothing_is_found_for_is_noted() -> None:
    model = read("(float[1] x, int64[1] s) => (float[1] y) <int64[1] s={1}> { y = Split(x, s) }")
    verdict = verify_models(model, model)
    assert verdict.status == "equal"
    assert verdict.notes == ("the original ran with no other value of s that was tried",)
    assert "note: the original ran" in verdict.to_text()


def test_types_that_numpy_lacks_keep_their_default() -> None:
    model = read(
        "(float[3] x, bfloat16[3] w) => (float[3] y) { v = Cast<to=1>(w) y = Add(x, v) }",
    )
    weight = onnx.helper.make_tensor("w", onnx.TensorProto.BFLOAT16, [3], [1.0, 2.0, 3.0])
    model.graph.initializer.append(weight)
    verdict = verify_models(model, model)
    assert verdict.status == "equal", verdict.to_text()


@pytest.mark.parametrize("case", ["floats", "integers as data", "truth values as data", "Gather", "If", "Loop", "Pad"])
def test_compiled_models_with_defaults_are_verified(case: str) -> None:
    assert dmlc.compile(read(MODELS[case])).verify(24).ok


# --- candidates


ARRAYS = st.one_of(
    st.lists(st.integers(-9, 20), min_size=0, max_size=5).map(lambda v: np.array(v, np.int64)),
    st.integers(-(2**31), 2**31 - 1).map(lambda v: np.array(v, np.int32)),
    st.lists(st.integers(0, 255), min_size=1, max_size=12).map(lambda v: np.array(v, np.uint8)),
    st.lists(st.floats(-8, 8, width=16), min_size=0, max_size=5).map(lambda v: np.array(v, np.float16)),
    st.lists(st.booleans(), min_size=1, max_size=4).map(lambda v: np.array(v, bool)),
    st.lists(st.sampled_from(["", "a", "bb"]), min_size=1, max_size=4).map(lambda v: np.array(v, object)),
)


@settings(max_examples=75)
@given(ARRAYS, st.booleans())
def test_candidates_are_of_the_dtype_and_shape(value: Any, is_free: bool) -> None:
    default = Default("s", value, is_free)
    made = [list(candidates(default, np.random.default_rng(5))) for _ in range(2)]
    for first, again in zip(*made, strict=True):
        assert first.dtype == value.dtype
        assert first.ndim == value.ndim
        assert is_free or first.shape == value.shape
        np.testing.assert_array_equal(first, again)


def test_what_changes_nothing_counts_as_no_override_while_something_else_does() -> None:
    """-1 for a size that is known gives the same; [4, 3] does not."""

    def run(feeds: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"y": np.arange(12).reshape(feeds.get("s", np.array([3, 4])))}
        except ValueError as error:
            raise RunFailed(str(error)) from None

    found = find_overrides(
        [Default("s", np.array([3, 4]))], run, lambda a, b: a["y"].shape != b["y"].shape, seed=0, budget=100
    )
    assert found.missing == []
    assert len(found.accepted) > 2
    assert all(np.prod(feeds["s"]) in (12, -12) or 0 in feeds["s"] for feeds in found.accepted)
    assert len({run(feeds)["y"].shape for feeds in found.accepted} | {(3, 4)}) == len(found.accepted) + 1


def test_a_process_that_ends_is_not_asked_again() -> None:
    asked = []

    def run(feeds: dict[str, Any]) -> dict[str, Any]:
        asked.append(feeds)
        if feeds:
            raise RunFailed("ended", ended=True)
        return {}

    found = find_overrides([Default("s", np.array([3, 4]))], run, lambda a, b: True, seed=0, budget=100)
    assert (found.accepted, found.missing, len(asked)) == ([], ["s"], 2)
