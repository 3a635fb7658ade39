"""A graph through ``legalize`` and ``emit`` into a session of ONNX Runtime's CPU provider."""

from __future__ import annotations

from typing import Any

import onnx
import onnxruntime
from onnx_cases import Feeds, differences

from dmlc.codegen.artifact import Artifact
from dmlc.codegen.onnx import emit
from dmlc.ir import Graph
from dmlc.passes.compose import Compose
from dmlc.passes.legalize import Legalize
from dmlc.passes.manager import PassContext
from dmlc.passes.repair import Repair
from dmlc.targets import load_target

onnxruntime.set_default_logger_severity(4)
TARGETS = ("directml", "cpu", "onnx")
#: f16 is computed in f32 and rounded once more per node (2^-11 each); ONNX Runtime's f32 exp, tanh and erf are
#: approximations of a few units in the last place; f64 differs by the order of sums.
TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-13}
OWN = ("SimplifiedLayerNormalization",)


def lower(graph: Graph, target: str, opset: int) -> Artifact:
    """Repaired and legalized in place, and emitted."""
    goal = load_target(target)
    for step in (Compose(), Repair(), Legalize()):
        step.run(graph, PassContext(goal, opset))
    return emit(graph, goal, opset)


def check(model: onnx.ModelProto) -> None:
    """With strict shape inference. ONNX Runtime's own operators are none to the checker; the rest of them stands."""
    if not any(node.op_type in OWN or node.domain for node in model.graph.node):
        onnx.checker.check_model(model, full_check=True)


def session(model: onnx.ModelProto, *, optimize: bool = True) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(session: onnxruntime.InferenceSession, feeds: Feeds) -> Feeds:
    wanted = {i.name for i in session.get_inputs()}
    arrays = session.run(None, {k: v for k, v in feeds.items() if k in wanted})
    return dict(zip([o.name for o in session.get_outputs()], arrays, strict=True))


def assert_same(got: Feeds, want: Feeds) -> None:
    """Indices, integers and bool exactly, floats within the dtype's tolerance; all differences in one message."""
    wrong = differences(got, want, TOLERANCE)
    assert not wrong, "\n".join(wrong)


def kinds(artifact: Artifact) -> list[str]:
    """The ONNX operators in order."""
    model: Any = artifact.payload
    return [node.op_type for node in model.graph.node]
