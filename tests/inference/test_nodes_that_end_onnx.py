"""No node ends the process that imports it, though ONNX's own inference does for some."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
from fragile_models import models
from onnx import helper

import dmlc
from tests.rows import each_row


@cache
def came() -> dict[str, str]:
    """The outcome for each model, in a process of its own."""
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fragile_models.py"))], capture_output=True, text=True
    )
    assert not ran.stderr
    return dict(line.split(": ", 1) for line in ran.stdout.splitlines())


@each_row("name", [name for name, _ in models()])
def test_it_is_imported_or_refused(name: str) -> None:
    assert came()[name] in ("fine", "E0431", "E0434", "E0506", "E0591")


def test_an_undeclared_operand_of_a_fragile_operator_is_followed() -> None:
    """A rule follows what goes in; ONNX's inference reads the type of an undeclared operand unchecked."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("EyeLike", ["r"], ["e"], dtype=7)]
    x, y = helper.make_tensor_value_info("x", 1, [3, 4]), helper.make_tensor_value_info("e", 7, None)
    graph = helper.make_graph(nodes, "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    program = dmlc.compile(model, target="onnx")
    ((_, output),) = program.graph.outputs
    assert str(output.type) == "i64[3, 4]"
    assert (program.run({"x": np.zeros((3, 4), np.float32)})["e"] == np.eye(3, 4)).all()
