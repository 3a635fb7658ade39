"""Resize of more than 4 axes, whose axes that keep their size are merged, and of sizes that keep a ratio."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import repair_helpers as r
from onnx import helper, numpy_helper

import dmlc
from tests.rows import each_row
from tests.versions import needs_onnx_runtime

RULE = "merge-resize-axes"
FACTORS = {
    "last two": [1, 1, 1, 2, 2],
    "last three": [1, 1, 2, 2, 2],
    "smaller": [1, 1, 1, 0.5, 0.75],
    "first": [2, 1, 1, 1, 1],
}
COORDINATES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]


def resize(shape: list[int | str], opset: int = 19, *, axes: list[int] | None = None, **operands: Any) -> Any:
    """A Resize; operands other than attributes are ``scales`` and ``sizes``."""
    names = ["", operands.pop("scales", None), operands.pop("sizes", None)]
    attributes = operands | ({"axes": axes} if axes else {})
    constants = [
        numpy_helper.from_array(np.array(values, kind), name)
        for values, kind, name in ((names[1], np.float32, "scales"), (names[2], np.int64, "sizes"))
        if values is not None
    ]
    inputs = ["x", "", "scales" if names[1] else "", "sizes" if names[2] else ""]
    node = helper.make_node("Resize", inputs[: 4 if names[2] else 3], ["y"], **attributes)
    y = [f"d{axis}" for axis in range(len(shape))]
    info = [helper.make_tensor_value_info(name, 1, dims) for name, dims in (("x", shape), ("y", y))]
    graph = helper.make_graph([node], "g", info[:1], info[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def merged(made: Any, *shape: int, opset: int | None = None) -> dmlc.Program:
    """The rule fires, nothing is left to say, and ONNX Runtime's kernel gives the same numbers."""
    program = dmlc.compile(made, opset=opset)
    assert (RULE, "exact") in r.fired(program), [miss.reason() for miss in program.remarks]
    assert not program.placement().fails
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    r.same(r.run(made, {"x": x}), program.run({"x": x}, backend="cpu"), 1e-6)
    return program


@each_row("coordinates", COORDINATES)
@each_row("factors", FACTORS)
def test_nearest(factors: str, coordinates: str) -> None:
    made = resize([2, 3, 2, 4, 4], mode="nearest", scales=FACTORS[factors], coordinate_transformation_mode=coordinates)
    merged(made, 2, 3, 2, 4, 4)


@each_row("coordinates", COORDINATES)
@each_row("factors", ["last three", "smaller"])
def test_linear(factors: str, coordinates: str) -> None:
    made = resize([2, 3, 2, 4, 4], mode="linear", scales=FACTORS[factors], coordinate_transformation_mode=coordinates)
    merged(made, 2, 3, 2, 4, 4)


def test_sizes() -> None:
    merged(resize([2, 3, 2, 4, 4], mode="linear", sizes=[2, 3, 2, 7, 5]), 2, 3, 2, 4, 4)


@needs_onnx_runtime(1, 27, "does not load a linear Resize of some axes")
@pytest.mark.parametrize("given", [{"scales": [2, 3]}, {"sizes": [8, 12]}])
def test_named_axes(given: dict[str, list[int]]) -> None:
    merged(resize([2, 3, 2, 4, 4], mode="linear", axes=[-2, 4], **given), 2, 3, 2, 4, 4)


@each_row("given", [{"scales": [1, 1, 1, 2, 2]}, {"sizes": [2, 3, 2, 8, 8]}])
@each_row("opset", [11, 12, 13, None])
def test_operands_that_may_not_be_left_out_are_empty(given: dict[str, list[int]], opset: int | None) -> None:
    """Below opset 13 a Resize always has a region and factors."""
    made = resize([2, 3, 2, 4, 4], 11, mode="linear", **given)
    made.graph.initializer.append(numpy_helper.from_array(np.zeros(0, np.float32), "none"))
    made.graph.node[0].input[:] = [name or "none" for name in made.graph.node[0].input]
    (node,) = [n for n in merged(made, 2, 3, 2, 4, 4, opset=opset).to_onnx().graph.node if n.op_type == "Resize"]
    assert bool(node.input[1]) == (opset in (11, 12))


@pytest.mark.parametrize("opset", [13, 18, 19])
def test_open_sizes(opset: int) -> None:
    merged(resize(["N", 3, 2, 4, 4], opset, mode="linear", scales=FACTORS["last two"]), 2, 3, 2, 4, 4)


def test_axes_of_one_element_do_not_count() -> None:
    made = resize([1, 2, 1, 2, 2, 3], mode="nearest", scales=[1, 1, 1, 1, 2, 2])
    r.left_alone(made, RULE)


@pytest.mark.parametrize(
    "made",
    [
        resize([2, 2, 2, 2, 2], mode="nearest", scales=[2, 2, 2, 2, 2]),
        resize([2, 2, 2, 2, 2], mode="nearest", scales=[1, 2, 1, 2, 1]),
        resize([2, 3, 2, 4, 4], mode="nearest", scales=FACTORS["last two"],
               coordinate_transformation_mode="tf_half_pixel_for_nn"),
        resize([2, 3, 2, 4, 6], axes=[3, 4], sizes=[3, 9], keep_aspect_ratio_policy="not_larger"),
    ],
    ids=["all resized", "apart", "moving coordinates", "aspect"],
)  # fmt: skip
def test_what_cannot_be_merged_is_refused(made: Any) -> None:
    program = r.left_alone(made, RULE)
    assert r.refusals(program)


@pytest.mark.emits_invalid("the source fails in each run")
def test_computed_factors_that_do_not_fit_are_left() -> None:
    made = resize([2, 3, 2, 4, 4], mode="nearest", scales=[1, 1, 2, 2])
    made.graph.initializer[0].name = "less"
    made.graph.node.insert(0, helper.make_node("Neg", ["less"], ["n"]))
    made.graph.node.insert(1, helper.make_node("Neg", ["n"], ["scales"]))
    r.left_alone(made, RULE)


def test_reasons_why_nothing_is_merged() -> None:
    older = resize([2, 3, 2, 4, 4], 10, mode="nearest", scales=FACTORS["last two"])
    older.graph.node[0].input[:] = ["x", "scales"]
    fed = resize([2, 3, 2, 4, 4], mode="nearest", scales=FACTORS["last two"])
    del fed.graph.initializer[:]
    fed.graph.input.append(helper.make_tensor_value_info("scales", 1, [5]))
    unnamed = resize(["N", 3, 2, 4, 4], axes=[3, 4], sizes=[8, 8])  # the size of the first axis is not a number
    unknown = "its factors or sizes are not constant"
    for made, reason in ((older, "its opset is older than 11"), (fed, unknown), (unnamed, unknown)):
        assert reason in [remark.reason() for remark in r.left_alone(made, RULE).remarks]


# --- sizes that keep the ratio of the axes

FACTOR = "resize-by-one-factor"


@each_row("coordinates", ["half_pixel", "asymmetric", "align_corners"])
@each_row("mode", ["nearest", "linear"])
@each_row(
    ("policy", "sizes", "want"),
    [("not_larger", [9, 12], [8, 12]), ("not_smaller", [8, 11], [8, 12]), ("not_larger", [2, 4], [2, 3])],
    ids=["larger", "not smaller", "smaller"],
)
def test_one_factor(policy: str, sizes: list[int], want: list[int], mode: str, coordinates: str) -> None:
    made = resize(["N", 3, 4, 6], axes=[2, 3], sizes=sizes, mode=mode, keep_aspect_ratio_policy=policy,
                  coordinate_transformation_mode=coordinates)  # fmt: skip
    x = {"x": np.random.default_rng(0).normal(size=(2, 3, 4, 6)).astype(np.float32)}
    program = r.repaired(made, "resize-aspect", FACTOR, x, rtol=1e-6)
    assert dict(r.fired(program))[FACTOR] == "exact"
    assert list(program.run(x)["y"].shape) == [2, 3, *want]
    assert not r.refusals(program)


def test_sizes_of_all_axes() -> None:
    made = resize([1, 2, 4, 6], sizes=[2, 4, 8, 13], keep_aspect_ratio_policy="not_larger")
    r.repaired(made, "resize-aspect", FACTOR, {"x": np.arange(48, dtype=np.float32).reshape(1, 2, 4, 6)})


def test_reasons_why_no_factor_is_given() -> None:
    fed = resize([1, 1, 4, 6], axes=[2, 3], sizes=[8, 12], keep_aspect_ratio_policy="not_larger")
    del fed.graph.initializer[:]
    fed.graph.input.append(helper.make_tensor_value_info("sizes", 7, [2]))
    up = resize([1, 1, 4, 6], axes=[2, 3], sizes=[3, 9], keep_aspect_ratio_policy="not_larger")
    open_ = resize([1, 1, "H", 6], axes=[2, 3], sizes=[8, 12], keep_aspect_ratio_policy="not_larger")
    empty = resize([1, 1, 0, 6], axes=[2, 3], sizes=[8, 12], keep_aspect_ratio_policy="not_larger")
    rounded = "the factor 0.75 makes other sizes: it rounds down"
    unknown = "the sizes of the axes are not known"
    for made, reason in ((fed, "its sizes are not constant"), (up, rounded), (open_, unknown), (empty, unknown)):
        program = r.left_alone(made, FACTOR)
        assert reason in [remark.reason() for remark in program.remarks]
        assert r.refusals(program) == ["E0591"]


def test_the_policy_stays_where_a_provider_reads_it() -> None:
    made = resize([1, 1, 4, 6], axes=[2, 3], sizes=[8, 12], keep_aspect_ratio_policy="not_larger")
    r.left_alone(made, FACTOR, target="cpu")
