"""Programs and models on a provider, ``dml`` or ``cpu``: strictly where the placement report allows it.

The tests on the real provider and those that run everywhere go through the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_cases
from onnx_cases import Bench, build

import dmlc
from dmlc.ir import DType, Operation
from dmlc.placement.node import NodePlacement
from dmlc.placement.report import Placement
from dmlc.runtime import bench
from dmlc.runtime.session import open_session, session_options
from dmlc.targets import TargetName

Feeds = Mapping[str, np.ndarray]
NAMES = {"dml": "DmlExecutionProvider", "cpu": "CPUExecutionProvider"}
#: A session is refused where a node would land on the CPU (onnxruntime_session_options_config_keys.h).
STRICT = ("session.disable_cpu_ep_fallback", "1")
#: Against the reference. DirectML's and ONNX Runtime's functions are approximations of some units in the last place,
#: sums are added in another order, and f16 is rounded after each operator. f64 is computed on the CPU.
TOLERANCE = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-12}


def operation_program(op: Operation, dtype: DType, target: TargetName = "directml") -> tuple[dmlc.api.Program, Bench]:
    """The calls of one operation for one dtype, compiled for a target, and their data."""
    cases = Bench()
    build(cases, op, dtype)
    graph = dmlc.Graph("calls")
    graph.graph = cases.done()
    return dmlc.compile(graph, target=target), cases


def sized(source: Any, feeds: Feeds) -> dmlc.api.Program:
    """A program or model compiled for DirectML with its open sizes fixed to those of the feeds."""
    program = dmlc.compile(source)
    sizes = bench.fed_sizes(program.artifact("onnx"), feeds, program.source_model)
    return dmlc.compile(source, bind=sizes) if sizes else program


def is_strict(report: Placement) -> bool:
    """True if every node is said to run on DirectML, none wrongly."""
    return not (report.fails or report.count("cpu") or report.count("unknown"))


def open_model(model: onnx.ModelProto, backend: str, *, strict: bool, folder: Path | None = None) -> Any:
    """A session; a strict one on DirectML is not created where a node would land on the CPU."""
    options, providers = session_options(backend, folder=folder)
    if strict and backend == "dml":
        options.add_session_config_entry(*STRICT)
        providers = [NAMES[backend]]
    return open_session(model, options, providers)


def run_program(program: dmlc.api.Program, feeds: Feeds, backend: str) -> dict[str, np.ndarray]:
    """The outputs by name, all of them computed on DirectML if the report says so."""
    artifact = program.artifact("onnx")
    session = open_model(artifact.payload, backend, strict=is_strict(program.placement()), folder=artifact.folder)
    names = [output.name for output in session.get_outputs()]
    taken = {input.name for input in session.get_inputs()}
    fed = {name: array for name, array in feeds.items() if name in taken}
    return dict(zip(names, session.run(names, fed), strict=True))


def displaced(program: dmlc.api.Program, feeds: Feeds, backend: str) -> list[str]:
    """The nodes that another provider ran than the report says; on ``cpu`` all of them are to run there."""
    artifact, report = program.artifact("onnx"), program.placement()
    ran = bench.profile(artifact, feeds, backend, 1).nodes
    out = []
    for place, said in enumerate(report.nodes):
        wanted = _wanted(said, backend)
        if wanted and place in ran and ran[place].provider != wanted:
            out.append(f"{said.op} {said.name} ran on {ran[place].provider}, not {wanted}: {said.why}")
    return out


def _wanted(said: NodePlacement, backend: str) -> str:
    """The provider that is to run a node; empty where the report does not say."""
    if said.where not in ("provider", "cpu"):
        return ""
    return NAMES[backend if said.where == "provider" else "cpu"]


def differences(got: Feeds, want: Feeds) -> list[str]:
    """The differences: integers, indices and bool exactly, floats within the dtype's tolerance."""
    return onnx_cases.differences(got, want, TOLERANCE)


def is_refused(model: onnx.ModelProto, feeds: Feeds, backend: str, want: Feeds | None = None) -> bool:
    """True if the session is not created or does not run; with ``want`` also whether other numbers come out."""
    try:
        session = open_model(model, backend, strict=False)
        names = [output.name for output in session.get_outputs()]
        got = dict(zip(names, session.run(names, dict(feeds)), strict=True))
    except Exception:  # onnxruntime's exceptions have no common base class
        return True
    return want is not None and bool(differences(got, want))


def expected(model: onnx.ModelProto, feeds: Feeds) -> dict[str, np.ndarray]:
    """The results on ONNX Runtime's CPU provider: of the model, or of what it is compiled to where that provider does
    not take the model."""
    for each in (model, dmlc.compile(model).to_onnx()):
        try:
            session = open_model(each, "cpu", strict=False)
            names = [output.name for output in session.get_outputs()]
            return dict(zip(names, session.run(names, dict(feeds)), strict=True))
        except Exception as error:  # onnxruntime's exceptions have no common base class
            reason = error
    raise reason


def repaired_differences(model: onnx.ModelProto, feeds: Feeds, backend: str) -> list[str] | None:
    """Compare what the model is compiled to with ``expected``; None where no repair makes it sound."""
    program = dmlc.compile(model)
    if program.placement().fails:
        return None
    return differences(run_program(program, feeds, backend), expected(model, feeds))


# --- models from a folder


def case_of(path: Path, program: dmlc.api.Program) -> dict[str, np.ndarray]:
    """The inputs of a model: ``in::NAME`` of the .npz file beside it, or made up."""
    beside = path.with_suffix(".npz")
    if not beside.exists():
        return program.random_feeds(0)
    with np.load(beside) as stored:
        return {key.removeprefix("in::"): stored[key] for key in stored if key.startswith("in::")}


def model_differences(path: Path, backend: str) -> list[str]:
    """A model compiled for DirectML on the provider against the model as it is on ONNX Runtime's CPU."""
    feeds = case_of(path, dmlc.compile(path))
    program = sized(path, feeds)
    want = on_cpu(path, feeds)
    if program.placement().fails:
        refused = is_refused(program.to_onnx(), feeds, backend, want)
        return [] if refused else [f"it runs, though the report says: {program.placement().verdict}"]
    return differences(run_program(program, feeds, backend), want) + displaced(program, feeds, backend)


def on_cpu(path: Path, feeds: Feeds) -> dict[str, np.ndarray]:
    """The outputs of the model itself, unoptimized."""
    import onnxruntime

    options, providers = session_options("cpu")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=providers)
    names = [output.name for output in session.get_outputs()]
    taken = {input.name for input in [*session.get_inputs(), *session.get_overridable_initializers()]}
    fed = {name: array for name, array in feeds.items() if name in taken}
    return dict(zip(names, session.run(names, fed), strict=True))
