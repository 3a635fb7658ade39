"""Written-out functions that rewrites look for, and near misses: another axis, another place, one operand twice."""

from __future__ import annotations

from tools.fuzz.onnx_models import F16, F32, F64, FLOATS, I32, I64, Grower, MisfitError

_REAL = (F32, F32, F16, F64)


def _start(g: Grower) -> tuple[str, list[int]]:
    """A value and axes: often the last ones."""
    x = g.any(_REAL, 1)
    rank = g.rank(x)
    axes = list(range(rank - g.rng.randint(1, min(2, rank)), rank)) if g.chance(0.5) else g.some_axes(x)
    return x, axes


def _axes(g: Grower, x: str, axes: list[int]) -> list[int]:
    """The same axes, or nearly."""
    if not g.chance(0.12):
        return axes if g.chance(0.8) else g.rng.sample(axes, len(axes))
    return g.some_axes(x)


def _like(g: Grower, x: str, number: float) -> str:
    """A constant number of the dtype, of some shape with one element."""
    return g.const(g.rng.choice((number, number, [number], [[number]])), g.kinds[x][0])


def _other(g: Grower, x: str, wrong: float = 0.06) -> str:
    """The value, or rarely another of its type."""
    found = [v for v in g.values if g.kinds[v] == g.kinds[x]]
    return g.rng.choice(found) if g.chance(wrong) else x


def _square(g: Grower, x: str) -> str:
    turn = g.rng.randrange(3)
    if turn == 0:
        return g.one("Pow", x, _like(g, x, g.rng.choice((2.0, 2.0, 2.0, 3.0))))
    return g.one("Mul", x, _other(g, x)) if turn == 1 else g.one("Mul", x, x)


def _root(g: Grower, x: str) -> str:
    return g.one("Sqrt", x) if g.chance(0.7) else g.one("Pow", x, _like(g, x, 0.5))


def _over_root(g: Grower, top: str, below: str) -> str:
    """A quotient by a root, in one of its spellings."""
    turn = g.rng.randrange(4)
    if turn == 0:
        return g.one("Div", top, _root(g, below))
    if turn == 1:
        return g.swapped("Mul", top, g.one("Reciprocal", _root(g, below)))
    if turn == 2:
        return g.swapped("Mul", top, g.one("Pow", below, _like(g, below, -0.5)))
    return g.swapped("Mul", top, g.one("Div", _like(g, below, 1.0), _root(g, below)))


def _epsilon(g: Grower, x: str) -> str:
    return g.swapped("Add", x, _like(g, x, g.rng.choice((1e-5, 1e-5, 1e-3, 1e-12, 0.0))))


def _affine(g: Grower, y: str, axes: list[int]) -> str:
    """Scale and bias, along the axes or nearly."""
    shape = g.shape(y)
    for op in ("Mul", "Add"):
        if g.chance(0.6):
            sizes = [s if i in axes and isinstance(s, int) else 1 for i, s in enumerate(shape)]
            if g.chance(0.1):
                sizes = g.like(shape)
            elif g.chance(0.6):
                sizes = sizes[min(axes) :]
            y = g.swapped(op, y, g.weight(g.kinds[y][0], [int(s) for s in sizes]))
    return y


def softmax(g: Grower) -> None:
    x, axes = _start(g)
    shifted = x
    if g.chance(0.85):
        shifted = g.one("Sub", x, g.reduce("ReduceMax", _other(g, x), _axes(g, x, axes)))
    turn = g.rng.randrange(3)
    if turn == 0:
        g.one("Sub", shifted, g.reduce("ReduceLogSumExp", shifted, _axes(g, x, axes)))
        return
    e = g.one("Exp", shifted)
    total = g.reduce("ReduceSum", e, _axes(g, x, axes))
    if turn == 1:
        y = g.one("Sub", shifted, g.one("Log", total))
    elif g.chance(0.7):
        y = g.one("Div", e, total)
    else:
        y = g.swapped("Mul", e, g.one("Reciprocal", total))
    if g.chance(0.3):
        g.one(g.rng.choice(("Log", "Exp")), y)


def log_sum_exp(g: Grower) -> None:
    x, axes = _start(g)
    if g.chance(0.4):
        g.one("Log", g.reduce("ReduceSum", g.one("Exp", x), axes, g.rng.choice((0, 1))))
        return
    most = g.reduce("ReduceMax", x, axes)
    inner = g.reduce("ReduceSum", g.one("Exp", g.one("Sub", x, most)), _axes(g, x, axes), keep := g.rng.choice((0, 1)))
    logged = g.one("Log", inner)
    if not keep and g.chance(0.8):
        most = g.squeeze(most, sorted(axes))
    g.swapped("Add", logged, most)


def layer_norm(g: Grower) -> None:
    x, axes = _start(g)
    mean = g.reduce("ReduceMean", x, axes)
    centred = g.one("Sub", _other(g, x), mean)
    again = g.one("Sub", x, mean) if g.chance(0.2) else centred
    if g.chance(0.15):  # E[x^2] - E[x]^2
        variance = g.one("Sub", g.reduce("ReduceMean", _square(g, x), axes), _square(g, mean))
    else:
        variance = g.reduce("ReduceMean", _square(g, again), _axes(g, x, axes))
    if g.chance(0.1):  # epsilon at another place
        y = g.one("Div", centred, _epsilon(g, _root(g, variance)))
    else:
        y = _over_root(g, centred, _epsilon(g, variance))
    _affine(g, y, axes)


def rms_norm(g: Grower) -> None:
    x, axes = _start(g)
    square = g.reduce("ReduceMean", _square(g, x), axes)
    if g.chance(0.1):
        y = g.one("Div", x, _epsilon(g, _root(g, square)))
    else:
        y = _over_root(g, _other(g, x), _epsilon(g, square))
    _affine(g, y, _axes(g, x, axes))


def l2_norm(g: Grower) -> None:
    x, axes = _start(g)
    keep = g.rng.choice((1, 1, 1, 0))
    turn = g.rng.randrange(5)
    if turn == 0:
        size = g.reduce("ReduceL2", x, axes, keep)
    elif turn == 1:
        size = g.reduce("ReduceL1", x, axes, keep)
    elif turn == 2:
        size = g.reduce("ReduceSum", g.one("Abs", x), axes, keep)
    elif turn == 3:
        size = _root(g, g.reduce("ReduceSumSquare", x, axes, keep))
    else:
        size = _root(g, g.reduce("ReduceSum", _square(g, x), axes, keep))
    if keep and g.chance(0.7):
        if g.chance(0.4):
            size = g.one("Max", size, _like(g, x, 1e-12)) if g.opset >= 12 else _epsilon(g, size)
        g.one("Div", _other(g, x), size)


def mean_and_variance(g: Grower) -> None:
    x, axes = _start(g)
    mean = g.reduce("ReduceMean", x, axes, 1)
    g.reduce("ReduceMean", _square(g, g.one("Sub", x, mean)), _axes(g, x, axes), keep := g.rng.choice((0, 1)))
    if not keep and g.chance(0.5):
        g.squeeze(mean, sorted(axes))


def mean_by_count(g: Grower) -> None:
    """A sum over a number: the count, or nearly."""
    x, axes = _start(g)
    count = 1
    for axis in axes:
        size = g.shape(x)[axis]
        count *= size if isinstance(size, int) else 1
    number = float(count) if g.chance(0.8) else count + 1.0
    total = g.reduce("ReduceSum", _square(g, x) if g.chance(0.3) else x, axes, g.rng.choice((0, 1)))
    if g.chance(0.6):
        g.one("Div", total, _like(g, x, number or 1.0))
    else:
        g.swapped("Mul", total, _like(g, x, 1.0 / (number or 1.0)))


def chosen_of_softmax(g: Grower) -> None:
    """A selection after what keeps the order, or nearly."""
    x = g.any(_REAL, 1)
    axis = g.rng.randrange(g.rank(x))
    turn = g.rng.randrange(7)
    if turn == 0:
        y = g.one("Softmax", x, axis=axis)
    elif turn == 1:
        y = g.one("LogSoftmax", x, axis=axis)
    elif turn == 2:
        y = g.one("Neg", x)
    elif turn == 3:
        y = g.one("Cast", x, to=g.rng.choice((F32, F64, F16)))
    elif turn == 4:
        y = g.one(g.rng.choice(("Sigmoid", "Tanh", "Exp", "Relu", "Sqrt")), x)
    elif turn == 5:
        y = g.swapped("Mul", x, _like(g, x, g.rng.choice((2.0, 0.5, -1.0, 0.0))))
    else:
        y = g.swapped("Add", x, _like(g, x, g.rng.choice((1.0, -3.0, 1e4))))
    if g.chance(0.15):
        axis = g.rng.randrange(g.rank(x))
    keep, last = g.rng.choice((0, 1)), g.rng.choice((0, 1, None)) if g.opset >= 12 else None
    turn = g.rng.randrange(4)
    if turn == 0 and g.opset >= 11:
        g.put("TopK", [y, g.const([1])], 2, axis=axis, largest=g.rng.choice((0, 1)))
    elif turn == 1:
        g.one("Hardmax", y, axis=axis)
    elif turn == 2:
        g.reduce(g.rng.choice(("ReduceMax", "ReduceMin")), y, [axis], keep)
    else:
        g.one(g.rng.choice(("ArgMax", "ArgMin")), y, axis=axis, keepdims=keep, select_last_index=last)


def top_one(g: Grower) -> None:
    """TopK of one, and what is taken from it."""
    x = g.any((F32, F64), 1)
    axis = g.rng.randrange(g.rank(x))
    if g.opset < 11 or g.shape(x)[axis] == 0:
        raise MisfitError("no direction")
    values, indices = g.put("TopK", [x, g.const([1])], 2, axis=axis, largest=g.rng.choice((0, 1)))
    for part in (values, indices):
        if g.chance(0.5):
            g.squeeze(part, [axis])
    if g.chance(0.4):
        g.one("Cast", indices, to=g.rng.choice((I32, F32)))


def hot(g: Grower) -> None:
    """An argmax and the one-hot of it."""
    x = g.any((F32, F16, F64), 1)
    axis = g.rng.randrange(g.rank(x))
    size = g.shape(x)[axis]
    if not isinstance(size, int) or not size:
        raise MisfitError("no depth")
    last = g.rng.choice((0, 0, None, 1)) if g.opset >= 12 else None
    at = g.one(g.rng.choice(("ArgMax", "ArgMax", "ArgMin")), x, axis=axis, keepdims=0, select_last_index=last)
    values = g.const(g.rng.choice(([0, 1], [0, 1], [1, 0], [0, 2])), g.rng.choice((g.kinds[x][0], F32, I64)))
    depth = size if g.chance(0.9) else size + 1
    place = axis if g.chance(0.8) else g.rng.randrange(g.rank(x))
    shape = list(g.shape(at))
    shape.insert(place, depth)
    y = g.one("OneHot", at, g.const([depth]), values, axis=place, shape=shape)
    if g.kinds[y] == g.kinds[x] and g.chance(0.5):
        g.reduce("ReduceSum", g.swapped("Mul", y, x), [axis], g.rng.choice((0, 1)))


def gathered(g: Grower) -> None:
    """The elements at an argmax."""
    x = g.any((F32, F64, I32), 1)
    if g.opset < 11:
        raise MisfitError("no GatherElements")
    axis = g.rng.randrange(g.rank(x))
    at = g.one(g.rng.choice(("ArgMax", "ArgMin")), x, axis=axis, keepdims=1)
    y = g.one("GatherElements", _other(g, x), at, axis=axis if g.chance(0.9) else g.rng.randrange(g.rank(x)))
    if g.chance(0.4):
        g.squeeze(y, [axis])


def chained(g: Grower) -> None:
    """A reduction of a reduction."""
    x = g.any((*_REAL, I32, I64), 2)
    ops = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1")
    op = g.rng.choice(ops)
    y = g.reduce(op, x, g.some_axes(x), g.rng.choice((0, 1)))
    turn = g.rng.randrange(5)
    if turn == 0 and g.rank(y) >= 2:
        order = list(range(g.rank(y)))
        g.rng.shuffle(order)
        y = g.one("Transpose", y, perm=order)
    elif turn == 1:
        y = g.unsqueeze(y, [g.rng.randint(0, g.rank(y))])
    elif turn == 2:
        y = g.swapped(g.rng.choice(("Add", "Mul")), y, g.weight(g.kinds[y][0], []))
    if g.rank(y):
        g.reduce(op if g.chance(0.8) else g.rng.choice(ops), y, g.some_axes(y), g.rng.choice((0, 1)))


def shared(g: Grower) -> None:
    """Several reductions of one value."""
    x = g.any((*_REAL, I32, I64), 2)
    ops = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin") if g.kinds[x][0] in FLOATS else ("ReduceSum",)
    op = g.rng.choice(ops)
    for _ in range(g.rng.choice((2, 2, 3))):
        g.reduce(op if g.chance(0.7) else g.rng.choice(ops), x, g.some_axes(x), g.rng.choice((0, 1)))


def around(g: Grower) -> None:
    """Moves of axes before and after a reduction or a softmax."""
    x = g.any((*_REAL, I32), 2)
    rank = g.rank(x)
    order = list(range(rank))
    g.rng.shuffle(order)
    y = g.one("Transpose", x, perm=order)
    axes = g.some_axes(y)
    back = [order.index(i) for i in range(rank)]
    if g.chance(0.4) and g.kinds[x][0] in FLOATS and g.opset >= 13:
        y = g.one(g.rng.choice(("Softmax", "LogSoftmax", "Hardmax")), y, axis=axes[0])
    elif g.chance(0.3):
        y = g.one("ArgMax", y, axis=axes[0], keepdims=1)
    else:
        y = g.reduce(g.rng.choice(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2")), y, axes, 1)
    if g.chance(0.7):
        y = g.one("Transpose", y, perm=back if g.chance(0.8) else order)


def widened(g: Grower) -> None:
    """A reduction of what was expanded, joined, padded or reshaped."""
    x = g.any((*_REAL, I32, I64), 1)
    ops = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
    op, keep = g.rng.choice(ops), g.rng.choice((0, 1))
    turn = g.rng.randrange(4)
    if turn == 0:
        shape = [g.rng.choice((1, 2, 3)) if s == 1 else 1 for s in g.shape(x)]
        found = [s if n == 1 else n for s, n in zip(g.shape(x), shape, strict=True)]
        y = g.one("Expand", x, g.const(shape), shape=found)
    elif turn == 1:
        axis = g.rng.randrange(g.rank(x))
        y = g.one("Concat", x, _other(g, x, 0.5), axis=axis)
    elif turn == 2 and g.opset >= (13 if g.kinds[x][0] in (I32, I64) else 11):
        pads = [g.rng.choice((0, 0, 1, 2)) if isinstance(s, int) else 0 for s in g.shape(x)]
        if not all(isinstance(s, int) for s in g.shape(x)):
            raise MisfitError("a padded size has no name")
        value = g.rng.choice((0, 0, 1, -1))
        extra = [g.const(value, g.kinds[x][0])] if value else []
        y = g.one("Pad", x, g.const([*pads, *g.rng.sample(pads, len(pads))]), *extra)
    else:
        y = g.one("Flatten", x, axis=g.rng.randint(0, g.rank(x)))
    g.reduce(op, y, g.some_axes(y), keep)


def weighted(g: Grower) -> None:
    """A product and the sum of it."""
    x = g.any((F32, F32, F64, I32), 1)
    y = g.partner(x)
    g.reduce(g.rng.choice(("ReduceSum", "ReduceSum", "ReduceMean")), g.swapped("Mul", x, y), g.some_axes(x), 1)
    if g.chance(0.3):
        left, right = g.unsqueeze(x, [g.rank(x)]), g.unsqueeze(_other(g, x), [max(g.rank(x) - 1, 0)])
        z = g.one("Mul", left, right)
        g.reduce("ReduceSum", z, [g.rng.randrange(g.rank(z))], g.rng.choice((0, 1)))


def scaled(g: Grower) -> None:
    """A reduction of what is scaled or shifted; a result that is."""
    x = g.any((*_REAL, I32, I64), 1)
    by = g.weight(g.kinds[x][0], g.rng.choice(([], [], [1], g.like(g.shape(x)))))
    y = g.swapped(g.rng.choice(("Mul", "Add")), x, by)
    op = g.rng.choice(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare"))
    y = g.reduce(op if g.kinds[x][0] in FLOATS else "ReduceSum", y, g.some_axes(x), g.rng.choice((0, 1)))
    if g.chance(0.4):
        g.swapped("Mul", y, g.weight(g.kinds[y][0], []))


def group_norm(g: Grower) -> None:
    x = g.any((F32,), 3)
    shape = g.shape(x)
    if not all(isinstance(s, int) and s for s in shape[1:]):
        raise MisfitError("no known sizes")
    channels = int(shape[1])
    groups = g.rng.choice([n for n in (1, 2, 4, channels) if channels % n == 0])
    total = 1
    for size in shape[1:]:
        total *= int(size)
    if total == groups:
        raise MisfitError("norms of one element")
    y = g.one("Reshape", x, g.const([0, groups, -1]), shape=[shape[0], groups, total // groups])
    y = g.one("InstanceNormalization", y, g.const([1.0] * groups, F32), g.const([0.0] * groups, F32))
    y = g.one("Reshape", y, g.const([0, *shape[1:]]), shape=shape)
    wide = [channels if g.chance(0.9) else 1, *[1] * (len(shape) - 2)]
    y = g.swapped("Mul", y, g.weight(F32, wide))
    g.swapped("Add", y, g.weight(F32, wide))


PATTERNS = (
    (3, softmax), (2, log_sum_exp), (4, layer_norm), (3, rms_norm), (2, l2_norm), (1, mean_and_variance),
    (2, mean_by_count), (4, chosen_of_softmax), (2, top_one), (2, hot), (1, gathered), (3, chained), (2, shared),
    (3, around), (4, widened), (3, weighted), (3, scaled), (1, group_norm),
)  # fmt: skip
