"""The printer: the language's own spelling, types of every value, defaults left out, constants abbreviated."""

from __future__ import annotations

import time

import numpy as np

from dmlc.ir import Attributes, Dim, DType, Graph, Operation, Tensor, TensorType, Value, symbol
from dmlc.ir.dtype import bool_, f16, f32, f64, i32, u32
from dmlc.ir.printer import number_text, print_graph, quoted
from dmlc.ops.binary import ADD, GREATER, MAX, MUL, POW, SUB
from dmlc.ops.call import CallSite, apply
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.elementwise import EXP, NEG, NOT
from dmlc.ops.index import GATHER, ONE_HOT
from dmlc.ops.move import CONCAT, RESHAPE, SLICE, TRANSPOSE
from dmlc.ops.normalize import LAYER_NORM, SOFTMAX
from dmlc.ops.reduce import REDUCE_SUM, ReduceAttributes
from dmlc.ops.select import ARGMAX, TOP_K
from tests.rows import each_row


class Made:
    def __init__(self) -> None:
        self.graph = Graph("m")

    def input(self, name: str, shape: tuple[Dim, ...] = (2, 3), dtype: DType = f32) -> Value:
        return self.graph.add_input(name, TensorType(dtype, shape))

    def constant(self, data: object, dtype: DType = f32, note: str = "") -> Value:
        record = ConstantAttributes(value=Tensor(np.asarray(data, dtype.numpy), note=note))
        return self.graph.add(CONSTANT, (), record).result

    def call(self, op: Operation, *operands: object, **attributes: object) -> Value:
        return apply(self.graph, op, operands, attributes, CallSite()).results[0]  # type: ignore[arg-type]

    def line(self, value: Value) -> str:
        """The statement that makes the value."""
        self.graph.set_outputs([("y", value)])
        body = print_graph(self.graph).split("{\n")[1].split("    return")[0]
        return body.strip().split("\n")[-1].strip()


def test_a_whole_program() -> None:
    m = Made()
    m.graph.declare_dim("N", (1, 64))
    m.graph.declare_dim("free", (2, float("inf")))
    x = m.input("x", (symbol("N"), symbol("N") * 2 + 1))
    names = m.input("a name", (3,), u32)
    table = m.constant([0.5, -1.0])
    table.name = "table"
    top, _ = apply(m.graph, TOP_K, [x], {"k": 3, "axis": 0}, CallSite()).results
    top.name = "top"
    scaled = m.call(MUL, top, m.constant(0.1))
    picked = m.call(GATHER, table, names)
    m.graph.set_outputs([("y", scaled), ("y 2", picked), ("z", x)])
    assert (
        print_graph(m.graph)
        == """\
dim N in 1..64
dim free in 2..
const table: f32[2] = [0.5, -1.0]

model m(
    x: f32[N, 2 * N + 1],
    `a name`: u32[3],
) -> (
    y: f32[3, 2 * N + 1],
    `y 2`: f32[3],
    z: f32[N, 2 * N + 1],
) {
    # requires 3 <= N
    top, t0 = top_k(x, k=3, axis=0)  # f32[3, 2 * N + 1], u32[3, 2 * N + 1]
    t1 = top * 0.1  # f32[3, 2 * N + 1]
    t2 = gather(table, `a name`)  # f32[3]
    return t1, t2, x
}
"""
    )


@each_row(("op", "attributes", "text"), [
    (EXP, {}, "exp(x)"), (NEG, {}, "-x"), (SOFTMAX, {}, "softmax(x)"), (SOFTMAX, {"axes": [0]}, "softmax(x, axes=[0])"),
    (SOFTMAX, {"axes": [0, 1]}, "softmax(x, axes=[0, 1])"), (REDUCE_SUM, {}, "reduce_sum(x)"),
    (REDUCE_SUM, {"axes": [1], "keepdims": False}, "reduce_sum(x, axes=[1], keepdims=false)"),
    (ARGMAX, {"axes": [1], "ties": "last", "dtype": "i64"}, "argmax(x, axes=[1], ties=last, dtype=i64)"),
    (CLIP, {"min": 0, "max": 1.5}, "clip(x, min=0, max=1.5)"), (CLIP, {"max": 6}, "clip(x, max=6)"),
    (CAST, {"to": f16}, "cast(x, to=f16)"), (TRANSPOSE, {"perm": [1, 0]}, "transpose(x, perm=[1, 0])"),
    (RESHAPE, {"shape": [6]}, "reshape(x, shape=[6])"), (TOP_K, {"k": 2}, "top_k(x, k=2)"),
    (SLICE, {"starts": [0], "ends": [1]}, "slice(x, starts=[0], ends=[1], axes=[0], steps=[1])"),
])  # fmt: skip
def test_attributes_that_are_not_defaults(op: Operation, attributes: dict[str, object], text: str) -> None:
    m = Made()
    value = m.call(op, m.input("x"), **attributes)
    assert m.line(value).split(" = ")[1].split("  # ")[0] == text


def test_the_default_axis_of_a_result_with_one_axis_more() -> None:
    m = Made()
    i = m.input("i", (4,), i32)
    assert "one_hot(i, depth=3)" in m.line(m.call(ONE_HOT, i, depth=3))
    assert "one_hot(i, depth=3, axis=0, on=2.5)" in m.line(m.call(ONE_HOT, i, depth=3, axis=0, on=2.5))


def test_a_reduction_over_no_axes_is_not_a_reduction_over_all() -> None:
    m = Made()
    x = m.input("x")
    value = m.graph.add(REDUCE_SUM, [x], ReduceAttributes(axes=(), keepdims=True)).result
    assert "reduce_sum(x, axes=[])" in m.line(value)


def test_operators_numbers_and_absent_operands() -> None:
    m = Made()
    x, mask = m.input("x"), m.input("mask", dtype=bool_)
    assert m.line(m.call(ADD, x, x)) == "t0 = x + x  # f32[2, 3]"
    assert m.line(m.call(SUB, 1.5, x)).endswith("= 1.5 - x  # f32[2, 3]")
    assert m.line(m.call(POW, x, -2.0)).endswith("= x ** (-2.0)  # f32[2, 3]")
    assert m.line(m.call(MAX, x, 0.0)).endswith("= max(x, 0.0)  # f32[2, 3]")
    assert m.line(m.call(NOT, mask)).endswith("= !mask  # bool[2, 3]")
    assert m.line(m.call(WHERE, mask, x, float("inf"))).endswith("= where(mask, x, inf)  # f32[2, 3]")
    assert m.line(m.call(GREATER, x, float("nan"))).endswith("= x > nan  # bool[2, 3]")
    scale = m.input("s", (3,))
    assert m.line(m.call(LAYER_NORM, x, scale, None)).endswith("= layer_norm(x, s, none)  # f32[2, 3]")


def test_a_number_whose_dtype_nothing_else_gives_is_a_const() -> None:
    m = Made()
    x = m.input("x", (3,))
    index = m.constant(1, i32)
    one, two = m.constant(1.0), m.constant(2.0)
    values = [m.call(GATHER, x, index), m.call(ADD, one, two), m.call(CONCAT, x, m.constant([4.0]), axis=0)]
    m.graph.set_outputs([(f"y{i}", v) for i, v in enumerate(values)] + [("c", one)])
    text = print_graph(m.graph)
    assert "const c0: i32[] = 1\nconst c1: f32[] = 1.0\nconst c2: f32[] = 2.0\nconst c3: f32[1] = [4.0]\n" in text
    assert "= gather(x, c0)" in text
    assert "= c1 + c2" in text
    assert "return t4, t5, t6, c1" in text


@each_row(("data", "dtype", "text"), [
    ([[1, 2], [3, 4]], i32, "const c0: i32[2, 2] = [[1, 2], [3, 4]]"), ([True, False], bool_, "[true, false]"),
    (np.zeros(17), f32, "const c0: f32[17] = ...  # 17 elements of w.npy"), (np.zeros(16), f32, "[0.0, 0.0, "),
    (np.zeros((0, 3)), f32, "const c0: f32[0, 3] = []"), ([np.nan, -np.inf], f16, "[nan, -inf]"),
])  # fmt: skip
def test_constants(data: object, dtype: DType, text: str) -> None:
    m = Made()
    m.graph.set_outputs([("y", m.constant(data, dtype, note="w.npy"))])
    assert text in print_graph(m.graph)
    assert "..." not in print_graph(m.graph, max_elements=None)


@each_row("dtype", [f16, f32, f64])
def test_numbers_read_back_as_they_were(dtype: DType) -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2 ** (dtype.bits - 1) - 1, 3000, dtype=np.uint64).astype(f"u{dtype.bits // 8}")
    for number in bits.view(dtype.numpy):
        if not np.isfinite(number):
            continue
        text = number_text(number)
        assert "." in text or "e" in text
        assert dtype.numpy.type(float(text)) == number
    assert number_text(dtype.numpy.type(0.1)) == "0.1"
    assert number_text(dtype.numpy.type(2)) == "2.0"
    assert number_text(np.bool_(True)) == "true"
    assert number_text(-3) == "-3"


@each_row(("name", "text"), [
    ("x", "x"), ("_1", "_1"), ("1x", "`1x`"), ("a b", "`a b`"), ("model", "`model`"), ("f32", "`f32`"), ("", "``"),
    ("é", "`é`"),
])  # fmt: skip
def test_names(name: str, text: str) -> None:
    assert quoted(name) == text


def test_names_stay_different() -> None:
    m = Made()
    x = m.input("x")
    for name in ("x", "a", "a", "t0", None):
        x = m.call(EXP, x)
        x.name = name
    m.graph.declare_dim("a", (1, 2))
    m.graph.set_outputs([("y", x)])
    lines = [line.split(" = ")[0].strip() for line in print_graph(m.graph).split("\n") if " = " in line]
    assert len(set(lines)) == 5
    assert "x" not in lines
    assert "a" not in lines


def test_carried_operators_have_their_onnx_name() -> None:

    class Carried(Attributes, frozen=True, kw_only=True):
        domain: str
        op_type: str
        attributes: tuple[tuple[str, object], ...]

    op = Operation(
        name="carried", operands=(), attributes=Carried, infer=lambda call: [call.type(0)], summary="", results=("y",)
    )
    m = Made()
    x = m.input("x")
    record = Carried(domain="", op_type="Gelu", attributes=(("approximate", "tanh"), ("k", (1, 2)), ("alpha", 0.5)))
    assert m.line(m.graph.add(op, [x], record).result) == (
        't0 = onnx.Gelu(x, approximate="tanh", k=[1, 2], alpha=0.5)  # f32[2, 3]'
    )
    record = Carried(domain="com.microsoft", op_type="BiasGelu", attributes=())
    assert "onnx.com.microsoft.BiasGelu(x, x)" in m.line(m.graph.add(op, [x, x], record).result)


def test_printing_is_linear() -> None:
    m = Made()
    value = m.input("x")
    for _ in range(20_000):
        value = m.graph.add(EXP, [value], Attributes()).result
        value.name = "y"
    m.graph.set_outputs([("y", value)])
    start = time.process_time()
    assert print_graph(m.graph).count("\n") == 20_007
    # About 5 microseconds a node; names that repeat must not be searched from the start each time.
    assert time.process_time() - start < 1.5
