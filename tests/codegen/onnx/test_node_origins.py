"""Names and metadata of emitted nodes say what they were made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.codegen.onnx.annotations import read_annotations
from dmlc.codegen.onnx.names import ROLES
from dmlc.diagnostics import Source
from tests.rows import each_row

PROGRAM = Source(
    "head.dml",
    """model head(x: f32[N, 3, 8, 8]) -> (y, m) {
    m = reduce_mean(reduce_mean(x, axes=[3]), axes=[2])
    y = hardmax(exp(x) * 2.0, axes=[2, 3])
    return y, m
}
""",
)


def layer_norm(*, opset: int = 17, prefix: str = "/enc/n1/") -> onnx.ModelProto:
    """A layer normalization as PyTorch's exporter writes it, with the names that it gives."""
    model: onnx.ModelProto = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : {opset}]>
        norm (float[2, 8] x, float[8] w, float[8] b) => (float[2, 8] y)
        <float two = {{2.0}}, float eps = {{1e-5}}> {{
            m = ReduceMean<axes = [-1]>(x)
            d = Sub(x, m)
            p = Pow(d, two)
            v = ReduceMean<axes = [-1]>(p)
            e = Add(v, eps)
            s = Sqrt(e)
            q = Div(d, s)
            g = Mul(q, w)
            h = Add(g, b)
            y = Sigmoid(h)
        }}
    """)
    counts: dict[str, int] = {}
    for node in model.graph.node:
        number = counts.setdefault(node.op_type, 0)
        counts[node.op_type] += 1
        node.name = f"{prefix}{node.op_type}{f'_{number}' if number else ''}"
    return model


def tanh_gelu() -> onnx.ModelProto:
    """A GELU by tanh, which a rule writes in several nodes of one operator."""
    model: onnx.ModelProto = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        gelu (float[2, 8] x) => (float[2, 8] y)
        <float half = {0.5}, float one = {1.0}, float three = {3.0}, float c = {0.044715}, float k = {0.7978846}> {
            p = Pow(x, three)
            q = Mul(p, c)
            a = Add(x, q)
            m = Mul(a, k)
            t = Tanh(m)
            u = Add(t, one)
            v = Mul(x, u)
            y = Mul(v, half)
        }
    """)
    for number, node in enumerate(model.graph.node):
        node.name = f"/gelu/{node.op_type}_{number}"
    return model


def nodes_of(model: Any) -> Iterator[onnx.NodeProto]:
    yield from model.graph.node


def test_a_fused_node_is_named_by_the_path_of_its_root() -> None:
    model = dmlc.compile(layer_norm(), target="directml").to_onnx()
    onnx.checker.check_model(model, full_check=True)
    norm, sigmoid = nodes_of(model)
    assert (norm.name, norm.op_type) == ("/enc/n1/LayerNormalization", "LayerNormalization")
    found = read_annotations(norm)
    assert found["rules"] == ["fuse-layer-norm", "absorb-norm-scale", "absorb-norm-bias"]
    assert found["class"] == ["reassociates"]
    assert set(found["from"]) == {
        f"/enc/n1/{name}" for name in ("ReduceMean", "Sub", "Pow", "ReduceMean_1", "Add", "Sqrt", "Div", "Mul", "Add_1")
    }
    assert (sigmoid.name, list(sigmoid.metadata_props)) == ("/enc/n1/Sigmoid", [])


def test_a_name_without_a_path_is_the_path() -> None:
    model = dmlc.compile(layer_norm(prefix="node_"), target="directml").to_onnx()
    assert [node.name for node in nodes_of(model)] == ["node_Add_1/LayerNormalization", "node_Sigmoid"]


def test_models_of_older_ir_versions_have_no_metadata_in_nodes() -> None:
    model = dmlc.compile(layer_norm(), target="directml", opset=17).to_onnx()
    assert model.ir_version < 10
    assert [node.name for node in nodes_of(model)] == ["/enc/n1/LayerNormalization", "/enc/n1/Sigmoid"]
    assert not any(node.metadata_props for node in nodes_of(model))


def test_what_was_said_of_a_node_stays_when_it_is_compiled_again() -> None:
    once = dmlc.compile(layer_norm(), target="directml").to_onnx()
    again = dmlc.compile(once, target="directml").to_onnx()
    assert list(nodes_of(again)) == list(nodes_of(once))


@pytest.mark.parametrize("target", ["directml", "onnx", "cpu"])
def test_a_program_names_nodes_by_their_values(target: str) -> None:
    model = dmlc.compile(PROGRAM, target=target).to_onnx()
    by_name = {node.name: node for node in nodes_of(model)}
    assert len(by_name) == len(model.graph.node)
    found = read_annotations(by_name["m/ReduceMean"])
    assert found == {
        "source": ["head.dml:2:9", "head.dml:2:21"],
        "rules": ["merge-nested-reductions"],
        "class": ["reassociates"],
    }
    assert all(read_annotations(node)["source"] for node in by_name.values())
    assert not any(entry.value == "" for node in by_name.values() for entry in node.metadata_props)


@pytest.mark.parametrize("source", [PROGRAM, layer_norm(), tanh_gelu()], ids=["program", "model", "gelu"])
def test_the_ledger_names_nodes_of_the_model(source: Any) -> None:
    program = dmlc.compile(source, target="directml")
    names = {node.name for node in nodes_of(program.to_onnx())}
    rows = program.ledger_document()["rewrites"]
    taken = {name for row in rows for name in row["before"]}
    assert rows
    for row in rows:
        assert set(row["after"]) <= names | taken
        assert len(set(row["after"])) == len(row["after"])
    assert any(set(row["after"]) <= names for row in rows)


def test_the_name_of_a_node_that_stays_is_its_own() -> None:
    source = layer_norm()
    source.graph.node[-1].name = "/enc/n1/LayerNormalization"
    model = dmlc.compile(source, target="directml").to_onnx()
    assert [(n.op_type, n.name) for n in nodes_of(model)] == [
        ("LayerNormalization", "/enc/n1/LayerNormalization_2"),
        ("Sigmoid", "/enc/n1/LayerNormalization"),
    ]


def test_initializers_are_named_by_their_node_and_role() -> None:
    for source in (PROGRAM, layer_norm()):
        model = dmlc.compile(source, target="onnx").to_onnx()
        names = [tensor.name for tensor in model.graph.initializer]
        assert not [name for name in names if re.search(r"const_|\\0", name)]
        assert len(set(names)) == len(names)
    named = {t.name for t in dmlc.compile(PROGRAM, target="directml").to_onnx().graph.initializer}
    assert {"m/ReduceMean.axes", "y/Reshape.shape", "y/OneHot.depth", "y/OneHot.values"} <= named


@each_row(("operator", "roles"), ROLES.items(), ids=list(ROLES))
def test_roles_are_those_of_the_schemas(operator: str, roles: tuple[str, ...]) -> None:
    assert tuple(formal.name for formal in onnx.defs.get_schema(operator, 21).inputs) == roles


def test_a_constant_inside_of_a_branch_is_named_there() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        pick (bool c, float[4, 6] x) => (float[k] y) {
            y = If<then_branch = a () => (float[4] t) { t = ReduceSum<keepdims = 0>(x, one) },
                   else_branch = b () => (float[6] e) { e = ReduceMax<axes = [0], keepdims = 0>(x) }>(c)
        }
    """)
    model.graph.node[0].name = "/pick/If"
    model.graph.initializer.append(onnx.helper.make_tensor("one", onnx.TensorProto.INT64, [1], [1]))
    made = dmlc.compile(model, target="onnx").to_onnx()
    onnx.checker.check_model(made, full_check=True)
    assert all(tensor.name and not tensor.name.startswith("\\0") for tensor in made.graph.initializer)
