"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import NUMERIC, Array, Inference, Operand, Operation, OpError, TensorType
from dmlc.ops.literals import quiet
from dmlc.ops.rules import broadcast


def _infer(call: Inference) -> Sequence[TensorType]:
    """NumPy's rules: a vector on the left is a row, on the right a column, and its axis goes away again."""
    a, b = call.type(0), call.type(1)
    for i, operand in enumerate((a, b)):
        if operand.rank == 0:
            raise OpError(
                codes.WRONG_SHAPE, "matmul does not take scalars", at=i, about=i, help="multiply by a scalar with *"
            )
    left = a.shape if a.rank > 1 else (1, *a.shape)
    right = b.shape if b.rank > 1 else (*b.shape, 1)
    if not call.dims.equal(left[-1], right[-2]):
        message = f"matmul of {a} and {b}: {left[-1]} columns against {right[-2]} rows"
        static = isinstance(left[-1], int) and isinstance(right[-2], int)
        help = "the last size of the first must equal the last but one of the second"
        raise OpError(
            codes.WRONG_SHAPE,
            message,
            about=0,
            help=help if static else f"{left[-1]} and {right[-2]} are not proved equal; use one dim name for both",
        )
    batch = broadcast(call, (left[:-2], right[:-2]))
    rows = (left[-2],) if a.rank > 1 else ()
    columns = (right[-1],) if b.rank > 1 else ()
    return [a.with_shape((*batch, *rows, *columns))]


def _matmul(_: Any, a: Array, b: Array) -> Any:
    return np.matmul(a, b)


MATMUL = Operation(
    name="matmul",
    title="MatMul",
    operands=(Operand("a", NUMERIC), Operand("b", NUMERIC)),
    infer=_infer,
    reference=quiet(_matmul),
    summary="The matrix product by NumPy's rules: leading axes broadcast, vectors are rows or columns.",
    source="DML_GEMM_OPERATOR_DESC; ONNX MatMul; numpy.matmul",
    notes={
        "nan": "propagates",
        "overflow": "integers wrap modulo 2^n; f16 is accumulated in f32",
        "empty": "over a contraction of size 0 the sums are 0",
    },
)
