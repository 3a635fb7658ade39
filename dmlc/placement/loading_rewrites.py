"""Rewrites of ONNX Runtime's own optimizer that decide where nodes run, and in how many dispatches: they are made while
a session is created."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from typing import TypeAlias

from msgspec import Struct
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from dmlc.inference.fact import NOTHING, Fact
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.nested import graphs_of
from dmlc.placement.node_counts import is_constant
from dmlc.targets.capabilities import Capabilities
from dmlc.targets.provider import RuntimeRewrite

#: An operator with its operands, a number, or the name of a value.
_Tree: TypeAlias = "tuple[str, tuple[_Tree, ...]] | float | str"
_COMMUTATIVE = frozenset(("Add", "Mul"))
#: The digits to which ONNX Runtime compares a constant (optimizer/utils.cc), relative.
_TOLERANCE = 1e-5
_TOLERANCES = {TensorProto.FLOAT: _TOLERANCE, TensorProto.DOUBLE: _TOLERANCE, TensorProto.FLOAT16: 2e-3}


class FloatScalar(Struct, frozen=True):
    """A constant of one element, and the relative tolerance to which ONNX Runtime compares it."""

    number: float
    tolerance: float


class RewriteSite(Struct, frozen=True):
    """Nodes that ONNX Runtime replaces by one, ``made``. ``root`` is the index of the last of them."""

    rewrite: RuntimeRewrite
    root: int
    made: NodeProto


def float_scalars(graph: GraphProto) -> Iterator[tuple[str, FloatScalar]]:
    """Yield (name, number) of each constant of one floating element: initializers and Constant nodes."""
    for tensor in graph.initializer:
        yield from _scalar(tensor.name, tensor)
    for node in graph.node:
        if is_constant(node):
            for attribute in node.attribute:
                if attribute.name == "value_float":
                    yield node.output[0], FloatScalar(attribute.f, _TOLERANCE)
                elif attribute.name == "value":
                    yield from _scalar(node.output[0], attribute.t)


def _scalar(name: str, tensor: TensorProto) -> Iterator[tuple[str, FloatScalar]]:
    if tensor.data_type not in _TOLERANCES or tensor.data_location == TensorProto.EXTERNAL or set(tensor.dims) - {1}:
        return
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError):  # a tensor without its data
        return
    if array.size == 1:
        yield name, FloatScalar(float(array.reshape(-1)[0]), _TOLERANCES[tensor.data_type])


def rewrite_sites(
    graph: GraphProto,
    facts: Mapping[str, Fact],
    constant: Set[str],
    scalars: Mapping[str, FloatScalar],
    capabilities: Capabilities,
) -> Mapping[int, RewriteSite]:
    """The sites of a graph by the index of each node that belongs to one. Graphs inside nodes are not looked at.

    ``constant`` are the values that are known before the model runs, ``scalars`` the numbers of some of them.
    """
    there = {node.op_type for node in graph.node}
    opset, known = capabilities.opset, capabilities.provider.rewrites
    rewrites = [r for r in known if r.patterns and r.opsets[0] <= opset <= r.opsets[1]]
    wanted = [(r, t) for r in rewrites for t in map(_parsed, r.patterns) if set(_operators(t)) <= there]
    sites: dict[int, RewriteSite] = {}
    if not wanted:
        return sites
    search = _PatternSearch(graph, constant, scalars)
    for index, node in enumerate(graph.node):
        for rewrite, tree in wanted:
            found = search.match(tree, index) if index not in sites else None
            if found is None or not sites.keys().isdisjoint(found.nodes):
                continue
            nodes = [graph.node[i] for i in found.nodes]
            if not rewrite.when or CONDITIONS[rewrite.when](nodes, [facts.get(n, NOTHING) for n in found.inputs]):
                made = NodeProto(op_type=rewrite.makes, domain=rewrite.domain, input=found.inputs, output=node.output)
                sites.update(dict.fromkeys(found.nodes, RewriteSite(rewrite, index, made)))
    return sites


@cache
def _parsed(pattern: str) -> _Tree:
    return _tree(ast.parse(pattern, mode="eval").body)


def _tree(node: ast.expr) -> _Tree:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id, tuple([_tree(each) for each in node.args])
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    assert isinstance(node, ast.Name), "a pattern is made of operators, numbers and names"
    return node.id


def _operators(tree: _Tree) -> Iterator[str]:
    if isinstance(tree, tuple):
        yield tree[0]
        for each in tree[1]:
            yield from _operators(each)


class PatternMatch(Struct, frozen=True):
    """The nodes that a pattern covers, and the values that its names stand for, in the order of the names."""

    nodes: frozenset[int]
    inputs: tuple[str, ...]


class _Bound(Struct, frozen=True):
    values: tuple[tuple[str, str], ...] = ()
    nodes: frozenset[int] = frozenset()


class _PatternSearch:
    """Matches patterns in one graph. All values between the nodes of a match are used once, and are not outputs."""

    def __init__(self, graph: GraphProto, constant: Set[str], scalars: Mapping[str, FloatScalar]) -> None:
        self.graph, self.constant, self.scalars = graph, constant, scalars
        self.made_by = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
        self.uses = Counter(_used(graph))

    def match(self, tree: _Tree, index: int) -> PatternMatch | None:
        """The pattern that ends in the node of that index."""
        found = next(self._node(tree, index, _Bound()), None)
        if found is None or all(name in self.constant for _, name in found.values):
            return None  # it is computed before
        return PatternMatch(found.nodes, tuple([name for _, name in sorted(found.values)]))

    def _node(self, tree: _Tree, index: int, bound: _Bound) -> Iterator[_Bound]:
        node = self.graph.node[index]
        if not isinstance(tree, tuple) or node.op_type != tree[0] or plain_domain(node.domain):
            return
        op, parts = tree
        if len(node.input) != len(parts):
            return
        bound = _Bound(bound.values, bound.nodes | {index})
        yield from self._operands(parts, node.input, bound)
        if op in _COMMUTATIVE:
            yield from self._operands(parts, node.input[::-1], bound)

    def _operands(self, parts: Sequence[_Tree], names: Sequence[str], bound: _Bound) -> Iterator[_Bound]:
        if not parts:
            yield bound
            return
        for found in self._value(parts[0], names[0], bound):
            yield from self._operands(parts[1:], names[1:], found)

    def _value(self, tree: _Tree, name: str, bound: _Bound) -> Iterator[_Bound]:
        if isinstance(tree, float):
            if self._is_number(name, tree):
                yield bound
        elif isinstance(tree, str):
            known = dict(bound.values).get(tree)
            if known is None:
                yield _Bound((*bound.values, (tree, name)), bound.nodes)
            elif known == name:
                yield bound
        elif name in self.made_by and self.uses[name] == 1:
            yield from self._node(tree, self.made_by[name], bound)

    def _is_number(self, name: str, number: float) -> bool:
        found = self.scalars.get(name) if name in self.constant else None
        return found is not None and abs(found.number - number) <= found.tolerance * abs(number)


def _used(graph: GraphProto) -> Iterator[str]:
    """The name of a value for each use, outputs and uses in graphs inside nodes counted."""
    for node in graph.node:
        yield from node.input
        for inner in graphs_of(node):
            yield from _used(inner)
    for output in graph.output:
        yield output.name


def _is_gemm(nodes: Sequence[NodeProto], facts: Sequence[Fact]) -> bool:
    """True for a product with a matrix and a bias that a Gemm broadcasts; more axes must have known sizes."""
    a, b, c = [fact.shape for fact in facts]
    if any(fact.element not in _FUSED_TYPES for fact in facts) or a is None or b is None or c is None or len(b) != 2:
        return False
    if len(a) != 2:
        return all(isinstance(size, int) for size in (*a, *b)) and c == b[1:]
    return c == b[1:] or (len(c) == 2 and c in ((1, b[1]), (a[0], 1), (a[0], b[1])))


_FUSED_TYPES = frozenset((TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16))


def _are_transposed_matrices(nodes: Sequence[NodeProto], facts: Sequence[Fact]) -> bool:
    """True where each Transpose changes places of the last two axes, of f32 or f16, before no vector."""
    perms = [a.ints[:] for node in nodes if node.op_type == "Transpose" for a in node.attribute if a.name == "perm"]
    turned = all(len(p) > 1 and p == [*range(len(p) - 2), len(p) - 1, len(p) - 2] for p in perms)
    fits = all(fact.element in _FUSED_TYPES and (fact.rank or 0) > 1 for fact in facts)
    return turned and fits and len(perms) == len(nodes) - 1


def _is_skip_norm(nodes: Sequence[NodeProto], facts: Sequence[Fact]) -> bool:
    """True where two operands of the same known sizes, of three axes, are added and normalized over the last."""
    a, b = (fact.shape for fact in facts[:2])
    axes = [
        attribute.i
        for node in nodes
        if node.op_type != "Add"
        for attribute in node.attribute
        if attribute.name == "axis"
    ]
    return a is not None and a == b and len(a) == 3 and all(axis in (-1, 2) for axis in axes)


_Condition: TypeAlias = Callable[[Sequence[NodeProto], Sequence[Fact]], bool]
#: By the name that a row has: it gets the nodes of a match, and the facts about the values that its names stand for.
CONDITIONS: Mapping[str, _Condition] = {
    "gemm": _is_gemm,
    "skip-norm": _is_skip_norm,
    "transposed-matrices": _are_transposed_matrices,
}
