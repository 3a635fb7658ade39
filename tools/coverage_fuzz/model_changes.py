"""Changes to an ONNX model, field by field, so that what comes out is still a model: most often a wrong one."""

from __future__ import annotations

import random
from collections.abc import Callable

from google.protobuf.message import DecodeError, Message
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, defs

from dmlc.importers.registry import READERS
from dmlc.inference.registry import ruled_operators

_SIZES = (
    *(-(2**63), -(2**31), -7, -3, -2, -1, 0, 1, 2, 3, 4, 5, 17, 63, 64, 65, 1024, 4096, 65536),
    *(2**31 - 1, 2**31, 2**32, 2**40, 2**59, 2**62, 2**63 - 1),
)
_SMALL = (-2, -1, 0, 1, 1, 2, 3, 3, 4)
_REALS = (0.0, 1.0, -1.0, 1e-5, 1e-30, 3.4e38, float("inf"), float("-inf"), float("nan"), 0.5, 2.0)
_TEXTS = ("", "x", "y", "n", "nope", "é", "a b", "\0", "nearest", "BCHW", "ij->i", "none", "add", "N" * 40, "unknown_0")
_DOMAINS = ("", "ai.onnx", "com.microsoft", "ai.onnx.ml", "ai.onnx.training", "mine", "é")
_OPSETS = (-1, 0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 99, 2**40)
_OWN = sorted({name for _, name in READERS} | ruled_operators())
_ALL = sorted({(schema.domain, schema.name) for schema in defs.get_all_schemas()})
#: By operator the names of attributes; the last version's and older ones'.
_ATTRIBUTES: dict[str, list[str]] = {}
for _schema in defs.get_all_schemas_with_history():
    _ATTRIBUTES.setdefault(_schema.name, []).extend(_schema.attributes)
_EVERY_ATTRIBUTE = sorted({name for names in _ATTRIBUTES.values() for name in names})
DICTIONARY = (*_OWN, *_EVERY_ATTRIBUTE)
#: Larger models take longer and show no more.
_MOST_NODES = 4
_WIDTHS = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}


def mutate(data: bytes, most: int, rng: random.Random, default: Callable[[bytes], bytes]) -> bytes:
    """Another model: some of its fields changed, or some bytes."""
    if rng.random() < 0.1:
        return default(data)
    model = ModelProto()
    try:
        model.ParseFromString(data)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            rng.choice(_CHANGES)(model, rng)
        out: bytes = model.SerializeToString()
    except (DecodeError, UnicodeError, ValueError, TypeError):  # no model, or one that cannot be written
        return default(data)
    return out if len(out) <= most else default(data)


# --- picking


def _graphs(model: ModelProto) -> list[GraphProto]:
    """The main graph and those inside its nodes."""
    out = [model.graph]
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                out.append(attribute.g)
                out += [a.g for n in attribute.g.node for a in n.attribute if a.HasField("g")]
            out += attribute.graphs
    return out


def _graph(model: ModelProto, rng: random.Random) -> GraphProto:
    return model.graph if rng.random() < 0.7 else rng.choice(_graphs(model))


def _node(model: ModelProto, rng: random.Random) -> NodeProto:
    bodies = [f.node for f in model.functions if f.node]
    nodes = rng.choice(bodies) if bodies and rng.random() < 0.2 else _graph(model, rng).node
    return rng.choice(nodes) if nodes else model.graph.node.add(op_type=rng.choice(_OWN))


def _name(model: ModelProto, rng: random.Random) -> str:
    """A value's name, one of a graph around most often."""
    graph = _graph(model, rng)
    names = [i.name for i in graph.input] + [t.name for t in graph.initializer]
    names += [name for n in graph.node for name in n.output]
    return rng.choice(names) if names and rng.random() < 0.85 else rng.choice(_TEXTS)


def _tensor(model: ModelProto, rng: random.Random) -> TensorProto:
    graph = _graph(model, rng)
    found = list(graph.initializer)
    found += [a.t for n in graph.node for a in n.attribute if a.HasField("t")]
    return rng.choice(found) if found else graph.initializer.add(name="w", data_type=7, dims=[1], int64_data=[1])


def _type(model: ModelProto, rng: random.Random) -> TypeProto:
    graph = _graph(model, rng)
    infos = [*graph.input, *graph.output, *graph.value_info]
    if not infos or rng.random() < 0.1:
        return graph.value_info.add(name=_name(model, rng)).type
    return rng.choice(infos).type


def _size(rng: random.Random) -> int:
    return rng.choice(_SMALL) if rng.random() < 0.6 else rng.choice(_SIZES)


# --- nodes


def _operator(model: ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    turn = rng.random()
    if turn < 0.7:
        node.op_type = rng.choice(_OWN)
    elif turn < 0.9:
        node.domain, node.op_type = rng.choice(_ALL)
        if all(node.domain != entry.domain for entry in model.opset_import):
            model.opset_import.add(domain=node.domain, version=rng.choice((1, 2, 3, 4, 5)))
    else:
        node.domain = rng.choice(_DOMAINS)


def _input(model: ModelProto, rng: random.Random) -> None:
    node, name, turn = _node(model, rng), _name(model, rng), rng.random()
    if turn < 0.6 and node.input:
        node.input[rng.randrange(len(node.input))] = name
    elif turn < 0.85:
        node.input.append(name)
    elif node.input:
        del node.input[rng.randrange(len(node.input))]


def _output(model: ModelProto, rng: random.Random) -> None:
    node, turn = _node(model, rng), rng.random()
    if turn < 0.4 and node.output:
        node.output[rng.randrange(len(node.output))] = _name(model, rng)
    elif turn < 0.8:
        node.output.append(f"v{rng.randrange(20)}")
    elif node.output:
        del node.output[rng.randrange(len(node.output))]


def _new_node(model: ModelProto, rng: random.Random) -> None:
    """A node between: it reads some values, and something reads it."""
    graph, name = _graph(model, rng), f"v{rng.randrange(1000)}"
    if len(graph.node) > _MOST_NODES:
        _fewer_nodes(model, rng)
        return
    node = NodeProto(op_type=rng.choice(_OWN), output=[name])
    node.input.extend(_name(model, rng) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 5))))
    graph.node.insert(rng.randint(0, len(graph.node)), node)
    if rng.random() < 0.7:
        reader = rng.choice(graph.node)
        if reader.input:
            reader.input[rng.randrange(len(reader.input))] = name
    if rng.random() < 0.5:
        _fill(graph.node[-1] if len(graph.node) == 1 else rng.choice(graph.node), rng)


def _fewer_nodes(model: ModelProto, rng: random.Random) -> None:
    nodes = _graph(model, rng).node
    if nodes:
        del nodes[rng.randrange(len(nodes))]


def _copied_node(model: ModelProto, rng: random.Random) -> None:
    nodes = _graph(model, rng).node
    if nodes and len(nodes) < _MOST_NODES:
        copy = NodeProto()
        copy.CopyFrom(rng.choice(nodes))
        if rng.random() < 0.8:
            copy.output[:] = [f"v{rng.randrange(1000)}" for _ in copy.output]
        nodes.insert(rng.randint(0, len(nodes)), copy)


# --- attributes


def _attribute(model: ModelProto, rng: random.Random) -> None:
    node, turn = _node(model, rng), rng.random()
    if not node.attribute or turn < 0.3:
        _fill(node, rng)
    elif turn < 0.4:
        del node.attribute[rng.randrange(len(node.attribute))]
    elif turn < 0.5:
        rng.choice(node.attribute).type = rng.randrange(15)
    elif turn < 0.55:
        rng.choice(node.attribute).name = rng.choice(_EVERY_ATTRIBUTE)
    elif turn < 0.57:
        rng.choice(node.attribute).ref_attr_name = rng.choice(("by", "", "axis"))
    elif turn < 0.6:
        node.attribute.add().CopyFrom(rng.choice(node.attribute))
    else:
        _value(rng.choice(node.attribute), rng)


def _fill(node: NodeProto, rng: random.Random) -> None:
    """One more attribute, one that the operator has most often."""
    names = _ATTRIBUTES.get(node.op_type) if rng.random() < 0.9 else None
    attribute = node.attribute.add(name=rng.choice(names or _EVERY_ATTRIBUTE))
    kinds = (
        defs.get_schema(node.op_type, node.domain).attributes if names and defs.has(node.op_type, node.domain) else {}
    )
    known = kinds.get(attribute.name)
    attribute.type = known.type.value if known is not None and rng.random() < 0.9 else rng.randrange(15)
    _value(attribute, rng)


def _value(a: AttributeProto, rng: random.Random) -> None:
    """A value of the attribute's type, at times of another one."""
    kind = a.type if rng.random() < 0.9 else rng.randrange(15)
    if kind == AttributeProto.INT:
        a.i = _size(rng)
    elif kind == AttributeProto.FLOAT:
        a.f = rng.choice(_REALS)
    elif kind == AttributeProto.STRING:
        a.s = rng.choice((*_TEXTS, "\ud7ff")).encode() if rng.random() < 0.9 else rng.randbytes(3)
    elif kind == AttributeProto.INTS:
        a.ints[:] = [_size(rng) for _ in range(rng.choice((0, 1, 1, 2, 3, 4, 9)))]
    elif kind == AttributeProto.FLOATS:
        a.floats[:] = [rng.choice(_REALS) for _ in range(rng.choice((0, 1, 2, 4)))]
    elif kind == AttributeProto.STRINGS:
        a.strings[:] = [rng.choice(_TEXTS).encode() for _ in range(rng.choice((0, 1, 2)))]
    elif kind == AttributeProto.TENSOR:
        _fill_tensor(a.t, rng)
    elif kind == AttributeProto.TENSORS:
        _fill_tensor(a.tensors.add(), rng)
    elif kind == AttributeProto.GRAPH:
        a.g.node.add(op_type=rng.choice(_OWN), input=["x"], output=["b"])
        a.g.output.add(name="b")
    elif kind == AttributeProto.GRAPHS:
        a.graphs.add().output.add(name="x")
    elif kind == AttributeProto.SPARSE_TENSOR:
        _fill_tensor(a.sparse_tensor.values, rng)
    elif kind == AttributeProto.TYPE_PROTO:
        a.tp.tensor_type.elem_type = rng.randrange(26)


# --- weights


def _fill_tensor(tensor: TensorProto, rng: random.Random) -> None:
    """Data that fits its shape, most often."""
    tensor.data_type = rng.choice((1, 1, 7, 7, 6, 9, 10, 11)) if rng.random() < 0.8 else rng.randrange(30)
    tensor.dims[:] = [rng.choice((0, 1, 1, 2, 3)) for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 3)))]
    count = 1
    for size in tensor.dims:
        count *= size
    for name in ("raw_data", "int64_data", "float_data", "int32_data", "double_data", "uint64_data"):
        tensor.ClearField(name)
    numbers = [_size(rng) for _ in range(count)]
    if tensor.data_type == 7 and rng.random() < 0.5:
        tensor.int64_data[:] = numbers
    elif tensor.data_type == 1 and rng.random() < 0.5:
        tensor.float_data[:] = [rng.choice(_REALS) for _ in numbers]
    else:
        width = _WIDTHS.get(tensor.data_type, 1)
        tensor.raw_data = b"".join((n % 256**width).to_bytes(width, "little") for n in numbers)


def _weight(model: ModelProto, rng: random.Random) -> None:
    tensor, turn = _tensor(model, rng), rng.random()
    if turn < 0.15:
        tensor.data_type = rng.randrange(30)
    elif turn < 0.3:
        tensor.dims[:] = [_size(rng) for _ in range(rng.randrange(4))]
    elif turn < 0.6:
        _numbers(tensor, rng)
    elif turn < 0.7:
        _fill_tensor(tensor, rng)
    elif turn < 0.75:
        tensor.data_location = rng.choice((0, 1, 1))
        for key in ("location", "offset", "length")[: rng.randrange(4)]:
            tensor.external_data.add(key=key, value=rng.choice(("w.bin", "../w", "/dev/zero", "0", "-1", "9" * 30, "")))
    elif turn < 0.8:
        tensor.name = _name(model, rng)
    elif turn < 0.83:
        tensor.segment.begin = _size(rng)
    elif turn < 0.9:
        tensor.raw_data = tensor.raw_data[: rng.randrange(9)]
    else:
        tensor.int32_data.append(_size(rng) % 2**31)
        tensor.string_data.append(rng.choice(_TEXTS).encode())


def _numbers(tensor: TensorProto, rng: random.Random) -> None:
    """The same shape with other integers in it: axes, sizes, counts."""
    width = _WIDTHS.get(tensor.data_type, 4)
    count = len(tensor.raw_data) // width
    if count:
        numbers = [_size(rng) % 256**width for _ in range(min(count, 16))]
        new = b"".join(number.to_bytes(width, "little") for number in numbers)
        tensor.raw_data = new + tensor.raw_data[len(new) :]
    elif tensor.int64_data:
        tensor.int64_data[:] = [_size(rng) for _ in tensor.int64_data]


def _new_weight(model: ModelProto, rng: random.Random) -> None:
    """A new constant for some operand: axes, a shape, a scale."""
    tensor = _graph(model, rng).initializer.add(name=f"w{rng.randrange(1000)}")
    _fill_tensor(tensor, rng)
    node, turn = _node(model, rng), rng.random()
    if node.input and turn < 0.6:
        node.input[rng.randrange(len(node.input))] = tensor.name
    elif turn < 0.9:
        node.input.append(tensor.name)
    if rng.random() < 0.05:
        sparse = model.graph.sparse_initializer.add()
        sparse.values.CopyFrom(tensor)
        _fill_tensor(sparse.indices, rng)
        sparse.dims[:] = [_size(rng)]


def _fewer_weights(model: ModelProto, rng: random.Random) -> None:
    weights = _graph(model, rng).initializer
    if weights:
        del weights[rng.randrange(len(weights))]


# --- the interface


def _value_type(model: ModelProto, rng: random.Random) -> None:
    type_, turn = _type(model, rng), rng.random()
    if turn < 0.25:
        type_.tensor_type.elem_type = rng.choice((1, 6, 7, 9, 10, 11)) if rng.random() < 0.7 else rng.randrange(30)
    elif turn < 0.8:
        sizes = type_.tensor_type.shape.dim
        if turn < 0.4 or not sizes:
            sizes.add(dim_value=rng.choice((1, 2, 3)))
        elif turn < 0.5:
            del sizes[rng.randrange(len(sizes))]
        elif turn < 0.7:
            rng.choice(sizes).dim_value = _size(rng)
        else:
            rng.choice(sizes).dim_param = rng.choice((*_TEXTS, "m", "k"))
    elif turn < 0.85:
        type_.tensor_type.ClearField("shape")
    elif turn < 0.9:
        type_.sequence_type.elem_type.tensor_type.elem_type = 1
    elif turn < 0.93:
        type_.optional_type.elem_type.tensor_type.elem_type = 1
    elif turn < 0.96:
        type_.map_type.key_type = 7
    else:
        type_.Clear()


def _interface(model: ModelProto, rng: random.Random) -> None:
    graph = _graph(model, rng)
    infos = rng.choice((graph.input, graph.output, graph.output, graph.value_info))
    turn = rng.random()
    if turn < 0.5 and infos:
        rng.choice(infos).name = _name(model, rng)
    elif turn < 0.85:
        info = infos.add(name=_name(model, rng))
        if rng.random() < 0.5:
            info.type.tensor_type.elem_type = rng.choice((1, 7, 9))
    elif infos:
        del infos[rng.randrange(len(infos))]


def _frame(model: ModelProto, rng: random.Random) -> None:
    """Changes around the graph: versions, functions, names."""
    turn = rng.random()
    if turn < 0.6 and model.opset_import:
        rng.choice(model.opset_import).version = rng.choice(_OPSETS)
    elif turn < 0.7:
        model.opset_import.add(domain=rng.choice(_DOMAINS), version=rng.choice(_OPSETS))
    elif turn < 0.75 and model.opset_import:
        del model.opset_import[rng.randrange(len(model.opset_import))]
    elif turn < 0.85:
        model.ir_version = rng.choice((-1, 0, 1, 3, 4, 8, 10, 99))
    elif turn < 0.95:
        function = model.functions.add(domain=rng.choice(_DOMAINS), name=rng.choice(_OWN), input=["a"], output=["b"])
        function.node.add(op_type=rng.choice(_OWN), input=["a"], output=["b"])
        function.opset_import.add(version=rng.choice(_OPSETS))
    else:
        model.graph.name = rng.choice(_TEXTS)


def _swapped_fields(model: ModelProto, rng: random.Random) -> None:
    """Two nodes or two sizes change places."""
    nodes: list[Message] = list(_graph(model, rng).node)
    if len(nodes) > 1:
        a, b = rng.sample(nodes, 2)
        old = NodeProto()
        old.CopyFrom(a)
        a.CopyFrom(b)
        b.CopyFrom(old)


_CHANGES: tuple[Callable[[ModelProto, random.Random], None], ...] = (
    *[_operator] * 3, *[_input] * 3, _output, *[_new_node] * 2, _fewer_nodes, _copied_node, *[_attribute] * 4,
    *[_weight] * 3, *[_new_weight] * 2, _fewer_weights, *[_value_type] * 2, _interface, _frame, _swapped_fields,
)  # fmt: skip
