"""Which defs call themselves, directly or through others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dmlc.diagnostics import Diagnostic, Label
from dmlc.diagnostics.catalogue import names as codes
from dmlc.text import tree


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


def _problem(definition: tree.Def, call: tree.Call, circle: list[str]) -> Diagnostic:
    shown = circle if len(circle) <= 8 else [*circle[:4], "...", *circle[-3:]]
    message = f"{circle[0]} calls itself: {' -> '.join(shown)}"
    labels = (Label(definition.name.span), Label(call.span, "the circle closes here"))
    return Diagnostic(codes.CYCLE, message, labels, "a def is unfolded where it is called, so it cannot repeat itself")


def _calls(definition: tree.Def) -> list[tree.Call]:
    """All calls of one-part names in a def, in the order of the text."""
    pending: list[tree.Expr] = [*reversed(definition.result.values)]
    pending += [statement.value for statement in reversed(definition.body)]
    pending += [k.default for k in definition.keywords if k.default is not None]
    out = []
    while pending:
        expr = pending.pop()
        if isinstance(expr, tree.Call) and len(expr.callee) == 1:
            out.append(expr)
        pending += reversed(list(_parts(expr)))
    return out


def _parts(expr: tree.Expr) -> tuple[tree.Expr, ...]:
    if isinstance(expr, tree.Call):
        return (*expr.operands, *(k.value for k in expr.keywords))
    if isinstance(expr, tree.Infix):
        return (expr.first, *(operand for _, operand in expr.rest))
    if isinstance(expr, tree.Pipe):
        return (expr.first, *expr.calls)
    if isinstance(expr, tree.Power):
        return expr.operands
    if isinstance(expr, (tree.Prefix, tree.Cast)):
        return (expr.operand,)
    if isinstance(expr, tree.Paren):
        return (expr.inner,)
    return expr.items if isinstance(expr, tree.ListOf) else ()
