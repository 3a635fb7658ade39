"""What is known of values without ONNX's schemas is what ONNX says of them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, defs, helper, numpy_helper, shape_inference

from dmlc.codegen.onnx.known import parameters
from dmlc.codegen.onnx.node_placement import BY_VERSION
from dmlc.codegen.onnx.plain_types import told_types
from dmlc.codegen.onnx.writer import ELEMENT_TYPE
from dmlc.ir import TensorType, symbol
from dmlc.ir.dtype import DTYPES, bool_, f32
from dmlc.targets.provider import provider

NUMBERS = {number: dtype for dtype, number in ELEMENT_TYPE.items()}
X, B = TensorType(f32, (2, 3, 4)), TensorType(bool_, (2, 3, 4))
ROW = TensorType(f32, (3, 1))


def one(
    op: str, *operands: TensorType, opset: int = 18, second: list[int] | None = None, **attributes: Any
) -> ModelProto:
    names = [f"x{i}" for i in range(len(operands))]
    weights = [] if second is None else [numpy_helper.from_array(np.array(second, np.int64), "second")]
    node = helper.make_node(op, [*names, *["second"][: len(weights)]], ["y"], **attributes)
    inputs = [
        helper.make_tensor_value_info(name, ELEMENT_TYPE[type.dtype], type.shape)
        for name, type in zip(names, operands, strict=True)
    ]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def told(made: ModelProto, *operands: TensorType) -> TensorType | None:
    return told_types(made, {f"x{i}": type for i, type in enumerate(operands)}).get("y")


def inferred(made: ModelProto) -> TensorType:
    type = shape_inference.infer_shapes(made, data_prop=True).graph.output[0].type.tensor_type
    return TensorType(NUMBERS[type.elem_type], tuple(size.dim_value for size in type.shape.dim))


PLAIN = [
    *[one(op, X) for op in ("Abs", "Exp", "Floor", "Identity", "Log", "Neg", "Relu", "Sigmoid", "Sqrt", "Tanh", "Erf")],
    *[one(op, X) for op in ("Softmax", "LogSoftmax", "Reciprocal", "Round", "Sign", "Sin", "Cos", "Ceil")],
    *[one(op, X, ROW) for op in ("Add", "Sub", "Mul", "Div", "Pow", "Equal", "Less", "LessOrEqual", "Greater")],
    *[one(op, B, B) for op in ("And", "Or")],
    one("Not", B),
    *[one("Cast", X, to=ELEMENT_TYPE[dtype]) for dtype in DTYPES],
    one("Reshape", X, second=[6, 4]),
    *[one(op, X, axis=axis, keepdims=keep) for op in ("ArgMax", "ArgMin") for axis in (0, -1) for keep in (0, 1)],
    one("ArgMax", X),
    *[one("ReduceSum", X, second=axes, keepdims=keep) for axes in ([1], [0, -1]) for keep in (0, 1)],
    *[one(op, X, second=[2]) for op in ("ReduceMean", "ReduceMax", "ReduceLogSumExp", "ReduceL2")],
    *[one(op, X, opset=17, axes=[0, 2]) for op in ("ReduceMean", "ReduceMin", "ReduceProd")],
]


@pytest.mark.parametrize("made", PLAIN, ids=lambda made: made.graph.node[0].op_type)
def test_plain_types_are_those_of_onnx(made: ModelProto) -> None:
    tensors = [info.type.tensor_type for info in made.graph.input]
    operands = [TensorType(NUMBERS[t.elem_type], tuple(size.dim_value for size in t.shape.dim)) for t in tensors]
    assert told(made, *operands) == inferred(made)


@pytest.mark.parametrize(
    "made",
    [
        one("Reshape", X, second=[0, -1]),
        one("ReduceSum", X),
        one("ReduceSum", X, second=[]),
        one("ReduceSum", X, second=[3]),
        one("Transpose", X),
        one("Add", X, TensorType(f32, (5,))),
        one("Cast", X),
        one("Cast", X, to=TensorProto.STRING),
        one("Add", X, ROW, opset=6, broadcast=1, axis=1),
    ],
    ids=lambda made: made.graph.node[0].op_type,
)
def test_what_is_not_plain_is_left_to_onnx(made: ModelProto) -> None:
    operands = [X, ROW if made.graph.node[0].attribute else TensorType(f32, (5,))][: len(made.graph.input)]
    assert told(made, *operands) is None


def test_what_is_said_of_a_model_with_open_sizes_is_left_to_onnx() -> None:
    given = {"x0": TensorType(f32, (symbol("N"), 3))}
    assert told_types(one("Abs", X), given) is given


def test_tables_name_type_parameters_as_onnx_does() -> None:
    """Up to types that are written out, which no table lists; of some operators that depends on the version."""
    table, other = provider("dml_ep"), set()
    for (domain, op), row in table.rows.items():
        listed = {name for kernel in row.kernels for name in kernel.types}
        listed |= {name for failure in table.failures_of(op) for name in failure.types or ()}

        def used(letters: tuple[str, ...], count: int, listed: set[str] = listed) -> list[str]:
            all_of_them = [letters[min(i, len(letters) - 1)] for i in range(count)] if letters else []
            return [name if name in listed else "" for name in all_of_them]

        for opset in range(1, defs.onnx_opset_version() + 1):
            found = parameters("", op, opset) if not domain and row.kernel(opset) is not None else None
            if found is None:
                continue
            operands, results, repeats = found
            count = len(operands) + 2 * repeats
            same = used(operands, count) == used(row.inputs, count)
            if not same or used(results, len(results)) != used(row.outputs, len(results)):
                other.add(op)
    assert other == BY_VERSION


def test_a_small_program_loads_no_schemas() -> None:
    """They take longer to load than it takes to compile."""
    program = """from onnx import defs, shape_inference
def never(*arguments, **options):
    raise SystemExit("onnx was asked")
defs.get_schema = shape_inference.infer_shapes = never
import dmlc
from dmlc.diagnostics import Source
body = "i = argmax(x, axes=[1, 2])\\n y = sqrt(reduce_mean(x * x, axes=[1]) + 1e-6)\\n return i, y"
text = "model m(x: f32[2, 3, 4]) -> (i, y) {\\n " + body + "\\n}"
program = dmlc.compile(Source("m.dml", text))
assert not program.placement().fails
"""
    subprocess.run([sys.executable, "-c", program], check=True)
