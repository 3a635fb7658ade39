"""Results that show whether a NaN reaches a selection inside a loop or a branch."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from dmlc.onnx_schema.nested import graphs_of
from dmlc.verifying.subject import op_key

#: The end of the name of such a result: 1 where a NaN does, for each turn of a loop.
SEEN = " sees nan"
#: Operators with a body. They may get more results, after the ones that ONNX defines.
_HOLDERS = ("If", "Loop", "Scan")
#: The first opset with IsNaN.
_IS_NAN = 9


def with_nans_seen(model: ModelProto, selections: Collection[str]) -> ModelProto:
    """The model in which each node with bodies has one more result: whether an operand of a selection in them is NaN.

    ``selections`` are operators as ``op_key`` writes them. The model itself if no body has one, or ONNX has no IsNaN.
    """
    if max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=0) < _IS_NAN:
        return model
    out = ModelProto()
    out.CopyFrom(model)
    seen = [_extended(node, selections) for node in out.graph.node]
    return out if any(seen) else model


def _extended(node: NodeProto, selections: Collection[str]) -> bool:
    bodies = graphs_of(node)
    if node.op_type not in _HOLDERS or not bodies:
        return False
    probes = [_probes(body, selections) for body in bodies]
    if not any(probes):
        return False
    name = next(output for output in node.output if output) + SEEN
    for body, found in zip(bodies, probes, strict=True):
        _add_result(body, name, found)
    node.output.append(name)
    for attribute in node.attribute:
        if attribute.name in ("scan_output_axes", "scan_output_directions"):
            attribute.ints.append(0)
    return True


def _probes(body: GraphProto, selections: Collection[str]) -> list[str]:
    """The names of numbers, 1 where a selection of the body meets a NaN; nodes that compute them are added."""
    found = []
    for node in list(body.node):
        if _extended(node, selections):
            found.append(_largest(body, node.output[-1], ()))
        elif op_key(node.op_type) in selections:
            found.append(_largest(body, f"{node.output[0]} as 1", _nan_of(node.input[0], node.output[0])))
    return found


def _nan_of(operand: str, name: str) -> list[NodeProto]:
    """Nodes that give 1 for each NaN of an operand of any numbers."""
    return [
        helper.make_node("Cast", [operand], [f"{name} as float"], to=TensorProto.FLOAT),
        helper.make_node("IsNaN", [f"{name} as float"], [f"{name} is nan"]),
        helper.make_node("Cast", [f"{name} is nan"], [f"{name} as 1"], to=TensorProto.FLOAT),
    ]


def _largest(body: GraphProto, name: str, steps: Iterable[NodeProto]) -> str:
    body.node.extend([*steps, helper.make_node("ReduceMax", [name], [f"{name} at most"], keepdims=0)])
    return f"{name} at most"


def _add_result(body: GraphProto, name: str, probes: list[str]) -> None:
    inner = f"{name} of {body.name}"
    zero = helper.make_node(
        "Constant", [], [f"{inner} none"], value=helper.make_tensor("", TensorProto.FLOAT, [], [0.0])
    )
    body.node.extend([zero, helper.make_node("Max", [f"{inner} none", *probes], [inner])])
    info = ValueInfoProto(name=inner)
    info.type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    body.output.append(info)
