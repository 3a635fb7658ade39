"""Two models as texts that differ where the models do: names by structure, no constants, nodes in one order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, ValueInfoProto

from dmlc.debugging.constants import Constant, ConstantChange, compared, constant_of, constants_of, sparse_digest
from dmlc.debugging.node_attributes import attribute_texts, type_text
from dmlc.debugging.node_pairs import NodePairs, label_of, pair_nodes
from dmlc.onnx_schema.domains import operator_of
from dmlc.onnx_schema.nested import graphs_in, values_read_by


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line. ``node`` is the node that it shows, None for any other line."""

    text: str
    node: NodeProto | None = None


@dataclass(frozen=True, slots=True)
class GraphParts:
    """A graph, or the body of a function: nodes without constants, constants by name."""

    graph: GraphProto = field(default_factory=GraphProto)
    folder: Path | None = None

    @property
    def nodes(self) -> list[NodeProto]:
        return [node for node in self.graph.node if constant_of(node) is None]

    @staticmethod
    def of_function(function: FunctionProto) -> GraphParts:
        """Read the body of a function, whose parameters have no types."""
        body = GraphProto(node=function.node)
        body.input.extend(ValueInfoProto(name=name) for name in function.input)
        body.output.extend(ValueInfoProto(name=name) for name in function.output)
        return GraphParts(body)


@dataclass(slots=True)
class TextPair:
    """The texts of two models, made graph by graph, and what they do not have: constants that differ, and the number of
    values that have other names. ``versions`` are the opsets of both models by domain."""

    versions: Sequence[Mapping[str, int]]
    a: list[TextLine] = field(default_factory=list)
    b: list[TextLine] = field(default_factory=list)
    constants: list[ConstantChange] = field(default_factory=list)
    renamed: int = 0

    def add(self, a: GraphParts, b: GraphParts, prefix: str = "") -> None:
        """Add a graph, or a function with its name in ``prefix``. Raises ``DmlcError`` for external data that cannot be
        read."""
        left, right = self._graphs(a, b, prefix, {})
        self.a += left
        self.b += right

    def add_bodies(self, a: NodeProto, b: NodeProto) -> None:
        """Add the graphs inside two paired nodes."""
        x, y = (GraphParts(GraphProto(node=[node])) for node in (a, b))
        left, right = self._inner(x, y, NodePairs(nodes={0: 0}), "", "")
        self.a += left.get(0, ())
        self.b += right.get(0, ())

    def _graphs(
        self, a: GraphParts, b: GraphParts, prefix: str, outer: Mapping[str, str], indent: str = ""
    ) -> tuple[list[TextLine], list[TextLine]]:
        """The lines of two graphs. ``outer`` are the names in B of values of the graphs around them."""
        is_inner = bool(indent)
        shared = {**outer, **_shared_inputs(a.graph, b.graph, by_place=is_inner)}
        shared |= self._constants(a, b, prefix)
        sides = a.nodes, b.nodes
        pairs = pair_nodes(*sides, shared)
        self.renamed += sum(x != y for x, y in pairs.values.items() if x not in outer)
        names = _names_for_b(pairs, sides[1])
        renamings = {x: names[y] for x, y in pairs.values.items()}, names
        ranks = {names.get(name, name): rank for name, rank in _ranks(b.graph).items()} | _ranks(a.graph)
        lines: tuple[list[TextLine], list[TextLine]] = ([], [])
        inner = self._inner(a, b, pairs, prefix, indent)
        for place, order in enumerate((range(len(sides[0])), _in_order_of_a(sides[1], pairs))):
            renaming = renamings[place]
            graph = b.graph if place else a.graph
            lines[place].extend([] if is_inner else _interface("input", graph.input, renaming))
            for number in order:
                node = sides[place][number]
                lines[place].append(TextLine(indent + self._node_text(node, place, renaming, ranks), node))
                lines[place].extend(inner[place].get(number, ()))
            results = ", ".join(renaming.get(info.name, info.name) for info in graph.output)
            lines[place].extend(
                [TextLine(f"{indent}return {results}")] if is_inner else _interface("output", graph.output, renaming)
            )
        return lines

    def _node_text(self, node: NodeProto, place: int, names: Mapping[str, str], ranks: Mapping[str, int]) -> str:
        operands, results = ([names.get(name, name) for name in _trimmed(part)] for part in (node.input, node.output))
        rank = ranks.get(operands[0]) if operands else None
        attributes = attribute_texts(node, self.versions[place], self.versions[1 - place], rank)
        shown = ", ".join(f"{name}={text}" for name, text in attributes.items())
        return f"{', '.join(results)} = {operator_of(node)}{f'<{shown}>' if shown else ''}({', '.join(operands)})"

    def _inner(
        self, a: GraphParts, b: GraphParts, pairs: NodePairs, prefix: str, indent: str
    ) -> tuple[dict[int, list[TextLine]], dict[int, list[TextLine]]]:
        """The lines of the graphs inside nodes, by the positions of the nodes."""
        out: tuple[dict[int, list[TextLine]], dict[int, list[TextLine]]] = ({}, {})
        nodes, taken = (a.nodes, b.nodes), set(pairs.nodes.values())
        pairs_of_nodes: list[tuple[int | None, int | None]] = [(i, pairs.nodes.get(i)) for i in range(len(nodes[0]))]
        pairs_of_nodes += [(None, j) for j in range(len(nodes[1])) if j not in taken]
        for found in pairs_of_nodes:
            graphs = [{} if i is None else _bodies_of(side[i]) for side, i in zip(nodes, found, strict=True)]
            for name in dict.fromkeys([*graphs[0], *graphs[1]]):
                x, y = (GraphParts(g.get(name, GraphProto()), s.folder) for g, s in zip(graphs, (a, b), strict=True))
                label = next(label_of(side[i]) for side, i in zip(nodes, found, strict=True) if i is not None)
                texts = self._graphs(x, y, f"{prefix}{label}.{name}/", pairs.values, f"{indent}    ")
                for lines, i, text, has in zip(out, found, texts, graphs, strict=True):
                    if i is not None and name in has:
                        lines.setdefault(i, []).extend([TextLine(f"{indent}  {name}:"), *text])
        return out

    # --- constants

    def _constants(self, a: GraphParts, b: GraphParts, prefix: str) -> dict[str, str]:
        """Record the constants that differ; the names in B of the constants of A."""
        before, after = constants_of(a.graph, a.folder), constants_of(b.graph, b.folder)
        names = {name: name for name in before if name in after}
        left = [constant for name, constant in before.items() if name not in names]
        right = {name: constant for name, constant in after.items() if name not in names}
        names |= _equal_constants(left, [after[name] for name in (*names, *reversed(right))])
        taken: set[str] = set()
        for name, other in names.items():
            if other in taken:
                as_other = f"{before[name].type_text}, as {other}"
                self.constants.append(ConstantChange(prefix + name, "removed", a=as_other))
                continue
            taken.add(other)
            change = compared(prefix + name, before[name], after[other])
            self.constants += [] if change is None else [change]
        gone = [c for c in left if c.name not in names]
        self.constants += [ConstantChange(prefix + c.name, "removed", a=c.type_text) for c in gone]
        added = [c for name, c in right.items() if name not in taken]
        self.constants += [ConstantChange(prefix + c.name, "added", b=c.type_text) for c in added]
        sparse = [{t.values.name: sparse_digest(t) for t in side.graph.sparse_initializer} for side in (a, b)]
        for name in dict.fromkeys([*sparse[0], *sparse[1]]):
            if sparse[0].get(name) != sparse[1].get(name):
                status = "added" if name not in sparse[0] else "removed" if name not in sparse[1] else "changed"
                self.constants.append(ConstantChange(prefix + name, status, "sparse tensor", "sparse tensor"))
        return names


def _equal_constants(left: Sequence[Constant], right: Iterable[Constant]) -> dict[str, str]:
    """The names of equal constants of another name: one that no other constant has first."""
    types = {constant.type_text for constant in left}
    by_digest: dict[bytes, list[str]] = {}
    for constant in right if left else ():
        if constant.type_text in types:
            by_digest.setdefault(constant.digest, []).append(constant.name)
    names = {}
    for constant in left if by_digest else ():
        same = by_digest.get(constant.digest)
        if same:
            names[constant.name] = same.pop() if len(same) > 1 else same[0]
    return names


def _shared_inputs(a: GraphProto, b: GraphProto, *, by_place: bool) -> dict[str, str]:
    """The names in B of the inputs: of a graph inside a node by position, else by name."""
    if by_place:
        return {x.name: y.name for x, y in zip(a.input, b.input, strict=False)}
    names = {info.name for info in b.input}
    return {info.name: info.name for info in a.input if info.name in names}


def _names_for_b(pairs: NodePairs, nodes: Sequence[NodeProto]) -> dict[str, str]:
    """The names of values of B in its text: the first paired value's in A; others keep theirs, unless A has it."""
    names = {y: x for x, y in reversed(pairs.values.items())}
    taken = set(pairs.values)
    for name in [name for node in nodes for name in node.output if name and name not in names]:
        names[name] = f"{name}'" if name in taken else name
    return names


def _in_order_of_a(nodes: Sequence[NodeProto], pairs: NodePairs) -> list[int]:
    """The positions of B's nodes: each behind what it reads, as near as can be to the place of its pair in A."""
    places = {j: i for i, j in pairs.nodes.items()}
    makers = {name: j for j, node in enumerate(nodes) for name in node.output if name}
    needs = [{makers[name] for name in values_read_by(node) if name in makers} - {j} for j, node in enumerate(nodes)]
    readers: dict[int, list[int]] = {}
    for j, makers_of in enumerate(needs):
        for maker in makers_of:
            readers.setdefault(maker, []).append(j)
    ready = [(places.get(j, -1), j) for j, makers_of in enumerate(needs) if not makers_of]
    heapq.heapify(ready)
    out = []
    while ready:
        place, j = heapq.heappop(ready)
        out.append(j)
        for reader in readers.get(j, ()):
            needs[reader].discard(j)
            if not needs[reader]:
                heapq.heappush(ready, (places.get(reader, place), reader))
    return out


def _ranks(graph: GraphProto) -> dict[str, int]:
    """The ranks of values whose types are declared."""
    infos = [*graph.input, *graph.value_info, *graph.output]
    return {i.name: len(i.type.tensor_type.shape.dim) for i in infos if i.type.tensor_type.HasField("shape")}


def _interface(role: str, infos: Iterable[ValueInfoProto], names: Mapping[str, str]) -> list[TextLine]:
    return [TextLine(f"{role} {names.get(info.name, info.name)}: {type_text(info.type)}") for info in infos]


def _bodies_of(node: NodeProto) -> dict[str, GraphProto]:
    """The graphs inside a node by the names of their attributes."""
    return {
        entry.name if entry.type == AttributeProto.GRAPH else f"{entry.name}[{number}]": graph
        for entry in node.attribute
        for number, graph in enumerate(graphs_in(entry))
    }


def _trimmed(names: Iterable[str]) -> list[str]:
    """The names without absent ones at the end."""
    out = list(names)
    while out and not out[-1]:
        out.pop()
    return out
