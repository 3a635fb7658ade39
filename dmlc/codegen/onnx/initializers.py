"""Names of initializers that nothing named: after the first node that takes them, and the role that they have there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from onnx import GraphProto, NodeProto, TensorProto, defs

from dmlc.onnx_schema.functions import graphs_of


def name_initializers(
    graph: GraphProto, waiting: Mapping[str, TensorProto], new_name: Callable[[str], str], opset: int
) -> None:
    """Name the tensors of ``waiting`` ``NODE.ROLE``, such as ``/norm/ReduceMean.axes``.

    ``waiting`` has them by the names that stand for theirs in the graph so far. Nothing reads those that keep one.
    """
    named: dict[str, str] = {}
    graphs = [graph]
    for each in graphs:
        for node in each.node:
            for place, name in enumerate(node.input):
                if name in waiting:
                    if name not in named:
                        named[name] = waiting[name].name = new_name(_name_at(node, place, opset))
                    node.input[place] = named[name]
            graphs += graphs_of(node)


def _name_at(node: NodeProto, place: int, opset: int) -> str:
    role = _roles(node.domain, node.op_type, opset)
    return f"{node.name or node.output[0]}.{role[min(place, len(role) - 1)] if role else place}"


@cache
def _roles(domain: str, op_type: str, opset: int) -> tuple[str, ...]:
    """The names of an operator's operands in its schema; none where onnx does not know it."""
    if domain or not defs.has(op_type, opset):
        return ()
    return tuple([formal.name for formal in defs.get_schema(op_type, opset).inputs])
