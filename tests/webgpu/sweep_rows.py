"""One-node models over dtypes, ranks, axes, ties and empty tensors: a kernel may be right for one, not for another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from msgspec import Struct
from onnx import TensorProto, helper

FLOATS = ("float32", "float16")
NUMBERS = (*FLOATS, "int32", "uint32")
REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"),
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
)
#: Functions of one operand that are defined on [0.5, 1), and those that are on [1, 2).
INSIDE = (
    *(
        "Asin",
        "Acos",
        "Atan",
        "Atanh",
        "Log",
        "Sqrt",
        "Reciprocal",
        "Exp",
        "Sin",
        "Cos",
        "Tan",
        "Sinh",
        "Cosh",
        "Asinh",
    ),
    *("Relu", "Sigmoid", "Tanh", "Erf", "Neg", "Abs", "Floor", "Ceil", "Softplus", "Softsign", "Elu", "Selu"),
    *("LeakyRelu", "HardSigmoid", "HardSwish", "Identity", "Round", "Sign", "Gelu"),
)
OUTSIDE = ("Acosh",)
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow")
COMPARISONS = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
_RANKS = range(1, 9)


class Row(Struct, frozen=True):
    """A node: operands by position, ``constants`` the positions that are initializers, ``results`` dtypes by NumPy's
    name."""

    op: str
    operands: tuple[np.ndarray, ...]
    attributes: dict[str, Any] = {}
    constants: tuple[int, ...] = ()
    results: tuple[str, ...] = ()
    opset: int = 20

    @property
    def name(self) -> str:
        shapes = " ".join(f"{x.dtype}{list(x.shape)}" for x in self.operands)
        return f"{self.op} {self.opset} {self.attributes} {shapes}"

    def model(self) -> Any:
        names = [f"x{place}" for place in range(len(self.operands))]
        results = self.results or (self.operands[0].dtype.name,)
        outputs = [f"y{place}" for place in range(len(results))]
        typed = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for place, (name, x) in enumerate(zip(names, self.operands, strict=True))
            if place not in self.constants
        ]
        kept = [helper.make_tensor(names[p], *_tensor(self.operands[p])) for p in self.constants]
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)
            for name, dtype in zip(outputs, results, strict=True)
        ]
        graph = helper.make_graph(
            [helper.make_node(self.op, names, outputs, **self.attributes)], "g", typed, infos, kept
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)

    def feeds(self) -> dict[str, np.ndarray]:
        return {f"x{place}": x for place, x in enumerate(self.operands) if place not in self.constants}


def _tensor(x: np.ndarray) -> tuple[TensorProto.DataType, tuple[int, ...], Any]:
    return helper.np_dtype_to_tensor_dtype(x.dtype), x.shape, x.ravel().tolist()


def rows() -> Iterator[Row]:
    yield from selections()
    yield from reductions()
    yield from elementwise()
    yield from layouts()
    yield from norms()
    yield from empty()


def numbers(shape: Sequence[int], dtype: str = "float32", *, few: bool = False, low: float = 0.5) -> np.ndarray:
    """Numbers in [low, low + 1), or with few of them, so that many are equal."""
    drawn = np.random.default_rng(len(shape)).random(tuple(shape))
    if few or np.dtype(dtype).kind in "iub":
        return np.floor(drawn * 3 + 1).astype(dtype)
    return (drawn + low if low >= 1 else drawn / 2 + low).astype(dtype)


def longs(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def sizes(rank: int) -> tuple[int, ...]:
    return tuple([(3, 2, 1, 2)[place % 4] for place in range(rank)])


def selections() -> Iterator[Row]:
    for op, dtype, last in product(("ArgMax", "ArgMin"), (*FLOATS, "int32"), (0, 1)):
        for rank in _RANKS:
            for axis in {0, rank // 2, rank - 1}:
                attributes = {"axis": axis, "keepdims": rank % 2, "select_last_index": last}
                yield Row(op, (numbers(sizes(rank), dtype, few=True),), attributes, results=("int64",))
    for dtype, largest, axis in product(FLOATS, (0, 1), (0, 1, 2)):
        operands = (numbers((4, 3, 5), dtype, few=True), longs(2))
        yield Row("TopK", operands, {"axis": axis, "largest": largest}, (1,), (dtype, "int64"))
    for dtype, rank in product(FLOATS, _RANKS):
        for op in ("Softmax", "LogSoftmax", "Hardmax"):
            for axis in {0, rank - 1}:
                yield Row(op, (numbers(sizes(rank), dtype, few=op == "Hardmax"),), {"axis": axis})


def reductions() -> Iterator[Row]:
    for op, dtype, rank in product(REDUCTIONS, (*FLOATS, "int32"), _RANKS):
        if dtype == "int32" and op == "ReduceLogSumExp":
            continue  # kernels round a logarithm to an integer as they like
        for axes in {(0,), (rank - 1,), tuple(range(0, rank, 2)), tuple(range(rank))}:
            x = numbers(sizes(rank), dtype)
            if (op, dtype) == ("ReduceProd", "int32"):  # no product leaves the type
                x = (1 + (np.arange(x.size) % 7 == 0)).reshape(x.shape).astype(dtype)
            yield Row(op, (x, longs(*axes)), {"keepdims": rank % 2}, (1,))


def elementwise() -> Iterator[Row]:
    for dtype, rank in product(FLOATS, (0, 1, 3, 5, 8)):
        yield from [Row(op, (numbers(sizes(rank), dtype),)) for op in INSIDE]
        yield from [Row(op, (numbers(sizes(rank), dtype, low=1),)) for op in OUTSIDE]
    for dtype, rank in product(NUMBERS, _RANKS):
        whole = numbers(sizes(rank), dtype)
        thin = numbers([size if place % 2 else 1 for place, size in enumerate(sizes(rank))], dtype)
        yield from [Row(op, (whole, thin)) for op in ARITHMETIC]
        yield from [Row(op, (whole, thin), results=("bool",)) for op in COMPARISONS]
        yield Row("Where", (thin > 1, whole, thin), results=(dtype,))
        yield from [Row("Cast", (whole,), {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))}, results=(to,))
                    for to in (*NUMBERS, "bool") if to != dtype]  # fmt: skip


def layouts() -> Iterator[Row]:
    for dtype, rank in product(NUMBERS, _RANKS):
        x = numbers(sizes(rank), dtype)
        yield Row("Transpose", (x,), {"perm": list(range(rank))[::-1]})
        yield Row("Concat", (x, x), {"axis": rank - 1})
        yield Row("Slice", (x, longs(0), longs(1), longs(rank - 1)), {}, (1, 2, 3))
        yield Row("Expand", (numbers([1] * rank, dtype), longs(*sizes(rank))), {}, (1,))
        yield Row("Gather", (x, longs(0, -1)), {"axis": rank - 1})
        yield Row("Tile", (x, longs(*[2] * rank)), {}, (1,))
        yield Row("Pad", (x, longs(*[1] * 2 * rank)), {}, (1,))
        yield Row("Reshape", (x, longs(-1)), {}, (1,))
        yield Row("Unsqueeze", (x, longs(0)), {}, (1,))
        yield Row("Squeeze", (x[None], longs(0)), {}, (1,))
        yield Row("Split", (np.concatenate((x, x)),), {"axis": 0, "num_outputs": 2}, results=(dtype, dtype))
    for dtype, mode in product(FLOATS, ({}, {"exclusive": 1}, {"reverse": 1})):
        yield Row("CumSum", (numbers((3, 5), dtype), np.array(1)), mode, (1,))


def norms() -> Iterator[Row]:
    for dtype, rank in product(FLOATS, range(2, 6)):
        shape = (2, 4, 3, 2, 5)[:rank]
        last, channels = numbers(shape[-1:], dtype), numbers((4,), dtype)
        x = numbers(shape, dtype) * 8 - 6  # far enough apart for the deviation not to be rounding
        yield Row("LayerNormalization", (x, last, last), {"axis": -1})
        yield Row("BatchNormalization", (x, *[channels] * 4))
        if rank > 2:
            yield Row("InstanceNormalization", (x, channels, channels))
        yield Row("MatMul", (x, numbers((shape[-1], 3), dtype)))
    for dtype, rank in product(FLOATS, (1, 2)):
        image, kernel = numbers((1, 4, *[6] * rank), dtype), numbers((4, 4, *[3] * rank), dtype)
        yield Row("Conv", (image, kernel), {"pads": [1] * 2 * rank})
        for op in ("MaxPool", "AveragePool"):
            yield Row(op, (image,), {"kernel_shape": [2] * rank})
        yield from [Row(op, (image,)) for op in ("GlobalAveragePool", "GlobalMaxPool")]


def empty() -> Iterator[Row]:
    none, rows_ = np.zeros((3, 0), "f4"), np.zeros((0, 3), "f4")
    for x in (none, rows_):
        yield Row("Concat", (x, x), {"axis": 0})
        yield Row("Add", (x, x))
        yield Row("Exp", (x,))
        yield Row("Transpose", (x,), {"perm": [1, 0]})
        yield Row("Reshape", (x, longs(-1)), {}, (1,))
    yield from [Row(op, (none, longs(1)), {}, (1,)) for op in REDUCTIONS]
    yield from [Row(op, (rows_, longs(1)), {}, (1,)) for op in REDUCTIONS]
    yield from [Row(op, (rows_,), {"axis": 1}, results=("int64",)) for op in ("ArgMax", "ArgMin")]
    yield Row("MatMul", (none, np.zeros((0, 5), "f4")))
