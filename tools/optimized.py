"""Compare the numbers of a model at each level of ONNX Runtime's graph optimizations with those at none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from dmlc.onnx_schema.nested import all_nodes
from tools.model_checks import run, session
from tools.result_comparison import MODEL_TOLERANCES, differences

#: Operators whose numbers are drawn, or around which ONNX Runtime computes in integers and means to.
_INCOMPARABLE = frozenset(
    (
        *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear", "Sampling"),
    )
)
#: Sizes of open dims, one after the other until the model runs.
_SIZES = (3, 4, 2, 1, 8)
LEVELS = {
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_MOST_ELEMENTS = 1 << 20


def optimizer_differences(model: ModelProto, folder: Path | None = None) -> dict[str, str] | None:
    """Describe what ONNX Runtime's optimizations change, by level; None for a model that could not be compared."""
    if any(node.op_type in _INCOMPARABLE for node in all_nodes(model.graph.node)):
        return None
    try:
        plain = session(model, folder)
    except Exception:  # it need not load: other checks say so
        return None
    for feeds in drawn_feeds(model):
        try:
            expected = run(plain, feeds)
        except Exception:  # ONNX Runtime's exceptions have no common base
            continue
        if not all(map(_is_finite, expected.values())):
            continue  # the order of operations decides what follows from an infinity
        found = {name: text for name in LEVELS if (text := _difference(model, folder, name, feeds, expected))}
        return None if found and _is_unstable(plain, feeds, expected) else found
    return None


def _is_unstable(plain: ort.InferenceSession, feeds: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Return whether inputs that move in their last places change the results by more than the tolerance."""
    for step in (-2, 2):
        moved = {name: _moved(array, step) for name, array in feeds.items()}
        if differences(expected, run(plain, moved), MODEL_TOLERANCES):
            return True
    return False


def _moved(array: Any, step: int) -> Any:
    return array * (1 + step * np.finfo(array.dtype).eps).astype(array.dtype) if array.dtype.kind == "f" else array


def _is_finite(value: Any) -> bool:
    array = np.asarray(value) if isinstance(value, np.ndarray) else None
    return array is None or array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _difference(
    model: ModelProto, folder: Path | None, level: str, feeds: dict[str, Any], expected: dict[str, Any]
) -> str:
    try:
        found = run(session(model, folder, level=LEVELS[level]), feeds)
    except Exception as error:
        return " ".join(str(error).split())[:300]
    return "; ".join(differences(expected, found, MODEL_TOLERANCES))


def drawn_feeds(model: ModelProto) -> Iterator[dict[str, Any]]:
    """Yield inputs at several sizes of the open dims; none where an input is not a tensor of numbers."""
    held = {tensor.name for tensor in model.graph.initializer}
    infos = [info for info in model.graph.input if info.name not in held]
    is_open = any(not size.HasField("dim_value") for i in infos for size in i.type.tensor_type.shape.dim)
    for number in _SIZES if is_open else _SIZES[:1]:
        rng = np.random.default_rng(number)
        feeds = {info.name: _drawn(info, number, rng) for info in infos}
        if any(array is None for array in feeds.values()):
            return
        yield feeds


def _drawn(info: ValueInfoProto, number: int, rng: np.random.Generator) -> Any:
    type = info.type.tensor_type
    shape = [size.dim_value if size.HasField("dim_value") else number for size in type.shape.dim]
    if not type.HasField("shape") or min(shape, default=0) < 0 or np.prod(shape, dtype=float) > _MOST_ELEMENTS:
        return None
    if type.elem_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE):
        return rng.standard_normal(shape).astype(helper.tensor_dtype_to_np_dtype(type.elem_type))
    if type.elem_type == TensorProto.BOOL:
        return rng.random(shape) < 0.5
    if type.elem_type in (TensorProto.STRING, TensorProto.UNDEFINED):
        return None
    dtype = helper.tensor_dtype_to_np_dtype(type.elem_type)
    return rng.integers(1, 4, shape).astype(dtype) if np.issubdtype(dtype, np.integer) else None
