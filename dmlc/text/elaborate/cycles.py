"""Defs that call themselves, directly or through others, and the size of a model with all calls unfolded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from dmlc.diagnostics import Diagnostic, Label
from dmlc.diagnostics.catalogue import names as codes
from dmlc.text.elaborate.scope import Definition, FileNames
from dmlc.text.syntax import tree


def find_cycles(defs: Mapping[str, tree.Def]) -> tuple[frozenset[str], list[Diagnostic]]:
    """At least one def of every circle of calls, and an E0206 for each circle that is found."""
    calls = {name: [c for c in _calls(d) if c.callee[0].text in defs] for name, d in defs.items()}
    done: set[str] = set()
    cyclic: set[str] = set()
    problems: list[Diagnostic] = []
    path: dict[str, None] = {}

    def visit(name: str) -> None:
        path[name] = None
        for call in calls[name]:
            callee = call.callee[0].text
            if callee in path:
                circle = [*list(path)[list(path).index(callee) :], callee]
                cyclic.update(circle)
                problems.append(_problem(defs[callee], call, circle))
            elif callee not in done:
                visit(callee)
        del path[name]
        done.add(name)

    for root in defs:
        if root not in done:
            visit(root)
    return frozenset(cyclic), problems


class Unfolded(NamedTuple):
    """Size of a model with all its defs unfolded: their statements, the nodes, and how deep calls nest."""

    statements: int = 0
    nodes: int = 0
    depth: int = 0


def unfolded(root: tree.Model | Definition, names: FileNames) -> Unfolded:
    """Counted without unfolding anything; what calls itself is nothing."""
    known: dict[Definition, Unfolded] = {}

    def size(block: tree.Model | tree.Def, names: FileNames) -> Unfolded:
        callees = [names.defs[call.callee[0].text] for call in _calls(block) if call.callee[0].text in names.defs]
        for callee in callees:
            if callee not in known:
                known[callee] = Unfolded()
                if not callee.is_cyclic:
                    inner = size(callee.line, callee.home)
                    statements = inner.statements + len(callee.line.body) + 1
                    known[callee] = Unfolded(statements, inner.nodes, inner.depth + 1)
        parts = [known[callee] for callee in callees]
        nodes = sum([part.nodes for part in parts]) + sum(map(_node_count, _nodes(block))) - len(callees)
        return Unfolded(sum([part.statements for part in parts]), nodes, max([0, *[part.depth for part in parts]]))

    return size(root.line if isinstance(root, Definition) else root, names)


def _node_count(expr: Struct) -> int:
    """The nodes that an expression makes beside its parts, where it is not arithmetic of numbers."""
    if isinstance(expr, tree.Infix):
        return 0 if expr.rest[0][0] == "|>" else len(expr.rest)
    return int(isinstance(expr, (tree.Call, tree.Prefix, tree.Number)))


def _problem(definition: tree.Def, call: tree.Call, circle: list[str]) -> Diagnostic:
    shown = circle if len(circle) <= 8 else [*circle[:4], "...", *circle[-3:]]
    message = f"{circle[0]} calls itself: {' -> '.join(shown)}"
    labels = (Label(definition.name.span), Label(call.span, "the circle closes here"))
    return Diagnostic(codes.CYCLE, message, labels, "a def is unfolded where it is called, so it cannot repeat itself")


def _calls(block: tree.Model | tree.Def) -> list[tree.Call]:
    """All calls of one-part names in a def or model, in the order of the text."""
    return [node for node in _nodes(block) if isinstance(node, tree.Call) and len(node.callee) == 1]


def _nodes(block: tree.Model | tree.Def) -> Iterator[Struct]:
    """All nodes of the defaults and statements of a block, in the order of the text."""
    pending: list[Any] = [block.result, block.body, block.keywords if isinstance(block, tree.Def) else ()]
    while pending:
        node = pending.pop()
        if isinstance(node, tuple):
            pending += node[::-1]
        elif isinstance(node, Struct):
            yield node
            pending += [getattr(node, name) for name in reversed(node.__struct_fields__)]
