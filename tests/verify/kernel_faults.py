"""Faults of this machine's kernels, measured: old releases compute other numbers than the tests' pairs mean."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnxruntime
from model_pairs import I32, model, node, reductions
from onnx import ModelProto

from dmlc.verifying import Verdict


def _run(proto: ModelProto, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    found: np.ndarray[Any, Any] = session.run(None, {"x": x})[0]
    return found


@cache
def loses_large_means() -> bool:
    """LayerNormalization of ONNX Runtime up to 1.26 takes the square of the mean from the mean of the squares."""
    constants = {"scale": np.ones(8, np.float32)}
    proto = model(node("LayerNormalization", ["x", "scale"], ["y"]), x=(1, 8), constants=constants)
    deviations = np.arange(8, dtype=np.float32)
    return not np.allclose(_run(proto, deviations[None] + 4096), _run(proto, deviations[None]), atol=1e-2)


@cache
def sums_wrap() -> bool:
    """ReduceSum of int32 wraps in ONNX Runtime up to 1.26, and saturates since."""
    total = _run(reductions("ReduceSum", (0,), x=(2,), dtype=I32), np.array([2**31 - 1, 1], np.int32))
    return bool(total.ravel()[0] == -(2**31))


def is_fault_of_layer_norm(verdict: Verdict, output: str = "y") -> bool:
    """True if the kernel loses large means, and only inputs of a large mean give other numbers, at that output."""
    wrong = [report for report in verdict.outputs if report.found is not None]
    return loses_large_means() and all(
        report.name == output and report.found is not None and report.found.pattern == "large mean" for report in wrong
    )
