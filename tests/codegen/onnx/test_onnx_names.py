"""Names of an emitted model: unique over all its graphs, whatever the source calls its values and nodes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import count

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper, parser
from onnx_session import session

import dmlc
from dmlc.codegen.onnx.names import Namespace
from dmlc.diagnostics import Source
from tests.rows import each_row

TARGETS = ("directml", "cpu", "onnx")
#: Names as dmlc makes them itself, and what they are made from.
HOSTILE = (
    *(
        "softmax_0",
        "softmax_0:1",
        "softmax_0:1_2",
        "softmax_0_2",
        "softmax_0_2:1",
        "softmax_1:1",
        "softmax_0/Reshape_0",
    ),
    *("const_0", "const_1", "const_1_2", "value", "value_2", "input", "output", "output_2", "output_y", "y_2", "x_2"),
    *("/Transpose_1", "reduce_max_0", "exp_2", "relu_0", "If_3", "a:1", "a:1_2", "N", "dim_N_0", "e/f", " ", "ü"),
)
SHAPE = (2, 3, 4)
FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, SHAPE)


class Scope:
    """Names that a graph sees, and those of the graphs inside it, which they share with each other."""

    def __init__(self, seen: set[str]) -> None:
        self.seen = set(seen)
        self.inside: set[str] = set()
        self.nodes: set[str] = set()


class HostileModel:
    """A valid model of nested graphs whose names are drawn from ``HOSTILE``.

    A name is new among those that its graph sees; graphs beside each other reuse names, node names are as they come.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        scope = Scope({"x", "c", "y"})
        graph = GraphProto(name="softmax_0")
        weight = self.name(scope)
        graph.input.append(ValueInfoProto(name="x", type=FLOATS))
        graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
        graph.input.append(ValueInfoProto(name=weight, type=FLOATS))
        graph.initializer.append(numpy_helper.from_array(np.full(SHAPE, 0.5, np.float32), weight))
        values = self.fill(graph, ["x", weight], scope, 0, steps=4)
        graph.node.append(helper.make_node("Sum", values, ["y"], name=self.node_name(scope)))
        graph.output.append(ValueInfoProto(name="y", type=FLOATS))
        graph.output.append(ValueInfoProto(name=values[-1], type=FLOATS))
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def name(self, scope: Scope) -> str:
        """A name that is new in the graph and in those that see its values."""
        taken = scope.seen | scope.inside
        free = [name for name in HOSTILE if name not in taken]
        name = self.rng.choice(free) if free else next(n for n in map("v{}".format, count()) if n not in taken)
        scope.seen.add(name)
        return name

    def node_name(self, scope: Scope) -> str:
        """ONNX Runtime refuses two nodes of one name in one graph."""
        name = self.rng.choice([n for n in HOSTILE if n not in scope.nodes] + [""] * 6)
        scope.nodes.add(name)
        return name

    def fill(self, graph: GraphProto, outer: list[str], scope: Scope, depth: int, steps: int) -> list[str]:
        """Add nodes to the graph; return its values and those around it."""
        values = list(outer)
        kinds = ["relu", "add", "softmax", "argmax", "if", "known_if", "loop"][: 7 if depth < 2 else 4]

        def put(op_type: str, inputs: list[str], declare: bool = True, **attributes: object) -> str:
            made = self.name(scope)
            graph.node.append(helper.make_node(op_type, inputs, [made], name=self.node_name(scope), **attributes))
            if declare and not depth:
                graph.value_info.append(ValueInfoProto(name=made, type=FLOATS))
            return made

        def weight(array: np.ndarray) -> str:
            name = self.name(scope)
            graph.initializer.append(numpy_helper.from_array(array, name))
            return name

        for _ in range(steps):
            x, kind = self.rng.choice(values[-3:]), self.rng.choice(kinds)
            if kind == "relu":
                values.append(put("Relu", [x]))
            elif kind == "add":
                values.append(put("Add", [x, weight(np.arange(24, dtype=np.float32).reshape(SHAPE) / 24)]))
            elif kind == "softmax":
                axes = [1, 2] if self.rng.random() < 0.7 else [0, 2]
                shifted = put("Sub", [x, put("ReduceMax", [x], declare=False, axes=axes)])
                powers = put("Exp", [shifted])
                total = put("ReduceSum", [powers, weight(np.array(axes))], declare=False)
                values.append(put("Div", [powers, total]))
            elif kind == "argmax":
                flat = put("Reshape", [x, weight(np.array([2, 12]))], declare=False)
                index = put("ArgMax", [flat], declare=False, axis=1)
                wide = put("Cast", [index], declare=False, to=TensorProto.FLOAT)
                values.append(put("Add", [x, put("Reshape", [wide, weight(np.array([2, 1, 1]))], declare=False)]))
            elif kind == "loop":
                limit, truth = weight(np.array(2)), weight(np.array(True))
                values.append(put("Loop", [limit, truth, x], body=self.inner(values, scope, depth, loop=True)))
            else:
                condition = "c" if kind == "if" else weight(np.array(self.rng.random() < 0.5))
                branches = [self.inner(values, scope, depth, loop=False) for _ in range(2)]
                values.append(put("If", [condition], then_branch=branches[0], else_branch=branches[1]))
        return values

    def inner(self, outer: list[str], around: Scope, depth: int, *, loop: bool) -> GraphProto:
        """A graph that captures values around it. Graphs beside it may have the same names."""
        graph, scope = GraphProto(name=self.rng.choice(["then", "softmax_0", "g"])), Scope(around.seen)
        visible = list(outer)
        if loop:
            step, truth, carried = self.name(scope), self.name(scope), self.name(scope)
            graph.input.append(helper.make_tensor_value_info(step, TensorProto.INT64, []))
            graph.input.append(helper.make_tensor_value_info(truth, TensorProto.BOOL, []))
            graph.input.append(ValueInfoProto(name=carried, type=FLOATS))
            visible.append(carried)
            if self.rng.random() < 0.5:
                kept = self.name(scope)
                graph.node.append(helper.make_node("Identity", [truth], [kept], name=self.node_name(scope)))
                truth = kept
            graph.output.append(helper.make_tensor_value_info(truth, TensorProto.BOOL, []))
        values = self.fill(graph, visible, scope, depth + 1, steps=self.rng.randint(1, 2))
        if self.rng.random() < 0.2:
            values.append(self.name(scope))
            graph.initializer.append(numpy_helper.from_array(np.ones(SHAPE, np.float32), values[-1]))
        graph.output.append(ValueInfoProto(name=values[-1], type=FLOATS))
        around.inside |= (scope.seen - around.seen) | scope.inside
        return graph


def graphs_of(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from graphs_of(inner)


def repeated_names(model: ModelProto) -> list[str]:
    """Names that two values or two nodes of the model share."""
    values: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    for graph in graphs_of(model.graph):
        inputs = {info.name for info in graph.input}
        values.update(inputs)
        values.update(
            {*[t.name for t in graph.initializer], *[t.values.name for t in graph.sparse_initializer]} - inputs
        )
        values.update(name for node in graph.node for name in node.output if name)
        nodes.update(node.name for node in graph.node if node.name)
    return [name for names in (values, nodes) for name, times in names.items() if times > 1]


def interface(model: ModelProto) -> list[tuple[str, str]]:
    return [(info.name, info.type.SerializeToString()) for info in (*model.graph.input, *model.graph.output)]


def check_names(model: ModelProto, target: str) -> ModelProto:
    """Compile a valid model; the result, after it was found valid, with the same interface."""
    onnx.checker.check_model(model, full_check=True)
    made = dmlc.compile(model, target=target).to_onnx()
    onnx.checker.check_model(made, full_check=True)
    assert repeated_names(made) == []
    assert interface(made) == interface(model)
    return made


@each_row("seed", range(36))
def test_any_names_in_nested_graphs_give_a_valid_model_of_the_same_numbers(seed: int) -> None:
    model = HostileModel(seed).model
    x = np.random.default_rng(seed).standard_normal(SHAPE, dtype=np.float32)
    feeds = [{"x": x, "c": np.array(truth)} for truth in (True, False)]
    original = session(model, optimize=False)  # ONNX Runtime inlines an If, and then two nodes may share a name
    want = [original.run(None, each) for each in feeds]
    made = session(check_names(model, TARGETS[seed % 3]))
    for each, expected in zip(feeds, want, strict=True):
        for found, known in zip(made.run(None, each), expected, strict=True):
            np.testing.assert_allclose(found, known, rtol=1e-4, atol=1e-5)  # softmax sums in another order


SOFTMAX = """
    m{0} = ReduceMax <axes = [1, 2]> ({1})
    d{0} = Sub ({1}, m{0})
    e{0} = Exp (d{0})
    s{0} = ReduceSum (e{0}, axes)
    {2} = Div (e{0}, s{0})
"""


@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("target", TARGETS)
def test_two_softmaxes_one_inside_an_if_have_temporaries_of_their_own(target: str, opset: int) -> None:
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[2,3,4] x, bool c) => (float[2,3,4] y, float[2,3,4] z) <int64[2] axes = {{1, 2}}> {{
            {SOFTMAX.format(0, "x", "y")}
            z = If (c) <
                then_branch = t () => (float[2,3,4] q) {{ {SOFTMAX.format(1, "y", "q")} }},
                else_branch = f () => (float[2,3,4] r) {{ {SOFTMAX.format(2, "y", "r")} }}
            >
        }}"""
    )
    made = check_names(model, target)
    assert [node.op_type for node in made.graph.node] == ["Reshape", "Softmax", "Reshape", "If"]
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(SHAPE)
    for found, want in zip(*[session(m).run(None, {"x": x, "c": np.array(True)}) for m in (made, model)], strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_node_names_of_an_inlined_branch_are_unique(target: str) -> None:
    """Passed on or lowered, in any combination."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 11]>
        g (float[2,3] x) => (float[1,2,3] y) <bool yes = {1}> {
            [n] u = Unsqueeze <axes = [0]> (x)
            [n2] y = If (yes) <
                then_branch = t () => (float[1,2,3] q) { [n] v = Relu (u) [n2] w = Unsqueeze <axes = [0]> (v)
                                                          [n3] q = Squeeze <axes = [0]> (w) },
                else_branch = f () => (float[1,2,3] q) { [n] q = Identity (u) }
            >
        }"""
    )
    made = check_names(model, target)
    assert made.graph.node[0].name == "n"
    session(made)


def test_a_declared_type_of_a_value_that_is_gone_names_no_other_value() -> None:
    """Fusion drops ``softmax_0:1``; its declaration must not become that of a temporary of another shape."""
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3,4] x) => (float[2,3,4] y) <int64[2] axes = {{1, 2}}> {{ {SOFTMAX.format(0, "x", "y")} }}"""
    )
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["softmax_0:1" if name == "e0" else "softmax_0:2" if name == "d0" else name for name in names]
    model.graph.value_info.extend(ValueInfoProto(name=f"softmax_0:{i}", type=FLOATS) for i in (1, 2))
    session(check_names(model, "onnx"))


@pytest.mark.parametrize("kind", ["float", "string"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_branch_gives_a_weight_of_its_own(target: str, kind: str) -> None:
    """Weights move to the outermost graph, and a branch cannot give a value of the graph around it."""
    then, other = GraphProto(name="then"), GraphProto(name="other")
    element = TensorProto.STRING if kind == "string" else TensorProto.FLOAT
    declared = helper.make_tensor_value_info("w", element, [2])
    for graph, number in ((then, 1), (other, 2)):
        graph.output.append(declared)
        data = [f"{number}", "b"] if kind == "string" else [number, 0]
        graph.initializer.append(helper.make_tensor("w", element, [2], data))
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    out = ValueInfoProto(name="y", type=declared.type)
    model = helper.make_model(
        helper.make_graph([node], "g", [condition], [out]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    made = session(check_names(model, target))
    for truth in (True, False):
        (found,), (want,) = (s.run(None, {"c": np.array(truth)}) for s in (made, session(model)))
        assert found.tolist() == want.tolist()


def test_the_body_of_a_running_product_avoids_names_of_the_program() -> None:
    text = """model m(before: f32[N, 3], element: f32[N, 3]) -> (after, running) {
        after = cumprod(before, axis=0)
        running = cumprod(element, axis=0) * after
        return after, running
    }"""
    made = dmlc.compile(Source("m.dml", text), target="onnx").to_onnx()
    onnx.checker.check_model(made, full_check=True)
    assert sum(1 for _ in graphs_of(made.graph)) == 3
    assert repeated_names(made) == []
    feeds = {name: np.full((4, 3), 2, np.float32) for name in ("before", "element")}
    after, running = session(made).run(None, feeds)
    assert after[:, 0].tolist() == [2, 4, 8, 16]
    assert running[:, 0].tolist() == [4, 16, 64, 256]


def test_names_that_are_unique_are_kept() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3] x, bool c) => (float[2,3] y) <float[3] w = {1, 2, 3}> {
            [first] a = Add (x, w)
            [second] y = If (c) <
                then_branch = t () => (float[2,3] q) { [third] b = Relu (a) [fourth] q = Mul (b, w) },
                else_branch = f () => (float[2,3] r) { [fifth] b = Exp (a) [third] r = Mul (b, x) }
            >
        }"""
    )
    made = check_names(model, "onnx")
    found = [[(n.name, *n.output) for n in graph.node] for graph in graphs_of(made.graph)]
    assert found == [
        [("first", "a"), ("second", "y")],
        [("fifth", "b_2"), ("third_2", "r")],
        [("third", "b"), ("fourth", "q")],
    ] or found == [
        [("first", "a"), ("second", "y")],
        [("third", "b"), ("fourth", "q")],
        [("fifth", "b_2"), ("third_2", "r")],
    ]
    assert [t.name for t in made.graph.initializer] == ["w"]


def test_a_namespace_gives_no_name_twice() -> None:
    names = Namespace()
    first, second = object(), object()
    names.claim(first, "a")
    names.claim(second, "a")
    names.claim(second, "a_2")
    assert names.own(first, "a") == names.own(first, "a") == "a"
    assert names.own(second, "a") == "a_3"
    assert [names.new("a"), names.new("b"), names.new("b"), names.new("b_2")] == ["a_4", "b", "b_2", "b_2_2"]
    assert names.own(second, None, "c") == "c"
    many = [names.new("value") for _ in range(100_000)]  # each after the last: a search from 2 would take hours
    assert len(set(many)) == 100_000


@each_row("seed", range(12))
def test_any_names_in_a_built_program_give_a_valid_model(seed: int) -> None:
    rng = random.Random(seed)
    names = rng.sample(HOSTILE, 4)
    g = dmlc.Graph(rng.choice(HOSTILE))
    sizes = ("N" if rng.random() < 0.5 else 2, 3, "K" if rng.random() < 0.3 else 4)
    values = [g.input(names[0], dtype="float32", shape=sizes)]
    makers = [
        dmlc.exp,
        lambda x: dmlc.softmax(x, axes=(0, 2)),
        lambda x: dmlc.cumprod(x, axis=0),
        lambda x: x - dmlc.reduce_mean(x, axes=(1, 2), keepdims=True),
        lambda x: x + dmlc.argmax(x, axes=(1, 2), keepdims=True).astype("f32"),
    ]
    for _ in range(6):
        values.append(rng.choice(makers)(rng.choice(values)))
    for name, value in zip(names[1:], rng.sample(values[1:], 3), strict=True):
        g.output(name, value)
    for target in TARGETS:
        made = dmlc.compile(g, target=target).to_onnx()
        onnx.checker.check_model(made, full_check=True)
        assert repeated_names(made) == []
        assert [info.name for info in (*made.graph.input, *made.graph.output)] == names
        session(made)
