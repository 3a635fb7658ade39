"""Model-local functions are inlined where ONNX's own inliner can; what it leaves is carried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

from onnx import AttributeProto, ModelProto, NodeProto, inliner

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import models as codes
from dmlc.diagnostics.limits import Limits
from dmlc.importers.inference import bare_model

#: A function by domain, name and overload.
_Key = tuple[str, str, str]


def inlined(model: ModelProto, limits: Limits) -> ModelProto:
    """The model with the bodies of its functions in the place of their calls; itself where it has none.

    Raises what ``check_functions`` raises.
    """
    check_functions(model, limits)
    if not model.functions or any(f.attribute_proto for f in model.functions):
        return model  # ONNX's inliner loses the defaults of attributes
    try:
        flat = inliner.inline_local_functions(bare_model(model, {}))
    except Exception:  # ONNX raises what it likes; a model that cannot be inlined is carried as it is
        return model
    out = ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    out.graph.node.extend(flat.graph.node)
    del out.functions[:]
    out.functions.extend(flat.functions)
    return out


def check_functions(model: ModelProto, limits: Limits) -> None:
    """Raises ``DmlcError``: E0431 for functions that call one another in a circle, E0441 for too many nodes in them,
    E0105 where calls nest too deep. Who unfolds them would go on until the memory is full."""
    if not model.functions:
        return
    bodies = {(f.domain, f.name, getattr(f, "overload", "")): f.node for f in model.functions}
    nodes = {key: list(all_nodes(body)) for key, body in bodies.items()}
    called = {key: [k for k in map(_key, inside) if k in bodies] for key, inside in nodes.items()}
    try:
        order = list(TopologicalSorter(called).static_order())
    except CycleError as error:
        circle = " -> ".join(name for _, name, _ in error.args[1][:8])
        raise fail(codes.BROKEN_MODEL, f"functions call one another in a circle: {circle}") from None
    counts: dict[_Key, int] = {}
    depths: dict[_Key, int] = {}
    for key in order:
        counts[key] = len(nodes[key]) + sum(counts[k] for k in called[key])
        depths[key] = 1 + max((depths[k] for k in called[key]), default=0)
    deepest = max(depths.values())
    if deepest > limits.nesting:
        raise limits.passed("nesting", "calls of functions nest", deepest)
    top = [_key(node) for node in all_nodes(model.graph.node)]
    total = len(top) + sum(counts.get(key, 0) for key in top)
    if total > limits.nodes:
        raise limits.passed("nodes", "with the bodies of its functions the model has", total)


def _key(node: NodeProto) -> _Key:
    return node.domain, node.op_type, getattr(node, "overload", "")


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes, and those of the graphs inside them."""
    waiting = [iter(nodes)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            continue
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                waiting.append(iter(attribute.g.node))
            elif attribute.type == AttributeProto.GRAPHS:
                waiting += [iter(graph.node) for graph in attribute.graphs]
