"""Recipes of calls for random programs: operands and keywords of one call each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dmlc.ir import Dim, Value, symbol
from dmlc.ir.dtype import i32, i64, u32, u64
from dmlc.ops.attributes import WordKind, attribute_specs
from dmlc.ops.elementwise import UNARY, UnaryOperation
from dmlc.ops.indexing import SliceItem

if TYPE_CHECKING:
    from tools.fuzz.programs import Generator

INDEX_DTYPES = (i32, i64, u32, u64)


class NoneFits(Exception):
    """No value in sight suits the recipe."""


def broadcasts(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(x == y or x == 1 or y == 1 for x, y in pairs)


Made = tuple[list[Any], dict[str, Any]]


def _unary(op: UnaryOperation) -> Callable[[Generator], Made]:
    """A call on a tensor of any dtype that the operation takes; attributes are small factors, words, or left out."""
    kinds = "".join(sorted({dtype.kind[0] for dtype in op.operands[0].dtypes}))
    choices = {
        spec.name: spec.kind.words if isinstance(spec.kind, WordKind) else (0.25, 0.5, 1.0, 1.5)
        for spec in attribute_specs(op.attributes)
    }
    return lambda g: ([g.tensor(kinds)], {n: _chosen(g, some) for n, some in choices.items() if g.flag()})


def _chosen(g: Generator, some: Sequence[Any]) -> Any:
    """One of the words or numbers, or, for a number that is not an integer, a small one with a dim."""
    one = g.rng.choice(some)
    is_number = isinstance(one, float) and g.dims and g.rng.random() < 0.15
    return 1 / (g._size() * symbol(g.rng.choice(g.dims)[0]) + 1) if is_number else one


def _binary(kinds: str) -> Callable[[Generator], Made]:
    def made(g: Generator) -> Made:
        a = g.tensor(kinds)
        b = g.partner(a)
        return ([a, b] if g.rng.random() < 0.7 or not isinstance(b, Value) else [b, a]), {}

    return made


def _power(g: Generator) -> Made:
    """A negative exponent of integers is unspecified."""
    a = g.tensor("fiu")
    return [a, g.rng.choice((0, 1, 2, 3, 5)) if a.type.dtype.is_integer else g.partner(a)], {}


def _reduce(kinds: str) -> Callable[[Generator], Made]:
    def made(g: Generator) -> Made:
        x = g.tensor(kinds)
        keywords: dict[str, Any] = {"axes": g.axes(x)} if x.type.rank and g.rng.random() < 0.85 else {}
        return [x], keywords | ({"keepdims": g.flag()} if g.flag() else {})

    return made


def _arg(g: Generator) -> Made:
    x = g.tensor("fiu", 1)
    keywords: dict[str, Any] = {"axes": g.axes(x)}
    if g.flag():
        keywords |= g.rng.choice(({"ties": "first"}, {"ties": "last"}, {"axis_direction": "decreasing"}))
    if g.flag():
        keywords["dtype"] = g.rng.choice(INDEX_DTYPES)
    if g.flag():
        keywords["keepdims"] = g.flag()
    return [x], keywords


def _top_k(g: Generator) -> Made:
    x = g.tensor("fiu", 1)
    axis = g.axis(x)
    size = x.type.shape[axis]
    k: Dim = g.rng.randint(1, size) if isinstance(size, int) and size else size
    keywords: dict[str, Any] = {"k": k, "axis": axis}
    if g.flag():
        keywords |= g.rng.choice(({"order": "smallest"}, {"axis_direction": "decreasing"}, {"order": "largest"}))
    return [x], keywords | ({"dtype": g.rng.choice(INDEX_DTYPES)} if g.flag() else {})


def _along(kinds: str, **choices: Sequence[Any]) -> Callable[[Generator], Made]:
    def made(g: Generator) -> Made:
        x = g.tensor(kinds, 1)
        return [x], {"axis": g.axis(x), **{k: _chosen(g, v) for k, v in choices.items() if g.flag()}}

    return made


def _over(**choices: Sequence[Any]) -> Callable[[Generator], Made]:
    def made(g: Generator) -> Made:
        x = g.tensor("f", 1)
        return [x], {"axes": g.axes(x), **{k: _chosen(g, v) for k, v in choices.items() if g.flag()}}

    return made


def _scaled(count: int) -> Callable[[Generator], Made]:
    def made(g: Generator) -> Made:
        x = g.tensor("f", 1)
        axis = g.axis(x)
        shape = x.type.shape[axis:] if axis < 0 else x.type.shape[axis - x.type.rank :]
        scale = g.any(lambda v: v.type.dtype is x.type.dtype and v.type.shape == shape)
        return [x, *[scale] * count], {"axis": axis}

    return made


def _cast(g: Generator) -> Made:
    return [g.tensor()], g.dtype_of("to")


def _clip(g: Generator) -> Made:
    x = g.tensor("fiu")
    bounds = sorted(g.literal(x.type.dtype) for _ in range(2))
    return [x], g.rng.choice(({"min": bounds[0], "max": bounds[1]}, {"min": bounds[0]}, {"max": bounds[1]}))


def _where(g: Generator) -> Made:
    condition = g.tensor("b")
    a = g.any(lambda v: broadcasts(v.type.shape, condition.type.shape))
    return [condition, a, g.partner(a)], {}


def _reshape(g: Generator) -> Made:
    x = g.tensor()
    shape = list(x.type.shape)
    if len(shape) > 1 and g.flag():
        at = g.rng.randrange(len(shape) - 1)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    elif g.flag():
        shape.insert(g.rng.randint(0, len(shape)), 1)
    elif shape and isinstance(shape[-1], int) and shape[-1] % 2 == 0 and shape[-1]:
        shape[-1:] = [shape[-1] // 2, 2]
    else:
        shape = [-1]
    return [x], {"shape": shape}


def _transpose(g: Generator) -> Made:
    x = g.tensor(rank=1)
    return [x], {"perm": g.rng.sample(range(x.type.rank), x.type.rank)}


def _squeeze(g: Generator) -> Made:
    x = g.any(lambda v: 1 in v.type.shape)
    ones = [axis for axis, size in enumerate(x.type.shape) if size == 1]
    return [x], {"axes": g.rng.sample(ones, g.rng.randint(1, len(ones)))}


def _unsqueeze(g: Generator) -> Made:
    x = g.tensor()
    return [x], {"axes": [g.rng.randint(0, x.type.rank)]}


def _expand(g: Generator) -> Made:
    x = g.tensor()
    shape = [g._size() if size == 1 and g.flag() else size for size in x.type.shape]
    return [x], {"shape": [g._size()] * g.rng.choice((0, 0, 1)) + shape}


def _concat(g: Generator) -> Made:
    x = g.tensor(rank=1)
    axis = g.axis(x)
    like = lambda v: v.type.dtype is x.type.dtype and v.type.rank == x.type.rank  # noqa: E731
    return [x, *[g.any(like) for _ in range(g.rng.choice((1, 1, 2)))]], {"axis": axis}


def _split(g: Generator) -> Made:
    x = g.tensor(rank=1)
    axis = g.axis(x)
    size = x.type.shape[axis]
    if not isinstance(size, int) or size < 2:
        raise NoneFits
    first = g.rng.randint(1, size - 1)
    return [x], {"axis": axis, "sizes": [first, size - first]}


def _slice(g: Generator) -> Made:
    x = g.tensor(rank=1)
    axis = g.axis(x)
    size = x.type.shape[axis]
    if not isinstance(size, int):
        return [x], {"starts": [0], "ends": [size], "axes": [axis], "steps": [g.rng.choice((1, 2))]}
    start = g.rng.randint(-size, max(size - 1, 0))
    end = g.rng.choice((size, -1, max(1, size // 2)))
    return [x], {"starts": [start], "ends": [end], "axes": [axis], "steps": [g.rng.choice((1, 1, 2, -1))]}


def _pad(g: Generator) -> Made:
    x = g.tensor("fiu", 1)
    keywords = {"pads": [g.rng.choice((0, 0, 1, 2)) for _ in range(2 * x.type.rank)]}
    return [x], keywords | ({"value": g.number(x.type.dtype)} if g.flag() else {})


def _gather(elements: bool) -> Callable[[Generator], Made]:
    def made(g: Generator) -> Made:
        x = g.tensor(rank=1)
        wanted = x.type.rank if elements else 0
        index = g.any(lambda v: v.type.dtype in INDEX_DTYPES and v.producer is None and v.type.rank >= wanted)
        return [x, index], {"axis": g.axis(x)}

    return made


def _one_hot(g: Generator) -> Made:
    index = g.any(lambda v: v.type.dtype in INDEX_DTYPES and v.type.rank < 5)
    dtype = g._dtype()
    keywords: dict[str, Any] = {"depth": g.rng.choice((1, 2, 5)), "dtype": dtype}
    if g.flag():
        keywords |= {"on": g.number(dtype), "off": g.number(dtype)}
    return [index], keywords | ({"axis": g.rng.randrange(-1, index.type.rank + 1)} if g.flag() else {})


def _iota(g: Generator) -> Made:
    return [], {"length": g._size(), **g.dtype_of("dtype")}


def _full(g: Generator) -> Made:
    dtype = g._dtype()
    shape = [g._size() for _ in range(g.rng.choice((0, 1, 2)))]
    return [], {"shape": shape, "value": g.number(dtype), "dtype": dtype}


def _matmul(g: Generator) -> Made:
    a = g.tensor("fiu", 1)
    return [a, g.any(lambda v: v.type.dtype is a.type.dtype and v.type.rank >= 1)], {}


def _unary_recipes() -> list[tuple[str, Callable[[Generator], Made], int]]:
    """Every elementwise operation of one operand, by its name and its sign."""
    return [(name, _unary(op), 2) for op in UNARY for name in (op.name, op.symbol) if name is not None]


#: (operation, recipe, weight). A test demands one for each operation with a call form and each operator.
RECIPES: list[tuple[str, Callable[[Generator], Made], int]] = [
    *_unary_recipes(),
    *[(name, _binary("fiu"), 7) for name in ("+", "-", "*")],
    *[(name, _binary("fiu"), 3) for name in ("//", "%", "min", "max")], ("**", _power, 4), ("pow", _power, 2),
    ("/", _binary("f"), 3), ("onnx.Div", _binary("iu"), 2),
    *[(name, _binary("fiu"), 2) for name in ("<", "<=", ">", ">=")],
    *[(name, _binary("fiub"), 2) for name in ("==", "!=")],
    *[(name, _binary("biu"), 2) for name in ("&", "|", "^")],
    *[(f"reduce_{name}", _reduce("fiu"), 4) for name in ("sum", "mean", "prod", "l1", "sum_square")],
    *[(f"reduce_{name}", _reduce("fiub"), 5) for name in ("max", "min")],
    *[(f"reduce_{name}", _reduce("f"), 3) for name in ("l2", "log_sum", "log_sum_exp")],
    ("argmax", _arg, 10), ("argmin", _arg, 8), ("top_k", _top_k, 7), ("hardmax", _over(), 8),
    ("softmax", _over(), 5), ("log_softmax", _over(), 3),
    ("mean_variance_norm", _over(epsilon=(1e-5, 0.1, 0.5), variance=(True, False)), 3),
    ("layer_norm", _scaled(2), 3), ("rms_norm", _scaled(1), 3), ("lp_norm", _along("f", p=(1, 2)), 2),
    ("cumsum", _along("fiu", exclusive=(True, False), reverse=(True, False)), 2),
    ("cumprod", _along("fiu", exclusive=(True, False), reverse=(True, False)), 1),
    ("cast", _cast, 6), ("clip", _clip, 3), ("where", _where, 4), ("reshape", _reshape, 5),
    ("transpose", _transpose, 5), ("squeeze", _squeeze, 3), ("unsqueeze", _unsqueeze, 3), ("expand", _expand, 3),
    ("concat", _concat, 4), ("split", _split, 3), ("slice", _slice, 4), ("pad", _pad, 2),
    ("gather", _gather(False), 2), ("gather_elements", _gather(True), 2), ("one_hot", _one_hot, 2),
    ("iota", _iota, 1), ("full", _full, 1), ("matmul", _matmul, 4),
]  # fmt: skip


def _scatter(g: Generator) -> Made:
    x = g.tensor(rank=1)
    index = g.any(lambda v: v.type.dtype in INDEX_DTYPES and v.producer is None and v.type.rank == x.type.rank)
    updates = g.any(lambda v: v.type.dtype is x.type.dtype and v.type.shape == index.type.shape)
    return [x, index, updates], {"axis": g.axis(x)}


def _index(g: Generator) -> Made:
    """An index that exists for every size: integers only where the axis has them."""
    x = g.tensor(rank=1)
    items: list[Any] = []
    for size in x.type.shape[: g.rng.randint(1, x.type.rank)]:
        if isinstance(size, int) and size and g.flag():
            items.append(g.rng.randrange(-size, size))
        elif isinstance(size, int):
            first, last = [g.rng.choice((None, g.rng.randint(-size - 1, size + 1))) for _ in range(2)]
            items.append(SliceItem(first, last, g.rng.choice((None, None, 1, 2, -1, -2))))
        elif g.rng.random() < 0.3 and (least := int(max(g.graph.dims.interval(size)[0], 0))):
            items.append(g.rng.randrange(-least, least))
        else:
            start, stop = [g.rng.choice((None, g.rng.randint(-5, 9), g._size())) for _ in range(2)]
            items.append(SliceItem(start, stop, g.rng.choice((None, None, 1, 2, -1, -2))))
    if g.flag():
        items.insert(*((0, Ellipsis) if g.flag() and len(items) == x.type.rank else (len(items), Ellipsis)))
    return [x], {"items": items}


def _stack(g: Generator) -> Made:
    x = g.tensor()
    others = [g.any(lambda v: v.type == x.type) for _ in range(g.rng.choice((0, 1, 2)))]
    return [x, *others], {"axis": g.rng.randrange(-x.type.rank - 1, x.type.rank + 1)} if g.flag() else {}


def _tile(g: Generator) -> Made:
    x = g.tensor(rank=1)
    return [x], {"repeats": [g.rng.choice((1, 1, 2, 3)) for _ in range(x.type.rank)]}


def _flip(g: Generator) -> Made:
    x = g.tensor(rank=1)
    return [x], {"axes": g.axes(x)}


def _gather_batch(g: Generator) -> Made:
    """The indices share the first axis, or the first two, with x."""
    x = g.tensor(rank=2)
    batch = g.rng.choice((1, 1, 2)) if x.type.rank > 2 else 1
    shared = x.type.shape[:batch]
    index = g.any(
        lambda v: v.type.dtype in INDEX_DTYPES and v.producer is None and v.type.shape[: len(shared)] == shared
    )
    axis = g.rng.randrange(batch, x.type.rank)
    return [x, index], {"batch_axes": batch} | ({"axis": axis} if axis > batch or g.flag() else {})


def _pair(g: Generator) -> Made:
    x = g.tensor("f", 1)
    return [x, g.any(lambda v: v.type == x.type)], {"axis": g.axis(x)}


#: Blocks of the standard library, whose programs begin with a ``use`` line.
BLOCKS: dict[str, Callable[[Generator], Made]] = {
    "cosine_similarity": _pair,
    "huber_loss": lambda g: (_pair(g)[0], {"delta": g.rng.choice((0.5, 1, 2))}),
    "l2_normalize": _along("f", epsilon=(1e-6, 0.1)),
    "soft_argmax": _along("f"),
    "standard_deviation": _over(keepdims=(True, False)),
    "variance": _over(keepdims=(True, False)),
}

RECIPES += [
    *[(name, recipe, 1) for name, recipe in BLOCKS.items()],
    ("gather", _gather_batch, 2),
    ("scatter_elements", _scatter, 1), ("[]", _index, 6), ("sort", _along("fiu", descending=(True, False)), 2),
    ("argsort", _along("fiu", descending=(True, False), dtype=INDEX_DTYPES), 2),
    ("reduce_any", _reduce("b"), 2), ("reduce_all", _reduce("b"), 2), ("stack", _stack, 2), ("tile", _tile, 2),
    ("flip", _flip, 2),
]  # fmt: skip
