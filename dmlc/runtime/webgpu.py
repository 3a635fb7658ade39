"""ONNX Runtime's WebGPU provider: its device, and what that computes. The standard library is enough to load this.

https://onnxruntime.ai/docs/execution-providers/WebGPU-ExecutionProvider.html. The package onnxruntime-ep-webgpu has it
as a plugin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.libraries import no_provider, require
from dmlc.runtime.distributions import plugin_version
from dmlc.workers.sessions import ProviderMissing, is_software, webgpu_device


@dataclass(frozen=True, slots=True)
class WebGPUDevice:
    """The device of the provider. ``version`` is the plugin's, empty where ONNX Runtime has the provider itself.
    ``software`` is a driver that computes on the CPU. ``runs`` and ``f16`` report whether it computed a sum of f32 and
    of f16."""

    version: str
    vendor: str
    software: bool
    runs: bool
    f16: bool


def on_software() -> bool:
    """Return whether the provider's device is a driver that computes on the CPU. Raises ``DmlcError`` E0553, E0560."""
    try:
        return is_software(webgpu_device(require("onnxruntime")))
    except ProviderMissing as missing:
        raise no_provider(str(missing)) from None


@cache
def webgpu_device_facts() -> WebGPUDevice:
    """The facts of the device; sums are computed in the worker. Raises ``DmlcError`` E0553, E0560."""
    software = on_software()
    vendor = webgpu_device(require("onnxruntime")).device.vendor
    return WebGPUDevice(plugin_version(), vendor, software, _computes("float32"), _computes("float16"))


def _computes(dtype: str) -> bool:
    """Return whether the provider computes x + x itself: ONNX Runtime hands no node to the CPU here."""
    import numpy as np
    from onnx import helper

    from dmlc.runtime.ort_model import OrtModel
    from dmlc.runtime.runnable import NoEvidence, RunFailed

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    values = [helper.make_tensor_value_info(name, kind, (2,)) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "sum", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    try:
        run = OrtModel(model, backend="webgpu", isolated=True, whole=True).run({"x": np.array([1, 2], dtype)})
    except (RunFailed, NoEvidence, DmlcError):
        return False
    return np.array_equal(run["y"], np.array([2, 4], dtype))
