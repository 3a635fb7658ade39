"""Nodes kept on the CPU that the provider can run in another spelling."""

from typing import Any

import numpy as np
import pytest
import repair_helpers as r

IDLE, ELLIPSIS = "drop-idle-attribute", "spell-ellipsis"
IMAGE = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4) % 7


def pool(outputs: list[str], opset: int = 12) -> r.onnx.ModelProto:
    made = r.node("MaxPool", ["x"], outputs, kernel_shape=[2, 2], strides=[2, 2], storage_order=1)
    outs = [("y", r.FLOAT, [1, 2, 2, 2]), ("i", r.KINDS["i64"], [1, 2, 2, 2])][: len(outputs)]
    return r.model(made, [("x", r.FLOAT, [1, 2, 4, 4])], outs, opset=opset)


def resize(mode: str, opset: int = 13) -> r.onnx.ModelProto:
    made = r.node(
        "Resize",
        ["x", "roi", "scales"],
        ["y"],
        mode="linear",
        coordinate_transformation_mode=mode,
        extrapolation_value=9.0,
        cubic_coeff_a=-0.5,
    )
    weights = {"roi": np.array([0, 0, 0, 0, 1, 1, 1.5, 1.5], np.float32), "scales": np.array([1, 1, 2, 2], np.float32)}
    return r.model(made, [("x", r.FLOAT, [1, 2, 4, 4])], [("y", r.FLOAT, None)], opset=opset, **weights)


def einsum(equation: str, *shapes: list[Any], out: list[Any]) -> r.onnx.ModelProto:
    inputs = [(f"x{i}", r.FLOAT, shape) for i, shape in enumerate(shapes)]
    made = r.node("Einsum", [name for name, *_ in inputs], ["y"], equation=equation)
    return r.model(made, inputs, [("y", r.FLOAT, out)], opset=13)


def numbers(m: r.onnx.ModelProto) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in m.graph.input}
    return {name: rng.integers(-3, 4, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("opset", [12, 21])
def test_the_order_of_no_indices(opset: int) -> None:
    program = r.repaired(pool(["y"], opset), "max-pool-order", IDLE, {"x": IMAGE}, exact=True)
    (made,) = program.to_onnx().graph.node
    assert [a.name for a in made.attribute] == ["kernel_shape", "strides"] and list(made.output) == ["y"]


def test_the_order_of_indices_is_kept() -> None:
    program = r.left_alone(pool(["y", "i"]), IDLE)
    r.same(r.run(pool(["y", "i"]), {"x": IMAGE}), program.run({"x": IMAGE}, "cpu"))
    assert "max-pool-order" in r.troubles(program)


@pytest.mark.parametrize("opset", [13, 19])
@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric", "align_corners"])
def test_a_value_for_what_is_not_cropped(mode: str, opset: int) -> None:
    r.repaired(resize(mode, opset), "resize-extrapolation", IDLE, {"x": IMAGE}, exact=True)


def test_a_value_for_what_is_cropped() -> None:
    program = r.left_alone(resize("tf_crop_and_resize"), IDLE)
    assert "resize-extrapolation" in r.troubles(program)
    r.same(r.run(resize("tf_crop_and_resize"), {"x": IMAGE}), program.run({"x": IMAGE}, "cpu"))


@pytest.mark.parametrize(
    ("equation", "shapes", "out"),
    [
        ("...ij,...jk->...ik", [[2, 3, 4, 5], [2, 3, 5, 2]], [2, 3, 4, 2]),
        ("...ab , ...bc", [[3, 4, 5], [3, 5, 2]], [3, 4, 2]),
        ("...ij,jk->...ik", [[2, 3, 4], [4, 2]], [2, 3, 2]),
        ("a...,b...->ba...", [[2, 3, 4], [5, 3, 4]], [5, 2, 3, 4]),
        ("...i->...", [[2, 3]], [2]),
    ],
)
def test_ellipses(equation: str, shapes: list[list[int]], out: list[int]) -> None:
    m = einsum(equation, *shapes, out=out)
    r.repaired(m, "einsum-ellipsis", ELLIPSIS, numbers(m), exact=True)


#: The equations of the pairs, in the order of the fewest products.
PAIRS = [
    ("ab,bc,cd->ad", [[2, 9], [9, 8], [8, 7]], ["ab,bc->ac", "cd,ac->ad"]),
    ("ab,bc,cd->ad", [[7, 9], [9, 8], [8, 2]], ["bc,cd->bd", "ab,bd->ad"]),
    ("bi,bj,ijk->bk", [[2, 3], [2, 4], [3, 4, 5]], ["bi,bj->bij", "ijk,bij->bk"]),
    ("a,b,c->cab", [[2], [3], [4]], ["a,b->ab", "c,ab->cab"]),
    ("ab, bc, cd, de -> ae", [[9, 2], [2, 9], [9, 2], [2, 9]], ["bc,cd->bd", "ab,bd->ad", "de,ad->ae"]),
    ("ab,ab,bc", [[2, 3], [2, 3], [3, 4]], ["ab,ab->b", "bc,b->c"]),
    (",a,ab->b", [[], [3], [3, 2]], ["a,ab->b", ",b->b"]),
]


@pytest.mark.parametrize(("equation", "shapes", "pairs"), PAIRS)
def test_more_than_two_operands(equation: str, shapes: list[list[int]], pairs: list[str]) -> None:
    letters = equation.partition("->")[0].replace(",", "").replace(" ", "")
    sizes = dict(zip(letters, [size for shape in shapes for size in shape], strict=True))
    result = pairs[-1].partition("->")[2]
    m = einsum(equation, *shapes, out=[sizes[letter] for letter in result])
    rules = ("matmul-of-letters",)
    program = r.repaired(m, "einsum-operands", "einsum-of-pairs", numbers(m), rtol=1e-5, skip_rules=rules)
    attributes = [node.attribute[0].s.decode() for node in program.to_onnx().graph.node if node.op_type == "Einsum"]
    assert attributes == pairs
    r.left_alone(m, "einsum-of-pairs", exact=True)
    r.left_alone(m, "einsum-of-pairs", target="cpu")


def test_more_than_two_operands_of_open_sizes() -> None:
    m = einsum("ab,bc,cd->ad", ["N", 3], [3, 4], [4, 2], out=["N", 2])
    feeds = {name: np.ones(shape, np.float32) for name, shape in zip(numbers(m), ([5, 3], [3, 4], [4, 2]), strict=True)}
    program = r.repaired(m, "einsum-operands", "einsum-of-pairs", feeds, rtol=1e-5)
    equations = [node.attribute[0].s.decode() for node in program.to_onnx().graph.node]
    assert equations == ["bc,cd->bd", "ab,bd->ad"]  # without the open size first


def test_ellipses_that_broadcast() -> None:
    m = einsum("...ij,...jk->...ik", [2, 3, 4], [1, 4, 2], out=[2, 3, 2])
    program = r.left_alone(m, ELLIPSIS)
    assert "einsum-ellipsis" in r.troubles(program)
    assert any("[2] and [1]" in remark.reason() for remark in program.remarks if remark.rule == ELLIPSIS)
    r.left_alone(einsum("...ij,...jk->...ik", [2, 3, 4], [2, 4, 2], out=[2, 3, 2]), ELLIPSIS, target="cpu")
