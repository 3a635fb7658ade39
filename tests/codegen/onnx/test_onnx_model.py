"""The model around the nodes: names, places, metadata, versions, bytes."""

from __future__ import annotations

import json
from math import inf

import numpy as np
import onnx
from onnx_cases import Bench, evaluate
from onnx_session import assert_same, check, kinds, lower, run, session

from dmlc import __version__
from dmlc.codegen.artifact import Artifact
from dmlc.diagnostics import Source, Span
from dmlc.ir import Graph, TensorType, symbol
from dmlc.ir.dtype import f32
from dmlc.onnx_schema.metadata import model_facts
from dmlc.ops import binary, elementwise, normalize, reduce, select
from dmlc.ops.call import CallSite, apply
from tests.rows import each_row

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def small(folder: str = "here/", opset: int = 21) -> Graph:
    """Two statements of a file in a folder, a dim with bounds, and a condition."""
    source = Source(f"{folder}head.dml", "a\nb\nc\n")
    graph = Graph("head", opset=opset)
    graph.declare_dim("N", (1, inf))
    graph.declare_dim("M", (2, 64))
    x = graph.add_input("x", TensorType(f32, (symbol("N"), 3)))
    graph.add_input("unused", TensorType(f32, (symbol("M"),)))
    top = apply(graph, select.TOP_K, [x], {"k": 2, "axis": 0}, CallSite(Span(source, 2, 5, 2, 9)))
    scaled = apply(graph, normalize.SOFTMAX, [top.results[0]], {"axes": [0, 1]}, CallSite(Span(source, 3, 7, 3, 9)))
    top.results[0].name = "top"
    graph.set_outputs([("values", scaled.result), ("indices", top.results[1])])
    return graph


def test_nodes_point_back_to_the_source() -> None:
    artifact = lower(small(), "cpu", 21)
    model = artifact.payload
    names = [node.name for node in model.graph.node]
    assert len(set(names)) == len(names)
    assert names[0] == "top/TopK"
    assert {n: p for n, p in artifact.locations.items() if n.startswith("top/TopK")} == {
        "top/TopK": "head.dml:2:5",
        "top/TopK/Cast_1": "head.dml:2:5",
    }
    for node in model.graph.node:
        assert node.doc_string == artifact.locations[node.name]
        assert node.doc_string.startswith("head.dml:")


def test_a_node_of_its_own_has_the_plain_name() -> None:
    bench = Bench()
    bench.show("y", bench(elementwise.EXP, bench(elementwise.ABS, bench.feed(X))))
    assert [node.name for node in lower(bench.done(), "cpu", 21).payload.graph.node] == ["Abs", "Exp"]


@each_row(("opset", "ir"), [(11, 6), (12, 7), (13, 7), (15, 8), (18, 8), (19, 9), (20, 9), (21, 10)])
def test_versions(opset: int, ir: int) -> None:
    model = lower(small(opset=opset), "directml", opset).payload
    assert model.ir_version == ir
    assert [(o.domain, o.version) for o in model.opset_import] == [("", opset)]
    check(model)


def test_metadata() -> None:
    model = lower(small(), "directml", 21).payload
    (facts,) = model_facts(model)
    assert facts["version"] == __version__ == model.producer_version
    assert facts["target"] == "directml"
    assert json.loads(facts["conditions"]) == ["2 <= N"]
    assert json.loads(facts["dims"]) == {"M": [2, 64], "N": [1, None]}


def test_inputs_keep_order_names_and_dims() -> None:
    bench = Bench()
    N = symbol("N")
    x = bench.feed(X, ["N", 3], name="any text")
    bench.feed(X, ["M", 3], name="unused")
    joined = bench(binary.ADD, x, 1)
    bench.graph.set_outputs([("y", joined)])
    bench.graph.add_output("double", bench(reduce.REDUCE_SUM, x, axes=[1]))
    model = lower(bench.graph, "cpu", 21).payload
    assert [i.name for i in model.graph.input] == ["any text", "unused"]
    assert [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == ["N", 3]
    assert [o.name for o in model.graph.output] == ["y", "double"]
    assert str(N) == "N"


def test_same_source_same_bytes() -> None:
    """In another run, from another folder, and after another emission."""
    one = lower(small("one/"), "directml", 21).payload.SerializeToString()
    two = lower(small("an/other/"), "directml", 21).payload.SerializeToString()
    three = lower(small("c:\\windows\\"), "directml", 21).payload.SerializeToString()
    assert one == two == three


# --- names


def outputs(bench: Bench) -> Artifact:
    graph = bench.graph
    want = evaluate(graph, bench.feeds)
    artifact = lower(graph, "cpu", 21)
    check(artifact.payload)
    assert_same(run(session(artifact.payload), bench.feeds), want)
    return artifact


def test_outputs_that_are_inputs_constants_or_repeated() -> None:
    bench = Bench()
    x = bench.feed(X)
    y = bench(elementwise.EXP, x)
    c = bench.constant(np.ones(2, np.float32))
    bench.graph.set_outputs([("same", x), ("again", x), ("y", y), ("y2", y), ("c", c), ("c2", c)])
    assert kinds(outputs(bench)) == ["Exp"] + ["Identity"] * 5


def test_an_operation_that_does_nothing_can_be_an_output() -> None:
    bench = Bench()
    x = bench.feed(X)
    same = bench.graph.add(reduce.REDUCE_SUM, [x], reduce.ReduceAttributes(axes=(), keepdims=True)).result
    bench.graph.set_outputs([("y", same), ("z", bench(elementwise.EXP, same))])
    assert kinds(outputs(bench)) == ["Identity", "Exp"]


def test_names_never_clash() -> None:
    """A value named like an input, an output, a node or another value gets another name; the interface keeps its."""
    bench = Bench()
    x = bench.feed(X, name="y/Abs")
    a = bench(elementwise.ABS, x)
    b = bench(elementwise.EXP, a)
    c = bench(elementwise.NEG, b)
    d, i = bench.node(select.TOP_K, c, k=2).results
    a.name, b.name, c.name, d.name, i.name = "y", "twice", "twice", "Abs", "Exp"
    bench.graph.set_outputs([("y", d), ("Abs/TopK", i), ("Exp:1", bench(elementwise.COS, c))])
    model = outputs(bench).payload
    names = [name for node in model.graph.node for name in node.output]
    assert len(set(names)) == len(names)


def test_user_names_stay_where_they_are_free() -> None:
    bench = Bench()
    a = bench(elementwise.ABS, bench.feed(X))
    a.name = "magnitude"
    bench.graph.set_outputs([("y", bench(elementwise.EXP, a))])
    model = outputs(bench).payload
    assert [list(node.output) for node in model.graph.node] == [["magnitude"], ["y"]]


def test_equal_constants_are_stored_once() -> None:
    bench = Bench()
    x = bench.feed(X)
    one, two = bench.constant(np.ones(3, np.float32)), bench.constant(np.ones(3, np.float32))
    one.name = "weights"
    bench.graph.set_outputs([("y", bench(binary.ADD, bench(binary.MUL, x, one), two))])
    model = outputs(bench).payload
    assert [i.name for i in model.graph.initializer] == ["weights"]


def test_every_dtype_as_a_constant() -> None:
    from dmlc.ir import DTYPES

    bench = Bench()
    arrays = [bench.sample(d, 2, 3) for d in DTYPES]
    bench.graph.set_outputs([(str(i), bench.constant(a)) for i, a in enumerate(arrays)])
    model: onnx.ModelProto = outputs(bench).payload
    assert len(model.graph.initializer) == len(DTYPES)


def test_time_is_linear_in_the_nodes() -> None:
    """Twice the nodes give twice the protos; names, uses and look-ups do not search."""
    bench = Bench()
    y = x = bench.feed(X)
    for _ in range(3000):
        y = bench(binary.ADD, y, x)
        y.name = "y"
    bench.graph.set_outputs([("y", y)])
    assert len(lower(bench.graph, "cpu", 21).payload.graph.node) == 3000
