"""Random valid programs of the language: every line is typed by the compiler's own rules, or thrown away."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dmlc.diagnostics import DmlcError
from dmlc.ir import DTYPES, Dim, DimExpr, DType, Graph, OpError, Tensor, TensorType, Value, symbol
from dmlc.ir.dtype import bool_, f16, f32, i32, i64, u32, u64
from dmlc.ir.size_number import Arithmetic
from dmlc.ops import INFIX, OPERATIONS, PREFIX
from dmlc.ops.attributes import WordKind, attribute_specs
from dmlc.ops.call import CallSite, call_results
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.elementwise import UNARY, UnaryOperation
from dmlc.ops.indexing import SliceItem, index_tensor
from dmlc.ops.ranges import range_of

DTYPE_WEIGHTS: dict[DType, int] = dict.fromkeys(DTYPES, 2) | {f32: 12, f16: 6, i32: 5, i64: 4, bool_: 3}
INDEX_DTYPES = (i32, i64, u32, u64)


@dataclass(frozen=True)
class Line:
    """One statement. ``operands`` are names or literals as text, ``keywords`` (name, text)."""

    results: tuple[str, ...]
    op: str
    operands: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{', '.join(self.results)} = {self.call}"

    @property
    def call(self) -> str:
        if self.op in INFIX and len(self.operands) == 2:
            return f"{self.operands[0]} {self.op} {self.operands[1]}"
        if self.op in PREFIX and len(self.operands) == 1:
            return f"{self.op}{self.operands[0]}"
        if self.op == "[]":
            return f"{self.operands[0]}[{self.keywords[0][1]}]"
        return f"{self.op}({', '.join([*self.operands, *(f'{k}={v}' for k, v in self.keywords)])})"


@dataclass(frozen=True)
class FuzzProgram:
    """A program in parts, so that it can be made smaller. ``inputs`` and ``types`` hold types as text, by name."""

    dims: tuple[tuple[str, int, int], ...]
    consts: tuple[tuple[str, str, str], ...]
    inputs: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]
    types: dict[str, str] = field(default_factory=dict, compare=False)

    def text(self) -> str:
        """The source."""
        out = [f"dim {name} in {low}..{high}" for name, low, high in self.dims]
        out += [f"const {name}: {type_} = {literal}" for name, type_, literal in self.consts]
        parameters = ", ".join(f"{name}: {type_}" for name, type_ in self.inputs)
        results = ", ".join(f"r{i}" for i in range(len(self.outputs)))
        out.append(f"model fuzz({parameters}) -> ({results}) {{")
        out += [f"    {line}" for line in self.lines]
        out += [f"    return {', '.join(self.outputs)}", "}"]
        return "\n".join(out) + "\n"

    def cleaned(self) -> FuzzProgram:
        """Without lines, inputs and dims that nothing uses."""
        used, kept = set(self.outputs), []
        for line in reversed(self.lines):
            if used.intersection(line.results):
                kept.append(line)
                used.update(line.operands)
                used.update(text for _, text in line.keywords)
        words = " ".join(text for line in kept for text in (*line.operands, *(text for _, text in line.keywords)))
        named = {dim for dim, _, _ in self.dims if dim in words}  # an input must tell their size
        inputs = tuple((n, t) for n, t in self.inputs if n in used or any(dim in t for dim in named))
        body = " ".join([words, *(t for _, t in inputs)])
        dims = tuple(dim for dim in self.dims if dim[0] in body)
        consts = tuple(const for const in self.consts if const[0] in used)
        return replace(self, dims=dims, consts=consts, inputs=inputs, lines=tuple(reversed(kept)))


class Generator:
    """Grows one program. The same seed gives the same program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.graph = Graph("fuzz")
        self.dims: list[tuple[str, int, int]] = []
        self.consts: list[tuple[str, str, str]] = []
        self.inputs: list[tuple[str, str]] = []
        self.lines: list[Line] = []
        self.values: dict[str, Value] = {}

    def program(self) -> FuzzProgram:
        """A program of up to some twenty lines; never without a result."""
        rng = self.rng
        for name in rng.sample("NMK", rng.choice((0, 0, 0, 1, 1, 2))):
            low = rng.choice((0, 1, 1, 1, 2))
            high = rng.randint(max(low, 1), 9)
            self.dims.append((name, low, high))
            self.graph.declare_dim(name, (low, high))
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            self._input()
        for _ in range(rng.choice((0, 0, 1, 2))):
            self._const()
        wanted = rng.choice((1, 2, 3, 4, 6, 8, 12, 18))
        for _ in range(wanted * 6):
            if len(self.lines) >= wanted:
                break
            self._line()
        made = [name for line in self.lines for name in line.results]
        used = {name for line in self.lines for name in line.operands}
        outputs = [name for name in made if name not in used] or made[-1:] or [self.inputs[0][0]]
        if made and rng.random() < 0.3:
            outputs.append(rng.choice(made))
        types = {name: str(value.type) for name, value in self.values.items()}
        parts = tuple(self.dims), tuple(self.consts), tuple(self.inputs), tuple(self.lines)
        return FuzzProgram(*parts, tuple(outputs[:6]), types).cleaned()

    # --- parts

    def _dtype(self) -> DType:
        return self.rng.choices(list(DTYPE_WEIGHTS), list(DTYPE_WEIGHTS.values()))[0]

    def _size(self) -> Dim:
        if self.dims and self.rng.random() < 0.5:
            return symbol(self.rng.choice(self.dims)[0])
        return self.rng.choice((1, 1, 2, 2, 3, 3, 4, 5, 7))

    def _input(self) -> None:
        name = f"x{len(self.inputs)}"
        shape = [self._size() for _ in range(self.rng.choice((0, 1, 2, 2, 3, 3, 4)))]
        if not self.inputs:  # every dim stands alone in an input
            shape += [symbol(dim) for dim, _, _ in self.dims if symbol(dim) not in shape]
        if self.inputs and self.rng.random() < 0.4:
            shape = list(self._any().type.shape)
        dtype = self._dtype()
        if self.inputs and self.rng.random() < 0.5:
            dtype = self._any().type.dtype
        alone = {dim for dim in shape if isinstance(dim, DimExpr) and dim.name}
        shape = [dim for dim in shape if isinstance(dim, int) or dim in alone]
        type_ = TensorType(dtype, tuple(shape))
        self.values[name] = self.graph.add_input(name, type_)
        promised = ""
        if dtype is not bool_ and self.rng.random() < 0.15:
            low, high = self.rng.choice(((0, 1), (0, 4), (1, 3), (-2, 2), (-3, -1) if dtype.kind != "uint" else (2, 2)))
            if low >= 0 or dtype.kind != "uint":
                self.graph.ranges[name] = range_of(dtype, low, high)
                promised = f" in {low}..{high}"
        self.inputs.append((name, f"{type_}{promised}"))

    def _const(self) -> None:
        name, dtype = f"c{len(self.consts)}", self._any().type.dtype
        shape = [size for size in self._any().type.shape[-2:] if isinstance(size, int) and size]
        count = int(np.prod(shape))
        data = np.array([self.literal(dtype) for _ in range(count)], dtype.numpy).reshape(shape)
        node = self.graph.add(CONSTANT, [], ConstantAttributes(value=Tensor(data)))
        self.values[name] = node.result
        self.consts.append((name, str(node.result.type), _word(data.tolist())))

    def _any(self, fits: Callable[[Value], bool] = lambda value: True) -> Value:
        """A value, more often a young one. Raises ``_NoneFits``."""
        found = [value for value in self.values.values() if fits(value)]
        if not found:
            raise _NoneFits
        return found[min(int(self.rng.triangular(0, len(found), len(found))), len(found) - 1)]

    def _name(self, value: Value) -> str:
        return next(name for name, other in self.values.items() if other is value)

    def _line(self) -> None:
        name, recipe, _ = self.rng.choices(RECIPES, [weight for *_, weight in RECIPES])[0]
        try:
            operands, keywords = recipe(self)
            self._add(name, operands, keywords)
        except (_NoneFits, DmlcError, OpError):
            return

    def _add(self, name: str, operands: Sequence[Any], keywords: dict[str, Any]) -> None:
        if name == "[]":
            self._add_index(operands[0], keywords["items"])
            return
        op = PREFIX[name] if name in PREFIX and len(operands) == 1 else INFIX.get(name) or OPERATIONS[name]
        made = call_results(self.graph, op, operands, keywords, CallSite())
        if any(value.type.rank > 6 or _is_large(value.type) for value in made):
            return
        results = tuple(f"v{len(self.values) + i}" for i in range(len(made)))
        texts = tuple(self._name(o) if isinstance(o, Value) else _operand(o) for o in operands)
        words = tuple((k, self._name(v) if isinstance(v, Value) else _word(v)) for k, v in keywords.items())
        self.lines.append(Line(results, name, texts, words))
        self.values.update(zip(results, made, strict=True))

    def _add_index(self, x: Value, items: Sequence[Any]) -> None:
        value = index_tensor(self.graph, x, items, CallSite())
        if value is x or _is_large(value.type):
            return
        name, text = f"v{len(self.values)}", ", ".join(map(_item, items))
        self.lines.append(Line((name,), "[]", (self._name(x),), (("items", text),)))
        self.values[name] = value

    # --- what recipes ask for

    def tensor(self, kinds: str = "fiub", rank: int = 0) -> Value:
        """A value of that kind (f float, i int, u uint, b bool) with at least so many axes."""
        kind = {"float": "f", "int": "i", "uint": "u", "bool": "b"}
        return self._any(lambda v: kind[v.type.dtype.kind] in kinds and v.type.rank >= rank)

    def axes(self, x: Value, least: int = 1) -> list[int]:
        rank = x.type.rank
        chosen = self.rng.sample(range(rank), self.rng.randint(min(least, rank), rank))
        return [a - rank if self.rng.random() < 0.2 else a for a in chosen]

    def axis(self, x: Value) -> int:
        if not x.type.rank:
            raise _NoneFits
        return self.rng.randrange(-x.type.rank, x.type.rank)

    def partner(self, a: Value) -> Value | Any:
        """A second operand that may broadcast: a value or a literal."""
        if self.dims and a.type.dtype is not bool_ and self.rng.random() < 0.15:
            return self.size_number(a.type.dtype)
        if self.rng.random() < 0.35:
            return self.literal(a.type.dtype)
        return self._any(lambda v: v.type.dtype is a.type.dtype and _broadcasts(v.type.shape, a.type.shape))

    def literal(self, dtype: DType) -> Any:
        if dtype is bool_:
            return self.rng.random() < 0.5
        if dtype.is_integer:
            choices = [1, 2, 3, 5, 7, 0, int(dtype.highest)] + ([] if dtype.kind == "uint" else [-1, -3])
            return self.rng.choice(choices)
        return self.rng.choice((0.5, 1.0, 2.0, 3.0, -1.5, 0.0, 0.1, 1e-3, 40.0, -0.25))

    def dtype_of(self, keyword: str) -> dict[str, Any]:
        """A dtype by name, or that of a value."""
        return {"like": self.tensor()} if self.values and self.rng.random() < 0.2 else {keyword: self._dtype()}

    def size_number(self, dtype: DType) -> Any:
        """A number with a dim, never 0."""
        dim = symbol(self.rng.choice(self.dims)[0]) + 1
        choices: list[Any] = [dim, dim * 2 - 1, (dim + 3) // 2]
        if dtype.is_float:
            choices += [dim / 2, 1 / dim, dim**-0.5, dim % 2.5 + 1, -(dim / 4)]
        return self.rng.choice(choices)

    def flag(self) -> bool:
        return self.rng.random() < 0.5


class _NoneFits(Exception):
    """No value in sight suits the recipe."""


def _is_large(type_: TensorType) -> bool:
    size = 1
    for dim in type_.shape:
        size *= dim if isinstance(dim, int) else 5
    return size > 4096


def _broadcasts(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(x == y or x == 1 or y == 1 for x, y in pairs)


def _operand(value: Any) -> str:
    return f"({value})" if isinstance(value, Arithmetic) else _word(value)


def _item(item: Any) -> str:
    """An item of an index."""
    if isinstance(item, SliceItem):
        start, stop, step = ["" if part is None else str(part) for part in (item.start, item.stop, item.step)]
        return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
    return "..." if item is Ellipsis else str(item)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, DType):
        return value.name
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_word, value))}]"
    return str(value)


# --- recipes: (operands, keywords) of one call

Made = tuple[list[Any], dict[str, Any]]


def _unary(op: UnaryOperation) -> Callable[[Generator], Made]:
    """A call on a tensor of any dtype that the operation takes; attributes are small factors, words, or left out."""
    kinds = "".join(sorted({dtype.kind[0] for dtype in op.operands[0].dtypes}))
    choices = {
        spec.name: spec.kind.words if isinstance(spec.kind, WordKind) else (0.25, 0.5, 1.0, 1.5)
        for spec in attribute_specs(op.attributes)
    }
    return lambda g: ([g.tensor(kinds)], {n: g.rng.choice(some) for n, some in choices.items() if g.flag()})


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
        return [x], {"axis": g.axis(x), **{k: g.rng.choice(v) for k, v in choices.items() if g.flag()}}

    return made


def _over(**choices: Sequence[Any]) -> Callable[[Generator], Made]:
    def made(g: Generator) -> Made:
        x = g.tensor("f", 1)
        return [x], {"axes": g.axes(x), **{k: g.rng.choice(v) for k, v in choices.items() if g.flag()}}

    return made


def _scaled(count: int) -> Callable[[Generator], Made]:
    def made(g: Generator) -> Made:
        x = g.tensor("f", 1)
        axis = g.axis(x)
        shape = x.type.shape[axis:] if axis < 0 else x.type.shape[axis - x.type.rank :]
        scale = g._any(lambda v: v.type.dtype is x.type.dtype and v.type.shape == shape)
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
    a = g._any(lambda v: _broadcasts(v.type.shape, condition.type.shape))
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
    x = g._any(lambda v: 1 in v.type.shape)
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
    return [x, *[g._any(like) for _ in range(g.rng.choice((1, 1, 2)))]], {"axis": axis}


def _split(g: Generator) -> Made:
    x = g.tensor(rank=1)
    axis = g.axis(x)
    size = x.type.shape[axis]
    if not isinstance(size, int) or size < 2:
        raise _NoneFits
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
    return [x], keywords | ({"value": g.literal(x.type.dtype)} if g.flag() else {})


def _gather(elements: bool) -> Callable[[Generator], Made]:
    def made(g: Generator) -> Made:
        x = g.tensor(rank=1)
        wanted = x.type.rank if elements else 0
        index = g._any(lambda v: v.type.dtype in INDEX_DTYPES and v.producer is None and v.type.rank >= wanted)
        return [x, index], {"axis": g.axis(x)}

    return made


def _one_hot(g: Generator) -> Made:
    index = g._any(lambda v: v.type.dtype in INDEX_DTYPES and v.type.rank < 5)
    dtype = g._dtype()
    keywords: dict[str, Any] = {"depth": g.rng.choice((1, 2, 5)), "dtype": dtype}
    if g.flag():
        keywords |= {"on": g.literal(dtype), "off": g.literal(dtype)}
    return [index], keywords | ({"axis": g.rng.randrange(-1, index.type.rank + 1)} if g.flag() else {})


def _iota(g: Generator) -> Made:
    return [], {"length": g._size(), **g.dtype_of("dtype")}


def _full(g: Generator) -> Made:
    dtype = g._dtype()
    shape = [g._size() for _ in range(g.rng.choice((0, 1, 2)))]
    return [], {"shape": shape, "value": g.literal(dtype), "dtype": dtype}


def _matmul(g: Generator) -> Made:
    a = g.tensor("fiu", 1)
    return [a, g._any(lambda v: v.type.dtype is a.type.dtype and v.type.rank >= 1)], {}


def _unary_recipes() -> list[tuple[str, Callable[[Generator], Made], int]]:
    """Every elementwise operation of one operand, by its name and its sign."""
    return [(name, _unary(op), 2) for op in UNARY for name in (op.name, op.symbol) if name is not None]


#: (operation, recipe, weight). A test demands one for each operation with a call form and each operator.
RECIPES: list[tuple[str, Callable[[Generator], Made], int]] = [
    *_unary_recipes(),
    *[(name, _binary("fiu"), 7) for name in ("+", "-", "*")],
    *[(name, _binary("fiu"), 3) for name in ("/", "//", "%", "min", "max")], ("**", _power, 4), ("pow", _power, 2),
    *[(name, _binary("fiu"), 2) for name in ("<", "<=", ">", ">=")],
    *[(name, _binary("fiub"), 2) for name in ("==", "!=")],
    *[(name, _binary("biu"), 2) for name in ("&", "|", "^")],
    *[(f"reduce_{name}", _reduce("fiu"), 4) for name in ("sum", "mean", "prod", "l1", "sum_square")],
    *[(f"reduce_{name}", _reduce("fiub"), 5) for name in ("max", "min")],
    *[(f"reduce_{name}", _reduce("f"), 3) for name in ("l2", "log_sum", "log_sum_exp")],
    ("argmax", _arg, 10), ("argmin", _arg, 8), ("top_k", _top_k, 7), ("hardmax", _over(), 8),
    ("softmax", _over(), 5), ("log_softmax", _over(), 3),
    ("mean_variance_norm", _over(epsilon=(1e-5, 0.1), variance=(True, False)), 3),
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
    index = g._any(lambda v: v.type.dtype in INDEX_DTYPES and v.producer is None and v.type.rank == x.type.rank)
    updates = g._any(lambda v: v.type.dtype is x.type.dtype and v.type.shape == index.type.shape)
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
        else:
            items.append(SliceItem(None, None, g.rng.choice((None, 2, -1))))
    if g.flag():
        items.insert(*((0, Ellipsis) if g.flag() and len(items) == x.type.rank else (len(items), Ellipsis)))
    return [x], {"items": items}


def _stack(g: Generator) -> Made:
    x = g.tensor()
    others = [g._any(lambda v: v.type == x.type) for _ in range(g.rng.choice((0, 1, 2)))]
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
    index = g._any(
        lambda v: v.type.dtype in INDEX_DTYPES and v.producer is None and v.type.shape[: len(shared)] == shared
    )
    axis = g.rng.randrange(batch, x.type.rank)
    return [x, index], {"batch_axes": batch} | ({"axis": axis} if axis > batch or g.flag() else {})


RECIPES += [
    ("gather", _gather_batch, 2),
    ("scatter_elements", _scatter, 1), ("[]", _index, 4), ("sort", _along("fiu", descending=(True, False)), 2),
    ("argsort", _along("fiu", descending=(True, False), dtype=INDEX_DTYPES), 2),
    ("reduce_any", _reduce("b"), 2), ("reduce_all", _reduce("b"), 2), ("stack", _stack, 2), ("tile", _tile, 2),
    ("flip", _flip, 2),
]  # fmt: skip


def generate(seed: int) -> FuzzProgram:
    """The program of that seed."""
    return Generator(seed).program()
