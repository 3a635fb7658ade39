"""A model whose values on the way can be changed from outside: each is multiplied by an input, or takes elements of it.

D. S. Parker, Monte Carlo Arithmetic, UCLA CSD-970002, 1997, rounds each operation anew by such factors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, inliner, shape_inference

from dmlc.ir import Array
from dmlc.onnx_schema.nested import all_nodes, graphs_of
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.subject import Patch

_FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)
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


def with_noise(
    model: ModelProto, output: str, values: Mapping[str, Array], added: Collection[str], weights: Collection[str]
) -> ModelProto:
    """The model with one output, with an input ``NAME//noise`` for each of the values, which is multiplied or, for
    ``added`` ones, added, and with weights that can be fed: they are listed as inputs, from IR version 4 on."""
    made = {
        name: [helper.make_node("Add" if name in added else "Mul", [f"{name}//as computed", f"{name}//noise"], [name])]
        for name in values
    }
    out = _changed(model, output, made)
    for name, array in values.items():
        dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        out.graph.input.append(helper.make_tensor_value_info(f"{name}//noise", dtype, None))
    out.ir_version = max(out.ir_version, 4)
    held = {tensor.name: tensor for tensor in out.graph.initializer}
    for name in weights:
        out.graph.input.append(helper.make_tensor_value_info(name, held[name].data_type, list(held[name].dims)))
    return out


def with_noise_in_bodies(model: ModelProto, is_rounded: Callable[[NodeProto], bool]) -> tuple[ModelProto, Feeds]:
    """The model in which floats of bodies that ``is_rounded`` nodes make are multiplied by scalar inputs, and ones for
    these inputs."""
    ones: Feeds = {}

    def multiplied(node: NodeProto, name: str, element: int) -> list[NodeProto]:
        if element not in _FLOATS or not is_rounded(node):
            return []
        ones[f"{name}//{element}"] = np.ones((), helper.tensor_dtype_to_np_dtype(element))
        return [helper.make_node("Mul", [f"{name}//as computed", f"{name}//{element}"], [name])]

    out = _with_bodies_changed(model, multiplied)
    for name, one in ones.items():
        out.graph.input.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), []))
    return out, ones


def with_barriers(model: ModelProto, output: str, values: Collection[str]) -> ModelProto:
    """The model with one output, and with two Identity nodes behind each of the values, and of the f16 values of
    bodies: without optimizations no kernel goes across them.

    ONNX Runtime computes a single one between casts in f32, and drops these casts (insert_cast_transformer.cc).
    """

    def barrier(name: str) -> list[NodeProto]:
        first = helper.make_node("Identity", [f"{name}//as computed"], [f"{name}//copy"])
        return [first, helper.make_node("Identity", [f"{name}//copy"], [name])]

    def inside(_: NodeProto, name: str, element: int) -> list[NodeProto]:
        return barrier(name) if element == TensorProto.FLOAT16 else []

    return _changed(_with_bodies_changed(model, inside), output, {name: barrier(name) for name in values})


def _with_bodies_changed(model: ModelProto, make: Callable[[NodeProto, str, int], list[NodeProto]]) -> ModelProto:
    """The model with nodes behind values of bodies, which take ``NAME//as computed``. ``make`` gets a node, its result,
    and the element type that onnx infers for it; the model itself where nothing is made."""
    if not any(map(graphs_of, model.graph.node)):
        return model
    out = ModelProto()
    out.CopyFrom(model)
    try:
        typed = shape_inference.infer_shapes(model)
    except Exception:  # an error of C++
        return model
    return out if _change_bodies(out.graph, typed.graph, make) else model


def _change_bodies(
    graph: GraphProto, typed: GraphProto, make: Callable[[NodeProto, str, int], list[NodeProto]]
) -> bool:
    changed = False
    for node, twin in zip(graph.node, typed.node, strict=True):
        for body, known in zip(graphs_of(node), graphs_of(twin), strict=True):
            changed |= _change_bodies(body, known, make)
            elements = {info.name: info.type.tensor_type.elem_type for info in (*known.value_info, *known.output)}
            made = {name: make(n, name, elements.get(name, 0)) for n in body.node for name in n.output}
            changed |= any(made.values())
            _put_behind(body, {name: nodes for name, nodes in made.items() if nodes})
    return changed


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
    _put_behind(graph, made)
    kept = [ValueInfoProto.FromString(info.SerializeToString()) for info in graph.output if info.name == output]
    del graph.output[:]
    graph.output.extend(kept)
    return out


def _put_behind(graph: GraphProto, made: Mapping[str, Iterable[NodeProto]]) -> None:
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
