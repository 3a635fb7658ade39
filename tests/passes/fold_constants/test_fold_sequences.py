"""Sequences whose elements are known while compiling become the tensors in them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import dmlc
from tests.kit import run
from tests.rows import each_row
from tests.versions import needs_onnx_runtime

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
FEEDS = {"x": X - 7, "z": X * 10, "place": np.array(1, np.int64)}


def made(body: str, *, result: str = "float[]", sizes: str = "2, 3, 4") -> onnx.ModelProto:
    """A model of ``body`` with ``x``, ``y`` and the integers ``zero`` to ``three``, ``last`` and ``far``."""
    numbers = {"zero": 0, "one": 1, "two": 2, "three": 3, "last": -1, "far": 9}
    constants = "\n".join(f"{name} = Constant <value_int = {value}> ()" for name, value in numbers.items())
    return onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        made (float[{sizes}] x, float[2, 3, 4] z, int64 place) => ({result} y) {{ {constants} {body} }}
    """)


LENGTHS = "n = Constant <value_ints = [1, 3]> () s = SplitToSequence <axis = 2> (x, n)"
LIST = "s = SequenceConstruct (x, z)"
KNOWN = {
    "a part of given length": f"{LENGTHS} y = SequenceAt (s, one)",
    "a part counted from the end": f"{LENGTHS} y = SequenceAt (s, last)",
    "the last part is smaller": "s = SplitToSequence <axis = -2> (x, two) y = SequenceAt (s, one)",
    "parts of one": "s = SplitToSequence <axis = 1> (x) y = SequenceAt (s, two)",
    "parts without their axis": "s = SplitToSequence <axis = 1, keepdims = 0> (x) y = SequenceAt (s, two)",
    "a list": f"{LIST} y = SequenceAt (s, one)",
    "concatenation": f"{LIST} y = ConcatFromSequence <axis = -1> (s)",
    "stack": f"{LIST} y = ConcatFromSequence <axis = -1, new_axis = 1> (s)",
    "concatenated parts": f"{LENGTHS} a = SequenceErase (s, zero) y = ConcatFromSequence <axis = 1> (a)",
    "insertion at the end": "e = SequenceEmpty () a = SequenceInsert (e, x) b = SequenceInsert (a, z)"
    " y = ConcatFromSequence <axis = 0> (b)",
    "insertion in front": f"{LIST} r = Relu (x) a = SequenceInsert (s, r, zero) y = SequenceAt (a, one)",
    "insertion before the last": f"{LIST} r = Relu (x) a = SequenceInsert (s, r, last) y = SequenceAt (a, one)",
    "erasure": f"{LIST} a = SequenceErase (s, zero) y = SequenceAt (a, zero)",
    "erasure at the end": f"{LIST} a = SequenceErase (s) y = SequenceAt (a, last)",
}


@each_row("name", KNOWN)
def test_known_elements_need_no_sequence(name: str) -> None:
    model = made(KNOWN[name])
    program = dmlc.compile(model, target="onnx")
    assert not [n.op_type for n in program.to_onnx().graph.node if "Sequence" in n.op_type]
    np.testing.assert_array_equal(program.run(FEEDS)["y"], run(model, FEEDS)["y"])


def test_parts_are_one_split() -> None:
    model = made(f"{LENGTHS} a = SequenceAt (s, zero) b = SequenceAt (s, one) y = Add (a, b)")
    assert [n.op_type for n in dmlc.compile(model, target="onnx").to_onnx().graph.node] == ["Split", "Add"]


def test_length_is_a_constant() -> None:
    model = made("s = SplitToSequence <axis = 1> (x, two) y = SequenceLength (s)", result="int64")
    program = dmlc.compile(model, target="onnx")
    assert int(program.run(FEEDS)["y"]) == 2


KEPT = {
    "position that is fed": made(f"{LIST} y = SequenceAt (s, place)"),
    "position out of range": made(f"{LIST} y = SequenceAt (s, far)"),
    "insertion at a position that is fed": made(f"{LIST} a = SequenceInsert (s, x, place) y = SequenceAt (a, zero)"),
    "insertion out of range": made(f"{LIST} a = SequenceInsert (s, x, far) y = SequenceAt (a, zero)"),
    "parts of an axis of open size": made(
        "s = SplitToSequence <axis = 1> (x, two) y = SequenceAt (s, one)", sizes="2, N, 4"
    ),
    "length of parts that is fed": made("s = SplitToSequence <axis = 1> (x, place) y = SequenceAt (s, one)"),
    "lengths of another sum": made(
        "n = Constant <value_ints = [1, 1]> () s = SplitToSequence <axis = 1> (x, n) y = SequenceAt (s, one)"
    ),
    "a negative length": made(
        "n = Constant <value_ints = [4, -1]> () s = SplitToSequence <axis = 1> (x, n) y = SequenceAt (s, zero)"
    ),
    "parts of a tensor of unknown rank": made(
        "s = SplitToSequence <axis = 1> (x, two) y = SequenceAt (s, one)", sizes=""
    ),
    "concatenation of tensors of unknown rank": made(
        "s = SequenceConstruct (x, x) y = ConcatFromSequence <axis = 0> (s)", sizes=""
    ),
    "a sequence of another operator": made(
        f"{LIST} o = Optional (s) q = OptionalGetElement (o) y = SequenceAt (q, one)"
    ),
    "parts of no size": made("s = SplitToSequence <axis = 1> (x, zero) y = SequenceAt (s, one)"),
    "keepdims beside a length, which ONNX ignores and ONNX Runtime does not": made(
        "s = SplitToSequence <axis = 1, keepdims = 0> (x, one) y = SequenceAt (s, zero)"
    ),
    "nothing to concatenate": made("s = SequenceEmpty () y = ConcatFromSequence <axis = 0> (s)"),
}
NO_SIZE = needs_onnx_runtime(1, 32, "divides by the size of the parts, which ends the process")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=NO_SIZE) if name == "parts of no size" else name for name in KEPT]
)
def test_unknown_elements_stay_in_their_sequence(name: str) -> None:
    nodes = dmlc.compile(KEPT[name], target="onnx").to_onnx().graph.node
    assert any("Sequence" in node.op_type for node in nodes)
