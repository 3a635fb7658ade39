"""Move a part of a model's nodes into a branch, a loop, a scan or a function; what it reads is captured."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, helper

from dmlc.onnx_schema.nested import graphs_of
from tools.fuzz.onnx_models import BOOL, F32, FLOATS, I64
from tools.fuzz.structure_types import types_of

_MOST = 7
#: Operators that stay in the main graph: inside of a body, ONNX Runtime's optimizations crash on them.
_STAY = frozenset(("Optional", "OptionalHasElement", "OptionalGetElement"))


@dataclass
class Part:
    """Nodes that follow each other in a graph, what they read from outside, and which results others read."""

    start: int
    nodes: list[NodeProto]
    reads: list[str]
    results: list[str]


def outlined(model: ModelProto, rng: random.Random) -> tuple[ModelProto, str]:
    """The model with a part of its nodes in a body, and what kind of body; ``("", model)`` if nothing fits."""
    ways: tuple[Callable[[ModelProto, Part, dict[str, TypeProto], random.Random], bool], ...]
    ways = (_into_if, _into_if, _into_loop, _into_scan, _into_function, _into_function)
    way = rng.choice(ways)
    copy = copied(model)
    part = _part(copy.graph, rng)
    if part is None:
        return model, ""
    types = types_of(copy)
    if any(name not in types for name in part.results) or not way(copy, part, types, rng):
        return model, ""
    return copy, way.__name__.removeprefix("_into_")


def copied(model: ModelProto) -> ModelProto:
    out = ModelProto()
    out.CopyFrom(model)
    return out


def opset_of(model: ModelProto) -> int:
    version: int = next(entry.version for entry in model.opset_import if entry.domain == "")
    return version


def reads_of(node: NodeProto) -> set[str]:
    """The names that a node reads, those that its graphs capture included."""
    out = set(node.input) - {""}
    for body in graphs_of(node):
        own = {i.name for i in body.input} | {t.name for t in body.initializer}
        own |= {name for inner in body.node for name in inner.output}
        read = {i.name for i in body.output}.union(*(reads_of(inner) for inner in body.node))
        out |= read - own
    return out


def _part(graph: GraphProto, rng: random.Random) -> Part | None:
    count = len(graph.node)
    if not count:
        return None
    length = rng.randint(1, min(_MOST, count))
    start = rng.randint(0, count - length)
    nodes = [NodeProto.FromString(n.SerializeToString()) for n in graph.node[start : start + length]]
    if any(node.op_type in _STAY for node in nodes):
        return None
    made = {name for node in nodes for name in node.output if name}
    reads = sorted(set().union(*(reads_of(node) for node in nodes)) - made)
    after = {i.name for i in graph.output}.union(*(reads_of(node) for node in graph.node[start + length :]))
    results = [name for node in nodes for name in node.output if name in after]
    return Part(start, nodes, reads, results) if results else None


def _replace(graph: GraphProto, part: Part, nodes: Iterable[NodeProto]) -> None:
    kept = [NodeProto.FromString(n.SerializeToString()) for n in graph.node]
    kept[part.start : part.start + len(part.nodes)] = nodes
    graph.ClearField("node")
    graph.node.extend(kept)


def _renamed(nodes: Iterable[NodeProto], names: dict[str, str]) -> list[NodeProto]:
    """Copies of the nodes with other names of values, inside their graphs as well."""
    out = []
    for node in nodes:
        twin = NodeProto.FromString(node.SerializeToString())
        for field in (twin.input, twin.output):
            for place, name in enumerate(field):
                field[place] = names.get(name, name)
        for body in graphs_of(twin):
            inner = _renamed(body.node, names)
            body.ClearField("node")
            body.node.extend(inner)
            for info in (*body.output, *body.input):
                info.name = names.get(info.name, info.name)
            for tensor in body.initializer:
                tensor.name = names.get(tensor.name, tensor.name)
        out.append(twin)
    return out


def _all_made(nodes: Iterable[NodeProto]) -> set[str]:
    """The names that the nodes define, inside their graphs as well."""
    out = set()
    for node in nodes:
        out |= set(node.output) - {""}
        for body in graphs_of(node):
            out |= _all_made(body.node) | {i.name for i in body.input} | {t.name for t in body.initializer}
    return out


def _twin(part: Part, mark: str) -> tuple[list[NodeProto], dict[str, str]]:
    """The part's nodes with names of their own."""
    names = {name: f"{name}{mark}" for name in _all_made(part.nodes)}
    return _renamed(part.nodes, names), names


def _outputs(part: Part, names: dict[str, str], types: dict[str, TypeProto], rng: random.Random) -> list[object]:
    """Declarations of a body's outputs: often without a shape, as exporters write them."""
    out = []
    for name in part.results:
        kind = TypeProto.FromString(types[name].SerializeToString())
        if rng.random() < 0.6 and kind.HasField("tensor_type"):
            kind.tensor_type.ClearField("shape")
        out.append(helper.make_value_info(names[name], kind))
    return out


def _weights_inside(graph: GraphProto, body: GraphProto, part: Part, rng: random.Random) -> None:
    """Some initializers that only the body reads move into it."""
    others = [n for place, n in enumerate(graph.node) if not part.start <= place < part.start + len(part.nodes)]
    read = {i.name for i in (*graph.output, *graph.input)}.union(*(reads_of(node) for node in others))
    movable = [t for t in graph.initializer if t.name in part.reads and t.name not in read and rng.random() < 0.5]
    kept = [t for t in graph.initializer if t not in movable]
    body.initializer.extend(movable)
    copies = [type(t).FromString(t.SerializeToString()) for t in kept]
    graph.ClearField("initializer")
    graph.initializer.extend(copies)


def _mark(model: ModelProto, kind: str) -> str:
    """An ending that no name of the model has."""
    graph = model.graph
    taken = _all_made(graph.node) | {i.name for i in graph.input} | {t.name for t in graph.initializer}
    number = 0
    while any(f"_{number}{kind}" in name for name in taken):
        number += 1
    return f"_{number}{kind}"


def _into_if(model: ModelProto, part: Part, types: dict[str, TypeProto], rng: random.Random) -> bool:
    graph = model.graph
    mark = _mark(model, "i")
    then, then_names = _twin(part, f"{mark}t")
    other, other_names = _twin(part, f"{mark}{rng.choice('eet')}")  # branches may use the same names
    tail = []
    for name in part.results:
        kind = types[name].tensor_type
        if kind.elem_type in FLOATS and rng.random() < 0.6:
            tail.append(helper.make_node("Neg", [other_names[name]], [f"{other_names[name]}n"]))
            other_names[name] += "n"
    bodies = (
        helper.make_graph(then, rng.choice(("then", "", "g")), [], _outputs(part, then_names, types, rng)),
        helper.make_graph([*other, *tail], "else", [], _outputs(part, other_names, types, rng)),
    )
    condition = f"cond{mark}"
    made = _condition(model, condition, rng, types, part)
    node = helper.make_node("If", [condition], part.results, then_branch=bodies[0], else_branch=bodies[1])
    _replace(graph, part, [*made, node])
    return True


def _condition(
    model: ModelProto, name: str, rng: random.Random, types: dict[str, TypeProto], part: Part
) -> list[NodeProto]:
    """Sources of a condition: an initializer, an input, or a comparison of a float that the part reads."""
    turn = rng.randrange(3)
    floats = [r for r in part.reads if r in types and types[r].tensor_type.elem_type == F32]
    if turn == 0 and floats and opset_of(model) >= 9:
        number = helper.make_tensor(f"{name}z", F32, [], [rng.choice((0.0, 1.0))])
        model.graph.initializer.append(number)
        return [
            helper.make_node("ReduceMax", [rng.choice(floats)], [f"{name}m"], keepdims=0),
            helper.make_node("Greater", [f"{name}m", f"{name}z"], [name]),
        ]
    if turn == 1:
        model.graph.input.append(helper.make_tensor_value_info(name, BOOL, []))
        return []
    model.graph.initializer.append(helper.make_tensor(name, BOOL, [], [rng.random() < 0.5]))
    return []


def _into_loop(model: ModelProto, part: Part, types: dict[str, TypeProto], rng: random.Random) -> bool:
    """The part runs some times; its results are stacked, and the first or the last is taken.

    One result may be carried from turn to turn in the place of an operand of its type.
    """
    graph, opset = model.graph, opset_of(model)
    if not all(types[name].HasField("tensor_type") for name in part.results) or opset < 11:
        return False
    mark = _mark(model, "l")
    nodes, names = _twin(part, mark)
    carried = _carried(part, types) if rng.random() < 0.6 else None
    state: list[str] = []
    if carried is not None:
        state = [f"state{mark}"]
        nodes = _renamed(nodes, {carried[0]: state[0]})
    info = helper.make_tensor_value_info
    inputs = [info(f"turn{mark}", I64, []), info(f"go{mark}", BOOL, [])]
    inputs += [helper.make_value_info(name, types[carried[0]]) for name in state if carried]
    declared = dict(zip(part.results, _outputs(part, names, types, rng), strict=True))
    stacked = [name for name in part.results if not carried or name != carried[1]]
    outputs = [
        info(f"goes{mark}", BOOL, []),
        *([declared[carried[1]]] if carried else []),
        *[declared[n] for n in stacked],
    ]
    nodes.append(helper.make_node("Identity", [f"go{mark}"], [f"goes{mark}"]))
    body = helper.make_graph(nodes, "body", inputs, outputs)
    if rng.random() < 0.5:
        _weights_inside(graph, body, part, rng)
    count = f"count{mark}"
    graph.initializer.append(helper.make_tensor(count, I64, [], [rng.choice((1, 2, 3))]))
    graph.initializer.append(helper.make_tensor(f"which{mark}", I64, [], [rng.choice((0, -1))]))
    results = [*([carried[1]] if carried else []), *[f"{name}{mark}s" for name in stacked]]
    loop = helper.make_node("Loop", [count, "", *([carried[0]] if carried else [])], results, body=body)
    gathers = [helper.make_node("Gather", [f"{n}{mark}s", f"which{mark}"], [n], axis=0) for n in stacked]
    _replace(graph, part, [loop, *gathers])
    return True


def _carried(part: Part, types: dict[str, TypeProto]) -> tuple[str, str] | None:
    """A name that the part reads and a result of the same type."""
    for read in part.reads:
        for result in part.results:
            if read in types and types[read] == types[result] and types[read].tensor_type.HasField("shape"):
                return read, result
    return None


def _into_scan(model: ModelProto, part: Part, types: dict[str, TypeProto], rng: random.Random) -> bool:
    """The part runs once for each element of a vector that it does not read."""
    graph = model.graph
    if not all(types[name].HasField("tensor_type") for name in part.results) or opset_of(model) < 11:
        return False
    mark = _mark(model, "s")
    nodes, names = _twin(part, mark)
    info = helper.make_tensor_value_info
    body = helper.make_graph(nodes, "body", [info(f"item{mark}", F32, [])], _outputs(part, names, types, rng))
    graph.initializer.append(helper.make_tensor(f"items{mark}", F32, [2], [1.0, 2.0]))
    graph.initializer.append(helper.make_tensor(f"which{mark}", I64, [], [rng.choice((0, -1))]))
    stacked = [f"{name}{mark}s" for name in part.results]
    scan = helper.make_node("Scan", [f"items{mark}"], stacked, num_scan_inputs=1, body=body)
    gathers = [
        helper.make_node("Gather", [s, f"which{mark}"], [name], axis=0)
        for s, name in zip(stacked, part.results, strict=True)
    ]
    _replace(graph, part, [scan, *gathers])
    return True


def _into_function(model: ModelProto, part: Part, types: dict[str, TypeProto], rng: random.Random) -> bool:
    """The part becomes a function; some of its attributes become the function's, with and without a default."""
    number = len(model.functions)
    domain = rng.choice(("local", "pkg.onnxscript.torch_lib", "test.fn"))
    name = rng.choice((f"Block{number}", f"Softmax{number}", f"aten_op{number}"))
    nodes, names = (part.nodes, {}) if rng.random() < 0.5 else _twin(part, rng.choice(("_f", ":1", "")))
    plain, defaults, given = _parameters(nodes, rng)
    function = FunctionProto(name=name, domain=domain, input=part.reads)
    function.output.extend(names.get(result, result) for result in part.results)
    function.attribute.extend(plain)
    function.attribute_proto.extend(defaults)
    function.node.extend(nodes)
    for entry in model.opset_import:
        function.opset_import.add(domain=entry.domain, version=entry.version)
    if rng.random() < 0.15:  # a default that nothing reads
        function.attribute_proto.append(helper.make_attribute("unused", 1))
    model.functions.append(function)
    if all(entry.domain != domain for entry in model.opset_import):
        model.opset_import.add(domain=domain, version=1)
        for other in model.functions:
            if all(entry.domain != domain for entry in other.opset_import):
                other.opset_import.add(domain=domain, version=1)
    call = NodeProto(op_type=name, domain=domain, input=part.reads, output=part.results)
    call.attribute.extend(given)
    _replace(model.graph, part, [call])
    if model.ir_version < 10:
        model.ir_version = 10
    return True


_PLAIN = (AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT)


def _parameters(
    nodes: Iterable[NodeProto], rng: random.Random
) -> tuple[list[str], list[AttributeProto], list[AttributeProto]]:
    """Turn attributes into references: the names of those without a default, the defaults, and what a call gives."""
    plain: list[str] = []
    defaults: list[AttributeProto] = []
    given: list[AttributeProto] = []
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type not in _PLAIN or rng.random() < 0.5 or attribute.ref_attr_name:
                continue
            name = f"{attribute.name}{len(plain) + len(defaults)}" if rng.random() < 0.7 else ""
            if not name:
                name = (
                    attribute.name
                    if attribute.name not in (*plain, *(d.name for d in defaults))
                    else "p" + attribute.name
                )
            if name in (*plain, *(d.name for d in defaults)):
                continue
            value = AttributeProto.FromString(attribute.SerializeToString())
            value.name = name
            if rng.random() < 0.5:
                defaults.append(value)
                if rng.random() < 0.4:
                    given.append(value)
            else:
                plain.append(name)
                given.append(value)
            kind, own = attribute.type, attribute.name
            attribute.Clear()
            attribute.name, attribute.type, attribute.ref_attr_name = own, kind, name
    return plain, defaults, given
