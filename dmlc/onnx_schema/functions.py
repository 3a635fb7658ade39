"""Model-local functions: the calls of a model, and the limits on how far they unfold."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from operator import attrgetter
from typing import TypeAlias

from onnx import FunctionProto, ModelProto, NodeProto, defs

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import models as codes
from dmlc.diagnostics.limits import Limits
from dmlc.onnx_schema.domains import imported_versions, plain_domain
from dmlc.onnx_schema.nested import all_nodes, inner_graphs, may_hold_graphs

#: A function by domain, name and overload.
Key: TypeAlias = tuple[str, str, str]


def key_of(node: NodeProto) -> Key:
    """The function that a node calls, if there is one."""
    return plain_domain(node.domain), node.op_type, getattr(node, "overload", "")


def callable_functions(model: ModelProto) -> dict[Key, FunctionProto]:
    """The functions that a node of the model can call.

    A function named like an operator of the imported opsets is never called: ONNX leaves open which of the two is
    meant (onnx.proto, ``ModelProto.functions``), and ONNX Runtime 1.32 takes the operator.
    """
    versions = imported_versions(model.opset_import)
    out: dict[Key, FunctionProto] = {}
    for function in model.functions:
        domain = plain_domain(function.domain)
        if not _is_operator(domain, function.name, versions.get(domain)):
            out[domain, function.name, getattr(function, "overload", "")] = function
    return out


def _is_operator(domain: str, name: str, version: int | None) -> bool:
    return version is not None and defs.has(name, min(max(version, 1), 2**31 - 1), domain)


def called_functions(model: ModelProto) -> list[FunctionProto]:
    """The functions that the model calls, directly or through other functions, in the order in which it lists them."""
    functions = callable_functions(model)
    reached: set[Key] = set()
    waiting = [key_of(node) for node in all_nodes(model.graph.node)]
    while waiting:
        key = waiting.pop()
        if key in functions and key not in reached:
            reached.add(key)
            waiting += [key_of(node) for node in all_nodes(functions[key].node)]
    return [function for key, function in functions.items() if key in reached]


def check_functions(model: ModelProto, limits: Limits) -> None:
    """Raises ``DmlcError``: E0431 for functions that call one another in a circle, E0441 for too many nodes in them,
    E0105 where calls nest too deep. Who unfolds them would go on until the memory is full."""
    if not model.functions:
        return
    bodies = callable_functions(model)
    nodes = {key: list(all_nodes(body.node)) for key, body in bodies.items()}
    called = {key: [k for k in map(key_of, inside) if k in bodies] for key, inside in nodes.items()}
    try:
        order = list(TopologicalSorter(called).static_order())
    except CycleError as error:
        circle = " -> ".join(name for _, name, _ in error.args[1][:8])
        raise fail(codes.BROKEN_MODEL, f"functions call one another in a circle: {circle}") from None
    counts: dict[Key, int] = {}
    depths: dict[Key, int] = {}
    for key in order:
        counts[key] = len(nodes[key]) + sum(counts[k] for k in called[key])
        depths[key] = 1 + max((depths[k] for k in called[key]), default=0)
    deepest = max(depths.values(), default=0)
    if deepest > limits.nesting:
        raise limits.passed("nesting", "calls of functions nest", deepest)
    top = [key_of(node) for node in all_nodes(model.graph.node)]
    total = len(top) + sum(counts.get(key, 0) for key in top)
    if total > limits.nodes:
        raise limits.passed("nodes", "with the bodies of its functions the model has", total)


_operator = attrgetter("domain", "op_type")


def operators_of(model: ModelProto) -> set[tuple[str, str]]:
    """The plain domain and the type of each node of a model, of its functions and of the graphs inside nodes."""
    found: set[tuple[str, str]] = set()
    waiting = [model.graph.node, *(function.node for function in model.functions)]
    for nodes in waiting:
        here = {(plain_domain(domain), op_type) for domain, op_type in set(map(_operator, nodes))}
        if any(may_hold_graphs(*operator) for operator in here):
            waiting += [graph.node for graph in inner_graphs(nodes)]
        found |= here
    return found
