"""Nodes of the emitted model that ONNX Runtime's own optimizer would take for something else: they are kept apart."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.ir import Tensor
from dmlc.onnx_schema.types import DTYPE_OF
from dmlc.placement.optimizer import look_alikes
from dmlc.placement.optimizer.view import GraphView, LookAlike


def keep_look_alikes(emitter: Emitter) -> None:
    """Write each pattern of ``dmlc.placement.optimizer`` in a form that no transformer takes.

    The numbers stay the same ones, bit by bit: an epsilon is subtracted with the other sign, or a value inside the
    pattern becomes the maximum of itself.
    """
    view = GraphView(emitter.nodes, emitter.output_names, emitter.fact_of, emitter.opset)
    copies: dict[int, str] = {}
    for found in look_alikes(view):
        if found.add is None or not _subtract(emitter, emitter.nodes[found.add], found):
            copies[view.made_by[found.edge]] = found.edge
    for index, name in sorted(copies.items(), reverse=True):
        _copy(emitter, index, name)


def _subtract(emitter: Emitter, node: NodeProto, found: LookAlike) -> bool:
    """Write an addition of a constant as a subtraction; False where the other operand is not a constant."""
    kept = found.edge
    (added,) = [name for name in node.input if name != kept] or [kept]
    fact = emitter.fact_of(added)
    dtype = DTYPE_OF.get(fact.element)
    if fact.elements is None or dtype is None or not all(isinstance(e, float) for e in fact.elements.ravel()):
        return False
    negative = emitter.tensor(Tensor(-np.asarray(fact.elements, dtype=dtype.numpy)))
    node.op_type = "Sub"
    node.input[:] = [kept, negative]
    return True


def _copy(emitter: Emitter, index: int, name: str) -> None:
    """Give every reader of a value the maximum of the value with itself."""
    node = emitter.nodes[index]
    kept = emitter.rename_result(node, name)
    copy = NodeProto(op_type="Max", input=[kept, kept], output=[name])
    copy.name = emitter.node_names.new(f"{node.name}/Max")
    emitter.nodes.insert(index + 1, copy)
