"""The program in a bundle that shows the fault again: numpy and onnxruntime are all that it needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_TEXT = '''\
"""Shows a wrong result again. Needs numpy and onnxruntime:  python run.py [--provider cpu|dml|webgpu|cuda|NAME]"""

import argparse
import importlib.metadata
import os
import platform
import sys

import numpy as np

SETTINGS = __SETTINGS__
FOLDER = os.path.dirname(os.path.abspath(__file__))
PROVIDERS = {"cpu": "CPUExecutionProvider", "dml": "DmlExecutionProvider", "cuda": "CUDAExecutionProvider"}
PROVIDERS["webgpu"] = "WebGpuExecutionProvider"


def distributions():
    """Every installed distribution of ONNX Runtime: they share one folder, and the last one that was installed wins."""
    found = set()
    for each in importlib.metadata.distributions():
        name = (each.metadata["Name"] or "").lower()
        files = (each.read_text("top_level.txt") or "").split()
        if "onnxruntime" in files or name.startswith(("onnxruntime", "ort-nightly")):
            found.add(name + " " + str(each.version))
    return sorted(found)


def session(path, provider, optimized):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if provider == PROVIDERS["webgpu"]:
        import onnxruntime_ep_webgpu

        if not any(each.ep_name == provider for each in onnxruntime.get_ep_devices()):
            onnxruntime.register_execution_provider_library("webgpu", onnxruntime_ep_webgpu.get_library_path())
        if not any(each.ep_name == provider for each in onnxruntime.get_ep_devices()):
            raise RuntimeError("it finds no GPU; ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER=1 allows a driver on the CPU")
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if provider == "DmlExecutionProvider":
        options.enable_mem_pattern = False
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    providers = [provider] if provider == "CPUExecutionProvider" else [provider, "CPUExecutionProvider"]
    return onnxruntime.InferenceSession(os.path.join(FOLDER, path), options, providers=providers)


def compare(name, expected, found):
    """A line about one output, and True if it is right."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        text = "expected %s%s, found %s%s" % (expected.dtype, expected.shape, found.dtype, found.shape)
        return name + ": " + text, False
    if expected.dtype.kind not in "fc":
        wrong = expected != found
    else:
        a, b = expected.astype(np.float64), found.astype(np.float64)
        rtol, scaled, atol = SETTINGS["tolerance"].get(expected.dtype.name, [0.0, 0.0, 0.0])
        top = np.abs(a[np.isfinite(a)]).max() if np.isfinite(a).any() else 0.0
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= rtol * np.abs(a) + scaled * top + atol
        wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(a) & np.isfinite(b) & near))
    if not wrong.any():
        return name + ": right", True
    place = tuple(np.argwhere(wrong)[0])
    if expected.dtype.kind == "f":
        with np.errstate(all="ignore"):
            apart = np.where(wrong, np.nan_to_num(np.abs(a - b), nan=np.inf), -1.0)
        place = np.unravel_index(int(np.argmax(apart)), apart.shape)
    at = "[" + ", ".join(str(int(i)) for i in place) + "]"
    text = "expected %r, found %r at %s (%d of %d elements differ)"
    return name + ": " + text % (expected[place].item(), found[place].item(), at, wrong.sum(), wrong.size), False


def run(path, provider, optimized, feeds, expected):
    """The lines about one model, and True if all outputs are right."""
    try:
        model = session(path, provider, optimized)
        feeds = {each.name: feeds[each.name] for each in model.get_inputs()}
        names = [each.name for each in model.get_outputs()]
        results = dict(zip(names, model.run(names, feeds)))
    except Exception as error:
        return ["it fails: " + " ".join(str(error).split())[:300]], False
    found = [compare(name, array, np.asarray(results[name])) for name, array in expected.items() if name in results]
    return [line for line, _ in found], all(right for _, right in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", default=SETTINGS["provider"])
    provider = parser.parse_args().provider
    provider = PROVIDERS.get(provider.lower(), provider)
    print("python %s, %s" % (platform.python_version(), platform.platform()))
    print("numpy", np.__version__)
    print("installed:", ", ".join(distributions()) or "no distribution of ONNX Runtime")
    try:
        import onnxruntime
    except ImportError as error:
        print("onnxruntime cannot be imported:", error)
        return 2
    print("onnxruntime %s from %s" % (onnxruntime.__version__, os.path.dirname(onnxruntime.__file__)))
    print("providers:", ", ".join(onnxruntime.get_available_providers()))
    if provider not in onnxruntime.get_available_providers():
        print("%s is not available here: install a build that has it, or give --provider" % provider)
        return 2
    with np.load(os.path.join(FOLDER, "case.npz")) as case:
        arrays = {name: case[name] for name in case.files}
    feeds = {name[4:]: array for name, array in arrays.items() if name.startswith("in::")}
    expected = {name[5:]: array for name, array in arrays.items() if name.startswith("out::")}
    shown = False
    for optimized in (True, False):
        print("model.onnx on %s, %s" % (provider, "optimized" if optimized else "without optimizations"))
        lines, right = run("model.onnx", provider, optimized, feeds, expected)
        shown = shown or not right
        for line in lines:
            print("  " + line)
    print("the fault shows" if shown else "the fault does not show")
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
'''


def runner_text(provider: str, tolerance: Mapping[str, Any]) -> str:
    """The program; ``provider`` is its default, ``tolerance`` three factors for each dtype: of the element, of the
    largest magnitude, and a constant."""
    settings = json.dumps({"provider": provider, "tolerance": dict(tolerance)}, sort_keys=True)
    return _TEXT.replace("__SETTINGS__", settings)
