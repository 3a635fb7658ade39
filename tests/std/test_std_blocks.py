"""Blocks of the standard library against NumPy, for every target, with fixed and open sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc.cli.main import main
from dmlc.diagnostics import Source
from dmlc.text.standard_library import std_blocks, std_path
from tests.rows import each_row

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


@dataclass(frozen=True, slots=True)
class Case:
    """A call of a block on inputs: their arrays by name, with the result in f64."""

    block: str
    call: str
    feeds: Mapping[str, Array]
    expected: Array


def normal(*shape: int, scale: float = 2) -> Array:
    return RNG.normal(size=shape) * scale


def log_softmax(x: Array, axis: int) -> Array:
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def picked(x: Array, labels: Array, axis: int) -> Array:
    return np.take_along_axis(x, np.expand_dims(labels, axis), axis).squeeze(axis)


def normalized(x: Array, shape: tuple[int, ...], scale: Array, bias: Array, epsilon: float = 1e-5) -> Array:
    parts = x.reshape(shape)
    parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + epsilon)
    per_channel = (1, -1, *([1] * (x.ndim - 2)))
    return parts.reshape(x.shape) * scale.reshape(per_channel) + bias.reshape(per_channel)


def huber(x: Array, target: Array, delta: float) -> Array:
    error = np.abs(x - target)
    return np.where(error <= delta, 0.5 * error**2, delta * (error - 0.5 * delta))


def cases() -> list[Case]:
    x, y, image = normal(5, 6), normal(5, 6), normal(2, 6, 3, 4)
    labels, pixels = RNG.integers(0, 6, 5), RNG.integers(0, 6, (2, 3, 4))
    log_p, log_q = log_softmax(x, -1), log_softmax(y, -1)
    scale, bias = normal(6), normal(6)
    index = np.arange(6)
    softmax = np.exp(log_softmax(image, 1))
    out = [
        Case("cross_entropy", "f(x, t)", {"x": x, "t": labels}, -picked(log_p, labels, -1)),
        Case("cross_entropy", "f(x, t, axis=1)", {"x": image, "t": pixels}, -picked(log_softmax(image, 1), pixels, 1)),
        Case("nll_loss", "f(x, t)", {"x": log_p, "t": labels.astype(np.int32)}, -picked(log_p, labels, -1)),
        Case("nll_loss", "f(x, t, axis=-3)", {"x": image, "t": pixels.astype(np.uint32)}, -picked(image, pixels, 1)),
        Case("kl_divergence", "f(x, y)", {"x": log_p, "y": log_q}, (np.exp(log_p) * (log_p - log_q)).sum(-1)),
        Case("kl_divergence", "f(x, y, axis=0)", {"x": log_p, "y": log_q}, (np.exp(log_p) * (log_p - log_q)).sum(0)),
        Case(
            "cosine_similarity",
            "f(x, y)",
            {"x": x, "y": y},
            (x * y).sum(-1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)),
        ),
        Case("cosine_similarity", "f(x, y, axis=0, epsilon=1000)", {"x": x, "y": y}, (x * y).sum(0) / 1000),
        Case("l2_normalize", "f(x)", {"x": x}, x / np.linalg.norm(x, axis=-1, keepdims=True)),
        Case("l2_normalize", "f(x, axis=1, epsilon=100)", {"x": image}, image / 100),
        Case("soft_argmax", "f(x)", {"x": x}, (np.exp(log_p) * index).sum(-1)),
        Case("soft_argmax", "f(x, axis=1)", {"x": image}, (softmax * index[:, None, None]).sum(1)),
        Case("huber_loss", "f(x, y)", {"x": x, "y": y}, huber(x, y, 1)),
        Case("huber_loss", "f(x, y, delta=0.25)", {"x": x, "y": y}, huber(x, y, 0.25)),
        Case("variance", "f(x, axes=[1])", {"x": x}, x.var(1, keepdims=True)),
        Case("variance", "f(x, axes=[0, 2, 3], ddof=1, keepdims=false)", {"x": image}, image.var((0, 2, 3), ddof=1)),
        Case("standard_deviation", "f(x, axes=0, ddof=1)", {"x": x}, x.std(0, ddof=1, keepdims=True)),
        Case("standard_deviation", "f(x, axes=[1, -1], keepdims=false)", {"x": image}, image.std((1, 3))),
    ]
    for k in (1, 3):
        best = np.argsort(-x, axis=-1, kind="stable")[:, :k]
        share = (best == labels[:, None]).any(1).mean()
        out.append(Case("top_k_accuracy", f"f(x, t, k={k})", {"x": x, "t": labels}, np.asarray(share)))
    for groups in (1, 2, 6):
        want = normalized(image, (2, groups, -1), scale, bias)
        feeds = {"x": image, "s": scale, "b": bias}
        out.append(Case("group_norm", f"f(x, s, b, groups={groups})", feeds, want))
    feeds = {"x": image, "s": scale, "b": bias}
    out.append(Case("instance_norm", "f(x, s, b)", feeds, normalized(image, (2, 6, -1), scale, bias)))
    want = normalized(image, (2, 6, -1), scale, bias, 0.5)
    out.append(Case("instance_norm", "f(x, s, b, epsilon=0.5)", feeds, want))
    line = normal(3, 6, 7)
    feeds = {"x": line, "s": scale, "b": bias}
    out.append(Case("group_norm", "f(x, s, b, groups=3)", feeds, normalized(line, (3, 3, -1), scale, bias)))
    return out


CASES = cases()
#: Rounding of a few dozen operations on numbers of about 10; f16 has 11 bits.
TOLERANCES = {"f16": 2e-2, "f32": 2e-5, "f64": 1e-10}


def program_of(case: Case, dtype: str, *, is_open: bool) -> str:
    types = []
    for name, array in case.feeds.items():
        kind = {"i8": "i64", "i4": "i32", "u4": "u32"}.get(array.dtype.str[1:], dtype)
        sizes = [f"D{size}" if is_open else str(size) for size in array.shape]  # equal numbers are one dim
        types.append(f"{name}: {kind}[{', '.join(sizes)}]")
    return f"use {case.block} as f from std\n\nmodel m({', '.join(types)}) -> (r) {{\n    return {case.call}\n}}\n"


def fed(case: Case, dtype: str) -> dict[str, Array]:
    numpy = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype]
    return {n: a.astype(numpy) if a.dtype.kind == "f" else a for n, a in case.feeds.items()}


def check(case: Case, program: dmlc.Program, dtype: str, backend: str) -> None:
    found = program.run(fed(case, dtype), backend=backend)["r"]
    assert found.shape == case.expected.shape
    tolerance = TOLERANCES[dtype if case.block != "top_k_accuracy" else "f32"]
    np.testing.assert_allclose(found.astype(np.float64), case.expected, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("is_open", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.block}-{case.call}")
def test_blocks_against_numpy(case: Case, is_open: bool) -> None:
    source = Source("t.dml", program_of(case, "f32", is_open=is_open))
    for target, backends in (("directml", ("cpu", "reference")), ("cpu", ("cpu",)), ("numpy", ("numpy",))):
        program = dmlc.compile(source, target=target)
        for backend in backends:
            check(case, program, "f32", backend)
    again = dmlc.compile(Source("again.dml", dmlc.compile(source).to_bytes("dml").decode()))
    check(case, again, "f32", "cpu")


@each_row("dtype", ["f16", "f64"])
@each_row("case", CASES, ids=lambda case: f"{case.block}-{case.call}")
def test_blocks_in_other_dtypes(case: Case, dtype: str) -> None:
    source = Source("t.dml", program_of(case, dtype, is_open=False))
    check(case, dmlc.compile(source, target="numpy"), dtype, "numpy")
    check(case, dmlc.compile(source, target="onnx"), dtype, "reference")
    if dtype == "f16":
        check(case, dmlc.compile(source), dtype, "cpu")


def test_each_block_has_a_case_a_page_and_a_file_of_its_name() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "standard_library.md").read_text(encoding="utf-8")
    assert {case.block for case in CASES} == set(std_blocks())
    for block in std_blocks():
        assert f"`{block}(" in page


def test_values_at_the_edges() -> None:
    def run(call: str, use: str, **feeds: Array) -> Array:
        types = ", ".join(f"{n}: f32[{', '.join(map(str, a.shape))}]" for n, a in feeds.items())
        text = f"use {use} as f from std\nmodel m({types}) -> (r) {{\n    return {call}\n}}\n"
        found = dmlc.compile(Source("t.dml", text)).run(
            {n: a.astype(np.float32) for n, a in feeds.items()}, backend="cpu"
        )
        return found["r"]

    zeros = np.zeros((2, 3))
    np.testing.assert_array_equal(run("f(x)", "l2_normalize", x=zeros), zeros)
    np.testing.assert_array_equal(run("f(x, y)", "cosine_similarity", x=zeros, y=zeros), [0, 0])
    impossible = np.array([[-np.inf, 0.0]])
    np.testing.assert_array_equal(run("f(x, y)", "kl_divergence", x=impossible, y=impossible), [0])
    np.testing.assert_array_equal(run("f(x, y)", "kl_divergence", x=np.array([[0.0, -np.inf]]), y=impossible), [np.inf])
    far = np.array([[1000.0, 0.0, -1000.0]])
    np.testing.assert_array_equal(run("f(x)", "soft_argmax", x=far), [0])
    np.testing.assert_array_equal(run("f(x, y)", "huber_loss", x=np.array([np.inf]), y=np.zeros(1)), [np.inf])


#: Calls by block, of those that PyTorch has.
TORCH: dict[tuple[str, str], Callable[[Any, Mapping[str, Any]], Any]] = {
    ("cross_entropy", "f(x, t)"): lambda nn, a: nn.cross_entropy(a["x"], a["t"].long(), reduction="none"),
    ("group_norm", "f(x, s, b, groups=2)"): lambda nn, a: nn.group_norm(a["x"], 2, a["s"], a["b"]),
    ("instance_norm", "f(x, s, b)"): lambda nn, a: nn.instance_norm(a["x"], weight=a["s"], bias=a["b"]),
    ("huber_loss", "f(x, y, delta=0.25)"): lambda nn, a: nn.huber_loss(a["x"], a["y"], delta=0.25, reduction="none"),
    ("cosine_similarity", "f(x, y)"): lambda nn, a: nn.cosine_similarity(a["x"], a["y"], dim=-1),
    ("l2_normalize", "f(x)"): lambda nn, a: nn.normalize(a["x"], dim=-1),
}


@pytest.mark.parametrize("case", [c for c in CASES if (c.block, c.call) in TORCH], ids=lambda case: str(case.block))
def test_what_numpy_says_is_what_torch_says(case: Case) -> None:
    torch = pytest.importorskip("torch")
    arrays = {name: torch.from_numpy(array) for name, array in case.feeds.items()}
    wanted = TORCH[case.block, case.call](torch.nn.functional, arrays).numpy()
    np.testing.assert_allclose(case.expected, wanted, rtol=1e-6)


def test_the_list_of_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--std"]) == 0
    listed = capsys.readouterr().out
    assert re.findall(r"^(\w+)\(", listed, re.MULTILINE) == list(std_blocks())
    assert "cross_entropy(logits, labels, *, axis=-1)" in listed
    assert main(["ops", "--std", "variance", "--format", "json"]) == 0
    block = json.loads(capsys.readouterr().out)["block"]
    assert block["signature"] == "variance(x, *, axes, ddof=0, keepdims=true)"
    assert "def variance" in block["program"]
    assert main(["ops", "--std", "varience"]) == 2
    assert "variance" in capsys.readouterr().err


def test_the_files_of_blocks_are_formatted_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    for block in std_blocks():
        assert main(["fmt", "--check", str(std_path(block))]) == 0
        assert main(["check", "-q", str(std_path(block))]) == 0


@each_row("target", ["directml", "cpu"])
@each_row("inputs", ["x: f32[N, 6]", "x: f32[N, M]", "x: f16[4, 6]", "x: f32[4, 6]"])
@each_row("axes", ["[0]", "[1]", "[0, 1]"])
def test_a_variance_is_as_short_as_by_hand(axes: str, inputs: str, target: dmlc.TargetName) -> None:
    """Without ``ddof`` no count is asked for, open sizes included."""
    head = f"model m({inputs}) -> (y) {{\n"
    block = f"use variance from std\n{head}    return variance(x, axes={axes})\n}}\n"
    hand = f"{head}    mean = reduce_mean(x, axes={axes})\n    return reduce_mean((x - mean) ** 2, axes={axes})\n}}\n"
    counts = [len(dmlc.compile(dmlc.Source(text), target=target).to_onnx().graph.node) for text in (block, hand)]
    assert counts[0] == counts[1]
