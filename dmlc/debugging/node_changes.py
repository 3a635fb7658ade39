"""Nodes that one of two graphs lacks, grouped by the rewrites that made them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from onnx import ModelProto, NodeProto

from dmlc.codegen.onnx.annotations import read_annotations
from dmlc.codegen.onnx.metadata import model_facts
from dmlc.debugging.node_pairs import label_of
from dmlc.ir.answers import Answer
from dmlc.onnx_schema.domains import operator_of

#: Nodes of one cause that are shown; JSON has all.
_MOST_NAMES = 6


class NodeSummary(Answer, frozen=True):
    """A node: its name (or its first result), operator, operands, results, and its places in the source if known."""

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    places: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.operator} {self.name}"


class ChangedNodes(Answer, frozen=True):
    """Nodes that differ, before and after. ``rules`` are the rewrites, ``rewrite_class`` the loosest of their classes,
    as far as the models record them."""

    before: tuple[NodeSummary, ...]
    after: tuple[NodeSummary, ...]
    rules: tuple[str, ...] = ()
    rewrite_class: str | None = field(name="class", default=None)
    details: tuple[str, ...] = ()


class NodeChange(ChangedNodes, frozen=True):
    """Nodes that differ: ``status`` is ``added``, ``removed``, ``rewritten`` (nodes of A became nodes of B) or
    ``changed`` (one node has other attributes, operands or results, which ``details`` lists). Nodes that no
    rewrite took are one change for each cause, which ``details`` has in words."""

    status: str = "changed"

    def __str__(self) -> str:
        by = f" by {', '.join(self.rules)}" if self.rules else ""
        by += f" ({self.rewrite_class})" if self.rewrite_class else ""
        if self.status == "rewritten":
            return f"rewritten{by}: {_listed(self.before)} -> {_listed(self.after)}"
        nodes = self.after if self.status == "added" else self.before
        if self.status == "changed":
            return f"changed {_listed(nodes)}: {'; '.join(self.details)}"
        if self.details:
            return f"removed {'; '.join(self.details)}: {_listed(nodes, _MOST_NAMES)}"
        return f"{self.status}{by}: {_listed(nodes)}"


def _listed(nodes: Sequence[NodeSummary], most: int | None = None) -> str:
    more = 0 if most is None else len(nodes) - most
    return ", ".join(map(str, nodes[:most])) + (f" and {more} more" if more > 0 else "")


class LedgerRows(Struct, frozen=True):
    """Rules of the models' ledgers by the nodes that they took or made, with their classes; ``causes`` are those of
    nodes that no rewrite took, each with its text."""

    rules: Mapping[str, tuple[tuple[str, str], ...]]
    causes: Mapping[str, tuple[str, str]] = {}

    @staticmethod
    def of(models: Iterable[ModelProto]) -> LedgerRows:
        """Read the ledgers that the models carry; one that is not JSON is passed over."""
        found: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
        causes: dict[str, tuple[str, str]] = {}
        for model in models:
            for facts in model_facts(model):
                text = facts.get("ledger", "")
                for row in _rows(text, "rewrites"):
                    for name in (*row.get("before", ()), *row.get("after", ())):
                        found[str(name)][str(row.get("rule", "")), str(row.get("class", ""))] = None
                for row in _rows(text, "removed"):
                    cause = str(row.get("cause", "")), str(row.get("text", ""))
                    causes.update(dict.fromkeys(map(str, row.get("nodes", ())), cause))
        return LedgerRows({name: tuple(rules) for name, rules in found.items()}, causes)


def _rows(text: str, key: str) -> list[dict[str, Any]]:
    try:
        rows = json.loads(text).get(key, [])
        return [row for row in rows if isinstance(row, dict)]
    except (ValueError, AttributeError, TypeError):
        return []


def summary(node: NodeProto, prefix: str) -> NodeSummary:
    """The record of a node; ``prefix`` names the graph that holds it."""
    places = tuple(read_annotations(node).get("source", ()))
    return NodeSummary(prefix + label_of(node), operator_of(node), tuple(node.input), tuple(node.output), places)


class _Groups:
    """Union-find over names."""

    def __init__(self) -> None:
        self._parents: dict[object, object] = {}

    def root(self, key: object) -> object:
        path = []
        while (parent := self._parents.setdefault(key, key)) != key:
            path.append(key)
            key = parent
        for passed in path:
            self._parents[passed] = key
        return key

    def join(self, a: object, b: object) -> None:
        self._parents[self.root(a)] = self.root(b)


def grouped_changes(
    a: Sequence[NodeProto], b: Sequence[NodeProto], paired: Iterable[str], ledger: LedgerRows, prefix: str
) -> list[NodeChange]:
    """Changes of the nodes that have no pair: those that stand for each other are one rewrite.

    Nodes belong together if one names the other in ``dmlc.from``, or both make a value or have a name in common.
    ``paired`` are the names of the first graph's other nodes, which join nothing.
    """
    groups, known = _Groups(), set(paired)
    sides: list[tuple[str, Sequence[NodeProto]]] = [("a", a), ("b", b)]
    for side, nodes in sides:
        for i, node in enumerate(nodes):
            names = [label_of(node), *read_annotations(node).get("from", ())]
            keys = [("node", name) for name in names if name not in known]
            for key in [*keys, *(("value", name) for name in node.output if name)]:
                groups.join((side, i), key)
    members: dict[object, tuple[list[NodeProto], list[NodeProto]]] = {}
    for place, (side, nodes) in enumerate(sides):
        for i, node in enumerate(nodes):
            members.setdefault(groups.root((side, i)), ([], []))[place].append(node)
    out = []
    for before, after in members.values():
        found = [(before, after)] if before and after else [([n], []) for n in before] + [([], [n]) for n in after]
        out += [_change(x, y, ledger, prefix) for x, y in found]
    return _by_cause(out, ledger)


def _by_cause(changes: Iterable[NodeChange], ledger: LedgerRows) -> list[NodeChange]:
    """The changes; removed nodes of which the ledger has the cause are one change for each cause."""
    out: list[NodeChange] = []
    removed: dict[tuple[str, str], list[NodeSummary]] = defaultdict(list)
    for change in changes:
        names = [node.name for node in change.before]
        if change.status == "removed" and not change.rules and len(names) == 1 and names[0] in ledger.causes:
            removed[ledger.causes[names[0]]].extend(change.before)
        else:
            out.append(change)
    for (cause, text), nodes in removed.items():
        out.append(NodeChange(tuple(nodes), (), (cause,), details=(text,), status="removed"))
    return out


def _change(before: Sequence[NodeProto], after: Sequence[NodeProto], ledger: LedgerRows, prefix: str) -> NodeChange:
    status = "rewritten" if before and after else "removed" if before else "added"
    notes = [read_annotations(node) for node in (*before, *after)]
    rules = dict.fromkeys(rule for note in notes for rule in note.get("rules", ()))
    classes = [name for note in notes for name in note.get("class", ())]
    if not rules:
        rows = [row for node in (*before, *after) for row in ledger.rules.get(label_of(node), ())]
        rules, classes = dict.fromkeys(rule for rule, _ in rows), [name for _, name in rows]
    order = ("", "exact", "reassociates", "range")
    loosest = max(classes, key=lambda name: order.index(name) if name in order else 0, default="")
    left, right = (tuple([summary(node, prefix) for node in side]) for side in (before, after))
    return NodeChange(left, right, tuple(rules), loosest or None, status=status)
