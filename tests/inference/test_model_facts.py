"""Facts about whole models: they agree with ONNX's own inference wherever both know a type, and with what runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, ModelProto, TypeProto, parser, shape_inference

import dmlc
from dmlc.inference import Fact
from dmlc.inference.model_facts import GraphFacts, facts_of_model
from dmlc.ir import TensorType, symbol
from dmlc.ir.dtype import f32
from dmlc.onnx_schema.nested import graphs_of
from tests.inference.test_rules_against_node_tests import CASES
from tests.kit import run
from tests.rows import each_row


def declared(graph: GraphProto) -> dict[str, TypeProto]:
    """The types of all values of a graph and of those inside its nodes."""
    out = {info.name: info.type for infos in (graph.value_info, graph.output) for info in infos}
    for node in graph.node:
        for inner in graphs_of(node):
            out |= declared(inner)
    return out


def known(facts: GraphFacts) -> dict[str, Fact]:
    """The facts about all values of a graph and of those inside its nodes."""
    out = dict(facts.of)
    for graphs in facts.inner.values():
        for inner in graphs:
            out |= known(inner)
    return out


def facts_of(text: str) -> dict[str, Fact]:
    return known(facts_of_model(parser.parse_model(text)).facts)


def contradictions(model: ModelProto) -> Iterator[str]:
    """Values that ONNX's inference and ours give different types."""
    theirs = ModelProto.FromString(shape_inference.infer_shapes(model, data_prop=True).SerializeToString())
    ours = known(facts_of_model(model).facts)
    for name, type in declared(theirs.graph).items():
        mine, tensor = ours.get(name), type.tensor_type
        if mine is None or not type.HasField("tensor_type") or not mine.element:
            continue
        if tensor.elem_type and mine.element != tensor.elem_type:
            yield f"{name}: element {mine.element}, not {tensor.elem_type}"
        if mine.shape is None or not tensor.HasField("shape"):
            continue
        sizes = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
        pairs = zip(mine.shape, sizes, strict=False)
        if len(mine.shape) != len(sizes) or any(isinstance(x, int) and y is not None and x != y for x, y in pairs):
            yield f"{name}: {mine.shape}, not {sizes}"


def without_declarations(model: ModelProto) -> ModelProto:
    out = ModelProto.FromString(model.SerializeToString())
    del out.graph.value_info[:]
    for info in out.graph.output:
        info.ClearField("type")
    return out


def test_the_node_tests_are_typed_as_onnx_types_them() -> None:
    wrong = {}
    for name, model, _, _ in CASES:
        found = list(contradictions(without_declarations(model)))
        if found:
            wrong[name] = found
    assert not wrong


MODELS = {
    "branches": """<ir_version: 8, opset_import: ["": 18]> g (bool c, float[N, 4] x) => (float[?, ?] y) {
        h = If(c) <then_branch = t () => (float[a, b] p) { q = Relu(x) p = Exp(q) },
                   else_branch = e () => (float[c, d] r) { r = Neg(x) }>
        y = Abs(h) }""",
    "a computed reshape": """<ir_version: 8, opset_import: ["": 18]> g (float[N, 4, 6] x) => (float[?, ?] y)
        <int64[1] zero = {0}, int64[1] rest = {-1}> { s = Shape(x) n = Gather(s, zero) l = Concat(n, rest)
        r = Reshape(x, l) y = Tanh(r) }""",
    "an overridden shape": """<ir_version: 8, opset_import: ["": 18]> g (float[4, 6] x, int64[2] s) => (float[?, ?] y)
        <int64[2] s = {3, 8}> { r = Reshape(x, s) y = Tanh(r) }""",
}


def test_branches_that_agree_give_their_type() -> None:
    found = facts_of(MODELS["branches"])
    assert found["h"].shape == (symbol("N"), 4)
    assert found["q"].shape == (symbol("N"), 4)


def test_sizes_of_a_computed_list_are_followed() -> None:
    assert facts_of(MODELS["a computed reshape"])["r"].shape == (symbol("N"), 24)


def test_the_default_of_an_input_is_not_a_fact() -> None:
    shape = facts_of(MODELS["an overridden shape"])["r"].shape
    assert shape is not None
    assert not any(isinstance(size, int) for size in shape)


def test_given_types_are_believed() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18, "mine": 1]> g (float[N] x) => (float[?, ?] y) {
        h = mine.Unknown(x) r = Neg(h) y = Tanh(r) }"""
    )
    found = facts_of_model(model, {"h": TensorType(f32, (symbol("N"), 3))}).facts.of
    assert found["r"].shape == (symbol("N"), 3)
    found = facts_of_model(model, {"h": TensorType(f32, (symbol("N"), 3))}, {"N": 7}).facts.of
    assert (found["x"].shape, found["r"].shape) == ((7,), (7, 3))


@each_row("name", MODELS)
def test_models_are_typed_as_onnx_types_them(name: str) -> None:
    assert not list(contradictions(parser.parse_model(MODELS[name])))


@each_row("size", [0, 1, 2, 5])
@each_row("step", [-3, -1, 1, 2])
def test_slices_have_the_sizes_that_come_out(size: int, step: int) -> None:
    """Backwards ONNX clamps a start below the first element to it, where NumPy takes nothing."""
    bounds = (-9, -2, -1, 0, 1, 9)
    weights = [f"int64[1] b{n} = {{{bound}}}" for n, bound in enumerate(bounds)]
    weights += ["int64[1] a = {0}", f"int64[1] t = {{{step}}}"]
    pairs = [f"{start}_{end}" for start in range(len(bounds)) for end in range(len(bounds))]
    nodes = [f"h{n} = Slice(x, b{n[0]}, b{n[2]}, a, t) y{n} = Neg(h{n})" for n in pairs]
    outputs = ", ".join(f"float[?, 2] y{n}" for n in pairs)
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{size}, 2] x) => ({outputs}) <{", ".join(weights)}>
        {{ {" ".join(nodes)} }}"""
    )
    x = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
    expected = dict(zip(pairs, run(model, x=x).values(), strict=True))
    facts = facts_of_model(model).facts.of
    assert {n: facts[f"h{n}"].shape for n in pairs} == {n: expected[n].shape for n in pairs}
    found = dmlc.compile(model, target="onnx").run({"x": x})
    for n in pairs:
        np.testing.assert_array_equal(found[f"y{n}"], expected[n], err_msg=n)


LOOPS = {
    "a carried shape that stays": (
        "y = Loop(n, c, x) <body = b (int64 i, bool d, float[A, B] h) => (bool e, float[C, D] k, float[C, D] s) "
        "{ e = Identity(d) k = Relu(h) s = Neg(k) }>",
        {"y": (symbol("N"), 4), "k": (symbol("N"), 4), "s": (symbol("N"), 4)},
    ),
    "a carried size that grows": (
        "y = Loop(n, c, x) <body = b (int64 i, bool d, float[A, B] h) => (bool e, float[C, D] k) "
        "{ e = Identity(d) k = Concat <axis = 0> (h, x) }>",
        {"y": (None, 4), "k": (None, 4)},
    ),
    "a carried rank that grows": (
        "y = Loop(n, c, x) <body = b (int64 i, bool d, float[A, B] h) => (bool e, float[C, D] k) "
        "{ e = Identity(d) k = Unsqueeze(h, z) }>",
        {"y": None},
    ),
    "stacked results": (
        "t, y = Loop(n, c, x) <body = b (int64 i, bool d, float[A, B] h) => (bool e, float[C, D] k, float[S] s) "
        "{ e = Identity(d) k = Relu(h) s = ReduceMax <axes = [0], keepdims = 0> (k) }>",
        {"y": (None, 4), "s": (4,)},
    ),
    "slices of a Scan": (
        "t, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], body = b (float[A] h, float[B] v) => "
        "(float[C] k, float[D] s) { k = Add(h, v) s = Neg(k) }> (w, x)",
        {"v": (symbol("N"),), "k": (symbol("N"),), "y": (4, symbol("N"))},
    ),
}


@each_row("name", LOOPS)
def test_bodies_are_typed_by_what_any_run_is_fed(name: str) -> None:
    text, expected = LOOPS[name]
    found = facts_of(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[N, 4] x, float[N] w, int64 n, bool c) => (float[] y)
        <int64[1] z = {{0}}> {{ {text} }}"""
    )
    for value, shape in expected.items():
        mine = found[value].shape
        if shape is None or mine is None:
            assert mine is None
            continue
        known = [size if isinstance(size, int) or size.name == "N" else None for size in mine]
        assert tuple(known) == shape, value


@each_row("depth", [2, 5, 14])
def test_deep_bodies_take_linear_work(depth: int) -> None:
    """Each body is typed at most three times by the one around it: not so for bodies in bodies."""
    text = "k0 = Concat <axis = 0> (h0, x) e0 = Identity(d0)"
    for level in range(1, depth):
        body = f"b{level} (int64 i{level - 1}, bool d{level - 1}, float[A] h{level - 1}) => (bool e{level - 1}, "
        text = f"k{level} = Loop(n, c, h{level}) <body = {body}float[B] k{level - 1}) {{ {text} }}> " + (
            f"e{level} = Identity(d{level})"
        )
    top = f"body = b (int64 i, bool d{depth - 1}, float[A] h{depth - 1}) => (bool e{depth - 1}, float[B] k{depth - 1})"
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[N] x, int64 n, bool c) => (float[M] y)
        {{ y = Loop(n, c, x) <{top} {{ {text} }}> }}"""
    )
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        facts_of_model(model)
    finally:
        sys.setprofile(None)
    assert calls < 30_000 + 3_000 * depth


def test_sizes_without_a_name_differ() -> None:
    """Exporters write ? and -1 where they do not know a size, so that two of them may be two sizes."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[N] x, float[N] z) => (float[M] y) { y = Add(x, z) }"""
    )
    for mark in ("?", "-1", "unknown", ""):
        for info in model.graph.input:
            info.type.tensor_type.shape.dim[0].dim_param = mark
        of = facts_of_model(model).facts.of
        assert of["x"].shape != of["z"].shape


def test_claims_refine_what_rules_leave_open() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[2, 3] x, int64[1] a) => (float[{}] y)
        {{ y = ReduceMax(x, a) }}"""
    assert facts_of(text.format("2, 1"))["y"].shape == (2, 1)
    wrong = facts_of(text.format("7"))["y"].shape
    assert wrong is not None
    assert len(wrong) == 2
