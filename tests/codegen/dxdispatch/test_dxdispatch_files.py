"""The file itself: what it says of the examples of the page, what lies beside it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from dxdispatch_check import check, feeds_of, operators, program_of
from dxdispatch_lookups import Invalid
from dxdispatch_machine import Machine

import dmlc
from dmlc.cli.main import main
from dmlc.diagnostics import Source, on_command_line
from tests.rows import each_row

GOLDEN = Path(__file__).parent / "golden"
HEAD = """\
dim N in 1..64

model head(x: f32[N, 2, 3], c: bool[3], w: f16[4]) -> (first, last, top, place, hot, soft, any, picked) {
    p = transpose(x, perm=[2, 0, 1])
    first = argmax(x, axes=[0, 2])
    last = argmax(p, axes=[0, 1], ties=last, dtype=i64, keepdims=false)
    top, place = top_k(x, k=2, order=smallest, dtype=i32)
    hot = hardmax(w + 1, axes=[0])
    soft = softmax(where(c, x, -inf), axes=[1, 2])
    any = reduce_max(c, keepdims=false)
    picked = slice(x, starts=[-1], ends=[-4], axes=[2], steps=[-1])
    return first, last, top, place, hot, soft, any, picked
}
"""


def document(text: str, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(program_of(text, **options).artifact("dxdispatch").payload)
    return found


def refused(text: str, **options: Any) -> dmlc.DmlcError:
    with pytest.raises(dmlc.DmlcError) as caught:
        program_of(text, **options).artifact("dxdispatch")
    return caught.value


# --- what it says


def test_golden() -> None:
    """To change it, write the new payload there and read the difference."""
    text = program_of(HEAD, bind={"N": 2}).artifact("dxdispatch").payload
    assert text == (GOLDEN / "head.dxdispatch.json").read_text("utf-8")


def test_numbers_of_the_golden_file() -> None:
    check(HEAD, bind={"N": 2})
    check(HEAD, bind={"N": 1})


def test_the_example_of_the_page() -> None:
    """Microsoft's own example: two maxima, of which the first or the last wins."""
    x = np.array([4, 9, 1, 9, 2, 0, 3, 9, 5, 1, 8, 7], np.float32).reshape(2, 2, 3)
    for ties, index in (("first", [1, 0]), ("last", [4, 0])):
        text = f"model m(x: f32[2, 2, 3]) -> (i) {{\n    return argmax(x, axes=[0, 2], ties={ties})\n}}"
        artifact = program_of(text).artifact("dxdispatch")
        (found,) = Machine(artifact.payload, lambda _: x).run().values()
        assert found.dtype == np.uint32
        assert found.reshape(-1).tolist() == index


def test_text_is_the_same_each_time() -> None:
    assert document(HEAD, bind={"N": 2}) == document(HEAD, bind={"N": 2})


def test_broadcast_and_transpose_are_strides() -> None:
    text = "model m(x: f32[2, 3], b: f32[3, 1]) -> (y) {\n    return transpose(x) * b\n}"
    desc = document(text)["dispatchables"]["1_element_wise_multiply"]["desc"]
    assert desc["ATensor"] == {"DataType": "FLOAT32", "Sizes": [3, 2], "Strides": [1, 3]}
    assert desc["BTensor"] == {"DataType": "FLOAT32", "Sizes": [3, 2], "Strides": [1, 0]}
    assert desc["OutputTensor"] == {"DataType": "FLOAT32", "Sizes": [3, 2]}


def test_reshape_is_the_same_buffer() -> None:
    found = document("model m(x: f32[2, 6]) -> (y) {\n    return exp(reshape(x, shape=[3, 4]))\n}")
    (command,) = [c for c in found["commands"] if c["type"] == "dispatch"]
    assert command["bindings"] == {"InputTensor": "x", "OutputTensor": "y"}
    assert list(found["resources"]) == ["x", "y"]


def test_chained_reductions_are_one() -> None:
    text = "model m(x: f32[2, 3, 4]) -> (y) {\n    return reduce_sum(reduce_sum(x, axes=[0]), axes=[2])\n}"
    assert operators(program_of(text)) == ["REDUCE"]


def test_integer_mean_and_shifted_log_sum_exp_are_written_out() -> None:
    mean = "model m(x: i8[2, 3]) -> (y) {\n    return reduce_mean(x)\n}"
    # the cast back is the lowest byte, which an output needs packed
    assert operators(program_of(mean)) == ["CAST", "REDUCE", "ELEMENT_WISE_DIVIDE", "ELEMENT_WISE_IDENTITY"]


def test_large_constants_lie_beside_it() -> None:
    numbers = ", ".join(map(str, range(40)))
    text = f"const c: f32[40] = [{numbers}]\nmodel m(x: f32[40]) -> (y) {{\n    return x + c\n}}"
    artifact = program_of(text).artifact("dxdispatch")
    ((path, array),) = artifact.arrays.items()
    assert path.startswith("m.dxdispatch/")
    assert array.dtype == np.float32
    check(text)


def test_words_for_what_json_has_no_numbers_for() -> None:
    text = "const c: f16[4] = [inf, -inf, nan, -0.0]\nmodel m(x: f16[4]) -> (y, z) {\n    y = where(x == 0.0, c, x)\n"
    text += "    z = clip(x, min=-1)\n    return y, z\n}"
    found = document(text)
    assert "['inf', '-inf', 'nan', -0.0]" in [str(row["initialValues"]) for row in found["resources"].values()]
    assert found["dispatchables"]["3_element_wise_clip1"]["desc"]["Max"] == {"UInt16": 0x7C00}
    check(text, {"x": np.array([0, 0, 0, 0], np.float16)})
    check(text)


def test_names_that_are_no_file_names() -> None:
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("Add", ["a/b:0", "A_b_0"], ["out/y"])],
            "g",
            [onnx.helper.make_tensor_value_info(n, 1, [2]) for n in ("a/b:0", "A_b_0")],
            [onnx.helper.make_tensor_value_info("out/y", 1, [2])],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
    )
    found = json.loads(dmlc.compile(model).artifact("dxdispatch").payload)
    sources = [r["initialValues"].get("sourcePath") for r in found["resources"].values()]
    assert sources == ["g.dxdispatch/a_b_0.npy", "g.dxdispatch/A_b_0_2.npy", None]
    assert found["commands"][-1]["targetPath"] == "g.dxdispatch/out/out_y.npy"
    assert list(found["resources"]) == ["a/b:0", "A_b_0", "out/y"]


# --- models of others


def test_an_onnx_model() -> None:
    helper = onnx.helper
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[1, 2], keepdims=1),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Softmax", ["d"], ["s"], axis=-1),
        helper.make_node("ArgMax", ["s"], ["i"], axis=2, keepdims=0, select_last_index=1),
    ]
    x = helper.make_tensor_value_info("x", 1, ["N", 3, 4])
    outputs = [helper.make_tensor_value_info("s", 1, ["N", 3, 4]), helper.make_tensor_value_info("i", 7, ["N", 3])]
    graph = helper.make_graph(nodes, "g", [x], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    program = dmlc.compile(model, bind={"N": 2})
    feeds = feeds_of(program)
    artifact = program.artifact("dxdispatch")
    found = Machine(artifact.payload, lambda _: feeds["x"]).run()
    wanted = program.run(feeds, backend="cpu")
    np.testing.assert_allclose(found["g.dxdispatch/out/s.npy"], wanted["s"], rtol=1e-5)
    np.testing.assert_array_equal(found["g.dxdispatch/out/i.npy"], wanted["i"])
    assert "ARGMAX" in operators(program)


def test_instance_norms_are_made_of_what_the_language_has() -> None:
    """Rules that make ONNX operators do not fire here."""
    text = """model m(x: f32[2, 3, 4, 4], s: f32[3, 1, 1], b: f32[3, 1, 1]) -> (y) {
    d = x - reduce_mean(x, axes=[2, 3])
    return d / sqrt(reduce_mean(d * d, axes=[2, 3]) + 1e-5) * s + b
}"""
    check(text, scale=4)


# --- what is refused


def test_open_sizes() -> None:
    error = refused(HEAD)
    assert error.diagnostics[0].code.id == "E0581"
    assert "N" in error.diagnostics[0].message
    assert "bind={'N': 1}" in error.diagnostics[0].help


@pytest.mark.parametrize(
    "inputs",
    [
        {"x": [None]},
        {"x": [None, 3, None]},
        {"x": ["N", None], "w": ["N", 3]},
        {"x": [None, 2], "w": ["N", "M"]},
        {"x": ["unk__3", None], "w": ["unknown_7"]},
        {"x": ["N"], "w": ["N", 3]},
    ],
    ids=str,
)
def test_the_help_on_open_sizes_mends_the_model(
    inputs: dict[str, list[int | str | None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the options in the help the file is written."""
    monkeypatch.chdir(tmp_path)
    helper = onnx.helper
    nodes = [helper.make_node("Exp", [name], [f"{name}_y"]) for name in inputs]
    infos = [helper.make_tensor_value_info(name, 1, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(f"{name}_y", 1, [None] * len(shape)) for name, shape in inputs.items()]
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(helper.make_graph(nodes, "g", infos, results), opset_imports=opset, ir_version=8)
    onnx.save(model, "OLD.onnx")
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile("OLD.onnx").artifact("dxdispatch")
    keywords = caught.value.diagnostics[0].help.partition(";")[0].removeprefix("fix them: ")
    assert dmlc.compile("OLD.onnx", **eval(f"dict({keywords})")).artifact("dxdispatch")
    with on_command_line(), pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile("OLD.onnx").artifact("dxdispatch")
    options = caught.value.diagnostics[0].help.partition(";")[0].removeprefix("fix them: ").split()
    assert main(["compile", "OLD.onnx", "-o", "new.dxdispatch.json", *options]) == 0
    assert json.loads(Path("new.dxdispatch.json").read_text(encoding="utf-8"))["commands"]


@pytest.mark.parametrize(
    ("call", "code", "text"),
    [
        ("onnx.Gelu(x)", "E0580", "onnx.Gelu"),
        ("erf(x as f64)", "E0583", "ELEMENT_WISE_ERF takes f16 f32"),
        ("cumsum(x as f64, axis=0)", "E0583", "not f64"),
        ("slice(x, starts=[0], ends=[0], axes=[0])", "E0582", "f32[0, 3]"),
    ],
)
def test_refusals_name_the_line(call: str, code: str, text: str) -> None:
    (diagnostic,) = refused(f"model m(x: f32[2, 3]) -> (y) {{\n    return {call}\n}}").diagnostics
    assert diagnostic.code.id == code
    assert text in diagnostic.message
    assert diagnostic.labels[0].span.line == 2


def test_more_axes_than_directml_has() -> None:
    shape = ", ".join(["2"] * 9)
    (diagnostic,) = refused(f"model m(x: f32[{shape}]) -> (y) {{\n    return pad(x, pads={[1] * 18})\n}}").diagnostics
    assert diagnostic.code.id == "E0503"
    assert "up to 8 axes" in diagnostic.message


def test_empty_inputs() -> None:
    (diagnostic,) = refused(
        "dim N in 0..9\nmodel m(x: f32[N, 3]) -> (y) {\n    return exp(x)\n}", bind={"N": 0}
    ).diagnostics
    assert diagnostic.code.id == "E0582"
    assert "x is f32[0, 3]" in diagnostic.message


def test_feature_levels() -> None:
    text = "model m(x: f32[2, 3], s: f32[3]) -> (y, z) {\n    return rms_norm(x, s), hardmax(x)\n}"
    assert document(text)
    error = refused(text, feature_level="6.2")
    assert "MEAN_VARIANCE_NORMALIZATION2" in error.diagnostics[0].message
    assert "feature level 6.3" in error.diagnostics[0].help
    sums = "model m(x: i64[2, 3]) -> (y) {\n    return reduce_sum(x)\n}"
    assert "feature level 5.0 has it" in refused(sums, feature_level="4.1").diagnostics[0].help


@each_row("level", ["6.4", "5.2", "5.1", "5.0", "4.1", "4.0", "3.1", "3.0", "2.1"])
@each_row("bias", [False, True])
@each_row("axis", [1, 2, 3])
def test_scale_and_bias_of_layer_norm_at_each_feature_level(level: str, bias: bool, axis: int) -> None:
    """Before 5.2 both tensors come together; before 4.0 the channel axis has its whole size in both."""
    own = f"f32[{', '.join(map(str, (3, 4, 5)[axis - 1 :]))}]"
    operands = f"s: {own}, b: {own}" if bias else f"s: {own}"
    names = "s, b" if bias else "s"
    text = f"model m(x: f32[2, 3, 4, 5], {operands}) -> (y) {{\n    return layer_norm(x, {names}, axis={axis})\n}}"
    check(text, feature_level=level)
    (row,) = document(text, feature_level=level)["dispatchables"].values()
    older = tuple(map(int, level.split(".")))
    assert ("BiasTensor" in row["desc"]) == (bias or older < (5, 2))
    for name in ("ScaleTensor", "BiasTensor"):
        if name in row["desc"] and older < (4, 0):
            assert row["desc"][name]["Sizes"][1] == 3


def test_scales_of_fewer_axes_at_old_feature_levels() -> None:
    for own in ("5", "1", "1, 5", "4, 1"):
        text = f"model m(x: f16[2, 3, 4, 5], s: f16[{own}]) -> (y) {{\n    return layer_norm(x, s, axis=2)\n}}"
        check(text, feature_level="3.0")


def test_the_machine_refuses() -> None:
    """The interpreter is not one that takes anything."""
    text = (
        program_of("model m(x: f32[2, 3]) -> (y) {\n    return argmax(x, axes=[1])\n}").artifact("dxdispatch").payload
    )
    x = np.zeros((2, 3), np.float32)
    changes = [
        ('"Sizes": [2, 3]}', '"Sizes": [3, 3]}'),
        ('"Axes": [1]', '"Axes": [2]'),
        ('"AxisCount": 1,', ""),
        ('"DataType": "FLOAT32"', '"DataType": "FLOAT64"'),
        ('"DML_OPERATOR_ARGMAX"', '"DML_OPERATOR_ACTIVATION_HARDMAX1"'),
    ]
    Machine(text, lambda _: x).run()
    for old, new in changes:
        assert old in text
        with pytest.raises(Invalid):
            Machine(text.replace(old, new), lambda _: x).run()


# --- files


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("head.dml").write_text(HEAD)
    return tmp_path


COMPILE = ["compile", "head.dml", "--bind", "N=2", "-o", "my.dxdispatch.json"]


def run_file(name: str) -> dict[str, np.ndarray]:
    return Machine(Path(name).read_text("utf-8"), np.load).run()


def test_command_line(head: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(COMPILE) == 0
    said = capsys.readouterr().err
    assert "my.dxdispatch.json: directml, " in said
    assert "my.dxdispatch/x.npy" in said
    assert sorted(p.name for p in Path("my.dxdispatch").iterdir()) == ["c.npy", "w.npy", "x.npy"]
    assert np.load("my.dxdispatch/c.npy").dtype == np.uint8
    feeds = {name: np.load(f"my.dxdispatch/{name}.npy") for name in "xcw"}
    feeds["c"] = feeds["c"].astype(bool)
    wanted = program_of(HEAD, bind={"N": 2}).run(feeds, backend="reference")
    found = run_file("my.dxdispatch.json")
    np.testing.assert_array_equal(found["my.dxdispatch/out/place.npy"], wanted["place"])
    assert found["my.dxdispatch/out/place.npy"].dtype == np.int32


def test_inputs_of_the_user_stay(head: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my.dxdispatch").mkdir()
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    np.save("my.dxdispatch/x.npy", x)
    np.save("my.dxdispatch/c.npy", np.array([True, False, True]))
    assert main(COMPILE) == 0
    np.testing.assert_array_equal(np.load("my.dxdispatch/x.npy"), x)
    assert np.load("my.dxdispatch/c.npy").dtype == bool
    np.testing.assert_array_equal(run_file("my.dxdispatch.json")["my.dxdispatch/out/any.npy"], [1])
    before = Path("my.dxdispatch.json").read_text()
    for wrong, code in (
        (x[:1], "E0425"),
        (x.astype(np.float64), "E0424"),
        (np.asfortranarray(x), "E0422"),
        (x.astype(">f4"), "E0422"),
    ):
        np.save("my.dxdispatch/x.npy", wrong)
        capsys.readouterr()
        assert main(COMPILE) == 1
        assert code in capsys.readouterr().err
    Path("my.dxdispatch/x.npy").unlink()
    assert main(COMPILE) == 0
    assert Path("my.dxdispatch.json").read_text() == before


def test_stdout_needs_no_other_file(head: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("k.dml").write_text("model k(x: f32[40]) -> (y) {\n    return x + iota(length=40, dtype=f32) * 0.5\n}")
    assert main(["compile", "k.dml", "--emit", "dxdispatch", "-o", "-"]) == 0
    found = json.loads(capfdbinary.readouterr().out)
    paths = [
        r["initialValues"]["sourcePath"] for r in found["resources"].values() if "sourcePath" in r["initialValues"]
    ]
    assert paths == ["x.npy"]
    assert [p.name for p in head.iterdir() if p.suffix == ".npy"] == []


def test_save_beside_and_defaults(tmp_path: Path) -> None:
    program = dmlc.compile(Source("m.dml", HEAD), bind={"N": 2})
    program.save(tmp_path / "a.dxdispatch.json")
    program.save(tmp_path / "b.json", kind="dxdispatch")
    assert (tmp_path / "b.dxdispatch" / "x.npy").read_bytes() == (tmp_path / "a.dxdispatch" / "x.npy").read_bytes()
    with pytest.raises(dmlc.DmlcError, match="cannot write"):
        program.save(tmp_path / "no" / "such" / "a.dxdispatch.json")


def test_report_says_what_is_read_and_written() -> None:
    reads, writes = program_of(HEAD, bind={"N": 2}).artifact("dxdispatch").report
    assert reads == "DxDispatch reads head.dxdispatch/x.npy, head.dxdispatch/c.npy, head.dxdispatch/w.npy"
    assert "head.dxdispatch/out/first.npy" in writes


@pytest.mark.parametrize(
    "verb", [["run", "--backend", "reference"], ["run", "--backend", "cpu"], ["bench", "--rounds", "1"]]
)
def test_the_command_line_reads_the_files_that_it_wrote(
    verb: list[str], head: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(COMPILE) == 0
    inputs = [f"--input={name}=my.dxdispatch/{name}.npy" for name in "xcw"]
    bind = ["--bind", "N=2"]
    assert main([*verb, "head.dml", *bind, *inputs]) == 0
    for dtype in (np.int8, np.bool_):
        np.save("my.dxdispatch/c.npy", np.array([1, 0, 1], dtype))
        assert main([*verb, "head.dml", *bind, *inputs]) == 0
        assert main(COMPILE) == 0
    for wrong in (np.array([1, 0, 2], np.uint8), np.array([1, 0, -1], np.int8), np.array([1, 0, 1], np.int32)):
        np.save("my.dxdispatch/c.npy", wrong)
        capsys.readouterr()
        for command in ([*verb, "head.dml", *bind, *inputs], COMPILE):
            assert main(command) == 1
            assert "E0424" in capsys.readouterr().err


def test_bytes_are_not_bools_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only a file for a bool input is read so."""
    (tmp_path / "m.dml").write_text("model m(x: u8[3]) -> (y) {\n    return x + x\n}")
    np.save(tmp_path / "x.npy", np.array([1, 0, 1], np.uint8))
    assert main(["run", str(tmp_path / "m.dml"), "--input", f"x={tmp_path / 'x.npy'}", "--backend", "numpy"]) == 0
    assert "[2, 0, 2]" in capsys.readouterr().out
