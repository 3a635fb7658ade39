"""Conditions on the installed versions: tests of what older ONNX Runtimes do wrongly, and newer ones right."""

from __future__ import annotations

import onnxruntime
import pytest

#: Major and minor version of the installed ONNX Runtime.
ONNX_RUNTIME = tuple(map(int, onnxruntime.__version__.split(".")[:2]))
#: The newest opset and IR version that it loads, of those that the tests use.
NEWEST_OPSET, NEWEST_IR = (23, 11) if ONNX_RUNTIME < (1, 24) else (24, 13)


def needs_onnx_runtime(major: int, minor: int, reason: str) -> pytest.MarkDecorator:
    """Skip the test with older versions, for the reason."""
    return pytest.mark.skipif((major, minor) > ONNX_RUNTIME, reason=f"ONNX Runtime before {major}.{minor} {reason}")


#: LayerNormalization of the CPU provider, up to 1.26.
NEEDS_EXACT_LAYER_NORM = needs_onnx_runtime(1, 27, "loses a variance that is small beside its mean")
