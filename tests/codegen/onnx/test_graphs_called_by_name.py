"""Graphs inside nodes whose inputs and outputs the node finds by name: those of ONNX Runtime's searches."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, helper, numpy_helper, parser
from onnx_session import session

import dmlc
from tests.rows import each_row

TARGETS = ("directml", "cpu", "onnx")
WORDS = 7

#: A decoder as GreedySearch calls it: each word follows the one that ``table`` scores highest, the past is counted up.
DECODER = """
decoder (int32[B,S] input_ids, int32[B,S] position_ids, int32[B,T] attention_mask, float[2,B,1,P,4] past_0)
    => (float[B,S,7] logits, float[2,B,1,Q,4] present_0)
{
    scores = Gather (table, input_ids)
    logits = Add (scores, shift)
    number = Cast <to = 1> (input_ids)
    five = Unsqueeze (number, between)
    now = Expand (five, halves)
    present_0 = Concat <axis = 3> (past_0, now)
}
"""


def decoder(shift: str) -> GraphProto:
    graph = parser.parse_graph(DECODER)
    rng = np.random.default_rng(3)
    table = rng.normal(size=(WORDS, WORDS)).astype(np.float32)
    table[:, -1] = -100  # the end never comes: what is behind it is memory that ONNX Runtime does not write
    weights = {
        "table": table,
        "between": np.array([0, 2, 4], np.int64),
        "halves": np.array([2, 1, 1, 1, 4], np.int64),
    }
    if shift == "shift":
        weights["shift"] = np.linspace(0, 0.5, WORDS, dtype=np.float32)
    else:
        graph.node[1].input[1] = shift
    graph.initializer.extend([numpy_helper.from_array(data, name) for name, data in weights.items()])
    return graph


def search(
    op: str = "GreedySearch", *, shift: str = "shift", around: str = "y = Neg (bias)", bias: str = "bias"
) -> ModelProto:
    """A model whose first input is named as that of the decoder. No two of their results may share a name."""
    beams = {"beams": 3, "kept": 2} if op == "BeamSearch" else {}
    penalty = ["penalty"] if beams else []
    text = f"""
    <ir_version: 9, opset_import: ["" : 17, "com.microsoft" : 1]>
    searching (int32[batch, seq] input_ids, float[7] {bias}) => (int32[batch, most] sequences, float[7] y)
    {{
        {around}
        sequences = com.microsoft.{op} ({", ".join(["input_ids", "longest", "least", *beams, *penalty])})
    }}
    """
    model = parser.parse_model(text)
    node = model.graph.node[-1]
    numbers = {"longest": 9, "least": 1, **beams}
    model.graph.initializer.extend(
        [numpy_helper.from_array(np.array([number], np.int32), name) for name, number in numbers.items()]
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array([1], np.float32), "penalty"))
    for name, number in (("eos_token_id", WORDS - 1), ("pad_token_id", WORDS - 1), ("model_type", 0)):
        node.attribute.append(helper.make_attribute(name, number))
    node.attribute.append(helper.make_attribute("decoder", decoder(shift)))
    return model


def feeds(model: ModelProto) -> dict[str, np.ndarray]:
    ids = np.array([[1, 4, 2], [0, 3, 5]], np.int32)
    return {"input_ids": ids, model.graph.input[1].name: np.linspace(-1, 1, WORDS, dtype=np.float32)}


def check(model: ModelProto, target: str) -> ModelProto:
    """Compile; the same results, and the names by which the node calls the graph inside it."""
    made = dmlc.compile(model, target=target).to_onnx()
    expected, got = (session(m).run(None, feeds(model)) for m in (model, made))
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_array_equal(one, other)
    inside = called(made)
    assert [value.name for value in inside.input] == ["input_ids", "position_ids", "attention_mask", "past_0"]
    assert [value.name for value in inside.output] == ["logits", "present_0"]
    return made


def called(model: ModelProto) -> GraphProto:
    node = next(node for node in model.graph.node if node.domain)
    return next(a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH)


@each_row("target", TARGETS)
@each_row("op", ("GreedySearch", "BeamSearch"))
def test_a_search_calls_its_decoder_by_the_names_that_the_model_has_too(op: str, target: str) -> None:
    made = check(search(op), target)
    again = dmlc.compile(made, target=target).to_onnx()
    assert [n.op_type for n in called(again).node] == [n.op_type for n in called(made).node]


@each_row("target", TARGETS)
def test_a_value_of_the_model_gives_way_to_the_names_of_the_decoder(target: str) -> None:
    made = check(search(around="past_0 = Exp (bias) y = Neg (past_0)"), target)
    assert "past_0" not in {name for node in made.graph.node for name in node.output}


@each_row("target", TARGETS)
def test_a_captured_input_that_a_name_of_the_decoder_hides_is_copied(target: str) -> None:
    around = "outside = Identity (attention_mask) y = Neg (attention_mask)"
    made = check(search(shift="outside", around=around, bias="attention_mask"), target)
    assert [node.op_type for node in made.graph.node].count("Identity") == 1
    again = check(made, target)
    assert len(again.graph.node) == len(made.graph.node)


@pytest.mark.parametrize("around", ["past_0 = Exp (bias) y = Neg (past_0)", "y = Neg (bias)"])
def test_a_capture_that_no_name_hides_is_not_copied(around: str) -> None:
    made = check(search(shift="bias", around=around), "onnx")
    assert "Identity" not in [node.op_type for node in made.graph.node]


def test_types_of_values_around_a_search_stay_theirs() -> None:
    made = check(search(around="past_0 = Exp (bias) past = Sqrt (past_0) y = Neg (past)"), "cpu")
    assert made.graph.value_info
    for info in made.graph.value_info:
        assert [d.dim_value for d in info.type.tensor_type.shape.dim] == [WORDS], info.name


def test_a_model_that_a_program_calls_twice_keeps_the_names_of_its_decoder() -> None:
    inner = search()
    trunk = dmlc.function(inner)
    graph = dmlc.Graph("twice")
    ids, bias = (
        graph.input("input_ids", dtype="int32", shape=("b", "s")),
        graph.input("bias", dtype="f32", shape=(WORDS,)),
    )
    for call in ("first", "second"):
        graph.output(call, trunk(ids, bias)[0])
    made = dmlc.compile(graph, target="cpu")
    expected = session(inner).run(None, feeds(inner))[0]
    for result in made.run(feeds(inner)).values():
        np.testing.assert_array_equal(result, expected)
    assert [value.name for value in called(made.to_onnx()).output] == ["logits", "present_0"]
