"""On a real GPU provider: every operation, the examples, the programs of the rules, models of the folder of fixtures.

A green run proves the WebGPU provider, not DirectML's: shapes, types, ties and numbers of what is emitted for
``directml``, on kernels that share nothing with the CPU provider's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from directml_examples import EXAMPLES, example
from directml_helpers import on_cpu, operation_program, sized
from onnx import load as onnx_model
from onnx_cases import declared, evaluate
from webgpu_helpers import Arrays, Case, apart, compiled_on_webgpu, on_webgpu, together_on_webgpu

import dmlc
from dmlc.cli.rule_page import example_files, example_of
from dmlc.diagnostics import DmlcError
from dmlc.ir import DTYPES, DType, Operation
from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.constant import CONSTANT
from dmlc.targets import TargetName
from tests import kit
from tests.command_line import Run
from tools.fixture_folder import fixtures

pytestmark = pytest.mark.webgpu

OPERATIONS = [op for op in ALL_OPERATIONS if op is not CONSTANT]
#: Types of the provider's kernels; others are computed on the CPU.
KINDS = ("f16", "f32", "i32", "u32", "bool")
#: Outputs that the provider computes wrongly (0.4.0), by operation: all are of NaN, or of -infinity alone.
WRONG = {"softmax": ("infinite",), "hard_sigmoid": ("",)}


def dtypes_of(op: Operation) -> list[DType]:
    return [
        dtype
        for dtype in DTYPES
        if dtype.name in KINDS and op in declared(dtype) and (op.name, dtype.name) != ("iota", "bool")
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_each_operation_gives_the_numbers_of_its_reference(kind: str) -> None:
    """All operations of a dtype in one session, as compiled for each target. Selections and integers are compared
    exactly. A known fault that is gone is a difference too."""
    cases, wanted = [], {}
    for target, op, dtype in operations(kind):
        name = f"{op.name} for {target}"
        try:
            program, calls = operation_program(op, dtype, target)
        except DmlcError:  # no exact form anywhere
            continue
        if program.placement().fails:
            continue
        cases.append(Case(name, program.artifact("onnx").payload, calls.feeds))
        wanted[name] = evaluate(calls.graph, calls.feeds)
    assert len(cases) > 30
    found = together_on_webgpu(cases)
    wrong = [text for name, want in wanted.items() for text in unlike(name, kind, found[name], want)]
    assert not wrong, "\n".join(wrong)


def operations(kind: str) -> Iterator[tuple[TargetName, Operation, DType]]:
    targets: tuple[TargetName, ...] = ("directml", "webgpu")
    for op in OPERATIONS:
        for dtype in dtypes_of(op):
            if dtype.name == kind:
                yield from [(target, op, dtype) for target in targets]


def unlike(name: str, kind: str, found: Arrays | Exception, want: Arrays) -> list[str]:
    """The differences, and the known faults that are gone."""
    if isinstance(found, Exception):
        return [f"{name} of {kind}: {found}"]
    op, wrong = name.split(" ")[0], apart(found, want)
    known = [text for text in wrong if text.removeprefix(op).strip().startswith(WRONG.get(op, ("-",)))]
    out = [f"{name} of {kind}: {text}" for text in wrong if text not in known]
    is_gone = op in WRONG and kind.startswith("f") and not known
    return [*out, *([f"{name} of {kind}: a fault of the table above is gone"] if is_gone else [])]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name: str) -> None:
    source, feeds = example(name)
    program = sized(source, feeds)
    assert not apart(compiled_on_webgpu(program, feeds), program.run(feeds, backend="reference"))


def test_nothing_of_a_whole_model_runs_on_the_cpu() -> None:
    """A node without a kernel of the provider makes such a session fail, and runs on the CPU in others."""
    x = {"x": np.array([[1, 3, 2]], np.float32)}
    model = kit.onnx("g (float[1, 3] x) => (float[1, 3] y) { y = Softmax(x) }")
    assert np.isclose(on_webgpu(model, x, whole=True)["y"].sum(), 1)
    model = kit.onnx("g (float[1, 3] x) => (float[1, 3] y) { y = Hardmax(x) }")
    assert on_webgpu(model, x)["y"].tolist() == [[0, 1, 0]]
    with pytest.raises(Exception, match="fallback to CPU EP"):
        on_webgpu(model, x, whole=True)


def test_bench_compiles_for_the_target_of_the_provider(command_line: Run, tmp_path: Path) -> None:
    program = tmp_path / "m.dml"
    program.write_text("model m(x: f32[2, 3]) -> (y) {\n    return argmax(x, axes=[1])\n}\n")
    code, out, _ = command_line("bench", str(program), "--provider", "webgpu", "--random", "1", "--rounds", "1")
    assert (code, "report: 2 nodes, all on WebGPU" in out) == (0, True)


#: Examples of rules that are left out, with the reason.
LEFT_OUT = {
    "multi-head-attention": "its shader takes a software driver minutes to compile",
    "centred-norm": "the reference rounds as much in numbers so far from 0: test_repair_absent compares with f64",
    "exact-mean-of-unknown-rank": "a mean of nothing is not defined for integers",
    **dict.fromkeys(
        ("gather-one-number", "known-size", "shift-log-sum-exp-of-unknown-rank", "truth-of-unknown-rank"),
        "made-up inputs are no indices, axes or sizes of it",
    ),
    "slice-negative-pads": "onnx's reference does not compute pads below 0",
    **dict.fromkeys(
        ("merge-lrn-axes", "one-layer-norm-result", "reduce-many-axes"), "ONNX Runtime does not run it as it is"
    ),
}


def test_each_rule_keeps_its_numbers() -> None:
    """The result of each rule gives on the provider the numbers that its example gives on the CPU."""
    cases, wanted = [], {}
    for rule in sorted(set(example_files()) - set(LEFT_OUT)):
        example = example_of(rule)
        assert example is not None
        program = example.compiled()
        if program.target.name == "numpy":
            continue  # the rule is for NumPy code alone
        feeds, source = program.random_feeds(1), program.source_model
        cases.append(Case(rule, program.artifact("onnx").payload, feeds))
        wanted[rule] = program.run(feeds, backend="reference") if source is None else kit.run(source, feeds)
    assert len(cases) > 150
    found = together_on_webgpu(cases)
    wrong = [text for rule, want in wanted.items() for text in unlike(rule, "", found[rule], want)]
    assert not wrong, "\n".join(wrong)


#: Exports of PyTorch that are small, and cover attention, norms, convolutions, selections and recurrence.
MODELS = ("ctc_decode", "gmm_loglik", "gpt2", "losses", "moe_router", "odd_norms", "t5_encoder", "yolo_head")


@pytest.mark.parametrize("name", MODELS)
def test_a_model_and_what_it_is_compiled_to(name: str) -> None:
    path = next((path for stem, path in fixtures("torch").items() if stem.startswith(name)), None)
    if path is None:
        pytest.skip(f"there is no fixture {name}")
    program = dmlc.compile(path)
    feeds = program.random_feeds(0)
    want = on_cpu(path, feeds)
    assert not apart(on_webgpu(onnx_model(path), feeds, path.parent), want)
    assert not apart(compiled_on_webgpu(program, feeds), want)
    assert not apart(compiled_on_webgpu(sized(path, feeds), feeds), want)
