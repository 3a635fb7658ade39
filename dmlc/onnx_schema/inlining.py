"""The bodies of model-local functions in the place of their calls.

ONNX's own inliner loses the defaults of attributes and leaves functions of other opsets alone. Here every call is
replaced, and a body written for another opset is converted to the model's.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    defs,
    helper,
    numpy_helper,
)

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import models as codes
from dmlc.ir import Array
from dmlc.onnx_schema.domains import imported_versions, plain_domain
from dmlc.onnx_schema.functions import Key, callable_functions, called_functions, key_of
from dmlc.onnx_schema.moves.draft import KnownValues
from dmlc.onnx_schema.nested import all_nodes, graphs_in
from dmlc.onnx_schema.versions import move

#: The names of values in the model by their names in a body; a graph inside a node sees those around it.
_Names: TypeAlias = "ChainMap[str, str]"


#: The attributes of a Constant that hold numbers.
_NUMBERS = frozenset(("value", "value_int", "value_ints", "value_float", "value_floats"))


class _CannotConvertError(Exception):
    """A node of a body has no equivalent at the model's opset."""


class _CallBody(Struct):
    """A body at one call: the names of its values in the model, the attributes of the call, the opsets it imports."""

    names: _Names
    attributes: Mapping[str, AttributeProto]
    imports: Mapping[str, int]


def inlined(model: ModelProto) -> ModelProto:
    """The model without functions: their bodies stand in the place of the calls. The model itself is not changed.

    A body written for another opset is converted. Where one of its nodes has no equivalent at the model's opset, all
    calls stay, with the functions that are called: such a model must keep its opset. The calls must not nest without
    end (``check_functions``). Raises ``DmlcError`` E0431 for a call with more operands or results than its function.
    """
    if not model.functions:
        return model
    out = ModelProto()
    out.CopyFrom(model)
    work = _Inlining(model)
    try:
        work.graph(out.graph)
    except _CannotConvertError:
        del out.functions[:]
        out.graph.CopyFrom(model.graph)
        out.functions.extend(called_functions(model))
        return out
    del out.functions[:]
    imported = imported_versions(model.opset_import)
    for domain, version in work.versions.items():
        if domain not in imported:
            out.opset_import.add(domain=domain, version=version)
    return out


class _Inlining:
    def __init__(self, model: ModelProto) -> None:
        self.functions: dict[Key, FunctionProto] = callable_functions(model)
        self.imports = {key: imported_versions(f.opset_import) for key, f in self.functions.items()}
        self.versions: dict[str, int] = {}
        for imports in self.imports.values():  # the newest version of a domain that only functions import
            for domain, version in imports.items():
                self.versions[domain] = max(version, self.versions.get(domain, version))
        self.versions.update(imported_versions(model.opset_import))
        self.values, self.labels = _names_of(model)
        self.constants: dict[str, TensorProto | NodeProto] = {}
        self.lists_weights = model.ir_version < 4

    # --- calls

    def graph(self, graph: GraphProto) -> None:
        """Replace the calls of a graph of the model, and of the graphs inside it."""
        if not any(key_of(node) in self.functions for node in all_nodes(graph.node)):
            return
        self.constants.update({tensor.name: tensor for tensor in graph.initializer})
        for info in () if self.lists_weights else graph.input:
            self.constants.pop(info.name, None)
        nodes: list[NodeProto] = []
        for node in graph.node:
            self._inner_graphs(node)
            self._put(node, nodes, graph)
        del graph.node[:]
        graph.node.extend(nodes)

    def _inner_graphs(self, node: NodeProto) -> None:
        for attribute in node.attribute:
            for inner in graphs_in(attribute):
                self.graph(inner)

    def _put(self, node: NodeProto, nodes: list[NodeProto], graph: GraphProto) -> None:
        """Append a node of the model to ``nodes``: itself, or the body of the function that it calls."""
        function = self.functions.get(key_of(node))
        if function is not None:
            self._call(node, function, nodes, graph)
            return
        self._remember(node)
        nodes.append(node)

    def _remember(self, node: NodeProto) -> None:
        for name in node.output:  # graphs inside nodes may have values of the same names
            self.constants.pop(name, None)
        if node.op_type == "Constant" and node.output and not plain_domain(node.domain):
            self.constants[node.output[0]] = node

    def _call(self, call: NodeProto, function: FunctionProto, nodes: list[NodeProto], graph: GraphProto) -> None:
        """Append the body of a function, and the bodies of the functions it calls."""
        _check_call(call, function)
        attributes = {a.name: a for a in (*function.attribute_proto, *call.attribute)}
        names: _Names = ChainMap(dict.fromkeys(function.input, ""))
        names.update(zip(function.input, call.input, strict=False))
        copies: list[tuple[str, str]] = []
        for name, wanted in zip(function.output, call.output, strict=False):
            if wanted and name in names:  # an operand, or a result that is there already
                copies.append((names[name], wanted))
            elif wanted:
                names[name] = wanted
        self._define(function.node, names)
        body = _CallBody(names, attributes, self.imports[key_of(call)])
        for node in self._nodes(function.node, body):
            self._inner_graphs(node)
            self._put(node, nodes, graph)
        nodes += [helper.make_node("Identity", [have], [want]) for have, want in copies]
        for info in getattr(function, "value_info", ()):
            if names.get(info.name) and info.type.HasField("tensor_type"):
                made = graph.value_info.add()
                made.CopyFrom(info)
                made.name = names[info.name]
                _forget_dims(made)

    def _nodes(self, protos: Iterable[NodeProto], body: _CallBody) -> list[NodeProto]:
        """Copies of nodes of a body, as they stand in the model."""
        out: list[NodeProto] = []
        for proto in protos:
            node = NodeProto()
            node.CopyFrom(proto)
            if proto.name:
                node.name = _free(proto.name, self.labels)
            node.input[:] = [self._named(name, body.names) for name in proto.input]
            node.output[:] = [body.names[name] if name else "" for name in proto.output]
            if proto.attribute:
                self._set_attributes(node, proto, body)
            self._remember(node)
            out += self._converted(node, body.imports)
        return out

    # --- names and attributes

    def _set_attributes(self, node: NodeProto, proto: NodeProto, body: _CallBody) -> None:
        """Replace references to the attributes of the call; one that the call does not give is absent."""
        del node.attribute[:]
        for attribute in proto.attribute:
            given = body.attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
            if given is None:
                continue
            made = node.attribute.add()
            made.CopyFrom(given)
            made.name = attribute.name
            if given is attribute:  # a graph that the call gives speaks of the values around the call
                for inner in graphs_in(made):
                    self._set_graph(inner, body)

    def _set_graph(self, graph: GraphProto, outer: _CallBody) -> None:
        body = _CallBody(outer.names.new_child(), outer.attributes, outer.imports)
        declared = [*graph.input, *graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)]
        for info in declared:
            if info.name not in body.names.maps[0]:
                body.names[info.name] = self._fresh(info.name)
        self._define(graph.node, body.names)
        for info in (*declared, *graph.output, *graph.value_info):
            info.name = self._named(info.name, body.names)
        for info in (*graph.input, *graph.output, *graph.value_info):
            _forget_dims(info)
        for annotation in graph.quantization_annotation:
            annotation.tensor_name = self._named(annotation.tensor_name, body.names)
        nodes = self._nodes(graph.node, body)
        del graph.node[:]
        graph.node.extend(nodes)

    def _define(self, nodes: Iterable[NodeProto], names: _Names) -> None:
        for node in nodes:
            for name in node.output:
                if name and name not in names.maps[0]:
                    names[name] = self._fresh(name)

    def _named(self, name: str, names: _Names) -> str:
        """The name in the model. A name that the body does not define must not meet one of the model."""
        if not name:
            return ""
        found = names.get(name)
        if found is None:
            found = names.maps[-1][name] = self._fresh(name)
        return found

    def _fresh(self, base: str) -> str:
        return _free(base, self.values)

    # --- opsets

    def _converted(self, node: NodeProto, imports: Mapping[str, int]) -> list[NodeProto]:
        """The node as the model's opset says it; graphs inside it are changed in place."""
        domain = plain_domain(node.domain)
        want = self.versions.get(domain, 1)
        have = imports.get(domain, want)
        if have == want or key_of(node) in self.functions:
            return [node]
        if domain:
            if _version(node.op_type, domain, have) != _version(node.op_type, domain, want):
                raise _CannotConvertError
            return [node]
        moved = move(node, have, want, self._fresh, KnownValues(self._constant, _no_type))
        if moved is None:
            raise _CannotConvertError
        made = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in moved.constants]
        return [*made, *moved.nodes]

    def _constant(self, name: str) -> Array | None:
        found = self.constants.get(name)
        if isinstance(found, NodeProto):
            found = next((helper.get_attribute_value(a) for a in found.attribute if a.name in _NUMBERS), None)
        try:
            data: Array | None
            data = numpy_helper.to_array(found) if isinstance(found, TensorProto) else np.asarray(found)
        except (ValueError, TypeError, KeyError, OSError):  # data that does not fit its shape, or lies in a file
            return None
        return None if found is None else data


def _no_type(name: str) -> TypeProto | None:
    return None


def _check_call(call: NodeProto, function: FunctionProto) -> None:
    for kind, given, taken in (
        ("operands", len(call.input), len(function.input)),
        ("results", len(call.output), len(function.output)),
    ):
        if given > taken:
            message = f"node {call.name or call.op_type} has {given} {kind}, the function {function.name} has {taken}"
            raise fail(codes.BROKEN_MODEL, message, help="export it anew")


def _forget_dims(info: ValueInfoProto) -> None:
    """Drop the names of dims: they are the function's own, and other calls give them other sizes."""
    for size in info.type.tensor_type.shape.dim:
        size.ClearField("dim_param")


def _version(op_type: str, domain: str, version: int) -> int:
    """The version of an operator that an opset has; the opset's own where onnx does not know the operator."""
    try:
        return int(defs.get_schema(op_type, version, domain).since_version)
    except defs.SchemaError:
        return version


def _free(base: str, taken: dict[str, int]) -> str:
    """A name that is not taken: the base, or the base and a number. ``taken`` holds the last number of each base."""
    if base not in taken:
        taken[base] = 0
        return base
    while True:
        taken[base] += 1
        name = f"{base}_{taken[base]}"
        if name not in taken:
            taken[name] = 0
            return name


def _names_of(model: ModelProto) -> tuple[dict[str, int], dict[str, int]]:
    """All names of values, and all names of nodes, of the model's graphs."""
    values, labels = {"": 0}, {"": 0}
    waiting = [model.graph]
    while waiting:
        graph = waiting.pop()
        declared = [*graph.input, *graph.output, *graph.initializer, *(s.values for s in graph.sparse_initializer)]
        values.update(dict.fromkeys([info.name for info in declared], 0))
        for node in graph.node:
            labels[node.name] = 0
            values.update(dict.fromkeys(node.input, 0))
            values.update(dict.fromkeys(node.output, 0))
            for attribute in node.attribute:
                waiting += graphs_in(attribute)
    return values, labels
