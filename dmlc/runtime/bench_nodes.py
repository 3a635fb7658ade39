"""Times of single nodes until the device is done with them: each as a model of its own, fed with what the ones before
it gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from dmlc.codegen.artifact import Artifact
from dmlc.ir import Array
from dmlc.onnx_schema.nested import graphs_of, values_read_by
from dmlc.placement.node_counts import is_constant
from dmlc.runtime.bench import median_run, nodes_of
from dmlc.runtime.feeds import FeedChecker
from dmlc.runtime.session import open_session, session_options


def alone(artifact: Artifact, feeds: Mapping[str, Any], backend: str, rounds: int, idle: float) -> dict[int, float]:
    """The median microseconds of each node by its place in ``nodes_of``, less the ``idle`` ones of a run of nothing.

    Nodes inside others are timed with them. A node that the provider does not run by itself, or whose operands are not
    tensors, has no time. Values are dropped when nothing reads them any more.
    """
    model = artifact.payload
    values: dict[str, Array] = dict(FeedChecker(artifact.signature).check(feeds))
    weights = {tensor.name: tensor for tensor in (*model.graph.initializer, *_constants(model.graph))}
    left = Counter(name for node in model.graph.node for name in set(values_read_by(node)))
    times: dict[int, float] = {}
    for place, (node, inside) in enumerate(nodes_of(model.graph)):
        if inside:
            continue
        names = list(dict.fromkeys(values_read_by(node)))
        known = all(name in values or name in weights or name in _made_inside(node) for name in names)
        single = _single(model, node, names, values, weights) if known else None
        if single is not None:
            arrays = {name: values[name] for name in names if name in values}
            results = _results(single, artifact, arrays)
            if results is not None:
                values |= results
                try:
                    median, _ = median_run(single, artifact.folder, arrays, backend, rounds)
                    times[place] = max(median - idle, 0.0)
                except Exception:  # a node that this provider refuses; onnxruntime has no class for what it raises
                    pass
        left.subtract(names)
        for name in names:
            if left[name] <= 0:
                values.pop(name, None)
    return times


def _constants(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the values of ``Constant`` nodes as tensors."""
    for node in graph.node:
        if is_constant(node):
            for attribute in node.attribute:
                if attribute.name == "value":
                    tensor = TensorProto()
                    tensor.CopyFrom(attribute.t)
                    tensor.name = node.output[0]
                    yield tensor


def _made_inside(node: NodeProto) -> set[str]:
    """The values that the inner graphs of a node make themselves."""
    out: set[str] = set()
    for graph in graphs_of(node):
        out |= {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
        for inner in graph.node:
            out |= {*inner.output} | _made_inside(inner)
    return out


def _single(
    model: ModelProto, node: NodeProto, names: list[str], values: Mapping[str, Array], weights: Mapping[str, Any]
) -> ModelProto | None:
    """The node as a model: what is constant in the whole one stays so. None for elements that ONNX has no type for."""
    try:
        inputs = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(np.asarray(values[name]).dtype), values[name].shape
            )
            for name in names
            if name in values
        ]
    except (AttributeError, KeyError, ValueError):
        return None
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    held = [weights[name] for name in names if name in weights and name not in values]
    graph = helper.make_graph([node], "node", inputs, outputs, held)
    out = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    out.functions.extend(model.functions)
    return out


def _results(model: ModelProto, artifact: Artifact, arrays: Mapping[str, Array]) -> dict[str, Array] | None:
    """Return the results of the node on the CPU; None if it does not run there."""
    try:
        session = open_session(model, *session_options("cpu", folder=artifact.folder))
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, dict(arrays)), strict=True))
    except Exception:  # onnxruntime's exceptions have no common base class
        return None
