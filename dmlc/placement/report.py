"""Placement report: where each node of an ONNX model runs on a target, and why, by the target's tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace
from onnx import GraphProto, ModelProto, NodeProto

from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.shown import Shown
from dmlc.inference.model_facts import GraphFacts, facts_of_model
from dmlc.inference.open_sizes import open_inputs
from dmlc.ir import Dim, TensorType
from dmlc.onnx_schema.domains import imported_versions, operator_of, plain_domain
from dmlc.onnx_schema.metadata import model_facts, open_dims
from dmlc.onnx_schema.nested import graphs_of, holds_graphs
from dmlc.placement.costs import node_bytes, node_dispatches, total
from dmlc.placement.faults import surroundings
from dmlc.placement.loading_rewrites import FloatScalar, RewriteSite, float_scalars, rewrite_sites
from dmlc.placement.node import CPU, FOLDED, PROVIDER, UNKNOWN, Finding, Looked, NodePlacement, hangs_on, look_up
from dmlc.placement.node_counts import is_constant
from dmlc.placement.probed import Probe
from dmlc.placement.transfers import Partitions, PlacedGraph, PlacedNode, Transfer, transfers
from dmlc.placement.values import ValueScope, told_names
from dmlc.targets import Target
from dmlc.targets.capabilities import Capabilities
from dmlc.targets.directml import least_feature_level, level_key
from dmlc.targets.provider import provider
from dmlc.targets.session_advice import provider_options

#: The operands and results on the CPU of a node that does not run on the provider: none in particular.
_NOWHERE = Looked(CPU, "")


class Placement(Shown, Struct):
    """The report on a model, and the name of the ``device``. ``level`` is the first feature level of DirectML that
    suffices for what the tables know, ``feature_level`` the one that is there; None for another device.

    ``named`` are the open dims that inputs declare, ``dims`` those whose name the user knows, ``shapes`` the inputs
    with an open rank or an open size without a name.
    ``transfers`` are the copies between CPU and GPU inside the model; ``possible_transfers`` counts the values that a
    node writes or reads of which it is not known where it runs.
    """

    device: str
    opset: int
    feature_level: str | None
    nodes: list[NodePlacement]
    partitions: int
    level: str | None
    named: frozenset[str] = frozenset()
    dims: list[str] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    possible_transfers: int = 0

    def count(self, where: str) -> int:
        return sum(node.where == where for node in self.nodes)

    def headline(self) -> str:
        """Return ``verdict``."""
        return self.verdict

    @property
    def findings(self) -> list[tuple[NodePlacement, Finding]]:
        return [(node, finding) for node in self.nodes for finding in node.findings]

    @property
    def fails(self) -> bool:
        """Return whether the session is not created, or a result is wrong."""
        return any(finding.effect in ("fails", "wrong") for _, finding in self.findings)

    @property
    def dispatches(self) -> Dim | None:
        return total([node.dispatches for node in self.nodes])

    @property
    def bytes(self) -> Dim | None:
        return total([node.bytes for node in self.nodes])

    @property
    def transferred(self) -> Dim | None:
        """The bytes that the transfers copy; None where those of one are not known."""
        return total([copy.bytes for copy in self.transfers])

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
            f"{alone} not fused" if alone else "",
        ]
        said = ", ".join(filter(None, parts))
        total = len(self.nodes)
        nodes, graphs = counted(total, "node"), counted(self.partitions, "fused graph")
        if self.feature_level is None:
            return f"{nodes}: {said}" if said else f"{nodes}, all on {self.device}"
        return f"{nodes}: {said}; {graphs}" if said else f"{nodes}, all on {self.device}, in {graphs}"


def placement(
    model: ModelProto,
    target: Target,
    *,
    feature_level: str | None = None,
    binding: Mapping[str, int] | None = None,
    types: Mapping[str, TensorType] | None = None,
    probe: Probe | None = None,
) -> Placement:
    """Report where the nodes of a model run on a target that names a provider. The model is not changed.

    ``binding`` fixes dims by name. ``types`` are the types of values that the caller knows better than ONNX's
    inference. Rows of a ``probe`` count before the tables. Raises ``DmlcError`` E0590 for a broken data file,
    ``ValueError`` for a target without a provider.
    """
    known = facts_of_model(model, types, binding)
    opsets = imported_versions(model.opset_import)
    capabilities = Capabilities(target, opsets.get("", 0), _options(model, target))
    level = target.feature_level and (feature_level or target.feature_level)
    work = _PlacementRun(capabilities, level or "", opsets, probe)
    placed = work.graph(known.graph, known.facts, None, "")
    levels = [node.level for node in work.nodes if node.level] + [least_feature_level()]
    most = max(levels, key=level_key) if level else None
    shapes = open_inputs(info for info in model.graph.input if info.name in known.facts.inputs)
    out = Placement(capabilities.device, opsets.get("", 0), level, work.nodes, work.partitions, most)
    declared = open_dims(model.graph.input)  # tf2onnx calls a batch unk__5
    dims = sorted({*told_names(known.named), *(known.named & declared)})
    copies, possible = transfers(placed, size_options(dims, shapes))
    return replace(out, named=known.named, dims=dims, shapes=shapes, transfers=copies, possible_transfers=possible)


def _options(model: ModelProto, target: Target) -> Mapping[str, str]:
    """The options of the provider that a model asks for in its metadata."""
    if target.provider is None:
        return {}
    return provider_options(model_facts(model), provider(target.provider).session.provider)


def size_options(dims: list[str], shapes: list[str]) -> str:
    """The options that fix the open sizes of a model; empty where it has none."""
    return " ".join([*(f"--bind {name}=SIZE" for name in dims), *(f"--shape {name}=..." for name in shapes)])


class _Seen(Struct, frozen=True):
    """Placement and cost found for a node."""

    looked: Looked
    bytes: Dim | None
    dispatches: Dim | None


def _kind(node: NodeProto, scope: ValueScope) -> Any:
    """Return a key that two nodes share exactly if the tables hold the same for both; None for a node that has no key.

    Equal facts about values are one object, so they are compared by identity.
    """
    names, attributes = node.input[:], []
    for attribute in node.attribute:
        if holds_graphs(attribute):
            return None
        attributes.append(attribute.SerializeToString(deterministic=True))
    operands = [
        (
            names.index(name),  # the first position of a value that is read twice
            id(scope.of(name)),
            name in scope.constant,
            name in scope.on_cpu,
            name in scope.inputs,
            id(scope.elements(name)),
        )
        if name
        else None
        for name in names
    ]
    results = [id(scope.of(name)) if name else None for name in node.output]
    around = surroundings(node, scope)
    return node.op_type, node.domain, tuple(operands), tuple(results), tuple(attributes), around


def node_path(node: NodeProto, index: int, path: str) -> str:
    """Return the name of a node in the report. ``index`` is its number in its graph; ``path`` names the nodes around
    it, and ends in a slash."""
    return path + (node.name or next(filter(None, node.output), f"node {index}"))


class _PlacementRun(Struct):
    capabilities: Capabilities
    level: str
    opsets: Mapping[str, int]
    probe: Probe | None = None
    nodes: list[NodePlacement] = field(default_factory=list)
    partitions: int = 0
    scalars: dict[str, FloatScalar] = field(default_factory=dict)
    seen: dict[Any, _Seen] = field(default_factory=dict)

    def graph(
        self,
        graph: GraphProto,
        facts: GraphFacts,
        outer: ValueScope | None,
        path: str,
        holder: NodePlacement | None = None,
    ) -> PlacedGraph:
        """Place the nodes of a graph, and of the graphs inside it; ``holder`` is the node that it is inside of."""
        scope = ValueScope.of_graph(facts, outer)
        scope.connect(graph, outermost=outer is None)
        fused = Partitions(self.partitions, bool(facts.inner))
        for node in graph.node:
            if is_constant(node):
                scope.constant.update(node.output)
        self.scalars.update(float_scalars(graph))
        scope.floats = self.scalars
        sites = rewrite_sites(graph, facts.of, scope.constant, self.scalars, self.capabilities)
        first = len(self.nodes)
        placed = PlacedGraph(graph, scope, holder)
        for index, node in enumerate(graph.node):
            if is_constant(node):
                continue
            name = node_path(node, index, path)
            row, looked = self._row(node, name, scope)
            if index in sites and row.where == PROVIDER:
                self._rewrite(row, sites[index], scope, last=sites[index].root == index)
            if self.capabilities.provider.fuses:
                row.partition, alone = fused.add(node, row.where == PROVIDER and not row.alone)
            if row.where == PROVIDER and self.capabilities.provider.fuses:
                row.alone = row.alone or alone
                if row.alone and node.op_type == "TopK" and row.dispatches is not None:
                    row.dispatches = row.dispatches + 1  # it zeroes a buffer first (onnxruntime, DmlOperatorTopk.cpp)
            row.hangs_on = hangs_on(row, looked)
            self.nodes.append(row)
            of_provider = looked if row.where == PROVIDER else _NOWHERE
            placed.nodes.append(PlacedNode(node, row, of_provider.host_operands, of_provider.host_results))
            if index in facts.inner:
                for inner, inner_facts in zip(graphs_of(node), facts.inner[index], strict=True):
                    placed.inner.append(self.graph(inner, inner_facts, scope, f"{name}/", row))
        numbers = fused.finish()
        for row in self.nodes[first:]:
            if row.partition in numbers:
                row.partition = numbers[row.partition]
        self.partitions += len(set(numbers.values()))
        return placed

    def _row(self, node: NodeProto, name: str, scope: ValueScope) -> tuple[NodePlacement, Looked]:
        kind = _kind(node, scope)
        seen = None if kind is None else self.seen.get(kind)
        if seen is None:
            seen = self._look(node, scope)
            if kind is not None and seen.looked.is_of_kind:
                self.seen[kind] = seen
        found = seen.looked
        out = NodePlacement(name, operator_of(node), found.where, found.why, findings=tuple(found.findings))
        out.source, out.bytes = found.source, seen.bytes
        if found.where == PROVIDER:
            out.directml, out.level, out.alone = found.directml, found.level, found.alone
            out.dispatches = seen.dispatches
        return out, found

    def _rewrite(self, row: NodePlacement, site: RewriteSite, scope: ValueScope, *, last: bool) -> None:
        """Place a node where the node runs that ONNX Runtime makes of it and others; ``last`` has its costs and the
        findings."""
        found = look_up(site.made, scope, self.capabilities, self.level, self.opsets)
        prefix = f"ONNX Runtime's {site.rewrite.name} makes {site.rewrite.makes} of it"
        if found.where != PROVIDER:
            row.where, row.why, row.source, row.alone = found.where, f"{prefix}: {found.why}", found.source, ""
            row.directml, row.level, row.dispatches = (), None, 0
        else:
            provider = self.capabilities.provider
            row.dispatches = node_dispatches(site.made, scope, provider) if last else 0
            row.bytes = node_bytes(site.made, scope, provider) if last else 0
        if last:
            row.findings += tuple([replace(f, limit=f"{prefix}: {f.limit}") for f in found.findings])

    def _look(self, node: NodeProto, scope: ValueScope) -> _Seen:
        looked = look_up(node, scope, self.capabilities, self.level, self.opsets)
        if self.probe is not None:
            looked = self.probe.over(node, self.opsets.get(plain_domain(node.domain), 0), scope.facts, looked)
        provider = self.capabilities.provider
        bytes = node_bytes(node, scope, provider) if looked.where in (CPU, PROVIDER) else 0
        dispatches = node_dispatches(node, scope, provider) if looked.where == PROVIDER and not looked.host else 0
        if looked.where == PROVIDER and dispatches == 0:
            bytes = 0
        return _Seen(looked, bytes, dispatches)
