"""Count the nodes of an ONNX model: the one definition behind every count that a command prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from onnx import FunctionProto, ModelProto, NodeProto

from dmlc.onnx_schema.domains import operator_of, plain_domain
from dmlc.onnx_schema.nested import graphs_of


def node_counts(model: ModelProto) -> Counter[str]:
    """Return the number of nodes by operator, the most frequent first.

    Nodes of nested graphs count too, once. A call of a function counts as the nodes of its body. ``Constant`` does not
    count. Operators of other domains than ONNX's carry theirs: ``com.microsoft.Gelu``.
    """
    found = _Counter(model.functions).of(model.graph.node)
    return Counter(dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))))


def is_constant(node: NodeProto) -> bool:
    """Return true for ONNX's ``Constant``."""
    return node.op_type == "Constant" and not plain_domain(node.domain)


class _Counter:
    """Counts nodes; the body of each function once."""

    def __init__(self, functions: Iterable[FunctionProto]) -> None:
        self._functions = {(f.domain, f.name, f.overload): f for f in functions}
        self._bodies: dict[tuple[str, str, str], Counter[str]] = {}

    def of(self, nodes: Iterable[NodeProto]) -> Counter[str]:
        found: Counter[str] = Counter()
        for node in nodes:
            for graph in graphs_of(node):
                found.update(self.of(graph.node))
            key = (node.domain, node.op_type, node.overload)
            if key in self._functions:
                found.update(self._body(key))
            elif not is_constant(node):
                found[operator_of(node)] += 1
        return found

    def _body(self, key: tuple[str, str, str]) -> Counter[str]:
        if key not in self._bodies:
            self._bodies[key] = Counter()  # a function that calls itself is not a model; it must not hang this
            self._bodies[key] = self.of(self._functions[key].node)
        return self._bodies[key]
