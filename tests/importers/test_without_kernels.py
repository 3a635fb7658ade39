"""Operators that DirectML has no kernel for are computed by their definitions there, with the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import parser

import dmlc
from tests.kit import run
from tests.rows import each_row

RNG = np.random.default_rng(5)
ML = '"ai.onnx.ml": 3'


def floats(*shape: int, dtype: type = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


ROWS = np.array([[1, -2, 3], [0, 0, 0], [-4, -5, -6], [0.5, 0, -0.5]], np.float32)
#: The opset, the inputs, the outputs, the nodes, and what is fed.
MODELS: dict[str, tuple[int, str, str, str, dict[str, Any]]] = {
    "hard swish": (17, "float[3, 4] x", "float[3, 4] y", "y = HardSwish(x)", {"x": floats(3, 4) * 5}),
    "mish": (18, "float[3, 4] x", "float[3, 4] y", "y = Mish(x)", {"x": floats(3, 4) * 5}),
    "feature extractor": (
        17, "float[2, 8] x, int64[2, 3] i", "float[2, 6] y", "y = ai.onnx.ml.ArrayFeatureExtractor(x, i)",
        {"x": floats(2, 8), "i": np.array([[0, 7, 7], [3, 1, 0]])},
    ),
    "feature extractor of three axes": (
        17, "float[2, 3, 4] x, int64[2] i", "float[2, 3, 2] y", "y = ai.onnx.ml.ArrayFeatureExtractor(x, i)",
        {"x": floats(2, 3, 4), "i": np.array([3, 0])},
    ),
    "feature extractor of a vector": (
        11, "int64[5] x, int64[4] i", "int64[1, 4] y", "y = ai.onnx.ml.ArrayFeatureExtractor(x, i)",
        {"x": np.arange(5) * 3, "i": np.array([4, 0, 4, 1])},
    ),
    "scaler": (
        17, "float[N, 3] x", "float[N, 3] y",
        "y = ai.onnx.ml.Scaler <offset = [0.1, 2.5, 3.5], scale = [0.5, 0.3, 7.0]> (x)", {"x": floats(4, 3)},
    ),
    "scaler of integers": (
        13, "int64[N, 3] x", "float[N, 3] y", "y = ai.onnx.ml.Scaler <offset = [1.5], scale = [0.3]> (x)",
        {"x": np.arange(12).reshape(4, 3)},
    ),
}  # fmt: skip
for opset in (13, 18):
    for norm in ("MAX", "L1", "L2"):
        node = f'y = ai.onnx.ml.Normalizer <norm = "{norm}"> (x)'
        MODELS[f"normalizer {norm} at {opset}"] = (opset, "float[4, 3] x", "float[4, 3] y", node, {"x": ROWS})
        MODELS[f"normalizer {norm} of a vector at {opset}"] = (opset, "float[3] x", "float[3] y", node, {"x": ROWS[0]})
for opset in (12, 13, 17):
    for reduction in ("none", "sum", "mean"):
        result = "float[6] y" if reduction == "none" else "float y"
        labels = {"t": np.array([0, 4, 2, 2, 1, 3])}
        for words, more, fed in (
            ("", "", {}),
            (", ignore_index = 2", "", {}),
            (", ignore_index = 2", ", float[5] w", {"w": np.abs(floats(5)) + 1}),
        ):
            for name in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"):
                made = f'y = {name} <reduction = "{reduction}"{words}> (x, t{", w" if more else ""})'
                key = f"{name} {reduction}{words}{' weighted' if more else ''} at {opset}"
                inputs = f"float[6, 5] x, int64[6] t{more}"
                MODELS[key] = (opset, inputs, result, made, {"x": floats(6, 5), **labels, **fed})
MODELS["a loss with two results"] = (
    17, "float[6, 5] x, int64[6] t", "float y, float[6, 5] l", "y, l = SoftmaxCrossEntropyLoss(x, t)",
    {"x": floats(6, 5), "t": np.array([0, 4, 2, 2, 1, 3])},
)  # fmt: skip
MODELS["a loss of pictures"] = (
    15, "float[N, 3, 2, 4] x, int32[N, 2, 4] t", "float y", "y = SoftmaxCrossEntropyLoss <ignore_index = 1> (x, t)",
    {"x": floats(2, 3, 2, 4), "t": np.arange(16, dtype=np.int32).reshape(2, 2, 4) % 3},
)  # fmt: skip


def model(name: str) -> onnx.ModelProto:
    opset, inputs, outputs, nodes, _ = MODELS[name]
    text = f'<ir_version: 8, opset_import: ["": {opset}, {ML}]> g ({inputs}) => ({outputs}) {{ {nodes} }}'
    return parser.parse_model(text)


def places(program: dmlc.Program) -> set[str]:
    return {row.where for row in program.placement().nodes}


@each_row("name", MODELS)
def test_the_definition_runs_on_directml_with_the_same_numbers(name: str) -> None:
    source, feeds = model(name), MODELS[name][4]
    shapes = {key: array.shape for key, array in feeds.items()}
    program = dmlc.compile(source, shapes=shapes)
    report = program.placement()
    assert places(program) == {"provider"}
    assert not any(row.alone for row in report.nodes)
    assert any("is computed by its definition" in note for note in program.artifact("onnx").report)
    wanted = onnxruntime.InferenceSession(source.SerializeToString()).run(None, feeds)
    got = program.run(feeds, backend="cpu")
    for info, array in zip(source.graph.output, wanted, strict=True):
        assert got[info.name].dtype == array.dtype
        np.testing.assert_allclose(got[info.name], array, rtol=1e-5, atol=1e-6)


@each_row("name", ["scaler", "scaler of integers", "feature extractor", "feature extractor of a vector"])
def test_exact_ones_keep_every_bit(name: str) -> None:
    source, feeds = model(name), MODELS[name][4]
    program = dmlc.compile(source, exact=True)
    assert places(program) == {"provider"}
    (wanted,) = run(source, feeds).values()
    assert np.array_equal(program.run(feeds, backend="cpu")["y"], wanted)


@each_row("name", ["mish", "normalizer L2 at 13", "SoftmaxCrossEntropyLoss mean at 17"])
def test_others_stay_with_exact_and_for_targets_without_a_provider(name: str) -> None:
    kind = model(name).graph.node[0].op_type
    for options in ({"exact": True}, {"target": "onnx"}, {"target": "cpu"}):
        assert kind in {node.op_type for node in dmlc.compile(model(name), **options).to_onnx().graph.node}


@each_row(
    ("inputs", "node"),
    [
        ("double[4, 3] x", "ai.onnx.ml.Scaler <offset = [0.5], scale = [0.5]> (x)"),
        ("float[4, 3, 2] x", 'ai.onnx.ml.Normalizer <norm = "L1"> (x)'),
        ("float[4, 3] x", "ai.onnx.ml.Scaler <offset = [0.5, 0.5], scale = [0.5, 0.5]> (x)"),
        ("string[4] x, int64[2] i", "ai.onnx.ml.ArrayFeatureExtractor(x, i)"),
    ],
)
def test_what_no_definition_covers_stays(inputs: str, node: str) -> None:
    kind = "string" if inputs.startswith("string") else "float"
    text = f'<ir_version: 8, opset_import: ["": 17, {ML}]> g ({inputs}) => ({kind}[] y) {{ y = {node} }}'
    source = parser.parse_model(text)
    source.graph.output[0].type.tensor_type.ClearField("shape")
    try:
        emitted = dmlc.compile(source).to_onnx()
    except dmlc.DmlcError as error:  # a scaler of another width is broken
        assert error.diagnostics[0].code.id == "E0431"
        return
    assert [node.domain for node in emitted.graph.node] == ["ai.onnx.ml"]


def test_a_definition_inside_a_branch() -> None:
    text = f"""<ir_version: 8, opset_import: ["": 17, {ML}]> g (float[4, 3] x, bool c) => (float[4, 3] y) {{
    y = If (c) <then_branch = t () => (float[4, 3] a) {{ a = ai.onnx.ml.Scaler <offset = [0.5], scale = [2.0]> (x) }},
                else_branch = e () => (float[4, 3] b) {{ b = Neg(x) }}> }}"""
    source = parser.parse_model(text)
    program = dmlc.compile(source)
    for c in (True, False):
        feeds = {"x": ROWS, "c": np.array(c)}
        (wanted,) = run(source, feeds).values()
        assert np.array_equal(program.run(feeds, backend="cpu")["y"], wanted)
    assert not [row.op for row in program.placement().nodes if row.op.startswith("ai.onnx.ml")]


@each_row("opset", range(7, 13))
@each_row(
    "node",
    [
        *[f'y = ai.onnx.ml.Normalizer <norm = "{norm}"> (x)' for norm in ("MAX", "L1", "L2")],
        "y = ai.onnx.ml.Scaler <offset = [0.1, 2.5, 3.5], scale = [0.5, 0.3, 7.0]> (x)",
        "y = ai.onnx.ml.ArrayFeatureExtractor(x, i)",
    ],
)
def test_models_of_every_old_opset_compile_with_the_same_numbers(node: str, opset: int) -> None:
    model = parser.parse_model(
        f"""<ir_version: 4, opset_import: ["": {opset}, {ML}]> g (float[4, 3] x) => (float[a, b] y)
        <int64[2] i = {{2, 0}}> {{ {node} }}"""
    )
    program = dmlc.compile(model, target="directml")
    assert places(program) == {"provider"}
    emitted = program.to_onnx()
    assert not dmlc.compile(emitted, target="directml").ledger
    (found,), (expected,) = (run(m, x=ROWS).values() for m in (emitted, model))
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(np.float32).eps)


#: Names of a node, and the path that they begin with.
NAMES = (("/enc/b.1/act", "/enc/b.1"), ("act", "act"), ("", ""))
#: Each model with each name, but those names take turns where models differ in their opset and attributes alone.
NAMED = [
    (key, *name)
    for number, key in enumerate(MODELS)
    for turn, name in enumerate(NAMES)
    if " at " not in key or (number + turn) % 3 == 0
]


@each_row(("key", "name", "path"), NAMED)
def test_nodes_and_values_of_a_definition_are_named_after_the_node(key: str, name: str, path: str) -> None:
    source = model(key)
    (node,) = source.graph.node
    node.name = name
    whole, path = name or node.output[0], path or node.output[0]
    emitted = dmlc.compile(source, shapes={key: array.shape for key, array in MODELS[key][4].items()}).to_onnx()
    own = {info.name for info in (*source.graph.input, *source.graph.output)}
    names = [made.name for made in emitted.graph.node]
    assert len(set(names)) == len(names)
    assert all(made.startswith(f"{path}/") for made in names), names
    made = {value for made in emitted.graph.node for value in (*made.input, *made.output)} - own - {""}
    assert all(value.startswith((f"{whole}/", f"{path}/")) for value in made), made


def test_two_nodes_of_one_operator_have_definitions_of_their_own_names() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[N] HS_X) => (float[N] y) {
        HS_X_1 = HardSwish (HS_X)  y = HardSwish (HS_X_1) }"""
    source = parser.parse_model(text)
    for node, name in zip(source.graph.node, ("/a/act", "/b/act"), strict=True):
        node.name = name
    emitted = dmlc.compile(source).to_onnx()
    assert [node.name for node in emitted.graph.node] == ["/a/HardSigmoid", "/a/Mul", "/b/HardSigmoid", "/b/Mul"]
    assert [node.output[0] for node in emitted.graph.node] == ["/a/act/HS_X", "HS_X_1", "/b/act/HS_X", "y"]
    source.graph.node[1].name = "/a/other"
    emitted = dmlc.compile(source).to_onnx()
    assert len({node.name for node in emitted.graph.node}) == 4
    assert all(node.name.startswith("/a/") for node in emitted.graph.node)


def test_a_newer_operator_is_named_by_its_definition_too() -> None:
    text = """<ir_version: 10, opset_import: ["": 24]> g (float[2, 3, 4] x, float[2, 3, 1] u) => (float[2, 3, 4] y) {
        y = TensorScatter <axis = -1> (x, u) }"""
    source = parser.parse_model(text)
    source.graph.node[0].name = "/cache/put"
    nodes = dmlc.compile(source).to_onnx().graph.node
    assert nodes[-1].op_type != "TensorScatter"
    assert all(node.name.startswith("/cache/") for node in nodes), [node.name for node in nodes]
