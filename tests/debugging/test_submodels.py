"""Parts of models: both sides of any cut, one after the other, compute what the whole model computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper, parser

from dmlc.debugging.search_setup import prepare
from dmlc.debugging.source_insides import CompileOptions
from tests.debugging.faulty_backend import run
from tests.debugging.test_locate import model as located_model

HEAD = '<ir_version: 10, opset_import: ["": 21, "own": 1]>'
#: Values that graphs inside nodes capture, Constant nodes, functions, absent operands, results that nobody reads.
TEXTS = {
    "captured": """g (float[3] x, bool c) => (float[3] y) {
        a = Sin(x)
        k = Constant<value = float[1] {2.0}>()
        b = Mul(a, k)
        t = If (c) <then_branch = t () => (float[3] u) { d = Mul(a, k) u = Add(d, b) },
                    else_branch = e () => (float[3] v) { v = Neg(b) }>
        y = Add(t, a)
    }""",
    "function": """g (float[3] x, bool c) => (float[3] y) {
        a = own.twice(x)
        b = Neg(a)
        y = own.twice(b)
    }
    <domain: "own", opset_import: ["": 21]> twice (i) => (o) { o = Add(i, i) }""",
    "results": """g (float[6] x, bool c) => (float[6] y, float[3] h, float[6] x2) {
        h, l = Split<num_outputs = 2>(x)
        m = Clip(x, , top)
        s, i = TopK<sorted = 1>(l, n)
        z = ConstantOfShape(k)
        w = Concat<axis = 0>(s, z)
        y = Add(m, w)
        x2 = Identity(x)
        dead = Exp(x)
    }""",
    "scan": """g (float[4, 3] x, bool c) => (float[3] y, float[4, 3] r) {
        b = Sin(x)
        s = ReduceSum<keepdims = 0>(x, axes)
        y, r = Scan<num_scan_inputs = 1, body = body (float[3] p, float[3] q) => (float[3] o, float[3] t) {
            t = Mul(q, s)
            o = Add(p, t)
        }>(s, b)
    }""",
}
DATA = {"top": np.float32(0.5), "n": np.array([3]), "k": np.array([3]), "axes": np.array([0])}


def model(name: str) -> ModelProto:
    made = parser.parse_model(f"{HEAD} {TEXTS[name]}") if name in TEXTS else located_model()
    read = {each for node in made.graph.node for each in node.input}
    read -= {each for node in made.graph.node for each in node.output}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(x), n) for n, x in DATA.items() if n in read)
    return made


def feeds_of(made: ModelProto) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    out = {}
    for info in made.graph.input:
        shape = tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)
        is_bool = info.type.tensor_type.elem_type == TensorProto.BOOL
        out[info.name] = np.array(True) if is_bool else rng.standard_normal(shape).astype(np.float32)
    return out


@pytest.mark.parametrize("name", [*TEXTS, "located"])
def test_both_sides_of_any_cut_compute_the_whole(name: str) -> None:
    made = model(name)
    feeds = feeds_of(made)
    wanted = run(made, feeds)
    options = CompileOptions(None, (), None)
    setup = prepare(
        made, "cpu", None, None, inputs=feeds, seed=0, rtol=None, atol=None, options=options, progress=None
    )  # fmt: skip
    setup.feeds = dict(feeds)
    size = len(setup.graph)
    assert size == sum(node.op_type not in ("Constant", "Exp") for node in made.graph.node)
    for count in range(1, size):
        front, back = frozenset(range(count)), frozenset(range(count, size))
        first, given = setup.model_of(front)
        onnx.checker.check_model(first, full_check=True)
        assert {info.name for info in first.graph.input} == set(feeds)
        values = run(first, given)
        second, given = setup.model_of(back)
        onnx.checker.check_model(second, full_check=True)
        entering = {info.name for info in second.graph.input} - set(feeds)
        assert entering <= set(values)
        found = {**values, **run(second, {**given, **{name: values[name] for name in entering}})}
        for output, array in wanted.items():
            np.testing.assert_array_equal(found[output], array)


def test_weights_in_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in each part, which is one file."""
    weight = np.arange(600, dtype=np.float32).reshape(2, 300)
    text = f"{HEAD} g (float[1, 2] x) => (float[1, 300] y) {{ a = Relu(x) b = MatMul(a, w) y = Cos(b) }}"
    made = parser.parse_model(text)
    made.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    path = tmp_path / "m.onnx"
    onnx.save(made, path, save_as_external_data=True, location="m.data")
    setup = prepare(
        path, "cpu", None, None, inputs=1, seed=0, rtol=None, atol=None, options=CompileOptions(None, (), None),
        progress=None,
    )  # fmt: skip
    setup.feeds = {"x": np.ones((1, 2), np.float32)}
    part, feeds = setup.model_of([0, 1])
    np.testing.assert_array_equal(run(part, feeds)["b"], feeds["x"] @ weight)


def test_initializer_that_may_be_fed_is_an_input_of_a_part() -> None:
    text = f"{HEAD} g (float[2] x, float[2] k) => (float[2] y) {{ a = Add(x, k) y = Neg(a) }}"
    made = parser.parse_model(text)
    made.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "k"))
    setup = prepare(
        made, "cpu", None, None, inputs=1, seed=0, rtol=None, atol=None, options=CompileOptions(None, (), None),
        progress=None,
    )  # fmt: skip
    for fed in ({"x": np.zeros(2, np.float32)}, {name: np.full(2, 3, np.float32) for name in ("x", "k")}):
        setup.feeds = fed
        part, feeds = setup.model_of([0])
        np.testing.assert_array_equal(run(part, feeds)["a"], fed["x"] + fed.get("k", 1))
