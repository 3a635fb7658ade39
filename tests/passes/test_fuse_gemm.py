"""Gemm of a product with a matrix and a bias: positive, near-miss and numerical tests."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import dmlc
from dmlc.diagnostics import Source
from dmlc.targets import load_target
from tests.rows import each_row
from tools.model_checks import optimized_copy, run, session

RNG = np.random.default_rng(0)
#: Inputs that programs take beside x.
OTHERS = "w: f32[8, 8], v: f32[8, 8], u: f32[8, 8], b: f32[8], c: f32[8], d: f32[8], batched: f32[2, 8, 8]"
#: The type of x, the body, and the numbers of Gemm, Reshape and MatMul that are left.
PROGRAMS = {
    "rows": ("f32[N, 8]", "y = b + matmul(x, w)\n return y", (1, 0, 0)),
    "a row": ("f32[4, 8]", "y = matmul(x, w) + reshape(b, shape=[1, 8])\n return y", (1, None, 0)),
    "a reshape on each side": (
        "f32[N, 4, 4, 2]",
        "y = reshape(matmul(reshape(x, shape=[N, 4, 8]), w) + b, shape=[N, 4, 2, 4])\n return y",
        (1, 2, 0),
    ),
    "a reshape in front": ("f32[N, 4, 4, 2]", "y = matmul(reshape(x, shape=[N, 4, 8]), w) + b\n return y", (1, 2, 0)),
    "a reshape behind": (
        "f32[N, 4, 8]",
        "y = reshape(matmul(x, w) + b, shape=[N, 4, 2, 4])\n return y",
        (1, 2, 0),
    ),
    "layers": ("f32[N, 4, 8]", "y = matmul(relu(matmul(x, w) + b), v) + c\n return y", (2, 2, 0)),
    "layers with a gate": (
        "f32[N, 4, 8]",
        "h = matmul(x, w) + b\n y = matmul(h * sigmoid(h) * d, v) + c\n return y",
        (2, 2, 0),
    ),
    "heads": (
        "f32[N, 4, 8]",
        "q = transpose(reshape(matmul(x, w) + b, shape=[N, 4, 2, 4]), perm=[0, 2, 1, 3])\n"
        " k = transpose(reshape(matmul(x, v) + c, shape=[N, 4, 2, 4]), perm=[0, 2, 3, 1])\n"
        " y = matmul(q, k)\n return y",
        (2, 3, 1),
    ),
    "heads of two open sizes": (
        "f32[N, M, 8]",
        "q = transpose(reshape(matmul(x, w) + b, shape=[N, M, 2, 4]), perm=[0, 2, 1, 3])\n"
        " k = transpose(reshape(matmul(x, v) + c, shape=[N, M, 2, 4]), perm=[0, 2, 3, 1])\n"
        " s = transpose(reshape(matmul(x, u) + d, shape=[N, M, 2, 4]), perm=[0, 2, 1, 3])\n"
        " y = matmul(matmul(q, k), s)\n return y",
        (3, 4, 2),
    ),
    # --- near misses
    "nothing to merge with": ("f32[N, 4, 8]", "y = relu(matmul(x, w) + b)\n return y", (0, 0, 1)),
    "two layers of two open sizes": (
        "f32[N, M, 8]",
        "y = matmul(relu(matmul(x, w) + b), v) + c\n return y",
        (0, 0, 2),
    ),
    "a layer that others need": (
        "f32[N, 4, 8]",
        "h = relu(matmul(x, w) + b)\n y = matmul(h, v) + c\n z = h + x\n return y, z",
        (0, 0, 2),
    ),
    "a bias of more axes": (
        "f32[N, 4, 4, 2]",
        "y = matmul(reshape(x, shape=[N, 4, 8]), w) + reshape(b, shape=[1, 8])\n return y",
        (0, None, 1),
    ),
    "a product that others need": ("f32[N, 8]", "h = matmul(x, w)\n y = h + b\n return y, h", (0, 0, 1)),
    "a matrix for each of the batch": ("f32[2, N, 8]", "y = matmul(x, batched) + b\n return y", (0, 0, 1)),
    "a matrix without rows": (
        "f32[N, 0]",
        "y = matmul(x, reshape(w[:0], shape=[0, 8])) + b\n return y",
        (0, None, None),
    ),
    "a vector": ("f32[8]", "y = matmul(x, w) + b\n return y", (0, 0, 1)),
}


def compiled(name: str, target: str = "onnx", dtype: str = "f32", **options: object) -> dmlc.Program:
    type, body, _ = PROGRAMS[name]
    results = body.rpartition("return ")[2]
    text = f"model m(x: {type}, {OTHERS}) -> ({results}) {{\n {body}\n}}".replace("f32", dtype)
    return dmlc.compile(Source("m.dml", text), target=target, **options)  # type: ignore[arg-type]


@each_row("target", ["onnx", "directml"])
@each_row("name", PROGRAMS)
def test_products_with_a_bias(name: str, target: str) -> None:
    found = Counter(node.op_type for node in compiled(name, target).to_onnx().graph.node)
    for op_type, wanted in zip(("Gemm", "Reshape", "MatMul"), PROGRAMS[name][2], strict=True):
        assert wanted in (None, found[op_type]), (op_type, found)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_stay_at_each_level(name: str, dtype: str) -> None:
    program = compiled(name, dtype=dtype)
    before = compiled(name, dtype=dtype, skip_rules=["product-with-bias"]).to_onnx()
    type = PROGRAMS[name][0]
    sizes = [{"N": 3, "M": 5}.get(size.strip()) or int(size) for size in type[4:-1].split(",")]
    shapes = {"x": sizes, **{key: [8, 8] for key in "wvu"}, **{key: [8] for key in "bcd"}, "batched": [2, 8, 8]}
    numpy = np.float32 if dtype == "f32" else np.float64
    feeds = {key: RNG.standard_normal(shape).astype(numpy) for key, shape in shapes.items()}
    expected = run(session(before), feeds)
    for optimized in (False, True):
        found = run(session(program.to_onnx(), optimized=optimized), feeds)
        for key in expected:
            np.testing.assert_allclose(found[key], expected[key], rtol=1e-4, atol=1e-4)


def test_its_class_is_reassociates() -> None:
    assert {e.rewrite_class for e in compiled("layers").ledger if e.rule == "product-with-bias"} == {"reassociates"}
    assert "Gemm" not in {node.op_type for node in compiled("rows", exact=True).to_onnx().graph.node}


@pytest.mark.parametrize("name", PROGRAMS)
def test_onnx_runtime_leaves_as_many_nodes_or_fewer(name: str) -> None:
    """Its own fusion puts reshapes around each product, where it knows the sizes."""
    counts = [
        len(optimized_copy(dmlc.compile(model, target="onnx").to_onnx()).graph.node)
        for model in (compiled(name, skip_rules=["product-with-bias"]).to_onnx(), compiled(name).to_onnx())
    ]
    assert counts[1] <= counts[0]


def test_targets_with_their_own_costs_keep_the_product() -> None:
    assert load_target("cpu").costs is not None
    assert "Gemm" not in {node.op_type for node in compiled("layers", "cpu").to_onnx().graph.node}
