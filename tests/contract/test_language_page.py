"""The language reference, held to its words: its program, its error, its builder, its command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import dmlc
from dmlc.cli.main import main
from tests.rows import each_row

HEAD = """dml 1                                        # optional header: language version

dim batch   in 1..64                         # bounds are inclusive; undeclared dims are 1 or more
dim anchors in 8..8400

const scale: f32[]   = 0.125
const prior: f32[80] = load("prior.npy")     # .npy or .npz ("file.npz", "key")

def centred(x, *, axes) {                    # reusable block, inlined
    return x - reduce_mean(x, axes=axes)
}

model detection_head(
    logits: f32[batch, anchors, 80],
    image:  f16[batch, 3, H, W],
) -> (
    cls:   u32[batch, anchors, 1],           # a written result type is checked; it may be left out
    peak:  u32[batch, 1, 1, 1],
    top_p: f32[batch, 5, 80],
    top_i: u32[batch, 5, 80],
    focus: f16[batch, 3, H, W],
    spread,
) {
    p = (logits + prior) * scale |> softmax(axes=[-1])            # x |> f(a) is f(x, a)
    cls  = argmax(p, axes=[2], ties=first)
    peak = argmax(image, axes=[1, 2, 3], axis_direction=decreasing)  # last of equals
    top_p, top_i = top_k(p, k=5, axis=1, order=largest)           # 5 <= anchors is proved from the dim line
    focus = hardmax(image, axes=[2, 3])
    spread = sqrt(reduce_mean(centred(p, axes=[1, 2]) ** 2, axes=[1, 2]) + 1e-6)
    return cls, peak, top_p, top_i, focus, spread
}
"""


@pytest.fixture
def head(tmp_path: Path) -> Path:
    source = tmp_path / "head.dml"
    source.write_text(HEAD)
    np.save(tmp_path / "prior.npy", np.linspace(-1, 1, 80, dtype=np.float32))
    return source


def feeds(batch: int = 2, anchors: int = 9) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {
        "logits": rng.standard_normal((batch, anchors, 80)).astype(np.float32),
        "image": rng.integers(-3, 4, (batch, 3, 4, 5)).astype(np.float16),
    }


def expected(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The program in plain NumPy, written from the page."""
    logits, image = data["logits"].astype(np.float64), data["image"]
    z = (logits + np.linspace(-1, 1, 80, dtype=np.float32)) * 0.125
    e = np.exp(z - z.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    n = image.shape[0]
    flat = image.reshape(n, -1)
    planes = image.reshape(n, 3, -1)
    order = np.argsort(-p, axis=1, kind="stable")[:, :5]
    focus = np.zeros_like(planes)
    np.put_along_axis(focus, planes.argmax(-1)[..., None], 1, -1)
    centred = p - p.mean((1, 2), keepdims=True)
    return {
        "cls": p.argmax(-1)[..., None].astype(np.uint32),
        "peak": (flat.shape[1] - 1 - flat[:, ::-1].argmax(-1)).astype(np.uint32).reshape(n, 1, 1, 1),
        "top_p": np.take_along_axis(p, order, 1).astype(np.float32),
        "top_i": order.astype(np.uint32),
        "focus": focus.reshape(image.shape),
        "spread": np.sqrt((centred**2).mean((1, 2), keepdims=True) + 1e-6).astype(np.float32),
    }


@pytest.mark.parametrize("backend", ["reference", "numpy", "cpu"])
def test_the_program(head: Path, backend: str) -> None:
    data = feeds()
    got = dmlc.compile(head).run(data, backend=backend)
    want = expected(data)
    assert list(got) == list(want)
    for name, array in want.items():
        assert got[name].dtype == array.dtype, name
        if name in ("top_p", "spread"):
            # f32 softmax of 80 terms against f64: a few units in the last place of values near 1/80
            np.testing.assert_allclose(got[name], array, rtol=4e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(got[name], array, err_msg=name)


def test_the_onnx_model(head: Path) -> None:
    model = dmlc.compile(head).to_onnx()
    onnx.checker.check_model(model, full_check=True)
    assert [i.name for i in model.graph.input] == ["logits", "image"]
    assert [o.name for o in model.graph.output] == ["cls", "peak", "top_p", "top_i", "focus", "spread"]
    dims = [d.dim_param or d.dim_value for d in model.graph.input[1].type.tensor_type.shape.dim]
    assert dims == ["batch", 3, "H", "W"]
    assert model.ir_version <= 10
    assert {o.domain: o.version for o in model.opset_import}[""] <= 21


def test_the_five_is_proved_and_unproved_k_is_checked(head: Path, tmp_path: Path) -> None:
    assert not dmlc.compile(head).signature.conditions
    loose = tmp_path / "loose.dml"
    loose.write_text("model m(x: f32[N]) -> (v, i) {\n    v, i = top_k(x, k=5)\n    return v, i\n}\n")
    program = dmlc.compile(loose)
    assert [str(c) for c in program.signature.conditions] == ["5 <= N"]
    for backend in ("cpu", "reference"):
        with pytest.raises(dmlc.DmlcError, match="5"):
            program.run({"x": np.zeros(4, np.float32)}, backend=backend)
    namespace: dict[str, Any] = {}
    exec(program.to_numpy(), namespace)
    with pytest.raises(ValueError, match="5"):
        namespace["m"](np.zeros(4, np.float32))


def test_the_error_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    lines = [""] * 40
    lines[14] = "model detection_head("
    lines[15] = "    logits: f32[batch, anchors, 80],"
    lines[16] = "    image:  f16[batch, 3, H, W],"
    lines[17] = ") -> (peak) {"
    lines[29] = "    peak = argmax(image, axes=[1, 2, 4])"
    lines[30] = "    return peak"
    lines[31] = "}"
    (tmp_path / "head.dml").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    assert main(["check", "head.dml"]) == 1
    assert (
        """error[E0301]: axis 4 does not exist: image has 4 axes, 0 to 3
  --> head.dml:30:38
   |
17 |     image:  f16[batch, 3, H, W],
   |             ------------------- image has this type
30 |     peak = argmax(image, axes=[1, 2, 4])
   |                                      ^ no such axis
   = help: the last axis is 3, or -1; see: dmlc explain E0301
"""
        in capsys.readouterr().err
    )


def test_the_builder_of_the_page(tmp_path: Path) -> None:
    array = np.arange(16, dtype=np.float32)
    g = dmlc.Graph("head")
    n = g.dim("N", min=1, max=64)
    x = g.input("x", dtype="float32", shape=("N", 8, 16))
    w = dmlc.constant(array)
    i = dmlc.argmax(x, axes=(0, 2), ties="last")
    v, j = dmlc.top_k(x, k=5)
    y = dmlc.softmax(x * 0.5 + 1, axes=(1, 2)).astype("float16")
    z = dmlc.onnx.Gelu(x, approximate="tanh")
    g.output("i", i)
    g.output("y", y)
    g.output("v", v)
    g.output("j", j)
    g.output("z", z)
    g.output("xw", x * w)
    g.output("r", dmlc.reshape(x, shape=(n * 8, 16)))
    program = dmlc.compile(g, target="directml")
    program.save(tmp_path / "head.onnx")
    onnx.checker.check_model(str(tmp_path / "head.onnx"), full_check=True)
    assert isinstance(program.to_onnx(), onnx.ModelProto)
    data = np.random.default_rng(0).integers(-2, 3, (3, 8, 16)).astype(np.float32)
    out = program.run({"x": data})
    assert out["i"].shape == (1, 8, 1) and out["i"].dtype == np.uint32
    flat = data.transpose(1, 0, 2).reshape(8, -1)
    np.testing.assert_array_equal(out["i"].ravel(), flat.shape[1] - 1 - flat[:, ::-1].argmax(1))
    np.testing.assert_array_equal(out["xw"], data * array)
    assert out["y"].dtype == np.float16
    assert out["r"].shape == (24, 16)


def test_star_import_shadows_nothing() -> None:
    import builtins

    assert not set(dmlc.__all__) & (set(dir(builtins)) - {"__name__", "__doc__"})


def test_generated_numpy_code_stands_alone(head: Path, tmp_path: Path) -> None:
    out = tmp_path / "head.py"
    assert main(["compile", str(head), "-o", str(out)]) == 0
    text = out.read_text()
    assert "dmlc" not in [line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))]
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    data = feeds()
    results = namespace["detection_head"](data["logits"], data["image"])
    assert isinstance(results, tuple) and len(results) == 6
    np.testing.assert_array_equal(results[0], expected(data)["cls"])


def test_compile_writes_beside_the_source(head: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(head)]) == 0
    onnx.checker.check_model(str(head.with_suffix(".onnx")), full_check=True)


def test_same_source_same_bytes(head: Path, tmp_path: Path) -> None:
    assert main(["compile", str(head), "-o", str(tmp_path / "a.onnx")]) == 0
    assert main(["compile", str(head), "-o", str(tmp_path / "b.onnx")]) == 0
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_bind_fixes_a_dim(head: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "one.onnx"
    assert main(["compile", str(head), "-o", str(out), "--bind", "batch=1", "--bind", "H=4", "--bind", "W=5"]) == 0
    dims = [d.dim_param or d.dim_value for d in onnx.load(out).graph.input[1].type.tensor_type.shape.dim]
    assert dims == [1, 3, 4, 5]
    assert main(["compile", str(head), "-o", str(out), "--bind", "batch=65"]) == 1
    assert main(["compile", str(head), "-o", str(out), "--bind", "batsh=1"]) != 0
    assert "batch" in capsys.readouterr().err


def test_run_with_files_and_json(head: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = feeds()
    np.save(tmp_path / "logits.npy", data["logits"])
    np.savez(tmp_path / "data.npz", key=data["image"])
    inputs = ["--input", f"logits={tmp_path / 'logits.npy'}", "--input", f"image={tmp_path / 'data.npz'}:key"]
    assert main(["run", str(head), *inputs, "-o", str(tmp_path / "out.npz")]) == 0
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_array_equal(out["cls"], expected(data)["cls"])
    capsys.readouterr()
    assert main(["run", str(head), *inputs, "--format", "json", "--backend", "numpy"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 1


def test_exit_codes(head: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(head)]) == 0
    assert main(["check", str(tmp_path / "missing.dml")]) == 2
    assert main(["compile", str(head), "-o", str(tmp_path / "no" / "such" / "x.onnx")]) == 2
    with pytest.raises(SystemExit) as wrong_usage:
        raise SystemExit(main(["compile"]))
    assert wrong_usage.value.code == 2
    (tmp_path / "bad.dml").write_text("model m(x: f32[3]) -> (y) {\n    y = argmx(x)\n    return y\n}\n")
    capsys.readouterr()
    assert main(["check", str(tmp_path / "bad.dml"), "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["schema"] == 1
    assert "argmax" in json.dumps(report)


def test_fmt_check_and_stdin(head: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    import io
    import sys

    assert main(["fmt", str(head)]) == 0
    once = head.read_text()
    assert main(["fmt", "--check", str(head)]) == 0
    head.write_text(once.replace("softmax(axes=[-1])", "softmax( axes = [-1] )"))
    before = head.read_text()
    assert main(["fmt", "--check", str(head)]) == 1
    assert head.read_text() == before
    stdin = io.TextIOWrapper(io.BytesIO(before.encode()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stdin)
    capsys.readouterr()
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == once


@pytest.mark.parametrize("verb", [["ops"], ["ops", "argmax"], ["targets"], ["doctor"], ["explain", "E0301"]])
def test_verbs_print_something(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(verb) == 0
    assert len(capsys.readouterr().out) > 60


@pytest.mark.parametrize("verb", ["explain", "inspect"])
def test_verbs_on_a_source(verb: str, head: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, str(head)]) == 0
    assert "hardmax" in capsys.readouterr().out.lower()


def test_hardmax_over_several_axes_is_lowered(head: Path) -> None:
    kinds = [n.op_type for n in dmlc.compile(head).to_onnx().graph.node]
    assert "Hardmax" not in kinds and "ArgMax" in kinds


@each_row("backend", ["reference", "numpy", "cpu"])
def test_dims_may_be_used_in_pads(backend: str, tmp_path: Path) -> None:
    source = tmp_path / "pads.dml"
    source.write_text("model m(x: f32[N]) -> (y: f32[2 * N + 1]) {\n    return pad(x, pads=[N, 1], value=7)\n}\n")
    got = dmlc.compile(source).run({"x": np.array([1, 2], np.float32)}, backend=backend)
    np.testing.assert_array_equal(got["y"], np.array([7, 7, 1, 2, 7], np.float32))
