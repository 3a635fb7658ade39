"""Programs and models on the WebGPU provider, in the worker: some of its faults end the process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from onnx import ModelProto

import dmlc
from dmlc.runtime.ort_model import ALL, OrtModel
from tests import kit

Arrays = Mapping[str, np.ndarray]


def on_webgpu(model: ModelProto, feeds: Arrays, folder: Path | None = None, *, whole: bool = False) -> Arrays:
    """The outputs with ONNX Runtime's default optimizations; ``whole`` is refused if a node runs on the CPU."""
    session = OrtModel(model, folder, backend="webgpu", level=ALL, isolated=True, whole=whole)
    return session.run({name: feeds[name] for name in session.inputs})


def compiled_on_webgpu(program: dmlc.Program, feeds: Arrays) -> Arrays:
    """The outputs of what a program emits."""
    artifact = program.artifact("onnx")
    return on_webgpu(artifact.payload, feeds, artifact.folder)


def apart(got: Arrays, want: Arrays) -> list[str]:
    """The outputs that differ, by the tolerances of the kit, each with its first place."""
    out = []
    for name, array in want.items():
        if not kit.same(got[name], array):
            found, wanted = np.asarray(got[name]), np.asarray(array)
            text = f"{found.dtype}{found.shape} for {wanted.dtype}{wanted.shape}"
            if text.split(" for ")[0] == text.split(" for ")[1]:
                place = tuple(np.argwhere(~np.isclose(found, wanted, rtol=1e-5, atol=1e-6, equal_nan=True))[0])
                text = f"{found[place]!r} for {wanted[place]!r} at {list(map(int, place))}"
            out.append(f"{name}: {text}")
    return out
