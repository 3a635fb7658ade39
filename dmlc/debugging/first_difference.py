"""The first value that two models disagree on: both hold it, and what lies behind it still agrees."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from dmlc.debugging.constants import ConstantChange, compared
from dmlc.debugging.insides import Inside, NodeRecord
from dmlc.debugging.model_diff import body_details
from dmlc.debugging.node_attributes import attribute_details
from dmlc.debugging.value_pairs import ValuePair, value_pairs
from dmlc.diagnostics.counted import counted, first_of
from dmlc.ir.answers import Answer, words
from dmlc.onnx_schema.domains import imported_versions
from dmlc.runtime.runnable import NotRunnable, RunFailed
from dmlc.verifying.comparison import DIFFERENT, SAME, Comparison, compare_values
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.tolerance import REASSOCIATES, Tolerance
from dmlc.verifying.worst import WorstElement, worst_element

#: Values that become outputs at once: all of them together may not fit in memory, and few are needed as a rule.
BATCH = 64
#: A difference that an operand has at no less than this part was there before.
_INHERITED = 1 / 8
#: Differences below this many epsilons of the largest magnitude are rounding.
_ROUNDING = 64


class ComparedValue(Answer, frozen=True, rename={"name": "a", "other": "b"}):
    """A value of A and the value of B that stands for it: ``status`` is ``exact``, ``within`` or ``different``."""

    name: str
    other: str
    status: Annotated[str, words("exact", "within", "different")]
    what: str | None = None
    worst: WorstElement | None = None

    def __str__(self) -> str:
        name = self.name if self.name == self.other else f"{self.name} ({self.other} in B)"
        return f"{name}: {self.worst or self.what or 'equal'}"


class Location(Answer, frozen=True, rename={"other_node": "result_node", "details": "attributes"}):
    """The first value that parts.

    ``node`` of A and ``other_node`` of B make it; either is None where it cannot be seen. ``inputs`` are the values
    that these read and both hold, ``constants`` those of them that differ, ``details`` the attributes that differ.
    ``bodies`` are the differences of graphs inside the nodes. ``agreeing`` are the nearest earlier
    values that agree. ``behind`` are the nodes of B, or else of A, between these and the value: the fault is in one of
    them. ``compared`` of ``held`` values were looked at.
    """

    value: ComparedValue
    node: NodeRecord | None
    other_node: NodeRecord | None
    inputs: tuple[ComparedValue, ...]
    constants: tuple[ConstantChange, ...]
    details: tuple[str, ...]
    agreeing: tuple[str, ...]
    behind: tuple[NodeRecord, ...]
    compared: int
    held: int
    bodies: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Lines for people."""
        out = [f"first difference: {self.value}"]
        out += [f"  node of A: {self.node}"] if self.node else []
        out += [f"  node of B: {self.other_node}"] if self.other_node else []
        out += [f"  attribute {detail}" for detail in self.details]
        out += [f"  inside it {line}" for line in self.bodies]
        out += [f"  initializer {change}" for change in self.constants]
        out += [f"  reads {value}" for value in self.inputs]
        out.append(f"  last matching tensors: {first_of(self.agreeing, 5) or 'only inputs and initializers'}")
        between = [node for node in self.behind if node not in (self.node, self.other_node)]
        if between:
            out.append(f"  between: {first_of(between, 10)}")
        out.append(f"  compared: {self.compared} of the {counted(self.held, 'tensor')} that both models have")
        return "\n".join(out) + "\n"


@dataclass(slots=True)
class _ValueSearch:
    """Values compared so far, by their name in A, with errors over the largest magnitude."""

    a: Inside
    b: Inside
    feeds: Feeds
    tolerance: Tolerance | None
    kinds: Mapping[str, str]
    found: dict[str, ComparedValue] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    noise: dict[str, float] = field(default_factory=dict)
    #: The messages of values that B fails to compute.
    failures: dict[str, str] = field(default_factory=dict)

    def compare(self, pairs: Sequence[ValuePair]) -> None:
        """Compare these values; one that a side cannot give is left out."""
        left, right = self._values(self.a, [p.a for p in pairs]), self._values(self.b, [p.b for p in pairs])
        for pair in pairs:
            if pair.a in left and pair.b in self.failures:
                self.found[pair.a] = ComparedValue(pair.a, pair.b, DIFFERENT, f"B fails: {self.failures[pair.b]}")
                self.errors[pair.a], self.noise[pair.a] = math.inf, 0.0
            if pair.a not in left or pair.b not in right:
                continue
            a, b = left[pair.a], right[pair.b]
            loose = not pair.certain and (np.shape(a) != np.shape(b) or np.asarray(a).dtype != np.asarray(b).dtype)
            if not loose:
                self._keep(pair, a, b)

    def _values(self, side: Inside, names: Sequence[str]) -> dict[str, Any]:
        """Values of a batch; where the model does not run with these outputs, one by one."""
        fed = {name: self.feeds[name] for name in names if name in self.feeds}
        wanted = [name for name in names if name not in fed]
        try:
            return fed | (side.values(self.feeds, wanted) if wanted else {})
        except NotRunnable:
            if len(wanted) == 1:
                return fed
        except RunFailed as error:
            if len(wanted) == 1:
                if side is self.b:
                    self.failures[wanted[0]] = str(error)
                return fed
        half = len(wanted) // 2
        return fed | self._values(side, wanted[:half]) | self._values(side, wanted[half:])

    def _keep(self, pair: ValuePair, a: Any, b: Any) -> None:
        kind = self.kinds.get(pair.a)
        compared = compare_values(pair.a, a, b, frozenset({REASSOCIATES}), kind, tolerance=self.tolerance)
        worst = _worst(compared, a, b, kind)
        what = compared.difference.what if compared.difference is not None and worst is None else None
        self.found[pair.a] = ComparedValue(pair.a, pair.b, compared.status, what, worst)
        alike = compared.status == SAME
        scaled = None if worst is None else worst.scaled
        self.errors[pair.a] = 0.0 if alike else math.inf if scaled is None else scaled
        dtype = np.asarray(a).dtype
        self.noise[pair.a] = _ROUNDING * float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0

    def is_source(self, operand: str, value: str) -> bool:
        """True if a value that agrees already has a large part of the difference of one behind it.

        Distances count too: a subtraction of like numbers lifts a small relative difference beyond the tolerance.
        """
        before, after = self.found[operand].worst, self.found[value].worst
        if before is None or after is None or self.errors[operand] <= self.noise[operand]:
            return False
        if before.absolute is None or after.absolute is None:
            return False
        is_large = self.errors[operand] >= _INHERITED * min(self.errors[value], 1.0)
        return is_large or before.absolute >= _INHERITED * after.absolute


def _worst(compared: Comparison, a: Any, b: Any, kind: str | None) -> WorstElement | None:
    x, y = np.asarray(a), np.asarray(b)
    if compared.status == SAME or x.shape != y.shape or x.dtype != y.dtype or x.dtype.kind in "OUS":
        return None
    return worst_element(x, y, kind)


def locate_first(
    a: Inside, b: Inside, feeds: Feeds, outputs: Iterable[str], tolerance: Tolerance | None = None
) -> Location | None:
    """The first value, in topological order, on the way to these outputs of A that differs; None if none does.

    Values are compared in batches until one parts. If an operand of it already has a large part of the difference,
    within the tolerance, the search goes on from there. ``tolerance`` is by default the dtype's.
    """
    pairs = value_pairs(a, b, outputs)
    search = _ValueSearch(a, b, feeds, tolerance, {**a.subject.kinds, **b.subject.kinds})
    first = None
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        search.compare(batch)
        different = [p.a for p in batch if p.a in search.found and search.found[p.a].status == DIFFERENT]
        if different:
            first = different[0]
            break
    if first is None:
        return None
    graph, names = _graph_of(a, b, pairs)
    while True:
        agreeing, behind = _behind(graph, names, first, search)
        inherited = [name for name in agreeing if search.is_source(name, first)]
        if not inherited:
            return _location(search, first, agreeing, behind, len(pairs))
        first = max(inherited, key=lambda name: search.errors[name])


def _graph_of(a: Inside, b: Inside, pairs: Sequence[ValuePair]) -> tuple[Inside, Mapping[str, str]]:
    """The side whose nodes are walked, B's if it has any, and its names of the paired values."""
    if b.nodes:
        return b, {pair.a: pair.b for pair in pairs}
    return a, {pair.a: pair.a for pair in pairs}


def _behind(
    graph: Inside, names: Mapping[str, str], value: str, search: _ValueSearch
) -> tuple[list[str], list[NodeRecord]]:
    """The nearest values before this one that agree, by their names in A, and the nodes in between, in order."""
    makers = {name: number for number, node in enumerate(graph.nodes) for name in node.outputs}
    own = {names[name]: name for name, found in search.found.items() if name != value and found.status != DIFFERENT}
    agreeing: dict[str, None] = {}
    between: set[int] = set()
    pending = [names[value]]
    while pending:
        name = pending.pop()
        if name in own:
            agreeing[own[name]] = None
            continue
        number = makers.get(name)
        if number is not None and number not in between:
            between.add(number)
            pending += graph.nodes[number].inputs
    return list(agreeing), [graph.nodes[number] for number in sorted(between)]


def _location(
    search: _ValueSearch, value: str, agreeing: Sequence[str], behind: Sequence[NodeRecord], held: int
) -> Location:
    found = search.found[value]
    node, other = _maker(search.a, value), _maker(search.b, found.other)
    read = [name for record in (node,) if record is not None for name in record.inputs]
    inputs = [search.found[name] for name in dict.fromkeys(read) if name in search.found]
    protos, opsets = (_proto(search.a, value), _proto(search.b, found.other)), _opsets(search)
    details, bodies = attribute_details(*protos, *opsets), body_details(*protos, *opsets)
    return Location(
        found, node, other, tuple(inputs), tuple(_constants(search, node, other)), tuple(details), tuple(agreeing),
        tuple(behind), len(search.found), held, tuple(bodies),
    )  # fmt: skip


def _maker(side: Inside, value: str) -> NodeRecord | None:
    return next((node for node in side.nodes if value in node.outputs), None)


def _proto(side: Inside, value: str) -> Any:
    """The ONNX node that makes a value, if the side is a model."""
    if side.model is None:
        return None
    return next((node for node in side.model.graph.node if value in node.output), None)


def _opsets(search: _ValueSearch) -> list[dict[str, int]]:
    models = (search.a.model, search.b.model)
    return [{} if model is None else imported_versions(model.opset_import) for model in models]


def _constants(search: _ValueSearch, node: NodeRecord | None, other: NodeRecord | None) -> list[ConstantChange]:
    """Differences of the initializers that both nodes read, by name, or by position if the operators are the same."""
    if node is None or other is None:
        return []
    before, after = search.a.constants, search.b.constants
    pairs = [(name, name) for name in node.inputs if name in other.inputs]
    if node.key == other.key and len(node.inputs) == len(other.inputs):
        pairs += list(zip(node.inputs, other.inputs, strict=True))
    found = {
        x: change
        for x, y in pairs
        if x in before and y in after and (change := compared(x, before[x], after[y])) is not None
    }
    return list(found.values())
