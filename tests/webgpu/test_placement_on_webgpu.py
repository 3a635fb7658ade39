"""Predicted placement against the provider's log: where each node runs, each copy, and dispatches.

``python -m tools.webgpu_agreement`` does the same for the model fixtures.
"""

from __future__ import annotations

import pytest
from directml_examples import EXAMPLES, example
from directml_helpers import operation_program
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
