"""Small ONNX models, and what becomes of them when they are broken: byte by byte, or field by field."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, defs, parser

from tools.fuzz.nodes import attribute, info, tensor

_SIZES = (
    *(-(2**63), -(2**31), -7, -3, -2, -1, 0, 1, 1, 2, 3, 3, 4, 5, 9, 13, 17, 63, 65, 1024, 65536),
    *(2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1),
)
_REALS = (0.0, 1.0, -1.0, 0.5, 2.0, 1e-5, 1e-30, 3.4e38, float("inf"), float("-inf"), float("nan"))
_TEXTS = ("", "x", "n", "nope", "é", "a b", "\0", "nearest", "ij->i", "SAME_UPPER", "N" * 40, "unknown_0")
_SCHEMAS = {schema.name: schema.attributes for schema in defs.get_all_schemas()}
_ATTRIBUTES = sorted({name for attributes in _SCHEMAS.values() for name in attributes})
#: Messages that decide most.
_OFTEN = (*[NodeProto] * 5, *[AttributeProto] * 3, *[TensorProto] * 3, ValueInfoProto, *[Message] * 2)
#: Fields that nothing depends on.
_PROSE = ("doc_string", "metadata_props", "overload", "producer_name", "producer_version", "training_info", "name")
#: The texts of a field, by its name.
_WORDS = {
    "op_type": sorted(_SCHEMAS),
    "domain": ["", "ai.onnx", "com.microsoft", "ai.onnx.ml", "mine", "é"],
    "ref_attr_name": ["by", "", "axis"],
}

#: The weights and the nodes of models from ``x`` to ``y``.
_GRAPHS = (
    ("int64[1] axes = {1}", "h = ReduceSum<keepdims=0>(x, axes) y = Relu(h)"),
    ("", "h = Softmax<axis=-1>(x) i = ArgMax<axis=1>(h) y = Cast<to=1>(i)"),
    ("int64[1] k = {2}", "v, i = TopK(x, k) y = Transpose<perm=[2, 0, 1]>(v)"),
    ("int64[2] s = {2, -1}", "h = Reshape(x, s) y = Hardmax<axis=1>(h)"),
    (
        "bool c = {1}",
        "y = If(c)<then_branch = t () => (float p) {p = Relu(x)}, else_branch = e () => (float q) {q = Exp(x)}>",
    ),
    (
        "float two = {2}, float eps = {1e-5}, int64[1] axes = {2}",
        "m = ReduceMean(x, axes) d = Sub(x, m) s = Pow(d, two) v = ReduceMean(s, axes) e = Add(v, eps) r = Sqrt(e) "
        "y = Div(d, r)",
    ),
    ("", "s = Shape(x) z = ConstantOfShape(s) y = Add(x, z)"),
    ("float[2, 3, 1] w = {1, 2, 3, 4, 5, 6}", "h = Conv(x, w) y = GlobalAveragePool(h)"),
    ("int64[1] s = {0}, int64[1] e = {1}, int64[6] p = {0, 0, 1, 0, 0, 1}", "h = Slice(x, s, e) y = Pad(h, p)"),
    (
        "int64 m = {3}, bool c = {1}",
        "y = Loop(m, c, x)<body = b (int64 i, bool on, float[2, 3, n] a) => (bool on2, float[2, 3, n] b) "
        "{on2 = Identity(on) b = Add(a, x)}>",
    ),
    (
        "float s = {1}",
        "f, y = Scan(s, x)<num_scan_inputs=1, body = b (float s0, float[3, n] r) => (float t, float[3, n] u) "
        "{t = Identity(s0) u = Add(s0, r)}>",
    ),
    ("", "q = SequenceConstruct(x, x) y = ConcatFromSequence<axis=0>(q)"),
    (
        "int64 k = {0}, int64[1] k0 = {0}, int64[1] w = {-1}",
        "d = Shape(x) e = Gather<axis=0>(d, k) h = Unsqueeze(e, k0) s = Concat<axis=0>(h, w) y = Reshape(x, s)",
    ),
    (
        "int64 a = {0}, int64 b = {3}, int64 d = {1}",
        "r = Range(a, b, d) f = Cast<to=1>(r) s = ReduceSum<keepdims=0>(f) y = Add(x, s)",
    ),
    ("", "k = Constant<value_ints=[1, 3, 1]>() y = Expand(x, k)"),
    ("float[3] s = {1, 1, 2}", 'y = Resize<mode="nearest">(x, "", s)'),
    ("int64[1] d = {4}, float[2] v = {0, 1}", "h = ArgMax<axis=0>(x) y = OneHot<axis=-1>(h, d, v)"),
    ("int64[2] p = {1, 2}", "y, z = Split<axis=1>(x, p)"),
    ("", "y = com.microsoft.Gelu(x)"),
    ("", "y = mine.Twice<by=2>(x)"),
)
_TWICE = '<domain: "mine", opset_import: ["": 18]> Twice (a) => (b) { b = Add(a, a) }'


def base_models() -> list[ModelProto]:
    """Valid models that reach the importer's corners: weights, bodies, constants, shapes, selections, norms."""
    head = '<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1, "mine": 1]> g (float[2, 3, n] x) => (float[] y)'
    texts = [f"{head} <{weights}> {{ {nodes} }} {_TWICE if 'mine.' in nodes else ''}" for weights, nodes in _GRAPHS]
    return [parser.parse_model(text.replace("<>", "")) for text in texts]


def broken_bytes(data: bytes, rng: random.Random) -> bytes:
    """The file with a few bytes changed, cut out or put in."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at, other = rng.randrange(len(out)), rng.randrange(len(out))
        end, new = rng.choice(
            (
                (at + 1, bytes([rng.randrange(256)])),
                (at + 1, bytes([out[at] ^ 1 << rng.randrange(8)])),
                (at + rng.randrange(1, 20), b""),
                (at, rng.randbytes(rng.randrange(1, 8))),
                (at + 8, out[other : other + 8]),
                (len(out), b""),
            )
        )
        out[at:end] = new
        out = out or bytearray(b"\0")
    return bytes(out)


def broken_fields(model: ModelProto, rng: random.Random) -> ModelProto:
    """A copy with some fields changed, most often to what they must not be."""
    out = ModelProto()
    out.CopyFrom(model)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        messages = list(_messages(out))
        names = [name for each in messages if isinstance(each, NodeProto) for name in each.output]
        names += [each.name for each in messages if isinstance(each, (ValueInfoProto, TensorProto))]
        kind = rng.choice(_OFTEN)
        _change(rng.choice([each for each in messages if isinstance(each, kind)] or messages), rng, names)
    return out


def _messages(message: Message) -> Iterator[Message]:
    """A message and all inside it."""
    yield message
    for field, held in message.ListFields():
        if field.message_type is not None:
            for inner in held if _is_list(held) else [held]:
                yield from _messages(inner)


def _is_list(held: object) -> bool:
    return hasattr(held, "extend")


def _change(message: Any, rng: random.Random, names: Sequence[str]) -> None:
    """Change one field, most often one of those that are set."""
    fields = [field for field, _ in message.ListFields()]
    every = [field for field in message.DESCRIPTOR.fields if field.name not in _PROSE]
    field = rng.choice(fields if fields and rng.random() < 0.8 else every)
    held = getattr(message, field.name)
    if _is_list(held):
        items = [copy.deepcopy(item) for item in held]
        at, turn = rng.randrange(len(items) + 1), rng.randrange(4)
        like = copy.deepcopy(rng.choice(items)) if items and turn == 0 else None
        new = [] if turn == 1 else [_made(message, field, rng, names) if like is None else like]
        if isinstance(like, NodeProto):
            like.output[:] = [f"v{rng.randrange(1000)}" for _ in like.output]
        items[at : at + (turn != 0)] = new
        del held[:]
        held.extend(items)
    elif field.message_type is None:
        setattr(message, field.name, _made(message, field, rng, names))
    elif message.HasField(field.name):
        message.ClearField(field.name)
    else:
        held.CopyFrom(_made(message, field, rng, names))


def _made(message: Any, field: Any, rng: random.Random, names: Sequence[str]) -> Any:
    """A value for a field, one that makes some sense where the field is known."""
    if field.message_type is not None:
        return _message(message, field, rng, names)
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_UINT64):
        return rng.choice((1, 6, 7, 9, 10, 11, rng.randrange(30)))
    if field.cpp_type == field.CPPTYPE_INT64:
        return rng.choice(_SIZES)
    if field.cpp_type != field.CPPTYPE_STRING:
        return rng.choice(_REALS)
    if field.type == field.TYPE_BYTES:
        return rng.choice((rng.choice(_TEXTS).encode(), getattr(message, "raw_data", b"")[:5], rng.randbytes(8)))
    if field.name == "name" and isinstance(message, AttributeProto):
        return rng.choice(_ATTRIBUTES)
    return rng.choice(_WORDS.get(field.name) or [*_TEXTS, *names, *names])


def _message(message: Any, field: Any, rng: random.Random, names: Sequence[str]) -> Message:
    kind = GetMessageClass(field.message_type)
    if kind is AttributeProto and (declared := _SCHEMAS.get(getattr(message, "op_type", ""), {})):
        name = rng.choice(sorted(declared))
        return attribute(name, declared[name].type, rng)
    if kind is TensorProto:
        return tensor(rng.choice([*names, "w"]), rng)
    if kind is ValueInfoProto:
        return info(rng.choice([*names, "w"]), rng)
    made = kind()
    for inner in field.message_type.fields:
        held = getattr(made, inner.name)
        if inner.message_type is None and rng.random() < 0.5:
            value = _made(made, inner, rng, names)
            held.append(value) if _is_list(held) else setattr(made, inner.name, value)
    return made
