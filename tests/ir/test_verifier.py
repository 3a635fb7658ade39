"""The verifier: each broken invariant is found, as a bug of ours, at the node's place."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dmlc.diagnostics import DmlcError, Source, Span
from dmlc.ir import Attributes, Graph, OutputAttributes, TensorType, symbol
from dmlc.ir.dtype import f16, f32, u32
from dmlc.ir.history import AS_WRITTEN
from dmlc.ir.verifier import verify
from dmlc.ops.binary import ADD
from dmlc.ops.elementwise import EXP, NEG
from dmlc.ops.move import SQUEEZE, UNSQUEEZE, AxesAttributes, NewAxesAttributes
from dmlc.ops.reduce import REDUCE_SUM, ReduceAttributes
from dmlc.ops.select import TOP_K, TopKAttributes
from tests.rows import each_row

NONE = Attributes()
SPAN = Span(Source("a.dml", "y = neg(x)"), 1, 5, 1, 11)


def small() -> Graph:
    graph = Graph("m")
    x = graph.add_input("x", TensorType(f32, (4,)))
    y = graph.add(NEG, [x], NONE, spans=(SPAN,), history=AS_WRITTEN.then("some-rule"))
    z = graph.add(ADD, [x, y.result], NONE)
    graph.set_outputs([("z", z.result)])
    return graph


def test_a_good_graph_passes() -> None:
    graph = small()
    verify(graph)
    verify(graph.clone())
    verify(Graph("empty"))


def unlist(g: Graph) -> None:
    g.inputs[0].uses.pop(next(iter(g.inputs[0].uses)))


def overlist(g: Graph) -> None:
    first, last = g
    first.result.uses[last, 0] = None


def stray(g: Graph) -> None:
    other = small()
    _, last = g
    g.set_operand(last, 1, other.inputs[0])


def swap(g: Graph) -> None:
    first, last = g
    g.set_operand(first, 0, last.result)


def retype(g: Graph) -> None:
    next(iter(g)).result.type = TensorType(f16, (4,))


def resize(g: Graph) -> None:
    next(iter(g)).result.type = TensorType(f32, (5,))


def reattribute(g: Graph) -> None:
    next(iter(g)).attributes = ReduceAttributes(axes=(), keepdims=True)
    g.add(REDUCE_SUM, [g.inputs[0]], ReduceAttributes(axes=(), keepdims=True)).attributes = NONE


def unlink_last(g: Graph) -> None:
    g.output._previous = next(iter(g))


def recount(g: Graph) -> None:
    g._of_operation[NEG] += 1


def unlink(g: Graph) -> None:
    _, last = g
    last._previous = None


def rename(g: Graph) -> None:
    g.set_outputs([("a", g.inputs[0]), ("a", g.inputs[0])])


def unname(g: Graph) -> None:
    g.output.attributes = OutputAttributes(names=())


def renumber(g: Graph) -> None:
    g.inputs[0].index = 3


def disown(g: Graph) -> None:
    next(iter(g)).result.producer = None


def extra(g: Graph) -> None:
    node = next(iter(g))
    node.results = (*node.results, node.result)


@each_row(("damage", "message"), [
    (unlist, "operand 0 does not list this use"),
    (overlist, "use lists hold 5 uses, the nodes have 4 operands"),
    (stray, "operand 1 is used before it is made, or comes from another graph"),
    (swap, "operand 0 is used before it is made, or comes from another graph"),
    (retype, "result 0 has type f16[4], inference gives f32[4]"),
    (resize, "result 0 has type f32[5], inference gives f32[4]"),
    (reattribute, "the attributes are Attributes, not ReduceAttributes"),
    (unlink_last, "the links of the last node are broken"),
    (recount, "the graph counts its nodes by operation wrongly"),
    (unlink, "the node's links are broken"),
    (rename, "two outputs have one name"),
    (unname, "the graph has 0 output names and 1 outputs"),
    (renumber, "input x is not the graph's input number 0"),
    (disown, "result 0 does not know its node"),
    (extra, "it has 2 results, inference gives 1"),
])  # fmt: skip
def test_each_invariant(damage: Callable[[Graph], None], message: str) -> None:
    graph = small()
    damage(graph)
    with pytest.raises(DmlcError) as caught:
        verify(graph)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "I0901"
    assert caught.value.exit_code == 3
    assert diagnostic.message.startswith("broken graph: ")
    assert diagnostic.message.endswith(message)
    assert "model m" not in diagnostic.message  # never the whole graph


def test_the_message_names_the_node_its_rule_and_its_place() -> None:
    graph = small()
    retype(graph)
    with pytest.raises(DmlcError) as caught:
        verify(graph)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message.startswith("broken graph: node neg, made by some-rule: ")
    assert diagnostic.span is SPAN


@each_row("axes", [(1, 0), (0, 0), (-1,), (2,)])
def test_axes_are_canonical(axes: tuple[int, ...]) -> None:
    graph = Graph("m")
    x = graph.add_input("x", TensorType(f32, (2, 3)))
    node = graph.add(REDUCE_SUM, [x], ReduceAttributes(axes=(0, 1), keepdims=True))
    node.attributes = ReduceAttributes(axes=axes, keepdims=True)
    with pytest.raises(DmlcError, match="are not sorted, unique and in range"):
        verify(graph)


def test_axes_of_an_unsqueeze_count_in_the_result() -> None:
    graph = Graph("m")
    x = graph.add_input("x", TensorType(f32, (2,)))
    graph.add(UNSQUEEZE, [x], NewAxesAttributes(axes=(0, 2)))
    verify(graph)


def test_what_inference_refuses_is_reported() -> None:
    graph = Graph("m")
    x = graph.add_input("x", TensorType(f32, (1, 3)))
    graph.add(SQUEEZE, [x], AxesAttributes(axes=(0,)))
    x.type = TensorType(f32, (2, 3))
    with pytest.raises(DmlcError, match="inference refuses it: axis 0 has size 2"):
        verify(graph)


def test_a_condition_that_the_graph_lost_is_reported() -> None:
    graph = Graph("m")
    x = graph.add_input("x", TensorType(f32, (symbol("n"),)))
    graph.add(TOP_K, [x], TopKAttributes(k=3, axis=0, order="largest", dtype=u32))
    verify(graph)
    graph.conditions.clear()
    with pytest.raises(DmlcError, match="does not hold its condition 3 <= n"):
        verify(graph)


def test_sizes_that_are_proved_equal_may_be_spelled_differently() -> None:
    graph = Graph("m")
    graph.declare_dim("n", (4, 4))
    x = graph.add_input("x", TensorType(f32, (symbol("n"),)))
    node = graph.add(NEG, [x], NONE)
    node.result.type = TensorType(f32, (4,))
    verify(graph)
    graph.dims.bounds["n"] = (4, 5)
    with pytest.raises(DmlcError):
        verify(graph)


def test_verifying_is_linear() -> None:
    graph = Graph("m")
    value = graph.add_input("x", TensorType(f32, (4,)))
    for _ in range(30_000):
        value = graph.add(EXP, [value], NONE).result
    graph.set_outputs([("y", value)])
    start = time.process_time()
    verify(graph)
    # About 4 microseconds a node; the bound leaves room for a busy machine.
    assert time.process_time() - start < 1.5
