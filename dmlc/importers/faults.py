"""Faults of a model that are found while its nodes are read, in words that name what was meant.

ONNX Runtime's own load phase finds the others. Only what is certain counts: declared types of values in between and
sizes that nodes compute are not held against a node, because ONNX Runtime loads such models.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, TypeProto

from dmlc.diagnostics import Diagnostic, DmlcError, did_you_mean, fail
from dmlc.diagnostics.catalogue import models as codes
from dmlc.importers.order import Listed
from dmlc.onnx_schema.installed import installed_schema
from dmlc.onnx_schema.nested import all_nodes
from dmlc.onnx_schema.types import is_element_type
from dmlc.onnx_schema.words import words_of

#: Faults that are reported of one model.
_MOST = 10
#: Versions are integers of 32 bits.
_LARGEST_VERSION = 1 << 31
_HELP = "ONNX Runtime does not load it; onnx.checker.check_model(model, full_check=True) may say more"


def _differs(attribute: AttributeProto | None, number: int) -> bool:
    return attribute is not None and not attribute.ref_attr_name and attribute.i != number


class FaultCheck:
    """The faults of one model."""

    def __init__(self, model: ModelProto, versions: Mapping[str, int]) -> None:
        self.faults: list[Diagnostic] = []
        self.failures: list[Diagnostic] = []
        self._versions = versions
        names = [info.name for info in model.graph.input if not _is_typed(info.type)]
        names += [tensor.name for tensor in model.graph.initializer if tensor.data_type == 0]
        problems = [f"{name} lacks a type" for name in names]
        typed = [(info.name, info.type.tensor_type.elem_type) for info in model.graph.input]
        typed += [(tensor.name, tensor.data_type) for tensor in model.graph.initializer]
        odd = [(name, number) for name, number in typed if not is_element_type(number)]
        problems += [f"{name} is of element type {number}, which ONNX does not have" for name, number in odd]
        if not 0 < versions.get("", 1) < _LARGEST_VERSION:
            problems.append(f"the model imports version {versions['']} of ONNX's operators")
        self.faults += [Diagnostic(codes.BROKEN_MODEL, problem) for problem in problems]

    def raise_if_any(self, *, runs: bool = False) -> None:
        """Raises ``DmlcError`` E0431 with a diagnostic for each faulty node, ten at most; with ``runs``, for each too
        that loads and fails in each run."""
        found = self.faults + self.failures if runs else self.faults
        if found:
            raise DmlcError(found[:_MOST])

    def attributes(self, node: Listed, domain: str) -> None:
        """Report attributes without a value, and words that an attribute does not take."""
        self._compare_words(node, domain)
        for name, attribute in node.attributes.items():
            if attribute.ref_attr_name or not node.kinds[name]:
                self._report_attribute(node, domain, attribute)

    def _compare_words(self, node: Listed, domain: str) -> None:
        """Report a word that an attribute does not take."""
        for name, words in words_of(domain, node.op_type, self._versions.get(domain, 0)).items():
            attribute = node.attributes.get(name)
            if attribute is None or attribute.ref_attr_name:
                continue
            stored = attribute.strings if attribute.type == AttributeProto.STRINGS else [attribute.s]
            given = [text.decode("utf-8", "replace") for text in stored]
            number = words.unknown(given)
            if number is not None:
                fault = f"its attribute {name} {words.refusal(given[number])}"
                self.report(node, domain, fault, did_you_mean(given[number], words.known) or _HELP)
            elif words.to is not None and given != [words.known[0]] and _differs(node.attributes.get("to"), words.to):
                fault = f'its attribute {name} must be {words.known[0]} for the type that it casts to, not "{given[0]}"'
                self.report(node, domain, fault)

    def _report_attribute(self, node: Listed, domain: str, attribute: AttributeProto) -> None:
        """Record why an attribute has no value."""
        if not attribute.type:
            self.report(node, domain, f"its attribute {attribute.name} has no type")
        if attribute.ref_attr_name:
            text = f"its attribute {attribute.name} refers to {attribute.ref_attr_name}, but it is in no function"
            self.report(node, domain, text)

    def shapes(self, node: Listed, domain: str, fault: str) -> None:
        """Record a fault that an inference rule found, if ONNX infers shapes of the operator at all."""
        schema = installed_schema(domain, node.op_type, self._versions.get(domain, 0))
        if schema is not None and schema.has_type_and_shape_inference_function:
            self.report(node, domain, fault)

    def fails(self, node: Listed, domain: str, why: str) -> None:
        """Record why a node fails in each run, though it loads."""
        self.failures.append(Diagnostic(codes.BROKEN_MODEL, f"node {_named(node, domain)}: {why}"))

    def report(self, node: Listed, domain: str, fault: str, help: str = _HELP) -> None:
        """Record a fault of a node."""
        self.faults.append(Diagnostic(codes.BROKEN_MODEL, f"node {_named(node, domain)}: {fault}", help=help))


def _label(node: Listed, domain: str) -> str:
    return f"{domain}.{node.op_type}" if domain else node.op_type


def _named(node: Listed, domain: str) -> str:
    return f"{_label(node, domain)} {node.name or next(filter(None, node.outputs), '')}".strip()


def _is_typed(type: TypeProto) -> bool:
    """True if a type has an element type, of a tensor or of what a sequence holds."""
    if type.WhichOneof("value") is None:
        return False
    return not type.HasField("tensor_type") or type.tensor_type.elem_type != 0


# --- Faults of a model that could not be read. Searched only after a failure, because it costs as much as reading

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
