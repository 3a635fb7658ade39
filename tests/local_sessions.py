"""Sessions of verification in the process of the test: a run in one of its own takes ten times as long.

``usefixtures("sessions_here")`` marks tests about verdicts. Models that might end or fill the process keep their own,
and what such a process does is the subject of ``test_verify_runtime.py`` and ``test_verify_models.py``.
"""

from __future__ import annotations

from typing import Any

import onnxruntime
from onnx import ModelProto, TensorProto

from dmlc.verify.process import ProcessSession
from dmlc.verify.trace import RunFailed

#: Operators that may run without end, whose results may have any size, or that divide integers.
_UNBOUNDED = {
    "ConstantOfShape", "Expand", "If", "Loop", "Mod", "Pad", "Range", "Resize", "Scan", "Tile", "Upsample",
}  # fmt: skip
#: Operators with integers as results: a quotient of them by zero ends the process.
_OF_INTEGERS = {"ArgMax", "ArgMin", "Cast", "NonZero", "QLinearMatMul", "Shape", "Size", "TopK"}
_FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16}
_DOMAINS = {"", "ai.onnx", "ai.onnx.ml"}


def session(model: ModelProto, folder: str | None, backend: str = "") -> LocalSession | ProcessSession:
    """A session as ``ProcessSession`` makes it, in this process if the model is harmless there."""
    is_local = folder is None and backend != "dml" and _is_harmless(model)
    return LocalSession(model, backend) if is_local else ProcessSession(model, folder, backend)


def _is_harmless(model: ModelProto) -> bool:
    operators = {node.op_type for node in model.graph.node}
    if model.functions or operators & _UNBOUNDED or any(node.domain not in _DOMAINS for node in model.graph.node):
        return False
    of_floats = all(info.type.tensor_type.elem_type in _FLOATS for info in model.graph.input)
    return "Div" not in operators or (of_floats and not operators & _OF_INTEGERS)


class LocalSession:
    """As ``dmlc.workers.sessions`` loads and runs a model. Raises ``RunFailed`` where ONNX Runtime refuses."""

    def __init__(self, model: ModelProto, backend: str) -> None:
        options = onnxruntime.SessionOptions()
        if not backend:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise RunFailed(str(error) or type(error).__name__) from None
        self.types: dict[str, str] = {value.name: value.type for value in self._session.get_outputs()}

    def run(self, names: list[str], feeds: dict[str, Any]) -> list[Any]:
        try:
            return list(self._session.run(names, feeds))
        except Exception as error:
            raise RunFailed(str(error) or type(error).__name__) from None
