"""Models of verification in the process of the test: a run in the worker takes ten times as long.

``usefixtures("sessions_here")`` marks tests about verdicts. Models that might end or fill the process keep the worker,
and what such a process does is the subject of ``test_verify_runtime.py`` and ``test_verify_models.py``.
"""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto, TensorProto

from dmlc.runtime.hosts import HERE, WORKER, ThisProcess, WorkerProcess

#: Operators that may run without end, whose results may have any size, or that divide integers.
_UNBOUNDED = {
    "ConstantOfShape", "Expand", "If", "Loop", "Mod", "Pad", "Range", "Resize", "Scan", "Tile", "Upsample",
}  # fmt: skip
#: Operators with integers as results: a quotient of them by zero ends the process.
_OF_INTEGERS = {"ArgMax", "ArgMin", "Cast", "NonZero", "QLinearMatMul", "Shape", "Size", "TopK"}
_FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16}
_DOMAINS = {"", "ai.onnx", "ai.onnx.ml"}


def host_of(model: ModelProto, folder: Path | None, backend: str) -> ThisProcess | WorkerProcess:
    """This process if the model is harmless in it, else the worker."""
    return HERE if backend != "dml" and _is_harmless(model) else WORKER


def _is_harmless(model: ModelProto) -> bool:
    operators = {node.op_type for node in model.graph.node}
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in model.graph.initializer):
        return False
    if model.functions or operators & _UNBOUNDED or any(node.domain not in _DOMAINS for node in model.graph.node):
        return False
    of_floats = all(info.type.tensor_type.elem_type in _FLOATS for info in model.graph.input)
    return "Div" not in operators or (of_floats and not operators & _OF_INTEGERS)
