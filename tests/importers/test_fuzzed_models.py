"""Models that coverage-guided fuzzing found: small ones that took gigabytes, or ended in a traceback."""

from __future__ import annotations

import time
from typing import Any

import pytest
from import_helpers import BOOL, FLOAT, info, model, node, weight
from onnx import ModelProto, NodeProto, TensorProto, helper

import dmlc
from dmlc.diagnostics import DmlcError
from tests.rows import each_row

#: ONNX's inference makes up the elements of such a list one by one: seconds and half a gigabyte; it must not.
LONG = 1 << 24
#: Seconds within which no list of so many elements is made; a full collection of the suite's objects takes one.
QUICK = 4.0


def listing(nodes: list[NodeProto], sizes: list[int], *, dtype: int = FLOAT, opset: int = 17) -> ModelProto:
    """A model whose last node, which the language does not know, makes ONNX's inference necessary."""
    outputs = [info("y", None)]
    nodes = [*nodes, node("Mish", ["h"], ["y"])]
    weights = [weight("i", [0, 1], "int64"), weight("minus", [-1], "int64"), weight("two", 2)]
    return model(nodes, [info("x", sizes, dtype)], outputs, weights, opset=opset)


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    """Loading the libraries once, so that they do not take the time here."""
    dmlc.compile(listing([node("Relu", ["x"], ["h"])], [3], opset=18), target="onnx").to_onnx()


@each_row(
    "nodes",
    [
        [node("Mul", ["x", "x"], ["h"])],
        [node("Relu", ["x"], ["r"]), node("Add", ["r", "two"], ["h"])],
        [node("Concat", ["x", "x"], ["h"], axis=0)],
        [node("Gather", ["x", "i"], ["h"])],
        [node("Unsqueeze", ["x", "i"], ["h"])],
        [node("Cast", ["x"], ["h"], to=TensorProto.BFLOAT16)],
        [node("Slice", ["x", "minus", "i"], ["h"])],
    ],
    ids=lambda nodes: nodes[-1].op_type,
)
def test_elements_of_a_long_list_are_not_made_up(nodes: list[NodeProto]) -> None:
    start = time.process_time()
    try:
        dmlc.compile(listing(nodes, [LONG], opset=18), target="onnx").to_onnx()
    except DmlcError as error:
        assert error.exit_code == 1
    assert time.process_time() - start < QUICK


def test_nor_of_a_tensor_that_is_made_one() -> None:
    nodes = [node("Reshape", ["x", "minus"], ["r"]), node("Sub", ["r", "two"], ["h"])]
    start = time.process_time()
    dmlc.compile(listing(nodes, [4, LONG], opset=18), target="onnx").to_onnx()
    assert time.process_time() - start < QUICK


@each_row(
    ("nodes", "numbers"),
    [
        ([node("ConstantOfShape", ["n"], ["l"])], [LONG]),
        ([node("Constant", [], ["k"], value_ints=[LONG]), node("ConstantOfShape", ["k"], ["l"])], [0]),
        ([node("Mul", ["n", "n"], ["m"]), node("ConstantOfShape", ["m"], ["l"])], [1 << 11]),
        ([node("ReduceProd", ["n"], ["m"]), node("ConstantOfShape", ["m"], ["l"])], [1 << 11, 1 << 11]),
        ([node("Squeeze", ["n"], ["m"]), node("Range", ["zero", "m", "one"], ["l"])], [LONG]),
        ([node("Expand", ["two", "n"], ["l"])], [LONG]),
        ([node("Expand", ["two", "n"], ["m"]), node("Reshape", ["m", "minus"], ["l"])], [1 << 11, 1 << 12]),
        ([node("ConstantOfShape", ["n"], ["m"]), node("Reshape", ["m", "minus"], ["l"])], [256, 256, 256]),
    ],
    ids=[
        "size",
        "constant",
        "product",
        "elements",
        "range",
        "broadcast",
        "flattened",
        "of three axes",
    ],
)
def test_nor_of_a_list_that_the_model_makes(nodes: list[NodeProto], numbers: list[int]) -> None:
    m = listing([*nodes, node("Cast", ["l"], ["h"], to=TensorProto.BFLOAT16)], [3], opset=17)
    m.graph.initializer.extend([weight("n", numbers, "int64"), weight("zero", 0, "int64"), weight("one", 1, "int64")])
    start = time.process_time()
    dmlc.compile(m, target="onnx").to_onnx()
    assert time.process_time() - start < QUICK


def test_nor_of_a_range_that_is_given_too_much() -> None:
    nodes = [
        node("Range", ["from", "to", "step", "many"], ["l"]),
        node("Cast", ["l"], ["f"], to=FLOAT),
        node("Add", ["x", "f"], ["y"]),
    ]
    m = model(nodes, [info("x", ["n", 3])], [info("y", None)])
    m.graph.initializer.extend(weight(name, n, "int64") for name, n in (("from", 2), ("to", LONG), ("step", 1)))
    m.graph.initializer.append(TensorProto(name="many", data_type=TensorProto.DOUBLE, dims=[1, 2, 0]))
    start = time.process_time()
    with pytest.raises(DmlcError, match="E0431"):
        dmlc.compile(m, target="onnx").to_onnx()
    assert time.process_time() - start < QUICK


def test_nor_by_a_function_that_is_called_wrongly() -> None:
    body = helper.make_node("Mul", ["a", "a"], ["b"])
    calls = [node("Twice", ["x"], ["v"], domain="mine"), node("Twice", ["x", "v"], ["h"], domain="mine")]
    m = listing(calls, [1 << 26])
    m.functions.append(helper.make_function("mine", "Twice", ["a"], ["b"], [body], [helper.make_opsetid("", 17)]))
    m.opset_import.append(helper.make_opsetid("mine", 1))
    start = time.process_time()
    with pytest.raises(DmlcError, match="has 2 operands, the function Twice has 1"):
        dmlc.compile(m, target="onnx")
    assert time.process_time() - start < QUICK


def test_nor_of_a_list_that_a_function_makes() -> None:
    body = [
        helper.make_node("Constant", [], ["k"], value_ints=[4 * LONG]),
        helper.make_node("ConstantOfShape", ["k"], ["l"]),
        helper.make_node("Mul", ["l", "l"], ["b"]),
    ]
    m = listing([node("Long", [], ["h"], domain="mine")], [3])
    m.functions.append(helper.make_function("mine", "Long", [], ["b"], body, [helper.make_opsetid("", 17)]))
    m.opset_import.append(helper.make_opsetid("mine", 1))
    start = time.process_time()
    dmlc.compile(m, target="onnx").to_onnx()
    assert time.process_time() - start < QUICK


def test_a_list_of_a_usual_length_still_is() -> None:
    """A shape that is computed with elements of a list is known."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Mul", ["s", "ones"], ["t"]),
        node("Expand", ["x", "t"], ["h"]),
        node("Mish", ["h"], ["y"]),
    ]
    m = model(nodes, [info("x", [5, 7])], [info("y", None)], [weight("ones", [1, 1], "int64")], opset=18)
    assert [str(type) for _, type in dmlc.compile(m, target="onnx").signature.outputs] == ["f32[5, 7]"]


@pytest.mark.parametrize("inside", [False, True])
def test_a_reference_to_an_attribute_of_no_function(inside: bool) -> None:
    reduction = node("ReduceSumSquare", ["w"], ["h"], axes=[0])
    reduction.attribute[0].ref_attr_name = "by"
    result = info("h", None, TensorProto.BFLOAT16)
    nodes, weights = [reduction], [TensorProto(name="w", data_type=TensorProto.BFLOAT16, dims=[2], raw_data=bytes(4))]
    if inside:
        branch = helper.make_graph([reduction], "branch", [], [result])
        nodes = [node("If", ["c"], ["h"], then_branch=branch, else_branch=branch)]
    m = model(nodes, [info("c", [], BOOL)], [result], weights, opset=10)
    with pytest.raises(
        DmlcError, match="ReduceSumSquare h: its attribute axes refers to by, but it is in no function"
    ) as caught:
        dmlc.compile(m, target="onnx").to_onnx()
    assert {d.code.id for d in caught.value.diagnostics} == {"E0431"}


@each_row(
    "nodes",
    [
        [node("ReduceMean", ["x", "first"], ["r"], keepdims=0), node("Mul", ["r", "r"], ["h"])],
        [node("Squeeze", ["x"], ["r"]), node("Concat", ["r", "r"], ["h"], axis=0)],
        [node("Gather", ["x", "zero"], ["r"]), node("Cast", ["r"], ["h"], to=TensorProto.BFLOAT16)],
        [node("Flatten", ["x"], ["f"]), node("Squeeze", ["f", "first"], ["r"]), node("Add", ["r", "r"], ["h"])],
    ],
    ids=lambda nodes: nodes[0].op_type,
)
def test_nor_of_a_tensor_whose_other_axes_go(nodes: list[NodeProto]) -> None:
    m = listing(nodes, [1, LONG, 1] if nodes[0].op_type == "Squeeze" else [1, LONG], opset=18)
    m.graph.initializer.extend([weight("zero", 0, "int64"), weight("first", [0], "int64")])
    m.graph.node.insert(0, helper.make_node("Relu", ["w"], ["x"]))
    m.graph.input[0].name = "w"
    start = time.process_time()
    try:
        dmlc.compile(m, target="onnx").to_onnx()
    except DmlcError as error:  # Mish takes no bf16 at that opset
        assert error.exit_code == 1
    assert time.process_time() - start < QUICK


def test_nor_of_what_is_wrongly_said_to_be_one() -> None:
    nodes = [node("Reshape", ["x", "s"], ["r"]), node("Cast", ["r"], ["h"], to=TensorProto.BFLOAT16)]
    m = listing(nodes, [3], opset=18)
    m.graph.initializer.append(weight("s", LONG, "int64"))
    start = time.process_time()
    with pytest.raises(DmlcError):  # a shape has one axis
        dmlc.compile(m, target="onnx").to_onnx()
    assert time.process_time() - start < QUICK


@pytest.mark.parametrize("op", ["ConstantOfShape", "Foo"])
def test_an_attribute_whose_data_does_not_fit_its_shape(op: str) -> None:
    """ONNX's checker does not count bytes of all types."""
    filled = node(op, ["s"], ["h"])
    kind = TensorProto.FLOAT8E5M2FNUZ if op == "ConstantOfShape" else TensorProto.UINT16
    data = TensorProto(data_type=kind, dims=[1, 3], raw_data=bytes(24))
    filled.attribute.append(helper.make_attribute("value", data))
    m = model([filled], [info("x", [2])], [info("h", None)], [weight("s", [2], "int64")])
    with pytest.raises(DmlcError, match=f"the attribute value of a {op} does not fit its shape") as caught:
        dmlc.compile(m, target="onnx").to_onnx()
    assert [d.code.id for d in caught.value.diagnostics] == ["E0431"]


def test_a_fill_of_nothing() -> None:
    """ConstantOfShape fills with one number; a runtime refuses another count."""
    filled = node("ConstantOfShape", ["s"], ["h"], value=helper.make_tensor("v", TensorProto.INT64, [0], []))
    m = model([filled], [info("x", [2])], [info("h", None, TensorProto.INT64)], [weight("s", [2], "int64")])
    dmlc.compile(m, target="onnx").to_onnx()


@each_row(
    ("inputs", "outputs", "text"),
    [
        ([info("q", [2])], [info("b", [2])], "has inputs in its else_branch|uses q, which nothing makes"),
        ([], [], "has 0 results in its else_branch, but names 1"),
        ([], [info("b", [2])] * 2, "has 2 results in its else_branch, but names 1"),
    ],
)
@each_row("known", [False, True])
def test_a_branch_that_does_not_fit(inputs: list[Any], outputs: list[Any], text: str, known: bool) -> None:
    body = node("Exp", ["q" if inputs else "x"], ["b"])
    branch = helper.make_graph([body], "branch", inputs, outputs)
    chosen = node("If", ["c"], ["h"], then_branch=branch, else_branch=branch)
    taken = [info("x", [2])] if known else [info("x", [2]), info("c", [], BOOL)]
    m = model([chosen], taken, [info("h", [2])], [weight("c", True, "bool")] if known else [])
    with pytest.raises(DmlcError, match=text) as caught:
        dmlc.compile(m, target="onnx").to_onnx()
    assert [d.code.id for d in caught.value.diagnostics] == ["E0431"]
