"""Every operation, for every dtype of its declaration, at every third opset: the numbers of its NumPy reference."""

from __future__ import annotations

from itertools import product

import pytest
from onnx_cases import Bench, build, build_part, declared, evaluate
from onnx_session import TARGETS, assert_same, check, lower, run, session

from dmlc.diagnostics import DmlcError
from dmlc.ir import DTYPES, FLOATS, INTEGERS, DType, Operation
from dmlc.ir.dtype import bool_, f64
from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.choose import CAST
from dmlc.ops.constant import CONSTANT
from dmlc.ops.elementwise import COS, ERF, GELU
from dmlc.ops.index import IOTA
from dmlc.ops.normalize import RMS_NORM
from dmlc.ops.reduce import REDUCE_L1, REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE
from tests.rows import each_row
from tests.versions import ONNX_RUNTIME

OPSETS = range(11, 22)
#: Operations and dtypes without an exact form anywhere: ONNX Runtime has no f64 kernel of Erf, which GELU is made of.
REFUSED: set[tuple[Operation, DType]] = {(ERF, f64), (GELU, f64)}
#: f64 kernels that older versions of ONNX Runtime lack; nothing exact stands in for f64, so the table keeps them.
LATER = {(COS, f64)} if ONNX_RUNTIME < (1, 31) else set()


def batch(
    dtype: DType, operations: list[Operation], opset: int, target: str, *, optimize: bool, turn: int = 0, parts: int = 1
) -> None:
    bench = Bench(opset, seed=opset)
    for op in operations:
        build_part(bench, op, dtype, turn, parts)
    graph = bench.done()
    want = evaluate(graph, bench.feeds)
    artifact = lower(graph, target, opset)
    check(artifact.payload)
    assert_same(run(session(artifact.payload, optimize=optimize), bench.feeds), want)


#: Each dtype at every third opset, each opset with every third dtype.
TURNS = [(dtype, opset) for number, dtype in enumerate(DTYPES) for opset in OPSETS if (number + opset) % 3 == 0]


def target_of(dtype: DType, opset: int) -> str:
    """The target of a turn: each dtype and each opset meets all three."""
    return TARGETS[(opset // 3 + DTYPES.index(dtype) // 3) % 3]


def test_each_dtype_and_each_opset_meets_each_target() -> None:
    assert {(dtype, target_of(dtype, opset)) for dtype, opset in TURNS} == set(product(DTYPES, TARGETS))
    assert {(opset, target_of(dtype, opset)) for dtype, opset in TURNS} == set(product(OPSETS, TARGETS))


@pytest.mark.parametrize(("dtype", "opset"), TURNS)
def test_all_operations(dtype: DType, opset: int) -> None:
    """One model holds them all; the targets and the optimizer take turns. rms_norm stands below.

    The model has half of the operations, with a third of the calls of each; the next opsets and dtypes have others.
    """
    operations = [op for op in declared(dtype) if (op, dtype) not in REFUSED | LATER and op is not RMS_NORM]
    optimize = ((DTYPES.index(dtype) + opset) // 3 + DTYPES.index(dtype)) % 4 == 0
    turn = opset // 3 + DTYPES.index(dtype) // 3
    half = operations[turn % 2 :: 2]
    batch(dtype, half, opset, target_of(dtype, opset), optimize=optimize, turn=turn, parts=3)


DEPENDING = (11, 13, 14, 18, 20, 21)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("opset", DEPENDING)
def test_what_depends_on_the_target(opset: int, target: str) -> None:
    """Every third dtype: the others take the next targets."""
    turn = (DEPENDING.index(opset) + TARGETS.index(target)) % 3
    for dtype in INTEGERS[turn::3]:
        batch(dtype, [REDUCE_SUM, REDUCE_MEAN, REDUCE_L1, REDUCE_SUM_SQUARE], opset, target, optimize=opset % 2 == 0)
    batch(FLOATS[turn], [CAST, RMS_NORM], opset, target, optimize=opset % 2 == 0)


def test_every_operation_is_in_the_matrix() -> None:
    """So that a new operation cannot stay without cases; iota is not for bool."""
    for op in ALL_OPERATIONS:
        for dtype in DTYPES:
            if op is CONSTANT or op not in list(declared(dtype)) or (op, dtype) == (IOTA, bool_):
                continue
            bench = Bench()
            build(bench, op, dtype)
            assert bench.outputs, f"{op.name} of {dtype.name} has no case"


@each_row(("op", "dtype"), sorted(REFUSED, key=str))
@each_row("opset", OPSETS)
def test_refusals_name_the_reason(op: Operation, dtype: DType, opset: int) -> None:
    bench = Bench(opset)
    build(bench, op, dtype)
    with pytest.raises(DmlcError) as caught:
        lower(bench.done(), "cpu", opset)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "E0502"
    assert "kernel" in diagnostic.message
    assert diagnostic.span is not None
