"""Reductions that no rule repairs where an opset is forced: refused, with a way out that works."""

import numpy as np
import onnx
import pytest
import repair_helpers as r

import dmlc
from dmlc.diagnostics import DmlcError
from tests.kit import refusal
from tests.rows import each_row


def advice(program: dmlc.Program) -> str:
    with pytest.raises(DmlcError) as caught:
        program.require_sound()
    (found,) = caught.value.diagnostics
    assert found.code.id == "E0591"
    return found.help or ""


@pytest.mark.parametrize("op", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp"])
@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_reductions_of_integers(op: str, dtype: str) -> None:
    m = r.reduction(op, r.KINDS[dtype], 18)
    for opset in (18, 21):
        assert advice(dmlc.compile(m, opset=opset)).endswith("an opset below 18, where it runs on the CPU")
    lower = dmlc.compile(m, opset=17)
    assert not r.refusals(lower) and [d.code.id for d in lower.diagnostics] == ["W0601"]
    assert not r.refusals(dmlc.compile(m))


def loads(m: onnx.ModelProto) -> bool:
    return not refusal(m)


TARGETS = ("directml", "cpu", "onnx")
DTYPES = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f64")
#: Operators that ONNX defines by others, for some types of which there is no kernel.
DEFINED = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "Clip", "Relu", "LessOrEqual"),
    *("GreaterOrEqual", "Softmax", "LogSoftmax"),
)


def defined(op: str, dtype: str, opset: int) -> onnx.ModelProto:
    kind = r.DOUBLE if dtype == "f64" else r.KINDS[dtype]
    if op.startswith("Reduce") and opset >= 18:
        return r.reduction(op, kind, opset)
    operands = ["x", "x"] if op.endswith("OrEqual") else ["x"]
    result = onnx.TensorProto.BOOL if op.endswith("OrEqual") else kind
    return r.model([r.node(op, operands, ["y"])], [("x", kind, [2, 3])], [("y", result, None)], opset=opset)


@each_row("op", DEFINED)
@each_row("dtype", DTYPES)
@pytest.mark.parametrize("own", [13, 18, 21])
def test_what_the_cpu_runs_it_runs_at_each_opset_that_is_not_refused(op: str, dtype: str, own: int) -> None:
    """One of the targets for each model, and every other of the opsets that are asked for."""
    turn = DEFINED.index(op) + DTYPES.index(dtype) + own // 3
    target, m = TARGETS[turn % 3], defined(op, dtype, own)
    if not loads(m):
        return
    for opset in dict.fromkeys((None, own, *(13, 17, 18, 20, 21)[turn % 2 :: 2])):
        try:
            program = dmlc.compile(m, target=target, opset=opset)
        except DmlcError as error:
            (found,) = error.diagnostics
            assert opset not in (None, own) and found.code.id in ("E0501", "E0502")
            assert found.code.id == "E0501" or f"opset={own}" in (found.help or "")
        else:
            assert loads(program.to_onnx()), (target, opset)


@each_row("dtype", ["u32", "u64"])
@each_row(("target", "words"), [("directml", "for another target"), ("cpu", ""), ("onnx", "")])
@each_row("opset", [13, 17, 20, 21])
def test_an_asked_opset_that_leaves_no_kernel_is_refused(dtype: str, target: str, words: str, opset: int) -> None:
    with pytest.raises(DmlcError) as caught:
        dmlc.compile(r.reduction("ReduceLogSumExp", r.KINDS[dtype], 18), target=target, opset=opset)
    (found,) = caught.value.diagnostics
    assert found.code.id == "E0502" and found.help is not None
    assert "opset=18" in found.help and words in found.help and "cast the operand to f32" in found.help


def test_an_integer_reduction_that_only_a_definition_runs_is_not_said_to_run_elsewhere() -> None:
    for dtype in ("u32", "u64"):
        for opset in (None, 18):
            m = r.reduction("ReduceLogSumExp", r.KINDS[dtype], 18)
            assert advice(dmlc.compile(m, opset=opset)) == "cast to f32 before it"


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


@each_row("dtype", ["i32", "i64", "u32", "u64"])
@each_row("opset", [18, 21])
def test_means_of_integers_are_repaired(dtype: str, opset: int) -> None:
    program = dmlc.compile(r.reduction("ReduceMean", r.KINDS[dtype], 18), opset=opset)
    assert ("exact-mean", "exact") in r.fired(program) and not r.refusals(program)
    array = r.helper.tensor_dtype_to_np_dtype(r.KINDS[dtype])
    low = np.iinfo(array).min
    x = np.array([[low, low, low + 1], [100, 7, 1]], array)
    want = [[int(abs(sum(row)) // 3) * (1 if sum(row) >= 0 else -1)] for row in x.astype(object).tolist()]
    np.testing.assert_array_equal(program.run({"x": x}, "cpu")["y"], np.array(want, array))
