"""ONNX operators that are carried through: checked against their schema, typed by ONNX, emitted, evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import dmlc
from dmlc.codegen.onnx import emit
from dmlc.diagnostics import DmlcError, Source, Span
from dmlc.inference.carried import CARRIED, CARRIED_IMPURE, CarriedAttributes, carry
from dmlc.inference.registry import ruled_operators
from dmlc.ir import DTYPES, Dim, Graph, Node, OpError, Tensor, TensorType, Value, as_dtype, symbol
from dmlc.ir.dtype import f16, f32, i32, i64
from dmlc.onnx_schema.schemas import TYPE_NAMES, find_schema
from dmlc.ops.call import CallSite
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.targets import load_target
from tests import kit
from tests.rows import each_row

SOURCE = Source("test.dml", "y = onnx.Name(x)")
SITE = CallSite(Span(SOURCE, 1, 5, 1, 17))
IMAGE = np.linspace(-1, 1, 2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8)
N = symbol("N")


class Call:
    """A graph with one carried operator. Arrays become inputs (with a shape where sizes are symbolic), ``Tensor``s
    constants; numbers and None stand for themselves."""

    def __init__(
        self, name: str, *operands: Any, results: int = 1, opset: int = 21, domain: str = "", **attributes: Any
    ):
        self.graph = Graph("m", opset=opset)
        self.feeds: dict[str, np.ndarray] = {}
        values = [self._value(operand) for operand in operands]
        self.node: Node = carry(self.graph, domain, name, values, attributes, results, SITE)
        self.graph.set_outputs([(f"y{i}", v) for i, v in enumerate(self.node.results)])

    def _value(self, operand: Any) -> Any:
        if isinstance(operand, Tensor):
            return self.graph.add(CONSTANT, (), ConstantAttributes(value=operand)).result
        array, shape = operand if isinstance(operand, tuple) else (operand, getattr(operand, "shape", ()))
        return self._input(array, shape) if isinstance(array, np.ndarray) else operand

    def _input(self, array: np.ndarray, shape: tuple[Dim, ...]) -> Value:
        name = f"x{len(self.feeds)}"
        self.feeds[name] = array
        return self.graph.add_input(name, TensorType(as_dtype(array.dtype), tuple(shape)))

    @property
    def types(self) -> list[str]:
        return [str(v.type) for v in self.node.results]

    def model(self) -> onnx.ModelProto:
        model: onnx.ModelProto = emit(self.graph, load_target("cpu"), self.graph.opset).payload
        return model

    def run(self) -> list[np.ndarray]:
        return list(kit.run(self.model(), self.feeds).values())

    def reference(self) -> list[np.ndarray]:
        assert self.node.op.reference is not None
        arrays = []
        for value in self.node.operands:
            if value is None:
                arrays.append(None)
            elif value.producer is None:
                arrays.append(self.feeds[value.name or ""])
            else:
                arrays.append(value.producer.attributes_as(ConstantAttributes).value.array)
        out = self.node.op.reference(self.node.attributes, *arrays)
        return list(out) if isinstance(out, tuple) else [out]


def refused(name: str, *operands: Any, **keywords: Any) -> tuple[str, str, str]:
    """(code, message, help) of the error; its place is the call."""
    with pytest.raises(DmlcError) as caught:
        Call(name, *operands, **keywords)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None
    return diagnostic.code.id, diagnostic.message, diagnostic.help


def ints(*values: int) -> Tensor:
    return Tensor(np.array(values, np.int64))


# --- typing


@each_row(
    ("call", "types"),
    [
        (lambda: Call("Conv", IMAGE, np.ones((4, 3, 3, 3), np.float32), pads=[1, 1, 1, 1]), ["f32[2, 4, 8, 8]"]),
        (lambda: Call("Conv", (IMAGE, (N, 3, 8, 8)), np.ones((4, 3, 3, 3), np.float32)), ["f32[N, 4, 6, 6]"]),
        (lambda: Call("Gelu", IMAGE, approximate="tanh"), ["f32[2, 3, 8, 8]"]),
        (lambda: Call("Reshape", (IMAGE, (N, 3, 8, 8)), ints(0, -1)), ["f32[N, 192]"]),
        (lambda: Call("Resize", IMAGE, None, Tensor(np.array([1, 1, 2, 2], np.float32))), ["f32[2, 3, 16, 16]"]),
        (lambda: Call("Add", IMAGE, 1), ["f32[2, 3, 8, 8]"]),
        (lambda: Call("Cast", IMAGE, to=f16), ["f16[2, 3, 8, 8]"]),
        (lambda: Call("Split", IMAGE, results=3, axis=1, num_outputs=3), ["f32[2, 1, 8, 8]"] * 3),
        (lambda: Call("TopK", IMAGE, ints(2), results=2, axis=1), ["f32[2, 2, 8, 8]", "i64[2, 2, 8, 8]"]),
        (lambda: Call("Einsum", IMAGE, equation="abcd->ab"), ["f32[2, 3]"]),
        (lambda: Call("Concat", IMAGE, IMAGE, axis=0), ["f32[4, 3, 8, 8]"]),
        (lambda: Call("Shape", (IMAGE, (N, 3, 8, 8))), ["i64[4]"]),
        (lambda: Call("Constant", value=np.arange(3, dtype=np.int32)), ["i32[3]"]),
        (lambda: Call("ReduceSum", IMAGE, keepdims=0), ["f32[]"]),
        (lambda: Call("FastGelu", IMAGE, domain="com.microsoft"), ["f32[2, 3, 8, 8]"]),
        (lambda: Call("BiasGelu", IMAGE, np.ones(8, np.float32), domain="com.microsoft"), ["f32[2, 3, 8, 8]"]),
    ],
)
def test_types_and_numbers(call: Any, types: list[str]) -> None:
    """Typed as ONNX says, run by ONNX Runtime in the shape that was inferred, and evaluated by onnx's reference."""
    made = call()
    assert made.types == types
    model = made.model()
    if not any(node.domain for node in model.graph.node):
        onnx.checker.check_model(model, full_check=True)
    results = made.run()
    binding = {"N": 2}
    for value, array in zip(made.node.results, results, strict=True):
        assert array.dtype == value.type.dtype.numpy
        assert array.shape == tuple(binding.get(str(d), d) for d in value.shape)
    if not made.node.attributes.domain:
        for mine, theirs in zip(made.reference(), results, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)  # sums of a convolution in another order


def test_attributes_that_were_not_written_stay_unset() -> None:
    call = Call("Softmax", IMAGE)
    assert call.node.attributes_as(CarriedAttributes).attributes == ()
    assert [a.name for a in call.model().graph.node[0].attribute] == []
    call = Call("LeakyRelu", IMAGE, alpha=1)
    assert call.node.attributes_as(CarriedAttributes).attributes == (("alpha", 1.0),)


def test_the_operator_is_that_of_the_opset() -> None:
    """Softmax below 13 flattens; Gelu came with 20."""
    assert Call("Softmax", IMAGE, axis=1, opset=12).types == ["f32[2, 3, 8, 8]"]
    code, message, help = refused("Gelu", IMAGE, opset=17)
    assert (code, message, help) == ("E0501", "ONNX has Gelu from opset 20 on, not at 17", help)
    assert help == "leave out opset=: the lowest opset for it is 20"
    call = Call("Gelu", IMAGE, opset=20)
    older = call.node.attributes_as(CarriedAttributes).at_opset(13)
    with pytest.raises(OpError, match="from opset 20"):
        call.graph.reinfer(call.node, older)


def test_a_bound_dim_is_typed_anew() -> None:
    call = Call("Conv", (IMAGE, (N, 3, 8, 8)), np.ones((4, 3, 3, 3), np.float32))
    (output,) = call.graph.clone({"N": 5}).outputs
    assert str(output[1].type) == "f32[5, 4, 6, 6]"


def test_emitting_at_another_opset_than_it_was_typed_at() -> None:
    call = Call("Gelu", IMAGE, opset=20)
    with pytest.raises(DmlcError) as caught:
        emit(call.graph, load_target("cpu"), 17)
    assert caught.value.diagnostics[0].code.id == "E0501"


# --- purity


def test_random_operators_are_neither_merged_nor_removed() -> None:
    assert Call("RandomNormalLike", IMAGE).node.op is CARRIED_IMPURE
    assert Call("Dropout", IMAGE).node.op is CARRIED_IMPURE
    assert Call("Gelu", IMAGE).node.op is CARRIED
    assert not CARRIED_IMPURE.pure
    assert CARRIED.pure


# --- refusals


@each_row("name", ["Gleu", "gelu", "GELU"])
def test_unknown_names(name: str) -> None:
    code, message, help = refused(name, IMAGE)
    assert (code, help) == ("E0504", 'did you mean "Gelu"?')
    assert name in message


def test_unknown_names_of_other_domains() -> None:
    assert refused("FastGlu", IMAGE, domain="com.microsoft")[2] == 'did you mean "FastGelu"?'
    assert "FastGelu" in refused("Foo", IMAGE, domain="com.microsoft")[2]
    assert refused("Foo", IMAGE, domain="my.domain")[0] == "E0504"
    assert refused("Upsample", IMAGE)[1] == "ONNX took Upsample out at opset 10"


def test_a_call_that_a_later_opset_allows() -> None:
    shifted = np.ones(4, np.int8)
    code, message, help = refused("BitShift", shifted, shifted, direction="LEFT")
    assert code == "E0501"
    assert "X of BitShift cannot be i8" in message
    assert "from opset 28 on, not at 21" in message
    assert help == "leave out opset=: the lowest opset for it is 28"
    assert refused("BitShift", IMAGE, IMAGE, direction="LEFT")[0] == "E0309"


@pytest.mark.emits_invalid("the attributes are no operator's")
def test_attributes_of_operators_that_onnx_does_not_declare() -> None:
    """Each is stored as it is written: an integer, a number, a word, or a list of these."""
    written = {"num_heads": 2, "scale": 1.0, "rotary": [1.0, 2], "do": "x", "sizes": [1, 2], "words": ["a", "b"]}
    call = Call("MultiHeadAttention", np.ones((1, 2, 4), np.float32), domain="com.microsoft", **written)
    kinds = {a.name: onnx.AttributeProto.AttributeType.Name(a.type) for a in call.model().graph.node[0].attribute}
    assert kinds == {
        "num_heads": "INT", "scale": "FLOAT", "rotary": "FLOATS", "do": "STRING", "sizes": "INTS", "words": "STRINGS",
    }  # fmt: skip
    code, message, _ = refused("Inverse", IMAGE, domain="com.microsoft", sizes=[])
    assert (code, "must be an integer, a number, a word" in message) == ("E0304", True)


#: Operators that hold graphs, which programs cannot write.
WITH_GRAPHS = {"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"}


def test_every_operator_of_onnx_runtime_with_a_rule_is_called() -> None:
    for name in ruled_operators("com.microsoft") - WITH_GRAPHS:
        assert find_schema("com.microsoft", name, 21).name == name


@each_row(
    ("name", "attributes", "code", "text"),
    [
        ("Gelu", {"aproximate": "tanh"}, "E0305", "no attribute aproximate"),
        ("Gelu", {"approximate": 3}, "E0304", "must be a word, not 3"),
        ("LeakyRelu", {"alpha": "much"}, "E0304", "must be a number, not much"),
        ("LeakyRelu", {"alpha": True}, "E0304", "must be a number, not true"),
        ("Transpose", {"perm": 1}, "E0304", "must be a list of integers, not 1"),
        ("Transpose", {"perm": [0, 1.5]}, "E0304", "must be a list of integers"),
        ("Softmax", {"axis": 1.5}, "E0304", "must be an integer, not 1.5"),
        ("Softmax", {"axis": N}, "E0304", "must be an integer, not N"),
        ("Cast", {}, "E0306", "Cast needs to"),
        ("Transpose", {"perm": [0, 1, 2, 3, 4]}, "E0505", "Transpose"),
    ],
)
def test_wrong_attributes(name: str, attributes: dict[str, Any], code: str, text: str) -> None:
    found, message, _ = refused(name, IMAGE, **attributes)
    assert found == code
    assert text in message


def test_wrong_operands() -> None:
    assert refused("Add", IMAGE)[0] == "E0308"
    assert refused("Add", IMAGE, None)[0] == "E0308"
    assert refused("Add", IMAGE, IMAGE.astype(np.int32))[0] == "E0310"
    assert refused("Erf", IMAGE > 0)[0] == "E0309"
    assert refused("Gelu", IMAGE, results=2)[0] == "E0308"
    assert refused("MatMul", IMAGE, np.ones((7, 2), np.float32))[0] == "E0505"
    code, message, _ = refused("Split", IMAGE, axis=1, num_outputs=2)  # ONNX Runtime fails at it in each run
    assert code == "E0505"
    assert "num_outputs and the number of results differ: 2 and 1" in message
    code, _, help = refused("Gather", IMAGE, 1)
    assert (code, help) == ("E0312", "write 1 as i64")
    assert refused("Add", IMAGE.astype(np.uint8), 300)[0] == "E0311"


@pytest.mark.parametrize(
    ("name", "operands", "text"),
    [
        ("SequenceConstruct", (IMAGE,), "SequenceConstruct is not a tensor"),
    ],
)
def test_results_that_nobody_can_type(name: str, operands: tuple[Any, ...], text: str) -> None:
    code, message, help = refused(name, *operands)
    assert code == "E0506"
    assert text in message
    assert help


#: Programs of one result y whose sizes only operators tell, inputs, and the sizes that a run gives.
TOLD = {
    "NonZero": ("i = onnx.NonZero(x)\n    y = reshape(i, shape=[size(i, axis=1), 2])", "f32[N, 4]", [1, 0, 2], (2, 2)),
    "Range": ("t = onnx.Range(0, onnx.Size(x), 1)\n    y = t + iota(length=size(t, axis=0), dtype=i64)", "f32[N, 4]",
              [1, 2, 3], (12,)),
    "twice": ("i = onnx.NonZero(x)\n    j = onnx.NonZero(x + 1)\n    y = concat(i, j, axis=1)", "f32[N, 4]",
              [1, 0, 2], (2, 14)),
    "Unique": ("u, _ = onnx.Unique(x)\n    y = u * 2 + full(shape=[size(u, axis=0)], value=1, dtype=f32)", "f32[N, 4]",
               [1, 1, 2], (2,)),
    "reduced": ("i = onnx.NonZero(x)\n    y = reduce_sum(i, axes=[1])", "f32[N, 4]", [0, 0, 1], (2, 1)),
}  # fmt: skip


@each_row("target", ["onnx", "directml", "cpu"])
@each_row("name", TOLD)
def test_sizes_that_only_results_tell(name: str, target: str) -> None:
    body, type, rows, shape = TOLD[name]
    text = f"model m(x: {type}) -> (y) {{\n    {body}\n    return y\n}}\n"
    program = dmlc.compile(dmlc.Source(text, "m.dml"), target=target)
    x = np.repeat(np.float32(rows)[:, None], 4, axis=1) * (np.arange(4) < 3 if name in ("NonZero", "twice") else 1)
    if name == "NonZero":
        x = np.float32([[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2]])
        shape = (2, 2)
    if name == "twice":
        x, shape = np.float32([[0, 1, 0, 0], [0, 0, 0, -1]]), (2, 9)
    feeds = {"x": x.astype(np.float32)}
    found, wanted = program.run(feeds, "cpu")["y"], program.run(feeds, "reference")["y"]
    assert wanted.shape == shape
    np.testing.assert_array_equal(found, wanted)
    assert program.verify(4).ok


def test_a_bound_dim_reaches_a_size_that_a_result_tells() -> None:
    text = "model m(x: f32[N, 4]) -> (y) {\n    i = onnx.NonZero(x)\n    y = iota(length=size(i, axis=1), dtype=i64)\n"
    program = dmlc.compile(dmlc.Source(f"{text}    return y\n}}\n", "m.dml"), bind={"N": 2}, target="onnx")
    assert program.run({"x": np.ones((2, 4), np.float32)}, "cpu")["y"].tolist() == list(range(8))


def test_a_builder_tells_the_sizes_of_results() -> None:
    g = dmlc.Graph("m")
    i = dmlc.onnx.NonZero(g.input("x", dtype="float32", shape=("N", 4)))
    g.output("y", dmlc.reshape(i, shape=(dmlc.size(i, axis=1), 2)))
    program = dmlc.compile(g, target="onnx")
    assert program.run({"x": np.eye(4, dtype=np.float32)}, "cpu")["y"].shape == (4, 2)
    assert dmlc.compile(g, target="onnx").to_onnx() == program.to_onnx()


def test_a_rank_that_is_not_known_is_refused() -> None:
    text = "model m(x: f32[4, 3], s: i64[N]) -> (y) {\n    y = onnx.Reshape(x, s)\n    return y\n}\n"
    with pytest.raises(DmlcError, match="has a rank that is not known"):
        dmlc.compile(dmlc.Source(text, "m.dml"))


def test_subgraphs_cannot_be_written() -> None:
    assert refused("If", np.array(True))[0] == "E0304"


def test_what_onnx_cannot_evaluate() -> None:
    call = Call("FastGelu", IMAGE, domain="com.microsoft")
    with pytest.raises(DmlcError) as caught:
        call.reference()
    assert caught.value.diagnostics[0].code.id == "E0507"


def test_onnx_spellings_of_all_dtypes() -> None:
    assert set(TYPE_NAMES.values()) == set(DTYPES)
    assert (TYPE_NAMES["float"], TYPE_NAMES["float16"], TYPE_NAMES["int64"]) == (f32, f16, i64)
    assert TYPE_NAMES["int32"] is i32


def test_a_result_of_a_dtype_that_the_language_lacks_is_not_blamed_on_sizes() -> None:
    with pytest.raises(DmlcError, match=r"E0506.*a dtype that the language does not have") as caught:
        Call("Cast", (IMAGE, (N, 3, 8, 8)), to=8)
    assert caught.value.diagnostics[0].help.startswith("values of a program are tensors of the language's dtypes")
