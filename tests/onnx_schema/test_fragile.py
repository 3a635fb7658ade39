"""No node ends the process that imports it, though ONNX's own inference does for some."""

import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fragile_models import models
from onnx import helper

import dmlc
from dmlc.onnx_schema.inference import infer


@cache
def came() -> dict[str, str]:
    """What came of each model, in a process of its own."""
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fragile_models.py"))], capture_output=True, text=True
    )
    assert not ran.stderr
    return dict(line.split(": ", 1) for line in ran.stdout.splitlines())


@pytest.mark.parametrize("name", [name for name, _ in models()])
def test_it_is_imported_or_refused(name: str) -> None:
    assert came()[name] in ("fine", "E0431", "E0434", "E0506", "E0591")


def typed(node: str, opset: int, shape: list[int], elem: int = 1, **attributes: object) -> list[list[int]]:
    """What is inferred of results of ``node`` whose operand is declared."""
    outputs = ["y", "z"] if node == "Split" else ["y"]
    made = helper.make_node(node, ["x", "x"] if node == "LayerNormalization" else ["x"], outputs, **attributes)
    x = helper.make_tensor_value_info("x", elem, shape)
    model = helper.make_model(helper.make_graph([made], "g", [x], []), opset_imports=[helper.make_opsetid("", opset)])
    found = infer(model)
    assert found is not None
    return [[d.dim_value for d in info.type.tensor_type.shape.dim] for info in found.graph.value_info]


def test_sound_ones_are_still_asked_about() -> None:
    assert typed("EyeLike", 22, [3, 3]) == [[3, 3]]
    assert typed("RegexFullMatch", 20, [5], 8, pattern="a") == [[5]]
    assert typed("LayerNormalization", 17, [2, 3], axis=1) == [[2, 3]]
    assert typed("Slice", 9, [5, 2], starts=[1], ends=[3]) == [[2, 2]]
    assert typed("Split", 18, [6, 2], num_outputs=2) == [[3, 2], [3, 2]]


@pytest.mark.parametrize("equation", ["ij->ji", " i j -> j i", "...j->j...", "ij"])
def test_sound_equations_are(equation: str) -> None:
    assert sorted(typed("Einsum", 12, [2, 3], equation=equation)[0]) == [2, 3]


def test_sizes_are_not_made_up_for_each_element_of_a_shape() -> None:
    """Which takes 2 microseconds and 300 bytes for each."""
    x = helper.make_tensor_value_info("x", 1, [2])
    listed = helper.make_tensor_value_info("s", 7, [(1 << 20) - 1])
    graph = helper.make_graph([helper.make_node("Expand", ["x", "s"], ["y"])], "g", [x, listed], [])
    start = time.process_time()
    infer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)]))
    assert time.process_time() - start < 0.5


def test_nor_where_the_shape_is_what_a_reduction_leaves() -> None:
    x, q = helper.make_tensor_value_info("x", 1, [2]), helper.make_tensor_value_info("q", 7, [2, 1 << 40])
    nodes = [
        helper.make_node("ReduceSum", ["q"], ["s"], axes=[0], keepdims=0),
        helper.make_node("Expand", ["x", "s"], ["y"]),
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", [x, q], []), opset_imports=[helper.make_opsetid("", 8)])
    assert infer(model) is None


def test_types_behind_a_node_that_is_not_asked_about_at_first() -> None:
    """The importer asks again of the node alone, when it knows what goes in."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("EyeLike", ["r"], ["e"], dtype=7)]
    x, y = helper.make_tensor_value_info("x", 1, [3, 4]), helper.make_tensor_value_info("e", 7, None)
    graph = helper.make_graph(nodes, "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    program = dmlc.compile(model, target="onnx")
    ((_, output),) = program.graph.outputs
    assert str(output.type) == "i64[3, 4]"
    assert (program.run({"x": np.zeros((3, 4), np.float32)})["e"] == np.eye(3, 4)).all()
