"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from dmlc.ir import NUMERIC, Array, Attributes, Operand, Operation
from dmlc.ops.attributes import AxisKind, FlagKind, attribute
from dmlc.ops.literals import quiet
from dmlc.ops.rules import same_type


class ScanAttributes(Attributes, frozen=True, kw_only=True):
    axis: Annotated[int, attribute(AxisKind(), "the axis to run along")]
    exclusive: Annotated[
        bool,
        attribute(FlagKind(), "leave the element itself out; the first is then 0 (1 for a product)", default=False),
    ]
    reverse: Annotated[bool, attribute(FlagKind(), "run from the end", default=False)]


def _scan(ufunc: Any, start: int) -> Callable[[ScanAttributes, Array], Any]:
    def function(a: ScanAttributes, x: Array) -> Any:
        moved = np.moveaxis(x, a.axis, -1)
        if a.reverse:
            moved = moved[..., ::-1]
        if a.exclusive:
            first = np.full((*moved.shape[:-1], min(1, moved.shape[-1])), start, dtype=x.dtype)
            moved = np.concatenate([first, moved[..., :-1]], axis=-1)
        out = ufunc.accumulate(moved, axis=-1, dtype=x.dtype)
        return np.moveaxis(out[..., ::-1] if a.reverse else out, -1, a.axis)

    return function


_NOTES = {
    "nan": "a NaN makes all that follow it NaN",
    "overflow": "integers wrap modulo 2^n; f16 is accumulated in f32",
    "empty": "an empty result",
}

CUMSUM = Operation(
    name="cumsum",
    title="CumSum",
    operands=(Operand("x", NUMERIC),),
    attributes=ScanAttributes,
    infer=same_type,
    reference=quiet(_scan(np.add, 0)),
    summary="Running sums along an axis.",
    source="DML_CUMULATIVE_SUMMATION_OPERATOR_DESC; ONNX CumSum",
    notes=_NOTES,
)

CUMPROD = Operation(
    name="cumprod",
    title="CumProd",
    operands=(Operand("x", NUMERIC),),
    attributes=ScanAttributes,
    infer=same_type,
    reference=quiet(_scan(np.multiply, 1)),
    summary="Running products along an axis.",
    source="DML_CUMULATIVE_PRODUCT_OPERATOR_DESC; ONNX has none below opset 26",
    notes=_NOTES,
)

SCANS: tuple[Operation, ...] = (CUMSUM, CUMPROD)
