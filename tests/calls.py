"""Calls of operations on a graph, as a program makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dmlc.inference.carried import carry
from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.binary import DIV
from dmlc.ops.call import CallSite, apply


def add_call(
    graph: Graph, op: Operation, operands: Sequence[Any], attributes: Mapping[str, Any], site: CallSite
) -> Node:
    """Add the node of a call; a program writes the quotient of integers as ``onnx.Div``."""
    if op is DIV and any(isinstance(v, Value) and v.type.dtype.is_integer for v in operands):
        return carry(graph, "", DIV.onnx_title, operands, dict(attributes), 1, site)
    return apply(graph, op, operands, attributes, site)
