"""The invariants of a graph, checked: what every pass may rely on and must leave true.

Linear; a few microseconds a node. A broken invariant is a bug of ours, so it is an I09 error (exit code 3) that
names the node and the source place it came from, never the whole graph.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any, NoReturn

from dmlc.diagnostics import DmlcError, Label, fail
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.ir.graph import Graph, Node, OutputAttributes, Value
from dmlc.ir.operation import Operation, OpError
from dmlc.ir.providers import missing_dim
from dmlc.ir.types import TensorType


def verify(graph: Graph) -> None:
    """Check order, links, use lists, types, attributes, inputs and outputs. Raises ``DmlcError`` I0901."""
    known: set[Value] = set()
    uses = 0
    for index, value in enumerate(graph.inputs):
        if value.producer is not None or value.index != index:
            _bug(f"input {value.name} is not the graph's input number {index}", None)
        known.add(value)
        uses += len(value.uses)
    counts: Counter[Operation] = Counter()
    operands = 0
    previous = graph.output
    for node in graph:
        if node.graph is not graph or node._previous is not previous:
            _bug("the node's links are broken", node)
        operands += _check_operands(node, known)
        _check_results(graph, node)
        for value in node.results:
            known.add(value)
            uses += len(value.uses)
        previous = node
        counts[node.op] += 1
    if graph.output._previous is not previous:
        _bug("the links of the last node are broken", None)
    if counts != +Counter(graph._of_operation):
        _bug("the graph counts its nodes by operation wrongly", None)
    operands += _check_operands(graph.output, known)
    _check_output(graph)
    _check_dims(graph)
    # Every operand was found in its value's use list; equal counts exclude uses that no node has.
    if uses != operands:
        _bug(f"use lists hold {uses} uses, the nodes have {operands} operands", None)


def _check_operands(node: Node, known: set[Value]) -> int:
    count = 0
    for number, value in enumerate(node.operands):
        if value is None:
            continue
        if value not in known:
            _bug(f"operand {number} is used before it is made, or comes from another graph", node)
        if (node, number) not in value.uses:
            _bug(f"operand {number} does not list this use", node)
        count += 1
    return count


def _check_results(graph: Graph, node: Node) -> None:
    attributes: Any = node.attributes
    if not isinstance(attributes, node.op.attributes):
        _bug(f"the attributes are {type(attributes).__name__}, not {node.op.attributes.__name__}", node)
    axes = getattr(attributes, "axes", None)
    if type(axes) is tuple and not _canonical_axes(node, axes):
        _bug(f"axes={list(axes)} are not sorted, unique and in range", node)
    try:
        types, conditions = graph.infer(node.op, node.operands, node.attributes)
    except OpError as error:
        _bug(f"inference refuses it: {error.message}", node)
    if len(types) != len(node.results):
        _bug(f"it has {len(node.results)} results, inference gives {len(types)}", node)
    for index, (value, type_) in enumerate(zip(node.results, types, strict=True)):
        if value.producer is not node or value.index != index:
            _bug(f"result {index} does not know its node", node)
        if value.type != type_ and not _same_type(graph, value.type, type_):
            _bug(f"result {index} has type {value.type}, inference gives {type_}", node)
    for condition in conditions:
        if condition not in graph.conditions:
            _bug(f"the graph does not hold its condition {condition}", node)


def _same_type(graph: Graph, a: TensorType, b: TensorType) -> bool:
    """Equal, or proved so where the sizes are spelled differently."""
    if a.dtype is not b.dtype or a.rank != b.rank:
        return False
    return all(graph.dims.equal(x, y) for x, y in zip(a.shape, b.shape, strict=True))


def _canonical_axes(node: Node, axes: tuple[int, ...]) -> bool:
    """Axes count in the first operand or, for operations that add axes, in the result."""
    rank = max((v.type.rank for v in (*node.operands[:1], *node.results) if v is not None), default=0)
    return not axes or (axes[0] >= 0 and axes[-1] < rank and all(a < b for a, b in pairwise(axes)))


def _check_dims(graph: Graph) -> None:
    """Check that imported graphs provide the sizes that nodes ask for. A program names its dims in its inputs."""
    provides = graph.origin is not None or graph.joined is not None or graph.dims.provided
    found = missing_dim(graph) if provides else None
    if found is not None:
        _bug(f"nothing provides the dim {found[1]} that it asks for", found[0])


def _check_output(graph: Graph) -> None:
    names = graph.output.attributes_as(OutputAttributes).names
    operands = graph.output.operands
    if len(names) != len(operands) or any(v is None for v in operands):
        _bug(f"the graph has {len(names)} output names and {len(operands)} outputs", None)
    if len(set(names)) != len(names):
        _bug("two outputs have one name", None)


def _bug(message: str, node: Node | None) -> NoReturn:
    if node is None:
        raise fail(INTERNAL, f"broken graph: {message}", exit_code=3)
    labels = [Label(span) for span in node.spans[:1]]
    rules = node.history.rules
    made = f", made by {', '.join(rules)}" if rules else ""
    error: DmlcError = fail(INTERNAL, f"broken graph: node {node.op.name}{made}: {message}", *labels, exit_code=3)
    raise error
