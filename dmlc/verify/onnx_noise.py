"""A model whose results on the way can each be moved by a factor: what rounding them otherwise would do.

D. S. Parker, Monte Carlo Arithmetic, UCLA CSD-970002, 1997, does so with every operation. One factor for a whole tensor
keeps the ties and the zeros in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from onnx import ModelProto, NodeProto, TensorProto, helper

from dmlc.verify.trace import op_key
from dmlc.verify.unstable import EXACT_OPS

#: ONNX Runtime's names for the types that move, and NumPy's.
_FLOATS = {
    "tensor(float16)": (TensorProto.FLOAT16, "float16"),
    "tensor(float)": (TensorProto.FLOAT, "float32"),
    "tensor(double)": (TensorProto.DOUBLE, "float64"),
}


def with_noise(
    model: ModelProto, moved: Collection[str], types: Mapping[str, str]
) -> tuple[ModelProto, dict[str, str]]:
    """The model with an input more for each of the ``moved`` values that is rounded, and the dtypes of those inputs."""
    out = ModelProto()
    out.CopyFrom(model)
    noise: dict[str, str] = {}
    nodes: list[NodeProto] = []
    for node in out.graph.node:
        nodes.append(node)
        if op_key(node.op_type) in EXACT_OPS:
            continue
        for place, name in enumerate(node.output):
            if name in moved and types.get(name) in _FLOATS:
                elem_type, dtype = _FLOATS[types[name]]
                node.output[place], factor = f"{name}//as rounded", f"{name}//factor"
                nodes.append(helper.make_node("Mul", [node.output[place], factor], [name]))
                out.graph.input.append(helper.make_tensor_value_info(factor, elem_type, ()))
                noise[factor] = dtype
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del out.graph.node[:]
    out.graph.node.extend(copies)
    return out, noise


def with_barriers(model: ModelProto, values: Collection[str]) -> ModelProto:
    """The model with two Identity nodes behind each of the values: without optimizations no kernel goes across them.

    ONNX Runtime computes a single one between casts in f32, and drops these casts (insert_cast_transformer.cc).
    """
    out = ModelProto()
    out.CopyFrom(model)
    nodes: list[NodeProto] = []
    for node in out.graph.node:
        nodes.append(node)
        for place, name in enumerate(node.output):
            if name in values:
                node.output[place], copy = f"{name}//as computed", f"{name}//copy"
                nodes.append(helper.make_node("Identity", [node.output[place]], [copy]))
                nodes.append(helper.make_node("Identity", [copy], [name]))
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del out.graph.node[:]
    out.graph.node.extend(copies)
    return out
