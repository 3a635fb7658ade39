"""Models that no exporter writes, each with what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def info(name: str, type: int = FLOAT, shape: Sequence[int | str] | None = (4,)) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, type, shape)


def ints(name: str, *numbers: int) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, dtype=np.int64), name)


def scalar(name: str, number: int) -> TensorProto:
    return numpy_helper.from_array(np.array(number, dtype=np.int64), name)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto] = (),
    outputs: Sequence[ValueInfoProto] = (),
    weights: Sequence[TensorProto] = (),
    functions: Any = (),
) -> ModelProto:
    """Put together without a look at what it is."""
    out = ModelProto(ir_version=10)
    out.opset_import.add(domain="", version=21)
    if functions:
        out.opset_import.add(domain="f", version=1)
        out.functions.extend(functions)
    out.graph.name = "m"
    out.graph.node.extend(nodes)
    out.graph.input.extend(inputs or [info("x")])
    out.graph.output.extend(outputs or [info("y", FLOAT, None)])
    out.graph.initializer.extend(weights)
    return out


def branch(name: str, nodes: Sequence[NodeProto], output: str) -> GraphProto:
    graph = GraphProto(name=name, node=nodes)
    graph.output.append(info(output))
    return graph


def if_node(then: GraphProto, other: GraphProto, output: str = "y") -> NodeProto:
    return node("If", ["c"], [output], then_branch=then, else_branch=other)


def field(number: int, data: bytes) -> bytes:
    """A field of protobuf with bytes or a message in it."""
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


# --- broken


def broken_with(change: Callable[[ModelProto], object]) -> ModelProto:
    """A good model of two nodes and a weight, changed."""
    nodes = [node("Mul", ["x", "w"], ["h"], name="first"), node("Softmax", ["h"], ["y"], axis=-1, name="second")]
    out = model(nodes, weights=[row(4)])
    change(out)
    return out


def good_bytes() -> bytes:
    return broken_with(lambda m: None).SerializeToString()


def attribute(out: ModelProto, **fields: Any) -> None:
    """Another attribute in the place of the axis."""
    del out.graph.node[1].attribute[:]
    out.graph.node[1].attribute.add(name="axis", **fields)


def convolution(**attributes: Any) -> ModelProto:
    weights = [numpy_helper.from_array(np.ones((2, 3, 3, 3), np.float32), "w")]
    return model([node("Conv", ["x", "w"], ["y"], **attributes)], [info("x", FLOAT, (1, 3, 8, 8))], weights=weights)


BROKEN: dict[str, Callable[[], ModelProto | bytes]] = {
    "nothing": lambda: b"",
    "zeros": lambda: b"\0" * 100,
    "text": lambda: b"model m(x: f32[4]) -> (y) {}\n",
    "a huge length": lambda: b"\x3a\xff\xff\xff\xff\x0f" + b"\0" * 50,
    "no graph": lambda: ModelProto(ir_version=10),
    "no opset": lambda: broken_with(lambda m: m.ClearField("opset_import")),
    "no outputs": lambda: broken_with(lambda m: m.graph.ClearField("output")),
    "a node that uses itself": lambda: model([node("Add", ["x", "y"], ["y"])]),
    "a circle of two": lambda: model([node("Add", ["x", "b"], ["y"]), node("Exp", ["y"], ["b"])]),
    "a circle of 2,000": lambda: model(
        [node("Exp", [f"v{(i + 1) % 2000}"], [f"v{i}"]) for i in range(2000)], outputs=[info("v0")]
    ),
    "a circle through a branch": lambda: model(
        [
            if_node(branch("t", [node("Exp", ["b"], ["p"])], "p"), branch("e", [node("Exp", ["x"], ["q"])], "q")),
            node("Neg", ["y"], ["b"]),
        ],
        [info("c", BOOL, ()), info("x")],
    ),
    "a circle inside a branch": lambda: model(
        [
            if_node(
                branch("t", [node("Exp", ["q"], ["p"]), node("Exp", ["p"], ["q"])], "p"),
                branch("e", [node("Exp", ["x"], ["r"])], "r"),
            )
        ],
        [info("c", BOOL, ()), info("x")],
    ),
    "an input that nothing makes": lambda: broken_with(lambda m: m.graph.node[1].input.__setitem__(0, "nobody")),
    "an input of a branch that nothing makes": lambda: model(
        [if_node(branch("t", [node("Exp", ["nobody"], ["p"])], "p"), branch("e", [node("Exp", ["x"], ["q"])], "q"))],
        [info("c", BOOL, ()), info("x")],
    ),
    "an output that nothing makes": lambda: broken_with(lambda m: setattr(m.graph.output[0], "name", "nobody")),
    "an output of a branch that nothing makes": lambda: model(
        [if_node(branch("t", [], "nobody"), branch("e", [node("Exp", ["x"], ["q"])], "q"))],
        [info("c", BOOL, ()), info("x")],
    ),
    "two inputs of one name": lambda: broken_with(lambda m: m.graph.input.append(info("x"))),
    "two weights of one name": lambda: broken_with(lambda m: m.graph.initializer.append(row(4))),
    "two values of one name": lambda: broken_with(lambda m: m.graph.node.append(node("Exp", ["x"], ["h"]))),
    "a value named as an input": lambda: broken_with(lambda m: m.graph.node.append(node("Exp", ["h"], ["x"]))),
    "a value named as a weight": lambda: broken_with(lambda m: m.graph.node.append(node("Exp", ["h"], ["w"]))),
    "one node with one name twice": lambda: model([node("Split", ["x"], ["y", "y"], num_outputs=2)]),
    "two outputs of one name": lambda: broken_with(lambda m: m.graph.output.append(info("y"))),
    "an output without a name": lambda: broken_with(lambda m: m.graph.output.append(info(""))),
    "an axis that is a float": lambda: broken_with(lambda m: attribute(m, type=AttributeProto.FLOAT, f=1.5)),
    "an axis that is a text": lambda: broken_with(lambda m: attribute(m, type=AttributeProto.STRING, s=b"last")),
    "an axis that is a list": lambda: broken_with(lambda m: attribute(m, type=AttributeProto.INTS, ints=[0])),
    "an axis that is a graph": lambda: broken_with(lambda m: attribute(m, type=AttributeProto.GRAPH)),
    "an axis that is a tensor": lambda: broken_with(lambda m: attribute(m, type=AttributeProto.TENSOR, t=row(1))),
    "an axis of no type": lambda: broken_with(lambda m: attribute(m)),
    "an axis out of range": lambda: broken_with(lambda m: attribute(m, type=AttributeProto.INT, i=2**40)),
    "strides that are a text": lambda: convolution(strides="two"),
    "strides of zero": lambda: convolution(strides=[0, 0]),
    "pads of -2^40": lambda: convolution(pads=[-(2**40)] * 4),
    "a kernel of 2^40": lambda: convolution(kernel_shape=[2**40, 2**40]),
    "a branch that is a number": lambda: model(
        [node("If", ["c"], ["y"], then_branch=1, else_branch=2)], [info("c", BOOL, ())]
    ),
    "an If without branches": lambda: model([node("If", ["c"], ["y"])], [info("c", BOOL, ())]),
    "a node without an operator": lambda: broken_with(lambda m: m.graph.node[0].ClearField("op_type")),
    "a node without inputs": lambda: broken_with(lambda m: m.graph.node[0].ClearField("input")),
    "a node of too many inputs": lambda: broken_with(lambda m: m.graph.node[1].input.extend(["x"] * 50)),
    "a node of too many outputs": lambda: broken_with(
        lambda m: m.graph.node[1].output.extend(f"o{i}" for i in range(50))
    ),
    "an input of a negative size": lambda: broken_with(lambda m: m.graph.input[0].CopyFrom(info("x", FLOAT, [-4]))),
    "a weight of a negative size": lambda: broken_with(lambda m: m.graph.initializer[0].dims.__setitem__(0, -4)),
    "a weight of 2^40 numbers": lambda: broken_with(lambda m: m.graph.initializer[0].dims.__setitem__(0, 2**40)),
    "a weight of 2^80 numbers": lambda: broken_with(lambda m: m.graph.initializer[0].dims.extend([2**40, 2**40])),
    "a weight of no known type": lambda: broken_with(lambda m: setattr(m.graph.initializer[0], "data_type", 999)),
    "a weight without a type": lambda: broken_with(lambda m: m.graph.initializer[0].ClearField("data_type")),
    "a weight cut short": lambda: broken_with(lambda m: setattr(m.graph.initializer[0], "raw_data", b"\0" * 15)),
    "a reshape to a negative size": lambda: model([node("Reshape", ["x", "s"], ["y"])], weights=[ints("s", -7, 2)]),
    "a ConstantOfShape of a negative size": lambda: from_weights("ConstantOfShape", ints("s", -5)),
    "types that do not fit": lambda: model([node("And", ["x", "x"], ["y"])]),
    "shapes that do not fit": lambda: model([node("Add", ["x", "w"], ["y"])], weights=[row(3)]),
    "an input without a type": lambda: broken_with(lambda m: m.graph.input[0].ClearField("type")),
    "opset 0": lambda: broken_with(lambda m: setattr(m.opset_import[0], "version", 0)),
    "opset -5": lambda: broken_with(lambda m: setattr(m.opset_import[0], "version", -5)),
    "opset 2^62": lambda: broken_with(lambda m: setattr(m.opset_import[0], "version", 2**62)),
    "two opsets": lambda: broken_with(lambda m: m.opset_import.add(domain="", version=13)),
}


# --- bombs


def constant_of_shape() -> bytes:
    """129 bytes that ask for 2^40 numbers, and their sum."""
    nodes = [node("ConstantOfShape", ["s"], ["v"]), node("ReduceSum", ["v"], ["y"])]
    out = ModelProto(ir_version=10)
    out.opset_import.add(version=21)
    out.graph.node.extend(nodes)
    out.graph.initializer.append(ints("s", 2**20, 2**20))
    out.graph.output.append(info("y", FLOAT, []))
    data = out.SerializeToString()
    return data + field(6, b"." * (127 - len(data)))  # the model's documentation


def from_weights(op_type: str, *weights: TensorProto, then: str = "Tanh", **attributes: Any) -> ModelProto:
    """A node that makes much of a few numbers."""
    nodes = [node(op_type, [w.name for w in weights], ["v"], **attributes), node(then, ["v"], ["y"])]
    return model(nodes, weights=weights)


def row(count: int) -> TensorProto:
    return numpy_helper.from_array(np.ones(count, np.float32), "w")


def nested(depth: int) -> ModelProto:
    """Ifs inside one another, made in memory, where nothing limits them."""
    out = model([], [info("c", BOOL, ()), info("x")], [info("y0")])
    graph = out.graph
    for i in range(depth):
        made = graph.node.add(op_type="If", input=["c"], output=[f"y{i}"])
        made.attribute.add(name="else_branch", type=AttributeProto.GRAPH).g.CopyFrom(
            branch("e", [node("Neg", ["x"], ["z"])], "z")
        )
        graph = made.attribute.add(name="then_branch", type=AttributeProto.GRAPH).g
        graph.name = "t"
        graph.output.append(info(f"y{i + 1}"))
    graph.node.add(op_type="Tanh", input=["x"], output=[f"y{depth}"])
    return out


def nested_bytes(depth: int) -> bytes:
    """The same in a file, written by hand."""
    graph = b""
    for _ in range(depth):
        attribute = field(1, b"then_branch") + field(6, graph) + b"\xa0\x01\x05"
        made = field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, attribute)
        graph = field(1, made) + field(2, b"t")
    return b"\x08\x0a" + field(7, graph) + field(8, b"\x10\x15")


def functions(calls: Sequence[Sequence[int]]) -> ModelProto:
    """Function number i calls those that ``calls[i]`` says, one after the other; the model calls the last."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("f", 1)]
    made = []
    for i, callees in enumerate(calls):
        names = ["a", *[f"t{k}" for k in range(len(callees) - 1)], "b"]
        body = [node(f"g{callee}", [names[k]], [names[k + 1]], domain="f") for k, callee in enumerate(callees)]
        body = body or [node("Neg", ["a"], ["b"])]
        made.append(helper.make_function("f", f"g{i}", ["a"], ["b"], body, opsets))
    return model([node(f"g{len(calls) - 1}", ["x"], ["y"], domain="f")], functions=made)


def with_default(out: ModelProto) -> ModelProto:
    """A function with a default, which ONNX's inliner does not take."""
    out.functions[0].attribute_proto.append(helper.make_attribute("q", 1.0))
    return out


def chained(op_type: str, count: int, last: str, first: ValueInfoProto, **attributes: Any) -> ModelProto:
    """Each node takes what the one before made, twice."""
    nodes = [node(op_type, [f"v{i}", f"v{i}"], [f"v{i + 1}"], **attributes) for i in range(count)]
    return model([*nodes, node(last, [f"v{count}"], ["y"])], [first])


def doubled_shape(count: int, last: str) -> ModelProto:
    nodes = [node("Concat", [f"v{i}", f"v{i}"], [f"v{i + 1}"], axis=0) for i in range(count)]
    return model([node("Shape", ["x"], ["v0"]), *nodes, node(last, [f"v{count}"], ["y"])])


def doubled_in_branches(count: int) -> ModelProto:
    """Gather doubles the axes, each time inside a branch."""
    nodes = []
    for i in range(count):
        graphs = [branch(f"{n}{i}", [node("Gather", [f"v{i}", f"v{i}"], [f"{n}{i}"])], f"{n}{i}") for n in "te"]
        for graph in graphs:
            graph.output[0].type.Clear()
        nodes.append(if_node(*graphs, output=f"v{i + 1}"))
    return model([*nodes, node("Foo", [f"v{count}"], ["y"])], [info("c", BOOL, ()), info("v0", INT64, (2, 2, 2))])


def unsqueezed(count: int) -> ModelProto:
    nodes = [node("Unsqueeze", [f"v{i}", "a"], [f"v{i + 1}"]) for i in range(count)]
    return model([*nodes, node("Foo", [f"v{count}"], ["y"])], [info("v0")], weights=[ints("a", 0)])


BOMBS: dict[str, Callable[[], ModelProto | bytes]] = {
    "ConstantOfShape of 2^40 in 129 bytes": constant_of_shape,
    "ConstantOfShape of 2^62": lambda: from_weights("ConstantOfShape", ints("s", 2**62)),
    "ConstantOfShape of a shape of 2^31 sizes": lambda: model(
        [node("ConstantOfShape", ["x"], ["v"]), node("Foo", ["v"], ["y"])], [info("x", INT64, [2**31])]
    ),
    "Expand to 2^40": lambda: from_weights("Expand", row(1), ints("s", 2**40)),
    "Tile 2^40 times": lambda: from_weights("Tile", row(4), ints("r", 2**40)),
    "Pad by 2^40": lambda: from_weights("Pad", row(4), ints("p", 0, 2**40)),
    "Range to 2^62": lambda: from_weights("Range", scalar("a", 0), scalar("b", 2**62), scalar("c", 1), then="Neg"),
    "Range of all integers": lambda: from_weights(
        "Range", scalar("a", -(2**63)), scalar("b", 2**63 - 1), scalar("c", 1), then="Neg"
    ),
    "OneHot of depth 2^40": lambda: from_weights("OneHot", ints("i", 0, 1), scalar("d", 2**40), row(2)),
    "Split into 2^40": lambda: model([node("Split", ["x"], ["y", "z"], num_outputs=2**40)]),
    "Slice with 2^31 starts": lambda: model(
        [node("Slice", ["x", "s", "s"], ["v"]), node("Foo", ["v"], ["y"])], [info("x"), info("s", INT64, [2**31 - 1])]
    ),
    "MeanVarianceNormalization of 2^31": lambda: model(
        [node("MeanVarianceNormalization", ["x"], ["v"], axes=[0]), node("Foo", ["v"], ["y"])],
        [info("x", FLOAT, [2**31])],
    ),
    "axes doubled 30 times by Gather": lambda: chained("Gather", 30, "Foo", info("v0", INT64, (2, 2, 2))),
    "axes doubled 30 times by GatherND": lambda: chained("GatherND", 30, "Foo", info("v0", INT64, (2, 2, 1))),
    "axes doubled 30 times in branches": lambda: doubled_in_branches(30),
    "10,000 times Unsqueeze": lambda: unsqueezed(10_000),
    "a shape doubled 30 times by Concat": lambda: doubled_shape(30, "Foo"),
    "a shape doubled 30 times for ConstantOfShape": lambda: doubled_shape(30, "ConstantOfShape"),
    "functions that double 30 times": lambda: functions([[], *([i, i] for i in range(30))]),
    "functions that double, with a default": lambda: with_default(functions([[], *([i, i] for i in range(30))])),
    "20,000 functions inside one another": lambda: functions([[], *([i] for i in range(20_000))]),
    "functions that call each other": lambda: functions([[1], [0]]),
    "functions that call each other, with a default": lambda: with_default(functions([[1], [0]])),
    "1,000 Ifs inside one another": lambda: nested(1_000),
    "1,000 Ifs inside one another in a file": lambda: nested_bytes(1_000),
    "3,000 Ifs inside one another in a file": lambda: nested_bytes(3_000),
    "input of 2^40 numbers": lambda: model([node("Tanh", ["x"], ["y"])], [info("x", FLOAT, [2**40])]),
    "input of 2^80 numbers": lambda: model([node("Tanh", ["x"], ["y"])], [info("x", FLOAT, [2**40, 2**40])]),
    "input of 100,000 axes": lambda: model([node("Tanh", ["x"], ["y"])], [info("x", FLOAT, [1] * 100_000)]),
    "weight of 100,000 axes": lambda: model(
        [node("Add", ["x", "w"], ["y"])],
        weights=[TensorProto(name="w", data_type=FLOAT, dims=[1] * 100_000, raw_data=b"\0" * 4)],
    ),
    "name of 10 MB": lambda: model([node("Exp", ["x"], ["n" * 10_000_000]), node("Exp", ["n" * 10_000_000], ["y"])]),
}
