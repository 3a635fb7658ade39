"""Walks over the graphs inside nodes: one level, all levels, and the names that are read on the way."""

from __future__ import annotations

import ast
from pathlib import Path

from onnx import AttributeProto, GraphProto, NodeProto, helper, parser

import dmlc
from dmlc.onnx_schema.nested import all_graphs, all_nodes, graphs_of, holds_graphs, inner_graphs, values_read_by

#: An If whose first branch holds another.
MODEL = parser.parse_model(
    """<ir_version: 8, opset_import: ["": 17]> g (bool c, float[2] x) => (float[2] y) {
        a = Neg(x)
        y = If(c) <
            then_branch = t () => (float[2] p) {
                p = If(c) <then_branch = tt () => (float[2] q) { q = Add(a, x) },
                           else_branch = te () => (float[2] r) { r = Identity(x) }>
            },
            else_branch = e () => (float[2] s) { u = Abs(a) s = Exp(u) }>
    }"""
)


def test_graphs_and_nodes_come_in_the_order_of_the_file() -> None:
    assert [graph.name for graph in all_graphs(MODEL.graph)] == ["g", "t", "tt", "te", "e"]
    operators = [node.op_type for node in all_nodes(MODEL.graph.node)]
    assert operators == ["Neg", "If", "If", "Add", "Identity", "Abs", "Exp"]
    assert [graph.name for graph in inner_graphs(MODEL.graph.node)] == ["t", "e"]


def test_reads_of_nested_graphs_count() -> None:
    assert sorted(values_read_by(MODEL.graph.node[1])) == ["a", "a", "c", "c", "p", "q", "r", "s", "u", "x", "x"]


def test_lists_of_graphs_and_other_domains_are_walked() -> None:
    """ONNX's own operators hold graphs in single attributes; those of other domains may hold lists."""
    bodies = [GraphProto(name=name, node=[NodeProto(op_type=name)]) for name in ("A", "B")]
    node = helper.make_node("Switch", ["x"], ["y"], domain="own", bodies=bodies)
    (attribute,) = node.attribute
    assert attribute.type == AttributeProto.GRAPHS and holds_graphs(attribute)
    assert [graph.name for graph in graphs_of(node)] == ["A", "B"]
    assert [inner.op_type for inner in all_nodes([node])] == ["Switch", "A", "B"]
    assert graphs_of(helper.make_node("Relu", ["x"], ["y"])) == []


def test_the_package_has_no_other_walk() -> None:
    """A walk over nested graphs reads ``attribute.graphs``; the branch of an If alone is ``branch.g``."""
    package = Path(dmlc.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if ".graphs" in text else ():
            if isinstance(node, ast.Attribute) and node.attr == "graphs":
                found.add(path.relative_to(package).as_posix())
    assert found == {"onnx_schema/nested.py"}
