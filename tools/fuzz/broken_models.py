"""Small ONNX models, and what becomes of them when they are broken: bit by bit, or field by field."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

_SIZES = (-1, 0, 1, 3, 2**31, 2**40, 2**63 - 1)
_OPERATORS = (
    "", "If", "Loop", "Scan", "Reshape", "TopK", "Concat", "Slice", "ArgMax", "Split", "Pad", "Constant", "ReduceSum",
    "Gather", "Expand", "Tile", "Range", "Softmax", "Hardmax", "OneHot", "Einsum", "Conv", "Resize", "Cast", "Where",
    "LayerNormalization", "InstanceNormalization", "MatMul", "Clip", "Squeeze", "ReduceLogSumExp", "Nope",
)  # fmt: skip


def ints(name: str, *values: int) -> TensorProto:
    """A constant of 64-bit integers."""
    return numpy_helper.from_array(np.array(values, np.int64), name)


def base_models() -> list[ModelProto]:
    """Valid models that reach the importer's corners: weights, bodies, constants, shapes, selections, norms."""
    node = helper.make_node
    return [
        _model([node("ReduceSum", ["x", "axes"], ["h"], keepdims=0), node("Relu", ["h"], ["y"])], [ints("axes", 1)]),
        _model(
            [node("Softmax", ["x"], ["h"], axis=-1), node("ArgMax", ["h"], ["y"], axis=1)], output=TensorProto.INT64
        ),
        _model([node("TopK", ["x", "k"], ["v", "i"]), node("Transpose", ["v"], ["y"], perm=[2, 0, 1])], [ints("k", 2)]),
        _model([node("Reshape", ["x", "shape"], ["h"]), node("Hardmax", ["h"], ["y"], axis=1)], [ints("shape", 2, -1)]),
        _model([node("If", ["c"], ["y"], then_branch=_branch("Relu"), else_branch=_branch("Exp"))], condition=True),
        _model(
            [
                node("ReduceMean", ["x"], ["m"], axes=[2]),
                node("Sub", ["x", "m"], ["d"]),
                node("Pow", ["d", "two"], ["s"]),
                node("ReduceMean", ["s"], ["v"], axes=[2]),
                node("Add", ["v", "eps"], ["e"]),
                node("Sqrt", ["e"], ["r"]),
                node("Div", ["d", "r"], ["y"]),
            ],
            [_scalar("two", 2), _scalar("eps", 1e-5)],
            opset=13,
        ),
        _model(
            [node("Shape", ["x"], ["s"]), node("ConstantOfShape", ["s"], ["z"]), node("Add", ["x", "z"], ["y"])],
        ),
        _model([node("Conv", ["x", "w"], ["h"]), node("GlobalAveragePool", ["h"], ["y"])], [_weight("w", (2, 3, 1))]),
        _model(
            [node("Slice", ["x", "s", "e"], ["h"]), node("Pad", ["h", "p"], ["y"])],
            [ints("s", 0), ints("e", 1), ints("p", 0, 0, 1, 0, 0, 1)],
        ),
    ]


def _model(
    nodes: list[NodeProto],
    weights: list[TensorProto] | None = None,
    *,
    output: int = TensorProto.FLOAT,
    opset: int = 17,
    condition: bool = False,
) -> ModelProto:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, "n"])]
    if condition:
        inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    outputs = [helper.make_tensor_value_info("y", output, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def _branch(op: str) -> onnx.GraphProto:
    result = helper.make_tensor_value_info(f"{op}_y", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node(op, ["x"], [f"{op}_y"])], op, [], [result])


def _scalar(name: str, value: float) -> TensorProto:
    return numpy_helper.from_array(np.array(value, np.float32), name)


def _weight(name: str, shape: tuple[int, ...]) -> TensorProto:
    return numpy_helper.from_array(np.ones(shape, np.float32), name)


def broken_bytes(data: bytes, rng: random.Random) -> bytes:
    """The file with a few bytes changed, cut out or put in."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at = rng.randrange(len(out))
        turn = rng.randrange(6)
        if turn == 0:
            out[at] = rng.randrange(256)
        elif turn == 1:
            out[at] ^= 1 << rng.randrange(8)
        elif turn == 2:
            del out[at : at + rng.randrange(1, 20)]
        elif turn == 3:
            out[at:at] = rng.randbytes(rng.randrange(1, 8))
        elif turn == 4:
            other = rng.randrange(len(out))
            out[at : at + 8] = out[other : other + 8]
        else:
            del out[max(1, at) :]
        out = out or bytearray(b"\0")
    return bytes(out)


def broken_fields(model: ModelProto, rng: random.Random) -> ModelProto:
    """A copy with some fields changed to what they must not be."""
    out = ModelProto()
    out.CopyFrom(model)
    for _ in range(rng.choice((1, 1, 2, 3))):
        rng.choice(_CHANGES)(out, rng)
    return out


def _node(model: ModelProto, rng: random.Random) -> NodeProto:
    return rng.choice(list(model.graph.node)) if model.graph.node else NodeProto()


def _values(model: ModelProto) -> list[str]:
    return ["", "x", "y", "nope", *(name for node in model.graph.node for name in node.output)]


def _drop_node(model: ModelProto, rng: random.Random) -> None:
    if model.graph.node:
        model.graph.node.remove(_node(model, rng))


def _other_input(model: ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    if node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(_values(model))


def _other_output(model: ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    if node.output:
        node.output[rng.randrange(len(node.output))] = rng.choice(_values(model))


def _other_operator(model: ModelProto, rng: random.Random) -> None:
    _node(model, rng).op_type = rng.choice(_OPERATORS)


def _other_attribute(model: ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    if node.attribute:
        attribute = rng.choice(list(node.attribute))
        if rng.random() < 0.5:
            attribute.type = rng.randrange(15)
        else:
            attribute.i = rng.choice((*_SIZES, -(2**63)))
            attribute.ints.append(rng.choice((*_SIZES, -7)))


def _other_weight(model: ModelProto, rng: random.Random) -> None:
    if model.graph.initializer:
        tensor = rng.choice(list(model.graph.initializer))
        if rng.random() < 0.5:
            tensor.data_type = rng.randrange(30)
        else:
            tensor.dims[:] = [rng.choice(_SIZES) for _ in range(rng.randrange(4))]


def _other_input_type(model: ModelProto, rng: random.Random) -> None:
    type_ = rng.choice(list(model.graph.input)).type.tensor_type
    if rng.random() < 0.3:
        type_.elem_type = rng.randrange(30)
    for size in type_.shape.dim:
        if rng.random() < 0.5:
            size.dim_value = rng.choice(_SIZES)


def _other_opset(model: ModelProto, rng: random.Random) -> None:
    model.opset_import[0].version = rng.choice((0, -1, 1, 6, 7, 12, 30, 2**40))


def _other_result(model: ModelProto, rng: random.Random) -> None:
    model.graph.output[0].name = rng.choice(_values(model))


_CHANGES: tuple[Callable[[ModelProto, random.Random], None], ...] = (
    _drop_node, _other_input, _other_output, _other_operator, _other_operator, _other_attribute, _other_weight,
    _other_input_type, _other_opset, _other_result,
)  # fmt: skip
