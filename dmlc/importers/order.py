"""Nodes in an order in which each comes after what it needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from onnx import AttributeProto, GraphProto, NodeProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import models as codes
from dmlc.diagnostics.limits import Limits
from dmlc.onnx_schema.nested import KINDS_OF_GRAPHS, graphs_in

_NONE: Mapping[str, Any] = MappingProxyType({})


class Listed(Struct, eq=False):
    """A node of a model, its number there, and what is asked for most: each look into a proto makes new objects.

    ``attributes`` are by name, ``kinds`` their types; ``has_twins`` says that two have one name, and only the last of
    them is among these.
    """

    number: int
    proto: NodeProto
    name: str
    op_type: str
    inputs: list[str]
    outputs: list[str]
    attributes: Mapping[str, AttributeProto] = _NONE
    kinds: Mapping[str, int] = _NONE
    has_twins: bool = False

    @classmethod
    def of(cls, number: int, proto: NodeProto) -> Listed:
        # a slice is a list, and quicker than walking what protobuf gives
        node = cls(number, proto, proto.name, proto.op_type, proto.input[:], proto.output[:])
        given = proto.attribute[:]
        if given:
            node.attributes = {a.name: a for a in given}
            node.kinds = {name: a.type for name, a in node.attributes.items()}
            node.has_twins = len(node.attributes) < len(given)
        return node

    @property
    def label(self) -> str:
        """The name, or the first result's name where it has none."""
        return self.name or next(filter(None, self.outputs), "")

    @property
    def may_hold_graphs(self) -> bool:
        return self.has_twins or not KINDS_OF_GRAPHS.isdisjoint(self.kinds.values())


#: Most levels of graphs inside nodes in a file: protobuf reads and writes a hundred messages inside one another, and a
#: level takes three.
_MOST_NESTED = 32


def in_order(nodes: Sequence[NodeProto], known: Collection[str], limits: Limits) -> list[Listed]:
    """The nodes, sorted. ONNX wants them sorted; where they are not, they are.

    Raises ``DmlcError``: E0431 for a cycle, two values of one name, or graphs that nest too deep; E0442 for a name that
    is too long.
    """
    listed: list[Listed] = []
    made: dict[str, str] = {}
    kinds: dict[str, str] = {}
    ahead: set[str] = set()
    for number, proto in enumerate(nodes[:]):
        node = Listed.of(number, proto)
        listed.append(node)
        node.op_type = kinds.setdefault(node.op_type, node.op_type)
        for place, name in enumerate(node.inputs):
            same = made.get(name)
            if same is None:
                ahead.add(name)
            else:
                node.inputs[place] = same  # each look into a proto makes a new text; one is kept
        if node.attributes and node.may_hold_graphs:
            ahead.update([name for name in needed(proto) if name not in made])
        for name in node.outputs:
            if name and (name in made or name in known):
                raise fail(codes.BROKEN_MODEL, f"two values are named {name}", help="names must be unique in a graph")
            made[name] = name
    ahead.discard("")
    check_names((*made, *known), limits)
    return listed if ahead.isdisjoint(made) else _sorted(listed)


def check_names(names: Collection[str], limits: Limits) -> None:
    """Raises ``DmlcError``: E0431 for a name that is not UTF-8 text, which protobuf gives as bytes, E0442 for one that
    is too long."""
    if not {*map(type, names)} <= {str}:
        name = next(name for name in names if not isinstance(name, str))
        raise fail(codes.BROKEN_MODEL, f"a name is not UTF-8 text: {name[:40]!r}")
    if max(map(len, names), default=0) > limits.name_length:
        name = max(names, key=len)
        raise limits.passed("name_length", f"the name {name[:40]}... has", len(name), instead="name it otherwise")


def _sorted(listed: Sequence[Listed]) -> list[Listed]:
    maker = {name: node.number for node in listed for name in node.outputs if name}
    sorter = TopologicalSorter({n.number: {maker[m] for m in needed(n.proto) if m in maker} for n in listed})
    try:
        return [listed[number] for number in sorter.static_order()]
    except CycleError as error:
        cycle = [listed[i].name or listed[i].op_type for i in error.args[1]]
        shown = cycle if len(cycle) <= 8 else [*cycle[:4], "...", *cycle[-3:]]
        raise fail(codes.BROKEN_MODEL, f"nodes depend on one another: {', '.join(shown)}") from None


def used_names(graph: GraphProto) -> set[str]:
    """The names that some node, a graph inside one, or an output uses."""
    used = {info.name for info in graph.output}
    for node in graph.node:
        used.update(node.input if not node.attribute else needed(node))
    used.discard("")
    return used


def live_names(graph: GraphProto) -> set[str]:
    """The names that the outputs need. Nodes that come before what they need, which is not ONNX, may be left out."""
    live = {info.name for info in graph.output}
    for node in reversed(graph.node):
        if not live.isdisjoint(node.output):
            live.update(node.input if not node.attribute else needed(node))
    return live


def needed(node: NodeProto, level: int = 0) -> Iterator[str]:
    """The names that a node uses, those of the graphs inside it included. Raises ``DmlcError`` E0431 where these nest
    deeper than a file can hold."""
    yield from node.input[:]
    for attribute in node.attribute[:]:
        for graph in graphs_in(attribute):
            yield from _free_names(graph, level + 1)


def _free_names(graph: GraphProto, level: int) -> Iterator[str]:
    if level > _MOST_NESTED:
        message = f"graphs inside nodes nest deeper than {_MOST_NESTED}, which no model file can hold"
        raise fail(codes.BROKEN_MODEL, message)
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    for node in graph.node:
        own.update(node.output)
    for node in graph.node:
        for name in needed(node, level):
            if name not in own:
                yield name
    for info in graph.output:
        if info.name not in own:
            yield info.name
