"""Pairs of nodes of two graphs: by the values that they make, by their names, then by their structure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnx import AttributeProto, NodeProto

from dmlc.debugging.constants import Constant
from dmlc.onnx_schema.domains import operator_of
from dmlc.onnx_schema.nested import holds_graphs


@dataclass(slots=True)
class NodePairs:
    """Positions of paired nodes, and for the values of the first graph the name that the second gives them."""

    nodes: dict[int, int] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)

    def name_of(self, value: str) -> str:
        return self.values.get(value, value)


def label_of(node: NodeProto) -> str:
    """The name of a node; one without a name is called by its first result."""
    return node.name or next((name for name in node.output if name), operator_of(node))


def plain_attributes(node: NodeProto) -> dict[str, AttributeProto]:
    """The attributes that are not graphs, by name."""
    return {entry.name: entry for entry in node.attribute if not holds_graphs(entry)}


def pair_nodes(a: Sequence[NodeProto], b: Sequence[NodeProto], shared: Mapping[str, str]) -> NodePairs:
    """Pair nodes of one operator. ``shared`` maps inputs and constants of the first graph to those of the second.

    Nodes of two operators that stand in one place are not paired. Their results count as the same values all the same,
    so that the nodes behind one change are paired.
    """
    pairs = NodePairs(values=dict(shared))
    taken: set[int] = set()

    def pair(i: int, j: int) -> None:
        pairs.nodes[i] = j
        taken.add(j)
        pairs.values |= {x: y for x, y in zip(a[i].output, b[j].output, strict=False) if x and y}

    makers = {name: j for j, node in enumerate(b) for name in node.output if name}
    names = _unique_names(b)
    own_names = _unique_names(a)
    for i, node in enumerate(a):
        places = [makers[name] for name in node.output if name in makers]
        if places and places[0] not in taken and operator_of(b[places[0]]) == operator_of(node):
            pair(i, places[0])
    for i, node in enumerate(a):
        j = names.get(node.name) if node.name in own_names else None
        if i not in pairs.nodes and j is not None and j not in taken and operator_of(b[j]) == operator_of(node):
            pair(i, j)
    left = [i for i in range(len(a)) if i not in pairs.nodes]
    right = [j for j in range(len(b)) if j not in taken]
    made = {name for i in left for name in a[i].output}
    read = {name: name for i in left for name in a[i].input if name not in made}
    found = structure_pairs(PairedSide([a[i] for i in left]), PairedSide([b[j] for j in right]), read | pairs.values)
    for x, y in found.nodes.items():
        if operator_of(a[left[x]]) == operator_of(b[right[y]]):
            pair(left[x], right[y])
    pairs.values |= found.values
    return pairs


def _unique_names(nodes: Sequence[NodeProto]) -> dict[str, int]:
    places: dict[str, list[int]] = defaultdict(list)
    for i, node in enumerate(nodes):
        if node.name:
            places[node.name].append(i)
    return {name: found[0] for name, found in places.items() if len(found) == 1}


# --- by structure


@dataclass(frozen=True, slots=True)
class PairedSide:
    """The nodes of a graph, and its constants that stand for others of their type."""

    nodes: Sequence[NodeProto]
    constants: Mapping[str, Constant] = field(default_factory=dict)


def structure_pairs(a: PairedSide, b: PairedSide, shared: Mapping[str, str]) -> NodePairs:
    """Pair nodes of paired operands, from the ``shared`` values on. The result has the shared values too.

    Of several nodes of the same operands those pair that have the same attributes and constants, then the others in
    order. Nodes of two operators pair only if they are the last of both.
    """
    others: dict[Any, list[int]] = defaultdict(list)
    for j, node in enumerate(b.nodes):
        others[_operands(node, {name: name for name in node.input}, b)].append(j)
    pairs = NodePairs(values=dict(shared))
    wave, readers = _reading(a.nodes, {*shared, *a.constants})
    while wave:
        ready: dict[Any, list[int]] = defaultdict(list)
        for unread in wave:
            ready[_operands(a.nodes[unread.place], pairs.values, a)].append(unread.place)
        wave = []
        for key, group in ready.items():
            for i, j in _matched(group, others.pop(key, []), a, b):
                x, y = a.nodes[i], b.nodes[j]
                found = {was: now for was, now in zip(x.output, y.output, strict=False) if was and now}
                pairs.nodes[i] = j
                pairs.values |= found
                wave += [unread for was in found for unread in readers.pop(was, []) if unread.takes(was)]
    return pairs


@dataclass(slots=True)
class _Unread:
    """The position of a node, and the operands that are not paired yet."""

    place: int
    missing: set[str]

    def takes(self, name: str) -> bool:
        """Return whether nothing is missing any more, once the operand is paired."""
        self.missing.discard(name)
        return not self.missing


def _reading(nodes: Iterable[NodeProto], known: Collection[str]) -> tuple[list[_Unread], dict[str, list[_Unread]]]:
    """The nodes whose operands are all known, and the others by each operand that is not."""
    wave: list[_Unread] = []
    readers: dict[str, list[_Unread]] = defaultdict(list)
    for place, node in enumerate(nodes):
        unread = _Unread(place, {name for name in node.input if name and name not in known})
        for name in unread.missing:
            readers[name].append(unread)
        if not unread.missing:
            wave.append(unread)
    return wave, readers


def _operands(node: NodeProto, names: Mapping[str, str], side: PairedSide) -> tuple[Any, ...]:
    """The operands by their names in the second graph, constants by their type."""
    constants = side.constants
    kinds = [(constants[name].type_text,) if name in constants else names.get(name, "") for name in node.input]
    return len(node.output), *kinds


def _matched(group: Sequence[int], others: Sequence[int], a: PairedSide, b: PairedSide) -> Iterator[tuple[int, int]]:
    """Pair nodes of the same operands, by their positions."""
    rest, free = list(group), list(others)
    forms = (_with_data, _with_attributes, _operator) if len(rest) > 1 or len(free) > 1 else ()
    for form in forms:
        by_form: dict[Any, list[int]] = defaultdict(list)
        for j in free:
            by_form[form(b.nodes[j], b)].append(j)
        unpaired = []
        for i in rest:
            alike = by_form[form(a.nodes[i], a)]
            if alike:
                yield i, alike.pop(0)
            else:
                unpaired.append(i)
        rest, free = unpaired, [j for alike in by_form.values() for j in alike]
    if len(rest) == len(free) == 1:
        yield rest[0], free[0]


def _operator(node: NodeProto, side: PairedSide) -> Any:
    return operator_of(node)


def _with_attributes(node: NodeProto, side: PairedSide) -> Any:
    attributes = [entry.SerializeToString(deterministic=True) for _, entry in sorted(plain_attributes(node).items())]
    return operator_of(node), tuple(attributes)


def _with_data(node: NodeProto, side: PairedSide) -> Any:
    data = tuple(side.constants[name].digest for name in node.input if name in side.constants)
    return _with_attributes(node, side), data
