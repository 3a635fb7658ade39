"""A model that is fed values which its own nodes compute."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, ValueInfoProto, helper

from dmlc.ir import Array


def with_fed_values(model: ModelProto, output: str, values: Mapping[str, Array]) -> ModelProto:
    """The model with one output, and with an input more for each of the values; the nodes behind them read it."""
    out = ModelProto()
    out.CopyFrom(model)
    graph = out.graph
    for node in graph.node:
        for place, name in enumerate(node.output):
            if name in values:
                node.output[place] = f"{name}//as computed"
    for name, array in values.items():
        graph.input.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), None))
    kept = [info for info in graph.output if info.name == output]
    copies = [ValueInfoProto.FromString(info.SerializeToString()) for info in kept]
    del graph.output[:]
    graph.output.extend(copies)
    return out


__all__ = ["with_fed_values"]
