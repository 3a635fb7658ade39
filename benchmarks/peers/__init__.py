"""Other libraries. All are optional; those of the extra ``bench`` are the versions that bars were set with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from onnx import ModelProto

from benchmarks.measure import Deferred, Runner
from benchmarks.operations import Operation
from benchmarks.records import Settings
from benchmarks.sessions import SessionRun

#: As in the extra ``bench`` of pyproject.toml; onnxscript is run with onnx-shape-inference.
PINNED = {
    "onnxsim": "0.8.1",
    "onnxslim": "0.1.98",
    "onnxscript": "0.7.2",
    "jax": "0.10.2",
    "torch": "2.13.0",
    "numba": "0.68.1",
}
#: Peers that compute, each in a module that is loaded only when it is asked for.
_COMPUTE = ("jax", "torch", "numba")


def installed(names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The versions of the peers that are there, and what is to be said of the others."""
    found, said = {}, []
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            said.append(f"{name} is missing: pip install {name}=={PINNED[name]}")
            continue
        if found[name].partition("+")[0] != PINNED[name]:
            said.append(f"{name} is {found[name]}; the bars were set with {PINNED[name]}")
    return found, said


def runners(operation: Operation, arrays: Sequence[np.ndarray], settings: Settings) -> dict[str, Runner]:
    """The operation in each peer that computes, by variant; one that has no form of it is left out."""
    out: dict[str, Runner] = {}
    for name in _COMPUTE:
        if name in settings.peers:
            module = importlib.import_module(f"benchmarks.peers.{name}_peer")
            out.update(module.runners(operation, arrays, settings.threads))
    return out


def simplified(model: ModelProto, feeds: Mapping[str, np.ndarray], settings: Settings) -> dict[str, Deferred]:
    """The models that rewriting peers make of one, to be run as it is run."""

    def run(tool: Callable[[ModelProto], ModelProto]) -> SessionRun:
        return SessionRun(tool(_copy(model)), feeds, settings.threads)

    return {name: Deferred(run, tool) for name, tool in REWRITERS.items() if name in settings.peers}


def _onnxsim(model: ModelProto) -> ModelProto:
    import onnxsim

    out: ModelProto = onnxsim.simplify(model)[0]
    return out


def _onnxslim(model: ModelProto) -> ModelProto:
    import onnxslim

    out: ModelProto = onnxslim.slim(model)
    return out


def _onnxscript(model: ModelProto) -> ModelProto:
    """After inference of sizes that are expressions, without which it folds less."""
    import onnx_ir
    import onnxscript.optimizer
    from onnx_shape_inference import infer_symbolic_shapes

    out: ModelProto = onnx_ir.to_proto(onnxscript.optimizer.optimize(infer_symbolic_shapes(onnx_ir.from_proto(model))))
    return out


#: Peers that rewrite a model.
REWRITERS = {"onnxsim": _onnxsim, "onnxslim": _onnxslim, "onnxscript": _onnxscript}


def _copy(model: ModelProto) -> ModelProto:
    out = ModelProto()
    out.CopyFrom(model)
    return out
