"""Models of attention: the spellings that exporters write, and what only looks like attention."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper, shape_inference

import dmlc
from tests import kit

#: Batch, heads, lengths of query and key, size of a head.
B, N, S, T, H = 2, 4, 5, 7, 8
SIZES = {"B": B, "N": N, "S": S, "T": T, "H": H}
FLOAT, HALF, BOOL = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BOOL
LOWEST = float(np.finfo(np.float32).min)
#: A few roundings of the dtype's own precision, of sums of few products of numbers near 1.
TOLERANCE = {"float32": 2e-5, "float16": 1e-2}


@dataclass
class Sketch:
    """A model under construction: a node a call, constants by value."""

    opset: int = 17
    dtype: int = FLOAT
    nodes: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    shapes: dict[str, tuple[list[Any], int]] = field(default_factory=dict)

    def input(self, name: str, shape: list[Any], dtype: int | None = None) -> str:
        dtype = self.dtype if dtype is None else dtype
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        self.shapes[name] = (shape, dtype)
        return name

    def constant(self, value: Any, dtype: Any = None) -> str:
        array = np.asarray(value, dtype or (np.float16 if self.dtype == HALF else np.float32))
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return str(self.constants[-1].name)

    def __call__(self, op: str, *operands: str, results: int = 1, **attributes: Any) -> Any:
        names = [f"v{len(self.nodes)}_{i}" for i in range(results)]
        domain = "com.microsoft" if attributes.pop("own", False) else ""
        self.nodes.append(helper.make_node(op, list(operands), names, domain=domain, **attributes))
        return names[0] if results == 1 else names

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def heads(self, x: str, size: int = H, heads: int = N) -> str:
        """(batch, length, heads * size) as (batch, heads, length, size)."""
        return str(self("Transpose", self("Reshape", x, self.ints(0, 0, heads, size)), perm=[0, 2, 1, 3]))

    def merged(self, y: str, size: int = H) -> str:
        """Back to (batch, length, heads * size)."""
        return str(self("Reshape", self("Transpose", y, perm=[0, 2, 1, 3]), self.ints(0, 0, N * size)))

    def times(self, x: str, number: float, op: str = "Mul") -> str:
        return str(self(op, x, self.constant(number)))

    def done(self, *outputs: str) -> ModelProto:
        infos = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, "attention", self.inputs, infos, self.constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        inferred = shape_inference.infer_shapes(made)
        del made.graph.output[:]
        made.graph.output.extend(inferred.graph.output)
        return made


def qkv(s: Sketch, *, value_size: int = H, batch: Any = B, length: Any = S, total: Any = T) -> tuple[str, str, str]:
    """Query, key and value, each (batch, heads, length, size)."""
    q = s.heads(s.input("q", [batch, length, N * H]))
    k = s.heads(s.input("k", [batch, total, N * H]))
    v = s.heads(s.input("v", [batch, total, N * value_size]), value_size)
    return q, k, v


def attention(
    s: Sketch, q: str, k: str, v: str, *, scale: float | None = 0.3, bias: str | None = None, size: int = H
) -> str:
    scores = s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2]))
    if scale is not None:
        scores = s.times(scores, scale)
    if bias is not None:
        scores = s("Add", scores, bias)
    return s.merged(s("MatMul", s("Softmax", scores, axis=-1), v), size)


def feeds_of(model: ModelProto, seed: int = 0, **sizes: int) -> dict[str, np.ndarray]:
    """Data for the inputs; a truth is true four times in five."""
    rng = np.random.default_rng(seed)
    out = {}
    for info in model.graph.input:
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in info.type.tensor_type.shape.dim]
        if info.type.tensor_type.elem_type == BOOL:
            out[info.name] = rng.random(shape) < 0.8
            out[info.name][..., 0] = True
        else:
            dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            out[info.name] = rng.normal(size=shape).astype(dtype)
    return out


def fused(model: ModelProto, **options: Any) -> tuple[ModelProto, list[str], list[str]]:
    """The model with attention fused, the classes of the fusions, and the reasons against others."""
    program = dmlc.compile(model, fuse=("attention",), **options)
    classes = [entry.rewrite_class for entry in program.ledger if entry.rule == "multi-head-attention"]
    reasons = [remark.reason() for remark in program.remarks if remark.rule == "multi-head-attention"]
    return program.to_onnx(), classes, reasons


def run(model: ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return list(kit.run(model, feeds).values())


def same_numbers(model: ModelProto, made: ModelProto, feeds: dict[str, np.ndarray]) -> None:
    for a, b in zip(run(model, feeds), run(made, feeds), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        tolerance = TOLERANCE.get(str(a.dtype), 0)
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


def operators(model: ModelProto) -> Counter[str]:
    views = ("Reshape", "Squeeze", "Unsqueeze")
    return Counter(node.op_type for node in model.graph.node if node.op_type not in views)
