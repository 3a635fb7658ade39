"""dce: what no output needs goes, and nothing else."""

from __future__ import annotations

from pass_helpers import Building, check_numbers, context, names, run

from dmlc.ir import Attributes, Operand, Operation
from dmlc.ir.dtype import f32
from dmlc.ops.binary import ADD
from dmlc.ops.elementwise import EXP, NEG
from dmlc.ops.rules import same_type
from dmlc.ops.select import TOP_K
from dmlc.passes.dce import Dce

PASS = Dce()


def test_a_dead_chain_goes_in_one_walk() -> None:
    b = Building()
    x = b.input("x", (3,))
    kept = b(EXP, x)
    dead = kept
    for _ in range(5):
        dead = b(NEG, dead)
    graph = b.done(kept)
    ctx = check_numbers(PASS, graph, context(allowed=("exact",)))
    assert names(graph) == ["exp"]
    assert [e.text for e in ctx.ledger] == ["5 unused nodes removed"]


def test_a_node_of_which_one_result_is_used_stays() -> None:
    b = Building()
    _, indices = b.node(TOP_K, b.input("x", (3,)), k=1)
    graph = b.done(indices)
    run(PASS, graph)
    assert names(graph) == ["top_k"]


def test_unused_inputs_stay() -> None:
    b = Building()
    x = b.input("x", (3,))
    b.input("unused", (3,))
    b(NEG, x)
    graph = b.done(x)
    ctx = run(PASS, graph)
    assert [v.name for v in graph.inputs] == ["x", "unused"]
    assert [e.text for e in ctx.ledger] == ["1 unused node removed"]


def test_what_has_effects_stays_with_what_it_needs() -> None:
    op = Operation(name="print", operands=(Operand("x", (f32,)),), infer=same_type, summary="", pure=False)
    b = Building()
    x = b.input("x", (3,))
    b.graph.add(op, [b(NEG, x)], Attributes())
    graph = b.done(x)
    run(PASS, graph)
    assert names(graph) == ["neg", "print"]


def test_conditions_stay_as_promises_about_the_sizes() -> None:
    b = Building()
    x = b.input("x", ("n",))
    b.node(TOP_K, x, k=3)
    graph = b.done(x)
    run(PASS, graph)
    assert [str(c) for c in graph.conditions] == ["3 <= n"]


def test_nothing_to_do_is_no_change() -> None:
    b = Building()
    x = b.input("x", (3,))
    graph = b.done(b(ADD, x, x))
    ctx = context()
    assert not PASS.run(graph, ctx)
    assert ctx.ledger == []
