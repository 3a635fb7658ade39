"""Types of the items of sequences and optionals: never another than items have at run time."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TypeProto, helper
from onnx.parser import parse_model

import dmlc
from dmlc.inference import Fact, Query, infer
from dmlc.inference.model_facts import facts_of_model
from dmlc.ir import DimTable, symbol
from dmlc.onnx_schema.declared import common
from tests.inference.infer_helpers import new_dims, walk

OPSETS = {"": 18}
Chain = tuple[list[onnx.NodeProto], list[str]]


def chain(rng: random.Random) -> Chain:
    """Nodes on the inputs a, b and c that make and change sequences, and the names of the tensors they give."""
    nodes: list[onnx.NodeProto] = []
    sequences: list[str] = []
    tensors = ["a", "b", "c"]

    def add(op: str, *inputs: str, **attributes: int) -> str:
        nodes.append(helper.make_node(op, list(inputs), [f"v{len(nodes)}"], **attributes))
        return f"v{len(nodes) - 1}"

    makers: list[Callable[[], str]] = [
        lambda: add("SequenceConstruct", *rng.choices(tensors, k=rng.randint(1, 3))),
        lambda: add("SequenceEmpty"),
        lambda: add("SequenceInsert", rng.choice(sequences), rng.choice(tensors)),
        lambda: add("SequenceErase", rng.choice(sequences)),
        lambda: add("SplitToSequence", rng.choice(tensors), axis=rng.choice([0, 1, -1]), keepdims=rng.randint(0, 1)),
        lambda: add(
            "SplitToSequence", rng.choice(tensors), rng.choice(["one", "two", "parts"]), axis=rng.choice([0, 1])
        ),
        lambda: add("Identity", rng.choice(sequences)),
    ]
    readers: list[Callable[[], str]] = [
        lambda: add("SequenceAt", rng.choice(sequences), rng.choice(["first", "last"])),
        lambda: add("ConcatFromSequence", rng.choice(sequences), axis=rng.choice([0, -1]), new_axis=rng.randint(0, 1)),
    ]
    for _ in range(rng.randint(1, 6)):
        sequences.append((rng.choice(makers) if sequences else rng.choice(makers[:2]))())
        if rng.random() < 0.7:
            tensors.append(rng.choice(readers)())
    return nodes, tensors[3:]


SIZES = {"a": (2, 3), "b": (2, 3), "c": (4, 3)}
WEIGHTS = {
    "one": np.array(1), "two": np.array(2), "parts": np.array([1, 1]), "first": np.array(0), "last": np.array(-1),
}  # fmt: skip


def outcome(nodes: list[onnx.NodeProto], name: str) -> tuple[int, ...] | None:
    """The shape that ONNX Runtime makes; None where the node cannot run."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "chain",
        [value(k, onnx.TensorProto.FLOAT, s) for k, s in SIZES.items()],
        [value(name, onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(data, k) for k, data in WEIGHTS.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        (found,) = session.run([name], {k: np.zeros(s, np.float32) for k, s in SIZES.items()})
    except Exception:
        return None
    return tuple(found.shape)


@pytest.mark.parametrize("is_open", [False, True], ids=["sizes known", "sizes open"])
def test_items_have_the_inferred_shape(is_open: bool) -> None:
    ranks = seen = 0
    for seed in range(200):
        nodes, tensors = chain(random.Random(seed))
        facts = {k: Fact(1, (symbol(f"{k}0"), s[1]) if is_open else s) for k, s in SIZES.items()}
        facts |= {k: Fact(7, data.shape, data.astype(object)) for k, data in WEIGHTS.items()}
        walk(nodes, facts, OPSETS, DimTable(least=0))
        for name in tensors:
            shape, real = facts[name].shape, outcome(nodes, name)
            assert facts[name].element in (0, 1)
            if real is None:
                continue
            seen += 1
            if shape is not None:
                ranks += 1
                assert len(shape) == len(real), (seed, name)
                assert all(not isinstance(s, int) or s == r for s, r in zip(shape, real, strict=True)), (seed, name)
    assert seen > 100
    assert ranks > seen / 3


def told(op: str, *operands: Fact, **attributes: int) -> Fact:
    query = Query(op, operands, opset=18, attributes=attributes, dims=DimTable(least=0), new_dim=new_dims())
    return infer(query)[0]


def test_items_that_differ_keep_what_they_share() -> None:
    index, n = Fact(7, ()), symbol("N")
    cases = [
        ([Fact(1, (2, 3)), Fact(1, (2, 3))], [2, 3]),
        ([Fact(1, (2, 3)), Fact(1, (4, 3))], [None, 3]),
        ([Fact(1, (n, 3)), Fact(1, (n, 3))], [None, 3]),
        ([Fact(1, (2, 3)), Fact(1, (3,))], None),
        ([Fact(1, (2, 3)), Fact(1)], None),
        ([Fact(1, (2, 3)), Fact()], None),
        ([Fact(), Fact(1, (2, 3))], None),
    ]
    for items, want in cases:
        sequence = told("SequenceConstruct", *items)
        found = told("SequenceAt", sequence, index)
        assert found.element == 1
        assert (found.shape and [s if isinstance(s, int) else None for s in found.shape]) == want
        again = told("SequenceAt", told("SequenceErase", sequence), index)
        assert again.element == 1
        assert again.rank == found.rank


def test_common_type_is_the_same_both_ways() -> None:
    def tensor(shape: list[int | str | None] | None, kind: int = 1) -> TypeProto:
        return helper.make_tensor_type_proto(kind, shape)

    def sequence(item: TypeProto) -> TypeProto:
        return helper.make_sequence_type_proto(item)

    rows = [
        (tensor([2, 3]), tensor([2, 4]), tensor([2, None])),
        (tensor(["N", 3]), tensor(["N", 3]), tensor(["N", 3])),
        (tensor(["N", 3]), tensor(["M", 3]), tensor([None, 3])),
        (tensor([]), tensor(None), tensor(None)),
        (tensor([2]), tensor([2, 3]), tensor(None)),
        (tensor([2]), tensor([2], 7), None),
        (sequence(tensor([2])), sequence(tensor([3])), sequence(tensor([None]))),
        (sequence(tensor([2])), sequence(tensor([2], 7)), None),
        (sequence(tensor([2])), tensor([2]), None),
        (TypeProto(), tensor([2]), None),
    ]
    for a, b, want in rows:
        assert common(a, b) == want
        assert common(b, a) == want


def test_branches_that_give_sequences_of_other_items() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (bool c, float[2, 3] x, float[4, 3] y) => (float[?, ?] z)
        <int64 i = {0}> {
        h = If(c) <then_branch = t () => (seq(float[2, 3]) p) { p = SequenceConstruct(x, x) },
                   else_branch = e () => (seq(float[4, 3]) q) { q = SequenceConstruct(y) }>
        a = SequenceAt(h, i)  z = Abs(a) }"""
    model = parse_model(text)
    shape = facts_of_model(model).facts.of["a"].shape
    assert shape is not None
    assert [isinstance(size, int) for size in shape] == [False, True]
    names = {info.name: info.type for info in dmlc.compile(parse_model(text), target="onnx").to_onnx().graph.output}
    assert len(names["z"].tensor_type.shape.dim) == 2


def test_declared_items_are_not_believed() -> None:
    """ONNX Runtime takes a sequence of any shapes, whatever is declared."""
    text = """<ir_version: 8, opset_import: ["": 18]> g (seq(float[3]) s) => (int64[?] z) <int64 i = {0}> {
        a = SequenceAt(s, i)  z = Shape(a) }"""
    made = dmlc.compile(parse_model(text), target="onnx").to_onnx()
    assert [node.op_type for node in made.graph.node] == ["SequenceAt", "Shape"]
