"""The graph: every mutation keeps order and use lists right; networkx is the oracle of order and reachability."""

from __future__ import annotations

import gc
from typing import Any

import networkx as nx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dmlc.diagnostics import Source, Span
from dmlc.ir import Attributes, Graph, Node, OpError, TensorType, Value, symbol
from dmlc.ir.dtype import f32, u32
from dmlc.ir.history import AS_WRITTEN
from dmlc.ir.verifier import verify
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.elementwise import EXP, NEG
from dmlc.ops.move import RESHAPE, ReshapeAttributes
from dmlc.ops.normalize import LAYER_NORM, NormAttributes
from dmlc.ops.reduce import REDUCE_SUM, ReduceAttributes
from dmlc.ops.select import TOP_K, TopKAttributes

TYPE = TensorType(f32, (4,))
NONE = Attributes()


def vector(graph: Graph, name: str = "x") -> Value:
    return graph.add_input(name, TYPE)


def to_networkx(graph: Graph) -> nx.DiGraph:
    """Inputs, nodes and the output node, with edges from producer to user.

    The ``operands`` of an edge are the pairs of result number and operand number that it stands for.
    """
    view = nx.DiGraph()
    view.add_nodes_from(graph.inputs)
    for node in (*graph, graph.output):
        view.add_node(node)
        for number, operand in enumerate(node.operands):
            if operand is not None:
                source = operand if operand.producer is None else operand.producer
                if not view.has_edge(source, node):
                    view.add_edge(source, node, operands=[])
                view.edges[source, node]["operands"].append((operand.index, number))
    return view


# --- operands by name


def test_operands_have_the_names_of_the_declaration() -> None:
    graph = Graph("g")
    a, b = vector(graph, "a"), vector(graph, "b")
    node = graph.add(ADD, [a, b], NONE)
    assert [node.operand(which) for which in ("a", "b", 0, 1)] == [a, b, a, b]
    with pytest.raises(KeyError):
        node.operand("x")


# --- any sequence of mutations


class Mutations(RuleBasedStateMachine):
    """Random edits; after each the graph is verified and compared with its networkx view."""

    graph: Graph

    @initialize()
    def start(self) -> None:
        self.graph = Graph("m")
        vector(self.graph, "x")
        vector(self.graph, "y")

    def values(self, before: Node | None = None) -> list[Value]:
        out = list(self.graph.inputs)
        for node in self.graph:
            if node is before:
                break
            out += node.results
        return out

    @rule(data=st.data(), inside=st.booleans())
    def add(self, data: Any, inside: bool) -> None:
        nodes = list(self.graph)
        before = data.draw(st.sampled_from(nodes)) if inside and nodes else None
        vectors = [v for v in self.values(before) if v.type == TYPE]  # not the indices of a top_k
        operands = data.draw(st.lists(st.sampled_from(vectors), min_size=2, max_size=2))
        self.graph.add(data.draw(st.sampled_from([ADD, MUL])), operands, NONE, before=before)

    @rule(data=st.data())
    def add_one_with_two_results(self, data: Any) -> None:
        x = data.draw(st.sampled_from(self.values()))
        self.graph.add(TOP_K, [x], TopKAttributes(k=4, axis=0, order="largest", dtype=u32))

    @rule(data=st.data())
    def set_operand(self, data: Any) -> None:
        nodes = [n for n in self.graph if n.op is not TOP_K]
        if nodes:
            node = data.draw(st.sampled_from(nodes))
            choices = [v for v in self.values(node) if v.type == TYPE]
            self.graph.set_operand(node, data.draw(st.integers(0, 1)), data.draw(st.sampled_from(choices)))

    @rule(data=st.data())
    def replace_all_uses(self, data: Any) -> None:
        new = data.draw(st.sampled_from([v for v in self.values() if v.type == TYPE]))
        later = [v for v in self.values() if v.type == TYPE]
        later = later[later.index(new) :]
        self.graph.replace_all_uses(data.draw(st.sampled_from(later)), new)

    @rule(data=st.data())
    def set_outputs(self, data: Any) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.values()), max_size=3))
        self.graph.set_outputs([(f"o{i}", v) for i, v in enumerate(chosen)])

    @rule(data=st.data())
    def erase_dead(self, data: Any) -> None:
        nodes = list(self.graph)
        if nodes:
            seeds = data.draw(st.lists(st.sampled_from(nodes), max_size=3))
            count = len(self.graph)
            gone = self.graph.erase_dead(seeds)
            assert len(self.graph) == count - len(gone)
            assert all(n.graph is None or any(r.uses for r in n.results) for n in seeds)

    @rule()
    def sweep(self) -> None:
        view = to_networkx(self.graph)
        wanted = nx.ancestors(view, self.graph.output) | {self.graph.output}
        self.graph.erase_dead(list(self.graph))
        assert set(self.graph) == {n for n in wanted if isinstance(n, Node)} - {self.graph.output}

    @rule()
    def clone(self) -> None:
        twin = self.graph.clone()
        verify(twin)
        assert [n.op for n in twin] == [n.op for n in self.graph]
        assert not set(twin) & set(self.graph)
        self.graph = twin

    @invariant()
    def is_whole(self) -> None:
        if not hasattr(self, "graph"):
            return
        verify(self.graph)
        nodes = list(self.graph)
        assert len(nodes) == len(self.graph)
        assert nodes[::-1] == list(reversed(self.graph))
        view = to_networkx(self.graph)
        assert nx.is_directed_acyclic_graph(view)
        place = {node: i for i, node in enumerate(nodes)}
        place[self.graph.output] = len(nodes)
        for a, b, data in view.edges(data=True):
            assert not isinstance(a, Node) or place[a] < place[b]
            for result, operand in data["operands"]:
                assert b.operands[operand] is (a.results[result] if isinstance(a, Node) else a)
        for value in self.values():
            users = {n for n in (*nodes, self.graph.output) if value in n.operands}
            assert set(value.users) == users
            assert value.is_used_once is (sum(n.operands.count(value) for n in users) == 1)


TestMutations = Mutations.TestCase
TestMutations.settings = settings(max_examples=40, stateful_step_count=25)


# --- one by one


def test_a_wrong_call_leaves_the_graph_unchanged() -> None:
    graph = Graph("m")
    x = vector(graph)
    with pytest.raises(OpError):
        graph.add(RESHAPE, [x], ReshapeAttributes(shape=(5,)))
    assert len(graph) == 0
    assert not x.uses
    assert not graph.conditions


def test_a_value_used_twice_by_one_node_has_two_uses() -> None:
    graph = Graph("m")
    x = vector(graph)
    node = graph.add(ADD, [x, x], NONE)
    assert list(x.uses) == [(node, 0), (node, 1)]
    assert x.users == [node]
    assert not x.is_used_once


def test_outputs_count_as_uses_and_may_repeat() -> None:
    graph = Graph("m")
    x = vector(graph)
    node = graph.add(NEG, [x], NONE)
    graph.add_output("a", node.result)
    graph.add_output("b", node.result)
    graph.add_output("c", x)
    assert [n for n, _ in graph.outputs] == ["a", "b", "c"]
    assert len(node.result.uses) == 2
    graph.replace_all_uses(node.result, x)
    assert [v for _, v in graph.outputs] == [x, x, x]
    verify(graph)
    graph.set_outputs([("z", x)])
    assert list(x.uses) == [(node, 0), (graph.output, 0)]


def test_absent_operands() -> None:
    graph = Graph("m")
    x, scale = vector(graph), vector(graph, "scale")
    node = graph.add(LAYER_NORM, [x, scale, None], NormAttributes(axis=0, epsilon=1e-5))
    graph.set_operand(node, 2, scale)
    assert len(scale.uses) == 2
    graph.set_operand(node, 2, None)
    graph.set_outputs([("y", node.result)])
    verify(graph)
    assert graph.clone().outputs[0][1].producer is not None


def test_names_move_to_the_replacement_that_has_none() -> None:
    graph = Graph("m")
    x = vector(graph)
    one, other = graph.add(NEG, [x], NONE).result, graph.add(EXP, [x], NONE).result
    one.name = "mine"
    graph.replace_all_uses(one, other)
    assert other.name == "mine"
    third = graph.add(NEG, [x], NONE).result
    third.name = "third"
    graph.replace_all_uses(third, other)
    assert other.name == "mine"
    graph.replace_all_uses(other, x)
    assert x.name == "x"  # an input keeps the name of the interface


def test_the_graph_may_change_while_it_is_walked() -> None:
    graph = Graph("m")
    value = vector(graph)
    for _ in range(4):
        value = graph.add(NEG, [value], NONE).result
    graph.set_outputs([("y", value)])
    seen = []
    for node in graph:
        seen.append(node)
        if len(seen) == 2:
            new = graph.add(EXP, [node.operand(0)], NONE, before=node)
            graph.replace_all_uses(node.result, new.result)
            graph.erase(node)
        if len(seen) == 4:
            graph.add(EXP, [value], NONE)
    assert [n.op for n in seen] == [NEG, NEG, NEG, NEG, EXP]
    verify(graph)


def test_erasing_a_used_node_is_refused() -> None:
    graph = Graph("m")
    node = graph.add(NEG, [vector(graph)], NONE)
    graph.set_outputs([("y", node.result)])
    with pytest.raises(AssertionError):
        graph.erase(node)


def test_erase_dead_takes_a_deep_chain_without_recursion() -> None:
    graph = Graph("m")
    value = vector(graph)
    for _ in range(20_000):
        value = graph.add(NEG, [value], NONE).result
    assert value.producer is not None
    assert len(graph.erase_dead([value.producer])) == 20_000
    assert len(graph) == 0
    assert list(graph) == []


def test_reinfer_tells_what_is_new() -> None:
    graph = Graph("m")
    x = graph.add_input("x", TensorType(f32, (symbol("n"), 2)))
    node = graph.add(REDUCE_SUM, [x], ReduceAttributes(axes=(1,), keepdims=True))
    assert not graph.reinfer(node)
    x.type = TensorType(f32, (3, 2))
    assert graph.reinfer(node)
    assert str(node.result.type) == "f32[3, 1]"


# --- copies


def sized() -> Graph:
    graph = Graph("m", opset=17)
    graph.declare_dim("n", (1, 8))
    graph.metadata["author"] = "me"
    span = Span(Source("a.dml", "text"), 1, 1, 1, 5)
    x = graph.add_input("x", TensorType(f32, (symbol("n"), symbol("m"))), span)
    values = graph.add(TOP_K, [x], TopKAttributes(k=3, axis=0, order="largest", dtype=u32), spans=(span,))
    values.results[0].name = "best"
    flat = graph.add(
        RESHAPE, [values.results[0]], ReshapeAttributes(shape=(symbol("m") * 3,)), history=AS_WRITTEN.then("r")
    )
    graph.set_outputs([("flat", flat.result), ("x2", x)])
    return graph


def test_a_clone_is_equal_and_apart() -> None:
    graph = sized()
    twin = graph.clone()
    verify(twin)
    assert (twin.name, twin.opset, twin.metadata, twin.dims.bounds) == ("m", 17, {"author": "me"}, {"n": (1, 8)})
    assert twin.conditions == graph.conditions
    assert [(n.op, n.attributes, n.spans, n.history) for n in twin] == [
        (n.op, n.attributes, n.spans, n.history) for n in graph
    ]
    assert [r.name for n in twin for r in n.results] == ["best", None, None]
    assert twin.inputs[0].span is graph.inputs[0].span
    twin.erase_dead(list(twin))
    twin.set_outputs([])
    verify(graph)
    assert len(graph) == 2


def test_binding_dims_makes_sizes_numbers_and_settles_conditions() -> None:
    graph = sized()
    assert [str(c) for c in graph.conditions] == ["3 <= n"]
    twin = graph.clone({"n": 4, "m": 5})
    verify(twin)
    assert [str(v.type) for _, v in twin.outputs] == ["f32[15]", "f32[4, 5]"]
    assert not twin.conditions
    assert "n" not in twin.dims.bounds
    partly = graph.clone({"m": 5})
    assert [str(v.type) for _, v in partly.outputs] == ["f32[15]", "f32[n, 5]"]
    assert [str(c) for c in partly.conditions] == ["3 <= n"]


def test_binding_a_size_that_breaks_a_rule_is_an_error() -> None:
    with pytest.raises(OpError) as caught:
        sized().clone({"n": 2})
    assert caught.value.code.id == "E0316"


# --- memory


def test_an_erased_node_is_freed_at_once() -> None:
    """A compilation pauses the garbage collector, and nodes refer to their results and these to them."""
    graph = Graph("m")
    x = vector(graph)

    def nodes() -> int:
        return sum(isinstance(each, Node) for each in gc.get_objects())

    gc.disable()
    try:
        before = nodes()
        graph.erase(graph.add(NEG, [x], NONE))
        assert nodes() == before
    finally:
        gc.enable()
