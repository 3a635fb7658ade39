"""Scans whose runs are independent: positive, near-miss and numerical tests of ``runs-together``."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

import dmlc
from tests import kit

BODY = "next = Identity (all) s = Sub (all, one) d = ReduceSumSquare <axes = [1], keepdims = 0> (s)"
FEEDS = {name: np.random.default_rng(0).standard_normal(shape).astype("f4") for name, shape in
         {"x": (3, 2), "w": (5, 2), "c": (3, 1)}.items()}  # fmt: skip


def scan(body: str = BODY, more: str = "", size: str = "5") -> ModelProto:
    return kit.onnx(
        f"g (float[3, 2] x, float[{size}, 2] w, float[3, 1] c) => (float[a, b] kept, float[r, s] y) {{"
        f" kept, y = Scan <num_scan_inputs = 1, {more}"
        f" body = row (float[3, 2] all, float[2] one) => (float[3, 2] next, float[p] d) {{ {body} }}> (x, w) }}",
        opset=17,
    )


def fired(model: ModelProto) -> bool:
    program = dmlc.compile(model, target="onnx")
    feeds = {info.name: FEEDS[info.name] for info in model.graph.input}
    want = kit.run(model, feeds)
    assert all(np.array_equal(program.run(feeds, backend="cpu")[name], array) for name, array in want.items())
    is_left = any(node.op_type == "Scan" for node in program.to_onnx().graph.node)
    assert is_left is not any(entry.rule == "runs-together" for entry in program.ledger)
    return not is_left


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        "next = Identity (all) d = Exp (one)",
        "next = Identity (all) d = ReduceMax <axes = [1], keepdims = 0> (all)",
        "next = Identity (all) k = ReduceMean <axes = [0]> (one) s = Mul (all, k) t = Add (s, c)"
        " d = ReduceMin <axes = [0], keepdims = 0> (t)",
    ],
)
def test_independent_runs_are_computed_together(body: str) -> None:
    assert fired(scan(body))


@pytest.mark.parametrize(
    ("body", "more", "size"),
    [
        ("next = Add (all, one) d = Identity (one)", "", "5"),
        ("next = Identity (all) d = CumSum (one, axis)", "", "5"),
        (BODY, "scan_input_directions = [1],", "5"),
        (BODY, "scan_output_axes = [1],", "5"),
        (BODY, "", "N"),
    ],
)
def test_other_scans_stay(body: str, more: str, size: str) -> None:
    model = scan(body, more, size)
    if "axis" in body:
        model.graph.initializer.append(kit.onnx("g () => () <int64[1] axis = {0}> {}").graph.initializer[0])
    assert not fired(model)


def test_random_numbers_stay_others_in_each_run() -> None:
    model = scan("next = Identity (all) d = RandomNormal <shape = [2]> ()")
    program = dmlc.compile(model, target="onnx")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Scan"]


def test_runs_that_would_take_much_memory_together_stay() -> None:
    text = """g (float[4096, 2] x, float[4096, 2] w) => (float[4096, 2] k, float[4096, 4096] y) {
        k, y = Scan <num_scan_inputs = 1, body = row (float[4096, 2] all, float[2] one)
            => (float[4096, 2] next, float[4096] d) { %s }> (x, w)
    }"""
    program = dmlc.compile(kit.onnx(text % BODY, opset=17), target="onnx")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Scan"]
