"""The target facts: their kernels exist in the installed ONNX Runtime, and the file is what its maker writes."""

from __future__ import annotations

import json

import make_cpu_operators
import make_ort_cpu
import onnxruntime
import pytest

from dmlc.ir import DTYPE_BY_NAME
from dmlc.ir.dtype import f16, f32, f64, i64, u8, u64
from dmlc.runtime.installed_kernels import read_kernels, rows, types_by_opset
from dmlc.targets import KernelTable, kernel_table, load_target, target_names
from tests.rows import each_row
from tests.versions import ONNX_RUNTIME


@pytest.fixture(scope="module")
def table() -> KernelTable:
    found = kernel_table(load_target("cpu"))
    assert found is not None
    return found


def test_every_target_loads() -> None:
    assert target_names()[:4] == ("directml", "cpu", "onnx", "numpy")
    for name in target_names():
        target = load_target(name)
        assert target.min_opset <= target.opset <= target.max_opset
        assert target.source
        assert (kernel_table(target) is None) is (name == "numpy")
    assert load_target("directml").max_rank == 8
    assert not load_target("onnx").own_schemas


def test_an_unknown_target_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        load_target("directx")


@each_row(
    ("op", "opset", "parameter", "yes", "no"),
    [
        ("ArgMax", 11, "T", (f32, f64, u8, i64), (u64, f16)),
        ("BitwiseAnd", 17, "T", (), (i64,)),
        ("BitwiseAnd", 18, "T", (u64, i64), (f32,)),
        ("IsInf", 19, "T1", (f32, f64), (f16,)),
        ("IsInf", 20, "T1", (f16, f32), ()),
        ("Erf", 21, "T", (f32,), (f64,)),
        ("NoSuchOperator", 21, "T", (), (f32,)),
    ],
)
def test_rows(table: KernelTable, op: str, opset: int, parameter: str, yes: tuple, no: tuple) -> None:
    found = table.dtypes(op, opset, parameter)
    assert all(d in found for d in yes)
    assert not any(d in found for d in no)


def test_claimed_kernels_exist_in_the_installed_onnxruntime(table: KernelTable) -> None:
    """The table holds for every version that it names; f64 may be missing in the older ones (see its maker)."""
    kernels = read_kernels(make_ort_cpu.OPERATORS)
    now = {op: types_by_opset(kernels, op) for op in make_ort_cpu.OPERATORS}
    newest = onnxruntime.__version__ == json.loads(make_ort_cpu.DATA.read_text("utf-8"))["versions"][-1]
    for op, parameter, opset, claimed in table.rows():
        installed = {DTYPE_BY_NAME[n] for n in now[op].get(opset, {}).get(parameter, ()) if n in DTYPE_BY_NAME}
        missing = claimed - installed - (set() if newest else {f64})
        assert not missing, f"{op} {parameter} at {opset}: {missing}"


def test_the_data_is_what_its_maker_writes() -> None:
    data = json.loads(make_ort_cpu.DATA.read_text("utf-8"))
    assert data["schema"] == 1
    assert data["source"].startswith(f"onnxruntime {', '.join(data['versions'])}: ")
    assert data["date"]
    assert sorted(data["operators"]) == sorted(make_ort_cpu.OPERATORS)
    if onnxruntime.__version__ in data["versions"]:
        kernels = read_kernels(make_ort_cpu.OPERATORS)
        for op, before in data["operators"].items():
            assert rows(make_ort_cpu.common(types_by_opset(kernels, op), before)) == before, op


def test_the_table_has_the_kernels_of_the_installed_onnx_runtime() -> None:
    data = json.loads(make_cpu_operators.DATA.read_text("utf-8"))
    newest = tuple(map(int, data["versions"][-1].split(".")[:2]))
    if newest < ONNX_RUNTIME:
        pytest.skip("a later release than those of the table")
    for name, kernels in make_cpu_operators.installed().items():
        known = data["operators"][name]
        for first, last, types in kernels:
            assert any(
                (a, b) == (first, last) and all(set(types[p].split()) <= set(had.get(p, "").split()) for p in types)
                for a, b, had in known
            ), (name, first, last, types)
