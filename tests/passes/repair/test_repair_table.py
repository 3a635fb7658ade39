"""Every known failure of the provider is repaired, refused, or warned of: none passes without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import repair_helpers as r

import dmlc
from dmlc.passes.inventory import all_rules
from dmlc.passes.repair import RULES
from dmlc.targets.provider import provider
from tests.rows import each_row
from tools.fault_models import FACTS

REPAIRED, REFUSED, WARNED, ADVISED = "repaired", "refused", "warned", "advised"
NINE = [2] * 9
IMAGE = [1, 2, 4, 4]
I64, I32 = r.KINDS["i64"], r.KINDS["i32"]


def one(op: str, shapes: list[list[Any]], out: list[Any] | None, *, opset: int = 21, **attributes: Any) -> Any:
    """A node of f32; weights are the arrays among the attributes, in their order, after the inputs."""
    weights = {name: value for name, value in attributes.items() if isinstance(value, np.ndarray)}
    rest = {name: value for name, value in attributes.items() if name not in weights}
    inputs = [(f"x{i}", r.FLOAT, shape) for i, shape in enumerate(shapes)]
    domain, _, op = op.rpartition(".")
    made = r.node(op, [*(name for name, *_ in inputs), *weights], ["y"], domain=domain, **rest)
    return r.model(made, inputs, [("y", r.FLOAT, out)], opset=opset, **weights)


def power(exponent: int) -> Any:
    made = r.node("Pow", ["x", "e"], ["y"])
    return r.model(made, [("x", I32, [3])], [("y", I32, [3])], opset=15, e=np.array(exponent, np.int32))


def of_f64(model: Any) -> Any:
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.elem_type = r.DOUBLE
    return model


def cast() -> Any:
    made = r.node("Cast", ["x"], ["y"], to=r.BOOL)
    return r.model(made, [("x", r.FLOAT, [4])], [("y", r.BOOL, [4])])


def layer_norm() -> Any:
    made = r.node("LayerNormalization", ["x", "s", "b"], ["y", "m", "i"])
    outs = [("y", r.FLOAT, [2, 3]), ("m", r.FLOAT, [2, 1]), ("i", r.FLOAT, [2, 1])]
    ones = np.ones(3, np.float32)
    return r.model(made, [("x", r.FLOAT, [2, 3])], outs, opset=17, s=ones, b=ones)


def resize(**attributes: Any) -> Any:
    scales = np.array([1, 1, 2, 2], np.float32)
    made = r.node("Resize", ["x", "roi", "scales"], ["y"], **attributes)
    roi = np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32)
    return r.model(made, [("x", r.FLOAT, IMAGE)], [("y", r.FLOAT, None)], opset=13, roi=roi, scales=scales)


def pool() -> Any:
    made = r.node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2], storage_order=1)
    outs = [("y", r.FLOAT, [1, 2, 3, 3]), ("i", I64, [1, 2, 3, 3])]
    return r.model(made, [("x", r.FLOAT, IMAGE)], outs, opset=12)


def batch_norm() -> Any:
    ones = np.ones(2, np.float32)
    made = r.node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "rm", "rv"], training_mode=1)
    outs = [("y", r.FLOAT, IMAGE), ("rm", r.FLOAT, [2]), ("rv", r.FLOAT, [2])]
    return r.model(made, [("x", r.FLOAT, IMAGE)], outs, opset=15, s=ones, b=ones, m=ones, v=ones)


def gru() -> Any:
    made = r.node("GRU", ["x", "w", "h"], ["y"], hidden_size=2, layout=1)
    weights = {"w": np.ones((1, 6, 3), np.float32), "h": np.ones((1, 6, 2), np.float32)}
    return r.model(made, [("x", r.FLOAT, [1, 4, 3])], [("y", r.FLOAT, [1, 4, 1, 2])], opset=14, **weights)


def scatter() -> Any:
    made = r.node("ScatterElements", ["x", "i", "u"], ["y"], axis=1, reduction="add")
    inputs = [("x", r.FLOAT, [2, 3]), ("i", I64, [2, 1]), ("u", r.FLOAT, [2, 1])]
    return r.model(made, inputs, [("y", r.FLOAT, [2, 3])], opset=16)


def pad(opset: int, shape: list[Any], **pads: Any) -> Any:
    return one("Pad", [shape], None, opset=opset, **pads)


def einsum(equation: str, *shapes: list[int]) -> Any:
    return one("Einsum", list(shapes), None, equation=equation)


def group_norm() -> Any:
    ones = np.ones(2, np.float32)
    return one("GroupNormalization", [IMAGE], IMAGE, num_groups=1, s=ones, b=ones)


#: (failure, what, model, the opset that is asked for, what becomes of it)
CASES: list[tuple[str, str, Callable[[], Any], int | None, str]] = [
    *[
        (f"reduce-{name}", f"{op} of {dtype}", lambda op=op, d=dtype: r.reduction(op, r.KINDS[d], 18), 18, want)
        for op, want in (
            ("ReduceMean", REPAIRED), ("ReduceL2", REFUSED), ("ReduceLogSum", REFUSED), ("ReduceLogSumExp", REFUSED),
        )
        for name, dtype in (("integers", "i32"), ("integers", "i64"), ("unsigned", "u32"), ("unsigned", "u64"))
    ],
    ("reduce-f64", "ReduceMax", lambda: r.reduction("ReduceMax", r.DOUBLE, 20), 20, REFUSED),
    ("reduce-f64", "ReduceMin", lambda: r.reduction("ReduceMin", r.DOUBLE, 20), 21, REFUSED),
    ("rank", "Add", lambda: one("Add", [NINE, NINE], NINE), None, REFUSED),
    ("rank", "ReduceSum", lambda: r.reduction("ReduceSum", shape=NINE, axes=[8]), None, REFUSED),
    ("rank", "Transpose", lambda: one("Transpose", [NINE], NINE), None, REFUSED),
    *[
        ("reduce-bytes-18", dtype, lambda d=dtype: r.reduction("ReduceMax", r.KINDS[d], 18), 18, REPAIRED)
        for dtype in ("i8", "u8")
    ],
    ("cast-bool", "Cast", cast, None, REPAIRED),
    ("log-sum-exp", "f32", lambda: r.reduction("ReduceLogSumExp"), None, REPAIRED),
    ("log-sum-exp", "f16", lambda: r.reduction("ReduceLogSumExp", r.HALF), None, REPAIRED),
    ("empty", "ReduceMax", lambda: r.reduction("ReduceMax", shape=(2, 0)), None, REPAIRED),
    ("empty", "ReduceProd", lambda: r.reduction("ReduceProd", shape=(2, 0)), None, REPAIRED),
    ("empty", "Gemm", lambda: one("Gemm", [[2, 0], [0, 3]], [2, 3]), None, REFUSED),
    ("layer-norm-results", "three", layer_norm, None, REPAIRED),
    ("group-norm", "GroupNormalization", group_norm, None, REPAIRED),
    ("resize-cubic", "cubic", lambda: resize(mode="cubic"), None, WARNED),
    ("resize-outside", "excluded", lambda: resize(mode="linear", exclude_outside=1), None, WARNED),
    (
        "resize-extrapolation",
        "cropped",
        lambda: resize(coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=1.0),
        None,
        WARNED,
    ),
    ("resize-extrapolation", "not cropped", lambda: resize(extrapolation_value=1.0), None, REPAIRED),
    ("scatter-reduction", "add", scatter, 16, WARNED),
    ("max-pool-order", "indices", pool, None, WARNED),
    ("batch-norm-training", "training", batch_norm, None, WARNED),
    ("rnn-layout", "GRU", gru, None, REFUSED),
    ("pad-negative-attribute", "at 10", lambda: pad(10, [2, 3], pads=[1, -1, 0, 0]), None, REPAIRED),
    ("pad-negative", "at 21", lambda: pad(21, [2, 3], pads=np.array([1, -1, 0, 0])), None, REPAIRED),
    ("pad-negative", "open", lambda: pad(21, ["N", 3], pads=np.array([-1, 0, 0, 0])), None, REPAIRED),
    ("pad-negative", "too many", lambda: pad(21, [2, 3], pads=np.array([-3, 0, 2, 0])), None, REFUSED),
    ("einsum-operands", "three", lambda: einsum("ij,jk,kl->il", *[[2, 2]] * 3), None, REPAIRED),
    ("einsum-operands", "six", lambda: einsum("ij,jk,kl,lm,mn,no->io", *[[2, 2]] * 6), None, WARNED),
    ("einsum-ellipsis", "equal", lambda: einsum("...ij->...ji", [2, 3, 4]), None, REPAIRED),
    *[
        (name, "fact", lambda name=name: FACTS[name]()[0], None, want)
        for want, names in (
            (REPAIRED, "cast-int-bool matmul-rank split-gate pow-int trilu-rank skip-norm-bias skip-norm-broadcast"),
            (REPAIRED, "quantize-blocks conv-transpose-line conv-transpose-size"),
            (REPAIRED, "conv-transpose-start reshape-allowzero slice-steps gather-nd-number resize-pytorch-pixel"),
            (REPAIRED, "lrn-rank lrn-rank-low quantized-sigmoid resize-aspect"),
            (REPAIRED, "einsum-letters einsum-product mha-bias-broadcast gemm-batch lp-epsilon"),
            (REPAIRED, "fused-matmul-rank fused-gemm-batch"),
            (REFUSED, "resize-rank mha-unidirectional mha-scale"),
            (REFUSED, "mha-keys-by-head mha-cache mha-scores mha-past-mask"),
            (REFUSED, "gqa-operands gqa-packed gqa-causal gqa-norms attention-rotary"),
            (WARNED, "attention-past quantized-attention-past attention-present attention-causal"),
            (WARNED, "weight-block"),
            (ADVISED, "norm-f16 skip-norm-f16 lp-pool-f16 sum-f16 quantize-4-bit"),
            (REFUSED, "gqa-rotary gqa-window gqa-softcap gqa-smooth"),
            (WARNED, "batch-norm-mixed simplified-norm-results skip-norm-results mvn-epsilon"),
        )
        for name in names.split()
    ],
    ("quantized-extreme", "at 18", lambda: FACTS["quantized-extreme"]()[0], 18, REPAIRED),
    ("pow-int", "negative", lambda: power(-1), None, REFUSED),
    ("gelu", "none", lambda: one("Gelu", [[2, 3]], [2, 3]), None, REPAIRED),
    ("gelu", "tanh", lambda: one("Gelu", [[2, 3]], [2, 3], approximate="tanh"), None, REPAIRED),
    ("gelu", "f64", lambda: of_f64(one("Gelu", [[2, 3]], [2, 3])), None, WARNED),
    ("fast-gelu", "FastGelu", lambda: one("com.microsoft.FastGelu", [[2, 3]], [2, 3]), None, REPAIRED),
    ("einsum-ellipsis", "broadcast", lambda: einsum("...ij,...jk->...ik", [2, 3, 4], [1, 4, 2]), None, WARNED),
]  # fmt: skip


def outcome(program: dmlc.Program, failure: str) -> str:
    if failure not in r.troubles(program):
        return REPAIRED if r.fired(program) else "nothing was wrong"
    if r.refusals(program):
        return REFUSED
    codes = {d.code.id for d in program.diagnostics}
    return WARNED if {"W0601", "W0610"} & codes else ADVISED if "W0611" in codes else "without a word"


@each_row(
    ("failure", "make", "opset", "want"),
    [pytest.param(f, make, opset, want, id=f"{f}: {what}") for f, what, make, opset, want in CASES],
)
def test_what_becomes_of_it(failure: str, make: Callable[[], Any], opset: int | None, want: str) -> None:
    assert outcome(dmlc.compile(make(), opset=opset), failure) == want


def test_every_known_failure_has_a_case() -> None:
    known = {failure.id for failure in provider("dml_ep").failures}
    older = {failure.id for failure in provider("dml_ep").failures if failure.last_release}  # see test_releases
    assert {failure for failure, *_ in CASES} == known - older - {"fused-output"}  # see test_fused_results


def test_rules_name_failures_that_exist_and_are_listed() -> None:
    known = {failure.id for name in ("dml_ep", "webgpu_ep") for failure in provider(name).failures}
    listed = {rule.name: rule for rule in all_rules()}
    for rule in RULES:
        assert set(rule.repairs) <= known
        assert "repair" in listed[rule.name].passes and listed[rule.name].summary.endswith(".")
