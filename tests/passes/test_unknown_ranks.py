"""Values of unknown rank: ``check`` names the node that hides the rank, and what makes it known."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.cli.main import main
from tests.rows import each_row

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


def model(loss: str) -> onnx.ModelProto:
    body = f"{LOSSES[loss][0]} y = Neg(r)"
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[N, 4] x, float[] u, int64[K] s) => (float[] y)
        <int64[1] last = {{-1}}, int64[1] m1 = {{-1}}> {{ {body} }}"""
    )


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
    onnx.save(model(loss), path)
    main(["check", str(path), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    begun = {"far away": "b", "an input": "u"}.get(loss, "r")
    wanted = f"the rank of `{begun}` is not known: {text}" + (f" ({help})" if help else "")
    assert wanted in document["unknown_ranks"]
    main(["check", str(path)])
    assert f"note: {wanted}" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        ("a fed shape", ["--bind", "K=2"]),
        ("no axes", ["--bind", "N=3"]),
        ("far away", ["--bind", "K=3"]),
        ("an input", ["--shape", "u=2,4"]),
    ],
)
def test_what_the_help_says_makes_the_rank_known(
    loss: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.onnx"
    found = model(loss)
    if loss != "an input":
        del found.graph.input[1]
    onnx.save(found, path)
    assert f"{options[0]} {options[1].partition('=')[0]}=... makes it known" in LOSSES[loss][2]
    main(["check", str(path), "--format", "json", *options])
    assert "unknown_ranks" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("loss", "named"), [("a fed shape", "s"), ("no axes", "x")])
def test_sizes_without_a_name_are_given_by_their_input(
    loss: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nameless = model(loss)
    for info in nameless.graph.input:
        for size in info.type.tensor_type.shape.dim:
            if size.dim_param:
                size.Clear()
    path = tmp_path / "m.onnx"
    onnx.save(nameless, path)
    main(["check", str(path), "--format", "json"])
    (_, cause) = json.loads(capsys.readouterr().out)["unknown_ranks"]
    assert f"(--shape {named}=... makes it known)" in cause


def test_alike_ranks_are_one_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[4] x, int64[K] s) => (float[] y, float[] z, float[] w)
    { y = Reshape(x, s) z = Reshape(x, s) w = Relu(x) }"""
    made = parser.parse_model(text)
    for output in made.graph.output:
        output.type.tensor_type.ClearField("shape")
    onnx.save(made, tmp_path / "m.onnx")
    main(["check", str(tmp_path / "m.onnx")])
    notes = [line for line in "".join(capsys.readouterr()).splitlines() if line.startswith("note: ")]
    (note,) = notes
    assert note.startswith("note: the rank of `y` is not known: Reshape `y` takes its shape from `s` (")
    assert note.endswith("; 1 other value for the same reason (-v lists it)")
