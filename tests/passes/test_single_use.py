"""A rewrite that does the work of several nodes leaves them where a result of theirs is used elsewhere, an output too.

Each program fires its rule as it is; with any of its named values as a further output it must not.
"""

from __future__ import annotations

from typing import Any

import pytest

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

#: Rule, statements, the input's type, options.
PROGRAMS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("sum-of-squares", "a = x * x; y = reduce_sum(a, axes=[1])", "f32[4, 8]", {}),
    ("sum-of-magnitudes", "a = abs(x); y = reduce_sum(a, axes=[1])", "f32[4, 8]", {}),
    ("norm-of-magnitude", "a = abs(x); y = reduce_l2(a, axes=[1])", "f32[4, 8]", {}),
    ("root-of-squares", "a = reduce_sum_square(x, axes=[1]); y = sqrt(a)", "f32[4, 8]", {}),
    ("log-of-sum", "a = reduce_sum(x, axes=[1]); y = log(a)", "f32[4, 8]", {}),
    ("log-sum-exp", "a = exp(x); y = reduce_log_sum(a, axes=[1])", "f32[4, 8]", {"target": "numpy"}),
    ("mean-from-sum", "a = reduce_sum(x, axes=[1]); y = a / 8.0", "f32[4, 8]", {}),
    ("normalize-by-norm", "a = reduce_l2(x, axes=[1], keepdims=true); y = x / a", "f32[4, 8]", {"target": "onnx"}),
    (
        "casts-around-maximum",
        "a = cast(x, to=f32); b = reduce_max(a, axes=[1]); y = cast(b, to=f16)",
        "f16[4, 8]",
        {"target": "onnx"},
    ),
    (
        "drop-transpose-before-reduction",
        "a = transpose(x, perm=[1, 0, 2]); y = reduce_max(a, axes=[0])",
        "f32[4, 8, 3]",
        {},
    ),
    (
        "sink-transpose-between-reductions",
        "a = reduce_sum(x, axes=[3], keepdims=false); b = transpose(a, perm=[2, 1, 0]); y = reduce_sum(b, axes=[0])",
        "f32[4, 8, 3, 5]",
        {},
    ),
    (
        "merge-nested-reductions",
        "a = reduce_sum(x, axes=[2]); y = reduce_sum(a, axes=[1])",
        "f32[4, 8, 3]",
        {},
    ),
    (
        "arg-of-flattened",
        "a = reshape(x, shape=[32]); y = argmax(a, axes=[0], keepdims=false)",
        "f32[4, 8]",
        {},
    ),
    ("gather-at-arg", "a = argmax(x, axes=[1], dtype=i64); y = gather_elements(x, a, axis=1)", "f32[4, 8]", {}),
    (
        "hot-argmax",
        "a = argmax(x, axes=[1], keepdims=false); y = one_hot(a, depth=8, axis=1, dtype=f32)",
        "f32[4, 8]",
        {},
    ),
    ("search-of-rising", "a = exp(x); y = argmax(a, axes=[1])", "f32[4, 8]", {}),
    ("search-of-wider", "a = cast(x, to=f32); y = argmax(a, axes=[1])", "f16[4, 8]", {}),
    ("arg-of-negation", "a = -x; y = argmax(a, axes=[1])", "f32[4, 8]", {}),
    ("log-of-softmax", "a = softmax(x, axes=[1]); y = log(a)", "f32[4, 8]", {}),
    ("power-of-log-softmax", "a = log_softmax(x, axes=[1]); y = exp(a)", "f32[4, 8]", {}),
    (
        "difference-from-log-sum-exp",
        "a = reduce_log_sum_exp(x, axes=[1], keepdims=true); y = x - a",
        "f32[4, 8]",
        {},
    ),
    (
        "shift-before-softmax",
        "a = reduce_max(x, axes=[1], keepdims=true); b = x - a; y = softmax(b, axes=[1])",
        "f32[4, 8]",
        {},
    ),
    (
        "softmax-of-transpose",
        "a = transpose(x, perm=[1, 0]); b = softmax(a, axes=[0]); y = transpose(b, perm=[1, 0])",
        "f32[4, 8]",
        {},
    ),
    (
        "written-out-softmax",
        "a = exp(x); b = reduce_sum(a, axes=[1], keepdims=true); y = a / b",
        "f32[4, 8]",
        {},
    ),
    ("scaled-statistic", "a = reduce_mean(x, axes=[1]); y = a * 8.0", "f32[4, 8]", {}),
    (
        "shifted-log-sum-exp",
        "a = reduce_max(x, axes=[1], keepdims=true); b = x - a; c = reduce_log_sum_exp(b, axes=[1]); y = c + a",
        "f32[4, 8]",
        {},
    ),
    (
        "softmax-of-reshape",
        "a = reshape(x, shape=[2, 2, 8]); b = softmax(a, axes=[2]); y = reshape(b, shape=[4, 8])",
        "f32[4, 8]",
        {},
    ),
    (
        "drop-flatten-before-reduction",
        "a = reshape(x, shape=[32]); y = reduce_max(a, axes=[0], keepdims=false)",
        "f32[4, 8]",
        {},
    ),
    (
        "absorb-move-into-keepdims",
        "a = reduce_max(x, axes=[1], keepdims=false); y = unsqueeze(a, axes=[1])",
        "f32[4, 8]",
        {},
    ),
    ("reduction-before-expand", "a = expand(x, shape=[4, 8, 3]); y = reduce_max(a, axes=[1])", "f32[4, 8, 1]", {}),
    ("matmul-from-sum", "a = x * b; y = reduce_sum(a, axes=[2])", "f32[4, 1, 8], b: f32[1, 5, 8]", {}),
    ("matmul-from-weighted-sum", "a = x * b; y = reduce_sum(a, axes=[0])", "f32[4, 8], b: f32[4, 1]", {}),
    ("rising-after-extreme", "a = exp(x); y = reduce_max(a, axes=[1])", "f32[4, 8]", {}),
    ("scale-after-sum", "a = x * 3.0; y = reduce_sum(a, axes=[1])", "f32[4, 8]", {}),
    ("shift-after-mean", "a = x + 3.0; y = reduce_mean(a, axes=[1])", "f32[4, 8]", {}),
    (
        "fuse-layer-norm",
        "a = reduce_mean(x, axes=[1]); b = x - a; c = b * b; d = reduce_mean(c, axes=[1]); e = d + 0.001; "
        "f = sqrt(e); y = b / f",
        "f32[4, 8]",
        {},
    ),
    ("reduction-of-expand", "a = expand(x, shape=[4, 8, 3]); y = reduce_max(a, axes=[2])", "f32[4, 8, 1]", {}),
    (
        "hot-argmax",
        "a = argmax(x, axes=[1], keepdims=false); b = one_hot(a, depth=8, axis=0, dtype=f32); "
        "y = transpose(b, perm=[1, 0])",
        "f32[4, 8]",
        {},
    ),
    (
        "hot-argmax",
        "a = argmax(x, axes=[1], keepdims=false); b = one_hot(a, depth=8, axis=1, dtype=i32); y = cast(b, to=f32)",
        "f32[4, 8]",
        {},
    ),
    (
        "arg-of-flattened",
        "a = reshape(x, shape=[32]); b = argmax(a, axes=[0], keepdims=true); y = reshape(b, shape=[1, 1])",
        "f32[4, 8]",
        {},
    ),
]


def _fired(rule: str, body: str, kind: str, options: dict[str, Any], *outputs: str) -> dmlc.Program | None:
    lines = [*body.split("; "), f"return {', '.join(outputs)}"]
    text = f"model t(x: {kind}) -> ({', '.join(outputs)}) {{\n    " + "\n    ".join(lines) + "\n}\n"
    program = dmlc.compile(Source("t.dml", text), **{"allow": ("range",), **options})
    return program if rule in {entry.rule for entry in program.ledger} else None


CASES = [
    pytest.param(*program, name, id=f"{program[0]}-{name}")
    for program in PROGRAMS
    for name in [statement.split(" = ")[0] for statement in program[1].split("; ")]
]


@each_row(("rule", "body", "kind", "options", "name"), CASES)
def test_a_value_that_is_used_elsewhere(rule: str, body: str, kind: str, options: dict[str, Any], name: str) -> None:
    outputs = ("y",) if name == "y" else ("y", name)
    assert (_fired(rule, body, kind, options, *outputs) is not None) is (name == "y")
