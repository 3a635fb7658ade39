"""Dims as numbers: in every operator and place where a number may stand, with sizes that are open and fixed."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from text_helpers import codes, diagnostics, graph_of, in_model

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

H, W = 3, 5
X = np.arange(1, H * W + 1, dtype=np.float32).reshape(H, W) / 4
AT = np.arange(H * W).reshape(H, W)
INPUTS = "x: f32[H, W], at: u32[H, W], n: i64[H, W], h: f16[H, W], b: u8[H, W]"
FED = {
    "x": X,
    "at": AT.astype(np.uint32),
    "n": AT.astype(np.int64) - 6,
    "h": X.astype(np.float16),
    "b": AT.astype(np.uint8),
}
F = np.float32

EXPRESSIONS: list[tuple[str, Any]] = [
    ("at % W", AT % W),
    ("at // W", AT // W),
    ("onnx.Div(at, W)", AT // W),
    ("onnx.Div(n, W)", np.trunc((AT - 6) / W)),
    ("n // W", (AT - 6) // W),
    ("x / (H * W)", X / (H * W)),
    ("x * W ** -0.5", X * W**-0.5),
    ("x * (1 / W)", X / W),
    ("x - W / 2", X - W / 2),
    ("W / 2 - x", W / 2 - X),
    ("x + W % 2 + H // 2", X + W % 2 + H // 2),
    ("x + (W % 2.5)", X + W % 2.5),
    ("x * 2 ** H", X * 2**H),
    ("n * H ** 2 - W", (AT - 6) * H**2 - W),
    ("n + (H - W) * 2", AT - 6 + (H - W) * 2),
    ("x + -(W / 4)", X - W / 4),
    ("-W * x", -W * X),
    ("(x > W / 2) as f32", X > W / 2),
    ("where(at < W, x, H)", np.where(AT < W, X, H)),
    ("max(x, H)", np.maximum(X, H)),
    ("pow(x, 1 / H)", X ** (1 / H)),
    ("clip(x, min=H / 4, max=W - 3)", np.clip(X, H / 4, W - 3)),
    ("clip(n, max=W - 1)", np.minimum(AT - 6, W - 1)),
    ("x * full(shape=[W], value=H, dtype=f32)", X * H),
    ("x + full(shape=[W], value=1 / H, dtype=f32)", X + 1 / H),
    ("x * sqrt(W as f32)", X * W**0.5),
    ("x * ((W / 2) as f32)", X * W / 2),
    ("x + cast(H * W, to=f32)", X + H * W),
    ("where(W as bool, x, 0)", X),
    ("h / W", X / W),
    ("h * (W / 2)", X * W / 2),
    ("b % W", AT % W),
    ("b + W // 2", AT + W // 2),
    ("x * W * H / W", X * H),
]


@each_row("target", ["cpu", "directml", "onnx", "numpy"])
@each_row("bind", [{}, {"W": W}, {"W": W, "H": H}], ids=str)
def test_numbers_with_dims_are_computed_alike_everywhere(target: str, bind: dict[str, int]) -> None:
    results = [f"y{i}" for i in range(len(EXPRESSIONS))]
    lines = [f"y{i} = {expression}" for i, (expression, _) in enumerate(EXPRESSIONS)]
    program = in_model(*lines, f"return {', '.join(results)}", inputs=INPUTS, results=", ".join(results))
    compiled = dmlc.compile(Source("t.dml", program), target=target, bind=bind)
    backends = ("numpy", "reference") if target == "numpy" else ("cpu", "reference")
    for backend in backends:
        out = compiled.run(FED, backend=backend)
        for name, (expression, expected) in zip(results, EXPRESSIONS, strict=True):
            np.testing.assert_allclose(
                out[name], np.broadcast_to(expected, out[name].shape), rtol=4e-3, err_msg=expression
            )


@each_row("expression", [expression for expression, _ in EXPRESSIONS])
def test_the_dml_text_of_a_number_with_dims_compiles_back(expression: str) -> None:
    program = in_model(f"y = {expression}", "return y", inputs=INPUTS)
    compiled = dmlc.compile(Source("t.dml", program), target="cpu")
    again = dmlc.compile(Source("u.dml", str(compiled.artifact("dml").payload)), target="cpu")
    for name, expected in compiled.run(FED).items():
        np.testing.assert_array_equal(again.run(FED)[name], expected)


def _operators(program: str, **options: Any) -> list[str]:
    model = dmlc.compile(Source("t.dml", program), target="cpu", **options).to_onnx()
    assert isinstance(model, onnx.ModelProto)
    return [node.op_type for node in model.graph.node]


def test_an_open_size_costs_one_shape_and_a_fixed_one_nothing() -> None:
    program = in_model("y = x / W", "z = x * W ** -0.5", "return y, z", inputs="x: f32[H, W]", results="y, z")
    assert _operators(program).count("Shape") == 1
    assert sorted(_operators(program, bind={"W": 4})) == ["Div", "Mul"]


def test_a_shape_that_is_there_is_read() -> None:
    program = in_model("i = iota(length=W, dtype=f32)", "y = x / W + i", "return y", inputs="x: f32[H, W]", results="y")
    assert _operators(program).count("Shape") == 1


def test_numpy_code_reads_the_shape() -> None:
    program = in_model("return x / W", inputs="x: f32[H, W]", results="y")
    text = dmlc.compile(Source("t.dml", program), target="numpy").to_numpy()
    assert "x.shape" in text
    assert "float32(" in text


def test_the_placement_report_says_that_binding_makes_it_free() -> None:
    program = in_model("return x / W", inputs="x: f32[H, W]", results="y")
    compiled = dmlc.compile(Source("t.dml", program), target="directml")
    assert any("--bind W=" in d.help for d in compiled.diagnostics)
    bound = dmlc.compile(Source("t.dml", program), target="directml", bind={"W": 8})
    assert not bound.diagnostics


@each_row(
    ("statement", "code", "help"),
    [
        ("y = sqrt(W)", "E0330", "W as f32"),
        ("y = at / W", "E0343", "at // W"),
        ("y = W / n", "E0343", "W / (n as f32)"),
        ("y = W / 2", "E0330", "(W / 2) as f32"),
        ("y = at * (1 / W)", "E0311", "x // W"),
        ("y = at + W / 2", "E0311", "W // 2"),
        ("y = (W / 2) as i32", "E0311", "//"),
        ("y = where(W > 3, x, x)", "E0332", "as"),
        ("y = x * (W == H)", "E0332", ""),
        ("y = x * (W & 1)", "E0332", ""),
        ("y = x * (true + W)", "E0309", ""),
        ("y = x / (W / 0)", "E0319", ""),
        ("y = n * W ** -1", "E0320", ""),
        ("y = at + -W", "E0311", ""),
        ("y, _ = top_k(x, k=W / 2)", "E0332", "//"),
        ("y, _ = top_k(x, k=W % 2)", "E0332", "+ - * //"),
        ("y = reshape(x, shape=[H ** 2, -1])", "E0332", ""),
        ("y = softmax(x, axes=[W])", "E0304", ""),
        ("y = x & W", "E0309", ""),
        ("y = x / (99999999999999999999 * W)", "E0311", ""),
        ("y = x * (W - 9223372036854775809)", "E0311", ""),
        ("y = x * (W // 9223372036854775808)", "E0311", ""),
        ("y = x * (99999999999999999999 // W)", "E0311", ""),
        ("y = x / (W * 4611686018427387904 * 4)", "E0311", ""),
        ("y = clip(x, min=0, max=W * 18446744073709551615)", "E0311", ""),
        ("y = reshape(x, shape=[W * 9223372036854775808, -1])", "E0311", ""),
    ],
)
def test_what_a_dim_cannot_be(statement: str, code: str, help: str) -> None:
    (found, *_) = diagnostics(in_model(statement, "return y", inputs=INPUTS))
    assert found.code.id == code
    assert help in found.help


@each_row(
    ("bounds", "inputs", "expected"),
    [
        ("1..255", "b: u8[W]", ("ok", 0)),
        ("1..256", "b: u8[W]", ("ok", 1)),
        ("256..300", "b: u8[W]", ("E0311", 0)),
        ("1..65504", "b: f16[W]", ("ok", 0)),
        ("1..70000", "b: f16[W]", ("ok", 1)),
        ("70000..80000", "b: f16[W]", ("E0311", 0)),
        ("1..127", "b: i8[W]", ("ok", 0)),
        ("1..70000", "b: f32[W]", ("ok", 0)),
        ("1..5000000000", "b: i32[W]", ("ok", 0)),
    ],
)
def test_it_fits_by_its_bounds_or_is_checked_at_run_time(bounds: str, inputs: str, expected: tuple[str, int]) -> None:
    program = f"dim W in {bounds}\n" + in_model("return b + W", inputs=inputs)
    verdict, conditions = expected
    assert codes(program) == ([] if verdict == "ok" else [verdict])
    if verdict == "ok":
        assert len(graph_of(program).conditions) == conditions


def test_a_size_that_does_not_fit_at_run_time_is_refused() -> None:
    program = dmlc.compile(Source("t.dml", in_model("return b + W", inputs="b: u8[W]")), target="cpu")
    assert program.run({"b": np.zeros(255, np.uint8)})["y"][0] == 255
    with pytest.raises(dmlc.DmlcError, match="u8"):
        program.run({"b": np.zeros(256, np.uint8)})


def test_a_value_hides_a_dim_in_expressions_of_a_model() -> None:
    program = in_model(
        "W = x * 2", "return x + W, full(shape=[W], value=1, dtype=f32)", inputs="x: f32[W]", results="y, z"
    )
    graph = graph_of(program)
    assert [d.code.id for d in graph.advice] == ["W0620"]
    out = dmlc.compile(Source("t.dml", program), target="cpu").run({"x": np.ones(3, np.float32)})
    np.testing.assert_array_equal(out["y"], [3, 3, 3])
    assert out["z"].shape == (3,)
    assert dmlc.compile(Source("t.dml", program), strict=True, target="cpu").diagnostics[0].severity == "advice"


def test_defs_take_dims_and_numbers_made_of_them() -> None:
    program = "def scaled(x, n, *, p) {\n    return x * n ** p / W\n}\n" + in_model(
        "return scaled(x, W / 2, p=-0.5)", inputs="x: f32[W]"
    )
    out = dmlc.compile(Source("t.dml", program), target="cpu").run({"x": np.ones(8, np.float32)})
    np.testing.assert_allclose(out["y"], np.full(8, 4**-0.5 / 8), rtol=1e-6)


def test_long_expressions_of_dims_end() -> None:
    chain = "W" + " / 2" * 50_000
    assert codes(in_model(f"return x * ({chain})", inputs="x: f32[W]")) == ["E0332"]


def test_dims_of_the_builder_take_the_operators() -> None:
    g = dmlc.Graph("g")
    w, h = g.dim("W"), g.dim("H", max=100)
    x = g.input("x", "f32", (h, w))
    results = {
        "a": x * w**-0.5,
        "b": w / 2 - x,
        "c": dmlc.sqrt(dmlc.cast(w, to="f32")) * x,
        "d": x % w,
        "e": (x > w) & (h < x),
        "f": 0.5 * h * x,
        "g": np.float32(2) / h + x,
        "i": dmlc.clip(x, max=w - 1),
        "j": -(w % 3) + x,
        "k": x == h,
    }
    for name, value in results.items():
        g.output(name, value)
    out = dmlc.compile(g, target="cpu").run({"x": X})
    expected = {
        "a": X * W**-0.5, "b": W / 2 - X, "c": W**0.5 * X, "d": X % W, "e": (X > W) & (X > H), "f": 0.5 * H * X,
        "g": 2 / H + X, "i": np.minimum(X, W - 1), "j": X - W % 3, "k": X == H,
    }  # fmt: skip
    for name, array in expected.items():
        np.testing.assert_allclose(out[name], array, rtol=1e-5)


def test_the_builder_says_what_a_dim_needs() -> None:
    g = dmlc.Graph("g")
    w = g.dim("W")
    x = g.input("x", "i32", (w,))
    with pytest.raises(dmlc.DmlcError, match="E0330") as info:
        dmlc.exp(w)
    assert 'dmlc.cast(W, to="f32")' in str(info.value)
    with pytest.raises(dmlc.DmlcError, match="E0311"):
        x * (1 / w)
    for call in (lambda: x * (w * 2**63), lambda: x - w // 2**70, lambda: dmlc.reshape(x, shape=[w * 2**63, -1])):
        with pytest.raises(dmlc.DmlcError, match=r"E0311.*does not fit the 64 bits of a size"):
            call()
    dmlc.reshape(x * (w * -(2**63)), shape=[(2**63 - 1) * w // (2**63 - 1)])
    with pytest.raises(dmlc.DmlcError, match="E0332"):
        dmlc.top_k(x, k=w / 2)
    with pytest.raises(ZeroDivisionError):
        w / 0
