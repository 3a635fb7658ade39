"""Sum, mean and max over several axes; softmax and log-sum-exp; as ONNX models on the CPU provider."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

import dmlc
from benchmarks.measure import Deferred, Runner, contest, copying, reading
from benchmarks.nets import Net
from benchmarks.operations import Operation, kept, naive, random, written
from benchmarks.peers import runners, simplified
from benchmarks.records import OURS, Case, Settings
from benchmarks.sessions import SessionRun
from benchmarks.suites.selections import label

Shape = tuple[int, ...]

_FEATURES, _IMAGE = (8, 64, 128, 128), (64, 3, 224, 224)
REDUCE: tuple[tuple[Shape, Shape], ...] = (
    (_FEATURES, (0, 2)),
    (_FEATURES, (1, 3)),
    (_IMAGE, (0, 2)),
    (_IMAGE, (1, 3)),
    (_FEATURES, (2, 3)),
    (_FEATURES, (1, 2, 3)),
    (_FEATURES, (0, 1)),
    (_FEATURES, (0, 2, 3)),
    ((8192, 1024), (0,)),
    ((4096, 1024), (1,)),
    ((1, 10, 10, 10), (1, 2, 3)),
    ((1, 10, 10, 10), (1, 3)),
)
SOFTMAX: tuple[tuple[Shape, Shape], ...] = (
    ((16, 12, 197, 197), (3,)),
    ((4096, 1024), (1,)),
    ((1, 1000), (1,)),
    (_FEATURES, (1,)),
    ((1, 21, 512, 512), (1,)),
    (_IMAGE, (1,)),
    ((32, 128, 8, 128), (2,)),
    ((1024, 1024), (0,)),
    (_FEATURES, (2, 3)),
)
LOGSUMEXP: tuple[tuple[Shape, Shape], ...] = (((4096, 1024), (1,)), (_FEATURES, (2, 3)), ((1024, 1024), (0,)))
_QUICK: tuple[tuple[Shape, Shape], ...] = (((2, 3, 4, 5), (1, 3)), ((4, 64), (1,)))
#: The tolerance of sums in f32 against f32: only gross errors are to be found here.
_CLOSE = 2e-4


def reduce(settings: Settings) -> Iterator[Case]:
    for shape, axes in _QUICK if settings.quick else REDUCE:
        x = random(shape, 1) + np.float32(0.5)
        for name in ("sum", "mean", "max"):
            yield _reduction(Operation(name, axes), x, settings)


def _reduction(operation: Operation, x: np.ndarray, settings: Settings) -> Case:
    axes, shape = operation.axes, x.shape
    kind = operation.name.capitalize()
    forms = {"one node": _one_node(kind, shape, axes)}
    chained = _chain(kind, shape, axes[::-1])
    if len(axes) > 1:
        forms |= {"inner first": chained, "outer first": _chain(kind, shape, axes)}
    rivals = _rivals(operation, forms, x, settings)
    if len(axes) > 1:
        rivals |= simplified(chained, {"x": x}, settings)
    tags = ("apart",) if axes in ((0, 2), (1, 3)) and x.size > 10**5 else ()
    case = Case("reduce", f"{operation.name} of {label(shape, axes)}", settings.threads, tags)
    expected = naive(operation, [x])
    case = contest(case, settings, rivals, expected, tolerance=None if kind == "Max" else _CLOSE, bound=reading(x))
    if kind != "Max" and OURS in case.seconds:
        ours = SessionRun(_compiled(operation, shape), {"x": x}, settings.threads).results()[0]
        case.figures = _errors(operation, x, expected[0], ours)
    return case


def _errors(operation: Operation, x: np.ndarray, numpy_result: np.ndarray, ours: np.ndarray) -> dict[str, float]:
    """The largest error against f64, as a part of the sum of the absolute values, and over that of np.sum. One unit in
    the last place is what rounding the result alone may cost, so np.sum is never taken to be better than that."""
    wide = x.astype(np.float64)
    exact = naive(operation, [wide])[0]
    scale = naive(operation, [np.abs(wide)])[0]
    error, numpy_error = [float(np.max(np.abs(y.reshape(exact.shape) - exact) / scale)) for y in (ours, numpy_result)]
    return {"error": error, "np.sum error": numpy_error, "error over np.sum": error / max(numpy_error, 2.0**-23)}


def softmax(settings: Settings) -> Iterator[Case]:
    for shape, axes in _QUICK if settings.quick else SOFTMAX:
        operation, x = Operation("softmax", axes), random(shape, 2)
        forms = {"parts": _softmax_parts(shape, axes)}
        if len(axes) == 1:
            forms |= {"softmax": _softmax(shape, axes[0]), "transposed": _softmax_transposed(shape, axes[0])}
        yield _normal(operation, "softmax", forms, x, settings)
    for shape, axes in _QUICK if settings.quick else LOGSUMEXP:
        operation, x = Operation("logsumexp", axes), random(shape, 3)
        forms = {"ReduceLogSumExp": _one_node("LogSumExp", shape, axes), "parts": _lse_parts(shape, axes)}
        yield _normal(operation, "logsumexp", forms, x, settings)


def _normal(operation: Operation, tag: str, forms: dict[str, ModelProto], x: np.ndarray, settings: Settings) -> Case:
    rivals = _rivals(operation, forms, x, settings)
    case = Case("softmax", f"{operation.name} of {label(x.shape, operation.axes)}", settings.threads, (tag,))
    bound = copying(x) if tag == "softmax" else reading(x)
    return contest(case, settings, rivals, naive(operation, [x]), tolerance=_CLOSE, bound=bound)


def _rivals(
    operation: Operation, forms: dict[str, ModelProto], x: np.ndarray, settings: Settings
) -> dict[str, Runner | Deferred]:
    """Ours, the graphs by hand, and the peers that compute."""

    def ours() -> SessionRun:
        return SessionRun(_compiled(operation, x.shape), {"x": x}, settings.threads)

    by_hand = {name: Deferred(SessionRun, model, {"x": x}, settings.threads) for name, model in forms.items()}
    return {OURS: Deferred(ours), **by_hand, **runners(operation, [x], settings)}


def _compiled(operation: Operation, shape: Shape) -> ModelProto:
    return dmlc.compile(written(operation, [shape]), target="cpu").to_onnx()


# --- forms by hand


def _one_node(kind: str, shape: Shape, axes: Shape) -> ModelProto:
    net = Net()
    return net.model(net.reduce(kind, net.input("x", shape), axes))


def _chain(kind: str, shape: Shape, axes: Shape) -> ModelProto:
    net = Net()
    y = net.chain(kind, net.input("x", shape), axes)
    return net.model(net.op("Squeeze", y, net.ints(sorted(axes))))


def _softmax(shape: Shape, axis: int) -> ModelProto:
    net = Net()
    return net.model(net.op("Softmax", net.input("x", shape), axis=axis))


def _softmax_transposed(shape: Shape, axis: int) -> ModelProto:
    net = Net()
    order = (*kept(len(shape), (axis,)), axis)
    y = net.op("Softmax", net.transpose(net.input("x", shape), order), axis=-1)
    return net.model(net.transpose(y, [order.index(a) for a in range(len(shape))]))


def _softmax_parts(shape: Shape, axes: Shape) -> ModelProto:
    net = Net()
    x = net.input("x", shape)
    e = net.op("Exp", net.op("Sub", x, net.reduce("Max", x, axes, keep=True)))
    return net.model(net.op("Div", e, net.reduce("Sum", e, axes, keep=True)))


def _lse_parts(shape: Shape, axes: Shape) -> ModelProto:
    net = Net()
    x = net.input("x", shape)
    top = net.reduce("Max", x, axes, keep=True)
    total = net.reduce("Sum", net.op("Exp", net.op("Sub", x, top)), axes, keep=True)
    return net.model(net.op("Squeeze", net.op("Add", net.op("Log", total), top), net.ints(axes)))
