"""ONNX models that programs call: ``use trunk from "backbone.onnx"``."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import convert_model_to_external_data

import dmlc
from dmlc.diagnostics import Diagnostic, DmlcError
from dmlc.ops.constant import CONSTANT
from tests.rows import each_row
from tests.versions import needs_onnx_runtime

BACKBONE = """
<ir_version: 8, opset_import: ["" : 17]>
backbone (float[batch, 3, H, W] pixels) => (float[batch, 5] feat, float[batch, 4, H, W] map)
<float[4, 3, 1, 1] w = {1, 2, 3, -1, 0, 1, 0.5, -0.5, 2, 1, 1, 1},
float[4, 5] v = {1, 2, 3, 4, 5, 0, 1, 0, 1, 0, 2, 2, 1, 1, 0, 1, 0, 0, -1, 3}>
{
    c = Conv(pixels, w)
    map = Relu(c)
    m = ReduceMean<axes = [2, 3], keepdims = 0>(map)
    feat = MatMul(m, v)
}
"""
HEAD = """use trunk from "backbone.onnx"

model head(image: u8[N, 3, 8, 6]) -> (p, map) {
    feat, map = trunk((image as f32) / 255)
    p = softmax(feat, axes=[-1])
    return p, map
}
"""
IMAGE = np.random.default_rng(0).integers(0, 256, (2, 3, 8, 6)).astype(np.uint8)


def saved(folder: Path, text: str = BACKBONE, name: str = "backbone.onnx") -> onnx.ModelProto:
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, folder / name)
    return model


def of(folder: Path, program: str, **options: object) -> dmlc.Program:
    (folder / "head.dml").write_text(program)
    return dmlc.compile(folder / "head.dml", **options)  # type: ignore[arg-type]


def refused(folder: Path, program: str, **options: object) -> Diagnostic:
    with pytest.raises(DmlcError) as caught:
        of(folder, program, **options)
    return caught.value.diagnostics[0]


def session(model: onnx.ModelProto, **feeds: np.ndarray) -> list[np.ndarray]:
    found = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return found.run(None, feeds)


def expected(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    feat, map = session(onnx.parser.parse_model(BACKBONE), pixels=image.astype(np.float32) / 255)
    e = np.exp(feat - feat.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True), map


@pytest.mark.parametrize("target", ["directml", "cpu", "onnx"])
def test_a_head_on_a_backbone_is_one_after_the_other(tmp_path: Path, target: str) -> None:
    saved(tmp_path)
    program = of(tmp_path, HEAD, target=target)
    found = program.run({"image": IMAGE}, backend="cpu")
    for name, want in zip(("p", "map"), expected(IMAGE), strict=True):
        np.testing.assert_allclose(found[name], want, rtol=1e-5, atol=1e-6)
    assert [str(type) for _, type in program.signature.outputs] == ["f32[N, 5]", "f32[N, 4, 8, 6]"]
    names = [node.name for node in program.to_onnx().graph.node]
    assert sum(name.startswith("trunk/") for name in names) >= 3
    assert program.verify(4).ok
    assert pickle.loads(pickle.dumps(program)).to_bytes("onnx") == program.to_bytes("onnx")


def test_its_nodes_are_fused_with_the_rest(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[n, 6] x) => (float[n, 6] e, float[n, 1] s) { e = Exp(x)
    s = ReduceSum<keepdims = 1>(e, axes) }""".replace("{ e", "<int64[1] axes = {1}>\n{ e")
    saved(tmp_path, text)
    head = 'use trunk from "backbone.onnx"\nmodel m(x: f32[N, 6]) -> (y) {\n    top = reduce_max(x, axes=[1])\n'
    head += "    e, s = trunk(x - top)\n    return e / s\n}\n"
    program = of(tmp_path, head)
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Softmax"]


def test_each_call_has_names_of_its_own_and_weights_are_held_once(tmp_path: Path) -> None:
    saved(tmp_path)
    text = HEAD.replace("p = softmax(feat, axes=[-1])", "other, _ = trunk((image as f32) * 2)\n    p = feat + other")
    model = of(tmp_path, text).to_onnx()
    names = [node.name for node in model.graph.node]
    assert len(set(names)) == len(names)
    assert any(name.startswith("trunk/") for name in names)
    assert any(name.startswith("trunk_2/") for name in names)
    assert sum(tensor.dims == [4, 5] for tensor in model.graph.initializer) == 1


def test_calls_with_other_sizes_share_the_weights_too(tmp_path: Path) -> None:
    saved(tmp_path)
    text = """use trunk as t from "backbone.onnx"
model m(a: f32[N, 3, 8, 6], b: f32[M, 3, 4, 4]) -> (p, q) {
    p, _ = t(a)
    q, _ = a_block(b)
    return p, q
}
"""
    block = "def a_block(x) {\n    y, z = t(x)\n    return y, z\n}\n"
    text = text.replace("model m", block + "model m")
    program = of(tmp_path, text)
    assert [str(type) for _, type in program.signature.outputs] == ["f32[N, 5]", "f32[M, 5]"]
    assert sum(tensor.dims == [4, 5] for tensor in program.to_onnx().graph.initializer) == 1
    assert {node.name.partition("/")[0] for node in program.to_onnx().graph.node} == {"t", "t_2"}


@pytest.mark.parametrize("where", ["", "models"])
def test_weights_outside_stay_there_unread(tmp_path: Path, where: str) -> None:
    (tmp_path / where).mkdir(exist_ok=True)
    model = onnx.parser.parse_model(BACKBONE)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    convert_model_to_external_data(model, location="weights.bin", size_threshold=0)
    onnx.save(model, tmp_path / where / "backbone.onnx")
    program = of(tmp_path, HEAD.replace("backbone.onnx", f"{where}/backbone.onnx".lstrip("/")))
    program.save(tmp_path / "head.onnx")
    written = onnx.load(tmp_path / "head.onnx", load_external_data=False)
    places = {entry.value for t in written.graph.initializer for entry in t.external_data if entry.key == "location"}
    assert places == {f"{where}/weights.bin".lstrip("/")}
    np.testing.assert_allclose(program.run({"image": IMAGE}, backend="cpu")["p"], expected(IMAGE)[0], rtol=1e-5)
    found = session_of(tmp_path / "head.onnx", IMAGE)
    np.testing.assert_allclose(found, expected(IMAGE)[0], rtol=1e-5)
    (tmp_path / "elsewhere").mkdir()
    program.save(tmp_path / "elsewhere" / "head.onnx")
    np.testing.assert_allclose(session_of(tmp_path / "elsewhere" / "head.onnx", IMAGE), expected(IMAGE)[0], rtol=1e-5)


def test_large_weights_outside_are_never_read(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(BACKBONE)
    large = np.random.default_rng(2).normal(size=(4, 5000)).astype(np.float32)
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(large, "v"))
    del model.graph.output[0].type.tensor_type.shape.dim[1:]
    model.graph.output[0].type.tensor_type.shape.dim.add(dim_value=5000)
    convert_model_to_external_data(model, location="weights.bin", size_threshold=1000)
    onnx.save(model, tmp_path / "backbone.onnx")
    text = HEAD.replace("p = softmax(feat, axes=[-1])", "other, _ = trunk((image as f32) * 2)\n    p = feat * other")
    program = of(tmp_path, text)
    program.save(tmp_path / "head.onnx")
    assert (tmp_path / "head.onnx").stat().st_size < large.nbytes // 4
    apart = [node.attributes.value for node in program.graph if node.op is CONSTANT]  # type: ignore[attr-defined]
    apart = [tensor for tensor in apart if getattr(tensor, "is_apart", False)]
    assert len(apart) == 1
    assert apart[0]._array is None


def session_of(path: Path, image: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(["p"], {"image": image})[0]


OPTIONS = """<ir_version: 8, opset_import: ["" : 17]>
m (float[n, 2] x, float[k] scale, float[n, 2] `odd name`, float[] shift) => (float[n, 2] y)
<float shift = {10}, float unused = {1}>
{ a = Mul(x, scale)
b = Add(a, `odd name`)
y = Add(b, shift) }"""


@each_row(
    ("call", "number"),
    [
        ("f(x, s, x)", 2 * 3 + 2 + 10),
        ("f(x, s, x, shift=1)", 2 * 3 + 2 + 1),
        ("f(x, s, x, shift=none)", 2 * 3 + 2 + 10),
        ("f(x, s, `odd name`=x, shift=t)", 2 * 3 + 2 + 100),
        ("f(`odd name`=x, scale=s, x=x + 1)", 3 * 3 + 2 + 10),
        ("x |> f(s, x)", 2 * 3 + 2 + 10),
    ],
)
def test_operands_in_order_and_by_name(tmp_path: Path, call: str, number: float) -> None:
    text = OPTIONS.replace("`odd name`", "odd")
    model = onnx.parser.parse_model(text)
    for node in model.graph.node:
        node.input[:] = ["odd name" if name == "odd" else name for name in node.input]
    model.graph.input[2].name = "odd name"
    onnx.save(model, tmp_path / "m.bin")
    program = of(
        tmp_path,
        f'use f from "m.bin"\nmodel h(x: f32[3, 2], s: f32[1], t: f32[]) -> (y) {{\n    return {call}\n}}\n',
    )
    feeds = {"x": np.full((3, 2), 2, np.float32), "s": np.full(1, 3, np.float32), "t": np.float32(100)}
    np.testing.assert_array_equal(program.run(feeds, backend="cpu")["y"], np.full((3, 2), number, np.float32))


@each_row(
    ("call", "code", "column"),
    [
        ("trunk()", "E0308", 12),
        ("trunk(x, x)", "E0308", 21),
        ("trunk(y=x)", "E0305", 18),
        ("trunk(x, pixels=x)", "E0307", 21),
        ("trunk(none)", "E0308", 12),
        ("trunk(1)", "E0360", 18),
        ("trunk(x as f16)", "E0360", 18),
        ("trunk(x[0])", "E0360", 18),
        ("trunk(concat(x, x, axis=1))", "E0360", 18),
        ("trunk", "E0202", 12),
        ("a + trunk(x)", "E0202", 12),
    ],
)
def test_wrong_calls(tmp_path: Path, call: str, code: str, column: int) -> None:
    saved(tmp_path)
    text = f'use trunk from "backbone.onnx"\nmodel m(x: f32[N, 3, 4, 4]) -> (y) {{\n    return {call}\n}}\n'
    found = refused(tmp_path, text)
    if call == "trunk(x[0])" and found.code.id == "E0101":
        pytest.fail("indexing is not there")
    assert (found.code.id, found.span.column if found.span else 0) == (code, column)


@each_row(
    ("call", "help"),
    [("trunk(x as f16)", "cast it: ((x as f16) as f32)"), ("trunk(argmax(x))", "cast it: (argmax(x) as f32)")],
)
def test_the_help_for_an_operand_of_another_dtype_casts_what_was_written(tmp_path: Path, call: str, help: str) -> None:
    saved(tmp_path)
    text = 'use trunk from "backbone.onnx"\nmodel m(x: f32[N, 3, 4, 4]) -> (y) {\n    y, _ = CALL\n    return y\n}\n'
    assert refused(tmp_path, text.replace("CALL", call)).help == help
    if call == "trunk(x as f16)":
        assert of(tmp_path, text.replace("CALL", f"trunk({help.removeprefix('cast it: ')})")).signature.outputs


def test_several_results_need_several_names(tmp_path: Path) -> None:
    saved(tmp_path)
    assert refused(tmp_path, HEAD.replace("feat, map = ", "feat = ")).code.id == "E0207"


DIMS = """<ir_version: 8, opset_import: ["" : 17]>
m (float[n, 4] a, float[n, k] b, float[?, 2] c) => (float[n, k] y) { s = ReduceSum<keepdims = 1>(a, axes)
y = Mul(b, s) }""".replace("{ s", "<int64[1] axes = {1}>\n{ s")


@each_row(
    ("types", "message"),
    [
        ("f32[2, 4], b: f32[3, 5], c: f32[7, 2]", "f32[3, 5]"),
        ("f32[2, 5], b: f32[2, 5], c: f32[7, 2]", "has 4 at axis 1"),
        ("f32[2, 4], b: f32[2, 5], c: f32[7, 3]", "has 2 at axis 1"),
        ("f32[2, 4], b: f64[2, 5], c: f32[7, 2]", "is f32"),
        ("f32[2, 4, 1], b: f32[2, 5], c: f32[7, 2]", "has 2 axes"),
        ("f32[small, 4], b: f32[large, 5], c: f32[7, 2]", "f32[large, 5]"),
    ],
)
def test_sizes_that_differ(tmp_path: Path, types: str, message: str) -> None:
    saved(tmp_path, DIMS)
    dims = "dim small in 1..4\ndim large in 5..9\n"
    text = f'use f from "backbone.onnx"\n{dims}model h(a: {types}) -> (y) {{\n    return f(a, b, c)\n}}\n'
    found = refused(tmp_path, text)
    assert found.code.id == "E0360"
    assert message in found.message


def test_sizes_that_are_left_to_run_time(tmp_path: Path) -> None:
    saved(tmp_path, DIMS)
    inputs = "a: f32[N, K], b: f32[M, 5], c: f32[7, 2]"
    text = f'use f from "backbone.onnx"\nmodel h({inputs}) -> (y) {{\n    return f(a, b, c)\n}}\n'
    program = of(tmp_path, text)
    feeds = {"a": np.ones((2, 4), np.float32), "b": np.ones((2, 5), np.float32), "c": np.ones((7, 2), np.float32)}
    np.testing.assert_array_equal(program.run(feeds, backend="cpu")["y"], np.full((2, 5), 4, np.float32))
    for name, shape in (("a", (2, 3)), ("b", (3, 5)), ("b", (1, 5))):
        with pytest.raises(DmlcError) as caught:
            program.run({**feeds, name: np.ones(shape, np.float32)}, backend="cpu")
        assert caught.value.diagnostics[0].code.id == "E0426"


@pytest.mark.parametrize(
    "types", ["f32[B, 4], b: f32[B, 2 * B], c: f32[B * 3, 2]", "f32[1, 4], b: f32[1, K], c: f32[K, 2]"]
)
def test_sizes_are_the_caller_s(tmp_path: Path, types: str) -> None:
    saved(tmp_path, DIMS)
    program = of(tmp_path, f'use f from "backbone.onnx"\nmodel h(a: {types}) -> (y) {{\n    return f(a, b, c)\n}}\n')
    assert [str(type) for _, type in program.signature.outputs] == [
        "f32[B, 2 * B]" if "B" in types else "f32[1, K]",
    ]
    assert not program.signature.conditions


def test_sizes_that_no_input_tells_stay_inside(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[n] x) => (int64[1, unknown_0] y, int64[r, c] z) { y = NonZero(x)
    p = Sub(x, one)
    z = NonZero(p) }""".replace("{ y", "<float one = {1}>\n{ y")
    saved(tmp_path, text)
    head = (
        'use f from "backbone.onnx"\nmodel h(x: f32[unknown_0]) -> (y, z) {\n    y, z = f(x)\n    return y, z + 1\n}\n'
    )
    program = of(tmp_path, head)
    sizes = {str(size) for _, type in program.signature.outputs for size in type.shape} - {"1"}
    assert len(sizes) == 2
    assert "unknown_0" not in sizes
    found = program.run({"x": np.array([0, 1, 2], np.float32)}, backend="cpu")
    np.testing.assert_array_equal(found["y"], [[1, 2]])
    np.testing.assert_array_equal(found["z"], [[1, 3]])
    assert program.run({"x": np.zeros(2, np.float32)}, backend="cpu")["y"].shape == (1, 0)


def test_binding_a_dim_reaches_the_inside(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[n, 4] x) => (float[a, b] y) { s = Shape(x)
    n = Gather(s, zero)
    e = Mul(n, two)
    t = Concat<axis = 0>(two1, e1)
    e1 = Unsqueeze(e, first)
    y = Reshape(x, t) }""".replace(
        "{ s", "<int64 zero = {0}, int64 two = {2}, int64[1] two1 = {2}, int64[1] first = {0}>\n{ s"
    ).replace(
        "t = Concat<axis = 0>(two1, e1)\n    e1 = Unsqueeze(e, first)",
        "e1 = Unsqueeze(e, first)\n    t = Concat<axis = 0>(two1, e1)",
    )
    onnx.save(onnx.parser.parse_model(text), tmp_path / "backbone.onnx")
    head = 'use f from "backbone.onnx"\nmodel h(x: f32[N, 4]) -> (y) {\n    return f(x)\n}\n'
    open_program, program = of(tmp_path, head), of(tmp_path, head, bind={"N": 3})
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for one in (open_program, program):
        np.testing.assert_array_equal(one.run({"x": x}, backend="cpu")["y"], x.reshape(2, 6))
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Reshape"]


def test_graphs_inside_nodes_come_along(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[n] x, bool c) => (float[n] y) <float[1] w = {2}>
    { y = If(c) <then_branch = then () => (float[n] t) { t = Mul(x, w) },
    else_branch = other () => (float[n] e) { e = Add(x, w) }> }"""
    saved(tmp_path, text)
    head = 'use f from "backbone.onnx"\nmodel h(x: f32[N], c: bool[]) -> (y) {\n    return f(x, c) + f(x, !c)\n}\n'
    program = of(tmp_path, head)
    x = np.array([1, 2, 5], np.float32)
    np.testing.assert_array_equal(program.run({"x": x, "c": np.True_}, backend="cpu")["y"], x * 2 + x + 2)


OPSET_24 = needs_onnx_runtime(1, 24, "does not load opset 24, nor take a scale of the size of the data")


@pytest.mark.parametrize(("operator", "version", "operands"), [
    ("HardSwish", 17, "x"), ("Mish", 18, "x"), ("Gelu", 20, "x"), pytest.param("Swish", 24, "x", marks=OPSET_24),
    pytest.param("RMSNormalization", 23, "x, x", marks=OPSET_24),
])  # fmt: skip
@pytest.mark.parametrize("target", ["directml", "cpu", "onnx"])
def test_operators_without_a_kernel_are_computed_as_in_a_model_alone(
    tmp_path: Path, operator: str, version: int, operands: str, target: dmlc.TargetName
) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : {version}]>
    m (float[n, 4] x) => (float[n, 4] y) {{ y = {operator}({operands}) }}"""
    saved(tmp_path, text)
    (tmp_path / "h.dml").write_text('use f from "backbone.onnx"\nmodel h(x: f32[N, 4]) -> (y) {\n    return f(x)\n}\n')
    program, alone = [dmlc.compile(tmp_path / name, target=target) for name in ("h.dml", "backbone.onnx")]
    found, wanted = [sorted(node.op_type for node in one.to_onnx().graph.node) for one in (program, alone)]
    assert (found, program.opset) == (wanted, alone.opset)
    x = np.linspace(-4, 4, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(program.run({"x": x})["y"], alone.run({"x": x})["y"], rtol=1e-6)


def test_values_of_foreign_types_are_handed_on(tmp_path: Path) -> None:
    first = """<ir_version: 8, opset_import: ["" : 17]>
    a (float[n] x) => (seq(float[n]) s) { s = SequenceConstruct(x, x) }"""
    second = """<ir_version: 8, opset_import: ["" : 17]>
    b (seq(float[k]) s) => (float[m] y) { y = ConcatFromSequence<axis = 0>(s) }"""
    saved(tmp_path, first, "a.onnx")
    saved(tmp_path, second, "b.onnx")
    head = 'use a from "a.onnx"\nuse b from "b.onnx"\nmodel h(x: f32[N]) -> (y) {\n    return b(a(x))\n}\n'
    program = of(tmp_path, head)
    np.testing.assert_array_equal(program.run({"x": np.ones(2, np.float32)}, backend="cpu")["y"], np.ones(4))
    assert refused(tmp_path, head.replace("b(a(x))", "a(x) + 1")).code.id.startswith("E03")
    assert refused(tmp_path, head.replace("b(a(x))", "b(x)")).code.id == "E0360"
    assert refused(tmp_path, head.replace("b(a(x))", "onnx.Relu(a(x))")).code.id.startswith("E0")


def test_numpy_code_refuses_nodes_that_the_language_lacks(tmp_path: Path) -> None:
    saved(tmp_path)
    with pytest.raises(DmlcError) as caught:
        of(tmp_path, HEAD, target="numpy").to_bytes("numpy")
    assert caught.value.diagnostics[0].code.id.startswith("E05")


def test_numpy_code_of_what_the_language_has(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[n, 4] x) => (float[n, 4] y) { a = Tanh(x)
    y = Softmax<axis = 1>(a) }"""
    saved(tmp_path, text)
    head = 'use f from "backbone.onnx"\nmodel h(x: f32[N, 4]) -> (y) {\n    return f(x) * 2\n}\n'
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    want = session(onnx.parser.parse_model(text), x=x)[0] * 2
    for target, backend in (("numpy", "numpy"), ("directml", "cpu"), ("directml", "reference")):
        found = of(tmp_path, head, target=target).run({"x": x}, backend=backend)["y"]
        np.testing.assert_allclose(found, want, rtol=1e-5)
    again = dmlc.compile(dmlc.diagnostics.Source("t.dml", of(tmp_path, head).to_bytes("dml").decode()))
    np.testing.assert_allclose(again.run({"x": x}, backend="cpu")["y"], want, rtol=1e-5)


def test_opsets_are_joined(tmp_path: Path) -> None:
    nine = """<ir_version: 4, opset_import: ["" : 9]>
    m (float[n, 4] x) => (float[n, 4] y) { y = Softmax<axis = 1>(x) }"""
    new = """<ir_version: 10, opset_import: ["" : 21]>
    m (float[n, 4] x) => (float[n, 4] y) { y = Gelu(x) }"""
    saved(tmp_path, nine, "nine.onnx")
    saved(tmp_path, new, "new.onnx")
    head = 'use f from "nine.onnx"\nuse g from "new.onnx"\nmodel h(x: f32[N, 4]) -> (y) {\n    return g(f(x))\n}\n'
    program = of(tmp_path, head)
    x = np.ones((1, 4), np.float32)
    want = session(onnx.load(tmp_path / "new.onnx"), x=session(onnx.load(tmp_path / "nine.onnx"), x=x)[0])[0]
    np.testing.assert_allclose(program.run({"x": x}, backend="cpu")["y"], want, rtol=1e-5)


def test_domains_of_two_versions_cannot_be_joined(tmp_path: Path) -> None:
    for version in (2, 3):
        node = helper.make_node("Normalizer", ["x"], ["y"], norm="L2", domain="ai.onnx.ml")
        info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy"]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
        model = helper.make_model(
            helper.make_graph([node], "g", info[:1], info[1:]), opset_imports=opsets, ir_version=8
        )
        onnx.save(model, tmp_path / f"v{version}.onnx")
    head = 'use f from "v2.onnx"\nuse g from "v3.onnx"\nmodel h(x: f32[N, 4]) -> (y) {\n    return g(f(x))\n}\n'
    found = refused(tmp_path, head)
    assert found.code.id == "E0510"
    assert " 2" in found.message
    assert " 3" in found.message


def test_models_whose_nodes_have_no_opset_in_common_cannot_be_joined(tmp_path: Path) -> None:
    old = """<ir_version: 6, opset_import: ["" : 11]>
    m (float[1, 1, 4, 4] x) => (float[1, 1, 8, 8] y) <float[0] none = {}, float[4] sizes = {1.0, 1.0, 2.0, 2.0}>
    { y = Resize<coordinate_transformation_mode = "tf_half_pixel_for_nn", mode = "nearest">(x, none, sizes) }"""
    new = """<ir_version: 8, opset_import: ["" : 16]>
    m (float[1, 1, 4, 4] x, float[1, 2, 2, 2] g) => (float[1, 1, 2, 2] y) { y = GridSample(x, g) }"""
    saved(tmp_path, old, "old.onnx")
    saved(tmp_path, new, "new.onnx")
    lines = {"f": "return f(x), x", "g": "return x, g(x, grid)", "fg": "return f(x), g(x, grid)"}
    head = 'use f from "old.onnx"\nuse g from "new.onnx"\n'
    for called, line in lines.items():
        text = f"{head}model h(x: f32[1, 1, 4, 4], grid: f32[1, 2, 2, 2]) -> (y, z) {{\n    {line}\n}}\n"
        if called == "fg":
            found = refused(tmp_path, text)
            assert found.code.id == "E0510"
            assert all(part in found.message for part in ("opset 11", "opset 16"))
        else:
            assert of(tmp_path, text).opset in ((11, 12) if called == "f" else range(16, 30))


def test_values_of_foreign_types_are_only_handed_on(tmp_path: Path) -> None:
    split = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[k, 2] x) => (seq(float[1, 2]) s) { s = SplitToSequence<axis = 0>(x) }"""
    saved(tmp_path, split, "split.onnx")
    for line, word in (
        ("exp(s)", "exp"),
        ("s + x", "+"),
        ("reduce_sum(s)", "reduce_sum"),
        ("concat(s, x, axis=0)", "concat"),
        ("s[0]", "an index"),
        ("x * size(s)", "size"),
    ):
        head = f'use f from "split.onnx"\nmodel h(x: f32[N, 2]) -> (y) {{\n    s = f(x)\n    return {line}\n}}\n'
        found = refused(tmp_path, head)
        assert found.code.id == "E0309"
        assert f"{word} does not take s, whose type" in found.message


def test_faults_of_the_model_are_told_at_the_call(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(BACKBONE)
    model.graph.node[0].op_type = "Konv"
    model.graph.node[1].input[0] = "nothing"
    onnx.save(model, tmp_path / "backbone.onnx")
    found = refused(tmp_path, HEAD)
    assert found.code.id == "E0431"
    assert found.span is not None
    assert any("backbone.onnx" in note for note in found.notes)
    (tmp_path / "backbone.onnx").write_bytes(b"\x08\x08 no model")
    found = refused(tmp_path, HEAD)
    assert (found.code.id, str(found.span).split(":")[1]) == ("E0430", "1"), "the place is the use line"


def test_sizes_that_break_a_node_inside_are_errors_of_the_call(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[n, k] x) => (float[a, b] y) { y = MatMul(x, w) }""".replace(
        "{ y", "<float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}>\n{ y"
    )
    saved(tmp_path, text)
    head = 'use f from "backbone.onnx"\nmodel h(x: f32[3, 5]) -> (y) {\n    return f(x)\n}\n'
    assert refused(tmp_path, head).code.id == "E0360"
    assert of(tmp_path, head.replace("5", "4")).signature.outputs[0][1].shape == (3, 2)


RESHAPED = (
    '<ir_version: 8, opset_import: ["" : 17]>\nm (float[n] x, int64[k] s) => (float[a, b] y) { y = Reshape(x, s) }'
)


def test_constants_are_known_inside(tmp_path: Path) -> None:
    saved(tmp_path, RESHAPED)
    head = 'use f from "backbone.onnx"\nconst s: i64[2] = [2, -1]\nconst t: i64[2] = [3, 2]\n'
    head += "model h(x: f32[6]) -> (a: f32[2, 3], b: f32[3, 2], c: f32[2, 3]) {\n"
    head += "    return f(x, s), f(x, t), f(x, s)\n}\n"
    program = of(tmp_path, head)
    found = program.run({"x": np.arange(6, dtype=np.float32)}, backend="cpu")
    np.testing.assert_array_equal(found["a"], [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(found["b"], [[0, 1], [2, 3], [4, 5]])
    np.testing.assert_array_equal(found["c"], found["a"])


def test_a_result_that_is_an_operand_keeps_its_name(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[n] x) => (float[n] y, float[n] z) { y = Identity(x)
    z = Identity(x) }"""
    saved(tmp_path, text)
    head = 'use f from "backbone.onnx"\nmodel h(x: f32[N]) -> (a, b) {\n    p, q = f(x)\n    return p, q + 1\n}\n'
    program = of(tmp_path, head)
    assert [name for name, _ in program.signature.inputs] == ["x"]
    np.testing.assert_array_equal(program.run({"x": np.ones(2, np.float32)}, backend="cpu")["b"], [2, 2])


def test_an_optional_input_is_left_out(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("OptionalHasElement", ["o"], ["h"]),
        helper.make_node("Cast", ["h"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "number"], ["y"]),
    ]
    kind = onnx.TypeProto()
    kind.optional_type.elem_type.tensor_type.elem_type = TensorProto.FLOAT
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x, onnx.ValueInfoProto(name="o", type=kind)], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "o.onnx")
    for call in ("f(x, none)", "f(x)", "f(x, o=none)"):
        head = f'use f from "o.onnx"\nmodel h(x: f32[N]) -> (y) {{\n    return {call}\n}}\n'
        np.testing.assert_array_equal(of(tmp_path, head).run({"x": np.ones(2, np.float32)}, backend="cpu")["y"], [1, 1])


def test_an_asked_opset_that_a_node_does_not_have(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 19]>
    m (float[1, 2, 8, 8] x) => (float[1, 2, 4, 4] y) <float[4] s = {1, 1, 0.5, 0.5}>
    { y = Resize <antialias = 1, mode = "linear"> (x, , s) }"""
    saved(tmp_path, text)
    head = 'use f from "backbone.onnx"\nmodel h(x: f32[1, 2, 8, 8]) -> (y) {\n    return f(x) * 2\n}\n'
    assert refused(tmp_path, head, opset=17).code.id == "E0501"
    x = np.random.default_rng(3).normal(size=(1, 2, 8, 8)).astype(np.float32)
    want = session(onnx.load(tmp_path / "backbone.onnx"), x=x)[0] * 2
    np.testing.assert_allclose(of(tmp_path, head).run({"x": x}, backend="cpu")["y"], want, rtol=1e-5)


@pytest.mark.parametrize("opset", [None, 17])
def test_an_operator_that_came_later_is_computed_by_its_definition(tmp_path: Path, opset: int | None) -> None:
    text = """<ir_version: 11, opset_import: ["" : 23]>
    m (float[1, 2, 3, 4] x) => (float[1, 2, 3, 4] y) { y = Attention(x, x, x) }"""
    saved(tmp_path, text)
    head = 'use f from "backbone.onnx"\nmodel h(x: f32[1, 2, 3, 4]) -> (y) {\n    return f(x) * 2\n}\n'
    x = np.random.default_rng(3).normal(size=(1, 2, 3, 4)).astype(np.float32)
    want = session(onnx.load(tmp_path / "backbone.onnx"), x=x)[0] * 2
    np.testing.assert_allclose(of(tmp_path, head, opset=opset).run({"x": x}, backend="cpu")["y"], want, rtol=1e-5)


def test_many_calls_of_a_model_are_limited(tmp_path: Path) -> None:
    saved(tmp_path, '<ir_version: 8, opset_import: ["" : 17]>\nm (float[n] x) => (float[n] y) { y = Relu(x) }')
    head = 'use f from "backbone.onnx"\ndef g0(x) {\n    return f(x) + f(x)\n}\n'
    head += "".join(f"def g{i}(x) {{\n    return g{i - 1}(x) + g{i - 1}(x)\n}}\n" for i in range(1, 8))
    head += "model h(x: f32[N]) -> (y) {\n    return g7(x)\n}\n"
    assert refused(tmp_path, head, limits={"nodes": 100}).code.id == "E0441"


def test_library_files_bring_models_along(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    saved(tmp_path, name="lib/backbone.onnx")
    (tmp_path / "lib" / "blocks.dml").write_text(
        'use trunk from "backbone.onnx"\n\ndef features(image) {\n    feat, _ = trunk(image)\n    return feat\n}\n'
    )
    head = 'use features from "lib/blocks.dml"\nmodel h(x: f32[N, 3, 8, 6]) -> (y) {\n    return features(x / 255)\n}\n'
    found = of(tmp_path, head).run({"x": IMAGE.astype(np.float32)}, backend="cpu")["y"]
    want = session(onnx.parser.parse_model(BACKBONE), pixels=IMAGE.astype(np.float32) / 255)[0]
    np.testing.assert_allclose(found, want, rtol=1e-5)
