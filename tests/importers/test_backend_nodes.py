"""onnx's own node tests of reductions, selections and normalizations: the same numbers before and after compiling."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.backend.test.case.node import collect_testcases

import dmlc
from dmlc.importers.faults import check_nodes
from dmlc.onnx_schema.inlining import inlined

#: Operators, as their tests begin.
_FAMILIES = (
    *("reduce_", "argmax_", "argmin_", "top_k", "hardmax_", "softmax_", "logsoftmax_", "onehot_", "one_hot"),
    *("layer_normalization", "rms_normalization", "instancenorm", "group_normalization", "lpnorm", "l1normalization"),
    *("l2normalization", "mvn", "batchnorm", "lrn", "lppool_1d"),
)
#: Relative tolerance of floats: a reassociated sum of some dozens of numbers.
_RTOL = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-12}


#: Operators whose results differ from run to run, or are timed out of proportion.
_RANDOM = ("bernoulli", "dropout", "random", "training_dropout")


@cache
def _all_cases() -> dict[str, Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # onnx computes infinities and overflows on purpose
        cases = collect_testcases(None)
    found = {case.name.removeprefix("test_"): case for case in cases if isinstance(case.model, onnx.ModelProto)}
    return {name: case for name, case in found.items() if not name.startswith(_RANDOM)}


def _cases() -> dict[str, Any]:
    return {name: case for name, case in _all_cases().items() if name.startswith(_FAMILIES)}


def _session_or_none(model: onnx.ModelProto) -> onnxruntime.InferenceSession | None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return None


@pytest.mark.parametrize("target", ["directml", "onnx"])
@pytest.mark.parametrize("name", sorted(_cases()))
def test_same_numbers(name: str, target: str) -> None:
    """Where ONNX Runtime does not know the opset of the original, what onnx expects is the measure."""
    case = _cases()[name]
    before = _session_or_none(case.model)
    after = _session_or_none(dmlc.compile(case.model, target=target).to_onnx())
    if before is None and after is None:
        pytest.skip("ONNX Runtime has no kernel for this")
    assert after is not None
    names = [i.name for i in case.model.graph.input]
    assert [i.name for i in after.get_inputs()] == names
    for inputs, expected in case.data_sets:
        feeds = {name: np.asarray(x) for name, x in zip(names, inputs, strict=True)}
        try:
            wanted = expected if before is None else before.run(None, feeds)
        except Exception:
            with pytest.raises(Exception):  # noqa: B017 (ONNX Runtime's exceptions have no common base)
                after.run(None, feeds)
            continue
        for old, new in zip(map(np.asarray, wanted), after.run(None, feeds), strict=True):
            _compare(new, old)


@pytest.mark.parametrize("name", sorted(_all_cases().keys() - _cases().keys()))
def test_every_other_operator(name: str) -> None:
    """What ONNX Runtime runs, it runs after compiling with the same results."""
    case = _all_cases()[name]
    before = _session_or_none(case.model)
    if before is None:
        pytest.skip("ONNX Runtime does not load the original")
    after = _session_or_none(dmlc.compile(case.model).to_onnx())
    assert after is not None
    names = [i.name for i in case.model.graph.input]
    assert [i.name for i in after.get_inputs()] == [i.name for i in before.get_inputs()]
    assert [o.name for o in after.get_outputs()] == [o.name for o in before.get_outputs()]
    for inputs, _ in case.data_sets:
        feeds = {name: x if isinstance(x, list) else np.asarray(x) for name, x in zip(names, inputs, strict=False)}
        try:
            wanted = before.run(None, feeds)
        except Exception:
            continue
        for old, new in zip(wanted, after.run(None, feeds), strict=True):
            _compare_any(new, old)


def _compare_any(new: Any, old: Any) -> None:
    if isinstance(old, list):
        assert len(new) == len(old)
        for a, b in zip(new, old, strict=True):
            _compare_any(a, b)
    elif old is None:
        assert new is None
    else:
        _compare(np.asarray(new), np.asarray(old))


def _compare(new: np.ndarray[Any, Any], old: np.ndarray[Any, Any]) -> None:
    assert new.dtype == old.dtype
    assert new.shape == old.shape
    if old.dtype.kind == "f":
        rtol = _RTOL[str(old.dtype)]
        np.testing.assert_allclose(new, old, rtol=rtol, atol=rtol)
    else:
        np.testing.assert_array_equal(new, old)


def test_the_families_are_there() -> None:
    assert len(_cases()) >= 134


def test_no_model_of_a_node_test_is_faulty() -> None:
    """Each is valid: nothing is refused, and nearly all nodes can be checked."""
    unchecked = []
    for name, case in _all_cases().items():
        versions = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in case.model.opset_import}
        if check_nodes(inlined(case.model), versions, {}).sentence:
            unchecked.append(name)
    assert len(unchecked) < 20
