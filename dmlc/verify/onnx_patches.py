"""A model that takes elements of values on its way from outside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from dmlc.ir import Array
from dmlc.verify.inputs import Feeds
from dmlc.verify.trace import Patch


def with_patches(model: ModelProto, output: str, patches: Mapping[str, Patch]) -> ModelProto:
    """The model with one output, and with inputs for patches, as ``fed_patches`` gives them; the nodes behind a patched
    value read it with its patch."""
    out = ModelProto()
    out.CopyFrom(model)
    graph = out.graph
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        for place, name in enumerate(node.output):
            if name in patches:
                node.output[place] = f"{name}//as computed"
                nodes += _patched(name, patches[name].array)
    copied = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copied)
    for name in patches:
        for part, dtype in (("places", TensorProto.BOOL), ("elements", TensorProto.INT64)):
            graph.input.append(helper.make_tensor_value_info(f"{name}//{part}", dtype, None))
    kept = [info for info in graph.output if info.name == output]
    copies = [ValueInfoProto.FromString(info.SerializeToString()) for info in kept]
    del graph.output[:]
    graph.output.extend(copies)
    return out


def _patched(name: str, array: Array) -> list[NodeProto]:
    """The nodes that put the patch into the value: ONNX Runtime's Where has no kernels of small and unsigned dtypes."""
    wide, chosen, dtype = f"{name}//wide", f"{name}//patched", helper.np_dtype_to_tensor_dtype(array.dtype)
    return [
        helper.make_node("Cast", [f"{name}//as computed"], [wide], to=TensorProto.INT64),
        helper.make_node("Where", [f"{name}//places", f"{name}//elements", wide], [chosen]),
        helper.make_node("Cast", [chosen], [name], to=dtype),
    ]


def fed_patches(patches: Mapping[str, Patch]) -> Feeds:
    """The patches as inputs of the model that ``with_patches`` makes."""
    places = {f"{name}//places": patch.places for name, patch in patches.items()}
    return {**places, **{f"{name}//elements": patch.array.astype(np.int64) for name, patch in patches.items()}}
