"""Where each node of an ONNX model runs on a target, and why: looked up in the target's tables, never guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

from dmlc.codegen.onnx.known import Scope, bind, names_of
from dmlc.codegen.onnx.node_counts import subgraphs
from dmlc.codegen.onnx.node_placement import CPU, FOLDED, PROVIDER, SHAPES, UNKNOWN, Finding, Looked, look_up
from dmlc.codegen.onnx.partition import Partitions
from dmlc.codegen.onnx.skeleton import inferred
from dmlc.ir import Array, Dim, TensorType
from dmlc.records import dataclass
from dmlc.targets import Target, dispatches
from dmlc.targets.directml import least_feature_level, level_key
from dmlc.targets.provider import Provider, provider

_DOMAINS = ("", "ai.onnx")
#: Operators that read no more of their first operand than they write.
_READ_IN_PART = frozenset(("Gather", "GatherElements", "GatherND", "Slice"))


@dataclass(slots=True)
class NodePlacement:
    """One node. ``where`` is provider, cpu, folded or unknown; ``why`` says it in words.

    ``directml`` are the operators it becomes, ``level`` the first feature level that suffices for them (None: no table
    says). ``partition`` is the number of its fused graph, None where it runs alone, because of ``alone``.
    """

    name: str
    op: str
    where: str
    why: str
    directml: tuple[str, ...] = ()
    level: str | None = None
    alone: str = ""
    partition: int | None = None
    dispatches: Dim | None = 0
    bytes: Dim | None = 0
    findings: tuple[Finding, ...] = ()
    source: str = ""

    @property
    def verdict(self) -> str:
        """One line."""
        first = next((f for f in self.findings if f.effect in ("fails", "wrong")), None)
        if first is not None:
            return f"{'fails' if first.effect == 'fails' else 'wrong numbers'}: {first.limit}"
        if self.where == PROVIDER:
            return f"runs alone: {self.alone}" if self.alone else "in a fused graph"
        return self.why


@dataclass(slots=True)
class Placement:
    """The report on a model. ``level`` is the first feature level that suffices for what the tables know."""

    target: str
    opset: int
    feature_level: str
    nodes: list[NodePlacement]
    partitions: int
    level: str
    dims: list[str] = field(default_factory=list)

    def count(self, where: str) -> int:
        return sum(node.where == where for node in self.nodes)

    @property
    def findings(self) -> list[tuple[NodePlacement, Finding]]:
        return [(node, finding) for node in self.nodes for finding in node.findings]

    @property
    def fails(self) -> bool:
        """Whether the session is not created, or a result is wrong."""
        return any(finding.effect in ("fails", "wrong") for _, finding in self.findings)

    @property
    def dispatches(self) -> Dim | None:
        return _total([node.dispatches for node in self.nodes])

    @property
    def bytes(self) -> Dim | None:
        return _total([node.bytes for node in self.nodes])

    @property
    def verdict(self) -> str:
        """One line for the whole model."""
        effects = Counter(finding.effect for _, finding in self.findings)
        alone = sum(bool(node.alone) and node.where == PROVIDER for node in self.nodes)
        parts = [
            f"{effects['fails']} would make session creation fail" if effects["fails"] else "",
            f"{effects['wrong']} would give wrong numbers" if effects["wrong"] else "",
            f"{self.count(CPU)} on the CPU" if self.count(CPU) else "",
            f"{self.count(UNKNOWN)} unknown" if self.count(UNKNOWN) else "",
            f"{self.count(FOLDED)} computed while loading" if self.count(FOLDED) else "",
            f"{alone} alone" if alone else "",
        ]
        said = ", ".join(filter(None, parts))
        total = len(self.nodes)
        graphs = "1 fused graph" if self.partitions == 1 else f"{self.partitions} fused graphs"
        nodes = "1 node" if total == 1 else f"{total} nodes"
        return f"{nodes}: {said}; {graphs}" if said else f"{nodes}, all on DirectML, in {graphs}"


def _total(values: list[Dim | None]) -> Dim | None:
    out: Dim = 0
    for value, count in Counter(values).items():
        if value is None:
            return None
        out = out + value * count
    return out


def placement(
    model: ModelProto,
    target: Target,
    *,
    feature_level: str | None = None,
    binding: Mapping[str, int] | None = None,
    types: Mapping[str, TensorType] | None = None,
) -> Placement:
    """Where the nodes of a model run on a target that names a provider. The model is not changed.

    ``binding`` fixes dims by name, ``types`` are those of its values where the caller knows them better than ONNX's
    inference. Raises ``DmlcError`` E0590 for a broken data file, ``ValueError`` for a target without a provider.
    """
    if target.provider is None:
        raise ValueError(f"target {target.name} has no provider")
    binding = binding or {}
    bound = bind(model, binding) if binding else model
    bare = inferred(bound, None if binding else types)
    opsets = {("" if e.domain in _DOMAINS else e.domain): e.version for e in model.opset_import}
    level = feature_level or target.feature_level or least_feature_level()
    work = _Work(provider(target.provider), target, level, opsets, types or {}, binding)
    scope = Scope()
    work.graph(bare.graph, scope, "")
    levels = [node.level for node in work.nodes if node.level] + [least_feature_level()]
    dims = [n for n in names_of([scope.of(i.name) for i in bare.graph.input]) if not n.startswith(("?", "unk__"))]
    most = max(levels, key=level_key)
    return Placement(target.name, opsets.get("", 0), level, work.nodes, work.partitions, most, dims)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was found out about a node. ``arrays`` are kept, for nodes of its kind are known by them."""

    looked: Looked
    bytes: Dim | None
    dispatches: Dim | None
    arrays: list[Array]


def _kind(node: NodeProto, scope: Scope) -> Any:
    """What two nodes share exactly when the tables say the same of them; None for a node that is looked at by itself.

    What is known of values is one object where it is alike, so these are told apart by identity.
    """
    names, attributes = node.input[:], []
    for attribute in node.attribute:
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            return None
        attributes.append(attribute.SerializeToString(deterministic=True))
    operands = [
        (
            names.index(name),  # of a value that is read twice
            id(scope.of(name)),
            name in scope.constant,
            name in scope.on_cpu,
            name in scope.inputs,
            id(scope.arrays.get(name)),
        )
        if name
        else None
        for name in names
    ]
    results = [id(scope.of(name)) if name else None for name in node.output]
    return node.op_type, node.domain, tuple(operands), tuple(results), tuple(attributes)


@dataclass(slots=True)
class _Work:
    table: Provider
    target: Target
    level: str
    opsets: Mapping[str, int]
    given: Mapping[str, TensorType]
    binding: Mapping[str, int]
    nodes: list[NodePlacement] = field(default_factory=list)
    partitions: int = 0
    seen: dict[Any, _Seen] = field(default_factory=dict)

    def graph(self, graph: GraphProto, scope: Scope, path: str) -> None:
        scope.declare(graph, self.given if not path else {}, self.binding)
        fused = Partitions(self.partitions, any(subgraphs(node) for node in graph.node))
        first = len(self.nodes)
        for index, node in enumerate(graph.node):
            if node.op_type == "Constant" and node.domain in _DOMAINS:
                scope.add_constant_node(node)
                continue
            name = path + (node.name or next(filter(None, node.output), f"node {index}"))
            row = self._row(node, name, scope)
            row.partition, alone = fused.add(node, row.where == PROVIDER and not row.alone)
            if row.where == PROVIDER:
                row.alone = row.alone or alone
            self.nodes.append(row)
            for inner in subgraphs(node):
                self.graph(inner, scope.inner(), f"{name}/")
        numbers = fused.finish()
        for row in self.nodes[first:]:
            if row.partition in numbers:
                row.partition = numbers[row.partition]
        self.partitions = fused.total

    def _row(self, node: NodeProto, name: str, scope: Scope) -> NodePlacement:
        kind = _kind(node, scope)
        seen = None if kind is None else self.seen.get(kind)
        if seen is None:
            seen = self._look(node, scope)
            if kind is not None and seen.looked.is_of_kind and node.op_type not in SHAPES:
                self.seen[kind] = seen
        found = seen.looked
        domain = "" if node.domain in _DOMAINS else f"{node.domain}."
        out = NodePlacement(name, domain + node.op_type, found.where, found.why, findings=tuple(found.findings))
        out.source, out.bytes = found.source, seen.bytes
        if found.where == PROVIDER:
            out.directml, out.level, out.alone = found.directml, found.level, found.alone
            out.dispatches = seen.dispatches
        return out

    def _look(self, node: NodeProto, scope: Scope) -> _Seen:
        looked = look_up(node, scope, self.table, self.target, self.level, self.opsets)
        bytes = _bytes(node, scope) if looked.where in (CPU, PROVIDER) else 0
        dispatches = _dispatches(node, scope, looked) if looked.where == PROVIDER else 0
        if looked.where == PROVIDER and dispatches == 0:
            bytes = 0
        return _Seen(looked, bytes, dispatches, [scope.arrays[n] for n in node.input if n in scope.arrays])


def _dispatches(node: NodeProto, scope: Scope, found: Looked) -> Dim | None:
    if found.host:
        return 0
    shape = scope.of(node.input[0]).shape if node.input else None
    return dispatches(node.op_type, shape, _axes(node, shape is None or len(shape), scope))


def _axes(node: NodeProto, rank: int | bool, scope: Scope) -> list[int] | None:
    """The axes that a node works over; None where they are not known."""
    given = {a.name: a for a in node.attribute}
    if node.op_type == "TopK":
        return [given["axis"].i if "axis" in given else -1]
    if "axes" in given:
        return list(given["axes"].ints)
    if len(node.input) > 1 and node.input[1]:
        array = scope.arrays.get(node.input[1])
        return None if array is None or array.dtype.kind not in "iu" else [int(a) for a in array.reshape(-1)]
    return None if rank is True else list(range(rank))


def _bytes(node: NodeProto, scope: Scope) -> Dim | None:
    operands, results = [[name for name in names if name] for names in (node.input, node.output)]
    if node.op_type in _READ_IN_PART:
        operands = [*results[:1], *operands[1:]]
        return _total([scope.of(name).bytes for name in (*operands, *results)])
    return _total([scope.of(name).bytes for name in dict.fromkeys((*operands, *results))])
