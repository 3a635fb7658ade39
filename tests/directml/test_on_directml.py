"""On the real execution provider: every operation and dtype, the examples, models of a folder, and what the tables say
of the provider. Sessions are strict where the placement report says that every node runs on DirectML."""

from __future__ import annotations

from pathlib import Path

import pytest
from directml_examples import EXAMPLES, example
from directml_helpers import (
    NAMES,
    differences,
    displaced,
    expected,
    is_refused,
    model_differences,
    operation_program,
    repaired_differences,
    run_program,
    sized,
)
from onnx_cases import declared, evaluate

from dmlc.codegen.artifact import Artifact, Signature
from dmlc.diagnostics import DmlcError
from dmlc.ir import DTYPES, DType, Operation, TensorType, as_dtype
from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.constant import CONSTANT
from dmlc.runtime import bench
from dmlc.targets.provider import Failure, provider
from tools.fault_models import FACTS

pytestmark = pytest.mark.directml

OPERATIONS = [op for op in ALL_OPERATIONS if op is not CONSTANT]
#: Known failures of the newest release.
FAILURES = [row for row in provider("dml_ep").failures if not row.last_release]


def dtypes_of(op: Operation) -> list[DType]:
    return [dtype for dtype in DTYPES if op in declared(dtype) and (op.name, dtype.name) != ("iota", "bool")]


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_an_operation_gives_the_numbers_of_its_reference(op: Operation) -> None:
    """Selections and integers exactly. What the report calls failing or wrong is really so."""
    wrong = []
    for dtype in dtypes_of(op):
        try:
            program, cases = operation_program(op, dtype)
        except DmlcError:  # no exact form anywhere: the same on every machine
            continue
        want = evaluate(cases.graph, cases.feeds)
        if program.placement().fails:
            if not is_refused(program.to_onnx(), cases.feeds, "dml", want):
                wrong.append(f"{dtype.name}: it runs, though the report says: {program.placement().verdict}")
            continue
        wrong += [f"{dtype.name}: {text}" for text in differences(run_program(program, cases.feeds, "dml"), want)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_the_nodes_of_an_operation_run_where_the_report_says(op: Operation) -> None:
    wrong = []
    for dtype in dtypes_of(op):
        try:
            program, cases = operation_program(op, dtype)
        except DmlcError:
            continue
        if not program.placement().fails:
            wrong += [f"{dtype.name}: {text}" for text in displaced(program, cases.feeds, "dml")]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name: str) -> None:
    source, feeds = example(name)
    program = sized(source, feeds)
    assert not differences(run_program(program, feeds, "dml"), program.run(feeds, backend="reference"))
    assert not displaced(program, feeds, "dml")


def test_a_model_of_the_folder(model_file: Path) -> None:
    assert not model_differences(model_file, "dml")


@pytest.mark.parametrize(
    "row", [row for row in FAILURES if row.effect not in ("cpu", "advice")], ids=lambda row: row.id
)
def test_a_known_failure_still_fails(row: Failure) -> None:
    """A provider that does better should have its row changed: it is dated and has a source."""
    model, feeds = FACTS[row.id]()
    want = expected(model, feeds) if row.effect in ("wrong", "imprecise") else None
    assert is_refused(model, feeds, "dml", want), "the provider does better now"


@pytest.mark.parametrize("row", FAILURES, ids=lambda row: row.id)
def test_what_is_done_about_a_known_failure_works(row: Failure) -> None:
    """Compare the numbers on DirectML wherever a repair makes the model of the row sound by the tables."""
    assert not repaired_differences(*FACTS[row.id](), "dml")


@pytest.mark.parametrize("row", [row for row in FAILURES if row.effect == "cpu"], ids=lambda row: row.id)
def test_a_node_that_the_provider_leaves_alone(row: Failure) -> None:
    """It runs on the CPU, or in parts where ONNX defines it by others, or nowhere where the CPU does not take it."""
    model, feeds = FACTS[row.id]()
    inputs = tuple((name, TensorType(as_dtype(array.dtype), array.shape)) for name, array in feeds.items())
    artifact = Artifact("onnx", model, Signature("fact", inputs, ()))
    try:
        ran = bench.profile(artifact, feeds, "dml", 1).nodes
    except DmlcError as error:
        assert error.diagnostics[0].code.id == "E0554"
        return
    assert not ran or ran[0].provider == NAMES["cpu"]
