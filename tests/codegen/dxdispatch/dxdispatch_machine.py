"""Runs DxDispatch's JSON in NumPy, operator by operator, as DirectML's pages say what they do.

Nothing here comes from the code generator. What the pages leave open is refused: wrong fields, ranks and types, reads
beyond a buffer, casts of integers that do not fit, indices out of range.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from dxdispatch_lookups import gather, gather_elements, gather_nd1, kept, need, one_hot, scatter

Array = np.ndarray
TYPES = {
    "FLOAT16": np.float16, "FLOAT32": np.float32, "FLOAT64": np.float64,
    "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64,
    "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
}  # fmt: skip
FLOAT = {"FLOAT16", "FLOAT32"}
INT32S = {"INT32", "UINT32", "INT64", "UINT64"}
INTS = {"INT8", "INT16", "UINT8", "UINT16"} | INT32S
ANY = FLOAT | INTS
MOVED = ANY | {"FLOAT64"}
SIGNED = FLOAT | {"INT8", "INT16", "INT32", "INT64"}
TRUTH = {"UINT8", "UINT32"}


class Machine:
    """``load`` gives the array of a file beside the JSON; ``run`` gives what ``writeFile`` writes, by path."""

    def __init__(self, text: str, load: Callable[[str], Array]) -> None:
        root = json.loads(text, parse_constant=lambda word: need(False, f"{word} is not JSON"))
        need(set(root) == {"resources", "dispatchables", "commands"}, "members of the root")
        self.types: dict[str, str] = {}
        self.buffers: dict[str, bytearray] = {}
        for name, row in root["resources"].items():
            self._resource(name, row, load)
        self.dispatchables: dict[str, Any] = root["dispatchables"]
        self.commands: list[Any] = root["commands"]
        self.printed: list[str] = []

    def _resource(self, name: str, row: Mapping[str, Any], load: Callable[[str], Array]) -> None:
        values, kind = row["initialValues"], row.get("initialValuesDataType")
        if isinstance(values, dict) and "sourcePath" in values:
            array = load(values["sourcePath"])
            need(array.flags.c_contiguous, "Fortran order")
            own = "INT8" if array.dtype == bool else array.dtype.name.upper()  # its reader takes b1 for a byte
            need(kind in (None, own), f"{name}: the file holds {own}")
            kind = own
        else:
            need(kind in TYPES, f"{name} has no type")
            array = _initial(values, TYPES[kind])
        need(array.size > 0, f"{name} is empty")
        data = bytearray(array.tobytes())
        self.buffers[name] = data + bytes(-len(data) % 4)
        self.types[name] = kind

    def run(self) -> dict[str, Array]:
        out = {}
        for command in self.commands:
            if command["type"] == "dispatch":
                self._dispatch(self.dispatchables[command["dispatchable"]], command["bindings"])
            elif command["type"] == "print":
                self.printed.append(command["resource"])
            else:
                need(command["type"] == "writeFile", command["type"])
                name, sizes = command["resource"], command["dimensions"]
                flat = np.frombuffer(bytes(self.buffers[name]), TYPES[self.types[name]])
                out[command["targetPath"]] = flat[: math.prod(sizes)].reshape(sizes)
        return out

    def _dispatch(self, row: Mapping[str, Any], bindings: Mapping[str, Any]) -> None:
        need(set(row) == {"type", "desc"}, "members of a dispatchable")
        kind = row["type"].removeprefix("DML_OPERATOR_")
        operator, desc = OPERATORS[kind], dict(row["desc"])
        operator.check(kind, desc)
        tensors = [name for name in desc if name in operator.inputs + operator.optional + operator.outputs]
        need(sorted(bindings) == sorted(tensors), f"{kind} binds {sorted(bindings)}, not {sorted(tensors)}")
        arguments = {k: v for k, v in desc.items() if k in operator.attributes}
        for name in (*operator.inputs, *operator.optional):
            if name in desc:
                arguments[name] = self._read(desc[name], bindings[name])
        outputs = [desc[name] for name in operator.outputs]
        with np.errstate(all="ignore"):
            results = operator.compute(arguments, outputs)
        for name, result in zip(operator.outputs, results if isinstance(results, tuple) else (results,), strict=True):
            self._write(desc[name], bindings[name], result)

    def _read(self, desc: Any, binding: Any) -> Any:
        if isinstance(desc, list):
            need(len(desc) == len(binding), "a binding for each tensor")
            return [self._tensor(d, b) for d, b in zip(desc, binding, strict=True)]
        return self._tensor(desc, binding)

    def _tensor(self, desc: Mapping[str, Any], name: str) -> Array:
        dtype = np.dtype(TYPES[desc["DataType"]])
        flat = np.frombuffer(bytes(self.buffers[name]), dtype)
        sizes = desc["Sizes"]
        strides = desc.get("Strides") or _packed(sizes)
        reach = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        need(reach <= flat.size, f"{name} has {flat.size} elements, {desc} reaches {reach}")
        view = np.lib.stride_tricks.as_strided(flat, sizes, [s * dtype.itemsize for s in strides])
        return np.array(view)

    def _write(self, desc: Any, binding: Any, result: Any) -> None:
        if isinstance(desc, list):
            for one, name, array in zip(desc, binding, result, strict=True):
                self._write(one, name, array)
            return
        need("Strides" not in desc, "outputs are packed")
        need(list(result.shape) == desc["Sizes"], f"{result.shape} is computed, {desc['Sizes']} described")
        data = np.asarray(result).astype(TYPES[desc["DataType"]], copy=False).tobytes()
        need(len(data) <= len(self.buffers[binding]), f"{binding} is too small")
        self.buffers[binding][: len(data)] = data


def _initial(values: Any, dtype: Any) -> Array:
    if isinstance(values, list):
        return (
            np.array([_number(v) for v in values]).astype(dtype)
            if np.issubdtype(dtype, np.floating)
            else _integers(values, dtype)
        )
    if "value" in values:
        return np.full(values["valueCount"], _number(values["value"])).astype(dtype)
    out, value = [], dtype(values["valueStart"])
    for _ in range(values["valueCount"]):
        out.append(value)
        value = dtype(value + dtype(values["valueDelta"]))
    return np.array(out, dtype)


def _integers(values: list[int], dtype: Any) -> Array:
    need(all(type(v) is int for v in values), "integers are written as integers")
    return np.array(values, dtype)  # refuses a value that does not fit


def _number(value: Any) -> float:
    return float(value) if isinstance(value, str) else value


def _packed(sizes: list[int]) -> list[int]:
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


# --- operators


class Operator:
    def __init__(
        self,
        compute: Callable[[dict[str, Any], list[Any]], Any],
        inputs: str,
        attributes: str = "",
        *,
        types: set[str] = ANY,
        optional: str = "",
        outputs: str = "OutputTensor",
        same: bool = True,
        ranks: tuple[int, int] = (1, 8),
    ) -> None:
        self.compute = compute
        self.inputs, self.optional = tuple(inputs.split()), tuple(optional.split())
        self.outputs, self.attributes = tuple(outputs.split()), tuple(attributes.split())
        self.types, self.same, self.ranks = types, same, ranks

    def check(self, kind: str, desc: dict[str, Any]) -> None:
        required = {*self.inputs, *self.outputs, *self.attributes}
        need(required <= set(desc) <= required | {*self.optional, "ScaleBias"}, f"fields of {kind}: {sorted(desc)}")
        tensors = [t for n in (*self.inputs, *self.optional, *self.outputs) if n in desc for t in _listed(desc[n])]
        for tensor in tensors:
            need(set(tensor) <= {"DataType", "Sizes", "Strides"}, f"members of {tensor}")
            need(all(type(n) is int and n > 0 for n in tensor["Sizes"]), f"sizes {tensor}")
            need(len(tensor.get("Strides", tensor["Sizes"])) == len(tensor["Sizes"]), f"strides {tensor}")
            need(self.ranks[0] <= len(tensor["Sizes"]) <= self.ranks[1], f"{kind} takes ranks {self.ranks}: {tensor}")
        need(len({len(t["Sizes"]) for t in tensors}) == 1, f"{kind}: DimensionCounts differ: {tensors}")
        first = _listed(desc[self.inputs[0]])[0]["DataType"]
        need(first in self.types, f"{kind} does not take {first}")
        if self.same:
            need({t["DataType"] for t in tensors} == {first}, f"{kind}: types differ: {tensors}")
        for name in ("HasExclusiveSum", "HasExclusiveProduct", "NormalizeVariance", "UseMean", "UseVariance"):
            need(name not in desc or type(desc[name]) is bool, f"{name} is a bool")
        if "Axes" in desc:
            need(desc["AxisCount"] == len(desc["Axes"]) > 0, "AxisCount")
            need(all(axis < len(tensors[0]["Sizes"]) for axis in desc["Axes"]), "axes")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def wide(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def unary(function: Callable[[Array], Any], types: set[str] = FLOAT, attributes: str = "") -> Operator:
    def compute(a: dict[str, Any], _: Any) -> Any:
        return np.asarray(function(wide(a["InputTensor"]))).astype(a["InputTensor"].dtype)

    return Operator(compute, "InputTensor", attributes, types=types)


def activation(function: Callable[..., Any], *attributes: str) -> Operator:
    """A function of floats with real attributes, which it takes in that order."""

    def compute(a: dict[str, Any], _: Any) -> Any:
        x = a["InputTensor"]
        return np.asarray(function(wide(x), *[float(a[name]) for name in attributes])).astype(x.dtype)

    return Operator(compute, "InputTensor", " ".join(attributes), types=FLOAT)


def truth(function: Callable[[Array], Any], attributes: str = "") -> Operator:
    return Operator(
        lambda a, _: function(a["InputTensor"]).astype(np.uint8), "InputTensor", attributes, types=FLOAT, same=False
    )


def binary(function: Callable[[Array, Array], Any], types: set[str] = ANY) -> Operator:
    def compute(a: dict[str, Any], _: Any) -> Any:
        left, right = a["ATensor"], a["BTensor"]
        need(left.shape == right.shape, "sizes of A and B are equal")
        return np.asarray(function(wide(left), wide(right))).astype(left.dtype)

    return Operator(compute, "ATensor BTensor", types=types)


def compare(function: Callable[[Array, Array], Any], types: set[str] = ANY) -> Operator:
    def compute(a: dict[str, Any], outputs: list[Any]) -> Any:
        left, right = a["ATensor"], a["BTensor"]
        need(left.shape == right.shape and left.dtype == right.dtype, "A and B are alike")
        need(outputs[0]["DataType"] in TRUTH, "a truth value")
        return function(left, right).astype(np.uint8)

    return Operator(compute, "ATensor BTensor", types=types, same=False)


def quotient(a: Array, b: Array) -> Any:
    if a.dtype.kind == "f":
        return a / b
    need(bool(np.all(b != 0)), "a divisor is 0")
    exact = np.frompyfunc(lambda x, y: (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1), 2, 1)
    return exact(a.astype(object), b.astype(object)).astype(a.dtype)


def cast(a: dict[str, Any], outputs: list[Any]) -> Array:
    x, to = a["InputTensor"], np.dtype(TYPES[outputs[0]["DataType"]])
    if x.dtype.kind in "iu" and to.kind in "iu":
        limits = np.iinfo(to)
        need(
            x.size == 0 or (int(x.min()) >= limits.min and int(x.max()) <= limits.max),
            "a cast of integers that do not fit",
        )
    return x.astype(to)


def groups(x: Array, axes: list[int]) -> tuple[Array, list[int]]:
    """Each group along a last axis, row-major over ascending axes, and the order of axes that makes it."""
    axes = sorted(axes)
    order = [i for i in range(x.ndim) if i not in axes] + axes
    moved = x.transpose(order)
    return moved.reshape(*moved.shape[: x.ndim - len(axes)], -1), order


def extreme(best: Callable[..., Any]) -> Callable[[dict[str, Any], Any], Array]:
    def compute(a: dict[str, Any], outputs: list[Any]) -> Array:
        need(outputs[0]["DataType"] in INT32S, "the type of an index")
        x = a["InputTensor"]
        flat, _ = groups(x, a["Axes"])
        top = best(flat, axis=-1, keepdims=True)
        places = flat == top
        last = flat.shape[-1] - 1 - np.argmax(places[..., ::-1], axis=-1)
        first = np.argmax(places, axis=-1)
        index = first if a["AxisDirection"] == "DML_AXIS_DIRECTION_INCREASING" else last
        return index.reshape(kept(x.shape, a["Axes"]))

    return compute


def top_k(a: dict[str, Any], outputs: list[Any]) -> Any:
    x, axis, k = a["InputTensor"], a["Axis"], a["K"]
    need(0 < k <= x.shape[axis], "K")
    need(outputs[1]["DataType"] in ("UINT32", "UINT64"), "indices are unsigned")
    down = a["AxisDirection"] == "DML_AXIS_DIRECTION_DECREASING"
    rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
    order = [sorted(range(len(r)), key=lambda i: (-r[i] if down else r[i], i))[:k] for r in rows.astype(object)]
    index = np.array(order)
    shape = [*np.moveaxis(x, axis, -1).shape[:-1], k]
    values = np.take_along_axis(rows, index, 1).reshape(shape)
    return np.moveaxis(values, -1, axis), np.moveaxis(index.reshape(shape), -1, axis)


def reduce(a: dict[str, Any], _: Any) -> Array:
    x, axes = wide(a["InputTensor"]), tuple(a["Axes"])
    name = a["Function"].removeprefix("DML_REDUCE_FUNCTION_")
    own = a["InputTensor"].dtype
    kind = own.name.upper()
    allowed = {"MIN": ANY, "MAX": ANY, **dict.fromkeys(("SUM", "MULTIPLY", "L1", "SUM_SQUARE"), FLOAT | INT32S)}
    need(kind in allowed.get(name, FLOAT), f"{name} does not take {kind}")

    def add(y: Array) -> Array:
        return np.sum(y, axis=axes, keepdims=True, dtype=x.dtype)

    functions: dict[str, Callable[[], Any]] = {
        "SUM": lambda: add(x),
        "AVERAGE": lambda: add(x) / np.prod([x.shape[i] for i in axes]),
        "MULTIPLY": lambda: np.prod(x, axis=axes, keepdims=True, dtype=x.dtype),
        "MAX": lambda: np.max(x, axis=axes, keepdims=True),
        "MIN": lambda: np.min(x, axis=axes, keepdims=True),
        "L1": lambda: add(np.abs(x)),
        "L2": lambda: np.sqrt(add(x * x)),
        "SUM_SQUARE": lambda: add(x * x),
        "LOG_SUM": lambda: np.log(add(x)),
        "LOG_SUM_EXP": lambda: np.log(add(np.exp(x))),  # the maximum is not taken out
    }
    return np.asarray(functions[name]()).astype(own)


def softmax(log: bool) -> Callable[[dict[str, Any], Any], Array]:
    def compute(a: dict[str, Any], _: Any) -> Array:
        x, axes = wide(a["InputTensor"]), tuple(a["Axes"])
        shifted = x - x.max(axis=axes, keepdims=True)
        total = np.exp(shifted).sum(axis=axes, keepdims=True)
        return (shifted - np.log(total) if log else np.exp(shifted) / total).astype(a["InputTensor"].dtype)

    return compute


def hardmax(a: dict[str, Any], _: Any) -> Array:
    x = a["InputTensor"]
    flat, order = groups(x, a["Axes"])
    hot = np.zeros_like(flat)
    np.put_along_axis(hot, flat.argmax(axis=-1)[..., None], 1, -1)
    return hot.reshape([x.shape[i] for i in order]).transpose(np.argsort(order))


def norm(a: dict[str, Any], _: Any) -> Array:
    x, axes = wide(a["InputTensor"]), tuple(a["Axes"])
    if a.get("UseMean", True):
        x = x - x.mean(axis=axes, keepdims=True)
    if a.get("NormalizeVariance", a.get("UseVariance")):
        x = x / np.sqrt((x * x).mean(axis=axes, keepdims=True) + np.float32(a["Epsilon"]))
    for name, apply in (("ScaleTensor", np.multiply), ("BiasTensor", np.add)):
        if name in a:
            need(all(m in (1, n) for m, n in zip(a[name].shape, x.shape, strict=True)), f"sizes of {name}")
            x = apply(x, wide(a[name]))
    return x.astype(a["InputTensor"].dtype)


def running(ufunc: Any, flag: str, start: int) -> Callable[[dict[str, Any], Any], Array]:
    def compute(a: dict[str, Any], _: Any) -> Array:
        own = a["InputTensor"].dtype
        x = np.moveaxis(wide(a["InputTensor"]), a["Axis"], 0)
        back = a["AxisDirection"] == "DML_AXIS_DIRECTION_DECREASING"
        x = x[::-1] if back else x
        out = ufunc.accumulate(x, axis=0, dtype=x.dtype)
        if a[flag]:
            out = np.concatenate([np.full_like(out[:1], start), out[:-1]])
        return np.moveaxis(out[::-1] if back else out, 0, a["Axis"]).astype(own)

    return compute


def join(a: dict[str, Any], _: Any) -> Array:
    need(a["InputCount"] == len(a["InputTensors"]), "InputCount")
    return np.concatenate(a["InputTensors"], axis=a["Axis"])


def split(a: dict[str, Any], outputs: list[Any]) -> tuple[list[Array]]:
    need(a["OutputCount"] == len(outputs[0]), "OutputCount")
    cuts = np.cumsum([desc["Sizes"][a["Axis"]] for desc in outputs[0]])[:-1]
    return (np.split(a["InputTensor"], cuts, axis=a["Axis"]),)


def slice1(a: dict[str, Any], outputs: list[Any]) -> Array:
    x, out = a["InputTensor"], outputs[0]["Sizes"]
    need(a["DimensionCount"] == x.ndim, "DimensionCount")
    places = []
    rows = (a["InputWindowOffsets"], a["InputWindowSizes"], a["InputWindowStrides"], x.shape, out)
    for offset, size, stride, n, count in zip(*rows, strict=True):
        need(stride != 0 and size > 0 and offset >= 0 and offset + size <= n, "the window")
        need(1 <= count <= 1 + (size - 1) // abs(stride), "the size of the slice")
        start = offset + size - 1 if stride < 0 else offset
        places.append([start + stride * i for i in range(count)])
    return x[np.ix_(*places)]


def tile(a: dict[str, Any], _: Any) -> Array:
    x = a["InputTensor"]
    need(a["RepeatsCount"] == len(a["Repeats"]) == x.ndim and min(a["Repeats"]) > 0, "Repeats")
    return np.tile(x, a["Repeats"])


def padding1(a: dict[str, Any], _: Any) -> Array:
    x = a["InputTensor"]
    need(a["PaddingMode"] == "DML_PADDING_MODE_CONSTANT" and a["DimensionCount"] == x.ndim, "PADDING1")
    pads = list(zip(a["StartPadding"], a["EndPadding"], strict=True))
    value = union(a["PaddingValue"], a["PaddingValueDataType"])
    return np.pad(x, pads, constant_values=value.astype(x.dtype))


def union(value: Any, kind: str) -> Array:
    """A DML_SCALAR_UNION."""
    if not isinstance(value, dict):
        need(not isinstance(value, str), "a number or an object")
        return np.array(value).astype(TYPES[kind])
    ((member, content),) = value.items()
    if kind == "FLOAT16":
        need(member == "UInt16", member)
        return np.uint16(content).view(np.float16)
    need(member.upper() == kind, f"{member} of {kind}")
    return np.array(_number(content)).astype(TYPES[kind])


def clip1(a: dict[str, Any], _: Any) -> Array:
    x, kind = a["InputTensor"], a["MinMaxDataType"]
    need(kind == x.dtype.name.upper(), "MinMaxDataType")
    return np.maximum(union(a["Min"], kind), np.minimum(x, union(a["Max"], kind)))


def choose(a: dict[str, Any], _: Any) -> Array:
    need(a["ConditionTensor"].dtype == np.uint8, "the condition")
    need(a["ATensor"].dtype == a["BTensor"].dtype, "types of A and B")
    return np.where(a["ConditionTensor"] != 0, a["ATensor"], a["BTensor"])


def gemm(a: dict[str, Any], _: Any) -> Array:
    need(a["TransA"] == a["TransB"] == "DML_MATRIX_TRANSFORM_NONE", "GEMM")
    left, right = a["ATensor"], a["BTensor"]
    need(left.shape[:2] == right.shape[:2] and left.shape[3] == right.shape[2], "sizes of GEMM")
    out = np.float32(a["Alpha"]) * np.matmul(wide(left), wide(right))
    if "CTensor" in a:
        need(a["CTensor"].shape == out.shape, "sizes of CTensor")
        out = out + np.float32(a["Beta"]) * wide(a["CTensor"])
    return out.astype(left.dtype)


def power(a: dict[str, Any], _: Any) -> Array:
    return np.power(a["InputTensor"], a["ExponentTensor"])


def constant_power(a: dict[str, Any], _: Any) -> Array:
    return np.power(wide(a["InputTensor"]), np.float32(a["Exponent"])).astype(a["InputTensor"].dtype)


def rounded(a: dict[str, Any], _: Any) -> Array:
    need(a["RoundingMode"] == "DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN", "RoundingMode")
    return np.rint(a["InputTensor"])


AXES = "AxisCount Axes"
ONE = "InputTensor"
erf = np.vectorize(math.erf, otypes=[np.float64])
OPERATORS: dict[str, Operator] = {
    "ARGMAX": Operator(extreme(np.max), ONE, f"{AXES} AxisDirection", same=False),
    "ARGMIN": Operator(extreme(np.min), ONE, f"{AXES} AxisDirection", same=False),
    "TOP_K1": Operator(
        top_k, ONE, "Axis K AxisDirection", outputs="OutputValueTensor OutputIndexTensor", same=False
    ),
    "REDUCE": Operator(reduce, ONE, f"Function {AXES}"),
    "ACTIVATION_HARDMAX1": Operator(hardmax, ONE, AXES, types=FLOAT),
    "ACTIVATION_SOFTMAX1": Operator(softmax(False), ONE, AXES, types=FLOAT),
    "ACTIVATION_LOG_SOFTMAX1": Operator(softmax(True), ONE, AXES, types=FLOAT),
    "MEAN_VARIANCE_NORMALIZATION1": Operator(
        norm, ONE, f"{AXES} NormalizeVariance Epsilon", optional="ScaleTensor BiasTensor", types=FLOAT
    ),
    "MEAN_VARIANCE_NORMALIZATION2": Operator(
        norm, ONE, f"{AXES} UseMean UseVariance Epsilon", optional="ScaleTensor BiasTensor", types=FLOAT
    ),
    "CUMULATIVE_SUMMATION": Operator(
        running(np.add, "HasExclusiveSum", 0), ONE, "Axis AxisDirection HasExclusiveSum", types=FLOAT | INT32S
    ),
    "CUMULATIVE_PRODUCT": Operator(
        running(np.multiply, "HasExclusiveProduct", 1), ONE, "Axis AxisDirection HasExclusiveProduct",
        types=FLOAT | INT32S,
    ),
    "CAST": Operator(cast, ONE, types=MOVED, same=False),
    "ELEMENT_WISE_IDENTITY": unary(lambda x: x, MOVED),
    "GATHER": Operator(gather, "InputTensor IndicesTensor", "Axis IndexDimensions", types=MOVED, same=False),
    "GATHER_ND1": Operator(
        gather_nd1, "InputTensor IndicesTensor", "InputDimensionCount IndicesDimensionCount BatchDimensionCount",
        types=MOVED, same=False,
    ),
    "GATHER_ELEMENTS": Operator(gather_elements, "InputTensor IndicesTensor", "Axis", types=MOVED, same=False),
    "SCATTER": Operator(scatter, "InputTensor IndicesTensor UpdatesTensor", "Axis", types=MOVED, same=False),
    "ONE_HOT": Operator(one_hot, "IndicesTensor ValuesTensor", "Axis", types=INT32S, same=False),
    "TILE": Operator(tile, "InputTensor", "RepeatsCount Repeats", types=MOVED),
    "JOIN": Operator(join, "InputTensors", "InputCount Axis", types=MOVED),
    "SPLIT": Operator(split, ONE, "OutputCount Axis", outputs="OutputTensors", types=MOVED),
    "SLICE1": Operator(
        slice1, ONE, "DimensionCount InputWindowOffsets InputWindowSizes InputWindowStrides", types=MOVED
    ),
    "PADDING1": Operator(
        padding1, ONE, "PaddingMode PaddingValueDataType PaddingValue DimensionCount StartPadding EndPadding",
        types=MOVED,
    ),
    "GEMM": Operator(
        gemm, "ATensor BTensor", "TransA TransB Alpha Beta", optional="CTensor", types=FLOAT, ranks=(2, 4)
    ),
    "ELEMENT_WISE_IF": Operator(choose, "ConditionTensor ATensor BTensor", types={"UINT8"}, same=False),
    "ELEMENT_WISE_CLIP1": Operator(clip1, ONE, "MinMaxDataType Min Max"),
    "ELEMENT_WISE_POW": Operator(power, "InputTensor ExponentTensor", types=ANY - {"INT64", "UINT64"}),
    "ELEMENT_WISE_CONSTANT_POW": Operator(constant_power, ONE, "Exponent", types=FLOAT),
    "ELEMENT_WISE_ROUND": Operator(rounded, ONE, "RoundingMode", types=FLOAT),
    "ELEMENT_WISE_IS_NAN": truth(np.isnan),
    "ELEMENT_WISE_IS_INFINITY": truth(np.isinf, "InfinityMode"),
    "ELEMENT_WISE_ADD": binary(np.add),
    "ELEMENT_WISE_SUBTRACT": binary(np.subtract),
    "ELEMENT_WISE_MULTIPLY": binary(np.multiply),
    "ELEMENT_WISE_DIVIDE": binary(quotient),
    "ELEMENT_WISE_MODULUS_FLOOR": binary(np.mod),
    "ELEMENT_WISE_MODULUS_TRUNCATE": binary(np.fmod),
    "ELEMENT_WISE_MAX": binary(np.maximum),
    "ELEMENT_WISE_MIN": binary(np.minimum),
    "ELEMENT_WISE_LOGICAL_EQUALS": compare(np.equal),
    "ELEMENT_WISE_LOGICAL_LESS_THAN": compare(np.less),
    "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL": compare(np.less_equal),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN": compare(np.greater),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL": compare(np.greater_equal),
    "ELEMENT_WISE_LOGICAL_AND": compare(np.logical_and, TRUTH),
    "ELEMENT_WISE_LOGICAL_OR": compare(np.logical_or, TRUTH),
    "ELEMENT_WISE_LOGICAL_XOR": compare(np.logical_xor, TRUTH),
    "ELEMENT_WISE_LOGICAL_NOT": unary(np.logical_not, TRUTH),
    "ELEMENT_WISE_BIT_AND": binary(np.bitwise_and, INTS),
    "ELEMENT_WISE_BIT_OR": binary(np.bitwise_or, INTS),
    "ELEMENT_WISE_BIT_XOR": binary(np.bitwise_xor, INTS),
    "ELEMENT_WISE_BIT_NOT": unary(np.invert, INTS),
    "ELEMENT_WISE_NEGATE": unary(np.negative, SIGNED),
    "ELEMENT_WISE_ABS": unary(np.abs, SIGNED),
    "ELEMENT_WISE_SIGN": unary(np.sign, ANY),
    "ELEMENT_WISE_EXP": unary(np.exp),
    "ELEMENT_WISE_LOG": unary(np.log),
    "ELEMENT_WISE_SQRT": unary(np.sqrt),
    "ELEMENT_WISE_RECIP": unary(np.reciprocal),
    "ELEMENT_WISE_FLOOR": unary(np.floor),
    "ELEMENT_WISE_CEIL": unary(np.ceil),
    "ELEMENT_WISE_SIN": unary(np.sin),
    "ELEMENT_WISE_COS": unary(np.cos),
    "ELEMENT_WISE_TANH": unary(np.tanh),
    "ELEMENT_WISE_ERF": unary(erf),
    "ACTIVATION_SIGMOID": unary(lambda x: 1 / (1 + np.exp(-x))),
    "ACTIVATION_RELU": unary(lambda x: np.maximum(x, 0)),
    "ACTIVATION_ELU": activation(lambda x, alpha: np.where(x >= 0, x, alpha * (np.exp(x) - 1)), "Alpha"),
    "ACTIVATION_HARD_SIGMOID": activation(lambda x, a, b: np.clip(a * x + b, 0, 1), "Alpha", "Beta"),
    "ACTIVATION_LEAKY_RELU": activation(lambda x, alpha: np.where(x >= 0, x, alpha * x), "Alpha"),
    "ACTIVATION_SOFTPLUS": activation(lambda x, steepness: np.log(1 + np.exp(x * steepness)) / steepness, "Steepness"),
    "ACTIVATION_GELU": activation(lambda x: x * (1 + erf(x * np.sqrt(0.5))) / 2),
    "ACTIVATION_SWISH": activation(lambda x, scale: x / (1 + np.exp(-scale * x)), "SigmoidInputScale"),
    "ACTIVATION_SOFTSIGN": activation(lambda x: x / (1 + np.abs(x))),
}  # fmt: skip
