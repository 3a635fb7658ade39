"""Times on ONNX Runtime: of each node by itself, from its profile, and of the whole model as it is used."""

from __future__ import annotations

import json
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from dmlc.codegen.artifact import Artifact
from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.inference.open_sizes import open_inputs
from dmlc.ir import Array, DimExpr
from dmlc.onnx_schema.nested import graphs_of
from dmlc.placement.node_counts import is_constant
from dmlc.runtime.feeds import FeedChecker
from dmlc.runtime.session import onnxruntime, open_session, opset_help, session_options
from dmlc.workers.sessions import bound_run

#: Nodes stay apart, so that each is timed (onnxruntime, dml_session_options_config_keys.h).
_NO_FUSION = ("ep.dml.disable_graph_fusion", "1")
_WARM_UP = 2
_SUFFIX = "_kernel_time"
_PLACE = re.compile(r"dmlc (\d+)")
_EVENT = re.compile(_PLACE.pattern + _SUFFIX)


@dataclass(frozen=True, slots=True)
class NodeTime:
    """One node: the provider that ran it and the median of its microseconds in a run.

    On DirectML these are the microseconds in which its work is handed to the device, which computes later.
    """

    name: str
    op: str
    provider: str
    microseconds: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Profile of a run: ``nodes`` by their position in ``nodes_of``, without those that did not run.

    ``own`` are the nodes that ONNX Runtime inserted: copies between devices, casts.
    """

    nodes: Mapping[int, NodeTime]
    own: tuple[NodeTime, ...]


@dataclass(frozen=True, slots=True)
class WholeTime:
    """Medians of a run: of the model, fused and optimized, and of a model that does nothing.

    ``on_device`` is false where the inputs and outputs are copied from and to the host in each run.
    """

    microseconds: float
    idle_microseconds: float
    on_device: bool


def nodes_of(graph: GraphProto, *, inside: bool = False) -> Iterator[tuple[NodeProto, bool]]:
    """The nodes in the order of a placement report, constants left out: each before those of the graphs inside it,
    which are marked by True."""
    for node in graph.node:
        if is_constant(node):
            continue
        yield node, inside
        for inner in graphs_of(node):
            yield from nodes_of(inner, inside=True)


def fed_sizes(artifact: Artifact, feeds: Mapping[str, Any], source: ModelProto | None = None) -> dict[str, int]:
    """The open dims of the inputs and the sizes that they have in the feeds.

    Of a program that was imported from the model ``source`` only those that it names: ``fed_shapes`` has the others.
    """
    found: dict[str, int] = {}
    for name, type in artifact.signature.inputs:
        shape = np.shape(feeds[name]) if name in feeds else ()
        if len(shape) == len(type.shape):
            open_sizes = zip(type.shape, shape, strict=True)
            found |= {dim.name: size for dim, size in open_sizes if isinstance(dim, DimExpr) and dim.name}
    if source is None:
        return found
    shapes = [info.type.tensor_type.shape for info in source.graph.input]
    named = {dim.dim_param for shape in shapes for dim in shape.dim}
    return {name: size for name, size in found.items() if name in named}


def fed_shapes(feeds: Mapping[str, Any], source: ModelProto | None) -> dict[str, tuple[int, ...]]:
    """The shapes that feeds give to the inputs of a model whose ranks, or sizes without a name, are open."""
    names = [] if source is None else open_inputs(source.graph.input)
    return {name: np.shape(feeds[name]) for name in names if name in feeds}


def profile(artifact: Artifact, feeds: Mapping[str, Any], backend: str, rounds: int) -> Profile:
    """Run the model so that every node is a kernel of its own, unoptimized and unfused, and read who ran it.

    Raises ``DmlcError``: E0553 where the provider is missing, E0560 where ONNX Runtime is, E0554 where it refuses or
    fails, and what ``FeedChecker.check`` raises.
    """
    options, providers = session_options(backend, folder=artifact.folder, model=artifact.payload)
    options.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry(*_NO_FUSION)
    arrays = FeedChecker(artifact.signature).check(feeds)
    names = [node.name or node.op_type for node, _ in nodes_of(artifact.payload.graph)]
    model = _numbered(artifact.payload)
    folder_made = tempfile.TemporaryDirectory(prefix="dmlc-bench-", ignore_cleanup_errors=True)
    with folder_made as folder, _told(model, names):
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = open_session(model, options, providers)
        try:
            for _ in range(_WARM_UP + rounds):
                session.run(None, arrays)
        finally:
            written = Path(session.end_profiling())  # the file is open until then, and Windows keeps open files
        events = json.loads(written.read_text(encoding="utf-8", errors="replace"))
    return read_profile(events, names)


def read_profile(events: Iterable[Mapping[str, Any]], names: list[str]) -> Profile:
    """The medians over the runs but the first ones; a node that runs several times in a run counts as their sum."""
    runs: list[dict[str, float]] = [defaultdict(float)]
    facts: dict[str, tuple[str, str]] = {}
    for event in events:
        label, args = str(event.get("name", "")), event.get("args", {})
        if event.get("cat") == "Node" and label.endswith(_SUFFIX):
            runs[-1][label] += float(event["dur"])
            facts[label] = (str(args.get("op_name", "")), str(args.get("provider", "")))
        elif event.get("cat") == "Session" and label == "model_run":
            runs.append(defaultdict(float))
    done = runs[:-1] or runs
    done = done[_WARM_UP:] or done
    nodes, own = {}, []
    for label, (op, provider) in facts.items():
        microseconds = statistics.median(run.get(label, 0.0) for run in done)
        match = _EVENT.fullmatch(label)
        if match:
            number = int(match[1])
            nodes[number] = NodeTime(names[number], op, provider, microseconds)
        else:
            own.append(NodeTime(label.removesuffix(_SUFFIX), op, provider, microseconds))
    return Profile(nodes, tuple(own))


def whole(artifact: Artifact, feeds: Mapping[str, Any], backend: str, rounds: int) -> WholeTime:
    """Time the model as it is used, with graph fusion and all optimizations, inputs and outputs staying on the device.

    Raises what ``profile`` raises.
    """
    arrays = FeedChecker(artifact.signature).check(feeds)
    with _told(artifact.payload):
        median, on_device = median_run(artifact.payload, artifact.folder, arrays, backend, rounds)
        empty, _ = median_run(_idle_model(), None, {"x": np.zeros(1, np.float32)}, backend, rounds)
    return WholeTime(median, empty, on_device)


def median_run(
    model: ModelProto, folder: Path | None, arrays: Mapping[str, Array], backend: str, rounds: int
) -> tuple[float, bool]:
    """The median microseconds of a run, and whether its data stayed on the device."""
    session = open_session(model, *session_options(backend, folder=folder, model=model))
    run: Callable[[], Any]
    try:
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        run = bound_run(onnxruntime(), session, whole, "dml" if backend == "dml" else "cpu")
        on_device = backend != "webgpu"  # its tensors are copied: Python makes none on its device
        run()
    except Exception:  # this ONNX Runtime cannot keep such tensors on the device; it has no class for what it raises
        run, on_device = partial(session.run, None, dict(arrays)), False
    times = []
    for index in range(_WARM_UP + rounds):
        start = time.perf_counter()
        run()
        if index >= _WARM_UP:
            times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times), on_device


def _idle_model() -> ModelProto:
    """A model that hands one number on."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "idle", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _numbered(model: ModelProto) -> ModelProto:
    """Return a copy whose nodes are named after their position, so that the profile identifies them."""
    out = ModelProto()
    out.CopyFrom(model)
    for number, (node, _) in enumerate(nodes_of(out.graph)):
        node.name = f"dmlc {number}"
    return out


@contextmanager
def _told(model: ModelProto, names: Sequence[str] = ()) -> Iterator[None]:
    """Turns what ONNX Runtime raises about the model into E0554; ``names`` are those of the nodes that are named by
    their places."""
    try:
        yield
    except (DmlcError, OSError, MemoryError):
        raise
    except Exception as error:  # onnxruntime's exceptions have no common base class
        text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", " ".join(str(error).split()))
        text = _PLACE.sub(lambda found: names[int(found[1])] if names else found[0], text)
        help = opset_help(model, text) or "dmlc check SRC prints the rows of the tables for the model"
        raise fail(codes.RUNTIME_FAILED, f"ONNX Runtime refuses the model or fails: {text}", help=help) from None
