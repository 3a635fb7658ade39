"""ONNX's reference evaluator, with the operators by their definitions that it computes otherwise (onnx 1.23)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnx.reference import ReferenceEvaluator


def onnx_evaluator(model: ModelProto) -> ReferenceEvaluator:
    """The evaluator of a model. Raises what ``onnx`` raises."""
    from onnx.reference import ReferenceEvaluator  # loads slowly, and only running asks for it

    return ReferenceEvaluator(model, new_ops=_mended())


@cache
def _mended() -> list[type]:
    from onnx.reference.op_run import OpRun

    class LRN(OpRun):  # type: ignore[misc]
        """x / (bias + alpha / size * the sum of squares of the channels around)^beta, for each channel.

        onnx 1.23 sums for as many channels as there are batches. Source: LRN of ONNX's operators.
        """

        op_domain = ""

        def _run(self, x: Any, alpha: float, beta: float, bias: float, size: int) -> tuple[Any]:
            before, after = (size - 1) // 2, size // 2
            pads = [(0, 0)] * x.ndim
            pads[1] = (before, after)
            squares = np.pad(np.square(x), pads)
            total = sum(squares[:, start : start + x.shape[1]] for start in range(size))
            return (np.asarray(x / (bias + alpha / size * total) ** beta).astype(x.dtype),)

    class LpNormalization(OpRun):  # type: ignore[misc]
        """x / the norm of order p along an axis, 0 where the norm is 0.

        onnx 1.23 adds signed elements for p = 1. Source: LpNormalization of ONNX's operators.
        """

        op_domain = ""

        def _run(self, x: Any, axis: int, p: int) -> tuple[Any]:
            norm = np.sum(np.abs(x) ** p, axis=axis, keepdims=True) ** (1 / p)
            return (np.where(norm == 0, 0, x / norm).astype(x.dtype),)

    return [LRN, LpNormalization]
