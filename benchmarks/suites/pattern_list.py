"""68 graphs as exporters and people write them; ONNX Runtime alone leaves most of them as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from benchmarks.nets import Net

Shape: TypeAlias = "tuple[int, ...]"
#: Writes a graph and gives the names of its outputs.
Body: TypeAlias = "Callable[[Net, Sizes], tuple[str, ...]]"


@dataclass(frozen=True)
class Sizes:
    """The shapes that patterns use."""

    features: Shape = (8, 64, 128, 128)
    matrix: Shape = (4096, 1024)
    tall: Shape = (8192, 1024)
    heads: Shape = (16, 12, 197, 197)
    tiny: Shape = (1, 10, 10, 10)
    row: Shape = (1, 1000)
    vocabulary: Shape = (32, 32000)
    narrow: Shape = (262144, 32)
    left: Shape = (64, 256, 1)
    right: Shape = (1, 256, 128)


#: Sizes that only prove that the suite works.
QUICK = Sizes(
    (2, 4, 6, 6), (8, 16), (32, 8), (2, 2, 5, 5), (1, 3, 3, 3), (1, 20), (3, 40), (64, 4), (4, 8, 1), (1, 8, 4)
)  # fmt: skip


@dataclass(frozen=True)
class Pattern:
    """``tags``: ``hoist``, ``share``, ``concat``, ``argmax+max``, ``argmax+softmax``. ``close`` is what results may
    differ by, of the largest; None where they must be equal."""

    name: str
    body: Body
    tags: tuple[str, ...] = field(default=())
    close: float | None = 1e-3


def _axes(net: Net, sizes: Sizes, kind: str, order: Shape) -> tuple[str, ...]:
    return (net.chain(kind, net.input("x", sizes.features), order),)


def _chains() -> list[Pattern]:
    out = []
    for kind in ("Sum", "Mean", "Max"):
        close = None if kind == "Max" else 1e-3
        for order in ((3, 2, 1), (1, 2, 3), (2, 0), (3, 1)):
            name = f"Reduce{kind} chain {','.join(map(str, order))}"
            out.append(Pattern(name, lambda n, s, k=kind, o=order: _axes(n, s, k, o), (), close))  # type: ignore[misc]
        out.append(
            Pattern(
                f"Reduce{kind} axis 0 of a tall matrix",
                lambda n, s, k=kind: (n.reduce(k, n.input("x", s.tall), [0]),),  # type: ignore[misc]
                (),
                close,
            )
        )
    tall = Pattern("ReduceL2 axis 0 of a tall matrix", lambda n, s: (n.reduce("L2", n.input("x", s.tall), [0]),))
    tiny = Pattern("ReduceSum chain of 3, tiny", lambda n, s: (n.chain("Sum", n.input("x", s.tiny), (3, 2, 1)),))
    return [*out, tall, tiny]


# --- normalizations


def _centred(n: Net, x: str, axes: Shape) -> str:
    return n.op("Sub", x, n.reduce("Mean", x, axes, keep=True))


def _square(n: Net, x: str) -> str:
    return n.op("Pow", x, n.scalar(2))


def _variance_difference(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.input("x", s.matrix)
    mean = n.reduce("Mean", x, [1])
    return (n.op("Sub", n.reduce("Mean", _square(n, x), [1]), n.op("Mul", mean, mean)),)


def _normalized(n: Net, x: str, axes: Shape) -> str:
    centred = _centred(n, x, axes)
    variance = n.reduce("Mean", _square(n, centred), axes, keep=True)
    return n.op("Div", centred, n.op("Sqrt", n.op("Add", variance, n.scalar(1e-5))))


def _layer_norm(n: Net, s: Sizes) -> tuple[str, ...]:
    y = _normalized(n, n.input("x", s.matrix), (1,))
    scale, bias = [n.constant(np.linspace(a, b, s.matrix[1]), np.float32) for a, b in ((0.5, 1.5), (-1, 1))]
    return (n.op("Add", n.op("Mul", y, scale), bias),)


def _rms_norm(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.input("x", s.matrix)
    mean = n.op("Add", n.reduce("Mean", _square(n, x), [1], keep=True), n.scalar(1e-5))
    scale = n.constant(np.linspace(0.5, 1.5, s.matrix[1]), np.float32)
    return (n.op("Mul", n.op("Mul", x, n.op("Reciprocal", n.op("Sqrt", mean))), scale),)


def _norms() -> list[Pattern]:
    return [
        Pattern("variance: mean of squares less square of mean", _variance_difference),
        Pattern("layer norm in parts, scale and bias", _layer_norm),
        Pattern("layer norm in parts", lambda n, s: (_normalized(n, n.input("x", s.matrix), (1,)),)),
        Pattern("layer norm in parts over 2,3", lambda n, s: (_normalized(n, n.input("x", s.features), (2, 3)),)),
        Pattern("normalized over 0,2,3 in parts", lambda n, s: (_normalized(n, n.input("x", s.features), (0, 2, 3)),)),
        Pattern("RMS norm in parts", _rms_norm),
    ]


# --- exponentials


def _softmax(n: Net, x: str, axes: Shape) -> str:
    e = n.op("Exp", n.op("Sub", x, n.reduce("Max", x, axes, keep=True)))
    return n.op("Div", e, n.reduce("Sum", e, axes, keep=True))


def _log_softmax(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.input("x", s.heads)
    shifted = n.op("Sub", x, n.reduce("Max", x, [3], keep=True))
    return (n.op("Sub", shifted, n.op("Log", n.reduce("Sum", n.op("Exp", shifted), [3], keep=True))),)


def _log_sum_exp(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.input("x", s.features)
    top = n.reduce("Max", x, [2, 3], keep=True)
    total = n.reduce("Sum", n.op("Exp", n.op("Sub", x, top)), [2, 3], keep=True)
    return (n.op("Add", n.op("Log", total), top),)


def _exponentials() -> list[Pattern]:
    return [
        Pattern("softmax in parts, last of attention", lambda n, s: (_softmax(n, n.input("x", s.heads), (3,)),)),
        Pattern("softmax in parts, last of a matrix", lambda n, s: (_softmax(n, n.input("x", s.matrix), (1,)),)),
        Pattern("softmax in parts, one row", lambda n, s: (_softmax(n, n.input("x", s.row), (1,)),)),
        Pattern("softmax in parts, axis 1", lambda n, s: (_softmax(n, n.input("x", s.features), (1,)),)),
        Pattern("log-softmax in parts", _log_softmax),
        Pattern("Log of Softmax", lambda n, s: (n.op("Log", n.op("Softmax", n.input("x", s.heads), axis=-1)),)),
        Pattern(
            "log of the sum of Exp",
            lambda n, s: (n.op("Log", n.reduce("Sum", n.op("Exp", n.input("x", s.matrix)), [1])),),
        ),
        Pattern("log-sum-exp in parts over 2,3", _log_sum_exp),
        Pattern(
            "log of the sum of Abs",
            lambda n, s: (n.op("Log", n.reduce("Sum", n.op("Abs", n.input("x", s.matrix)), [1])),),
        ),
    ]


# --- powers


def _l2(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.input("x", s.matrix)
    return (n.op("Sqrt", n.reduce("Sum", n.op("Mul", x, x), [1])),)


def _sum_square(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.input("x", s.matrix)
    return (n.reduce("Sum", n.op("Mul", x, x), [1]),)


def _unit(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.input("x", s.matrix)
    return (n.op("Div", x, n.op("Sqrt", n.reduce("Sum", n.op("Mul", x, x), [1], keep=True))),)


def _powers() -> list[Pattern]:
    return [
        Pattern("root of the sum of x*x", _l2),
        Pattern(
            "root of the sum of Pow over 2,3",
            lambda n, s: (n.op("Sqrt", n.reduce("Sum", _square(n, n.input("x", s.features)), [2, 3])),),
        ),
        Pattern("sum of x*x", _sum_square),
        Pattern("sum of Abs", lambda n, s: (n.reduce("Sum", n.op("Abs", n.input("x", s.matrix)), [1]),)),
        Pattern("x by its L2 norm", _unit),
    ]


# --- several results of one input


def _flat(n: Net, s: Sizes) -> tuple[str, str]:
    """The features, and with the last two axes made one."""
    x = n.input("x", s.features)
    return x, n.reshape(x, [*s.features[:2], s.features[2] * s.features[3]])


def _argmax_and_max(n: Net, s: Sizes) -> tuple[str, ...]:
    x, flat = _flat(n, s)
    return n.op("ArgMax", flat, axis=2, keepdims=0), n.reduce("Max", x, [2, 3])


def _argmax_and_argmin(n: Net, s: Sizes) -> tuple[str, ...]:
    _, flat = _flat(n, s)
    return n.op("ArgMax", flat, axis=2, keepdims=0), n.op("ArgMin", flat, axis=2, keepdims=0)


def _four(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.input("x", s.features)
    return tuple(n.reduce(kind, x, [2, 3]) for kind in ("Sum", "Max", "Mean", "L2"))


def _prefix(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.input("x", s.features)
    return n.reduce("Sum", x, [3]), n.reduce("Sum", x, [2, 3])


def _twice(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.input("x", s.features)
    return (n.op("Add", n.reduce("Sum", x, [2, 3]), n.reduce("Sum", x, [2, 3])),)


def _sum_and_mean(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.input("x", s.features)
    return n.reduce("Sum", x, [2, 3]), n.reduce("Mean", x, [2, 3])


def _shared() -> list[Pattern]:
    return [
        Pattern("ArgMax and ReduceMax of one input", _argmax_and_max, ("argmax+max",), None),
        Pattern("ArgMax and ArgMin of one input", _argmax_and_argmin, (), None),
        Pattern("sum, max, mean, l2 of one input", _four),
        Pattern("sums over 3 and over 2,3", _prefix, ("share",)),
        Pattern("the same ReduceSum twice", _twice),
        Pattern("sum and mean of one input", _sum_and_mean, ("share",)),
    ]


# --- moves


def _channels_last(n: Net, s: Sizes) -> str:
    return n.op("Transpose", n.input("x", s.features), perm=[0, 2, 3, 1])


def _transposed_max(n: Net, s: Sizes) -> tuple[str, ...]:
    y = n.op("Transpose", n.input("x", s.features), perm=[3, 1, 2, 0])
    return (n.op("Transpose", n.reduce("Max", y, [0, 3]), perm=[1, 0]),)


def _unsqueezed(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.op("Unsqueeze", n.input("x", s.features), n.ints([0]))
    return (n.op("Squeeze", n.reduce("Sum", x, [3, 4]), n.ints([0])),)


def _expanded(n: Net, s: Sizes) -> tuple[str, ...]:
    x = n.op("Expand", n.input("x", (1, s.features[1], 1, 1)), n.ints(s.features))
    return (n.reduce("Sum", x, [2, 3]),)


def _two(n: Net, s: Sizes) -> tuple[str, str]:
    return n.input("x", s.features), n.input("b", s.features)


def _moves() -> list[Pattern]:
    return [
        Pattern("Transpose, ReduceMean of pixels", lambda n, s: (n.reduce("Mean", _channels_last(n, s), [1, 2]),)),
        Pattern("Transpose, ReduceSum of channels", lambda n, s: (n.reduce("Sum", _channels_last(n, s), [3]),)),
        Pattern("Transpose, ReduceMax, Transpose", _transposed_max, (), None),
        Pattern(
            "Transpose, ArgMax", lambda n, s: (n.op("ArgMax", _channels_last(n, s), axis=3, keepdims=0),), (), None
        ),
        Pattern("Unsqueeze, ReduceSum, Squeeze", _unsqueezed),
        Pattern("ReduceSum of Expand", _expanded, ("expand",)),
        Pattern(
            "ReduceSum of Concat",
            lambda n, s: (n.reduce("Sum", n.op("Concat", *_two(n, s), axis=1), [1, 2, 3]),),
            ("concat",),
        ),
        Pattern(
            "ReduceMax of Concat along a kept axis",
            lambda n, s: (n.reduce("Max", n.op("Concat", *_two(n, s), axis=1), [2, 3]),),
            ("concat",),
            None,
        ),
    ]


# --- elementwise before a reduction


def _bias(n: Net, s: Sizes) -> str:
    return n.constant(np.linspace(-1, 1, s.features[1]).reshape(-1, 1, 1), np.float32)


def _after(op: str) -> Body:
    return lambda n, s: (n.reduce("Max", n.op(op, n.input("x", s.features)), [2, 3]),)


def _product(n: Net, s: Sizes) -> tuple[str, ...]:
    return (n.reduce("Sum", n.op("Mul", n.input("x", s.matrix), n.input("b", s.matrix)), [1]),)


def _matrix_product(n: Net, s: Sizes) -> tuple[str, ...]:
    return (n.reduce("Sum", n.op("Mul", n.input("x", s.left), n.input("b", s.right)), [1]),)


def _halves(n: Net, s: Sizes) -> tuple[str, ...]:
    wide = n.op("Cast", n.input("x", s.matrix, np.float16), to=1)
    return (n.op("Cast", n.reduce("Mean", wide, [1]), to=10),)


def _argmax_softmax(n: Net, s: Sizes) -> tuple[str, ...]:
    return (n.op("ArgMax", n.op("Softmax", n.input("x", s.vocabulary), axis=-1), axis=-1, keepdims=0),)


def _difference(n: Net, s: Sizes) -> tuple[str, ...]:
    return (n.reduce("Mean", n.op("Abs", n.op("Sub", *_two(n, s))), [1, 2, 3]),)


def _plain() -> list[Pattern]:
    """One node each, for which other operators were tried."""
    return [
        Pattern("ReduceMean over 2,3", lambda n, s: (n.reduce("Mean", n.input("x", s.features), [2, 3]),)),
        Pattern("ReduceMax over 2,3", lambda n, s: (n.reduce("Max", n.input("x", s.features), [2, 3]),), (), None),
        Pattern("ReduceSum over 1,3", lambda n, s: (n.reduce("Sum", n.input("x", s.features), [1, 3]),)),
        Pattern("ReduceSum last axis of a matrix", lambda n, s: (n.reduce("Sum", n.input("x", s.matrix), [1]),)),
        Pattern("ReduceSum short last axis", lambda n, s: (n.reduce("Sum", n.input("x", s.narrow), [1]),)),
        Pattern("ReduceSum axis 0 of a matrix", lambda n, s: (n.reduce("Sum", n.input("x", s.matrix), [0]),)),
    ]


def _hoists() -> list[Pattern]:
    return [
        Pattern("ReduceSum of a sum of two", lambda n, s: (n.reduce("Sum", n.op("Add", *_two(n, s)), [2, 3]),)),
        Pattern(
            "ReduceSum of x by a number",
            lambda n, s: (n.reduce("Sum", n.op("Mul", n.input("x", s.features), n.scalar(0.3)), [2, 3]),),
            ("hoist",),
        ),
        Pattern(
            "ReduceMean of x and a bias",
            lambda n, s: (n.reduce("Mean", n.op("Add", n.input("x", s.features), _bias(n, s)), [2, 3]),),
            ("hoist",),
        ),
        Pattern("ReduceMax of Relu", _after("Relu"), ("hoist",), None),
        Pattern("ReduceMax of Exp", _after("Exp"), ("hoist",), 1e-6),
        Pattern("ReduceMax of Neg", _after("Neg"), ("hoist",), None),
        Pattern("ArgMax of Softmax", _argmax_softmax, ("argmax+softmax",), None),
        Pattern("sum of a product, last axis", _product),
        Pattern("sum of a product that is a matrix product", _matrix_product, ("matmul",)),
        Pattern("f16: Cast, ReduceMean, Cast", _halves),
        Pattern("mean of the absolute difference", _difference),
    ]


PATTERNS: tuple[Pattern, ...] = (
    *_chains(),
    *_norms(),
    *_exponentials(),
    *_powers(),
    *_shared(),
    *_moves(),
    *_hoists(),
    *_plain(),
)
