"""Results and inner values of a model that a run is asked for by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dmlc.codegen.artifact import Artifact
from dmlc.diagnostics import DmlcError, did_you_mean, fail, sentences
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.counted import first_of
from dmlc.ir import Graph, Value

if TYPE_CHECKING:
    import onnx

#: An error lists so many names.
_MOST = 10


def with_outputs(artifact: Artifact, names: Sequence[str]) -> Artifact:
    """A copy of an ONNX artifact whose outputs are these results and inner values. Raises ``DmlcError`` E0446."""
    import onnx

    from dmlc.codegen.onnx.writer import value_info

    model = onnx.ModelProto()
    model.CopyFrom(artifact.payload)
    types = {**dict(artifact.types), **dict(artifact.signature.inputs), **dict(artifact.signature.outputs)}
    results = {output.name: output for output in model.graph.output}
    known = _values(model.graph)
    for name in names:
        if name not in known or name not in types:
            raise unknown_value(name, list(results), known & types.keys())
    chosen = [results[name] if name in results else value_info(name, types[name]) for name in names]
    del model.graph.output[:]
    model.graph.output.extend(chosen)
    outputs = tuple((name, types[name]) for name in names)
    return replace(artifact, payload=model, signature=replace(artifact.signature, outputs=outputs))


def _values(graph: onnx.GraphProto) -> set[str]:
    found = {name for node in graph.node for name in node.output if name}
    return found | {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}


def graph_with_outputs(graph: Graph, names: Sequence[str]) -> Graph:
    """A copy of a graph whose outputs are these results and inner values. Raises ``DmlcError`` E0446."""
    out = graph.clone()
    results = dict(out.outputs)
    inner: dict[str, Value] = {}
    for value in (*out.inputs, *[value for node in out for value in node.results]):
        if value.name:
            inner.setdefault(value.name, value)
    for name in names:
        if name not in results and name not in inner:
            raise unknown_value(name, list(results), inner)
    out.set_outputs([(name, results.get(name) or inner[name]) for name in names])
    return out


def unknown_value(name: str, results: Sequence[str], inner: Iterable[str]) -> DmlcError:
    """The error E0446 for a value that a compiled program does not have."""
    near = did_you_mean(name, [*results, *inner])
    help = sentences(near, f"its results are {first_of(results, _MOST)}")
    return fail(codes.NO_OUTPUT, f"the compiled program has no value {name}", help=help)
