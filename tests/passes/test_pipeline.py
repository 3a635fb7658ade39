"""The default pipeline: its order, what it leaves, and that random programs keep their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pass_helpers import ALL, Building, assert_equal, context, evaluate, names, random_feeds

from dmlc.diagnostics import Source
from dmlc.ir import Graph, Node, Value
from dmlc.ir.dtype import bool_, f32, i32, u8
from dmlc.ir.printer import print_graph
from dmlc.ops.binary import ADD, GREATER, MAX, MIN, MUL, SUB
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.elementwise import ABS, EXP, NEG, RELU, TANH
from dmlc.ops.move import CONCAT, RESHAPE, SLICE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.reduce import REDUCE_L1, REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN, REDUCE_SUM, REDUCE_SUM_SQUARE
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K
from dmlc.passes.fold_constants import FoldConstants
from dmlc.passes.manager import PassManager
from dmlc.passes.options import Options
from dmlc.passes.pipeline import default_pipeline
from dmlc.targets import load_target, target_names
from dmlc.text import load
from tests.rows import each_row


def optimizing(target: str, **options: bool) -> PassManager:
    """The default pipeline without ``legalize``, whose tests stand beside the code generator."""
    steps = default_pipeline(load_target(target), Options(**options)).passes
    return PassManager(tuple(step for step in steps if step.name != "legalize"))


def flattened(manager: PassManager) -> list[str]:
    """The names of the passes, those of the managers inside it included."""
    return [
        name for step in manager.passes for name in (flattened(step) if isinstance(step, PassManager) else [step.name])
    ]


@each_row("target", target_names())
def test_the_order_of_the_passes(target: str) -> None:
    order = flattened(default_pipeline(load_target(target), Options()))
    assert order[0] == "infer-shapes"
    stop = ["split-from-slices", "keep-transposes", "stop-repetition"] if target != "numpy" else []
    assert order[-4 - len(stop) :] == ["cse", "dce", *stop, "f16-advice", "quantized-advice"]
    assert order.index("fold-constants") < order.index("canonicalize-reduce")
    assert order.count("lower-hardmax") == (target != "numpy")
    assert ("legalize" in order) is (target != "numpy")
    if "legalize" in order:
        assert order.index("canonicalize-reduce") < order.index("lower-hardmax") < order.index("legalize")
        # Folding after it could join two casts that stand where one has no kernel.
        assert "fold-constants" not in order[order.index("legalize") :]


@pytest.mark.parametrize(("target", "rank"), [("directml", 2), ("cpu", 9), ("numpy", 9)])
def test_only_directml_limits_the_rank(target: str, rank: int) -> None:
    b = Building()
    graph = b.done(b(REDUCE_MAX, b.input("x", (2,) * 9), axes=[0, 1, 2]))
    optimizing(target).run(graph, context(target))
    assert next(n for n in graph if n.op is REDUCE_MAX).operand(0).type.rank == rank


@pytest.mark.parametrize("lower", [False, True])
def test_hardmax_over_one_axis_is_an_option(lower: bool) -> None:
    b = Building()
    graph = b.done(b(HARDMAX, b.input("x", (2, 3)), axes=[1]))
    optimizing("directml", lower_hardmax=lower).run(graph, context(lower_hardmax=lower))
    assert names(graph) == (["argmax", "one_hot"] if lower else ["hardmax"])


def test_a_program_as_people_write_it() -> None:
    b = Building(n=(1, 64))
    x = b.input("x", ("n", 8, 16))
    scaled = b(MUL, x, b(ADD, b.constant(0.25), b.constant(0.75)))  # times 1, once folded
    total = b(SQUEEZE, b(REDUCE_SUM, b(REDUCE_SUM, scaled, axes=[2]), axes=[1]), axes=[1, 2])
    again = b(SQUEEZE, b(REDUCE_SUM, b(REDUCE_SUM, scaled, axes=[2]), axes=[1]), axes=[1, 2])
    hot = b(HARDMAX, x, axes=[1, 2])
    b(EXP, hot)  # unused
    graph = b.done(b(SUB, total, again), hot)
    ctx = context()
    feeds = random_feeds(graph, {"n": 3})
    before = evaluate(graph, feeds)
    optimizing("directml").run(graph, ctx)
    assert names(graph) == ["reduce_sum", "argmax", "one_hot", "reshape", "sub"]
    assert_equal(before, evaluate(graph, feeds), exact=False)
    assert ctx.properties >= {"inferred-types", "canonical-reduce", "lowered-hardmax"}


def test_exact_keeps_every_bit() -> None:
    b = Building()
    x = b.input("x", (4, 5, 6))
    graph = b.done(b(REDUCE_SUM, b(REDUCE_SUM, x, axes=[2]), axes=[1]), b(EXP, b.constant([0.1, 0.7])))
    feeds = random_feeds(graph)
    before = evaluate(graph, feeds)
    optimizing("directml").run(graph, context(allowed=("exact",)))
    assert_equal(before, evaluate(graph, feeds))
    assert names(graph) == ["reduce_sum", "reduce_sum", "exp"]


# --- random programs

UNARY = st.sampled_from([ABS, NEG, RELU, TANH])
BINARY = st.sampled_from([ADD, SUB, MUL, MIN, MAX])
REDUCE = st.sampled_from([REDUCE_SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_MEAN, REDUCE_L1, REDUCE_SUM_SQUARE])
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.5])


class Random:
    """Draws one call at a time over the values so far."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.b = Building(n=(1, 4), one=(1, 1))
        shape = draw(st.lists(st.sampled_from(["n", "one", 1, 2, 3]), min_size=1, max_size=3))
        self.values = [self.b.input("x", shape), self.b.input("k", [2, 3], i32)]

    def pick(self, *, rank: int = 0) -> Value:
        fitting = [v for v in self.values if v.type.rank >= rank and v.type.dtype is not bool_]
        return self.draw(st.sampled_from(fitting))

    def step(self) -> None:
        kind = self.draw(st.sampled_from(sorted(self.KINDS)))
        made = self.KINDS[kind](self)
        if made is not None:
            self.values.append(made)

    def unary(self) -> Value:
        x = self.pick()
        op = self.draw(UNARY)
        return self.b(op if x.type.dtype in op.operands[0].dtypes else ABS, x)

    def binary(self) -> Value:
        x = self.pick()
        twins = [v for v in self.values if v.type == x.type]
        return self.b(self.draw(BINARY), x, self.draw(st.sampled_from(twins)))

    def number(self) -> Value:
        x = self.pick()
        number = self.draw(NUMBERS)
        constant = self.b.constant(number if x.type.dtype.is_float else abs(int(number)), x.type.dtype)
        operands = [x, constant]
        return self.b(self.draw(BINARY), *(operands[::-1] if self.draw(st.booleans()) else operands))

    def reduce(self) -> Value:
        x = self.pick(rank=1)
        op = self.draw(REDUCE)
        axes = self.draw(st.lists(st.integers(0, x.type.rank - 1), min_size=1, unique=True))
        return self.b(op, x, axes=axes, keepdims=self.draw(st.booleans()))

    def select(self) -> Value:
        x = self.pick(rank=1)
        axes = self.draw(st.lists(st.integers(0, x.type.rank - 1), min_size=1, unique=True))
        if x.type.dtype.is_float and self.draw(st.booleans()):
            return self.b(self.draw(st.sampled_from([HARDMAX, SOFTMAX])), x, axes=axes)
        ties = self.draw(st.sampled_from(["first", "last"]))
        index = self.b(self.draw(st.sampled_from([ARGMAX, ARGMIN])), x, axes=axes, ties=ties)
        return self.b(CAST, index, to=i32)

    def top_k(self) -> Value:
        x = self.pick(rank=1)
        return self.b.node(TOP_K, x, k=1, axis=self.draw(st.integers(0, x.type.rank - 1)))[0]

    def move(self) -> Value:
        x = self.pick()
        units = [i for i, d in enumerate(x.shape) if d == 1]
        if units and self.draw(st.booleans()):
            return self.b(SQUEEZE, x, axes=[self.draw(st.sampled_from(units))])
        if x.type.rank < 4 and self.draw(st.booleans()):
            return self.b(UNSQUEEZE, x, axes=[self.draw(st.integers(0, x.type.rank))])
        if x.type.rank and self.draw(st.booleans()):
            return self.b(RESHAPE, x, shape=[-1])
        return self.b(TRANSPOSE, x, perm=self.draw(st.permutations(range(x.type.rank))))

    def choose(self) -> Value | None:
        x = self.pick(rank=1)
        if self.draw(st.booleans()):
            return self.b(CONCAT, x, x, axis=0)
        if self.draw(st.booleans()):
            return self.b(SLICE, x, starts=[0], ends=[2**31 - 1])
        if self.draw(st.booleans()):
            return self.b(CLIP, x, min=0, max=2)
        return self.b(WHERE, self.b(GREATER, x, self.b.constant(0, x.type.dtype)), x, x)

    def cast(self) -> Value:
        x = self.pick()
        if x.type.dtype.is_float:  # casts of numbers out of range are unspecified: NumPy's differ with the layout
            x = self.b(CLIP, x, min=0, max=200)
        return self.b(CAST, self.b(CAST, x, to=self.draw(st.sampled_from([f32, i32, u8]))), to=f32)

    KINDS = {
        "unary": unary, "binary": binary, "number": number, "reduce": reduce, "reduce2": reduce, "select": select,
        "top_k": top_k, "move": move, "move2": move, "choose": choose, "cast": cast,
    }  # fmt: skip


@st.composite
def programs(draw: Any) -> Graph:
    random = Random(draw)
    for _ in range(draw(st.integers(1, 10))):
        random.step()
    count = draw(st.integers(1, 3))
    return random.b.done(*random.values[-count:])


@given(programs(), st.sampled_from(["directml", "cpu"]), st.booleans(), st.integers(0, 3))
@settings(max_examples=50)
def test_random_programs_keep_their_results(graph: Graph, target: str, lower: bool, seed: int) -> None:
    feeds = {k: np.clip(v, -2, 2) for k, v in random_feeds(graph, {"n": 1 + seed, "one": 1}, seed).items()}
    exact = graph.clone()
    with np.errstate(all="ignore"):
        before = evaluate(graph, feeds)
        optimizing(target, lower_hardmax=lower).run(exact, context(target, ("exact",)))
        assert_equal(before, evaluate(exact, feeds))
        if is_stable(graph):
            optimizing(target, lower_hardmax=lower).run(graph, context(target, ALL))
            assert_equal(before, evaluate(graph, feeds), exact=False)


@given(programs(), st.booleans())
@settings(max_examples=60)
def test_what_the_pipeline_leaves_prints_as_a_program_that_reads_back(graph: Graph, lower: bool) -> None:
    graph = graph.clone({"one": 1})  # else 1 may be spelled either way
    optimizing("numpy", lower_hardmax=lower).run(graph, context())
    text = print_graph(graph, max_elements=None)
    again = print_graph(load(Source("printed.dml", text)), max_elements=None)
    assert lines(again) == lines(text)


def lines(text: str) -> list[str]:
    """Without the lines of dims: one that nothing uses is not kept when the text is read."""
    return [line for line in text.split("\n") if line and not line.startswith("dim ")]


def is_stable(graph: Graph) -> bool:
    """True if rounding stays rounding: no index, comparison or cast to an integer takes a small difference apart."""
    return not any(n.op in (ARGMAX, ARGMIN, HARDMAX, GREATER, CAST) or _cancels(n) for n in graph)


def _cancels(node: Node) -> bool:
    return node.op is SUB and all(v is not None and v.producer is not None for v in node.operands)


def test_five_thousand_nodes() -> None:
    """Long graphs come out as short ones do; tests/structure/test_growth.py counts the work."""
    b = Building(n=(1, 64))
    value = b.input("x", ("n", 16, 8))
    for i in range(1_000):
        c = b.constant(float(i % 7))
        total = b(REDUCE_SUM, b(REDUCE_SUM, b(MUL, value, c), axes=[2]), axes=[1])
        value = b(SUB, value, total)
    graph, ctx = b.done(value), context()
    ctx.verify = False
    assert len(graph) == 5_000
    optimizing("directml").run(graph, ctx)
    assert names(graph).count("reduce_sum") == 1_000
    assert FoldConstants().run(graph, ctx) is False
