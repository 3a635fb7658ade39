"""Names of nodes, the same in messages, in the ledger and in the emitted model."""

from __future__ import annotations

from dmlc.ir import Node
from dmlc.ops.constant import CONSTANT
from dmlc.ops.opaque import OpaqueAttributes


def title_of(node: Node) -> str:
    """The ONNX operator that a node becomes, or the operation in ONNX's manner: ``reduce_sum`` is ``ReduceSum``."""
    if isinstance(node.attributes, OpaqueAttributes):
        return node.attributes.op_type
    return node.op.onnx_title


def node_name(node: Node) -> str:
    """The node as a user knows it: its name in an imported model, else ``VALUE/OPERATOR`` by the value that it makes,
    else the operator."""
    if node.name:
        return node.name
    made = next((r.name for r in node.results if r.name), None)
    if made is not None and node.op is CONSTANT:
        return made
    return title_of(node) if made is None else f"{made}/{title_of(node)}"
