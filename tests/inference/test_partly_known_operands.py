"""Facts about results whose operands are only partly known, and about results of bodies: as precise as can be, and true
of each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import parser

from dmlc.inference.model_facts import facts_of_model
from dmlc.inference.protos import type_proto_of
from tests.rows import each_row
from tools.onnx_comparison import sizes_of

Feeds = Mapping[str, Any]


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


_SCAN_8 = (
    "z, w = Scan ('', s, x) <num_scan_inputs = 1, body = b (float[3] s_in, float[3] x_in) =>"
    " (float[3] s_out, float[q] o) { s_out = Add (s_in, x_in) o = Concat <axis = 0> (x_in, x_in) }>"
).replace("'", '"')
_IF = (
    "n = Size (x) c = Less (n, limit) y = If (c) <then_branch = t () => (float[a, b] p) { p = Unsqueeze (x, at) },"
    " else_branch = e () => (float[a] q) { q = Relu (x) }>"
)
_MAP = (
    "s = SequenceConstruct (x, x) r, t = SequenceMap (s, v) <body = b (float[p, q] i, float[k] j) =>"
    " (float[p, q] o, float[m] u) { o = Transpose <perm = [1, 0]> (i) u = Concat <axis = 0> (j, j) }>"
    " at = Constant <value = int64 {1}> () y = SequenceAt (r, at) z = SequenceAt (t, at)"
)
_SIDE = (
    "half = Constant <value = float {{0.5}}> () n = Constant <value_ints = [1]> () s = Shape (x) a = Gather (s, n)"
    " f = Cast <to = 1> (a) r = {root} i = Cast <to = 7> (r) t = Concat <axis = 0> (i, i) y = ConstantOfShape (t)"
)
_AT = "at = Constant <value_ints = {at}> () "
_HOT = (
    "at = Constant <value_ints = {at}> () two = Constant <value = int64 {{2}}> () v = Constant <value_ints = [1, 3]> ()"
    " h = OneHot <axis = {axis}> (at, two, v) e = Constant <value_ints = [-1]> () r = Reshape (h, e) y = Tile (x, r)"
)

#: Opsets, inputs, nodes; the shapes of results; feeds of several runs.
CASES: dict[str, tuple[str, str, str, dict[str, list[int | None]], list[Feeds]]] = {
    "reduction over unknown axes": (
        '"" : 18', "float[1, 3, 1] x, int64[1] a", "y = ReduceSum <keepdims = 1> (x, a)", {"y": [1, None, 1]},
        [{"x": zeros(1, 3, 1), "a": ints(axis)} for axis in range(3)],
    ),
    "transform along an unknown axis": (
        '"" : 20', "float[2, 5, 4, 2] x, int64 a", 'y = DFT (x, "", a)', {"y": [2, 5, 4, 2]},
        [{"x": zeros(2, 5, 4, 2), "a": np.array(axis)} for axis in (1, 2)],
    ),
    "half of a transform along an unknown axis": (
        '"" : 20', "float[2, 5, 4, 1] x, int64 a", 'y = DFT <onesided = 1> (x, "", a)', {"y": [None, None, None, 2]},
        [{"x": zeros(2, 5, 4, 1), "a": np.array(axis)} for axis in (1, 2)],
    ),
    "transform of another length along an unknown axis": (
        '"" : 20', "float[2, 5, 4, 2] x, int64 n, int64 a", "y = DFT (x, n, a)", {"y": [None, None, None, 2]},
        [{"x": zeros(2, 5, 4, 2), "n": np.array(3), "a": np.array(axis)} for axis in (1, 2)],
    ),
    "image of unknown blocks": (
        '"" : 18', "float[3, 12, 4] x, int64[2] s, int64[2] b", "y = Col2Im (x, s, b)", {"y": [3, None, None, None]},
        [{"x": zeros(3, 12, 4), "s": s, "b": b} for s, b in ((ints(3, 2), ints(2, 1)), (ints(4, 3), ints(1, 3)))],
    ),
    "table of labels": (
        '"" : 20, "ai.onnx.ml" : 4', "int64[2, 3] x",
        "y = ai.onnx.ml.LabelEncoder <keys_tensor = int64[2] {1, 2}, values_tensor = float[2] {3, 4},"
        " default_tensor = float[1] {0}> (x)",
        {"y": [2, 3]}, [{"x": np.ones((2, 3), np.int64)}],
    ),
    "scan with batches": (
        '"" : 8', "float[2, 3] s, float[2, 5, 3] x", _SCAN_8, {"z": [2, 3], "w": [2, 5, 6]},
        [{"s": zeros(2, 3), "x": zeros(2, 5, 3)}],
    ),
    "branch that is taken": (
        '"" : 18', "float[4] x", f"limit = Constant <value = int64 {{9}}> () at = Constant <value_ints = [0]> () {_IF}",
        {"y": [1, 4]}, [{"x": zeros(4)}],
    ),
    "other branch that is taken": (
        '"" : 18', "float[4] x", f"limit = Constant <value = int64 {{3}}> () at = Constant <value_ints = [0]> () {_IF}",
        {"y": [4]}, [{"x": zeros(4)}],
    ),
    "side of a square of tokens": (
        '"" : 17', "float[2, 16, 3] x", _SIDE.format(root="Pow (f, half)"), {"y": [4, 4]}, [{"x": zeros(2, 16, 3)}],
    ),
    "root of a square of tokens": (
        '"" : 17', "float[2, 25, 3] x", _SIDE.format(root="Sqrt (f)"), {"y": [5, 5]}, [{"x": zeros(2, 25, 3)}],
    ),
    "side of no square": (
        '"" : 17', "float[2, 15, 3] x", _SIDE.format(root="Pow (f, half)"), {"y": [None, None]},
        [{"x": zeros(2, 15, 3)}],
    ),
    "root of no square": (
        '"" : 17', "float[2, 8, 3] x", _SIDE.format(root="Sqrt (f)"), {"y": [None, None]}, [{"x": zeros(2, 8, 3)}],
    ),
    "repetitions along an axis": (
        '"" : 17', "float[2, 4] x", _HOT.format(at="[1]", axis=-1), {"y": [2, 12]}, [{"x": zeros(2, 4)}],
    ),
    "repetitions along axes from behind": (
        '"" : 17', "float[2, 4] x", _HOT.format(at="[-2]", axis=0), {"y": [6, 4]}, [{"x": zeros(2, 4)}],
    ),
    "repetitions along an axis that does not exist": (
        '"" : 17', "float[2, 4] x", _HOT.format(at="[5]", axis=0), {"y": [2, 4]}, [{"x": zeros(2, 4)}],
    ),
    "repetitions along an unknown axis": (
        '"" : 17', "float[2, 4] x, int64[1] at", _HOT.replace(_AT, "").format(axis=0),
        {"y": [None, None]}, [{"x": zeros(2, 4), "at": ints(at)} for at in (0, 1, -1)],
    ),
    "items of a mapped sequence": (
        '"" : 17', "float[2, 3] x, float[5] v", _MAP, {"y": [3, 2], "z": [10]}, [{"x": zeros(2, 3), "v": zeros(5)}],
    ),
}  # fmt: skip


@each_row("name", CASES)
def test_shapes_are_known_and_hold_at_run_time(name: str) -> None:
    opsets, inputs, nodes, expected, runs = CASES[name]
    outputs = ", ".join(f"float[] {output}" for output in expected)
    model = parser.parse_model(f"<ir_version: 8, opset_import: [{opsets}]> g ({inputs}) => ({outputs}) {{ {nodes} }}")
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    known = facts_of_model(model)
    assert {output: sizes_of(type_proto_of(known.facts.of[output])) for output in expected} == expected
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for feeds in runs:
        for output, array in zip(expected, session.run(list(expected), feeds), strict=True):
            assert known.facts.of[output].element == onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            assert len(array.shape) == len(expected[output])
            assert all(size in (None, n) for size, n in zip(expected[output], array.shape, strict=True))


def test_an_empty_optional_has_its_declared_type() -> None:
    text = '<ir_version: 8, opset_import: ["" : 16]> g () => (optional(seq(float[5])) y) {'
    model = parser.parse_model(text + " y = Optional <type: type_proto = seq(float[5])> () }")
    assert type_proto_of(facts_of_model(model).facts.of["y"]) == model.graph.output[0].type


def test_a_made_up_size_is_not_a_declared_one() -> None:
    """Names of dims that the facts make up are names that the model does not use, in its bodies either."""
    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[?0, ?2] x, bool[k] m, bool c)
      => (float[a] y, float[b] z) { y = Compress (x, m) w = Compress (x, m)
        z = If (c) <then_branch = t () => (float[?1] p) { p = Compress (x, m) },
                    else_branch = e () => (float[?3] q) { q = Compress (x, m) }> }"""
    model = parser.parse_model(text.replace("?", "NUMBER"))
    for infos in (model.graph.input, *[a.g.output for a in model.graph.node[2].attribute]):
        for size in [size for info in infos for size in info.type.tensor_type.shape.dim]:
            size.dim_param = size.dim_param.replace("NUMBER", "?")
    known = facts_of_model(model).facts
    made = {str(size) for name in ("y", "w", "z") for size in known.of[name].shape or ()}
    assert made
    assert not made & {"?0", "?1", "?2", "?3"}


def test_a_node_with_graphs_is_typed_by_its_rule() -> None:
    domain = "ai.onnx.preview"
    graph = "s () => (float[] o) { o = Constant <value = float {1}> () }"
    text = f'<ir_version: 10, opset_import: ["" : 23, "{domain}" : 1]> g (float[2, 4, N, 8] q, float[2, 4, M, 8] k,'
    text += f" float[2, 4, M, 6] v) => (float[] y) {{ y = {domain}.FlexAttention <score_mod = {graph}> (q, k, v) }}"
    fact = facts_of_model(parser.parse_model(text)).facts.of["y"]
    assert fact.element == onnx.TensorProto.FLOAT
    assert [str(size) for size in fact.shape or ()] == ["2", "4", "N", "6"]
