"""Reductions that no rule repairs where an opset is forced: refused, with a way out that works."""

import numpy as np
import pytest
import repair_helpers as r

import dmlc
from dmlc.diagnostics import DmlcError

INTEGERS = ("i32", "i64", "u32", "u64")


def advice(program: dmlc.Program) -> str:
    with pytest.raises(DmlcError) as caught:
        program.require_sound()
    (found,) = caught.value.diagnostics
    assert found.code.id == "E0591"
    return found.help or ""


@pytest.mark.emits_invalid("ReduceLogSumExp of unsigned integers has no kernel at opsets 17 and 21")
@pytest.mark.parametrize("op", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_reductions_of_integers(op: str, dtype: str) -> None:
    m = r.reduction(op, r.KINDS[dtype], 18)
    for opset in (18, 21):
        assert advice(dmlc.compile(m, opset=opset)).endswith("an opset below 18, where it lands on the CPU")
    lower = dmlc.compile(m, opset=17)
    assert not r.refusals(lower) and [d.code.id for d in lower.diagnostics] == ["W0601"]
    assert not r.refusals(dmlc.compile(m))


def test_the_cast_that_is_advised() -> None:
    nodes = [r.node("Cast", ["x"], ["f"], to=r.FLOAT), r.node("ReduceL2", ["f", "axes"], ["y"])]
    m = r.model(nodes, [("x", r.KINDS["i32"], [2, 3])], [("y", r.FLOAT, [2, 1])], axes=np.array([1]))
    assert not r.refusals(dmlc.compile(m, opset=21)) and not dmlc.compile(m, opset=21).diagnostics


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_extremes_of_doubles(op: str) -> None:
    m = r.reduction(op, r.DOUBLE, 20)
    for opset in (20, 21):
        assert "an opset below 20" in advice(dmlc.compile(m, opset=opset))
    assert not r.refusals(dmlc.compile(m, opset=19))
    free = dmlc.compile(m)
    assert not r.refusals(free) and [d.code.id for d in free.diagnostics] == ["W0601"]


@pytest.mark.parametrize("dtype", ["i8", "i16", "u8", "u16"])
def test_means_that_the_operator_does_not_take_are_refused(dtype: str) -> None:
    r.faulty(r.reduction("ReduceMean", r.KINDS[dtype], 18))


@pytest.mark.parametrize("dtype", ["i32", "i64", "u32", "u64"])
@pytest.mark.parametrize("opset", [18, 21])
def test_means_of_integers_are_repaired(dtype: str, opset: int) -> None:
    program = dmlc.compile(r.reduction("ReduceMean", r.KINDS[dtype], 18), opset=opset)
    assert ("exact-mean", "exact") in r.fired(program) and not r.refusals(program)
    array = r.helper.tensor_dtype_to_np_dtype(r.KINDS[dtype])
    low = np.iinfo(array).min
    x = np.array([[low, low, low + 1], [100, 7, 1]], array)
    want = [[int(abs(sum(row)) // 3) * (1 if sum(row) >= 0 else -1)] for row in x.astype(object).tolist()]
    np.testing.assert_array_equal(program.run({"x": x}, "cpu")["y"], np.array(want, array))
