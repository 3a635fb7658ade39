"""Dependences of placements: types of the device, releases, feature levels, open sizes, computing in half."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx import parser

from dmlc.cli.main import main
from dmlc.placement.report import placement
from dmlc.targets import load_target
from tests.rows import each_row


def hangs_on(body: str, opset: int = 17, target: str = "directml") -> dict[str, tuple[str, ...]]:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]> g {body}')
    return {node.name: node.hangs_on for node in placement(model, load_target(target)).nodes}


HALF = "not fused, it may compute in f16"
#: A graph whose node is y, and the types that it asks the device for.
TYPES = {
    "f32": ("(float[4] x) => (float[4] y) { y = Exp(x) }", ""),
    "f16": ("(float16[4] x) => (float16[4] y) { y = Exp(x) }", "FLOAT16"),
    "i32": ("(int32[4] x) => (int32[4] y) { y = Neg(x) }", ""),
    "i64": ("(int64[4] x) => (int64[4] y) { y = Neg(x) }", "INT64"),
    "u64": ("(uint64[4] x) => (uint64[4] y) { y = Add(x, x) }", "UINT64"),
    "f64": ("(double[4] x) => (double[4] y) { y = Identity(x) }", "FLOAT64"),
    "a result": ("(float[4,4] x) => (int64[4,1] y) { y = ArgMax<axis = 1>(x) }", "INT64"),
    "an operand": ("(float[4] x, int64[2] i) => (float[2] y) { y = Gather(x, i) }", "INT64"),
    "two types": ("(float16[4] x, int64[2] i) => (float16[2] y) { y = Gather(x, i) }", "FLOAT16 INT64"),
    "axes, read on the CPU": (
        "(float[4,4] x) => (float[4,1] y) <int64[1] a = {1}> { y = ReduceSum(x, a) }", "",
    ),
    "a shape that is fed": ("(float[4] x, int64[2] s) => (float[a,b] y) { y = Reshape(x, s) }", ""),
    "on the CPU": ("(int64[2,2] x) => (int64[2,2] y) { y = BitShift<direction = \"LEFT\">(x, x) }", ""),
}  # fmt: skip


@each_row("name", TYPES)
def test_types_of_the_device(name: str) -> None:
    body, types = TYPES[name]
    needed = [entry for entry in hangs_on(body)["y"] if entry.startswith("needs ")]
    assert needed == [f"needs {name} on the device" for name in types.split()]


#: A graph whose node is y, and whether it may compute in half.
HALVES = {
    "alone": ("(float16[N] x) => (float16[N] y) { y = Exp(x) }", True),
    "a sum alone": ("(float16[N,4] x) => (float16[1,1] y) { y = ReduceSum(x) }", True),
    "in a graph": ("(float16[4] x) => (float16[4] y) { y = Exp(x) }", False),
    "f32": ("(float[N] x) => (float[N] y) { y = Exp(x) }", False),
    "some f32": (
        "(float16[N,4] x, float[4] s) => (float16[N,4] y) { y = LayerNormalization(x, s) }", False,
    ),
    "f16 and others": ("(float16[N,4] x) => (int64[N,1] y) { y = ArgMax<axis = 1>(x) }", True),
    "a copy": ("(float16[N,4] x) => (float16[4,N] y) { y = Transpose(x) }", False),
    "a cast": ("(float16[N] x) => (float[N] y) { y = Cast<to = 1>(x) }", False),
}  # fmt: skip


@each_row("name", HALVES)
def test_computing_in_half(name: str) -> None:
    body, expected = HALVES[name]
    assert (HALF in hangs_on(body)["y"]) is expected


def test_open_sizes() -> None:
    found = hangs_on("(float[N,M] x) => (float[N,M] y, int64[2] z) { y = Exp(x) s = Shape(x) c = Neg(s) z = Abs(c) }")
    assert found["y"] == ("dynamic sizes: M, N",)
    assert found["c"] == ("dynamic sizes",)
    assert hangs_on("(float[2,3] x) => (float[2,3] y) { y = Exp(x) }")["y"] == ()


def test_releases() -> None:
    cast = "(float[4] x) => (float16[4] y) { y = Cast<to = 10>(x) }"
    assert "onnxruntime 1.20 or later" in hangs_on(cast, 21)["y"]
    assert not any("onnxruntime" in entry for entry in hangs_on(cast, 17)["y"])
    late = "(float[4,4] x) => (float[4,4] y) { y = Transpose(x) }"
    assert hangs_on(late, 21, "directml:ort-1.18")["y"] == ("onnxruntime before 1.21",)


def test_releases_of_known_faults() -> None:
    truth = "(int32[4] x) => (bool[4] y) { y = Cast<to = 9>(x) }"
    assert "onnxruntime 1.21 or later (cast-int-bool)" in hangs_on(truth)["y"]
    assert "onnxruntime after 1.20 (cast-integer-bool)" in hangs_on(truth)["y"]
    old = hangs_on(truth, 17, "directml:ort-1.18")["y"]
    assert "onnxruntime before 1.21 (cast-int-bool)" in old
    assert "onnxruntime up to 1.20 (cast-integer-bool)" in old
    number = "(int32[4] x) => (float[4] y) { y = Cast<to = 1>(x) }"
    assert not any("bool" in entry for entry in hangs_on(number)["y"])


def test_feature_levels() -> None:
    assert "feature level 5.1 or later" in hangs_on("(float[4] x) => (float[4] y) { y = Softmax(x) }")["y"]
    assert hangs_on("(float[4] x) => (float[4] y) { y = Exp(x) }")["y"] == ()


def test_check_prints_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.dml").write_text("model m(x: f16[N, 4], y: f32[2]) -> (a, b) {\n    return exp(x), exp(y)\n}\n")
    assert main(["check", "m.dml", "-v"]) == 0
    line = " ".join(capsys.readouterr().out.partition("\n  depends on: ")[2].split())
    assert (
        "needs FLOAT16 on the device (a/Exp); dynamic sizes: N (a/Exp); not fused, it may compute in f16 (a/Exp)"
        in line
    )
    assert main(["check", "m.dml", "--format", "json"]) == 0
    nodes = {node["name"]: node["hangs_on"] for node in json.loads(capsys.readouterr().out)["nodes"]}
    assert nodes == {"a/Exp": ["needs FLOAT16 on the device", "dynamic sizes: N", HALF], "b/Exp": []}
