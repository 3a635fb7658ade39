"""Names of initializers that nothing named: after the first node that takes them, and the role that they have there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import GraphProto, NodeProto, TensorProto

from dmlc.onnx_schema.nested import inner_graphs

_AXES = ("data", "axes")
_BOTH = ("A", "B")
#: The names of operands in ONNX's schemas, of operators that take a constant of dmlc's making. Loading the schemas
#: takes longer than naming.
ROLES: Mapping[str, tuple[str, ...]] = {
    "Clip": ("input", "min", "max"),
    "ConstantOfShape": ("input",),
    "CumSum": ("x", "axis"),
    "Expand": ("input", "shape"),
    "Gather": ("data", "indices"),
    "GatherElements": ("data", "indices"),
    "LayerNormalization": ("X", "Scale", "B"),
    "OneHot": ("indices", "depth", "values"),
    "Pad": ("data", "pads", "constant_value", "axes"),
    "Pow": ("X", "Y"),
    "Range": ("start", "limit", "delta"),
    "Reshape": ("data", "shape"),
    "Resize": ("X", "roi", "scales", "sizes"),
    "ScatterElements": ("data", "indices", "updates"),
    "Slice": ("data", "starts", "ends", "axes", "steps"),
    "Split": ("input", "split"),
    "Tile": ("input", "repeats"),
    "TopK": ("X", "K"),
    "Where": ("condition", "X", "Y"),
    **dict.fromkeys(("Squeeze", "Unsqueeze", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"), _AXES),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"), _AXES),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "MatMul", "And", "Or", "Xor", "Equal"), _BOTH),
    **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"), _BOTH),
}


def name_initializers(
    graph: GraphProto, waiting: Mapping[str, TensorProto], new_name: Callable[[str], str], *, nested: bool
) -> None:
    """Name the tensors of ``waiting`` ``NODE.ROLE``, such as ``/norm/ReduceMean.axes``.

    ``waiting`` has them by the names that stand for theirs in the graph so far. Nothing reads those that keep one.
    ``nested`` says that nodes have graphs inside.
    """
    named: dict[str, str] = {}
    graphs = [graph] if waiting else []
    for each in graphs:
        for node in each.node:
            inputs = node.input[:]
            if waiting.keys().isdisjoint(inputs):
                continue
            for place, name in enumerate(inputs):
                if name in waiting:
                    if name not in named:
                        named[name] = waiting[name].name = new_name(_name_at(node, place))
                    node.input[place] = named[name]
        if nested:
            graphs += inner_graphs(each.node)


def _name_at(node: NodeProto, place: int) -> str:
    roles = () if node.domain else ROLES.get(node.op_type, ())
    return f"{node.name or node.output[0]}.{roles[place] if place < len(roles) else f'input{place}'}"
