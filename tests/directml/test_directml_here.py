"""The tests for DirectML, run everywhere on the CPU provider, so that they work where they are needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from directml_examples import EXAMPLES, example
from directml_helpers import (
    STRICT,
    differences,
    displaced,
    expected,
    is_refused,
    is_strict,
    model_differences,
    open_model,
    operation_program,
    repaired_differences,
    run_program,
    sized,
)
from directml_near_misses import NEAR_MISSES, near_miss
from directml_provider import missing_provider
from onnx_cases import declared, evaluate

import dmlc
from dmlc.ir.dtype import bool_, f32, i64, u8
from dmlc.placement.advice import diagnose
from dmlc.placement.report import placement
from dmlc.runtime.session import session_options
from dmlc.targets import load_target
from dmlc.targets.provider import provider
from tests.rows import each_row
from tests.versions import ONNX_RUNTIME
from tools.fault_models import FACTS
from tools.model_checks import checker_complaint, session

#: Failures of the newest release; those of older ones are in tests/codegen/onnx/test_releases.py.
ROWS = [row for row in provider("dml_ep").failures if not row.last_release]


@pytest.mark.parametrize("dtype", [f32, u8, i64, bool_])
def test_the_operations(dtype: dmlc.ir.DType) -> None:
    for op in list(declared(dtype))[:: 1 if dtype is f32 else 4]:
        if op.name == "iota" and dtype is bool_:
            continue
        program, cases = operation_program(op, dtype)
        got = run_program(program, cases.feeds, "cpu")
        assert not differences(got, evaluate(cases.graph, cases.feeds)), op.name


def test_who_runs_the_nodes_of_a_program() -> None:
    source = dmlc.diagnostics.Source("m.dml", "model m(x: f32[N]) -> (y) {\n    return exp(x) + 1\n}\n")
    feeds = {"x": np.zeros(3, np.float32)}
    program = sized(source, feeds)
    assert is_strict(program.placement())
    assert not displaced(program, feeds, "cpu")


def test_what_is_not_the_same_is_told() -> None:
    one = {"y": np.array([1, 2], np.float32), "i": np.array([1])}
    assert not differences(one, {"y": np.array([1, 2.00001], np.float32), "i": np.array([1])})
    assert differences(one, {"y": np.array([1, 2.01], np.float32), "i": np.array([2])}) == [
        f"y: {np.float32(2)!r} at 1, expected {np.float32(2.01)!r}",
        f"i: {np.int64(1)!r} at 0, expected {np.int64(2)!r}",
    ]
    assert differences(one, {"y": one["y"].astype(np.float64), "i": one["i"]})
    assert differences({}, {"y": one["y"]})


@each_row("name", EXAMPLES)
def test_the_examples(name: str) -> None:
    source, feeds = example(name)
    program = sized(source, feeds)
    assert not differences(run_program(program, feeds, "cpu"), program.run(feeds, backend="reference"))


@pytest.mark.parametrize("stored", [True, False])
def test_a_model_of_a_folder(tmp_path: Path, stored: bool) -> None:
    path = tmp_path / "m.onnx"
    source = "model m(x: f32[N, 4]) -> (y, i) {\n    return softmax(x), argmax(x, axes=[1])\n}\n"
    dmlc.compile(dmlc.diagnostics.Source("m.dml", source), target="onnx").save(path)
    if stored:
        np.savez(path.with_suffix(".npz"), **{"in::x": np.eye(4, dtype=np.float32), "out::y": np.zeros(1)})
    assert not model_differences(path, "cpu")


def test_a_model_that_the_provider_would_refuse() -> None:
    model, feeds = FACTS["reduce-integers"]()
    assert not is_refused(model, feeds, "cpu")
    assert is_refused(model, feeds, "cpu", {"y0": np.zeros((2, 1), np.int64)})
    model.graph.node[0].op_type = "NoSuchOperator"
    assert is_refused(model, feeds, "cpu")


def test_every_row_of_failures_has_a_model() -> None:
    assert set(FACTS) == {row.id for row in ROWS}
    assert set(NEAR_MISSES) == set(FACTS)


@each_row("row", ROWS, ids=lambda row: row.id)
def test_the_report_says_the_row_of_its_model(row: provider) -> None:
    model, feeds = FACTS[row.id]()
    assert checker_complaint(model) is None
    assert {value.name for value in model.graph.input} == set(feeds)
    report = placement(model, load_target("directml"))
    (found,) = [finding for _, finding in report.findings]
    assert (found.effect, found.source) == (row.effect, row.source)
    codes = {"imprecise": "W0610", "fails": "E0591", "wrong": "E0592", "cpu": "W0601", "advice": "W0611"}
    assert [diagnostic.code.id for _, diagnostic in diagnose(report)] == [codes[row.effect]]


@each_row("row", ROWS, ids=lambda row: row.id)
def test_the_tests_of_a_row_run_here(row: provider) -> None:
    """The expected results are known here, and the compiled model of each row is right on the CPU."""
    model, feeds = FACTS[row.id]()
    if row.effect in ("wrong", "imprecise"):
        assert expected(model, feeds)
        assert not is_refused(model, feeds, "cpu", expected(model, feeds)) or row.id in ("lrn-rank-low",)
    if not dmlc.compile(model).placement().fails:
        assert repaired_differences(model, feeds, "cpu") == []


@each_row("row", ROWS, ids=lambda row: row.id)
def test_sizes_that_no_declaration_relates(row: provider) -> None:
    """Each dim of each input has a name of its own, as exporters write them: ONNX Runtime asks for equal sizes only
    where it runs the node."""
    model, feeds = FACTS[row.id]()
    for number, dim in enumerate(d for i in model.graph.input for d in i.type.tensor_type.shape.dim):
        dim.dim_param = f"d{number}"
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    program = dmlc.compile(model)
    try:
        wanted = session(model).run(None, feeds)
    except Exception:  # the CPU provider has no such kernel; ONNX Runtime's exceptions have no common base
        return
    for have, want in zip(session(program.to_onnx()).run(None, feeds), wanted, strict=True):
        if want is None and ONNX_RUNTIME < (1, 30):
            continue  # its SkipLayerNormalization does not compute mean and deviation
        np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-3)  # imprecise rows are computed otherwise


#: Near misses with an attribute that older versions of ONNX Runtime do not know.
LATER = {"gqa-causal"} if ONNX_RUNTIME < (1, 30) else set[str]()


@each_row("name", sorted(NEAR_MISSES - LATER))
def test_a_near_miss_meets_no_row(name: str) -> None:
    model = near_miss(name)
    assert checker_complaint(model) is None
    assert not placement(model, load_target("directml")).findings
    open_model(model, "cpu", strict=False)


def test_the_option_that_makes_a_session_strict() -> None:
    """ONNX Runtime knows it, and holds to it: the CPU's kernels are not taken even though nothing else is there."""
    model, _ = FACTS["cast-bool"]()
    options, _ = session_options("cpu")
    options.add_session_config_entry(*STRICT)
    with pytest.raises(Exception, match=r"disable_cpu_ep_fallback|CPU"):
        import onnxruntime

        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert open_model(model, "cpu", strict=True)


def test_what_is_missing_is_said() -> None:
    assert "DirectML" in missing_provider() or not missing_provider()
