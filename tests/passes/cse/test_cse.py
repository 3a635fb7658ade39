"""cse: equal nodes become one, and what differs in a bit does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser
from pass_helpers import Building, check_numbers, context, ledger, names, run

import dmlc
from dmlc.inference.carried import carry
from dmlc.ir import Attributes, Operand, Operation
from dmlc.ir.dtype import f32, f64, i32
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.call import CallSite
from dmlc.ops.choose import CAST, CLIP
from dmlc.ops.constant import CONSTANT
from dmlc.ops.elementwise import EXP, NEG
from dmlc.ops.index import FULL
from dmlc.ops.move import PAD
from dmlc.ops.reduce import REDUCE_SUM
from dmlc.ops.rules import same_type
from dmlc.ops.select import ARGMAX, TOP_K
from dmlc.passes.cse import Cse
from tests.rows import each_row
from tools.canonical_form import operators
from tools.model_checks import run as run_session
from tools.model_checks import session

PASS = Cse()


def test_equal_nodes_become_one_with_both_places() -> None:
    b = Building()
    x = b.input("x", (2, 3))
    graph = b.done(b(ADD, b(EXP, x), b(EXP, x)))
    ctx = check_numbers(PASS, graph, context(allowed=("exact",)))
    assert names(graph) == ["exp", "add"]
    exp, add = graph
    assert [span.line for span in exp.spans] == [1, 2]
    assert add.operands == (exp.result, exp.result)
    assert ledger(ctx) == [("cse", "exact")]
    assert ctx.ledger[0].text == "exp computed twice"


def test_whole_equal_parts_become_one() -> None:
    b = Building()
    x = b.input("x", (2, 3))
    parts = [b(REDUCE_SUM, b(MUL, b(EXP, x), b.constant(2.0)), axes=[1]) for _ in range(3)]
    graph = b.done(b(ADD, b(ADD, parts[0], parts[1]), parts[2]))
    check_numbers(PASS, graph)
    assert names(graph) == ["exp", "mul", "reduce_sum", "add", "add"]


def test_operations_with_several_results_merge() -> None:
    b = Building()
    x = b.input("x", (5,))
    v, i = b.node(TOP_K, x, k=2)
    w, j = b.node(TOP_K, x, k=2)
    graph = b.done(v, w, i, j)
    check_numbers(PASS, graph)
    assert names(graph) == ["top_k"]


@each_row(("first", "second"), [
    ((REDUCE_SUM, {"axes": [0]}), (REDUCE_SUM, {"axes": [1]})),
    ((REDUCE_SUM, {"axes": [0]}), (REDUCE_SUM, {"axes": [0], "keepdims": False})),
    ((ARGMAX, {"ties": "first"}), (ARGMAX, {"ties": "last"})),
    ((ARGMAX, {"dtype": "u32"}), (ARGMAX, {"dtype": "i32"})),
    ((CAST, {"to": f64}), (CAST, {"to": i32})),
    ((EXP, {}), (NEG, {})),
    ((CLIP, {"min": 0.0}), (CLIP, {"min": -0.0})),
    ((CLIP, {"min": 0.0}), (CLIP, {"max": 0.0})),
    ((PAD, {"pads": [0, 0, 0, 1], "value": 0.0}), (PAD, {"pads": [0, 0, 0, 1], "value": -0.0})),
])  # fmt: skip
def test_what_differs_stays(first: Any, second: Any) -> None:
    b = Building()
    x = b.input("x", (2, 3))
    graph = b.done(b(first[0], x, **first[1]), b(second[0], x, **second[1]))
    check_numbers(PASS, graph)
    assert len(graph) == 2


def test_other_operands_and_other_order_stay() -> None:
    b = Building()
    x, y = b.input("x", (3,)), b.input("y", (3,))
    graph = b.done(b(ADD, x, y), b(ADD, y, x), b(ADD, x, x))
    run(PASS, graph)
    assert len(graph) == 3


@pytest.mark.parametrize(("one", "other", "merge"), [
    ([1.0, 2.0], [1.0, 2.0], True), ([0.0], [-0.0], False), ([np.nan], [np.nan], True), ([1.0], [1.0, 1.0], False),
    ([[1.0]], [1.0], False), ([1.0, 2.0], [2.0, 1.0], False),
])  # fmt: skip
def test_constants_compare_bit_by_bit(one: Any, other: Any, merge: bool) -> None:
    b = Building()
    graph = b.done(b(NEG, b.constant(one)), b(NEG, b.constant(other)))
    check_numbers(PASS, graph)
    assert len(graph) == (2 if merge else 4)


def test_constants_of_other_dtypes_stay() -> None:
    b = Building()
    graph = b.done(b.constant(0, f32), b.constant(0, i32))
    run(PASS, graph)
    assert len(graph) == 2


def test_three_equal_constants_become_one() -> None:
    b = Building()
    graph = b.done(*[b.constant([1, 2, 3]) for _ in range(3)])
    run(PASS, graph)
    assert [n.op for n in graph] == [CONSTANT]


def test_a_lone_constant_is_not_read() -> None:
    b = Building()
    value = b.constant(np.zeros(8))
    graph = b.done(value, b.constant(np.zeros(9)))
    run(PASS, graph)
    assert all(n.attributes.value._digest is None for n in graph)


def test_nan_attributes_equal_themselves() -> None:
    b = Building()
    graph = b.done(*[b(FULL, shape=[2], value=float("nan"), dtype=f32) for _ in range(2)])
    run(PASS, graph)
    assert len(graph) == 1


def test_a_number_is_not_a_truth_value() -> None:
    class Loose(Attributes, frozen=True, kw_only=True):
        value: Any

    op = Operation(name="loose", operands=(Operand("x", (f32,)),), attributes=Loose, infer=same_type, summary="")
    b = Building()
    x = b.input("x", (2,))
    made = [b.graph.add(op, [x], Loose(value=v)).result for v in (1, True, 1.0, (1.0, 0.0), (1.0, -0.0), (1.0, 0.0))]
    graph = b.done(*made)
    run(PASS, graph)
    assert len(graph) == 5


def test_records_without_fields_are_equal() -> None:
    class Nothing(Attributes, frozen=True, kw_only=True):
        pass

    op = Operation(name="bare", operands=(Operand("x", (f32,)),), attributes=Nothing, infer=same_type, summary="")
    b = Building()
    x = b.input("x", (2,))
    graph = b.done(*[b.graph.add(op, [x], Nothing()).result for _ in range(2)])
    run(PASS, graph)
    assert len(graph) == 1


def test_carried_operators_merge_by_their_bits() -> None:
    b = Building()
    x = b.input("x", (2, 3))
    values = [
        carry(b.graph, "", "LeakyRelu", [x], {"alpha": alpha}, 1, CallSite(span=b.span())).result
        for alpha in (0.0, -0.0, 0.0)
    ]
    graph = b.done(*values)
    run(PASS, graph)
    assert len(graph) == 2


def test_operations_with_effects_stay() -> None:
    op = Operation(name="dice", operands=(Operand("x", (f32,)),), infer=same_type, summary="", pure=False)
    b = Building()
    x = b.input("x", (2,))
    graph = b.done(*[b.graph.add(op, [x], Attributes()).result for _ in range(2)])
    run(PASS, graph)
    assert len(graph) == 2


def test_one_value_may_become_several_outputs_and_names_move_along() -> None:
    b = Building()
    x = b.input("x", (2,))
    one, other = b(EXP, x), b(EXP, x)
    other.name = "e"
    graph = b.done(one, other)
    run(PASS, graph)
    assert len(graph) == 1
    assert [v.name for _, v in graph.outputs] == ["e", "e"]
    assert [n for n, _ in graph.outputs] == ["y0", "y1"]


_POSITIONS = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N, M] x, float[N, M] z) => (int64[K, 1] a, int64[P, 1] b) <float one = {1}, int64[2] shape = {-1, 1}> {
  same = Mul (x, one)
  i = NonZero (x)
  j = NonZero (FED)
  t = Reshape (i, shape)
  u = Reshape (j, shape)
  a = Neg (t)
  b = Abs (u)
}"""


@pytest.mark.parametrize("target", ["onnx", "directml"])
@pytest.mark.parametrize(("fed", "count"), [("same", 1), ("z", 2)])
def test_sizes_that_merged_nodes_find_are_the_same(fed: str, count: int, target: str) -> None:
    """Each NonZero has a size of its own, which the shape of the reshape behind it holds."""
    source = parser.parse_model(_POSITIONS.replace("FED", fed))
    model = dmlc.compile(source, target=target).to_onnx()
    assert [operators(model)[f":{op_type}"] for op_type in ("NonZero", "Reshape")] == [count, count]
    assert operators(dmlc.compile(model, target=target).to_onnx()) == operators(model)
    feeds = {"x": np.eye(3, 4, dtype=np.float32), "z": np.ones((3, 4), np.float32)}
    want, found = (run_session(session(m), feeds) for m in (source, model))
    assert all(np.array_equal(want[name], found[name]) for name in ("a", "b"))
