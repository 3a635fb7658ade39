"""Target ``cpu`` is made for the kernels of the installed ONNX Runtime; the other targets are not."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as state

import dmlc
from dmlc.cli.main import main
from dmlc.diagnostics import DmlcError, Source
from dmlc.ir.dtype import f32, i64
from dmlc.ops import binary, choose, elementwise, reduce
from dmlc.runtime import installed_kernels
from dmlc.targets import kernel_table, load_target
from dmlc.targets.known_wrong import wrong_in, wrong_kernels
from dmlc.targets.needed_kernels import NEEDS
from tests.rows import each_row

VERSION = onnxruntime.__version__


class Kernel(NamedTuple):
    """As the debugging function of ONNX Runtime tells them."""

    op_name: str
    version_range: tuple[int, int]
    type_constraints: dict[str, list[str]]
    provider: str = "CPUExecutionProvider"
    domain: str = ""


@pytest.fixture(autouse=True)
def read_anew() -> Iterator[None]:
    installed_kernels.installed.cache_clear()
    yield
    installed_kernels.installed.cache_clear()


def without(monkeypatch: pytest.MonkeyPatch, op: str, type_name: str) -> None:
    """An ONNX Runtime whose kernels of an operator lack a type."""

    def told() -> list[Any]:
        out = []
        for kernel in real():
            types = kernel.type_constraints
            if kernel.op_name == op:
                types = {p: [n for n in names if n != f"tensor({type_name})"] for p, names in types.items()}
            out.append(Kernel(kernel.op_name, kernel.version_range, types, kernel.provider, kernel.domain))
        return out

    real = state.get_all_opkernel_def
    monkeypatch.setattr(state, "get_all_opkernel_def", told)


def program(dtype: str, body: str, target: str = "cpu") -> dmlc.Program:
    text = f"model m(x: {dtype}[4, 8]) -> (y) {{\n    y = {body}\n    return y\n}}\n"
    return dmlc.compile(Source("m.dml", text), target=target)


def operators(compiled: dmlc.Program) -> list[str]:
    return [node.op_type for node in compiled.to_onnx().graph.node]


def dmlc_command(*words: str) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = main(list(words))
    return code, out.getvalue()


def test_the_table_is_of_the_installed_version() -> None:
    found = installed_kernels.installed()
    assert found.version == VERSION and not found.problem
    assert found.table is not None and VERSION in found.table.source
    assert f32 in found.table.dtypes("ArgMax", 21)
    assert not found.table.dtypes("BitwiseAnd", 17) and i64 in found.table.dtypes("BitwiseAnd", 18)
    assert installed_kernels.installed() is found


def test_an_operator_that_onnx_declares_later_is_in_no_row() -> None:
    """RMSNormalization is of opset 23; what only ONNX Runtime declares has no schema at all."""
    kernels = {
        "RMSNormalization": [(23, 2**31 - 1, {"T": {"f32"}})],
        "SimplifiedLayerNormalization": [(1, 2**31 - 1, {"T": {"f32"}})],
    }
    assert not installed_kernels.types_by_opset(kernels, "RMSNormalization")
    own = installed_kernels.types_by_opset(kernels, "SimplifiedLayerNormalization")
    assert own[11] == own[21] == {"T": ["f32"]}


def test_a_kernel_without_an_end_holds_only_from_the_version_of_its_schema() -> None:
    """Add is of opset 7, 13 and 14: a kernel of 7 without an end does not run at 13 or later."""
    types = installed_kernels.types_by_opset({"Add": [(7, 2**31 - 1, {"T": {"f32"}})]}, "Add")
    assert types[12] == {"T": ["(f16)", "f32"]} and not types[13] and not types[21]
    types = installed_kernels.types_by_opset({"Add": [(7, 13, {"T": {"f32"}})]}, "Add")
    assert types[13] == types[12] and not types[14]


def test_cpu_follows_the_library_and_the_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "x + abs(x)"
    before = {name: program("i8", body, name).to_bytes("onnx") for name in ("onnx", "directml")}
    assert "Cast" not in operators(program("i8", body))
    without(monkeypatch, "Add", "int8")
    installed_kernels.installed.cache_clear()
    compiled = program("i8", body)
    assert "Cast" in operators(compiled)
    x = np.array([[3, -1, 7, 7, 0, 2, 2, -9]] * 4, np.int8)
    np.testing.assert_array_equal(compiled.run({"x": x}, "cpu")["y"], x + abs(x))
    assert {name: program("i8", body, name).to_bytes("onnx") for name in before} == before


def test_what_the_library_cannot_compute_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "Sin", "double")
    with pytest.raises(DmlcError) as caught:
        program("f64", "sin(x)")
    assert caught.value.diagnostics[0].code.id == "E0502"
    program("f64", "sin(x)", "onnx")
    program("f32", "sin(x)")


@pytest.mark.parametrize("missing", ["library", "function"])
def test_the_data_file_stands_in(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "library":
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        problem = "onnxruntime is not installed"
    else:
        monkeypatch.delattr(state, "get_all_opkernel_def")
        problem = f"onnxruntime {VERSION} does not list its kernels"
    assert installed_kernels.installed().table is None
    assert problem in installed_kernels.installed().problem
    compiled = program("f32", "argmax(x, axes=[1])")
    assert compiled.target.table is None and kernel_table(compiled.target) is kernel_table(load_target("onnx"))
    assert "ArgMax" in operators(compiled)
    for words in (["targets", "cpu"], ["targets", "cpu", "--op", "ArgMax"], ["doctor"]):
        assert problem in dmlc_command(*words)[1], words


@pytest.mark.parametrize("other", ["OpenVINOExecutionProvider", "DmlExecutionProvider", "UnheardOfProvider"])
def test_builds_with_other_providers_are_read_in_another_process(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = installed_kernels.read_kernels()
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [other, "CPUExecutionProvider"])

    def crash() -> None:
        raise AssertionError("read in this process")

    monkeypatch.setattr(state, "get_all_opkernel_def", crash)
    assert installed_kernels.read_kernels() == expected


def test_the_command_line_tells_the_version_that_was_read() -> None:
    code, out = dmlc_command("targets", "cpu")
    assert code == 0 and f"onnxruntime {VERSION}, as installed" in out
    code, out = dmlc_command("targets", "cpu", "--op", "reduce_max")
    assert code == 0 and out.startswith("ReduceMax") and f"onnxruntime {VERSION}" in out and "wrong: i64" in out
    assert VERSION in dmlc_command("doctor")[1]
    document = json.loads(dmlc_command("targets", "cpu", "--op", "Conv", "--format", "json")[1])
    assert document["onnxruntime"] == VERSION
    assert document["operators"][0]["kernels"][-1]["opsets"][1] == 21
    assert dmlc_command("targets", "cpu", "--op", "Convolution")[0] == 2
    out = dmlc_command("targets", "onnx", "--op", "ReduceMax")[1]
    assert "1.24.4" in out and "1.31.1" in out and "wrong: i64" in out


def test_known_wrong_kernels_are_distrusted_in_every_version() -> None:
    order = next(row for row in wrong_kernels() if "ReduceMax" in row.operators)
    assert order.since is None and order.types == {"i64"}
    by_name = {
        "Max": binary.MAX, "Min": binary.MIN, "Clip": choose.CLIP, "Sign": elementwise.SIGN,
        "ReduceMax": reduce.REDUCE_MAX, "ReduceMin": reduce.REDUCE_MIN,
    }  # fmt: skip
    assert sorted(by_name) == sorted(order.operators)
    assert all(NEEDS[op].wrong == {i64} for op in by_name.values())
    sums = next(row for row in wrong_kernels() if "ReduceSum" in row.operators)
    assert sums.holds_for("1.31.0") and sums.holds_for("1.32.0.dev20261101") and not sums.holds_for("1.24.4")


def test_an_installed_kernel_that_is_wrong_is_not_used() -> None:
    big = np.array([[2147483653, 7, 2147483647, 5, 6, 7, 8, 9]] * 4, np.int64)
    largest = program("i64", "reduce_max(x, axes=[1])")
    assert "ReduceMax" not in operators(largest)
    np.testing.assert_array_equal(largest.run({"x": big}, "cpu")["y"], big.max(1, keepdims=True))
    sign = program("i64", "sign(x)")
    assert "Sign" not in operators(sign)
    bits = np.array([[1 << 31, -(1 << 31), (1 << 32) - 1, 5, -5, 0, -(1 << 63), (1 << 33) + (1 << 31)]] * 4, np.int64)
    np.testing.assert_array_equal(sign.run({"x": bits}, "cpu")["y"], np.sign(bits))
    total = program("i64", "reduce_sum(x, axes=[1])")
    assert "ReduceSum" not in operators(total)
    wraps = np.full((4, 8), 2**62, np.int64)
    np.testing.assert_array_equal(total.run({"x": wraps}, "cpu")["y"], wraps.sum(1, keepdims=True))


@each_row("dtype", ["i8", "u8", "i16"])
@each_row("body", ["max(x, 3)", "min(x, 3)", "where(x < 3, x, 5)"])
def test_kernels_that_only_some_releases_have_give_the_right_numbers(dtype: str, body: str) -> None:
    compiled = program(dtype, body)
    feeds = compiled.random_feeds(3)
    np.testing.assert_array_equal(compiled.run(feeds, "cpu")["y"], compiled.run(feeds, "reference")["y"])


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16"])
def test_top_k_of_small_integers_keeps_ties_in_order(dtype: str) -> None:
    text = f"model m(x: {dtype}[40, 64]) -> (v, i) {{\n    v, i = top_k(x, axis=1, k=9)\n    return v, i\n}}\n"
    compiled = dmlc.compile(Source("m.dml", text), target="cpu")
    x = (
        np.random.default_rng(5)
        .integers(0, 9, (40, 64))
        .astype({"i8": np.int8, "u8": np.uint8, "i16": np.int16}[dtype])
    )
    found, expected = compiled.run({"x": x}, "cpu"), compiled.run({"x": x}, "reference")
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


WRITTEN = """model m(x: f32[4, 8], s: f32[8]) -> (y) {
    c = x - reduce_mean(x, axes=[1])
    y = c / sqrt(reduce_mean(c * c, axes=[1]) + 0.00001) * s
    return y
}
"""
ASKED = "model m(x: f32[4, 8], s: f32[8]) -> (y) {\n    y = layer_norm(x, s, axis=1)\n    return y\n}\n"


@pytest.mark.parametrize(("version", "count"), [("1.26.0", 0), ("1.23.2", 0), ("1.27.0", 1), ("1.32.0.dev20261101", 1)])
@pytest.mark.parametrize("text", [WRITTEN, ASKED], ids=["in parts", "as one operation"])
def test_layer_normalization_of_releases_that_lose_large_means(
    monkeypatch: pytest.MonkeyPatch, text: str, version: str, count: int
) -> None:
    monkeypatch.setattr(onnxruntime, "__version__", version)
    compiled = dmlc.compile(Source("m.dml", text), target="cpu")
    assert operators(compiled).count("LayerNormalization") == count
    x = np.arange(32, dtype=np.float32).reshape(4, 8) + 4096
    feeds = {"x": x, "s": np.ones(8, np.float32)}
    if not count:
        found = compiled.run(feeds, "cpu")["y"]
        np.testing.assert_allclose(found, compiled.run(feeds, "reference")["y"], rtol=1e-2)
    other = dmlc.compile(Source("m.dml", text), target="directml")
    assert operators(other).count("LayerNormalization") == 1


def test_faults_of_a_release_hold_from_its_first_to_its_last() -> None:
    norm = next(row for row in wrong_kernels() if "LayerNormalization" in row.operators)
    assert norm.holds_for("1.26.1") and not norm.holds_for("1.27.0")
    assert ("LayerNormalization", "f32") in wrong_in("1.24.4")
    assert ("LayerNormalization", "f32") not in wrong_in("1.32.0")
    assert ("ReduceMax", "i64") in wrong_in("1.24.4") & wrong_in("1.32.0")
    assert not wrong_in("of unknown version")
