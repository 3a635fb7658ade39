"""One call or more of every operation for a dtype, with data that reaches the ends of the dtype's range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dmlc.diagnostics import Source, Span
from dmlc.ir import INDEX, NUMERIC, Dim, DType, Graph, Node, Operation, Tensor, TensorType, Value, symbol
from dmlc.ir.dtype import DTYPES, bool_, i64
from dmlc.ops import ALL_OPERATIONS, binary, choose, elementwise, index, matmul, move, normalize, reduce, scan, select
from dmlc.ops.call import CallSite
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.runtime.graph_model import GraphModel
from tests.calls import add_call

SOURCE = Source("folder/test.dml", "\n".join(f"line {i}" for i in range(1, 2000)))
Feeds = dict[str, np.ndarray]


class Bench:
    """A graph under construction, with the data of its inputs; each call stands on a line of its own."""

    def __init__(self, opset: int = 21, seed: int = 0) -> None:
        self.graph = Graph("bench", opset=opset)
        self.feeds: Feeds = {}
        self.line = 0
        self.rng = np.random.default_rng(seed)
        self.outputs: list[tuple[str, Value]] = []

    def feed(self, array: Any, shape: Sequence[Dim | str] | None = None, name: str | None = None) -> Value:
        array = np.asarray(array)
        sizes = array.shape if shape is None else tuple(symbol(d) if isinstance(d, str) else d for d in shape)
        name = name or f"x{len(self.feeds)}"
        self.feeds[name] = array
        return self.graph.add_input(name, TensorType(dtype_of(array), tuple(sizes)))

    def constant(self, array: Any) -> Value:
        return self.graph.add(CONSTANT, (), ConstantAttributes(value=Tensor(np.asarray(array)))).result

    def __call__(self, op: Operation, *operands: Any, **attributes: Any) -> Value:
        return self.node(op, *operands, **attributes).results[0]

    def node(self, op: Operation, *operands: Any, **attributes: Any) -> Node:
        self.line += 1
        span = Span(SOURCE, self.line, 5, self.line, 9)
        return add_call(self.graph, op, operands, attributes, CallSite(span=span))

    def show(self, label: str, *values: Value) -> None:
        self.outputs += [(f"{label} #{i}", v) for i, v in enumerate(values)]

    def done(self) -> Graph:
        self.graph.set_outputs(self.outputs)
        return self.graph

    def sample(self, dtype: DType, *shape: int) -> np.ndarray:
        """Ties, the ends of the range, and for floats zeros of both signs; no NaN and no infinity."""
        if dtype.kind == "bool":
            return self.rng.random(shape) < 0.5
        if dtype.is_float:
            pool = np.array([-2.5, -1, -0.75, -0.0, 0.0, 0.25, 1, 1.5, 2, 3], dtype.numpy)
            return self.rng.choice(pool, shape)
        low, high = int(dtype.lowest), int(dtype.highest)
        near = {low, low + 1, high, high - 1, high // 2, high // 2 + 1, 0, 1, 2, 3, 7, 100}
        if low:
            near |= {-1, -2, -3, -100, low // 2}
        return self.rng.choice(np.array(sorted(near), dtype=dtype.numpy), shape)

    def positive(self, dtype: DType, *shape: int) -> np.ndarray:
        if dtype.is_float:
            return (self.rng.random(shape) * 3 + 0.25).astype(dtype.numpy)
        return self.rng.integers(1, 9, shape).astype(dtype.numpy)


def dtype_of(array: np.ndarray) -> DType:
    return next(d for d in DTYPES if d.numpy == array.dtype)


def evaluate(graph: Graph, feeds: Feeds) -> Feeds:
    """The outputs by the operations' NumPy references."""
    return GraphModel(graph).run(feeds)


def differences(
    got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], tolerance: Mapping[str, float]
) -> list[str]:
    """Differences of two sets of outputs: integers and bool exactly, floats within the dtype's tolerance."""
    out = [] if list(got) == list(want) else [f"outputs {list(got)}, expected {list(want)}"]
    for name, expected in want.items():
        found = got.get(name)
        if found is None:
            continue
        if (found.dtype, found.shape) != (expected.dtype, expected.shape):
            out.append(f"{name}: {found.dtype}{found.shape}, expected {expected.dtype}{expected.shape}")
        elif not _same(found, expected, tolerance):
            at = int(np.argmax(found.ravel() != expected.ravel()))
            out.append(f"{name}: {found.ravel()[at]!r} at {at}, expected {expected.ravel()[at]!r}")
    return out


def _same(found: np.ndarray, expected: np.ndarray, tolerance: Mapping[str, float]) -> bool:
    if expected.dtype.kind != "f":
        return bool(np.array_equal(found, expected))
    near = tolerance[expected.dtype.name]
    return bool(np.allclose(found, expected, rtol=near, atol=near, equal_nan=True))


def declared(dtype: DType) -> Iterator[Operation]:
    """The operations whose first operand (or dtype attribute) may have that dtype."""
    for op in ALL_OPERATIONS:
        if op is CONSTANT:
            continue
        which = next((o for o in op.operands if o.name in ("a", "x")), op.operands[0] if op.operands else None)
        if which is None or dtype in which.dtypes:
            yield op


def build(bench: Bench, op: Operation, dtype: DType) -> None:
    """The calls of one operation for one dtype, shown under its name."""
    for family in (_elementwise, _binary, _choose, _moving, _index, _select, _reduce, _normalize, _scan):
        family(bench, op, dtype)


def build_part(bench: Bench, op: Operation, dtype: DType, turn: int, parts: int) -> None:
    """As ``build``; where there are more calls than parts, one part of them as outputs, by turn."""
    first = len(bench.outputs)
    build(bench, op, dtype)
    calls = bench.outputs[first:]
    bench.outputs[first:] = calls[turn % parts :: parts] if len(calls) > parts else calls


def _show(bench: Bench, op: Operation, label: str, *operands: Any, **attributes: Any) -> None:
    bench.show(f"{op.name} {label}", *bench.node(op, *operands, **attributes).results)


def _elementwise(b: Bench, op: Operation, d: DType) -> None:
    if op not in elementwise.UNARY:
        return
    x = b.sample(d, 40)
    if op in (elementwise.LOG, elementwise.SQRT):
        x = np.abs(x)
    if d.is_float:
        wide = [np.inf, -np.inf] if op not in (elementwise.SIN, elementwise.COS) else []
        # Sign and Relu leave NaN open; ONNX Runtime's Erf of NaN was 1 before 1.31.
        wide = [*wide, np.nan] if op not in (elementwise.SIGN, elementwise.RELU, elementwise.ERF) else wide
        x = np.concatenate([x, np.array([0.5, 1.5, 2.5, -0.5, -1.5, 20, -20, *wide], d.numpy)])
    _show(b, op, "", b.feed(x))


def _binary(b: Bench, op: Operation, d: DType) -> None:
    if op is matmul.MATMUL:
        for left, right in (((2, 3, 4), (4, 5)), ((4,), (2, 4, 3)), ((3, 4), (4,)), ((4,), (4,)), ((2, 0), (0, 3))):
            _show(b, op, f"{left}{right}", b.feed(b.sample(d, *left)), b.feed(b.sample(d, *right)))
    if op not in binary.BINARY:
        return
    x, y = b.sample(d, 6, 50), b.sample(d, 6, 50)
    if op in (binary.DIV, binary.FLOORDIV, binary.MOD):
        y[y == 0] = 3
    if op is binary.POW:
        x, y = (b.positive(d, 6, 50), b.sample(d, 6, 50)) if d.is_float else (x, np.abs(y))
        if d.is_integer:
            y[y < 0] = 1  # the absolute value of the lowest number
            for power in (0, 1, 2, 5):
                _show(b, op, f"constant {power}", b.feed(x), power)
            _show(b, op, "constants", b.feed(x[:, :3]), b.constant(np.array([0, 3, 2], d.numpy)))
    _show(b, op, "", b.feed(x), b.feed(y))
    if op is binary.POW:
        return
    _show(b, op, "broadcast", b.feed(x[:1]), b.feed(y[:, :1]))
    if d.kind != "bool":
        _show(b, op, "scalar", b.feed(x), 3)
    if d.is_integer and op in (binary.AND, binary.OR):
        _show(b, op, "mask", b.feed(x), 15)


def _choose(b: Bench, op: Operation, d: DType) -> None:
    if op is choose.WHERE:
        _show(b, op, "", b.feed(b.sample(bool_, 4, 5)), b.feed(b.sample(d, 4, 5)), b.feed(b.sample(d, 5)))
    elif op is choose.CLIP:
        x = b.sample(d, 40)
        for bounds in ({"min": 1}, {"max": 2}, {"min": 1, "max": 3}):
            _show(b, op, str(bounds), b.feed(x), **bounds)
        if d.is_integer:
            _show(b, op, "far", b.feed(x), min=int(d.highest) // 2 + 1, max=int(d.highest) - 1)
    elif op is choose.CAST:
        x = b.sample(d, 60)
        for to in DTYPES:
            safe = np.clip(x, 0, 3) if d.is_float and to.is_integer else x
            safe = np.array([0.25, -3, 0, -0.0, np.nan, 7], d.numpy) if d.is_float and to is bool_ else safe
            _show(b, op, to.name, b.feed(safe), to=to)


def _moving(b: Bench, op: Operation, d: DType) -> None:
    x = b.sample(d, 2, 3, 4)
    calls: dict[Operation, list[dict[str, Any]]] = {
        move.RESHAPE: [{"shape": [6, 4]}, {"shape": [-1]}],
        move.TRANSPOSE: [{"perm": [2, 0, 1]}],
        move.EXPAND: [{"shape": [5, 1, 3, 4]}],
        move.SPLIT: [{"axis": 2, "sizes": [1, 3]}],
        move.UNSQUEEZE: [{"axes": [0, -1]}],
        move.SLICE: [
            {"starts": [1, 3], "ends": [2, 0], "axes": [0, 2], "steps": [1, -2]},
            {"starts": [-2], "ends": [9]},
        ],
        move.TILE: [{"repeats": [1, 1, 1]}, {"repeats": [2, 1, 3]}],
        move.PAD: [{"pads": [0, 1, 2, 1, 0, 0]}, {"pads": [1, 0, 0, 0, 0, 0], "value": d.kind == "bool" or 3}],
    }
    for attributes in calls.get(op, []):
        if op is move.EXPAND:
            x = b.sample(d, 2, 3, 4)[:1]
        _show(b, op, str(attributes), b.feed(x), **attributes)
    if op is move.SQUEEZE:
        _show(b, op, "", b.feed(b.sample(d, 1, 3, 1)), axes=[0, 2])
    if op is move.CONCAT:
        _show(b, op, "", b.feed(x), b.feed(b.sample(d, 2, 1, 4)), b.feed(x), axis=1)


def _index(b: Bench, op: Operation, d: DType) -> None:
    x = b.sample(d, 4, 5)
    for kind in INDEX:
        far = [-1, -3] if kind.kind == "int" else [1, 2]
        if op is index.GATHER:
            _show(b, op, kind.name, b.feed(x), b.feed(np.array([[0, 3], far], kind.numpy)), axis=1)
        elif op is index.GATHER_ELEMENTS:
            _show(b, op, kind.name, b.feed(x), b.feed(np.array([[0, 3, *far, 0]], kind.numpy)), axis=0)
        elif op is index.SCATTER_ELEMENTS:
            where = b.feed(np.array([[0, 3, far[0]], [4, *far]], kind.numpy))
            _show(b, op, kind.name, b.feed(x), where, b.feed(b.sample(d, 2, 3)), axis=1)
        elif op is index.ONE_HOT:
            far = [-1, -4, -5, 4, 100] if kind.kind == "int" else [4, 100, int(kind.highest)]
            where = b.feed(np.array([0, 2, *far], kind.numpy))
            _show(b, op, f"{kind.name}", where, depth=4, dtype=d)
            high = True if d.kind == "bool" else int(d.highest) if d.is_integer else 0.1
            _show(b, op, f"{kind.name} far", where, depth=4, axis=0, dtype=d, on=high, off=d.kind != "bool" and 1)
    if op is index.IOTA and d in NUMERIC:
        _show(b, op, "", length=7, dtype=d)
    if op is index.FULL:
        _show(b, op, "", shape=[2, 3], value=d.kind == "bool" or 3, dtype=d)
        _show(b, op, "scalar", shape=[], value=d.kind == "bool" or 3, dtype=d)


def _select(b: Bench, op: Operation, d: DType) -> None:
    if op in (select.ARGMAX, select.ARGMIN):
        x = b.feed(b.sample(d, 3, 4, 5))
        for axes in ([1], [1, 2], [0, 2], [0, 1, 2]):
            for ties in ("first", "last"):
                for kind, keep in zip(INDEX, (True, False, True, False), strict=True):
                    _show(b, op, f"{axes} {ties} {kind.name}", x, axes=axes, ties=ties, dtype=kind, keepdims=keep)
    if op is select.TOP_K:
        x = b.feed(b.sample(d, 3, 9))
        for order in ("largest", "smallest"):
            _show(b, op, order, x, k=6, order=order)
            _show(b, op, f"{order} i64", x, k=2, axis=0, order=order, dtype=i64)
    if op is select.HARDMAX:
        x = b.feed(b.sample(d, 3, 4, 5))
        for axis in (0, 1, 2):
            _show(b, op, str(axis), x, axes=[axis])


def _reduce(b: Bench, op: Operation, d: DType) -> None:
    if op not in reduce.REDUCTIONS:
        return
    positive = op in (reduce.REDUCE_LOG_SUM,) or d.is_float
    x = b.feed(b.positive(d, 3, 4, 5) if positive else b.sample(d, 3, 4, 5))
    for axes, keep in (([0], True), ([1, 2], False), ([0, 2], True), ([0, 1, 2], False), ([2], False)):
        _show(b, op, f"{axes} {keep}", x, axes=axes, keepdims=keep)


def _normalize(b: Bench, op: Operation, d: DType) -> None:
    x = b.sample(d, 3, 4, 5)
    if op in (normalize.SOFTMAX, normalize.LOG_SOFTMAX, normalize.MEAN_VARIANCE_NORM):
        for axes in ([2], [1], [1, 2], [0, 1], [0, 2], [0, 1, 2]):
            _show(b, op, str(axes), b.feed(x), axes=axes)
        if op is normalize.MEAN_VARIANCE_NORM:
            _show(b, op, "centred", b.feed(x), axes=[1], variance=False, epsilon=0.5)
        else:
            inf = np.inf
            x = np.array([[inf, 1, 2], [-inf, -inf, -inf], [np.nan, 1, 2], [1, -inf, 2], [1000, 0, 1000]], d.numpy)
            _show(b, op, "infinite", b.feed(x))
            _show(b, op, "infinite 0", b.feed(np.ascontiguousarray(x.T)), axes=[0])
    if op is normalize.LAYER_NORM:
        for axis in (-1, 1):
            group = x.shape[axis:] if axis == 1 else x.shape[-1:]
            scale, bias = b.feed(b.positive(d, *group)), b.feed(b.sample(d, *group))
            _show(b, op, f"{axis}", b.feed(x), scale, bias, axis=axis)
            _show(b, op, f"{axis} no bias", b.feed(x), scale, axis=axis, epsilon=0.125)
            _show(b, op, f"{axis} narrow", b.feed(x), b.feed(b.positive(d, 1)), axis=axis)
    if op is normalize.RMS_NORM:
        _show(b, op, "", b.feed(x), b.feed(b.positive(d, 5)))
        _show(b, op, "1", b.feed(x), b.feed(b.positive(d, 4, 5)), axis=1, epsilon=0.125)
        _show(b, op, "narrow", b.feed(x), b.feed(b.positive(d, 1)), axis=1)
    if op is normalize.LP_NORM:
        x = x.copy()
        x[0] = 0
        for axis in (0, 1, 2):
            _show(b, op, f"{axis} 1", b.feed(x), axis=axis, p=1)
            _show(b, op, f"{axis} 2", b.feed(x), axis=axis, p=2)


def _scan(b: Bench, op: Operation, d: DType) -> None:
    if op not in (scan.CUMSUM, scan.CUMPROD):
        return
    x = b.feed(b.sample(d, 3, 7))
    for axis in (0, 1):
        for exclusive in (False, True):
            for reverse in (False, True):
                _show(b, op, f"{axis} {exclusive} {reverse}", x, axis=axis, exclusive=exclusive, reverse=reverse)
