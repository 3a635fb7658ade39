"""A model whose values on the way can be changed from outside: each is multiplied by an input, or takes elements of it.

D. S. Parker, Monte Carlo Arithmetic, UCLA CSD-970002, 1997, rounds each operation anew by such factors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, inliner

from dmlc.ir import Array
from dmlc.onnx_schema.nested import all_nodes
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.subject import Patch

#: Types in which ONNX Runtime's Where has kernels, by the kind of dtype.
_WIDE = {"f": TensorProto.DOUBLE, "i": TensorProto.INT64, "u": TensorProto.INT64, "b": TensorProto.INT64}


def with_bodies(model: ModelProto) -> ModelProto:
    """The model with the bodies of its functions instead of calls, by ONNX's inliner; the model itself if it has none,
    or ONNX cannot."""
    if not model.functions:
        return model
    out = ModelProto()
    out.CopyFrom(model)
    bodies = {(function.domain, function.name): function for function in out.functions}
    for node in [n for part in (out.graph, *out.functions) for n in all_nodes(part.node)]:
        body, given = bodies.get((node.domain, node.op_type)), {attribute.name for attribute in node.attribute}
        if body is not None:  # the inliner passes over defaults
            node.attribute.extend(entry for entry in body.attribute_proto if entry.name not in given)
    try:
        return inliner.inline_local_functions(out)
    except Exception:  # an error of C++
        return model


def with_factors(model: ModelProto, output: str, values: Mapping[str, Array], weights: Collection[str]) -> ModelProto:
    """The model with one output, with an input ``NAME//factor`` for each of the values, and with weights
    that can be fed: they are listed as inputs, from IR version 4 on."""
    made = {name: [helper.make_node("Mul", [f"{name}//as computed", f"{name}//factor"], [name])] for name in values}
    out = _changed(model, output, made)
    for name, array in values.items():
        dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        out.graph.input.append(helper.make_tensor_value_info(f"{name}//factor", dtype, None))
    out.ir_version = max(out.ir_version, 4)
    held = {tensor.name: tensor for tensor in out.graph.initializer}
    for name in weights:
        out.graph.input.append(helper.make_tensor_value_info(name, held[name].data_type, list(held[name].dims)))
    return out


def with_barriers(model: ModelProto, output: str, values: Collection[str]) -> ModelProto:
    """The model with one output, and with two Identity nodes behind each of the values: without optimizations no kernel
    goes across them.

    ONNX Runtime computes a single one between casts in f32, and drops these casts (insert_cast_transformer.cc).
    """
    made = {}
    for name in values:
        first = helper.make_node("Identity", [f"{name}//as computed"], [f"{name}//copy"])
        made[name] = [first, helper.make_node("Identity", [f"{name}//copy"], [name])]
    return _changed(model, output, made)


def with_patches(model: ModelProto, output: str, patches: Mapping[str, Patch]) -> ModelProto:
    """The model with one output, and with inputs for patches, as ``fed_patches`` gives them; the nodes behind a patched
    value read it with its patch."""
    out = _changed(model, output, {name: _patched(name, patch.array) for name, patch in patches.items()})
    for name, patch in patches.items():
        for part, dtype in (("places", TensorProto.BOOL), ("elements", _WIDE[patch.array.dtype.kind])):
            out.graph.input.append(helper.make_tensor_value_info(f"{name}//{part}", dtype, None))
    return out


def _changed(model: ModelProto, output: str, made: Mapping[str, Iterable[NodeProto]]) -> ModelProto:
    """The model with one output, and with nodes behind some values, which take ``NAME//as computed``."""
    out = ModelProto()
    out.CopyFrom(model)
    graph = out.graph
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        for place, name in enumerate(node.output):
            if name in made:
                node.output[place] = f"{name}//as computed"
                nodes += made[name]
    copied = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copied)
    kept = [ValueInfoProto.FromString(info.SerializeToString()) for info in graph.output if info.name == output]
    del graph.output[:]
    graph.output.extend(kept)
    return out


def _patched(name: str, array: Array) -> list[NodeProto]:
    """The nodes that put the patch into the value: ONNX Runtime's Where has no kernels of some dtypes."""
    wide, chosen, dtype = f"{name}//wide", f"{name}//patched", helper.np_dtype_to_tensor_dtype(array.dtype)
    return [
        helper.make_node("Cast", [f"{name}//as computed"], [wide], to=_WIDE[array.dtype.kind]),
        helper.make_node("Where", [f"{name}//places", f"{name}//elements", wide], [chosen]),
        helper.make_node("Cast", [chosen], [name], to=dtype),
    ]


def fed_patches(patches: Mapping[str, Patch]) -> Feeds:
    """The patches as inputs of the model that ``with_patches`` makes."""
    out: Feeds = {f"{name}//places": patch.places for name, patch in patches.items()}
    for name, patch in patches.items():
        wide = np.float64 if patch.array.dtype.kind == "f" else np.int64
        with np.errstate(all="ignore"):
            out[f"{name}//elements"] = patch.array.astype(wide)
    return out
