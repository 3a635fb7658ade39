"""Defs that call themselves, directly or through others, and the size of a model with all calls unfolded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

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
    for root in defs:
        if root in done:
            continue
        path: dict[str, Iterator[tree.Call]] = {root: iter(calls[root])}
        while path:
            name = next(reversed(path))
            call = next(path[name], None)
            if call is None:
                path.popitem()
                done.add(name)
                continue
            callee = call.callee[0].text
            if callee in path:
                circle = [*list(path)[list(path).index(callee) :], callee]
                cyclic.update(circle)
                problems.append(_problem(defs[callee], call, circle))
            elif callee not in done:
                path[callee] = iter(calls[callee])
    return frozenset(cyclic), problems


class Unfolded(NamedTuple):
    """Size of a model with all its defs unfolded: their statements, the nodes, and how deep calls nest."""

    statements: int = 0
    nodes: int = 0
    depth: int = 0


def unfolded(root: tree.Model | Definition, names: FileNames) -> Unfolded:
    """Counted without unfolding anything; what calls itself is nothing."""
    known: dict[Definition, Unfolded] = {}
    first = root.line if isinstance(root, Definition) else root
    waiting: list[tuple[tree.Model | Definition, list[Definition]]] = [(root, _callees(first, names))]
    while True:
        made, callees = waiting[-1]
        missing = next((callee for callee in callees if callee not in known), None)
        if missing is not None and missing.is_cyclic:
            known[missing] = Unfolded()
            continue
        if missing is not None:
            waiting.append((missing, _callees(missing.line, missing.home)))
            continue
        block = made.line if isinstance(made, Definition) else made
        inner = [known[callee] for callee in callees]
        found = Unfolded(
            sum(i.statements for i in inner),
            sum(i.nodes for i in inner) + sum(map(_node_count, _expressions(block))) - len(callees),
            max((i.depth for i in inner), default=0),
        )
        waiting.pop()
        if not waiting or not isinstance(made, Definition):
            return found
        known[made] = Unfolded(found.statements + len(block.body) + 1, found.nodes, found.depth + 1)


def _node_count(expr: tree.Expr) -> int:
    """The nodes that an expression makes beside its parts, where it is not arithmetic of numbers."""
    if isinstance(expr, tree.Infix):
        return 0 if expr.rest[0][0] == "|>" else len(expr.rest)
    return int(isinstance(expr, (tree.Call, tree.Prefix, tree.Number)))


def _callees(block: tree.Model | tree.Def, names: FileNames) -> list[Definition]:
    return [names.defs[call.callee[0].text] for call in _calls(block) if call.callee[0].text in names.defs]


def _problem(definition: tree.Def, call: tree.Call, circle: list[str]) -> Diagnostic:
    shown = circle if len(circle) <= 8 else [*circle[:4], "...", *circle[-3:]]
    message = f"{circle[0]} calls itself: {' -> '.join(shown)}"
    labels = (Label(definition.name.span), Label(call.span, "the circle closes here"))
    return Diagnostic(codes.CYCLE, message, labels, "a def is unfolded where it is called, so it cannot repeat itself")


def _calls(block: tree.Model | tree.Def) -> list[tree.Call]:
    """All calls of one-part names in a def or model, in the order of the text."""
    return [expr for expr in _expressions(block) if isinstance(expr, tree.Call) and len(expr.callee) == 1]


def _expressions(block: tree.Model | tree.Def) -> Iterator[tree.Expr]:
    """All expressions and their parts, in the order of the text."""
    pending: list[tree.Expr] = [*reversed(block.result.values)]
    pending += [statement.value for statement in reversed(block.body)]
    if isinstance(block, tree.Def):
        pending += [k.default for k in block.keywords if k.default is not None]
    while pending:
        expr = pending.pop()
        yield expr
        pending += reversed(list(_parts(expr)))


def index_parts(index: tree.Index) -> Iterator[tree.Expr]:
    """The expressions in the brackets of an index."""
    for items in index.subscripts:
        for item in items:
            if isinstance(item, tree.Slice):
                yield from [part for part in (item.start, item.stop, item.step) if part is not None]
            elif not isinstance(item, tree.Ellipsis):
                yield item


def _parts(expr: tree.Expr) -> tuple[tree.Expr, ...]:
    if isinstance(expr, tree.Call):
        return (*expr.operands, *(k.value for k in expr.keywords))
    if isinstance(expr, tree.Infix):
        return (expr.first, *(operand for _, operand in expr.rest))
    if isinstance(expr, tree.Prefix):
        return (expr.operand,)
    if isinstance(expr, tree.Paren):
        return (expr.inner,)
    if isinstance(expr, tree.Index):
        return (expr.operand, *index_parts(expr))
    return expr.items if isinstance(expr, tree.ListOf) else ()
