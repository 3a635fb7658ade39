"""Faults of a model that could not be read. Searched only after a failure, because it costs as much as reading."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import onnx
from onnx import GraphProto, ModelProto, TensorProto

from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue import models as codes
from dmlc.onnx_schema.nested import all_nodes

#: The largest signed 64-bit integer.
_LARGEST = 2**63 - 1


@contextmanager
def blaming(model: ModelProto | None) -> Iterator[None]:
    """Whatever fails inside is the model's fault where something is wrong with it: raises ``DmlcError`` E0431 then,
    else what was raised."""
    try:
        yield
    except DmlcError:
        raise
    except Exception:
        problem = None if model is None else broken(model)
        if problem is None:
            raise
        raise problem from None


def broken(model: ModelProto) -> DmlcError | None:
    """The first thing that makes a model no valid one; None where nothing is found. Weights are not looked at."""
    for texts in (_texts(model), _sizes(model.graph), _references(model.graph)):
        found = next(texts, None)
        if found is not None:
            return fail(codes.BROKEN_MODEL, found)
    try:
        onnx.checker.check_model(_without_weights(model))
    except onnx.checker.ValidationError as error:
        return fail(codes.BROKEN_MODEL, " ".join(str(error).split()), help="onnx.checker says so; export it anew")
    except Exception as error:  # protobuf cannot write the model
        return fail(codes.BROKEN_MODEL, f"it cannot be written: {error}")
    return None


def _without_weights(model: ModelProto) -> ModelProto:
    """A copy whose weights are empty: only what is around them is checked."""
    source = model.graph
    graph = GraphProto(name=source.name, node=source.node, input=source.input, output=source.output)
    for tensor in source.initializer:
        graph.initializer.add(name=tensor.name, data_type=TensorProto.FLOAT, dims=[0])
    for sparse in source.sparse_initializer:
        graph.initializer.add(name=sparse.values.name, data_type=TensorProto.FLOAT, dims=[0])
    return ModelProto(
        ir_version=model.ir_version,
        opset_import=model.opset_import,
        functions=model.functions,
        metadata_props=model.metadata_props,
        graph=graph,
    )


def _texts(message: Any, path: str = "model") -> Iterator[str]:
    """Texts that are not UTF-8."""
    for descriptor, value in message.ListFields():
        place = f"{path}.{descriptor.name}"
        if descriptor.type == descriptor.TYPE_STRING:
            values = [value] if isinstance(value, (str, bytes)) else value
            yield from (f"{place} is not UTF-8 text: {text!r}" for text in values if not isinstance(text, str))
        elif descriptor.type == descriptor.TYPE_MESSAGE:
            if hasattr(value, "ListFields"):
                yield from _texts(value, place)
            else:
                for number, inner in enumerate(value):
                    yield from _texts(inner, f"{place}[{number}]")


def sizes_without_end(graph: GraphProto) -> Iterator[str]:
    """Inputs and outputs of more elements than can be counted."""
    for info in (*graph.input, *graph.output):
        sizes = [int(size.dim_value) for size in info.type.tensor_type.shape.dim]
        if math.prod([size for size in sizes if size > 0]) > _LARGEST:
            yield f"{info.name} has more elements than can be counted: {sizes if len(sizes) <= 64 else '...'}"


def _references(graph: GraphProto) -> Iterator[str]:
    """Attributes that stand for those of a function's call, where there is no function."""
    for node in all_nodes(graph.node):
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                place = f"attribute {attribute.name} of {node.name or node.op_type}"
                yield f"{place} refers to {attribute.ref_attr_name}, but the node is in no function"


def _sizes(graph: GraphProto) -> Iterator[str]:
    """Sizes that no tensor can have."""
    yield from sizes_without_end(graph)
    for info in (*graph.input, *graph.output):
        sizes = [int(size.dim_value) for size in info.type.tensor_type.shape.dim if size.HasField("dim_value")]
        if any(size < 0 for size in sizes):
            yield f"{info.name} has an axis of size {min(sizes)}"
