"""Normalizations over values of unknown rank: ``explain`` and ``check`` name the node that hides the rank, and what
makes it known."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.cli.main import main
from tests.rows import each_row

NORMS = {
    "fuse-layer-norm": "m = ReduceMean <axes = [-1]> ({x}) d = Sub({x}, m) p = Pow(d, two) "
    "v = ReduceMean <axes = [-1]> (p) w = Add(v, e) q = Sqrt(w) y = Div(d, q)",
    "fuse-rms-norm": "p = Mul({x}, {x}) v = ReduceMean <axes = [-1]> (p) w = Add(v, e) q = Sqrt(w) i = Reciprocal(q) "
    "y = Mul({x}, i)",
    "written-out-softmax": "m = ReduceMax <axes = [-1]> ({x}) d = Sub({x}, m) p = Exp(d) "
    "v = ReduceSum <keepdims = 1> (p, last) y = Div(p, v)",
}
#: Ways to lose a rank: the nodes that make r, why its rank is not known, what makes it known.
LOSSES = {
    "a fed shape": ("r = Reshape(x, s)", "Reshape `r` takes its shape from `s`", "--bind K=... makes it known"),
    "an expansion": ("r = Expand(x, s)", "Expand `r` takes its shape from `s`", "--bind K=... makes it known"),
    "a shape of data": (
        "f = Cast <to = 9> (s) n = NonZero(f) t = Reshape(n, m1) r = Reshape(x, t)",
        "Reshape `r` takes its shape from `t`",
        "make `t` a constant",
    ),
    "axes": ("r = Squeeze(x, s)", "Squeeze `r` takes its axes from `s`", "--bind K=... makes it known"),
    "no axes": (
        "r = Squeeze(x)",
        "Squeeze `r` drops the axes of size 1 of `x`, whose sizes are [N, 4]",
        "--bind N=... makes it known",
    ),
    "an unknown operator": ("r = mine.Odd(x)", "nothing determines the shape that mine.Odd `r` gives", ""),
    "an operator without operands": ("r = mine.Odd()", "nothing determines the shape that mine.Odd `r` gives", ""),
    "a branch, not what it asks of another value": (
        "n = Size(u) c = Greater(n, m1) t = Unsqueeze(n, last) "
        "r = If(c) <then_branch = a () => (float[] p) { p = Reshape(x, s) }, "
        "else_branch = b () => (float[] o) { d = Shape(u) o = Expand(x, d) }>",
        "nothing determines the shape that If `r` gives",
        "",
    ),
    "an input": ("r = Relu(u)", "the model declares `u` without a shape", "--shape u=... makes it known"),
    "far away": (
        "b = Reshape(x, s) c = Relu(b) r = Neg(c)",
        "Reshape `b` takes its shape from `s`",
        "--bind K=... makes it known",
    ),
}


def model(loss: str, norm: str) -> onnx.ModelProto:
    body = f"{LOSSES[loss][0]} {NORMS[norm].format(x='r')}"
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[N, 4] x, float[] u, int64[K] s) => (float[] y)
        <float e = {{1e-5}}, float two = {{2}}, int64[1] last = {{-1}}, int64[1] m1 = {{-1}}> {{ {body} }}"""
    )


@each_row("norm", NORMS)
@each_row("loss", LOSSES)
def test_a_normalization_names_what_hides_the_rank(loss: str, norm: str) -> None:
    _, text, help = LOSSES[loss]
    wanted = f"the rank of `r` is not known: {text}" + (f" ({help})" if help else "")
    remarks = {(r.rule, r.node.partition("/")[0], r.reason()) for r in dmlc.compile(model(loss, norm)).remarks}
    assert (norm, "y", wanted) in remarks


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("loss", "binding"), [("a fed shape", {"K": 2}), ("no axes", {"N": 3}), ("far away", {"K": 3})]
)
def test_what_the_remark_says_to_bind_makes_the_rank_known(loss: str, binding: dict[str, int], norm: str) -> None:
    program = dmlc.compile(model(loss, norm), bind=binding)
    assert not [r for r in program.remarks if "rank of" in r.reason()]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("loss", "named", "shapes"),
    [("a fed shape", "s", {"s": (2,)}), ("no axes", "x", {"x": (3, 4)}), ("an input", "u", {"u": (2, 4)})],
)
def test_the_remark_names_the_input_whose_shape_makes_the_rank_known(
    loss: str, named: str, shapes: dict[str, tuple[int, ...]], norm: str
) -> None:
    nameless = model(loss, norm)
    for info in nameless.graph.input:
        for size in info.type.tensor_type.shape.dim:
            if size.dim_param:
                size.Clear()
    reasons = [r.reason() for r in dmlc.compile(nameless).remarks]
    assert any(f"(--shape {named}=... makes it known)" in reason for reason in reasons)
    assert not [r for r in dmlc.compile(nameless, shapes=shapes).remarks if "rank of" in r.reason()]


NEAR_MISSES = {
    "no root": "m = ReduceMean <axes = [-1]> (r) d = Sub(r, m) p = Pow(d, two) "
    "v = ReduceMean <axes = [-1]> (p) y = Sub(d, v)",
    "a mean alone": "m = ReduceMean <axes = [-1]> (r) y = Div(r, m)",
    "powers over their mean": "p = Exp(r) v = ReduceMean <axes = [-1]> (p) y = Div(p, v)",
    "a value over its own sum": "v = ReduceSum <keepdims = 1> (r, last) y = Div(r, v)",
    "a sum of something else": "m = Exp(r) n = Neg(r) k = Exp(n) v = ReduceSum <keepdims = 1> (k, last) y = Div(m, v)",
    "another value under the root": "n = Tanh(r) p = Mul(n, n) v = ReduceMean <axes = [-1]> (p) "
    "q = Sqrt(v) y = Div(r, q)",
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_is_not_a_normalization_gets_no_remark(name: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[N, 4] x, int64[K] s) => (float[] y)
        <float two = {{2}}, int64[1] last = {{-1}}> {{ r = Reshape(x, s) {NEAR_MISSES[name]} }}"""
    assert not [r for r in dmlc.compile(parser.parse_model(text)).remarks if "rank of" in r.reason()]


@pytest.mark.parametrize("norm", NORMS)
def test_a_rule_that_is_skipped_gets_no_remark(norm: str) -> None:
    for options in ({"skip_rules": (norm,)}, {"only_rules": ("dce",)}):
        remarks = dmlc.compile(model("an input", norm), **options).remarks
        assert norm not in {remark.rule for remark in remarks if "rank of" in remark.reason()}


@each_row("node", ["Reshape(u)", "Expand(u)", "ConstantOfShape()"])
def test_an_operator_that_takes_a_shape_without_one_is_refused(node: str) -> None:
    """Reasons of unknown ranks read that operand unasked."""
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[] u) => (float[] y) {{ y = {node} }}"""
    with pytest.raises(dmlc.DmlcError, match="E0431"):
        dmlc.compile(parser.parse_model(text)).require_sound()


@pytest.mark.parametrize("loss", LOSSES)
def test_check_names_what_hides_a_rank(loss: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, text, help = LOSSES[loss]
    path = tmp_path / "m.onnx"
    onnx.save(model(loss, "fuse-rms-norm"), path)
    main(["check", str(path), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    begun = {"far away": "b", "an input": "u"}.get(loss, "r")
    wanted = f"the rank of `{begun}` is not known: {text}" + (f" ({help})" if help else "")
    assert wanted in document["unknown_ranks"]
    main(["check", str(path)])
    assert f"note: {wanted}" in "".join(capsys.readouterr())


def test_check_says_nothing_where_all_ranks_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    found = model("a fed shape", "fuse-rms-norm")
    del found.graph.input[1]
    onnx.save(found, path)
    main(["check", str(path), "--format", "json", "--bind", "K=2"])
    assert "unknown_ranks" not in json.loads(capsys.readouterr().out)
