"""Outputs of graphs inside nodes: declared with the shape that is known, as ONNX Runtime's Scan needs."""

from __future__ import annotations

import contextlib

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.parser import parse_model

import dmlc
from tests.rows import each_row

TARGETS = ("onnx", "cpu", "directml")
#: The nodes of a body that give the value r from outer values, whose shape ONNX Runtime may not infer.
BODIES = {
    "item of a sequence": "q = SequenceConstruct (x, x)  r = SequenceAt (q, zero)",
    "item of a longer sequence": "p = SequenceConstruct (x)  q = SequenceInsert (p, x)  r = SequenceAt (q, zero)",
    "item of a shorter sequence": "p = SequenceConstruct (x, x)  q = SequenceErase (p)  r = SequenceAt (q, zero)",
    "part": "q = SplitToSequence <axis = 1> (x, one)  r = SequenceAt (q, zero)",
    "joined": "q = SequenceConstruct (x, x)  r = ConcatFromSequence <axis = 0> (q)",
    "joined on a new axis": "q = SequenceConstruct (x, x)  r = ConcatFromSequence <axis = -1, new_axis = 1> (q)",
    "arithmetic": "q = SequenceConstruct (x, x)  p = SequenceAt (q, zero)  r = Add (p, x)",
    "rest of a computed shape": """n = Shape (x)  f = Gather (n, first)  t = Concat <axis = 0> (f, rest)
        r = Reshape (x, t)""",
    "fed sizes": "r = Reshape (x, s)",
    "fed sizes of an expand": "r = Expand (x, e)",
}
NODES = {
    "Scan": """y = Scan (items) <body: graph = b (float i) => (TYPE r) { BODY }, num_scan_inputs: int = 1,
        scan_output_directions: ints = [1]>""",
    "Loop": """y = Loop (count, true) <body: graph = b (int64 i, bool c) => (bool o, TYPE r) {
        o = Identity (c)  BODY }>""",
    "If": """y = If (choice) <then_branch: graph = t () => (TYPE r) { BODY },
        else_branch: graph = u () => (TYPE l) { l = Neg (x) }>""",
}


def model(node: str, body: str, declared: str, opset: int) -> onnx.ModelProto:
    inner = NODES[node].replace("BODY", BODIES[body]).replace("TYPE", declared)
    return parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[N, 3, M] x, int64[2] s, int64[4] e, bool choice) => ({declared} y)
        <float[2] items = {{1, 2}}, int64 zero = {{0}}, int64 one = {{1}}, int64[1] first = {{0}},
         int64[1] rest = {{-1}}, int64 count = {{2}}, bool true = {{1}}> {{ {inner} }}"""
    )


def results(m: onnx.ModelProto, x: np.ndarray, optimised: bool = True) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(m.SerializeToString(), options, ["CPUExecutionProvider"])
    feeds = {"x": x, "s": np.array([6, -1]), "e": np.array([2, 1, 1, 1]), "choice": np.array(True)}
    names = {i.name for i in session.get_inputs()}
    found: np.ndarray = session.run(None, {k: v for k, v in feeds.items() if k in names})[0]
    return found


def body_outputs(m: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    graphs = [a.g for n in m.graph.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH]
    return [info for graph in graphs for info in graph.output]


OPSETS = (13, 17, 21)


@each_row("body", BODIES)
@pytest.mark.parametrize("node", NODES)
def test_known_shapes_are_declared(node: str, body: str) -> None:
    """The opsets take turns, so that each meets each node and each body."""
    opset = OPSETS[([*NODES].index(node) + [*BODIES].index(body)) % 3]
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    source = model(node, body, "float[]", opset)
    source.graph.output[0].type.tensor_type.ClearField("shape")
    for a in source.graph.node[0].attribute:
        if a.type == onnx.AttributeProto.GRAPH:
            for info in a.g.output:
                info.type.tensor_type.ClearField("shape")
    expected = {}
    for optimised in (True, False):
        with contextlib.suppress(Exception):  # ONNX Runtime does not infer the shape in the source
            expected[optimised] = results(source, x, optimised)
    for number, target in enumerate(TARGETS, [*NODES].index(node)):
        made = dmlc.compile(source, target=target, opset=(None, opset)[number % 2]).to_onnx()
        infos = body_outputs(made)
        assert infos, "the body went away"
        assert all(info.type.tensor_type.HasField("shape") for info in infos), target
        for optimised in (True, False):
            found = results(made, x, optimised)
            assert found.shape[-1] >= 1
            np.testing.assert_array_equal(found, expected.get(optimised, found))


def test_declared_shapes_stay() -> None:
    source = model("Scan", "fed sizes", "float[A, B]", 17)
    infos = body_outputs(dmlc.compile(source, target="onnx").to_onnx())
    assert [[d.dim_param for d in i.type.tensor_type.shape.dim] for i in infos] == [["A", "B"]]


def test_a_shape_that_only_a_function_gives() -> None:
    source = parse_model(
        """<ir_version: 10, opset_import: ["": 20, "test.fn": 1]>
        g (float[3] x) => (float[2, 3] y) <float[2] items = {1, 2}, int64 zero = {0}>
        { y = Scan (items) <body: graph = b (float i) => (float[] r) { r = test.fn.First (x, zero) },
          num_scan_inputs: int = 1> }
        <domain: "test.fn", opset_import: ["": 20]>
        First (v, k) => (w) { q = SequenceConstruct (v, v)  p = Identity (q)  a = SequenceAt (p, k)  w = Add (a, a) }"""
    )
    source.graph.node[0].attribute[0].g.output[0].type.tensor_type.ClearField("shape")
    for target in TARGETS:
        found = results(dmlc.compile(source, target=target).to_onnx(), np.ones(3, np.float32))
        np.testing.assert_array_equal(found, np.full((2, 3), 2, np.float32))
