"""A moved node gives the numbers that it gave: both forms are run on ONNX Runtime, each at its own opset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from dmlc.onnx_schema.moves.draft import KnownValues
from dmlc.onnx_schema.versions import ROWS, Moved, move
from tests import kit
from tests.rows import each_row

RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, 4, 6, 6)).astype(np.float32)
M = RNG.standard_normal((3, 5)).astype(np.float32)


@dataclass
class Case:
    """One node at opset ``have``. ``data`` are its inputs by name; those of ``constants`` are initializers."""

    op: str
    have: int
    want: int
    inputs: dict[str, Any]
    constants: tuple[str, ...] = ()
    outputs: int = 1
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def node(self) -> NodeProto:
        names = [name if value is not None else "" for name, value in self.inputs.items()]
        return helper.make_node(self.op, names, [f"o{i}" for i in range(self.outputs)], **self.attributes)

    @property
    def held(self) -> list[str]:
        return [name for name in self.constants if self.inputs[name] is not None]

    @property
    def given(self) -> dict[str, np.ndarray]:
        return {name: np.asarray(value) for name, value in self.inputs.items() if value is not None}

    def move(self) -> Moved:
        held = {name: self.given[name] for name in self.held}
        types = {name: tensor_type(array) for name, array in self.given.items()}
        moved = move(self.node, self.have, self.want, fresh(), KnownValues(held.get, types.get))
        assert moved is not None
        return moved

    def run(self, nodes: list[NodeProto], weights: list[TensorProto], opset: int) -> list[np.ndarray]:
        feeds = {name: array for name, array in self.given.items() if name not in self.held}
        held = [numpy_helper.from_array(self.given[name], name) for name in self.held]
        inputs = [helper.make_value_info(name, tensor_type(array)) for name, array in feeds.items()]
        outputs = [helper.make_empty_tensor_value_info(f"o{i}") for i in range(self.outputs)]
        graph = helper.make_graph(nodes, "m", inputs, outputs, [*held, *weights])
        return session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), feeds)


def fresh() -> Callable[[str], str]:
    numbers = count()
    return lambda base: f"made_{base}_{next(numbers)}"


def tensor_type(array: np.ndarray) -> Any:
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def session(model: ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return list(kit.run(model, feeds).values())


def case(
    op: str,
    have: int,
    want: int,
    *names: str,
    outputs: int = 1,
    attributes: dict[str, Any] | None = None,
    **inputs: Any,
) -> Any:
    made = Case(op, have, want, inputs, names, outputs, attributes or {})
    said = "-".join(f"{k}={v}" for k, v in made.attributes.items())
    return pytest.param(made, id=f"{op}-{have}-{want}-{said}".replace(" ", ""))


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


_COORDINATES = "coordinate_transformation_mode"
ONES = np.ones(4, np.float32)
REDUCTIONS = [
    case(op, have, want, *names, x=np.abs(X), **axes, attributes={"keepdims": 0, **attributes})
    for op in sorted({op for op, since in ROWS if op.startswith("Reduce") and since > 11})
    for since in [13 if op == "ReduceSum" else 18]
    for have, want, names, axes, attributes in [
        (7, 21, (), {}, {"axes": [1, 2]}),
        (7, 21, (), {}, {}),
        (11, since, (), {}, {"axes": [-1]}),
        (21, 11, ("axes",), {"axes": i64(1, -1)}, {}),
        (21, 11, (), {}, {}),
        (since, since - 1, ("axes",), {"axes": i64(1, -1)}, {"noop_with_empty_axes": 1}),
        (since, since - 1, ("axes",), {"axes": i64()}, {"noop_with_empty_axes": 0}),
    ]
]
RESIZES = [
    case("Upsample", have, want, x=X, attributes={"mode": mode, "scales": scales})
    for have, want in ((7, 9), (7, 10), (7, 11), (8, 21))
    for mode, scales in (("nearest", [1.0, 1.0, 2.0, 2.5]), ("linear", [1.0, 1.0, 2.0, 3.0]))
] + [
    case(op, have, want, "scales", x=X, scales=f32(1, 1, *scales), attributes={"mode": mode})
    for op, have, want in (
        ("Upsample", 9, 21), ("Resize", 10, 11), ("Resize", 10, 21),
    )
    for mode in ("nearest", "linear")
    for scales in ((2.0, 1.5), (0.6, 0.5))
    if min(scales) > 1 or (op == "Resize" and want > 10)
] + [
    case("Resize", have, want, "r", "s", x=X, r=r, s=f32(1, 1, *s), attributes=a)
    for have, want, r in ((11, 21, f32()), (13, 11, None), (21, 11, None))
    for s in ((2.0, 1.5),)
    for a in (
        {_COORDINATES: "asymmetric", "nearest_mode": "floor"},
        {_COORDINATES: "asymmetric", "mode": "linear"},
    )
] + [
    case("Resize", 11, 21, "r", "s", x=X, r=f32(), s=f32(), n=i64(2, 4, 9, 3), attributes={"mode": "cubic"}),
    case("Resize", 13, 11, "n", x=X, r=None, s=None, n=i64(2, 4, 9, 3), attributes={"mode": "linear"}),
    case("Resize", 18, 13, "s", x=X, r=None, s=f32(2.0, 1.5), attributes={"axes": [2, 3], "mode": "linear"}),
    case("Resize", 18, 19, "s", x=X, r=None, s=f32(1, 1, 0.6, 1.5), attributes={"mode": "linear"}),
]  # fmt: skip
LISTS = [
    case("Squeeze", 7, 21, x=X[:1, :, :1], attributes={"axes": [0, 2]}),
    case("Squeeze", 11, 13, x=X[:1]),
    case("Squeeze", 21, 11, "axes", x=X[:1, :, :1], axes=i64(0, -2)),
    case("Unsqueeze", 7, 21, x=X, attributes={"axes": [0, 2]}),
    case("Unsqueeze", 21, 11, "axes", x=X, axes=i64(0, -1)),
    case("Split", 7, 21, x=X, outputs=2, attributes={"axis": 1, "split": [1, 3]}),
    case("Split", 7, 21, x=X, outputs=2, attributes={"axis": 1}),
    case("Split", 21, 11, "split", x=X, split=i64(1, 3), outputs=2, attributes={"axis": -3}),
    case("Split", 18, 13, x=X[..., :5].copy(), outputs=3, attributes={"axis": 3, "num_outputs": 3}),
    case("Split", 18, 11, x=X, outputs=3, attributes={"axis": 3, "num_outputs": 3}),
    case("TopK", 7, 21, x=X, outputs=2, attributes={"k": 3, "axis": 2}),
    case("Slice", 7, 21, x=X, attributes={"starts": [1, -3], "ends": [9, -1], "axes": [1, 3]}),
    case("Slice", 7, 13, x=X, attributes={"starts": [1], "ends": [2]}),
]
PADS = [
    case("Pad", 7, 21, x=M, attributes={"pads": [1, 0, 0, 2]}),
    case("Pad", 7, 21, x=M, attributes={"pads": [1, -1, 0, 2], "value": 1.5}),
    case("Pad", 7, 21, x=M, attributes={"pads": [1, 0, 0, 2], "mode": "reflect"}),
    case("Pad", 21, 11, "p", "v", x=M, p=i64(1, 0, 0, 2), v=np.float32(0.1)),
    case("Pad", 21, 13, "p", "a", x=M, p=i64(1, 2), v=None, a=i64(-1)),
    case("Pad", 21, 11, "p", "a", x=M, p=i64(1, 2), v=None, a=i64(-1)),
]
INFINITE = f32(-np.inf, -2, -0.0, 0.5, 3, np.inf, np.nan)
CLIPS = [
    case("Clip", 7, 21, x=INFINITE, attributes={"min": -0.3}),
    case("Clip", 7, 21, x=INFINITE, attributes={"min": -0.3, "max": 0.1}),
    case("Clip", 7, 21, x=INFINITE),
]
NORMS = [
    case("BatchNormalization", have, want, x=X, s=ONES * 2, b=ONES, m=ONES * 0.1, v=ONES * 3, attributes=a)
    for have, want, a in (
        (7, 21, {"spatial": 1}), (7, 9, {}), (9, 15, {"epsilon": 0.1}), (15, 11, {"training_mode": 0}),
        (14, 11, {"momentum": 0.5}),
    )
] + [
    case("MeanVarianceNormalization", 9, 21, x=X, attributes=a) for a in ({}, {"axes": [1]})
] + [
    case("Dropout", 7, 21, x=X, attributes={"ratio": 0.3}),
    case("Dropout", 10, 12, x=X),
    case("Dropout", 21, 11, "r", x=X, r=np.float32(0.3)),
    case("Dropout", 13, 11, "r", "t", x=X, r=np.float32(0.3), t=np.bool_(False), attributes={"seed": 3}),
] + [
    case(op, have, want, x=x, attributes=a)
    for op in ("Softmax", "LogSoftmax", "Hardmax")
    for have, want, x, a in (
        (7, 21, M, {}), (11, 13, X, {"axis": 3}), (11, 13, X[:, :, :1, :1], {}), (11, 13, X, {"axis": -1}),
        (13, 11, X, {}), (13, 11, X, {"axis": -1}), (13, 11, X[:, :, :, :1], {"axis": 2}),
    )
]  # fmt: skip
SIGNAL = RNG.standard_normal((2, 8, 8, 1)).astype(np.float32)
GRID = RNG.uniform(-1.2, 1.2, (2, 5, 3, 2)).astype(np.float32)
BOXES = f32(0, 0, 3.3, 4, 1, 1.5, 5, 5).reshape(2, 4)
BYTES = np.array([[1, 250]], np.uint8)
SINGLES = [
    case("DFT", 17, 20, x=SIGNAL),
    case("DFT", 17, 21, x=SIGNAL, n=np.int64(4), attributes={"axis": 2, "onesided": 1}),
    case("DFT", 21, 17, x=SIGNAL),
    case("DFT", 20, 17, "a", x=SIGNAL, n=None, a=np.int64(1)),
    *[
        case("GridSample", have, want, x=X, g=GRID, attributes={"mode": mode} if mode else {})
        for have, want, modes in (
            (16, 21, ("bilinear", "nearest", "bicubic", "")), (20, 16, ("linear", "nearest", "cubic", "")),
        )
        for mode in modes
    ],
    case("RoiAlign", 10, 21, x=X, r=BOXES, b=i64(0, 1), attributes={"output_height": 2, "output_width": 3}),
    case("RoiAlign", 16, 11, x=X, r=BOXES, b=i64(0, 1), attributes={_COORDINATES: "output_half_pixel"}),
    case("Scatter", 9, 21, x=M, i=np.array([[0, 2], [1, 0]]), u=M[:2, :2], attributes={"axis": 1}),
    case("ScatterElements", 18, 11, x=M, i=np.array([[0, 2]]), u=M[:1, :2], attributes={"reduction": "none"}),
    case("Constant", 13, 11, attributes={"value_floats": [0.5, 2.0]}),
    case("Constant", 12, 11, attributes={"value_int": -3}),
    *[
        case("AveragePool", 10, 21, x=X, attributes={"kernel_shape": [2, 2], "strides": [2, 2], **a})
        for a in ({"ceil_mode": 1}, {"count_include_pad": 1, "pads": [1, 1, 1, 1]}, {"auto_pad": "VALID"})
    ],
    case("OneHot", 9, 21, x=i64(-1, 0, 2, 5), d=np.int64(3), v=f32(0, 1)),
    case("MaxPool", 8, 22, x=X, outputs=2, attributes={"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER"}),
    case("QuantizeLinear", 10, 21, x=M, s=np.float32(0.1), z=np.uint8(7)),
    case("DequantizeLinear", 21, 11, x=BYTES, s=np.float32(0.1), z=np.uint8(7), attributes={"axis": 1}),
    case("LSTM", 7, 22, x=X[0], w=RNG.standard_normal((1, 12, 6)).astype(np.float32),
         r=RNG.standard_normal((1, 12, 3)).astype(np.float32), outputs=3, attributes={"hidden_size": 3}),
    case("Cast", 7, 23, x=f32(-1.5, 0, 300), attributes={"to": TensorProto.INT32}),
]  # fmt: skip
ALL = [*REDUCTIONS, *RESIZES, *LISTS, *PADS, *CLIPS, *NORMS, *SINGLES]


@each_row("example", ALL)
def test_a_moved_node_gives_the_same_numbers(example: Case) -> None:
    moved = example.move()
    before = example.run([example.node], [], example.have)
    after = example.run(moved.nodes, moved.constants, example.want)
    exact = example.op not in ("AveragePool", "DFT")  # kernels of their own per version: another order of adding
    for a, b in zip(before, after, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


#: Operators that ONNX Runtime's CPU provider lacks in one of the two versions, or whose row only refuses.
NOT_RUN = {("Scan", 9), ("Mod", 28), ("Cast", 24), ("CastLike", 24), ("GroupNormalization", 21)}
#: Run in ``test_version_pools.py``.
RUN_ELSEWHERE = {("MaxPool", 22), ("AveragePool", 22), ("LpPool", 22)}
#: ONNX Runtime has no kernels of opsets below 7; the forms are in ``tests/importers/test_opset_types.py``.
BELOW_7 = {("Cast", 6), ("Concat", 4), ("PRelu", 7), ("Selu", 6)}


def test_every_row_is_run_both_ways_where_it_goes_both_ways() -> None:
    seen = set()
    for (example,) in (param.values for param in ALL):
        assert isinstance(example, Case)
        low, high = sorted((example.have, example.want))
        names = {"Upsample", "Resize"} if example.op in ("Upsample", "Resize") else {example.op}
        seen |= {(op, since) for op, since in ROWS if op in names and low < since <= high}
    missing = set(ROWS) - seen - NOT_RUN - RUN_ELSEWHERE - BELOW_7 - {("Scatter", 11)}
    assert {key for key in missing if key[0] not in ("Min", "Sum")} == set()


def test_group_normalization_gets_a_scale_per_channel() -> None:
    """The version of opset 18 is deprecated and no runtime has it; its page gives the formula."""
    scale, bias = f32(2, -1), f32(0.5, 3)
    example = Case("GroupNormalization", 18, 21, {"x": X, "s": scale, "b": bias}, ("s", "b"), 1, {"num_groups": 2})
    moved = example.move()
    groups = X.reshape(2, 2, -1)
    mean, var = groups.mean(-1, keepdims=True), groups.var(-1, keepdims=True)
    want = (groups - mean) / np.sqrt(var + 1e-5) * scale[:, None] + bias[:, None]
    (got,) = example.run(moved.nodes, moved.constants, 21)
    np.testing.assert_allclose(got, want.reshape(X.shape), rtol=1e-4, atol=1e-5)  # f32 sums of 72 elements


def test_a_bound_of_f16_stays_infinite() -> None:
    """A bound that was not given was the largest f32, which is not a bound in f16; now it would be the largest f16."""
    types = {"x": helper.make_tensor_type_proto(TensorProto.FLOAT16, [2])}
    moved = move(helper.make_node("Clip", ["x"], ["y"], min=0.0), 7, 21, str, KnownValues(type=types.get))
    assert moved is not None
    assert [numpy_helper.to_array(t).tolist() for t in moved.constants] == [0.0, np.inf]
    assert {t.data_type for t in moved.constants} == {TensorProto.FLOAT16}


#: A shape, and the axis from which on a softmax of opset 12 takes all axes as one.
FLAT = [((2, 3, 4), 1), ((2, 3, 4), 0), ((2, 3, 4, 2), 2), ((0, 3, 4), 1), ((2, 0, 4), 2), ((2, 3, 0), 1), ((6,), 0)]


@each_row("op", ["Softmax", "LogSoftmax", "Hardmax"])
@each_row("want", [14, 17, 21])
@each_row(("shape", "axis"), FLAT)
@each_row("known", ["nothing", "rank", "sizes"])
def test_axes_that_were_one_are_flattened(op: str, want: int, shape: tuple[int, ...], axis: int, known: str) -> None:
    example = Case(op, 11, want, {"x": RNG.standard_normal(shape).astype(np.float32)}, attributes={"axis": axis})
    sizes = {"nothing": None, "rank": [None] * len(shape), "sizes": shape}[known]
    type = helper.make_tensor_type_proto(TensorProto.FLOAT, sizes)
    moved = move(example.node, 11, want, fresh(), KnownValues(type={"x": type}.get))
    assert moved is not None
    (before,), (after,) = example.run([example.node], [], 11), example.run(moved.nodes, moved.constants, want)
    assert before.shape == after.shape
    np.testing.assert_array_equal(before, after)


@each_row(("sizes", "axis", "fits"), [
    ((2, 3, 4), 1, True), (("N", 3, 4), 1, True), (("N", "M", 4), 1, True), (("N", 3, 4, 5), 2, True),
    ((2, 3, "M"), 1, False), ((2, "N", 4, 5), 2, False), (None, 1, False), (("N", 2), 0, False),
])  # fmt: skip
def test_before_opset_14_a_size_of_0_must_be_the_matrix_s_at_its_place(
    sizes: tuple[Any, ...] | None, axis: int, *, fits: bool
) -> None:
    type = helper.make_tensor_type_proto(TensorProto.FLOAT, sizes)
    moved = move(
        helper.make_node("Softmax", ["x"], ["y"], axis=axis), 12, 13, fresh(), KnownValues(type={"x": type}.get)
    )
    assert (moved is not None) == fits
    if moved is None or sizes is None:
        return
    for empty in (0, 2):
        shape = tuple(empty if isinstance(size, str) else size for size in sizes)
        example = Case("Softmax", 12, 13, {"x": np.ones(shape, np.float32)}, attributes={"axis": axis})
        example_nodes = move(example.node, 12, 13, fresh(), KnownValues(type={"x": type}.get))
        assert example_nodes is not None
        (before,), (after,) = example.run([example.node], [], 12), example.run(example_nodes.nodes, [], 13)
        np.testing.assert_array_equal(before, after)


@each_row("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_a_softmax_of_the_last_axis_goes_both_ways_at_any_rank(op: str) -> None:
    node = helper.make_node(op, ["x"], ["y"], axis=-1)
    for have, want in ((11, 21), (21, 11)):
        moved = move(node, have, want, str)
        assert moved is not None and moved.nodes == [node]


SCALES = [(1.0, 1.0), (2.0, 3.0), (1.5, 2.0), (1.3, 1.7), (0.5, 0.25), (0.6, 0.9), (2.0, 0.5), (0.4, 1.7), (1.0, 0.7)]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize(("op", "have", "want"), [
    ("Resize", 10, 11), ("Resize", 10, 13), ("Resize", 10, 21), ("Upsample", 9, 10), ("Upsample", 9, 11),
    ("Upsample", 9, 17), ("Upsample", 9, 21),
])  # fmt: skip
@pytest.mark.parametrize("names", [(), ("s",)], ids=["computed", "constant"])
def test_scales_of_every_kind(
    op: str, have: int, want: int, mode: str, scales: tuple[float, float], names: tuple[str, ...]
) -> None:
    """Sizes that no scale divides evenly, on ONNX Runtime at the old opset and at the new one."""
    if op == "Upsample" and min(scales) < 1:
        pytest.skip("Upsample makes nothing smaller")
    x = RNG.standard_normal((1, 2, 7, 10)).astype(np.float32)
    example = Case(op, have, want, {"x": x, "s": f32(1, 1, *scales)}, names, attributes={"mode": mode})
    moved = example.move()
    (before,), (after,) = example.run([example.node], [], have), example.run(moved.nodes, moved.constants, want)
    np.testing.assert_array_equal(before, after)


@each_row("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5), (0, 3, 4)])
@each_row("names", [(), ("s", "b", "m", "v")], ids=["computed", "constant"])
@each_row(("have", "want"), [(7, 9), (7, 13), (8, 14), (8, 21)])
def test_statistics_of_each_element(shape: tuple[int, ...], names: tuple[str, ...], have: int, want: int) -> None:
    parts = {name: RNG.standard_normal(shape[1:]).astype(np.float32) for name in ("s", "b", "m")}
    variance = RNG.random(shape[1:]).astype(np.float32) + 0.5
    data = {"x": RNG.standard_normal(shape).astype(np.float32), **parts, "v": variance}
    example = Case("BatchNormalization", have, want, data, names, attributes={"spatial": 0, "epsilon": 1e-3})
    moved = example.move()
    (before,), (after,) = example.run([example.node], [], have), example.run(moved.nodes, moved.constants, want)
    np.testing.assert_allclose(before, after, rtol=1e-6, atol=1e-6)  # kernels may multiply and add in one step
