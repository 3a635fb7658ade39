"""Comparison of two ONNX graphs: pairs their nodes, then records each difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, ValueInfoProto, defs, helper
from onnx.defs import SchemaError

from dmlc.debugging.constants import Constant, ConstantChange, compared, constant_of, constants_of, sparse_digest
from dmlc.debugging.node_changes import LedgerRows, NodeChange, grouped_changes, summary
from dmlc.debugging.node_pairs import NodePairs, label_of, pair_nodes, plain_attributes
from dmlc.debugging.type_changes import TypeChange, interface_changes, type_text, value_changes
from dmlc.onnx_schema.domains import operator_of, plain_domain
from dmlc.onnx_schema.nested import graphs_in


@dataclass(slots=True)
class Differences:
    """Differences found so far.

    ``opsets`` has the versions of both models by domain. ``node_metadata`` has the name and the entries of paired
    nodes whose entries differ.
    """

    ledger: LedgerRows
    opsets: Sequence[Mapping[str, int]]
    nodes: list[NodeChange] = field(default_factory=list)
    constants: list[ConstantChange] = field(default_factory=list)
    types: list[TypeChange] = field(default_factory=list)
    node_metadata: list[tuple[str, dict[str, str], dict[str, str]]] = field(default_factory=list)
    renamed: int = 0


@dataclass(frozen=True, slots=True)
class GraphParts:
    """A graph, or the body of a function: nodes without constants, constants by name, declared types."""

    nodes: Sequence[NodeProto]
    constants: Mapping[str, Constant]
    inputs: Sequence[ValueInfoProto]
    outputs: Sequence[ValueInfoProto]
    values: Sequence[ValueInfoProto]
    folder: Path | None = None
    sparse: Mapping[str, bytes] = field(default_factory=dict)

    def ranks(self) -> dict[str, int]:
        """The ranks of values whose types are declared."""
        infos = [
            info for info in (*self.inputs, *self.values, *self.outputs) if info.type.tensor_type.HasField("shape")
        ]
        return {info.name: len(info.type.tensor_type.shape.dim) for info in infos}

    @staticmethod
    def of_graph(graph: GraphProto, folder: Path | None) -> GraphParts:
        """Read a graph; ``folder`` is where its external data lies."""
        nodes = [node for node in graph.node if constant_of(node) is None]
        sparse = {tensor.values.name: sparse_digest(tensor) for tensor in graph.sparse_initializer}
        constants = constants_of(graph, folder)
        return GraphParts(nodes, constants, graph.input, graph.output, graph.value_info, folder, sparse)

    @staticmethod
    def of_function(function: FunctionProto) -> GraphParts:
        """Read the body of a function, whose parameters have no types."""
        body = GraphProto(node=function.node)
        body.input.extend(ValueInfoProto(name=name) for name in function.input)
        body.output.extend(ValueInfoProto(name=name) for name in function.output)
        return GraphParts.of_graph(body, None)


def compare_graphs(
    a: GraphParts, b: GraphParts, found: Differences, prefix: str = "", outer: Mapping[str, str] | None = None
) -> None:
    """Record the differences of two graphs, and of the graphs inside paired nodes.

    ``prefix`` goes before each name; ``outer`` maps values of the enclosing graphs. Raises ``DmlcError`` for external
    data that cannot be read.
    """
    shared = {**(outer or {}), **_shared_inputs(a, b, nested=outer is not None)}
    shared |= _compare_constants(a, b, found, prefix)
    pairs = pair_nodes(a.nodes, b.nodes, shared)
    ranks = a.ranks()
    for i, j in pairs.nodes.items():
        _compare_nodes(a.nodes[i], b.nodes[j], pairs, found, prefix, ranks)
        _compare_inner(a, b, a.nodes[i], b.nodes[j], pairs, found, prefix)
    taken = set(pairs.nodes.values())
    left = [node for i, node in enumerate(a.nodes) if i not in pairs.nodes]
    right = [node for j, node in enumerate(b.nodes) if j not in taken]
    paired = (label_of(a.nodes[i]) for i in pairs.nodes)
    found.nodes += grouped_changes(left, right, paired, found.ledger, prefix)
    if outer is None:
        found.types += interface_changes("input", a.inputs, b.inputs, prefix)
        found.types += interface_changes("output", a.outputs, b.outputs, prefix)
    else:
        _compare_results(a, b, pairs, found, prefix)
    others = {info.name: info for info in b.values}
    found.types += value_changes(a.values, others, pairs.name_of, prefix)
    known = set(outer or {})
    found.renamed += sum(x != y for x, y in pairs.values.items() if x not in known)


def _shared_inputs(a: GraphParts, b: GraphParts, *, nested: bool) -> dict[str, str]:
    """Inputs of both: of a model by name, of a graph inside a node by position."""
    if nested:
        return {x.name: y.name for x, y in zip(a.inputs, b.inputs, strict=False)}
    names = {info.name for info in b.inputs}
    return {info.name: info.name for info in a.inputs if info.name in names}


def _compare_results(a: GraphParts, b: GraphParts, pairs: NodePairs, found: Differences, prefix: str) -> None:
    """Results of a graph inside a node, by position."""
    before = [pairs.name_of(info.name) for info in a.outputs]
    after = [info.name for info in b.outputs]
    if before != after:
        found.types.append(TypeChange(f"{prefix}results", "output", ", ".join(before), ", ".join(after)))


def _compare_constants(a: GraphParts, b: GraphParts, found: Differences, prefix: str) -> dict[str, str]:
    """Record the constants that differ; the names that equal ones have in both graphs."""
    names = {name: name for name in a.constants if name in b.constants}
    left = [constant for name, constant in a.constants.items() if name not in names]
    right = {name: constant for name, constant in b.constants.items() if name not in names}
    if left:
        types = {constant.type_text for constant in left}
        by_digest: dict[bytes, list[str]] = {}
        for name in [*names, *reversed(right)]:  # one that has lost its name is looked for first
            if b.constants[name].type_text in types:
                by_digest.setdefault(b.constants[name].digest, []).append(name)
        wanted = {b.constants[names_of[0]].type_text for names_of in by_digest.values()}
        for constant in left:
            same = by_digest.get(constant.digest) if constant.type_text in wanted else None
            if same:
                names[constant.name] = same.pop() if len(same) > 1 else same[0]
    taken: set[str] = set()
    for name, other in names.items():
        if other in taken:
            found.constants.append(
                ConstantChange(prefix + name, "removed", a=f"{a.constants[name].type_text}, as {other}")
            )
            continue
        taken.add(other)
        change = compared(prefix + name, a.constants[name], b.constants[other])
        found.constants += [] if change is None else [change]
    found.constants += [ConstantChange(prefix + c.name, "removed", a=c.type_text) for c in left if c.name not in names]
    added = [c for name, c in right.items() if name not in taken]
    found.constants += [ConstantChange(prefix + c.name, "added", b=c.type_text) for c in added]
    _compare_sparse(a, b, found, prefix)
    return names


def _compare_sparse(a: GraphParts, b: GraphParts, found: Differences, prefix: str) -> None:
    for name in dict.fromkeys([*a.sparse, *b.sparse]):
        if a.sparse.get(name) != b.sparse.get(name):
            status = "added" if name not in a.sparse else "removed" if name not in b.sparse else "changed"
            found.constants.append(ConstantChange(prefix + name, status, "sparse tensor", "sparse tensor"))


def _compare_nodes(
    a: NodeProto, b: NodeProto, pairs: NodePairs, found: Differences, prefix: str, ranks: Mapping[str, int]
) -> None:
    """Record what differs in two nodes of one operator. ``ranks`` are those of the values of the first graph."""
    details = attribute_details(a, b, *found.opsets, rank=ranks.get(a.input[0]) if a.input else None)
    operands = [_trimmed([pairs.name_of(name) for name in a.input]), _trimmed(b.input)]
    if operands[0] != operands[1]:
        details.append(f"operands ({', '.join(_trimmed(a.input))}) -> ({', '.join(operands[1])})")
    if len(_trimmed(a.output)) != len(_trimmed(b.output)):
        details.append(f"results ({', '.join(a.output)}) -> ({', '.join(b.output)})")
    if details:
        nodes = (summary(a, prefix),), (summary(b, prefix),)
        found.nodes.append(NodeChange(*nodes, details=tuple(details)))
    notes = [{entry.key: entry.value for entry in node.metadata_props} for node in (a, b)]
    if notes[0] != notes[1]:
        found.node_metadata.append((prefix + label_of(a), notes[0], notes[1]))


def _compare_inner(
    a: GraphParts, b: GraphParts, x: NodeProto, y: NodeProto, pairs: NodePairs, found: Differences, prefix: str
) -> None:
    """Compare the graphs inside two nodes, attribute by attribute."""
    graphs = [{name: graph for entry in node.attribute for name, graph in _inner(entry)} for node in (x, y)]
    for name in graphs[0].keys() & graphs[1].keys():
        parts = [GraphParts.of_graph(side[name], of.folder) for side, of in zip(graphs, (a, b), strict=True)]
        compare_graphs(parts[0], parts[1], found, f"{prefix}{label_of(x)}.{name}/", pairs.values)
    for name in sorted(graphs[0].keys() ^ graphs[1].keys()):
        nodes = (summary(x, prefix),), (summary(y, prefix),)
        found.nodes.append(NodeChange(*nodes, details=(f"graph {name} is on one side only",)))


def body_details(
    a: NodeProto | None, b: NodeProto | None, versions_a: Mapping[str, int], versions_b: Mapping[str, int]
) -> list[str]:
    """The differences of the graphs inside two nodes of one operator: nodes, constants, results."""
    if a is None or b is None or operator_of(a) != operator_of(b):
        return []
    found = Differences(LedgerRows({}), (versions_a, versions_b))
    sides = [GraphParts([node], {}, (), (), ()) for node in (a, b)]
    _compare_inner(sides[0], sides[1], a, b, NodePairs(), found, "")
    return [*map(str, found.nodes), *(f"initializer {change}" for change in found.constants), *map(str, found.types)]


def _inner(entry: AttributeProto) -> Iterable[tuple[str, GraphProto]]:
    for number, graph in enumerate(graphs_in(entry)):
        yield entry.name if entry.type == AttributeProto.GRAPH else f"{entry.name}[{number}]", graph


def _trimmed(names: Iterable[str]) -> list[str]:
    """The names without absent ones at the end."""
    out = list(names)
    while out and not out[-1]:
        out.pop()
    return out


# --- attributes


def attribute_details(
    a: NodeProto | None,
    b: NodeProto | None,
    versions_a: Mapping[str, int],
    versions_b: Mapping[str, int],
    *,
    rank: int | None = None,
) -> list[str]:
    """The attributes of two nodes of one operator that differ, with both values; none for other pairs.

    An attribute that is left out has the default of the model's opset. Where the ``rank`` of the first operand is
    known, an axis that is counted from the end is the same as one that is counted from the start.
    """
    if a is None or b is None or operator_of(a) != operator_of(b):
        return []
    before, after = plain_attributes(a), plain_attributes(b)
    details = []
    for name in dict.fromkeys([*before, *after]):
        texts = [_attribute_text(entries.get(name)) for entries in (before, after)]
        same = _same_attribute(before.get(name), after.get(name), rank)
        if not same and not _is_default(a, before, b, after, name, (versions_a, versions_b), rank):
            details.append(f"{name} {_attribute_change(before.get(name), after.get(name), texts)}")
    return details


def _same_attribute(a: AttributeProto | None, b: AttributeProto | None, rank: int | None) -> bool:
    if a is None or b is None:
        return False
    if a.type == b.type == AttributeProto.TENSOR:
        return compared(a.name, Constant(a.name, a.t, None), Constant(b.name, b.t, None)) is None
    return (a.type, a.ref_attr_name) == (b.type, b.ref_attr_name) and _meaning(a, rank) == _meaning(b, rank)


def _meaning(entry: AttributeProto, rank: int | None) -> str:
    value = _plain(entry)
    if rank is not None and entry.name == "axis" and entry.type == AttributeProto.INT:
        value %= rank or 1
    elif rank is not None and entry.name == "axes" and entry.type == AttributeProto.INTS:
        value = [axis % (rank or 1) for axis in value]
    return str(value)


def _is_default(
    a: NodeProto,
    before: Mapping[str, AttributeProto],
    b: NodeProto,
    after: Mapping[str, AttributeProto],
    name: str,
    opsets: Sequence[Mapping[str, int]],
    rank: int | None,
) -> bool:
    """True if both nodes give an attribute one value, one of them by leaving it out."""
    values = []
    for node, entries, versions in zip((a, b), (before, after), opsets, strict=True):
        entry = entries.get(name) or _default_of(node, name, versions)
        values.append(None if entry is None else _meaning(entry, rank))
    return (name not in before or name not in after) and values[0] is not None and values[0] == values[1]


def _default_of(node: NodeProto, name: str, versions: Mapping[str, int]) -> AttributeProto | None:
    """The default of an attribute at the opset of the model; None without one."""
    domain = plain_domain(node.domain)
    try:
        entry = defs.get_schema(node.op_type, versions.get(domain, 1), domain).attributes[name].default_value
    except (SchemaError, KeyError):
        return None
    return entry if entry.type else None


def _plain(entry: AttributeProto) -> Any:
    if entry.ref_attr_name:
        return f"@{entry.ref_attr_name}"
    value = helper.get_attribute_value(entry)
    if entry.type == AttributeProto.FLOAT:
        return float(str(np.float32(value)))
    if entry.type == AttributeProto.FLOATS:
        return [float(str(np.float32(x))) for x in value]
    if entry.type == AttributeProto.TYPE_PROTO:
        return type_text(value)
    return [_word(x) for x in value] if isinstance(value, (list, tuple)) else _word(value)


def _word(value: Any) -> Any:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _attribute_text(entry: AttributeProto | None) -> str:
    if entry is None:
        return "absent"
    if entry.type == AttributeProto.TENSOR:
        return Constant(entry.name, entry.t, None).type_text
    return str(_plain(entry))


def _attribute_change(a: AttributeProto | None, b: AttributeProto | None, texts: Sequence[str]) -> str:
    if a is not None and b is not None and a.type == b.type == AttributeProto.TENSOR:
        change = compared(a.name, Constant(a.name, a.t, None), Constant(b.name, b.t, None))
        if change is not None and change.worst is not None:
            return f"{texts[0]}, {change.worst}"
    return f"{texts[0]} -> {texts[1]}"
