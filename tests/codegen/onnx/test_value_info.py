"""Types of all values in the ``value_info`` of emitted models: complete, true at run time, harmless where they are not
known, and claims like any other where the model is compiled again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

TARGETS = ("directml", "cpu", "onnx")
PROGRAMS = {
    "selection": "model m(x: f32[N, 3, H]) -> (i, h) {\n i = argmax(x, axes=[1, 2], ties=last)\n"
    " h = hardmax(x, axes=[0, 2])\n return i, h\n}",
    "norms": "model m(x: f16[N, 4, H]) -> (y, z) {\n y = softmax(x, axes=[1, 2])\n"
    " z = mean_variance_norm(x, axes=[1, 2])\n return y, z\n}",
    "layout": "model m(x: f32[N, 4, H]) -> (y, z) {\n y = exp(reshape(x, shape=[N * 2, 2 * H]))\n"
    " z = reduce_sum(abs(reshape(x, shape=[4 * N * H])), axes=[0])\n return y, z\n}",
    "types": "model m(x: f64[N, 5, H]) -> (y, k) {\n y, k = top_k(x, k=2, axis=1)\n return y, k\n}",
    "unread results": "model m(x: f32[N, 6, H]) -> (y, s, a) {\n y, _ = top_k(x, k=2, axis=1, dtype=u32)\n"
    " s = sort(x, axis=1)\n a, _ = onnx.Split(x, axis=1, num_outputs=2)\n return y, s, a\n}",
}
MODELS = {
    "branches": "g (bool c, float[N, 4] x) => (float[A, B] y) { h = If(c) <then_branch = t () => (float[a, b] p) "
    "{ q = Relu(x) p = Exp(q) }, else_branch = e () => (float[a2, b2] r) { s = Neg(x) r = Abs(s) }> y = Neg(h) }",
    "a loop": "g (float[N, 4] x, int64 n, bool c) => (float[A, B] y, float[D, E, F] z) "
    "{ y, z = Loop(n, c, x) <body = b (int64 i, bool d, float[P, Q] h) => (bool e, float[R, S] k, float[T, U] s) "
    "{ e = Identity(d) j = Exp(h) k = Tanh(j) s = Neg(k) }> }",
    "sizes that data tells": "g (float[N, 4] x) => (float[A, B] y) { i = NonZero(x) f = Cast <to = 1> (i) h = Neg(f) "
    "g = Transpose <perm = [1, 0]> (h) y = Concat <axis = 0> (g, g) }",
    "a sequence": "g (float[N, 4] x) => (float[A, 4] y) <int64 k = {0}> { s = SequenceConstruct(x, x) "
    "a = SequenceAt(s, k) y = Exp(a) }",
    "computed sizes": "g (float[N, 4, H] x) => (float[A, B] y) <int64[1] z = {0}, int64[1] m = {-1}> { h = Shape(x) "
    "n = Gather(h, z) l = Concat <axis = 0> (n, m) r = Reshape(x, l) e = Exp(r) y = Add(e, e) }",
    "an old form": "g (float[N, 4, H] x) => (float[A, 4, B] y) { s = Softmax <axis = 1> (x) y = Exp(s) }",
}


def source(name: str) -> Source | onnx.ModelProto:
    if name in PROGRAMS:
        return Source("m.dml", PROGRAMS[name])
    opset = 12 if name == "an old form" else 17
    return parser.parse_model(f'<ir_version: 7, opset_import: ["": {opset}]> {MODELS[name]}')


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def types_of(graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    return {info.name: info.type for info in (*graph.value_info, *graph.output)}


@each_row("target", TARGETS)
@each_row("name", [*PROGRAMS, *MODELS])
def test_every_value_has_its_type(name: str, target: str) -> None:
    model = dmlc.compile(source(name), target=target).to_onnx()
    onnx.checker.check_model(model, full_check=True)
    for graph in graphs(model.graph):
        names = [info.name for info in graph.value_info]
        assert len(names) == len(set(names))
        assert not {info.name for info in (*graph.input, *graph.output, *graph.initializer)}.intersection(names)
        types, made = types_of(graph), {name for node in graph.node for name in node.output if name}
        assert made == types.keys()
        for type in types.values():
            assert not type.HasField("tensor_type") or type.tensor_type.HasField("shape")


def size_of(dim: onnx.TensorShapeProto.Dimension, dims: dict[str, int]) -> int | None:
    """The size that a declaration says for these dims; None for an open one."""
    if dim.HasField("dim_value"):
        return dim.dim_value
    return eval(dim.dim_param, {}, dims) if dim.dim_param else None


@each_row("target", TARGETS)
@each_row("name", [*PROGRAMS, *MODELS])
def test_types_are_those_that_come_out(name: str, target: str) -> None:
    """Open sizes of a name have one size at run time, and expressions give what they say."""
    model = dmlc.compile(source(name), target=target).to_onnx()
    infos = {info.name: info.type for info in model.graph.value_info if info.type.HasField("tensor_type")}
    model.graph.output.extend([onnx.ValueInfoProto(name=name) for name in infos])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for dims in ({"N": 2, "H": 3}, {"N": 5, "H": 1}):
        feeds = {}
        for info in model.graph.input:
            shape = [size_of(dim, dims) for dim in info.type.tensor_type.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            feeds[info.name] = np.ones([s for s in shape if s is not None], dtype)
        for output, value in zip(session.get_outputs(), session.run(None, feeds), strict=True):
            if output.name not in infos:
                continue
            tensor = infos[output.name].tensor_type
            assert onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type) == value.dtype
            declared = [size_of(dim, dims) for dim in tensor.shape.dim]
            assert len(declared) == value.ndim
            assert all(want in (None, have) for want, have in zip(declared, value.shape, strict=True)), output.name


def test_sizes_are_named_by_the_dims_of_the_inputs() -> None:
    model = dmlc.compile(source("layout"), target="onnx").to_onnx()
    texts = {dim.dim_param for type in types_of(model.graph).values() for dim in type.tensor_type.shape.dim}
    assert {"2 * N", "2 * H"} <= texts
    bound = dmlc.compile(source("layout"), target="onnx", bind={"N": 3, "H": 2}).to_onnx()
    assert all(d.HasField("dim_value") for type in types_of(bound.graph).values() for d in type.tensor_type.shape.dim)


def test_a_name_that_only_a_claim_uses_is_not_passed_on() -> None:
    """TorchScript declares two sizes of an output by one name; ONNX Runtime would plan memory for equal ones."""
    text = "g (float[N, 4] x) => (float[u, u] y) { i = NonZero(x) f = Cast <to = 1> (i) h = Neg(f) y = Exp(h) }"
    model = parser.parse_model(f'<ir_version: 7, opset_import: ["": 17]> {text}')
    made = dmlc.compile(model, target="onnx").to_onnx()
    names = {dim.dim_param for info in made.graph.value_info for dim in info.type.tensor_type.shape.dim}
    assert names <= {""}
    assert made.graph.value_info


def bare_types(model: onnx.ModelProto) -> list[list[bytes]]:
    """The types of each graph's values without their names, which follow from those of nodes."""
    return [sorted(type.SerializeToString() for type in types_of(graph).values()) for graph in graphs(model.graph)]


@each_row("name", [*PROGRAMS, *MODELS])
def test_a_second_compilation_writes_the_same_types(name: str) -> None:
    first = dmlc.compile(source(name), target="onnx").to_onnx()
    second = dmlc.compile(first, target="onnx").to_onnx()
    assert bare_types(second) == bare_types(first)


@pytest.mark.parametrize("name", MODELS)
def test_types_that_were_made_wrong_are_claims(name: str) -> None:
    """The value_info of an emitted model is not trusted where that model is compiled again."""
    right = dmlc.compile(source(name), target="onnx").to_onnx()
    wrong = onnx.ModelProto()
    wrong.CopyFrom(right)
    for graph in graphs(wrong.graph):
        for info in graph.value_info:
            if info.type.HasField("tensor_type"):
                info.type.tensor_type.shape.dim.add(dim_value=7)
    program = dmlc.compile(wrong, target="onnx")
    again = program.to_onnx()
    assert bare_types(again) == bare_types(right)
    onnxruntime.InferenceSession(again.SerializeToString(), providers=["CPUExecutionProvider"])


@each_row("norm", ["L1", "L2", "MAX"])
@each_row("target", TARGETS)
def test_a_normalizer_keeps_the_signs_of_its_operand(norm: str, target: str) -> None:
    """ONNX Runtime's kernel loses them if it knows that its result may take its operand's memory."""
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 11, "ai.onnx.ml": 2]> g (float[4, 3] x) => (float[4, 3] y) {{
            a = Neg(x)  n = ai.onnx.ml.Normalizer <norm: string = "{norm}"> (a)  y = Neg(n)
        }}"""
    )
    x = np.array([[1, -2, 3], [-4, 5, -6], [0, 0, -1], [2, 2, 2]], np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    found = dmlc.compile(model, target=target).run({"x": x}, backend="cpu")["y"]
    # DirectML has no kernel: the definition stands there, whose sums and quotients round once more each
    np.testing.assert_allclose(found, expected, rtol=0 if target != "directml" else 4 * np.finfo(np.float32).eps)
    assert norm == "MAX" or (np.sign(found) == np.sign(x)).all()


@pytest.mark.parametrize("target", TARGETS)
def test_no_node_computes_what_nothing_reads(target: str) -> None:
    made = dmlc.compile(source("unread results"), target=target).to_onnx()
    read = {name for node in made.graph.node for name in node.input} | {info.name for info in made.graph.output}
    assert all(read & set(node.output) for node in made.graph.node)
