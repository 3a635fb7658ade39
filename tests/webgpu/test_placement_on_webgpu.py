"""Predicted placement against the provider's log: where each node runs, each copy, and dispatches.

``python -m tools.webgpu_agreement`` does the same for the model fixtures.
"""

from __future__ import annotations

import numpy as np
import pytest
from directml_examples import EXAMPLES, example
from directml_helpers import operation_program
from onnx import numpy_helper
from onnx_cases import declared
from webgpu_helpers import merged

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.ir import DTYPE_BY_NAME
from dmlc.ops.constant import CONSTANT
from dmlc.placement.report import placement
from dmlc.runtime import bench
from dmlc.runtime.ort_model import options_of
from dmlc.targets import load_target
from tests import kit
from tools.webgpu_agreement import agreement, differences
from tools.webgpu_runs import run_on_device

pytestmark = pytest.mark.webgpu


@pytest.mark.parametrize("kind", ["f32", "i32"])
def test_the_log_of_the_provider_agrees(kind: str) -> None:
    """All operations of a dtype in one model, as compiled for the target. Dispatches are not compared: ONNX Runtime
    takes out what independent calls have in common, and casts in a row."""
    dtype, models, feeds = DTYPE_BY_NAME[kind], {}, {}
    for number, op in enumerate(op for op in declared(dtype) if op is not CONSTANT):
        try:
            program, calls = operation_program(op, dtype, "webgpu")
        except DmlcError:  # no exact form anywhere
            continue
        if not program.placement().fails:
            models[f"{number}:"] = program.artifact("onnx").payload
            feeds |= {f"{number}:{name}": array for name, array in calls.feeds.items()}
    model = merged(models)
    assert len(models) > 30
    report = placement(model, load_target("webgpu"))
    ran = run_on_device(model, feeds, options=options_of(model, "webgpu"))
    apart = placed_apart(differences(report, ran, {info.name for info in model.graph.input}))
    assert not apart, "\n".join(apart)


#: Nodes that take more dispatches than one, or none, by what is special: a model in opset 23.
COUNTED = {
    "an activation in a convolution": "float[1, 3, 9, 9] x, float[4, 3, 3, 3] w) => (float[1, 4, 7, 7] y)"
    " { c = Conv (x, w) y = Relu (c) }",
    "a convolution along one axis": "float[1, 3, 9] x, float[4, 3, 3] w) => (float[1, 4, 7] y) { y = Conv (x, w) }",
    "one that pads for its result": "float[1, 2, 4, 5] x) => (float[1, 1, 4, 5] y) <float[1, 2, 1, 2] w = {1, 2, 3, 4}>"
    ' { y = Conv <auto_pad = "SAME_UPPER"> (x, w) }',
    "one that is prepared": "float[1, 2, 4, 5] x) => (float[1, 1, 4, 4] y) <float[1, 2, 1, 2] w = {1, 2, 3, 4}>"
    " { y = Conv (x, w) }",
    "the last axes in another order": "float[2, 3, 4] x) => (float[2, 1, 1] y) <int64[2] a = {2, 1}>"
    " { y = ReduceMax (x, a) }",
    "one in groups": "float[1, 4, 9] x, float[4, 1, 3] w) => (float[1, 4, 7] y) { y = Conv <group = 4> (x, w) }",
    "one of single elements": "float[1, 3, 9] x, float[4, 3, 1] w) => (float[1, 4, 9] y) { y = Conv (x, w) }",
    "channels": "float[1, 4, 9] x, float[4] s) => (float[1, 4, 9] y) { y = InstanceNormalization (x, s, s) }",
    "another axis": "float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }",
    "a few over another axis": "float[2, 3, 600] x, int64[1] a) => (float[2, 1, 600] y) { y = ReduceMax (x, a) }",
    "a sum without a shift": "float[2, 3, 4] x, float[4] s) => (float[2, 3, 4] y)"
    " { a = Add (x, x) y = LayerNormalization (a, s) }",
    "states of an LSTM": "float[3, 1, 4] x, float[1, 8, 4] w, float[1, 8, 2] r, float[1, 1, 2] h) =>"
    " (float[3, 1, 1, 2] y, float[1, 1, 2] z) { y, z = LSTM <hidden_size = 2> (x, w, r, , , h, h) }",
    "positions of a rotation": "float[1, 2, 3, 4] x, float[1, 3, 2] c) => (float[1, 2, 3, 4] y)"
    " { y = RotaryEmbedding (x, c, c) }",
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_dispatches_of_the_provider_are_counted(name: str) -> None:
    model = kit.onnx(f"g ({COUNTED[name]}", opset=23)
    feeds = {info.name: np.ones([d.dim_value for d in info.type.tensor_type.shape.dim], "f4")
             for info in model.graph.input if info.type.tensor_type.elem_type == 1}  # fmt: skip
    for info in [each for each in model.graph.input if each.name not in feeds]:
        model.graph.initializer.append(numpy_helper.from_array(np.array([1]), info.name))
        model.graph.input.remove(info)
    ran = run_on_device(model, feeds, options={"preferredLayout": "NCHW"})
    assert placement(model, load_target("webgpu")).dispatches == len(ran.programs), ran.programs


def test_nodes_inside_others_are_compared() -> None:
    """If copies what its branch reads on the CPU, and what it makes there: the log has no copy."""
    text = """g (float[2, 3] x, bool c) => (float[a, 3] y) {
        [negative] n = Neg (x)
        [choice] y = If (c) <
            then_branch = t () => (float[p, 3] p1) { [hot] p1 = Hardmax (n) },
            else_branch = e () => (float[q, 3] q1) { [kept] q1 = Relu (n) }>
    }"""
    model = kit.onnx(text, opset=21)
    report = placement(model, load_target("webgpu"))
    assert {node.name: node.where for node in report.nodes}["choice/hot"] == "cpu"
    ran = run_on_device(model, {"x": np.ones((2, 3), "f4"), "c": np.array(True)})
    assert [node.name for node in ran.on_cpu] == ["hot"]
    assert placed_apart(differences(report, ran, {"x", "c"})) == []


def placed_apart(found: list[str]) -> list[str]:
    return [text for text in found if not text.startswith("dispatches")]


@pytest.mark.parametrize("name", EXAMPLES[:4])
def test_the_log_agrees_about_an_example(name: str) -> None:
    source, feeds = example(name)
    program = dmlc.compile(source, target="webgpu")
    sizes = bench.fed_sizes(program.artifact("onnx"), feeds, program.source_model)
    program = dmlc.compile(source, target="webgpu", bind=sizes)
    found = agreement(program, feeds, program.run(feeds, backend="reference"))
    assert not placed_apart(found.differences), "\n".join(found.differences)
    assert not found.wrong
    assert not found.ran.on_cpu
