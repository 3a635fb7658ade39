"""Models of one node, of any operator at any version, with operands, attributes and weights that need not fit it.

``python -m tools.fuzz.nodes SEED COUNT`` reads so many of each operator as ``dmlc compile`` does and prints the
operators that it got through: where a library ends the process, the next one is the culprit.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from typing import Any

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, defs, helper

_NUMBERS = (0, 1, -1, 2, 5, -7, 7, 8, 1000, 2**31, -(2**63), 2**63 - 1)
_TEXTS = ("", "SAME_UPPER", "VALID", "NOTSET", "ij,jk->ik", "i,", "->", "(", "linear", "sum", "SVM", "é")
_REALS = (0.0, 1.0, -1.0, 1e30, float("inf"), float("nan"))
_SIZES = (0, 1, 2, 3, 4, 5, "N", None, -1, 2**40)
_TYPES = (1, 1, 1, 1, 7, 7, 6, 8, 9, 10, 11, 16, 20, 22, 0, 99)
_A = defs.OpSchema.AttrType


def model(schema: defs.OpSchema, rng: random.Random) -> ModelProto:
    """A model whose only node is of ``schema``; ``rng`` says in what it is wrong."""
    count = rng.randint(0, min(schema.max_input, 6) + (rng.random() < 0.1))
    if rng.random() < 0.6:
        count = max(count, min(schema.min_input, 8))
    results = rng.randint(max(0, schema.min_output - 1), min(schema.max_output, 5) + 1)
    names = ["" if rng.random() < 0.08 else f"i{k}" for k in range(count)]
    node = NodeProto(op_type=schema.name, domain=schema.domain, input=names, output=[f"o{k}" for k in range(results)])
    for name, declared in schema.attributes.items():
        if rng.random() < (0.9 if declared.required else 0.4):
            node.attribute.append(attribute(name, declared.type, rng))
    graph = GraphProto(name="g", node=[node])
    made = []
    for name in filter(None, names):
        turn = rng.random()
        if turn < 0.15:
            made.append(name)
        elif turn < 0.45:
            graph.initializer.append(tensor(name, rng))
        else:
            graph.input.append(info(name, rng))
    if made:  # by a node of which nothing is known
        graph.node.insert(0, NodeProto(op_type="Unknown", domain="other", output=made))
    graph.output.extend(info(name, rng) for name in node.output if name)
    opsets = {"other": 1, "": 21, schema.domain: schema.since_version}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*entry) for entry in opsets.items()])


def attribute(name: str, kind: Any, rng: random.Random) -> AttributeProto:
    """An attribute of a type, with any values."""
    out = AttributeProto(name=name, type=kind.value)
    if kind in (_A.INT, _A.INTS):
        out.i = rng.choice(_NUMBERS)
        out.ints.extend(rng.choice(_NUMBERS) for _ in range(rng.randint(0, 4)))
    elif kind in (_A.FLOAT, _A.FLOATS):
        out.f = rng.choice(_REALS)
        out.floats.extend(rng.choice(_REALS) for _ in range(rng.randint(0, 4)))
    elif kind in (_A.STRING, _A.STRINGS):
        out.s = rng.choice(_TEXTS).encode()
        out.strings.extend(rng.choice(_TEXTS).encode() for _ in range(rng.randint(0, 3)))
    elif kind == _A.TENSOR:
        out.t.CopyFrom(tensor("", rng))
    elif kind == _A.GRAPH:
        out.g.CopyFrom(_branch(rng))
    elif kind == _A.TYPE_PROTO and rng.random() < 0.8:
        out.tp.CopyFrom(info("", rng).type)
    return out


def _branch(rng: random.Random) -> GraphProto:
    taken = [info(f"q{k}", rng) for k in range(rng.randint(0, 4))]
    node = NodeProto(op_type="Identity", input=[rng.choice(("q0", "i0"))], output=["z"])
    return GraphProto(name="b", node=[node], input=taken, output=[info("z", rng)] * rng.choice((0, 1, 1, 2)))


def tensor(name: str, rng: random.Random) -> TensorProto:
    """A weight, which need not be sound."""
    kind, turn = rng.choice(_TYPES), rng.random()
    if turn < 0.1:
        return TensorProto(name=name)
    if turn < 0.2:
        return TensorProto(name=name, data_type=kind, dims=[rng.choice((0, 1, 3, -1, 2**40))])
    if turn < 0.3:
        return TensorProto(name=name, data_type=kind, dims=[2], raw_data=b"\1\2\3")
    numbers = [rng.choice((0, 1, 2, -1, -5, 100)) for _ in range(rng.randint(0, 4))]
    shape = rng.choice(([len(numbers)], [1, len(numbers)]))
    return helper.make_tensor(name, rng.choice((1, 6, 7)), shape, numbers)


def info(name: str, rng: random.Random) -> ValueInfoProto:
    """A value of any type and sizes."""
    out, turn = ValueInfoProto(name=name), rng.random()
    if turn < 0.06:
        return out
    if turn < 0.12:
        out.type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None)))
    elif turn < 0.15:
        out.type.CopyFrom(helper.make_optional_type_proto(helper.make_tensor_type_proto(1, None)))
    elif turn < 0.18:
        out.type.CopyFrom(helper.make_sparse_tensor_type_proto(1, [2, 3]))
    elif turn < 0.2:
        out.type.CopyFrom(TypeProto(map_type=TypeProto.Map(key_type=7)))
    else:
        shape = None if rng.random() < 0.1 else [rng.choice(_SIZES) for _ in range(rng.randint(0, 5))]
        out.type.CopyFrom(helper.make_tensor_type_proto(rng.choice(_TYPES), shape))
    return out


def main(seed: int, count: int) -> None:
    from tools.fuzz.readers import judge, read_model

    for schema in defs.get_all_schemas_with_history():
        label = f"{schema.domain or 'ai.onnx'}.{schema.name}-{schema.since_version}"
        rng, came = random.Random(f"{seed} {label}"), Counter[str]()
        for _ in range(count):
            try:
                came[judge(read_model, model(schema, rng).SerializeToString()) or "fine"] += 1
            except Exception:
                print(f"{label}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        print(label, dict(came), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
