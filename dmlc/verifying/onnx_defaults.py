"""Inputs of an ONNX model that have a default: which are data, and which give shapes, axes or counts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

from dmlc.ir import Array, Dim
from dmlc.onnx_schema.nested import all_nodes, graphs_of
from dmlc.verifying.inputs import Default, InputSpec
from dmlc.verifying.onnx_interface import integer_uses, is_exotic, kind_of, required_inputs

#: Defaults of more bytes are data, whatever they are used for.
_MOST_BYTES = 1 << 16
#: The operands of ONNX's operators that are not data: shapes, axes, counts, conditions. None is all of them.
_COUNTS: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("Reshape", "Expand", "Upsample", "OneHot", "TopK", "Split", "SplitToSequence"), (1,)),
    **dict.fromkeys(("Squeeze", "Unsqueeze", "CumSum", "Trilu", "SequenceAt", "SequenceErase"), (1,)),
    **dict.fromkeys(("CenterCropPad", "AffineGrid", "ReverseSequence", "Compress"), (1,)),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"), (1,)),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"), (1,)),
    **dict.fromkeys(("ConstantOfShape", "If", "HannWindow", "HammingWindow", "BlackmanWindow"), (0,)),
    **dict.fromkeys(("Tile", "DFT", "Col2Im", "Dropout"), (1, 2)),
    **dict.fromkeys(("Slice", "Resize"), (1, 2, 3, 4)),
    **dict.fromkeys(("Range", "MelWeightMatrix"), None),
    "Pad": (1, 3),
    "STFT": (1, 3),
    "Loop": (0, 1),
    "SequenceInsert": (2,),
    "MaxUnpool": (2,),
    "NonMaxSuppression": (2, 3, 4),
}
#: Operators whose results depend on no element of their operands.
_SIZES = {"Shape", "Size"}


def optional_specs(model: ModelProto) -> list[InputSpec]:
    """The inputs whose default is data: they are overridden as other inputs are fed, in the default's shape."""
    graph = model.graph
    counts = count_values(model)
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    shapes |= {tensor.values.name: tuple(tensor.dims) for tensor in graph.sparse_initializer}
    indices, divisors = integer_uses(graph)
    return [
        _spec(info, shapes[info.name], indices, divisors) for info in _overridable(model) if info.name not in counts
    ]


def _spec(info: ValueInfoProto, shape: tuple[int, ...], indices: dict[str, Dim], divisors: set[str]) -> InputSpec:
    name, kind = info.name, kind_of(info.type.tensor_type.elem_type)
    return InputSpec(name, kind, shape, indices.get(name), nonzero=name in divisors, optional=True)


def defaults(model: ModelProto, folder: Path | None) -> list[Default]:
    """Return the inputs whose default is a shape, axes or a count, if it can be read."""
    counts = count_values(model)
    held = {tensor.name: tensor for tensor in model.graph.initializer}
    out = []
    for info in _overridable(model):
        value = _value(held.get(info.name), folder) if info.name in counts else None
        if value is not None:
            out.append(Default(info.name, value, _is_free(info)))
    return out


def _overridable(model: ModelProto) -> list[ValueInfoProto]:
    """The inputs with a default of a dtype that NumPy has."""
    _, optional = required_inputs(model.graph, model.ir_version)
    tensors = [info for info in optional if info.type.HasField("tensor_type")]
    return [info for info in tensors if not is_exotic(info.type.tensor_type.elem_type)]


def _value(tensor: TensorProto | None, folder: Path | None) -> Array | None:
    if tensor is None or math.prod(tensor.dims) * 8 > _MOST_BYTES:
        return None
    try:
        return np.asarray(numpy_helper.to_array(tensor, "" if folder is None else str(folder)))
    except (OSError, ValueError, TypeError):  # its file is not there
        return None


def _is_free(info: ValueInfoProto) -> bool:
    tensor = info.type.tensor_type
    return not tensor.HasField("shape") or any(not dim.HasField("dim_value") for dim in tensor.shape.dim)


def count_values(model: ModelProto) -> set[str]:
    """The values whose elements reach an operand that is not data, by names of all graphs together."""
    nodes = list(all_nodes(model.graph.node))
    makers: dict[str, list[NodeProto]] = {}
    for node in nodes:
        inner = [info.name for graph in graphs_of(node) for info in graph.input]  # values that a loop hands to its body
        for name in (*node.output, *inner):
            makers.setdefault(name, []).append(node)
    pending = [name for node in nodes for name in _count_operands(node)]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name and name not in found:
            found.add(name)
            pending += [read for node in makers.get(name, ()) if node.op_type not in _SIZES for read in _reads(node)]
    return found


def _count_operands(node: NodeProto) -> list[str]:
    if node.domain not in ("", "ai.onnx", "ai.onnx.ml"):
        return list(node.input)  # a function, or an operator that nothing is known of
    places = _COUNTS.get(node.op_type, ())
    return list(node.input) if places is None else [node.input[i] for i in places if i < len(node.input)]


def _reads(node: NodeProto) -> list[str]:
    """The operands of a node, and what its graphs give: what those capture is read by their own nodes."""
    return [*node.input, *(info.name for graph in graphs_of(node) for info in graph.output)]
