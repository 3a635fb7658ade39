"""Attention that becomes one operator: spellings, near misses, and the numbers of ONNX Runtime's CPU kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attention_models import B, H, N, S, Sketch, T, attention, feeds_of, fused, operators, qkv, run, same_numbers
from attention_spellings import (
    MISSES,
    SPELLINGS,
    attention_of_opset_23,
    condition_that_may_hide_rows,
    constant_condition_that_hides_a_row,
    grown,
    half,
    safe,
    safe_softmax,
    scale_behind_the_product,
    two_biases,
)
from onnx import ModelProto

import dmlc
from dmlc import DmlcError
from tests.rows import each_row
from tests.versions import needs_onnx_runtime


@each_row("name", SPELLINGS)
def test_spellings_become_one_operator(name: str) -> None:
    model = SPELLINGS[name]()
    made, classes, reasons = fused(model)
    assert classes == ["reassociates"] and not reasons
    left = operators(made)
    assert left["MultiHeadAttention"] == 1 and not left["Softmax"]
    for seed in range(3):
        same_numbers(model, made, feeds_of(model, seed))


#: More operators go than are said: two transposes around a reshape cancel, which the count does not follow.
SAVES_MORE = ("scale_with_more_axes_than_scores_of_heads_in_the_batch", "scale_with_more_axes_than_the_query")


@each_row("name", SPELLINGS)
def test_nothing_is_fused_where_it_is_not_asked_for(name: str) -> None:
    model = SPELLINGS[name]()
    program = dmlc.compile(model)
    plain, made = program.to_onnx(), fused(model)[0]
    assert not operators(plain)["MultiHeadAttention"]
    saved = sum(operators(plain).values()) - sum(operators(made).values())
    reasons = [remark.reason() for remark in program.remarks if remark.rule == "multi-head-attention"]
    said = [int(reason.partition("save at least ")[2].split()[0]) for reason in reasons]
    assert saved > 0
    assert said == [saved] or (name in SAVES_MORE and 0 < said[0] < saved)


@each_row("name", SPELLINGS)
def test_fused_models_compile_to_themselves(name: str) -> None:
    made, _, _ = fused(SPELLINGS[name]())
    again, classes, _ = fused(made)
    assert not classes
    assert [n.op_type for n in again.graph.node] == [n.op_type for n in made.graph.node]
    types = {info.name for info in (*made.graph.value_info, *made.graph.output)}
    (node,) = [n for n in made.graph.node if n.op_type == "MultiHeadAttention"]
    assert node.output[0] in types


@pytest.mark.parametrize("heads", [1, N])
def test_rows_that_are_hidden_as_a_whole_are_zeros(heads: int) -> None:
    model = safe(Sketch(), heads=heads)
    made, _, _ = fused(model)
    feeds = feeds_of(model)
    feeds["keep"][1, 0, 2] = False
    feeds["keep"][0, -1, 4] = False
    assert (run(model, feeds)[0][1, 2, :H] == 0).all()
    same_numbers(model, made, feeds)


@needs_onnx_runtime(1, 24, "gives NaN for a row of MultiHeadAttention that is hidden as a whole")
def test_rows_of_opset_23_that_are_hidden_as_a_whole_are_zeros() -> None:
    model = attention_of_opset_23()
    made, _, _ = fused(model)
    feeds = feeds_of(model)
    feeds["keep"][1, 0, 2] = False
    assert (run(made, feeds)[0][1, 2] == 0).all()
    same_numbers(dmlc.compile(model).to_onnx(), made, feeds)


def test_biases_shared_by_layers_are_expanded_once() -> None:
    s = Sketch()
    x, bias = s.input("x", [B, S, N * H]), s.input("bias", [B, 1, 1, S])
    for _ in range(3):
        q, k, v = s.heads(x), s.heads(s("Exp", x)), s.heads(s("Tanh", x))
        x = attention(s, q, k, v, bias=bias)
    model = s.done(x)
    made, classes, _ = fused(model)
    left = operators(made)
    assert len(classes) == 3 and left["MultiHeadAttention"] == 3 and left["Expand"] == 1
    same_numbers(model, made, feeds_of(model))


@pytest.mark.parametrize("shape", [(3, 1, 9), (1, 6, 1), (2, 0, 4), (2, 3, 0)])
def test_open_sizes(shape: tuple[int, int, int]) -> None:
    s = Sketch()
    model = s.done(attention(s, *qkv(s, batch="b", length="s", total="t"), bias=s.input("bias", ["b", N, "s", "t"])))
    made, classes, _ = fused(model)
    assert classes == ["reassociates"]
    same_numbers(model, made, feeds_of(model, b=shape[0], s=shape[1], t=shape[2]))


@pytest.mark.parametrize(
    ("lengths", "bias", "reason", "fixed"),
    [
        (("l", "t"), [1, 1, 1, T], f"the sizes {T} and t are not known to fit: --bind t=...", {"t": T}),
        (
            ("l", T),
            [1, 1, "m", T],
            "the sizes l and m are not known to fit: --bind l=... --bind m=...",
            {"l": S, "m": S},
        ),
        (("l", "t"), ["b", 1, 1, "m"], "--bind m=... --bind t=...", {"m": T, "t": T}),
        (
            ("l", "t"),
            ["c", N, "l", "t"],
            "--bind b=... --bind c=... --bind l=... --bind t=...",
            {"b": B, "c": B},
        ),
    ],
)
def test_sizes_that_are_not_known_to_fit_are_named(
    lengths: tuple[Any, Any], bias: list[Any], reason: str, fixed: dict[str, int]
) -> None:
    s = Sketch()
    q, k, v = qkv(s, batch="b", length=lengths[0], total=lengths[1])
    model = s.done(attention(s, q, k, v, bias=s.input("bias", bias)))
    _made, classes, reasons = fused(model)
    assert not classes and len(reasons) == 1 and reasons[0].endswith(reason)
    _made, classes, reasons = fused(model, bind=fixed)
    assert classes == ["reassociates"] and not reasons


@each_row("name", MISSES)
def test_near_misses_stay(name: str) -> None:
    make, reason = MISSES[name]
    model = make()
    made, classes, reasons = fused(model)
    assert not classes and not operators(made)["MultiHeadAttention"]
    assert reason in " ".join(reasons)
    same_numbers(model, made, feeds_of(model))


@pytest.mark.parametrize("make", [condition_that_may_hide_rows, constant_condition_that_hides_a_row])
def test_rows_may_be_hidden_where_ranges_are_allowed(make: Callable[[], ModelProto]) -> None:
    model = make()
    made, classes, _ = fused(model, allow=("range",))
    assert classes == ["range"]
    same_numbers(model, made, feeds_of(model))


def test_exact_keeps_the_primitives() -> None:
    model = scale_behind_the_product()
    made, classes, reasons = fused(model, exact=True)
    assert not classes and "reassociates" in reasons[0]
    assert operators(made)["Softmax"] == 1


@pytest.mark.parametrize("place", ["query", "key"])
def test_scale_of_f16_stays_where_it_was(place: str) -> None:
    """A scale behind the product can leave the range of f16 where one before it does not."""
    model = half(place)
    made, classes, _ = fused(model)
    (node,) = [n for n in made.graph.node if n.op_type == "MultiHeadAttention"]
    assert classes == ["reassociates"] and operators(made)["Mul"] == 1
    assert {a.name: a.f for a in node.attribute}["scale"] == 1
    same_numbers(model, made, feeds_of(model))
    made, classes, _ = fused(model, allow=("range",))
    assert classes == ["range"] and operators(made)["Mul"] == 0


def test_scale_of_f16_scores_joins_the_operator() -> None:
    model = half("scores")
    made, classes, _ = fused(model)
    assert classes == ["reassociates"] and operators(made)["Mul"] == 0
    same_numbers(model, made, feeds_of(model))


def test_expanded_bias_of_many_bytes_stays() -> None:
    s = Sketch()
    q, k, v = (s.heads(s.input(n, [1, 4096, N * H])) for n in ("q", "k", "v"))
    _made, classes, reasons = fused(s.done(attention(s, q, k, v, bias=s.input("bias", [1, 1, 4096, 4096]))))
    assert not classes and "the expanded bias would take 268,435,456 bytes" in reasons[0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"feature_level": "6.0"}, "feature level 6.0 has no MultiHeadAttention: 6.1 has"),
        ({"skip_rules": ("multi-head-attention",)}, ""),
    ],
)
def test_targets_without_the_operator_keep_the_primitives(options: dict[str, Any], reason: str) -> None:
    made, classes, reasons = fused(scale_behind_the_product(), **options)
    assert not classes and operators(made)["Softmax"] == 1
    assert reason in " ".join(reasons)


@pytest.mark.parametrize("target", ["directml", "directml:ort-1.17"])
def test_every_release_that_is_a_target_has_the_kernel(target: str) -> None:
    _made, classes, _ = fused(scale_behind_the_product(), target=target)
    assert classes == ["reassociates"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"fuse": ("attention",), "target": "cpu"}, "target cpu has no operator for attention"),
        ({"fuse": ("attention",), "target": "onnx"}, "target onnx has no operator for attention"),
        ({"fuse": ("attentoin",)}, "fuse is one or more of attention, not"),
    ],
)
def test_other_targets_and_names_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(DmlcError, match=text) as caught:
        dmlc.compile(scale_behind_the_product(), **options)
    assert caught.value.exit_code == 2 and caught.value.diagnostics[0].code.id == "E0556"


def test_fused_node_is_on_directml() -> None:
    program = dmlc.compile(safe_softmax(), fuse=("attention",))
    assert not program.placement().findings
    assert program.losses() == (0, 0)


def test_a_ledger_keeps_the_fusions() -> None:
    model = two_biases()
    program = dmlc.compile(model, fuse=("attention",))
    document = program.ledger_document()
    assert document["options"]["fuse"] == ["attention"]
    assert dmlc.compile(model, **document["options"]).to_onnx() == program.to_onnx()


def test_grown_models_keep_their_numbers() -> None:
    """Compare models that are fused and models that are not; a third at least is fused."""
    count, fused_models = 45, 0
    for seed in range(count):
        model = grown(seed)
        made, classes, _ = fused(model, allow=("range",) if seed % 3 == 0 else ())
        fused_models += bool(classes)
        feeds = feeds_of(model, seed)
        if seed % 3 == 0 and "range" in classes:
            continue  # a row may be hidden as a whole
        same_numbers(model, made, feeds)
    assert 3 * fused_models > count
