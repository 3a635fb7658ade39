"""Sizes that a node does not take: ONNX Runtime says which, at its load or in a run.

A node that does not load is a fault of the model. One that loads and fails in each run is a fault of the sizes that
the user gives, and a model that declares them itself passes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import dmlc
from tests.rows import each_row
from tests.versions import NEWEST_OPSET, ONNX_RUNTIME


def ones(*sizes: int) -> str:
    """The declaration of a weight ``w`` of ones, as ONNX's parser reads it."""
    elements = ", ".join(["1"] * math.prod(sizes))
    return f"float[{','.join(map(str, sizes))}] w = {{{elements}}}"


#: (name, sizes of x, nodes that give y, weights)
CASES: list[tuple[str, Sequence[int], str, str]] = [
    ("rest does not divide", (5, 5), "y = Reshape(x, s)", "int64[2] s = {-1, 6}"),
    ("rest divides", (4, 3), "y = Reshape(x, s)", "int64[2] s = {-1, 6}"),
    ("rest beside a copy does not divide", (3, 5), "y = Reshape(x, s)", "int64[3] s = {0, -1, 4}"),
    ("rest beside a copy divides", (3, 8), "y = Reshape(x, s)", "int64[3] s = {0, -1, 4}"),
    ("rest of nothing", (0, 5), "y = Reshape(x, s)", "int64[2] s = {-1, 6}"),
    ("copy behind the last axis", (3, 5), "y = Reshape(x, s)", "int64[3] s = {3, 5, 0}"),
    ("copy of a size", (3, 5), "y = Reshape(x, s)", "int64[2] s = {0, 5}"),
    ("copy beside another size", (3, 5), "y = Reshape(x, s)", "int64[2] s = {0, 3}"),
    ("zero that is none", (3, 5), "y = Reshape <allowzero = 1> (x, s)", "int64[2] s = {0, 5}"),
    ("zero that is one", (0, 5), "y = Reshape <allowzero = 1> (x, s)", "int64[3] s = {0, 5, 7}"),
    ("other number of elements", (3, 5), "y = Reshape(x, s)", "int64[2] s = {3, 4}"),
    ("same number of elements", (3, 4), "y = Reshape(x, s)", "int64[2] s = {2, 6}"),
    ("scalar of one element", (1, 1), "y = Reshape(x, s)", "int64[0] s = {}"),
    ("scalar of more elements", (1, 2), "y = Reshape(x, s)", "int64[0] s = {}"),
    ("cut too short", (3, 4), "h = Slice(x, one, nine) y = Reshape(h, s)",
     "int64[1] one = {2}, int64[1] nine = {9}, int64[2] s = {3, 4}"),
    ("cut to fit", (5, 4), "h = Slice(x, one, nine) y = Reshape(h, s)",
     "int64[1] one = {2}, int64[1] nine = {9}, int64[2] s = {3, 4}"),
]  # fmt: skip
CASES += [
    ("more channels than the weights take", (1, 4, 4, 4), "y = Conv(x, w)", ones(2, 3, 1, 1)),
    ("channels of the weights", (1, 3, 4, 4), "y = Conv(x, w)", ones(2, 3, 1, 1)),
    ("channels of groups", (1, 4, 4, 4), "y = Conv <group = 2> (x, w)", ones(2, 2, 1, 1)),
    ("channels of other groups", (1, 3, 4, 4), "y = Conv <group = 2> (x, w)", ones(2, 2, 1, 1)),
    (
        "convolution that is too wide",
        (1, 1, 2, 2),
        "y = Conv(x, w)",
        ones(1, 1, 4, 4),
    ),
    (
        "convolution with room",
        (1, 1, 2, 2),
        "y = Conv <pads = [1, 1, 1, 1]> (x, w)",
        ones(1, 1, 4, 4),
    ),
    (
        "dilated convolution that is too wide",
        (1, 1, 3, 3),
        "y = Conv <dilations = [3, 3]> (x, w)",
        ones(1, 1, 3, 3),
    ),
    ("more than there are", (2, 3), "y, i = TopK(x, k)", "int64[1] k = {5}"),
    ("as many as there are", (2, 5), "y, i = TopK(x, k)", "int64[1] k = {5}"),
    ("more than there are of an axis", (4, 9), "y, i = TopK <axis = 0> (x, k)", "int64[1] k = {5}"),
    ("reversed axes", (2, 3, 4), "y = Transpose(x)", ""),
    ("window too large", (1, 1, 3, 3), "y = MaxPool <kernel_shape = [5, 5]> (x)", ""),
    ("window too large for an average", (1, 1, 3, 3), "y = AveragePool <kernel_shape = [5, 5]> (x)", ""),
    ("window as large", (1, 1, 5, 5), "y = MaxPool <kernel_shape = [5, 5]> (x)", ""),
    ("window as large with pads", (1, 1, 3, 3), "y = MaxPool <kernel_shape = [5, 5], pads = [1, 1, 1, 1]> (x)", ""),
    ("window with a stride", (1, 1, 3, 3), "y = MaxPool <kernel_shape = [5, 5], strides = [3, 3]> (x)", ""),
    ("window of the same size", (1, 1, 3, 3), 'y = MaxPool <kernel_shape = [5, 5], auto_pad = "SAME_UPPER"> (x)', ""),
    ("window rounded up", (1, 1, 4, 4), "y = MaxPool <kernel_shape = [5, 5], strides = [2, 2], ceil_mode = 1> (x)", ""),
    ("dilated window", (1, 1, 4, 4), "y = MaxPool <kernel_shape = [3, 3], dilations = [3, 3]> (x)", ""),
    (
        "other input of an LSTM",
        (2, 1, 5),
        "y = LSTM <hidden_size = 1> (x, w, r)",
        "float[1,4,3] w = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, float[1,4,1] r = {1, 1, 1, 1}",
    ),
    (
        "input of an LSTM",
        (2, 1, 3),
        "y = LSTM <hidden_size = 1> (x, w, r)",
        "float[1,4,3] w = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, float[1,4,1] r = {1, 1, 1, 1}",
    ),
    (
        "other input of a GRU",
        (2, 1, 5),
        "y = GRU <hidden_size = 1> (x, w, r)",
        "float[1,3,3] w = {1, 1, 1, 1, 1, 1, 1, 1, 1}, float[1,3,1] r = {1, 1, 1}",
    ),
    (
        "other input of an RNN",
        (2, 1, 5),
        "y = RNN <hidden_size = 1> (x, w, r)",
        "float[1,1,3] w = {1, 1, 1}, float[1,1,1] r = {1}",
    ),
    ("blocks that do not divide the height", (1, 2, 3, 4), "y = SpaceToDepth <blocksize = 2> (x)", ""),
    ("blocks that do not divide the width", (1, 2, 4, 3), "y = SpaceToDepth <blocksize = 2> (x)", ""),
    ("blocks that divide", (1, 2, 4, 6), "y = SpaceToDepth <blocksize = 2> (x)", ""),
    ("channels that blocks do not divide", (1, 6, 2, 2), "y = DepthToSpace <blocksize = 2> (x)", ""),
    ("channels that are blocks", (1, 8, 2, 2), "y = DepthToSpace <blocksize = 2> (x)", ""),
    ("letter of two sizes", (2, 3), 'y = Einsum <equation = "ij,jk->ik"> (x, x)', ""),
    ("letter of one size", (3, 3), 'y = Einsum <equation = "ij,jk->ik"> (x, x)', ""),
    ("letter of size 1", (1, 3), 'y = Einsum <equation = "ij,ji->ij"> (x, x)', ""),
    ("index beyond the end", (3, 4), "y = Gather <axis = 0> (x, i)", "int64[1] i = {5}"),
    ("index at the end", (6, 4), "y = Gather <axis = 0> (x, i)", "int64[1] i = {5}"),
    ("index before the start", (3, 4), "y = Gather <axis = 1> (x, i)", "int64[2] i = {0, -5}"),
    ("index at the start", (3, 4), "y = Gather <axis = 1> (x, i)", "int64[2] i = {0, -4}"),
    ("index of nothing", (0, 4), "y = Gather <axis = 0> (x, i)", "int64 i = {0}"),
    ("index beyond the end of empty rows", (3, 0), "y = Gather <axis = 0> (x, i)", "int64[1] i = {5}"),
    ("empty batch of too wide windows", (0, 1, 3, 3), "y = MaxPool <kernel_shape = [5, 5]> (x)", ""),
    ("empty batch of blocks", (0, 2, 3, 4), "y = SpaceToDepth <blocksize = 2> (x)", ""),
    ("letter of size 0", (0, 3), 'y = Einsum <equation = "ij,jk->ik"> (x, x)', ""),
    ("pool of 4 by 1", (1, 1, 3, 3), "y = MaxPool <kernel_shape = [4, 4], strides = [1, 1]> (x)", ""),
    ("pool of 4 by 2", (1, 1, 3, 3), "y = MaxPool <kernel_shape = [4, 4], strides = [2, 2]> (x)", ""),
    ("pool of 6 by 2", (1, 1, 3, 3), "y = MaxPool <kernel_shape = [6, 6], strides = [2, 2]> (x)", ""),
    ("pool of 7 by 2", (1, 1, 3, 3), "y = MaxPool <kernel_shape = [7, 7], strides = [2, 2]> (x)", ""),
    ("pool of 8 by 3", (1, 1, 3, 3), "y = MaxPool <kernel_shape = [8, 8], strides = [3, 3]> (x)", ""),
    ("pool of 9 by 3", (1, 1, 3, 3), "y = MaxPool <kernel_shape = [9, 9], strides = [3, 3]> (x)", ""),
    (
        "empty batch of other channels",
        (0, 4, 4, 4),
        "y = Conv(x, w)",
        ones(1, 3, 3, 3),
    ),
    (
        "empty batch of too small images",
        (0, 3, 1, 1),
        "y = Conv(x, w)",
        ones(1, 3, 3, 3),
    ),
    (
        "image one too small",
        (1, 3, 2, 2),
        "y = Conv(x, w)",
        ones(1, 3, 3, 3),
    ),
]


def model(shape: str, nodes: str, weights: str, opset: int = 17) -> onnx.ModelProto:
    held = f"<{weights}>" if weights else ""
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float{shape} x) => (float y) {held} {{ {nodes} }}'
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


def verdict(made: onnx.ModelProto, sizes: Sequence[int]) -> str:
    """The last step that ONNX Runtime reaches with a model: ``loads``, ``runs`` or none."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # errors of its bindings have no common class
        return ""
    try:
        session.run(None, {"x": np.ones(sizes, np.float32)})
    except Exception:
        return "loads"
    return "runs"


def code(source: onnx.ModelProto, **options: dict[str, Sequence[int]]) -> str:
    try:
        dmlc.compile(source, target="onnx", **options)
    except dmlc.DmlcError as error:
        return error.diagnostics[0].code.id
    return ""


#: ONNX Runtime before 1.29 runs an LSTM on an input of another width.
COMPARED = [c for c in CASES if ONNX_RUNTIME >= (1, 29) or c[0] != "other input of an LSTM"]


@pytest.mark.emits_invalid("models that fail in each run, or whose sizes onnx tells otherwise than ONNX Runtime")
@each_row(("sizes", "nodes", "weights"), [c[1:] for c in COMPARED], ids=[c[0] for c in COMPARED])
@each_row("opset", [17, NEWEST_OPSET])
def test_sizes_that_no_run_takes_are_refused(sizes: Sequence[int], nodes: str, weights: str, opset: int) -> None:
    """Given ones where the node fails at all, declared ones where it does not load."""
    agrees(sizes, nodes, weights, opset)


@pytest.mark.emits_invalid("models that fail in each run, or whose sizes onnx tells otherwise than ONNX Runtime")
@each_row("opset", [5, 9])
@each_row("sizes", [(5, 2), (2, 5), (4, 4), (6, 7)])
def test_older_operators_take_the_same_sizes(sizes: Sequence[int], opset: int) -> None:
    agrees(sizes, "y, i = TopK <axis = 0, k = 5> (x)", "", opset)
    agrees(sizes, "y = Reshape(x, s)", "int64[2] s = {-1, 6}", opset)
    agrees(sizes, "y = Reshape(x, s)", "int64[2] s = {5, 2}", opset)


def agrees(sizes: Sequence[int], nodes: str, weights: str, opset: int) -> None:
    """Compare the verdicts on declared and on given sizes."""
    declared = model(f"[{','.join(map(str, sizes))}]", nodes, weights, opset)
    said = verdict(declared, sizes)
    assert code(declared) == ("" if said else "E0431")
    is_open = model(f"[{','.join('?' * len(sizes))}]", nodes, weights, opset)
    if not verdict(is_open, sizes):  # the rank alone tells
        assert code(is_open) == "E0431"
        return
    assert code(is_open) == ""
    assert code(is_open, shapes={"x": sizes}) == ("" if said == "runs" else "E0337")


def test_named_sizes_are_checked_where_they_are_bound() -> None:
    made = model("[n, 5]", "y = Reshape(x, s)", "int64[2] s = {3, -1}")
    assert [code(made, bind={"n": n}) for n in (3, 4)] == ["", "E0555"]


def test_a_failure_whatever_the_sizes_is_not_one_of_sizes() -> None:
    """Another input is given sizes: the node that fails is left to a run, as without them."""
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[?] x, float[2,3] z) => (float[?] y, float[2,4] w) '
        "<int64[2] s = {2, 4}> { y = Relu(x) w = Reshape(z, s) }"
    )
    assert code(made) == "" == code(made, shapes={"x": (3,)})


def test_a_node_that_may_never_run_is_not_refused() -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (bool c, float[?,?] x) => (float[?,?] y) '
        "<int64[2] s = {3, 4}> { y = If(c) <then_branch = t () => (float[?,?] a) { a = Reshape(x, s) }, "
        "else_branch = e () => (float[?,?] b) { b = Relu(x) }> }"
    )
    assert code(made, shapes={"x": (2, 3)}) == ""


@pytest.mark.parametrize(("sizes", "wanted"), [((2, 3, 4), "E0337"), ((2, 3), "")])
def test_a_rank_that_a_permutation_does_not_have_is_refused(sizes: Sequence[int], wanted: str) -> None:
    made = model("", "y = Transpose <perm = [1, 0]> (x)", "")
    made.graph.input[0].type.tensor_type.ClearField("shape")
    assert code(made, shapes={"x": sizes}) == wanted
    assert (verdict(made, sizes) == "runs") == (wanted == "")
