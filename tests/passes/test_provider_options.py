"""Options of the provider that a compiled model asks for: i64 where 32 bits suffice, the layout where it is wrong."""

from __future__ import annotations

import numpy as np

import dmlc
from dmlc.runtime.ort_model import options_of
from tests import kit
from tests.rows import each_row

INT64, LAYOUT = {"enableInt64": "1"}, {"preferredLayout": "NCHW"}
MASK = "g (int64[2, 3] x) => (float[2, 3] y) { y = Cast <to = 1> (x) }"

#: Labels are classes, or the number that says that there is none.
LOSS = """g (float[2, 9] w, int64[2] t) => (float[2, 1] y, float[2] z)
    <int64 i = {{{ignored}}}, int64 k = {{0}}, int64[1] one = {{1}}> {{
    u = Unsqueeze (t, one)
    b = Equal (u, i)
    l = Where (b, k, u)
    y = GatherElements <axis = 1> (w, l)
    z = Cast <to = 1> (t)
}}"""


def options(model: object, **given: object) -> dict[str, str]:
    program = dmlc.compile(model, target="webgpu", **given)  # type: ignore[arg-type]
    return options_of(program.to_onnx(), "webgpu")


@each_row(
    ("text", "wanted"),
    [
        ("g (float[2, 3] x) => (float[2, 3] y) { y = Relu (x) }", {}),
        ("g (float[2, 3] x) => (int64[2, 1] y) { y = ArgMax <axis = 1> (x) }", INT64),
        (MASK, {}),  # nobody knows what is fed
        (
            "g (float[9, 2] w, int64[3] i) => (float[3, 2] y, float[3] z) { y = Gather (w, i) z = Cast <to = 1> (i) }",
            INT64,
        ),
        (LOSS.format(ignored=-100), INT64),
        (LOSS.format(ignored=2**40), {}),
        (LOSS.replace("(b, k, u)", "(b, u, k)").format(ignored=-100), {}),  # other labels may be anything
        ("g (int64[3] i) => (int64[3] y) { y = Mul (i, i) }", {}),
        ("g (float[1, 6, 8] x, float[4, 6, 3] w) => (float[1, 4, 6] y) { y = Conv (x, w) }", LAYOUT),
        ("g (float[2, 3] x, float[3, 2] z) => (float[3, 2] y) { t = Transpose (x) y = Add (t, z) }", LAYOUT),
        ("g (float[1, 8, 8] x) => (float[1, 8, 7] y) { y = MaxPool <kernel_shape = [2]> (x) }", LAYOUT),
    ],
)
def test_the_options_of_a_model(text: str, wanted: dict[str, str]) -> None:
    assert options(kit.onnx(text)) == wanted


def test_a_promise_of_the_range_is_enough() -> None:
    assert options(kit.onnx(MASK), ranges={"x": (0, 1)}) == INT64
    assert options(kit.onnx(MASK), ranges={"x": (0, 2**40)}) == {}


def test_a_model_with_a_graph_inside_has_none() -> None:
    text = """g (float[2, 3] x, bool c) => (int64[2, 1] y) {
        i = ArgMax <axis = 1> (x)
        y = If (c) <then_branch = t () => (int64[2, 1] a) { a = Identity (i) },
                    else_branch = e () => (int64[2, 1] b) { b = Neg (i) }>
    }"""
    assert options(kit.onnx(text)) == {}


def test_the_placement_follows_the_options() -> None:
    """Without the option the cast of an index runs on the CPU."""
    source = "model m(x: f32[4, 5]) -> (y) {\n    y = argmax(x, axes=[1])\n    return y\n}\n"
    program = dmlc.compile(dmlc.Source(source), target="webgpu")
    assert program.placement().count("cpu") == 0
    model = program.to_onnx()
    del model.metadata_props[:]
    report = dmlc.check(model, target="webgpu").placement
    assert report is not None
    assert [node.op for node in report.nodes if node.where == "cpu"] == ["Cast"]
    model = program.to_onnx()
    model.metadata_props.add(key="dmlc.version.00000000", value="a part without advice")
    report = dmlc.check(model, target="webgpu").placement
    assert report is not None and report.count("cpu") == 1
    assert np.array_equal(program.run({"x": np.eye(4, 5, dtype="f4")}, backend="cpu")["y"].ravel(), range(4))
