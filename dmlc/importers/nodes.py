"""A node becomes an operation of the language where one says the same, and an opaque node where none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
from msgspec.structs import replace
from onnx import AttributeProto, GraphProto, NodeProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import models as codes
from dmlc.diagnostics.limits import Limits
from dmlc.importers import operators  # noqa: F401 (registers the readers)
from dmlc.importers.facts import Question
from dmlc.importers.faults import FaultCheck
from dmlc.importers.opaque import check_attributes, check_complete, opaque_attributes
from dmlc.importers.order import Listed
from dmlc.importers.registry import READERS, Data, Made, Reading, Same
from dmlc.importers.result_types import result_types
from dmlc.importers.scope import GraphScope
from dmlc.importers.types import Path as GraphPath
from dmlc.inference import NOTHING, Fact, has_rule
from dmlc.inference.protos import asked_attributes
from dmlc.ir import FOREIGN, UNKNOWN, Attributes, DType, Graph, Node, Operation, OpError, Region, Tensor, Value
from dmlc.ir.removed import BRANCH, CONSTANTS, PASSED, SHAPES, record_removed
from dmlc.onnx_schema.domains import MICROSOFT, plain_domain
from dmlc.onnx_schema.nested import graphs_in
from dmlc.onnx_schema.origin import NodeOrigin
from dmlc.ops.constant import CONSTANT, constant_of
from dmlc.ops.move import PAD, SLICE
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE

#: Reads a graph inside the node at work: its path, the attribute's name, the graph.
RegionReader: TypeAlias = Callable[[Reading, GraphPath, str, GraphProto], tuple[Region, list[Value]]]
#: Reads the nodes of a graph inside a node into the graph around it; gives its outputs.
BranchReader: TypeAlias = Callable[[GraphScope, GraphPath, GraphProto], list[Value]]

_ONNX_DOMAINS = frozenset(("", "ai.onnx.ml", MICROSOFT, "ai.onnx.preview.training", "com.microsoft.nchwc"))
_RANDOM = ("Random", "Dropout", "Bernoulli", "Multinomial", "Sampl")


class NodeReader:
    """Reads the nodes of one graph into its scope."""

    def __init__(
        self,
        scope: GraphScope,
        versions: Mapping[str, int],
        region: RegionReader,
        inline: BranchReader,
        limits: Limits,
        check: FaultCheck,
        *,
        opaque: bool = False,
    ) -> None:
        self.scope = scope
        self.check = check
        self.limits = limits
        self.opaque = opaque
        self.most_axes: int = limits.rank
        self.graph: Graph = scope.graph
        self.versions = versions
        self.region = region
        self.inline = inline
        self.reading: Reading = Reading(scope)
        self._fitting: dict[tuple[Any, ...], bool] = {}
        self._sizes: set[Value | None] = set()  # constants that were computed from known sizes

    def read(self, listed: Listed) -> None:
        """Raises ``DmlcError``: E0431 where no node makes an input, or an attribute is of another type; E0336 for a
        result of too many axes."""
        domain = plain_domain(listed.proto.domain)
        version = self.versions.get(domain, 1)
        if listed.attributes:
            check_attributes(listed, domain, version)
            self.check.attributes(listed, domain)
        inputs, dtypes = self._inputs(listed)
        reading = self.reading
        reading.turn_to(listed, inputs, version)
        if self.opaque:
            self._opaque(listed, domain)
            return
        reader = None if FOREIGN in dtypes else READERS.get((domain, listed.op_type))
        if reader is not None:
            try:
                found = reader(reading)
            except (IndexError, ValueError):  # too few inputs or attributes: it stays opaque
                found = None
            if isinstance(found, Made):
                node = self._make(found)
                if node is not None:
                    self._finish(listed, node, reading.inputs if found.inputs is None else found.inputs)
                    return
            elif isinstance(found, Same):
                for name, value in zip(listed.outputs, found.values, strict=False):
                    if value is not None:
                        self._check_rank(name, value)
                    self.scope.define(name, value)
                if listed.op_type != "Constant":
                    record_removed(self.graph, PASSED, listed.label)
                return
            elif isinstance(found, Data):
                self._computed(found, listed, inputs)
                return
        branch = self._known_branch(reading) if listed.op_type == "If" and not domain else None
        if branch is None:
            self._opaque(listed, domain)
            return
        record_removed(self.graph, BRANCH, listed.label)
        path = (*self.scope.path, (listed.number, branch.name, 0))
        for name, value in zip(listed.outputs, self.inline(self.scope, path, branch.g), strict=True):
            self.scope.facts.doubt(value)  # a runtime may not know which branch runs
            self.scope.define(name, value)

    def _computed(self, found: Data, listed: Listed, inputs: Sequence[Value | None]) -> None:
        """Define the constant that a node gives. Its elements are not certain unless the node is a constant itself."""
        name, facts = listed.outputs[0], self.scope.facts
        value = self.scope.constant(Tensor(found.array), name)
        if inputs:
            self._removed(listed, inputs, value)
            facts.doubt(value, keeps_shape=facts.are_certain(inputs))
        self.scope.define(name, value)

    def _check_rank(self, name: str, value: Value) -> None:
        if len(value.type.shape) > self.most_axes:
            raise self.limits.passed("rank", f"{name} has", len(value.type.shape))

    def _inputs(self, listed: Listed) -> tuple[list[Value | None], list[DType | None]]:
        """The values that a node takes, and their dtypes."""
        made = self.scope.values
        values = [made.get(name) or self._found(listed, name) for name in listed.inputs]
        return values, [None if value is None else value.type.dtype for value in values]

    def _found(self, listed: Listed, name: str) -> Value | None:
        """A weight that is used for the first time, or a value from around the graph; None for an absent input."""
        value = self.scope.find(name) if name else None
        if value is None and name:
            label = listed.name or listed.op_type
            raise fail(codes.BROKEN_MODEL, f"node {label} uses {name}, which nothing makes")
        return value

    def _known_branch(self, reading: Reading) -> AttributeProto | None:
        """The branch of an If that always runs."""
        known = self.scope.facts.truth(reading.x)
        branch = None if known is None else reading.attribute("then_branch" if known else "else_branch")
        return branch if branch is not None and len(branch.g.output) == len(reading.outputs) else None

    # --- operations of the language

    def _make(self, found: Made) -> Node | None:
        """The node; None where the language refuses the types."""
        op, operands = found.op, found.operands
        key = (op, *map(_dtype_of, operands))
        fits = self._fitting.get(key)
        if fits is None:
            fits = self._fitting[key] = _dtypes_fit(op, key[1:])
        if not fits:
            return None
        record = _no_attributes(op) if found.attributes is None else found.attributes
        try:
            if op in (SLICE, PAD) and self.graph.infer(op, operands, record)[1]:
                return None  # ONNX clamps, and cuts off; the language asks that the sizes suffice
            return self.graph.add(op, operands, record)
        except (OpError, ZeroDivisionError):
            return None

    def _finish(self, listed: Listed, node: Node, inputs: Sequence[Value | Tensor | None]) -> None:
        reading = self.reading
        node.name = listed.name
        node.origin = _origin(reading, listed, node, inputs)
        results, most_axes = node.results, self.most_axes
        for name, value in zip(listed.outputs, results, strict=False):
            if len(value.type.shape) > most_axes:
                self._check_rank(name, value)
            if name:
                value.name = name
                self.scope.values[name] = value
        known = self.scope.facts
        if known.have_elements(reading.inputs) or not known.are_certain(reading.inputs):
            facts, certain = self._ask(reading, listed)
            self._record(node, certain)
            self._learn(node, facts, listed)

    def _ask(self, reading: Reading, listed: Listed) -> tuple[list[Fact] | None, list[Fact]]:
        """The facts about the results by the operator's rule, None where it has none; and what of them is certain. A
        fault of the node is recorded."""
        if not has_rule(reading.domain, reading.op_type, reading.opset):
            return None, [NOTHING] * len(reading.outputs)
        facts = self.scope.facts
        attributes = asked_attributes(reading.attributes.values())
        asked = Question(
            reading.op_type, reading.domain, reading.opset, reading.inputs, attributes, len(reading.outputs)
        )
        found, certain, query = facts.ask(asked)
        why = query.fault  # by sizes that nodes compute: such a model loads
        if not facts.are_certain(reading.inputs):
            certain, query = facts.ask_certain(asked)
        why = query.failure or why
        if query.fault:
            self.check.shapes(listed, reading.domain, query.fault)
        elif why and not self.scope.path:  # a graph inside a node may never run
            self.check.fails(listed, reading.domain, why)
        return found, certain

    def _record(self, node: Node, certain: Sequence[Fact]) -> None:
        """Keep what is certain of the results where more is known of them."""
        for value, fact in zip(node.results, certain, strict=False):
            self.scope.facts.keep_certain(value, fact)

    def _learn(self, node: Node, facts: Sequence[Fact] | None, listed: Listed) -> None:
        """Keep the elements of small results. Where those of all results are integers, constants take their place."""
        if not facts or any(f.elements is None for f in facts):
            return
        results = node.results
        for value, fact in zip(results, facts, strict=False):
            self.scope.facts.learn(value, fact)
        if self.opaque:
            return
        if len(results) == 1 and node.op.pure:
            twin = self.scope.facts.twin(results[0])
            if twin is not None:
                self.scope.define(listed.outputs[0], twin)
                record_removed(self.graph, SHAPES, listed.label)
                self.graph.erase(node)
                return
        numbers = [fact.numbers for fact in facts]
        if any(n is None or v.type.dtype.is_float for n, v in zip(numbers, results, strict=False)):
            return
        for name, value, known in zip(listed.outputs, results, numbers, strict=False):
            shape: Any = value.shape
            data = np.asarray(known, dtype=value.type.dtype.numpy).reshape(shape)
            constant = self.scope.constant(Tensor(data), value.name)
            self.scope.facts.certain[constant] = self.scope.facts.certain_of(value)
            self.scope.define(name, constant)
            self._removed(listed, node.operands, constant, again=name != listed.outputs[0])
        self.graph.erase(node)

    def _removed(self, listed: Listed, inputs: Sequence[Value | None], constant: Value, *, again: bool = False) -> None:
        """Record a node that a constant replaces, with the cause: it depends on constants only, or on known sizes."""
        made = [value.producer for value in inputs if value is not None]
        is_plain = all(node is not None and node.op is CONSTANT for node in made)
        if not is_plain or not self._sizes.isdisjoint(inputs):
            self._sizes.add(constant)
        if not again:
            record_removed(self.graph, SHAPES if constant in self._sizes else CONSTANTS, listed.label)

    # --- the others

    def _opaque(self, listed: Listed, domain: str) -> None:
        reading, proto = self.reading, listed.proto
        check_complete(proto, reading.op_type, domain, reading.opset)
        operands = list(reading.inputs)
        regions: list[Region] = []
        for attribute in proto.attribute[:]:
            for k, inner in enumerate(graphs_in(attribute)):
                path: GraphPath = (*self.scope.path, (listed.number, attribute.name, k))
                region, captured = self.region(reading, path, attribute.name, inner)
                first = len(operands)
                operands.extend(captured)
                regions.append(Region(region.attribute, region.graph, tuple(range(first, len(operands)))))
        facts, certain = self._ask(reading, listed)
        types = result_types(reading, regions, facts, self.versions)
        for i, fact in enumerate(facts or ()):
            if facts is not None and types[i] is not UNKNOWN and fact.shape not in (None, types[i].shape):
                facts[i] = replace(fact, shape=types[i].shape)  # claims that a later equal node shares
        record = opaque_attributes(proto, domain, tuple(types))
        op = OPAQUE if _is_pure(proto, domain, regions) else OPAQUE_IMPURE
        node = self.graph.add(op, operands, record, regions=tuple(regions))
        node.name = listed.name
        places = _in_place(len(reading.inputs))
        node.origin = NodeOrigin(proto, places, reading.opset)
        for name, value in zip(reading.outputs, node.results, strict=True):
            self._check_rank(name, value)
            if name:
                value.name = name
                self.scope.define(name, value)
        self._record(node, certain)
        self._learn(node, facts, listed)


def _is_pure(proto: NodeProto, domain: str, regions: list[Region]) -> bool:
    if domain not in _ONNX_DOMAINS or any(word in proto.op_type for word in _RANDOM):
        return False
    return all(node.op.pure for region in regions for node in region.graph)


def _dtypes_fit(op: Operation, dtypes: tuple[DType, ...]) -> bool:
    """Return whether the operation is declared for operands of these dtypes."""
    groups: dict[str, DType] = {}
    for index, dtype in enumerate(dtypes):
        spec = op.operands[min(index, len(op.operands) - 1)]
        if dtype not in spec.dtypes or groups.setdefault(spec.group, dtype) is not dtype:
            return False
    return True


_dtype_of = attrgetter("type.dtype")


@cache
def _no_attributes(op: Operation) -> Attributes:
    """The record of an operation without any; one for all, for it never changes."""
    return op.attributes()


@cache
def _in_place(count: int) -> tuple[int, ...]:
    """Each input is the operand of its number."""
    return tuple(range(count))


def _origin(reading: Reading, listed: Listed, node: Node, given: Sequence[Value | Tensor | None]) -> NodeOrigin | None:
    """The form that the node had; None where it has an input that the operation does not."""
    if tuple(given) == node.operands:
        in_place = _in_place(len(node.operands))
        return NodeOrigin(listed.proto, in_place, reading.opset)
    places = {value: i for i, value in enumerate(node.operands)}
    inputs: list[int | Tensor | None] = []
    for value in given:
        if value is None or isinstance(value, Tensor):
            inputs.append(value)
        elif value in places:
            inputs.append(places[value])
        elif value.producer is not None and value.producer.op is CONSTANT:
            inputs.append(constant_of(value))
        else:
            return None
    return NodeOrigin(listed.proto, tuple(inputs), reading.opset)
