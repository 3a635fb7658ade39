"""Change what a model is called and what it declares, not what it computes."""

from __future__ import annotations

import random
from collections.abc import Callable

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from dmlc.onnx_schema.nested import all_graphs, all_nodes, graphs_of
from tools.fuzz.onnx_models import F32
from tools.fuzz.structure_types import types_of

#: Names as the compiler makes them, as exporters do, and some that are only odd.
_STEMS = (
    *("softmax", "const", "reduce_max", "reduce_sum", "argmax", "shape", "reshape", "cast", "log_softmax", "mean"),
    *("layer_norm", "rms_norm", "squeeze", "unsqueeze", "gather", "add", "mul", "If", "onnx", "axes", "top_k"),
)
_ODD = (
    "x",
    "0",
    "a b",
    "/enc/Softmax",
    "é",
    "v:0",
    "-",
    "x:1:1",
    "None",
    "if",
    "unknown_0",
    "N",
    "_",
    "A" * 90,
    "a.b",
    "%0",
)
_DIMS = ("unknown_0", "unknown_1", "batch size", "N:1", "softmax_0", "s.0", "é", "dim_0", "x")


def _new_name(rng: random.Random, taken: set[str]) -> str:
    for _ in range(200):
        turn = rng.random()
        name = rng.choice(_ODD) if turn < 0.2 else f"{rng.choice(_STEMS)}_{rng.randrange(4)}"
        if turn > 0.5:
            name += f":{rng.randrange(4)}"
        if name not in taken:
            taken.add(name)
            return name
    name = f"n{len(taken)}"
    taken.add(name)
    return name


def rename_values(model: ModelProto, rng: random.Random) -> None:
    """Other names for most values; those inside of functions are their own."""
    part = rng.choice((0.3, 0.8, 1.0))
    taken: set[str] = {name for graph in all_graphs(model.graph) for name in _names(graph)}
    names: dict[str, str] = {}
    for graph in all_graphs(model.graph):
        for name in _names(graph):
            if name and name not in names:
                names[name] = _new_name(rng, taken) if rng.random() < part else name
    _apply(model.graph, names)
    for function in model.functions:
        own: set[str] = {name for node in function.node for name in (*node.input, *node.output)}
        own |= {
            name for node in function.node for body in graphs_of(node) for g in all_graphs(body) for name in _names(g)
        }
        inner_taken = set(own) | set(function.input)
        inner = {
            n: _new_name(rng, inner_taken) if rng.random() < part else n for n in sorted({*own, *function.input}) if n
        }
        for field in (function.input, function.output):
            for place, name in enumerate(field):
                field[place] = inner.get(name, name)
        for node in function.node:
            _apply_to_node(node, inner)


def _names(graph: GraphProto) -> list[str]:
    """The names that a graph defines."""
    made = [name for node in graph.node for name in node.output if name]
    return [*(i.name for i in graph.input), *(t.name for t in graph.initializer), *made]


def _apply(graph: GraphProto, names: dict[str, str]) -> None:
    for item in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        item.name = names.get(item.name, item.name)
    for node in graph.node:
        _apply_to_node(node, names)


def _apply_to_node(node: NodeProto, names: dict[str, str]) -> None:
    for field in (node.input, node.output):
        for place, name in enumerate(field):
            field[place] = names.get(name, name)
    for body in graphs_of(node):
        _apply(body, names)


def rename_nodes(model: ModelProto, rng: random.Random) -> None:
    """Names for nodes: none, those of exporters, or as the compiler makes them; the same in other graphs."""
    way = rng.randrange(4)
    graphs = [*all_graphs(model.graph), *model.functions]
    for graph in graphs:
        taken: set[str] = set()
        for number, node in enumerate(graph.node):
            if way == 0:
                node.name = ""
            elif way == 1:
                node.name = f"/{node.op_type}_{number}"
            elif way == 2:
                node.name = _new_name(rng, taken)
            else:
                node.name = "" if rng.random() < 0.5 else _new_name(rng, taken)


def rename_dims(model: ModelProto, rng: random.Random) -> None:
    """Other names for the sizes of the interface."""
    infos = [info for graph in all_graphs(model.graph) for info in (*graph.input, *graph.output, *graph.value_info)]
    dims = [d for info in infos for d in info.type.tensor_type.shape.dim if d.dim_param]
    names = {d.dim_param for d in dims}
    fresh = dict(zip(sorted(names), rng.sample(_DIMS, len(names)), strict=True)) if len(names) <= len(_DIMS) else {}
    for d in dims:
        d.dim_param = fresh.get(d.dim_param, d.dim_param)


# --- declarations


def without_declarations(model: ModelProto, rng: random.Random) -> None:
    """No value_info; outputs without a shape, or with its rank only."""
    for graph in all_graphs(model.graph):
        graph.ClearField("value_info")
    for info in model.graph.output:
        if rng.random() < 0.5:
            info.type.tensor_type.ClearField("shape") if info.type.HasField("tensor_type") else None
        else:
            _unnamed(info)


def _unnamed(info: ValueInfoProto) -> None:
    for d in info.type.tensor_type.shape.dim:
        d.Clear()


def unnamed_inputs(model: ModelProto, rng: random.Random) -> None:
    """Sizes without a name: no two of them are said to be equal."""
    for graph in all_graphs(model.graph):
        for info in (*graph.input, *graph.output):
            for d in info.type.tensor_type.shape.dim:
                if d.dim_param:
                    d.Clear()
        graph.ClearField("value_info")


def wrong_declaration(model: ModelProto, rng: random.Random) -> None:
    """A value declared with a rank or a size that it does not have: some exporters write that, and models run.

    Inference knows all its sizes, so it contradicts the declaration.
    """
    listed = {info.name: info for info in (*model.graph.output, *model.graph.value_info)}
    given = {info.name for info in model.graph.input}
    found = {n: t.tensor_type for n, t in types_of(plain_of(model)).items() if n not in given}
    made = sorted(n for n, t in found.items() if t.HasField("shape") and all(d.dim_value for d in t.shape.dim))
    if not made:
        return
    name = rng.choice(made)
    shape = rng.choice(([], [7], [1, 1], ["Q", "Q"], ["Q", 3]))
    if name in listed and listed[name].type.HasField("tensor_type"):
        wrong = helper.make_tensor_value_info(name, listed[name].type.tensor_type.elem_type or F32, shape)
        listed[name].CopyFrom(wrong)
    elif name not in listed:
        model.graph.value_info.append(helper.make_tensor_value_info(name, found[name].elem_type, shape))


def plain_of(model: ModelProto) -> ModelProto:
    """The model without declarations of what its nodes compute."""
    out = ModelProto.FromString(model.SerializeToString())
    out.graph.ClearField("value_info")
    for info in out.graph.output:
        info.type.tensor_type.ClearField("shape")
    return out


# --- the interface


def odd_outputs(model: ModelProto, rng: random.Random) -> None:
    """Outputs that are inputs or initializers."""
    graph = model.graph
    listed = {info.name for info in graph.output}
    inputs = [info for info in graph.input if info.name not in listed]
    if inputs and rng.random() < 0.6:
        graph.output.append(ValueInfoProto.FromString(rng.choice(inputs).SerializeToString()))
    tensors = [tensor for tensor in graph.initializer if tensor.name not in {i.name for i in graph.output}]
    if tensors and rng.random() < 0.6:
        tensor = rng.choice(tensors)
        graph.output.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))


def overridable(model: ModelProto, rng: random.Random) -> None:
    """Initializers that are inputs too: operands, axes, shapes, k, depths, scales. Nothing declares what they imply.

    Loops keep their trip counts and conditions: after no turn, ONNX Runtime gives unknown sizes of a stack as 0.
    """
    graph = model.graph
    turns = {name for g in all_graphs(graph) for node in g.node if node.op_type == "Loop" for name in node.input[:2]}
    model.ir_version = max(model.ir_version, 4)
    part = rng.choice((0.2, 0.5, 1.0))
    listed = {info.name for info in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in listed and tensor.name not in turns and rng.random() < part:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    graph.ClearField("value_info")
    for info in graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    undeclare_bodies(model)


def undeclare_bodies(model: ModelProto) -> None:
    """Leave out the shapes of what graphs inside nodes compute: the default of an axis implies them."""
    nodes = [node for part in (model.graph, *model.functions) for node in all_nodes(part.node)]
    for body in [graph for node in nodes for graph in graphs_of(node)]:
        body.ClearField("value_info")
        states = [info for info in body.input if len(info.type.tensor_type.shape.dim)]
        for info in (*body.output, *states):
            if info.type.HasField("tensor_type"):
                info.type.tensor_type.ClearField("shape")


def all_listed(model: ModelProto, rng: random.Random) -> None:
    """All initializers listed as inputs and IR version 3, as old exporters wrote them."""
    listed = {info.name for info in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.name not in listed:
            info = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            model.graph.input.append(info)
    model.ir_version = 3


def sparse_or_raw(model: ModelProto, rng: random.Random) -> None:
    """Initializers in Constant nodes."""
    graph = model.graph
    listed = {info.name for info in (*graph.input, *graph.output)}
    kept: list[TensorProto] = []
    nodes: list[NodeProto] = []
    for tensor in graph.initializer:
        if tensor.name not in listed and rng.random() < 0.5:
            nodes.append(helper.make_node("Constant", [], [tensor.name], value=tensor))
        else:
            kept.append(TensorProto.FromString(tensor.SerializeToString()))
    rest = [NodeProto.FromString(n.SerializeToString()) for n in graph.node]
    graph.ClearField("initializer")
    graph.ClearField("node")
    graph.initializer.extend(kept)
    graph.node.extend([*nodes, *rest])


CHANGES: tuple[tuple[float, Callable[[ModelProto, random.Random], None]], ...] = (
    (0.15, sparse_or_raw),
    (0.25, without_declarations),
    (0.1, unnamed_inputs),
    (0.15, odd_outputs),
    (0.2, overridable),
    (0.06, all_listed),
    (0.3, rename_dims),
    (0.5, rename_values),
    (0.7, rename_nodes),
    (0.05, wrong_declaration),
)
