"""Rewrites that keep what the class promises pass, and what differs without being wrong is reported by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from kernel_faults import is_fault_of_layer_norm, sums_wrap
from model_pairs import BF16, F16, F32, I32, U8, chain, floats, ints, model, node, reductions
from onnx import ModelProto
from test_verify_wrong_rewrites import normalized

import dmlc
from dmlc.verifying import Verdict, verify_models
from dmlc.verifying.check import verify_sides
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.judge import Judge
from dmlc.verifying.onnx_subject import OnnxSubject
from dmlc.verifying.subject import Subject

pytestmark = pytest.mark.usefixtures("sessions_here")


def statuses(verdict: Verdict) -> set[str]:
    return {status for output in verdict.outputs for status, _ in output.counts}


def softmax_by_hand(*, shifted: bool, dtype: int = F32) -> ModelProto:
    nodes = [
        node("ReduceMax", ["x", "axes"], ["m"]),
        node("Sub", ["x", "m"], ["d"]),
        node("Exp", ["d" if shifted else "x"], ["e"]),
        node("ReduceSum", ["e", "axes"], ["s"]),
        node("Div", ["e", "s"], ["y"]),
    ]
    return model(*nodes[0 if shifted else 2 :], x=(4, 8), dtype=dtype, constants={"axes": ints(1)})


def layer_norm() -> ModelProto:
    constants = {"scale": np.ones(8, np.float32)}
    return model(node("LayerNormalization", ["x", "scale"], ["y"], axis=1, epsilon=1e-5), x=(4, 8), constants=constants)


RIGHT: dict[str, tuple[ModelProto, ModelProto]] = {
    "sums are merged": (
        reductions("ReduceSum", (1,), (0,), x=(5, 9)),
        reductions("ReduceSum", (0, 1), x=(5, 9)),
    ),
    "means are merged": (
        reductions("ReduceMean", (1,), (0,), x=("N", 9)),
        reductions("ReduceMean", (0, 1), x=("N", 9)),
    ),
    "f16 means are merged": (
        reductions("ReduceMean", (1,), (0,), x=(4, 9), dtype=F16),
        reductions("ReduceMean", (0, 1), x=(4, 9), dtype=F16),
    ),
    "int32 sums are merged": (
        reductions("ReduceSum", (1,), (0,), x=(4, 9), dtype=I32),
        reductions("ReduceSum", (0, 1), x=(4, 9), dtype=I32),
    ),
    "maxima are merged": (
        reductions("ReduceMax", (1,), (0,), x=(4, 9)),
        reductions("ReduceMax", (0, 1), x=(4, 9)),
    ),
    "maxima of roots are merged": (
        model(
            node("Sqrt", ["x"], ["r"]),
            node("ReduceMax", ["r", "a"], ["s"]),
            node("ReduceMax", ["s", "b"], ["y"]),
            x=(4, 9),
            constants={"a": ints(1), "b": ints(0)},
        ),
        model(node("Sqrt", ["x"], ["r"]), node("ReduceMax", ["r", "a"], ["y"]), x=(4, 9), constants={"a": ints(0, 1)}),
    ),
    "softmax written out": (softmax_by_hand(shifted=True), chain(("Softmax", {"axis": 1}), x=(4, 8))),
    "f16 softmax written out": (
        softmax_by_hand(shifted=True, dtype=F16),
        chain(("Softmax", {"axis": 1}), x=(4, 8), dtype=F16),
    ),
    "layer norm written out": (normalized("inside"), layer_norm()),
    "sum of squares": (
        model(
            node("Mul", ["x", "x"], ["s"]),
            node("ReduceSum", ["s", "a"], ["y"]),
            x=(4, 9),
            constants={"a": ints(1)},
        ),
        reductions("ReduceSumSquare", (1,), x=(4, 9)),
    ),
    "log-sum-exp without a shift": (
        model(
            node("Exp", ["x"], ["e"]),
            node("ReduceSum", ["e", "a"], ["s"]),
            node("Log", ["s"], ["y"]),
            x=(4, 9),
            constants={"a": ints(1)},
        ),
        reductions("ReduceLogSumExp", (1,), x=(4, 9)),
    ),
    "logarithm of a sum": (
        model(node("ReduceSum", ["x", "a"], ["s"]), node("Log", ["s"], ["y"]), x=(3, 8), constants={"a": ints(1)}),
        reductions("ReduceLogSum", (1,), x=(3, 8)),
    ),
    "cancelled log-sum-exp": (
        model(node("ReduceLogSumExp", ["x"], ["s"]), node("Sub", ["x", "s"], ["y"]), x=(1, 5)),
        chain(("LogSoftmax", {"axis": 1}), x=(1, 5)),
    ),
    "argmax of a sum in another order": (
        model(
            node("ReduceSum", ["x", "a"], ["s"], keepdims=0),
            node("ArgMax", ["s"], ["y"], axis=0),
            x=(6, 64),
            constants={"a": ints(1)},
        ),
        model(
            node("MatMul", ["x", "ones"], ["s"]),
            node("ArgMax", ["s"], ["y"], axis=0),
            x=(6, 64),
            constants={"ones": np.ones(64, np.float32)},
        ),
    ),
    "casts of what no integer holds": (
        chain(("Cast", {"to": U8}), x=(3, 4)),
        chain(("Cast", {"to": I32}), ("Cast", {"to": U8}), x=(3, 4)),
    ),
    "bfloat16": (
        chain(("Cast", {"to": F32}), "Neg", "Neg", ("Cast", {"to": BF16}), dtype=BF16),
        chain("Identity", dtype=BF16),
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_right_rewrites_pass(case: str) -> None:
    verdict = verify_models(*RIGHT[case], seed=list(RIGHT).index(case) % 2)
    assert verdict.ok or is_fault_of_layer_norm(verdict), verdict.to_text()
    assert verdict.ran == 24


@pytest.mark.parametrize(
    ("case", "status"),
    [
        ("maxima are merged", "unspecified"),
        ("int32 sums are merged", "overflowed"),
        ("log-sum-exp without a shift", "overflowed"),
        ("means are merged", "overflowed"),
    ],
)
def test_what_is_excused_is_said(case: str, status: str) -> None:
    verdict = verify_models(*RIGHT[case])
    if case.startswith("int32") and sums_wrap():  # in any order
        assert verdict.status == "equal"
        return
    assert verdict.status == "within"
    (output,) = verdict.outputs
    assert output.status == status
    assert output.reasons
    assert all(reason in verdict.to_text() for reason, _ in output.reasons)


def test_a_softmax_without_a_shift_is_of_class_range() -> None:
    """Overflow is excused, but beside a fed infinity 0 becomes NaN."""
    pair = softmax_by_hand(shifted=False), softmax_by_hand(shifted=True)
    assert verify_models(*pair, inputs=7).outputs[0].status == "overflowed"
    verdict = verify_models(*pair)
    assert verdict.outputs[0].found is not None
    assert verdict.outputs[0].found.pattern == "infinities"
    assert verify_models(*pair, allowed="range").ok


@pytest.mark.parametrize("case", ["sums are merged", "softmax written out", "layer norm written out"])
def test_exact_takes_no_rounding(case: str) -> None:
    assert verify_models(*RIGHT[case], allowed="exact").status == "different"


def test_exact_takes_what_is_the_same() -> None:
    original = chain(("Transpose", {"perm": [1, 0]}), ("Transpose", {"perm": [1, 0]}))
    verdict = verify_models(original, chain("Identity"), allowed="exact")
    assert verdict.status == "equal"
    assert verdict.allowed == ("exact",)


def test_zeros_of_another_sign_are_counted() -> None:
    shifted = model(node("Add", ["x", "c"], ["y"]), constants={"c": floats(0.0)})
    verdict = verify_models(chain("Identity"), shifted, allowed="exact")
    assert verdict.status == "equal"
    assert verdict.outputs[0].zeros
    assert "of another sign" in verdict.to_text()


def test_random_numbers_are_no_difference() -> None:
    noise = model(node("RandomNormalLike", ["x"], ["r"]), node("Neg", ["x"], ["y"]), outputs=("r", "y"))
    verdict = verify_models(noise, noise)
    assert verdict.ok
    assert statuses(verdict) == {"exact", "not deterministic"}
    only = model(node("RandomNormalLike", ["x"], ["y"]))
    assert verify_models(only, only).status == "not verified"


class LeftoverSide(OnnxSubject):
    """A model that adds what the memory held before: the numbers of the last run on others."""

    last = other = 0.0
    runs = Subject.runs  # one after the other

    def run(self, feeds: Feeds) -> dict[str, Any]:
        own = float(np.nansum(feeds["x"]))
        if own != self.last:
            self.last, self.other = own, self.last
        return {name: value + np.float32(self.other) for name, value in super().run(feeds).items()}


def test_memory_that_nothing_wrote_is_no_difference() -> None:
    """The original gives the same twice in a row, and other numbers after a run on others."""
    exp = chain("Exp")
    verdict = verify_sides(lambda: LeftoverSide(exp), lambda: OnnxSubject(exp), inputs=1, seed=0, allowed="exact")
    assert verdict.status == "not verified"
    assert statuses(verdict) - {"exact"} == {"not deterministic"}
    assert "other numbers each time it runs" in verdict.to_text()
    wrong = verify_sides(lambda: OnnxSubject(exp), lambda: LeftoverSide(exp), inputs=1, seed=0, allowed="exact")
    assert wrong.status == "different"


class MovedSide(OnnxSubject):
    """A model whose numbers ONNX Runtime's optimizer moves."""

    def run_optimized(self, feeds: Feeds, without: Sequence[str] = ()) -> dict[str, Any]:
        return {name: value * np.float32(1.1) for name, value in self.run(feeds).items()}


@pytest.mark.parametrize(("status", "times"), [("within", 2), ("overflowed", 6), ("different", 1)])
def test_what_the_spread_of_the_original_explains_is_asked_twice(
    status: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    exp, asked = chain("Exp"), []
    monkeypatch.setattr(Judge, "judge", lambda *_: asked.append(1) or (status, ""))
    verdict = verify_sides(lambda: MovedSide(exp), lambda: OnnxSubject(exp), inputs=6, seed=0, allowed="exact")
    assert verdict.ok and len(asked) == times
    assert bool(verdict.notes) == (status == "different")


def test_a_nan_in_the_maximum_of_a_normalizer_is_unspecified() -> None:
    original = chain(("Normalizer", {"norm": "MAX", "domain": "ai.onnx.ml"}))
    original.opset_import.add(domain="ai.onnx.ml", version=1)
    verdict = verify_models(original, dmlc.compile(original, target="directml").to_onnx(), inputs=12)
    assert verdict.ok
    assert "a NaN reaches normalizer in both models" in verdict.to_text()


def test_what_left_the_range_beside_what_rounding_moves() -> None:
    """Some elements of one output are infinite, and others move as far as the original's own do."""
    minus = model(
        node("ReduceLogSumExp", ["x", "a"], ["s"]), node("Sub", ["x", "s"], ["y"]), x=(2, 4), constants={"a": ints(1)}
    )
    soft = model(node("LogSoftmax", ["x"], ["y"], axis=1), x=(2, 4))
    verdict = verify_models(minus, soft, inputs=8)
    assert verdict.ok, verdict.to_text()
    wrong = model(node("LogSoftmax", ["x"], ["l"], axis=1), node("Abs", ["l"], ["y"]), x=(2, 4))
    assert verify_models(minus, wrong, inputs=8).status == "different"
