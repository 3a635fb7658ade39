"""Parts of random ONNX models: operators in all their forms, and what rewrites look for, or nearly."""

from __future__ import annotations

from typing import Any

from onnx import helper

from dmlc.ops import elementwise
from tools.fuzz.onnx_models import BOOL, F16, F32, F64, FLOATS, I32, I64, INTEGERS, NUMBERS, Grower, MisfitError

REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp",
)  # fmt: skip
UNARY = tuple([op.onnx for op in elementwise.UNARY if op.onnx and op.name not in ("sin", "cos", "is_nan", "is_inf")])
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Add", "Mul")


def _keepdims(g: Grower) -> int | None:
    return g.rng.choice((0, 1, None))


# --- operators


def reduction(g: Grower) -> None:
    x = g.any(NUMBERS)
    axes = None if g.chance(0.2) else g.some_axes(x)
    op = g.rng.choice(REDUCTIONS if g.kinds[x][0] in FLOATS else REDUCTIONS[:7])
    if g.opset >= 18 and g.chance(0.1):
        g.one(op, x, noop_with_empty_axes=g.rng.choice((0, 1)), keepdims=_keepdims(g))
    else:
        g.reduce(op, x, axes, _keepdims(g))


def arg(g: Grower) -> None:
    x = g.any((F32, F32, F16, F64, I32), 1)
    axis = g.rng.randrange(g.rank(x))
    last = g.rng.choice((0, 1, None)) if g.opset >= 12 else None
    g.one(
        g.rng.choice(("ArgMax", "ArgMin")), x, axis=g.sign(axis, g.rank(x)) if axis or g.chance(0.5) else None,
        keepdims=_keepdims(g), select_last_index=last,
    )  # fmt: skip


def top_k(g: Grower) -> None:
    x = g.any((F32, F64, I64, I32), 1)
    axis = g.rng.randrange(g.rank(x))
    size = g.shape(x)[axis]
    k = g.rng.randint(1, size) if isinstance(size, int) and size else 1
    extra: dict[str, Any] = {"largest": g.rng.choice((0, 1, None)), "sorted": 1} if g.opset >= 11 else {}
    if g.opset >= 10:
        g.put("TopK", [x, g.const([k])], 2, axis=g.sign(axis, g.rank(x)), **extra)
    else:
        g.put("TopK", [x], 2, axis=axis, k=k)


def soft(g: Grower) -> None:
    x = g.any((F32, F32, F64, F16), 1)
    axis = g.rng.randrange(g.rank(x))
    op = g.rng.choice(("Softmax", "LogSoftmax", "Hardmax"))
    g.one(op, x, axis=g.sign(axis, g.rank(x)) if g.opset >= 11 else axis)


def unary(g: Grower) -> None:
    x = g.any(NUMBERS)
    if g.kinds[x][0] in FLOATS:
        g.one(g.rng.choice(UNARY), x)
    else:
        g.one(g.rng.choice(("Abs", "Neg", "Sign")), x)


def binary(g: Grower) -> None:
    x = g.any(NUMBERS)
    y = g.partner(x)
    op = g.rng.choice(BINARY)
    if op == "Div" and g.kinds[x][0] in INTEGERS:
        y = g.const(g.rng.choice((1, 2, 3, -2)), g.kinds[x][0])
    g.one(op, *((x, y) if op == "Div" or g.chance(0.5) else (y, x)))


def power(g: Grower) -> None:
    x = g.any(FLOATS)
    exponent = g.rng.choice((2.0, 2.0, 0.5, -0.5, -1.0, 1.0, 3.0, 0.0))
    whole = g.opset >= 12 and exponent == int(exponent) and g.chance(0.3)
    g.one("Pow", x, g.const(exponent if g.chance(0.6) else [exponent], I64 if whole else g.kinds[x][0]))


def compare(g: Grower) -> None:
    x = g.any(NUMBERS)
    names = ("Greater", "Less", "Equal", *(("GreaterOrEqual", "LessOrEqual") if g.opset >= 12 else ()))
    g.one(g.rng.choice(names), *((x, g.partner(x)) if g.chance(0.5) else (g.partner(x), x)))


def logic(g: Grower) -> None:
    x = g.any((BOOL,))
    op = g.rng.choice(("And", "Or", "Xor", "Not"))
    g.put(op, [x] if op == "Not" else [x, g.partner(x)])


def where(g: Grower) -> None:
    c = g.any((BOOL,))
    x = g.partner(c, g.main)
    shape = g.shape(max(c, x, key=g.rank))
    values = [v for v in g.values if g.kinds[v][0] == g.main and g.shape(v) in (shape, ())]
    g.one("Where", c, x, g.rng.choice(values) if values and g.chance(0.7) else g.weight(g.main, []))


def clip(g: Grower) -> None:
    x = g.any((F32, F16, F64) if g.opset < 12 else (F32, F16, F64, I32, I64))
    dtype = g.kinds[x][0]
    low, high = g.rng.choice(((0, 6), (-1, 1), (0, None), (None, 2), (2, 1)))
    if g.opset < 11:
        g.one("Clip", x, min=None if low is None else float(low), max=None if high is None else float(high))
    else:
        ends = ["" if end is None else g.const(end, dtype) for end in (low, high)]
        g.put("Clip", [x, *ends] if ends[1] else [x, ends[0]])


def cast(g: Grower) -> None:
    x = g.any((*NUMBERS, BOOL))
    y = g.one("Cast", x, to=g.rng.choice((F32, F32, F16, F64, I32, I64, BOOL)))
    if g.chance(0.3):
        g.one("Cast", y, to=g.kinds[x][0])


def reshape(g: Grower) -> None:
    x = g.any((*NUMBERS, BOOL))
    shape, rank = list(g.shape(x)), g.rank(x)
    turn = g.rng.randrange(5)
    if turn == 0 and rank:  # flattened
        target = [-1]
    elif turn == 1 and rank >= 2:  # two axes become one
        at = g.rng.randrange(rank - 1)
        target = [0] * at + [-1] + [s for s in shape[at + 2 :] if isinstance(s, int)]
        if len(target) != rank - 1 or 0 in target[at:]:
            raise MisfitError("two free sizes")
    elif turn == 2:  # an axis becomes two
        found = [i for i, s in enumerate(shape) if isinstance(s, int) and s in (4, 8, 16)]
        if not found:
            raise MisfitError("nothing to split")
        at = g.rng.choice(found)
        parts = [2, int(shape[at]) // 2]
        target = [0] * at + parts + [s for s in shape[at + 1 :] if isinstance(s, int)]
        if len(target) != rank + 1 or 0 in target[at:]:
            raise MisfitError("two free sizes")
    elif turn == 3:
        target = [1, *([0] * 0), -1] if g.chance(0.5) else [-1, 1]
    elif g.opset >= 9 and rank:
        g.one("Flatten", x, axis=g.rng.randint(0, rank))
        return
    else:
        raise MisfitError("a scalar")
    g.one("Reshape", x, g.const(target), shape=_reshaped(shape, target))


def _reshaped(shape: list[int | str], target: list[int]) -> list[int | str]:
    out: list[int | str] = [shape[i] if size == 0 else size for i, size in enumerate(target)]
    if -1 in out:
        left, known = [*shape], [size for size in out if size != -1]
        for size in known:
            if isinstance(size, str):
                left.remove(size)
        names = [size for size in left if isinstance(size, str)]
        total, taken = 1, 1
        for size in left:
            total *= size if isinstance(size, int) else 1
        for size in known:
            taken *= size if isinstance(size, int) else 1
        if taken == 0 or total % taken or len(names) > 1 or (names and total != taken):
            raise MisfitError("no name for the size")
        out[out.index(-1)] = names[0] if names else total // taken
    return out


def computed_reshape(g: Grower) -> None:
    """A shape put together from the shape of a value."""
    x = g.any(NUMBERS, 2)
    shape, rank = g.shape(x), g.rank(x)
    source = g.put("Shape", [x], hidden=True)[0]
    keep = g.rng.randrange(rank)
    if g.chance(0.5):
        one = g.put("Gather", [source, g.const(keep)], hidden=True, axis=0)[0]
        one = _hidden_unsqueeze(g, one)
    else:
        one = g.put("Gather", [source, g.const([keep])], hidden=True)[0]
    if shape[keep] == 0:
        raise MisfitError("a 0 in a shape is the size of the operand's axis")
    sizes = [s for i, s in enumerate(shape) if i != keep]
    if sum(isinstance(s, str) for s in sizes) > (1 if all(isinstance(s, str) or s == 1 for s in sizes) else 0):
        raise MisfitError("no name for the size")
    count: int | str = 1
    for size in sizes:
        count = size if isinstance(size, str) else count if isinstance(count, str) else count * size
    order = [one, g.const([-1])]
    result: list[int | str] = [shape[keep], count]
    if g.chance(0.4):
        order, result = order[::-1], result[::-1]
    target = g.put("Concat", order, hidden=True, axis=0)[0]
    g.one("Reshape", x, target, shape=result)


def _hidden_unsqueeze(g: Grower, x: str) -> str:
    if g.opset >= 13:
        return g.put("Unsqueeze", [x, g.const([0])], hidden=True)[0]
    return g.put("Unsqueeze", [x], hidden=True, axes=[0])[0]


def full_like(g: Grower) -> None:
    x = g.any(NUMBERS)
    source = g.put("Shape", [x], hidden=True)[0]
    value = helper.make_tensor("value", g.kinds[x][0] if g.kinds[x][0] != F16 else F32, [1], [g.rng.choice((0, 1, 2))])
    y = g.put("ConstantOfShape", [source], shape=g.shape(x), value=value)[0]
    if g.kinds[y][0] == g.kinds[x][0] and g.chance(0.7):
        g.swapped(g.rng.choice(("Add", "Mul")), x, y)


def size_arithmetic(g: Grower) -> None:
    """A number computed from a size: the count in a mean."""
    x = g.any((F32, F16, F64), 1)
    axis = g.rng.randrange(g.rank(x))
    source = g.put("Shape", [x], hidden=True)[0]
    one = g.put("Gather", [source, g.const(axis if g.chance(0.8) else 0)], hidden=True)[0]
    count = g.put("Cast", [one], hidden=True, to=g.kinds[x][0])[0]
    total = g.reduce("ReduceSum", x, [axis], g.rng.choice((0, 1)))
    g.one("Div", total, count)


def transpose(g: Grower) -> None:
    x = g.any((*NUMBERS, BOOL), 2)
    order = list(range(g.rank(x)))
    g.rng.shuffle(order)
    y = g.one("Transpose", x, perm=order if g.chance(0.9) else None)
    if g.chance(0.3):
        g.rng.shuffle(order)
        g.one("Transpose", y, perm=order)


def squeeze(g: Grower) -> None:
    x = g.any((*NUMBERS, BOOL), 1)
    ones = [i for i, size in enumerate(g.shape(x)) if size == 1]
    if not ones:
        raise MisfitError("no axis of size 1")
    g.squeeze(x, g.rng.sample(ones, g.rng.randint(1, len(ones))))


def unsqueeze(g: Grower) -> None:
    x = g.any((*NUMBERS, BOOL), most=4)
    count = g.rng.choice((1, 1, 2))
    g.unsqueeze(x, g.rng.sample(range(g.rank(x) + count), count))


def expand(g: Grower) -> None:
    x = g.any(NUMBERS)
    shape = [s if isinstance(s, int) and s != 1 else g.rng.choice((1, 2, 3)) if s == 1 else 1 for s in g.shape(x)]
    if g.chance(0.3):
        shape = [g.rng.choice((1, 2)), *shape]
    found = [s if n == 1 else n for s, n in zip([*([1] * (len(shape) - g.rank(x))), *g.shape(x)], shape, strict=True)]
    g.one("Expand", x, g.const(shape), shape=found)


def concat(g: Grower) -> None:
    x = g.any(NUMBERS, 1)
    axis = g.rng.randrange(g.rank(x))
    base = g.shape(x)

    def joins(v: str) -> bool:
        same = [i for i, (p, q) in enumerate(zip(g.shape(v), base, strict=False)) if p != q and i != axis]
        return g.kinds[v][0] == g.kinds[x][0] and g.rank(v) == len(base) and not same

    found = [v for v in g.values if joins(v)]
    parts = [x, *g.rng.choices(found, k=g.rng.choice((0, 1, 1, 2)))]
    if all(isinstance(s, int) for s in base) and g.chance(0.3):
        parts.append(g.weight(g.kinds[x][0], [int(s) for s in base]))
    g.put("Concat", parts, axis=g.sign(axis, len(base)) if g.opset >= 11 else axis)


def split(g: Grower) -> None:
    x = g.any(NUMBERS, 1)
    found = [i for i, size in enumerate(g.shape(x)) if isinstance(size, int) and size >= 2]
    if not found:
        raise MisfitError("nothing to split")
    axis = g.rng.choice(found)
    size = int(g.shape(x)[axis])
    first = g.rng.randint(1, size - 1)
    if g.chance(0.4) and size % 2 == 0:
        g.put("Split", [x], 2, axis=axis, num_outputs=2 if g.opset >= 18 else None)
    elif g.opset >= 13:
        g.put("Split", [x, g.const([first, size - first])], 2, axis=g.sign(axis, g.rank(x)))
    else:
        g.put("Split", [x], 2, axis=axis, split=[first, size - first])


def cut(g: Grower) -> None:
    x = g.any((F32, F16, F64, I32, I64), 1)
    found = [i for i, size in enumerate(g.shape(x)) if isinstance(size, int)]
    if not found:
        raise MisfitError("no known size")
    axis = g.rng.choice(found)
    ends = (0, 1, -1, 2, 10, -10, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
    start, end = g.rng.choice((0, 0, 1, -1, -2, 10)), g.rng.choice(ends)
    if g.opset < 10:
        g.one("Slice", x, starts=[start], ends=[end], axes=[axis])
        return
    step = g.rng.choice((1, 1, 2, -1, -1, -2))
    if step < 0 and end in (2**31 - 1, 2**63 - 1):  # ONNX's nothing is ONNX Runtime's everything
        end = -(2**63)
    names = [g.const([n]) for n in (start, end, g.sign(axis, g.rank(x)), step)]
    g.one("Slice", x, *names[: 4 if step != 1 or g.chance(0.5) else 3])


def pad(g: Grower) -> None:
    x = g.any((F32, F32, F64) if g.opset < 13 else NUMBERS, 1)
    if not all(isinstance(s, int) for s in g.shape(x)):
        raise MisfitError("a padded size has no name")
    pads = [g.rng.choice((0, 0, 0, 1, 2, -1 if g.chance(0.2) else 0)) for _ in range(2 * g.rank(x))]
    if any(int(s) + a + b < 0 for s, a, b in zip(g.shape(x), pads, pads[g.rank(x) :], strict=False)):
        raise MisfitError("less than nothing")
    value = g.rng.choice((0, 0, 0, 1, -2))
    if g.opset < 11:
        g.one("Pad", x, pads=pads, value=float(value))
    else:
        g.one("Pad", x, g.const(pads), *([g.const(value, g.kinds[x][0])] if value or g.chance(0.3) else []))


def gather(g: Grower) -> None:
    x = g.any(NUMBERS, 1)
    axis = g.rng.randrange(g.rank(x))
    size = g.shape(x)[axis]
    most = size - 1 if isinstance(size, int) else 0
    if most < 0:
        raise MisfitError("nothing to gather")
    low = -most - 1 if g.opset >= 11 else 0
    indices = [g.rng.randint(low, most) for _ in range(g.rng.choice((1, 2, 3)))]
    g.one("Gather", x, g.const(indices if g.chance(0.6) else indices[0], g.rng.choice(INTEGERS)), axis=axis)


def scatter(g: Grower) -> None:
    x = g.any(NUMBERS, 1)
    if g.opset < 11 or not all(isinstance(s, int) and s for s in g.shape(x)):
        raise MisfitError("no known sizes")
    axis, shape = g.rng.randrange(g.rank(x)), [int(s) for s in g.shape(x)]
    places = list(range(shape[axis]))
    g.rng.shuffle(places)
    count = g.rng.randint(1, len(places))
    part = [count if i == axis else s for i, s in enumerate(shape)]
    import numpy as np

    index = np.broadcast_to(np.array(places[:count]).reshape([-1 if i == axis else 1 for i in range(len(shape))]), part)
    if g.chance(0.5):
        g.one("GatherElements", x, g.const(index), axis=axis)
    else:
        g.one("ScatterElements", x, g.const(index), g.weight(g.kinds[x][0], part), axis=axis)


def one_hot(g: Grower) -> None:
    x = g.any((I64, F32), most=3)
    depth = g.rng.choice((1, 3, 4))
    values = g.const(g.rng.choice(([0, 1], [1, 0], [-1, 2])), g.rng.choice((F32, F32, I64)))
    index = x if g.kinds[x][0] == I64 else g.one("Cast", x, to=I64)
    axis = g.rng.choice((-1, None, g.rng.randint(0, g.rank(x))))
    shape = list(g.shape(x))
    shape.insert(len(shape) if axis in (-1, None) else int(axis or 0), depth)
    g.one("OneHot", index, g.const(depth if g.chance(0.6) else [depth]), values, axis=axis, shape=shape)


def cumulate(g: Grower) -> None:
    x = g.any((F32, F64, I32, I64), 1)
    axis = g.const(g.sign(g.rng.randrange(g.rank(x)), g.rank(x)), g.rng.choice(INTEGERS))
    g.one("CumSum", x, axis, exclusive=g.rng.choice((0, 1, None)), reverse=g.rng.choice((0, 1, None)))


def matmul(g: Grower) -> None:
    x = g.any((F32, F32, F16, F64), 1)
    inner = g.shape(x)[-1]
    found = [v for v in g.values if g.kinds[v][0] == g.kinds[x][0] and g.rank(v) == 2 and g.shape(v)[0] == inner]
    if found and g.chance(0.5):
        g.one("MatMul", x, g.rng.choice(found))
    elif isinstance(inner, int):
        g.one("MatMul", x, g.weight(g.kinds[x][0], [inner, g.rng.choice((1, 2, 4))] if g.chance(0.8) else [inner]))


def gemm(g: Grower) -> None:
    x = g.any((F32, F64), 2, most=2)
    turned = g.rng.choice((0, 1))
    inner = g.shape(x)[0 if turned else 1]
    if not isinstance(inner, int):
        raise MisfitError("no known size")
    wide, flip = g.rng.choice((1, 2, 4)), g.rng.choice((0, 1))
    w = g.weight(g.kinds[x][0], [wide, inner] if flip else [inner, wide])
    c = [g.weight(g.kinds[x][0], g.rng.choice(([wide], [1], [1, wide])))] if g.opset < 11 or g.chance(0.6) else []
    g.one("Gemm", x, w, *c, transA=turned, transB=flip, alpha=g.rng.choice((None, 0.5)), beta=g.rng.choice((None, 2.0)))


def einsum(g: Grower) -> None:
    x = g.any((F32, F64), 1, most=3)
    letters = "abc"[: g.rank(x)]
    out = "".join(g.rng.sample(letters, g.rng.randint(0, len(letters))))
    if g.chance(0.5):
        g.one("Einsum", x, equation=f"{letters}->{out}")
    else:
        y = x if g.chance(0.4) else next((v for v in g.values if g.kinds[v] == g.kinds[x]), x)
        g.one("Einsum", x, y, equation=f"{letters},{letters}->{out}")


def norm(g: Grower) -> None:
    x = g.any((F32, F32, F64), 1)
    axis = g.rng.randrange(g.rank(x))
    sizes = g.shape(x)[axis:]
    if g.opset < 17 or not all(isinstance(s, int) for s in sizes):
        raise MisfitError("no layer norm")
    weights = [g.weight(g.kinds[x][0], [int(s) for s in sizes]) for _ in range(g.rng.choice((1, 2)))]
    results = g.rng.choice((1, 1, 1, 3)) if g.kinds[x][0] == F32 else 1
    g.put(
        "LayerNormalization", [x, *weights], results, axis=g.sign(axis, g.rank(x)), epsilon=g.rng.choice((None, 1e-3))
    )


def spatial(g: Grower) -> None:
    """Operators over images: instance and batch norms, convolutions, pools."""
    x = g.any((F32,), 3)
    channels = g.shape(x)[1]
    if not isinstance(channels, int) or not channels:
        raise MisfitError("no known channels")
    turn = g.rng.randrange(4)
    if turn == 0:
        if not any(isinstance(size, int) and size > 1 for size in g.shape(x)[2:]):
            raise MisfitError("of one element ONNX Runtime makes what it rounds away")
        y = g.one("InstanceNormalization", x, g.weight(F32, [channels]), g.weight(F32, [channels]))
        if g.chance(0.5):
            g.swapped(g.rng.choice(("Mul", "Add")), y, g.weight(F32, [channels, *[1] * (g.rank(x) - 2)]))
    elif turn == 1:
        variance = g.const([g.rng.choice((0.5, 1, 2)) for _ in range(channels)], F32)
        parts = [g.weight(F32, [channels]) for _ in range(3)]
        g.one("BatchNormalization", x, *parts, variance, epsilon=g.rng.choice((None, 1e-3)))
    elif turn == 2:
        out = g.rng.choice((1, 2, 3))
        w = g.weight(F32, [out, channels, *[1] * (g.rank(x) - 2)])
        bias = [g.weight(F32, [out])] if g.chance(0.4) else []
        y = g.one("Conv", x, w, *bias)
        if g.chance(0.6):
            g.swapped("Add", y, g.weight(F32, g.rng.choice(([out, *[1] * (g.rank(x) - 2)], [1], []))))
    else:
        g.one(g.rng.choice(("GlobalAveragePool", "GlobalMaxPool")), x)


def branch(g: Grower) -> None:
    """An If on a constant or on a number that was computed."""
    x = g.any((F32, F32, F64))
    flags = [v for v in g.values if g.kinds[v] in ((BOOL, ()), (BOOL, (1,)))]
    c = g.rng.choice(flags) if flags and g.chance(0.7) else g.const(g.rng.choice((True, False)), BOOL)
    bodies = []
    for op in g.rng.sample(("Relu", "Exp", "Identity", "Neg", "Abs"), 2):
        inner, result = g.fresh("b"), g.fresh("b")
        nodes = [helper.make_node(op, [x], [inner]), helper.make_node("Tanh", [inner], [result])]
        shape = None if g.chance(0.3) else list(g.shape(x))
        info = helper.make_tensor_value_info(result, g.kinds[x][0], shape)
        bodies.append(helper.make_graph(nodes, op, [], [info]))
    g.put("If", [c], shape=g.shape(x), dtype=g.kinds[x][0], then_branch=bodies[0], else_branch=bodies[1])


def idle(g: Grower) -> None:
    x = g.any((F32, F16, F64))
    turn = g.rng.randrange(4)
    if turn == 0:
        g.one("Dropout", x)
    elif turn == 1:
        g.one("Identity", g.any((*NUMBERS, BOOL)))
    elif turn == 2:
        op = g.rng.choice(("Neg", "Reciprocal", "Abs", "Relu"))
        g.one(op, g.one(op, x))
    else:
        one = g.const(g.rng.choice((0, 1, [0.0], [[1.0]])), g.kinds[x][0])
        g.one(g.rng.choice(("Add", "Sub", "Mul", "Div")), x, one)


OPERATORS = (
    (6, reduction), (3, arg), (2, top_k), (3, soft), (4, unary), (4, binary), (2, power), (1, compare), (1, logic),
    (2, where), (1, clip), (2, cast), (2, reshape), (1, computed_reshape), (1, full_like), (1, size_arithmetic),
    (3, transpose), (2, squeeze), (2, unsqueeze), (2, expand), (2, concat), (1, split), (2, cut), (1, pad),
    (1, gather), (1, scatter), (1, one_hot), (1, cumulate), (2, matmul), (1, gemm), (1, einsum), (1, norm),
    (3, spatial), (1, branch), (2, idle),
)  # fmt: skip
