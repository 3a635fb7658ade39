"""Nodes of the emitted model that ONNX Runtime's own optimizer would take for something else: they are kept apart."""

from __future__ import annotations

from onnx import NodeProto

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.onnx_schema.types import DTYPE_OF
from dmlc.placement.optimizer import look_alikes
from dmlc.placement.optimizer.view import Copied, Given, GraphView, Renamed


def keep_look_alikes(emitter: Emitter) -> None:
    """Write what ``dmlc.placement.optimizer`` finds in a form that no transformer takes, and that computes the same."""
    view = GraphView(emitter.nodes, emitter.output_names, emitter.fact_of, emitter.opset)
    cures = [found.cure for found in look_alikes(view)]
    copied = {view.made_by[cure.value]: cure for cure in cures if isinstance(cure, Copied)}
    for cure in cures:
        if isinstance(cure, Renamed):
            emitter.nodes[cure.index].op_type = cure.operator
        elif isinstance(cure, Given):
            _give(emitter, cure)
    for index in sorted(copied, reverse=True):
        _copy(emitter, index, copied[index])


def _give(emitter: Emitter, cure: Given) -> None:
    """Write an optional operand out."""
    node = emitter.nodes[cure.index]
    node.input.extend([""] * (cure.position + 1 - len(node.input)))
    node.input[cure.position] = emitter.ints(cure.numbers)


def _copy(emitter: Emitter, index: int, cure: Copied) -> None:
    """Sum with -0 leaves every float as it is, -0 and NaN too."""
    node, name = emitter.nodes[index], cure.value
    dtype = DTYPE_OF.get(emitter.fact_of(name).element)
    kept = emitter.rename_result(node, name)
    copy = NodeProto(op_type="Max", input=[kept, kept], output=[name])
    if dtype is not None and dtype.is_float:
        copy.op_type, copy.input[1] = "Sum", emitter.scalar(-0.0, dtype)
    copy.name = emitter.node_names.new(f"{node.name or name}/{copy.op_type}")
    emitter.nodes.insert(index + 1, copy)
