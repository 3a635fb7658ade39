"""Nodes that look like those that are repaired: each test fails where one guard of the repairs is dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import repair_helpers as r
from msgspec.structs import replace

import dmlc
from dmlc.diagnostics import Source
from dmlc.importers import import_model
from dmlc.passes.manager import PassContext
from dmlc.passes.options import Options
from dmlc.passes.repair import Repair
from dmlc.targets import load_target

BFLOAT16 = r.TensorProto.BFLOAT16
Shapes = Sequence[tuple[str, int, Sequence[Any]]]


def rules(source: Any, **options: Any) -> list[str]:
    return [entry.rule for entry in dmlc.compile(source, **options).ledger]


def of_microsoft(m: r.onnx.ModelProto) -> r.onnx.ModelProto:
    m.opset_import.append(r.helper.make_opsetid("com.microsoft", 1))
    return m


# --- Einsum


@pytest.mark.parametrize(
    ("equation", "inputs"),
    [
        ("ij,jk", [("a", r.FLOAT, [2, 3]), ("b", r.FLOAT, [3, 4])]),  # no ellipsis, no result
    ],
)
def test_equations_that_are_not_spelled(equation: str, inputs: Shapes) -> None:
    made = r.node("Einsum", [name for name, *_ in inputs], ["y"], equation=equation)
    m = r.model(made, inputs, [("y", inputs[0][1], None)])
    assert r.operators(r.left_alone(m, "spell-ellipsis")) == ["Einsum"]


@pytest.mark.parametrize(
    ("equation", "inputs"),
    [
        ("...i,...i->...", [("a", r.FLOAT, [2, 3])]),  # more terms than operands
        ("...i->...", [("a", r.FLOAT, [2, 3]), ("b", r.FLOAT, [2, 3])]),
        ("...i->...", [("a", BFLOAT16, [2, 3])]),
    ],
)
def test_equations_that_do_not_fit_their_operands_are_refused(equation: str, inputs: Shapes) -> None:
    made = r.node("Einsum", [name for name, *_ in inputs], ["y"], equation=equation)
    r.faulty(r.model(made, inputs, [("y", inputs[0][1], None)]))


def test_an_equation_of_another_domain() -> None:
    made = r.node("Einsum", ["x"], ["y"], equation="...i->...", domain="com.microsoft")
    m = of_microsoft(r.model(made, [("x", r.FLOAT, [2, 3])], [("y", r.FLOAT, [2])]))
    r.left_alone(m, "spell-ellipsis")


# --- Pad

PADS = "slice-negative-pads"


def pad(names: list[str], kind: int = r.FLOAT, shape: Sequence[int] = (3,), opset: int = 21, **more: Any) -> Any:
    weights = {name: np.array(value) for name, value in more.items() if name in ("p", "a")}
    rest = {name: value for name, value in more.items() if name not in weights}
    return r.model(
        r.node("Pad", names, ["y"], **rest), [("x", kind, shape)], [("y", kind, None)], opset=opset, **weights
    )


def test_counts_that_do_not_fit_are_left() -> None:
    """For more axes than there are, for a half of one, or none at all."""
    assert PADS in rules(pad(["x", "p"], p=[-1, 1]))
    assert PADS in rules(pad(["x"], pads=[-1, 1], opset=10))
    r.faulty(pad(["x", "p"], p=[-1, 1, 0, 0]))
    r.faulty(pad(["x", "p"], shape=(3, 3), p=[-1, 1, 0]))
    r.faulty(pad(["x"]))


@pytest.mark.emits_invalid("the source fails in each run")
def test_computed_counts_that_do_not_fit_are_left() -> None:
    """The count is known only when the least of a large weight has folded."""
    weight = np.linspace(-1, 1, 3000, dtype=np.float32)
    nodes = [r.node("ReduceMin", ["w"], ["least"]), r.node("Cast", ["least"], ["p"], to=r.KINDS["i64"])]
    made = r.model(
        [*nodes, r.node("Pad", ["x", "p"], ["y"])], [("x", r.FLOAT, (3,))], [("y", r.FLOAT, None)], opset=17, w=weight
    )
    program = r.left_alone(made, PADS)
    assert [n.op_type for n in program.to_onnx().graph.node] == ["Pad"]


def test_a_pad_of_what_has_no_known_shape() -> None:
    assert PADS in rules(pad(["x", "p", "", "a"], p=[-1, 1], a=[0]))
    r.left_alone(pad(["x", "p", "", "a"], BFLOAT16, p=[-1, 1], a=[0]), PADS)


def test_numbers_of_another_operator_are_no_pads() -> None:
    made = r.node("Resize", ["x", "roi", "s"], ["y"], coordinate_transformation_mode="tf_crop_and_resize")
    roi, image = np.array([0, 0, -1, 0, 1, 1, 1, 1], np.float32), [1, 1, 4, 4]
    m = r.model(made, [("x", r.FLOAT, image)], [("y", r.FLOAT, image)], roi=roi, s=np.ones(4, np.float32))
    r.left_alone(m, PADS)
    r.left_alone(of_microsoft(pad(["x", "p"], p=[-1, 1], domain="com.microsoft")), PADS)


@pytest.mark.parametrize(("release", "fires"), [("1.17", False), ("1.24", True)])
def test_a_pad_that_the_release_leaves_to_another_provider(release: str, fires: bool) -> None:
    """The kernel of opset 19 came with 1.18."""
    target = replace(load_target("directml"), release=release)
    ctx = PassContext(target, 19, Options(exact=True))
    Repair().run(import_model(pad(["x", "p"], p=[-1, 1], opset=19)), ctx)
    assert [entry.rule for entry in ctx.ledger] == [PADS] * fires


# --- more axes than 8


def between(nodes: r.onnx.NodeProto, shape: Sequence[int], inputs: Shapes = (), **weights: Any) -> r.onnx.ModelProto:
    """``w`` of so many axes, the node from ``w`` to ``z``, and ``z`` flat again."""
    count = int(np.prod(shape))
    both = [r.node("Reshape", ["x", "many"], ["w"]), nodes, r.node("Reshape", ["z", "flat"], ["y"])]
    x = ("x", r.FLOAT, [count // 2, 2])
    flat = [2, count // 2]
    weights |= {"many": np.array(shape), "flat": np.array(flat)}
    return r.model(both, [x, *inputs], [("y", r.FLOAT, flat)], **weights)


@pytest.mark.parametrize("shape", [[2, 1, 2, 1, 2, 1, 2, 1, 2], [2] * 9])
def test_axes_of_size_1_and_axes_that_a_number_broadcasts_over_go_with_others(shape: list[int]) -> None:
    m = between(r.node("Add", ["w", "c"], ["z"]), shape, c=np.float32(3))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(-1, 2)
    r.repaired(m, "rank", "merge-elementwise-axes", {"x": x})


def test_an_operand_of_few_axes_needs_no_reshape_before_it() -> None:
    m = between(r.node("Add", ["w", "b"], ["z"]), [2] * 9, [("b", r.FLOAT, [2])])
    x = np.arange(512, dtype=np.float32).reshape(-1, 2)
    r.repaired(m, "rank", "merge-elementwise-axes", {"x": x, "b": np.array([1, 10], np.float32)})


def test_what_has_too_many_axes_before_a_reshape_too() -> None:
    nodes = [
        r.node("Reshape", ["x", "nine"], ["w"]),
        r.node("Relu", ["w"], ["z"]),
        r.node("Reshape", ["z", "f"], ["y"]),
    ]
    weights = {"nine": np.array([2] * 8 + [1]), "f": np.array([256])}
    m = r.model(nodes, [("x", r.FLOAT, [2] * 8 + [1, 1])], [("y", r.FLOAT, [256])], **weights)
    r.left_alone(m, "merge-elementwise-axes")


# --- LayerNormalization, MaxPool, Resize


def layer_norm(kind: int, results: int, **attributes: Any) -> r.onnx.ModelProto:
    outs = [("y", kind, [2, 4]), ("m", r.FLOAT, [2, 1]), ("i", r.FLOAT, [2, 1])][:results]
    made = r.node("LayerNormalization", ["x", "s"], [name for name, *_ in outs], **attributes)
    ones = np.ones(4, r.helper.tensor_dtype_to_np_dtype(kind))
    return r.model(made, [("x", kind, [2, 4])], outs, opset=17, s=ones)


def test_doubles_keep_their_statistics() -> None:
    """The provider takes no layer normalization of them anyway."""
    assert "one-layer-norm-result" in rules(layer_norm(r.FLOAT, 3))
    assert r.operators(r.left_alone(layer_norm(r.DOUBLE, 3), "one-layer-norm-result")) == ["LayerNormalization"]


def test_a_layer_norm_of_one_result_is_not_spoken_of() -> None:
    program = r.left_alone(layer_norm(r.FLOAT, 1, stash_type=11), "one-layer-norm-result")
    assert "one-layer-norm-result" not in {remark.rule for remark in program.remarks}
    r.faulty(layer_norm(r.FLOAT, 3, stash_type=11))


def test_an_attribute_that_says_what_is_usual_stays() -> None:
    image = [("x", r.FLOAT, [1, 1, 4, 4])]
    for order, fires in ((0, False), (1, True)):
        made = r.node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], storage_order=order)
        found = rules(r.model(made, image, [("y", r.FLOAT, [1, 1, 3, 3])]))
        assert ("drop-idle-attribute" in found) == fires
    made = r.node("Resize", ["x", "", "s"], ["y"], extrapolation_value=0.0)
    r.left_alone(r.model(made, image, [("y", *image[0][1:])], s=np.ones(4, np.float32)), "drop-idle-attribute")


# --- what other rules see to first


def test_a_concat_of_empty_parts_alone() -> None:
    text = "dim n in 1..9\nmodel t(e: f32[0, n]) -> (y) {\n    y = concat(e, e, axis=0)\n    return y\n}\n"
    program = dmlc.compile(Source("t.dml", text), skip_rules=["move-nothing"])
    assert r.operators(program) == ["Concat"]


def test_a_top_k_that_nobody_asks_for() -> None:
    text = "model t(x: f32[4, 64]) -> (y) {\n    v, i = top_k(x, k=1, axis=1)\n    y = x + 1.0\n    return y\n}\n"
    program = dmlc.compile(Source("t.dml", text), only_rules=["top-k-by-search"])
    assert "top-k-by-search" not in dict(r.fired(program))


def test_a_reduction_over_nothing_and_a_generator_of_nothing() -> None:
    text = "model t(e: f32[2, 0]) -> (y, z) {\n    y = reduce_mean(e, axes=[1])\n    z = exp(e)\n    return y, z\n}\n"
    program = dmlc.compile(Source("t.dml", text))
    assert {"reduction-of-nothing", "nothing-to-compute"} <= set(dict(r.fired(program)))
    nodes = [r.node("RandomNormal", [], ["n"], shape=[0, 3]), r.node("Relu", ["x"], ["y"])]
    m = r.model(nodes, [("x", r.FLOAT, [0, 2])], [("n", r.FLOAT, [0, 3]), ("y", r.FLOAT, [0, 2])])
    assert "RandomNormal" in r.operators(dmlc.compile(m))
