"""Graphs inside nodes: the one set of walks over the nested graphs of ONNX models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto
from onnx.defs import SchemaError, get_schema

#: The types of attributes that are a graph or a list of graphs.
KINDS_OF_GRAPHS = frozenset((AttributeProto.GRAPH, AttributeProto.GRAPHS))
_HOLDERS = frozenset(("If", "Loop", "Scan", "SequenceMap"))
_PLAIN = frozenset(("", "ai.onnx"))


def may_hold_graphs(domain: str, op_type: str) -> bool:
    """Return whether nodes of the operator may have graphs inside: of ONNX's own operators only four do."""
    return op_type in _HOLDERS or domain not in _PLAIN


def holds_graphs(attribute: AttributeProto) -> bool:
    """Return whether the attribute is a graph or a list of graphs."""
    return attribute.type in KINDS_OF_GRAPHS


def graphs_in(attribute: AttributeProto) -> Sequence[GraphProto]:
    """Return the graph, or the graphs, of an attribute; none if it holds something else."""
    if attribute.type == AttributeProto.GRAPH:
        return (attribute.g,)
    return attribute.graphs if attribute.type == AttributeProto.GRAPHS else ()


def graphs_of(node: NodeProto) -> list[GraphProto]:
    """Return the graphs inside a node, in the order of its attributes. Operators that hold none are not searched."""
    if not may_hold_graphs(node.domain, node.op_type):
        return []
    return [graph for attribute in node.attribute for graph in graphs_in(attribute)]


def inner_graphs(nodes: Iterable[NodeProto]) -> list[GraphProto]:
    """Return the graphs inside nodes, without those nested in them."""
    holders = [node for node in nodes if node.op_type in _HOLDERS or node.domain not in _PLAIN]
    return [graph for node in holders for graph in graphs_of(node)]


def all_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield the graph, and the graphs nested in it at any depth."""
    waiting = [graph]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += reversed(inner_graphs(found.node))


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield the nodes, each followed by the nodes of the graphs nested in it."""
    waiting = [iter(nodes)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            continue
        yield node
        waiting += [iter(graph.node) for graph in reversed(graphs_of(node))]


def values_read_by(node: NodeProto) -> Iterator[str]:
    """Yield the name of a value for each time that a node, or a graph inside it, reads it."""
    yield from filter(None, node.input)
    for graph in graphs_of(node):
        for inner in graph.node:
            yield from values_read_by(inner)
        yield from (info.name for info in graph.output)


# --- Operators that ONNX defines by others, for runtimes without a kernel


def runs_by_body(op_type: str, opset: int, has_kernel: Callable[[str], bool]) -> bool:
    """Return whether ONNX Runtime can replace an operator by ONNX's definition of it, in a model of that opset.

    The operators of the definition must be unchanged between the opset it was written for and the model's (seen with
    1.31: ``Elu`` of f64 runs at opset 18 alone). Operators without a kernel must be replaceable too. A definition that
    depends on types (``GroupNormalization``) is assumed to hold everywhere.
    """
    body = _body(op_type, opset)
    return (
        _is_defined(op_type, opset)
        and body is not None
        and all(
            _body(inner, opset) == () or has_kernel(inner) or runs_by_body(inner, opset, has_kernel) for inner in body
        )
    )


def _is_defined(op_type: str, opset: int) -> bool:
    try:
        schema = get_schema(op_type, opset, "")
    except SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


@lru_cache(maxsize=4096)
def _body(op_type: str, opset: int) -> tuple[str, ...] | None:
    """The operators of the definition; none where there is no definition to look into, None where it does not hold."""
    try:
        schema = get_schema(op_type, opset, "")
    except SchemaError:
        return None
    if not schema.has_function:
        return ()
    written = max((v for v in schema.function_opset_versions if v <= opset), default=None)
    if written is None:
        return None
    body = FunctionProto()
    body.ParseFromString(schema.get_function_with_opset_version(written))
    kinds = tuple([node.op_type for node in body.node])
    return kinds if all(_version(kind, written) == _version(kind, opset) for kind in kinds) else None


def _version(op_type: str, opset: int) -> int:
    version: int = get_schema(op_type, opset, "").since_version
    return version
