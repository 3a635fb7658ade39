"""On a real GPU provider: every operation, the examples, the programs of the rules, models of the folder of fixtures.

A green run proves the WebGPU provider, not DirectML's: shapes, types, ties and numbers of what is emitted for
``directml``, on kernels that share nothing with the CPU provider's.
"""

from __future__ import annotations

import numpy as np
import pytest
from directml_examples import EXAMPLES, example
from directml_helpers import on_cpu, operation_program, sized
from onnx import load as onnx_model
from onnx_cases import declared, evaluate
from webgpu_helpers import apart, compiled_on_webgpu, on_webgpu

import dmlc
from dmlc.cli.rule_page import example_files, example_of
from dmlc.diagnostics import DmlcError
from dmlc.ir import DTYPES, DType, Operation
from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.constant import CONSTANT
from tests import kit
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


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_an_operation_gives_the_numbers_of_its_reference(op: Operation) -> None:
    """Selections and integers exactly. A known fault that is gone is a difference too."""
    found = []
    for dtype in dtypes_of(op):
        try:
            program, cases = operation_program(op, dtype)
        except DmlcError:  # no exact form anywhere
            continue
        if program.placement().fails:
            continue
        wrong = apart(compiled_on_webgpu(program, cases.feeds), evaluate(cases.graph, cases.feeds))
        known = [text for text in wrong if text.removeprefix(op.name).strip().startswith(WRONG.get(op.name, ("-",)))]
        found += [f"{dtype.name}: {text}" for text in wrong if text not in known]
        if op.name in WRONG and dtype.is_float and not known:
            found.append(f"{dtype.name}: a fault of the table above is gone")
    assert not found, "\n".join(found)


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


#: Examples of rules that are left out, with the reason.
LEFT_OUT = {
    "multi-head-attention": "its shader takes a software driver minutes to compile",
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


@pytest.mark.parametrize("rule", sorted(example_files()))
def test_a_rule_keeps_its_numbers(rule: str) -> None:
    """The result of the rule gives on the provider the numbers that its example gives on the CPU."""
    if rule in LEFT_OUT:
        pytest.skip(LEFT_OUT[rule])
    found = example_of(rule)
    assert found is not None
    program = found.compiled()
    if program.target.name == "numpy":
        pytest.skip("the rule is for NumPy code alone")
    feeds = program.random_feeds(1)
    source = program.source_model
    want = program.run(feeds, backend="reference") if source is None else kit.run(source, feeds)
    assert not apart(compiled_on_webgpu(program, feeds), want)


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
