"""onnx's own node tests, as every process makes them anew; in a fraction of the time that onnx takes."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
from onnx import ModelProto
from onnx.backend.test.case import base
from onnx.backend.test.case.node import collect_testcases
from onnx.reference.ops import op_pool_common

#: Operators whose results differ from run to run.
RANDOM = ("bernoulli", "dropout", "random", "training_dropout")

_pool_of_onnx = op_pool_common.pool


@cache
def onnx_node_tests() -> dict[str, Any]:
    """The tests that have a model, by their names without ``test_``: what onnx calls ``TestCase``.

    onnx also keeps the source of each test for its pages, and pools one window after the other: two thirds of the time.
    """
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),  # onnx computes infinities and overflows on purpose
        patch.object(base, "process_snippet", lambda *names: ("", "")),
        patch.object(op_pool_common, "pool", pool),
    ):
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return {case.name.removeprefix("test_"): case for case in found if isinstance(case.model, ModelProto)}


def pool(padded: Any, x_shape: Any, kernel: Any, strides: Any, out: Any, kind: str, *more: Any, **named: Any) -> Any:
    """Pool as onnx's function of that name does; windows without pads and dilations all at once."""
    if more or named.keys() - {"p"}:
        return _pool_of_onnx(padded, x_shape, kernel, strides, out, kind, *more, **named)
    axes = tuple(range(2, padded.ndim))
    starts: Any = (..., *[slice(None, None, step) for step in strides], *[slice(None)] * len(axes))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=axes)[starts]
    windows = windows.reshape(*windows.shape[: padded.ndim], -1)
    if kind == "LPPOOL":
        return np.sum(np.abs(windows) ** named["p"], axis=-1) ** (1.0 / named["p"])
    return np.mean(windows, axis=-1) if kind == "AVG" else np.max(windows, axis=-1)
