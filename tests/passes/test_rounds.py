"""Passes run until none of them changes anything, each again only after another one changed the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest
from layer_norm_spellings import plain
from onnx import parser
from pass_helpers import Building, check_numbers, context, names, remarks

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.constant import CONSTANT
from dmlc.ops.elementwise import ABS, EXP, NEG, SQRT
from dmlc.passes.cse import Cse
from dmlc.passes.fuse_layer_norm import FuseLayerNorm
from dmlc.passes.manager import MOST_ROUNDS, FixedPoint, Pass, PassContext, PassManager
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, rewrite, used_elsewhere
from tests.rows import each_row
from tools.canonical_form import canonical_form


def turn(old: Operation, new: Operation) -> type[Rule[Match]]:
    class Turn(Rule[Match]):
        """One operation becomes another."""

        name = f"{old.name}-is-{new.name}"
        roots = (old,)

        def match(self, node: Node, graph: Graph) -> Match | None:
            return Match(node)

        def check(self, match: Match, graph: Graph) -> Miss | None:
            return used_elsewhere(match.root.operand(0))

        def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
            return [rewriter.add(new, match.root.operands)]

    return Turn


class Turns(Pass, frozen=True):
    """A pass of one such rule."""

    old: Operation
    new: Operation

    name: ClassVar[str] = "turns"
    summary: ClassVar[str] = "For tests."

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, [turn(self.old, self.new)], context)


def simple() -> Graph:
    b = Building()
    return b.done(b(EXP, b.input("x", (3,))))


def test_a_pass_that_comes_first_sees_what_a_later_one_made() -> None:
    graph, ctx = simple(), context()
    assert FixedPoint((Turns(ABS, NEG), Turns(SQRT, ABS), Turns(EXP, SQRT))).run(graph, ctx)
    assert names(graph) == ["neg"]
    assert [entry.rule for entry in ctx.ledger] == ["exp-is-sqrt", "sqrt-is-abs", "abs-is-neg"]


def test_there_is_no_second_round_where_nothing_changed() -> None:
    graph, ctx = simple(), context()
    assert not FixedPoint((Turns(ABS, NEG), Turns(SQRT, ABS))).run(graph, ctx)
    assert len(ctx.timings) == 2


def test_a_pass_runs_again_only_after_another_one_changed_the_graph() -> None:
    graph, ctx = simple(), context()
    assert FixedPoint((Turns(ABS, NEG), Turns(EXP, SQRT))).run(graph, ctx)
    assert [changed for _, _, changed in ctx.timings] == [False, True, False]


def test_a_pass_after_the_rounds_runs_only_where_something_changed_since() -> None:
    graph, ctx = simple(), context()
    still, turning = Turns(ABS, NEG), Turns(EXP, SQRT)
    PassManager((FixedPoint((still,)), FixedPoint((turning, still)), still, turning)).run(graph, ctx)
    assert [changed for _, _, changed in ctx.timings] == [False, True, False]


def test_passes_that_undo_each_other_are_reported_when_asked_for() -> None:
    endless = FixedPoint((Turns(EXP, SQRT), Turns(SQRT, EXP)))
    with pytest.raises(DmlcError, match="do not come to an end"):
        endless.run(simple(), context())
    ctx = context()
    ctx.verify = False
    assert endless.run(simple(), ctx)
    assert len(ctx.ledger) <= 2 * MOST_ROUNDS


def test_a_remark_goes_where_its_rule_fires_in_a_later_round() -> None:
    """The operand is used twice at first."""
    b = Building()
    x = b.input("x", (3,))
    shared = b(NEG, x)
    graph = b.done(b(EXP, shared), b(SQRT, shared))

    class Frees(Pass, frozen=True):
        name: ClassVar[str] = "frees"
        summary: ClassVar[str] = "For tests."

        def run(self, graph: Graph, context: PassContext) -> bool:
            node = next((n for n in graph if n.op is SQRT), None)
            if node is None:
                return False
            graph.set_outputs(graph.outputs[:1])
            graph.erase(node)
            return True

    ctx = context()
    assert FixedPoint((Turns(EXP, ABS), Frees())).run(graph, ctx)
    assert names(graph) == ["neg", "abs"]
    assert remarks(ctx) == []


def test_a_remark_that_still_holds_is_there_once() -> None:
    b = Building()
    shared = b(NEG, b.input("x", (3,)))
    graph = b.done(b(EXP, shared), b(SQRT, shared), b(ABS, b.input("y", (3,))))
    ctx = context()
    FixedPoint((Turns(EXP, NEG), Turns(ABS, SQRT))).run(graph, ctx)
    assert len([r for r in ctx.remarks if r.rule == "exp-is-neg"]) == 1


#: Models that were smaller, or larger, when what was compiled was compiled again.
AGAIN = {
    "log-sum-exp": "g (float[N, 4] x) => (float[N] y) <int64[1] a = {1}> { y = ReduceLogSumExp <keepdims = 0> (x, a) }",
    "log-sum-exp and its axis": "g (float[N, 4] x) => (float[N, 1] y) <int64[1] a = {1}>"
    " { s = ReduceLogSumExp <keepdims = 0> (x, a) y = Unsqueeze (s, a) }",
    "negated truth": "g (int64[N] x) => (float[N] y) <float one = {1}, float two = {2}>"
    " { b = Cast <to = 9> (x) n = Not (b) y = Where (n, one, two) }",
    "product with itself": "g (float[N, N] x) => (float[N, N] y) { y = MatMul (x, x) }",
    "half of an odd size": "g (float[N] x, float[M] z) => (float[M] y) <int64[1] one = {1}, int64[1] two = {2}> {"
    " n = Shape (x) m = Sub (n, one) h = Div (m, two) k = Add (h, one) e = Expand (z, k) y = Neg (e) }",
    "mean beside sum": "g (float[N, 4] x) => (float[N] y, float[N] z) <int64[1] a = {1}> {"
    " s = ReduceSum <keepdims = 0> (x, a) y = Exp (s) z = ReduceMean <keepdims = 0> (x, a) }",
    "nothing": "g (float[0, 4] x) => (float[4] y) <int64[1] a = {0}>"
    " { s = ReduceMax <keepdims = 0> (x, a) t = Exp (s) y = Sqrt (t) }",
    "unused capture": "g (float[2, 4] x, bool c) => (float[2, 4] y) { v = Softplus (x) y = If (c) <"
    "then_branch = t () => (float[2, 4] o) { n = Shape (v) r = Reshape (x, n) o = Neg (r) },"
    " else_branch = e () => (float[2, 4] q) { q = Exp (x) }> }",
}  # fmt: skip


@each_row("target", ["onnx", "cpu", "directml"])
@each_row("name", AGAIN)
def test_compiling_the_output_again_changes_nothing(name: str, target: str) -> None:
    source = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {AGAIN[name]}')
    once = dmlc.compile(source, target=target).to_onnx()
    program = dmlc.compile(once, target=target)
    assert canonical_form(program.to_onnx()) == canonical_form(once), [entry.text for entry in program.ledger]


def test_normalizations_of_one_size_share_their_scale_of_ones() -> None:
    """So that nothing is left to merge, and no round follows for it."""
    b = Building()
    x = b.input("x", (2, 3, 8))
    graph = b.done(plain(b, plain(b, plain(b, x))))
    check_numbers(FuseLayerNorm(), graph, exact=False)
    assert names(graph) == ["layer_norm"] * 3
    assert sum(node.op is CONSTANT for node in graph) == 1
    assert not Cse().run(graph, context())
