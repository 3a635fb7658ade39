"""Random valid programs of the language: every line is typed by the compiler's own rules, or thrown away."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dmlc.api.functions import std_block
from dmlc.diagnostics import DmlcError
from dmlc.inference.carried import carry
from dmlc.ir import DTYPES, Dim, DimExpr, DType, Graph, OpError, Tensor, TensorType, Value, product, symbol
from dmlc.ir.dtype import bool_, f16, f32, i32, i64
from dmlc.ir.size_number import Arithmetic, SizeNumber
from dmlc.ops import INFIX, OPERATIONS, PREFIX
from dmlc.ops.call import CallSite, call_results
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.indexing import SliceItem, index_tensor
from dmlc.ops.literals import Quotient
from dmlc.ops.ranges import range_of
from tools.fuzz.recipes import BLOCKS, RECIPES, NoneFits, broadcasts

DTYPE_WEIGHTS: dict[DType, int] = dict.fromkeys(DTYPES, 2) | {f32: 12, f16: 6, i32: 5, i64: 4, bool_: 3}


#: A name in an operand or a keyword: ``size(v3, axis=1)`` needs v3.
_NAME = re.compile(r"[a-z]\w*")


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
        if self.op == "[]" and self.keywords:
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
        used = sorted({line.op for line in self.lines if line.op in BLOCKS})
        out = [f"use {', '.join(used)} from std"] if used else []
        out += [f"dim {name} in {low}..{high}" for name, low, high in self.dims]
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
                for text in (*line.operands, *(text for _, text in line.keywords)):
                    used.update(_NAME.findall(text))
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
        self.rng: random.Random = random.Random(seed)
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
            shape = list(self.any().type.shape)
        dtype = self._dtype()
        if self.inputs and self.rng.random() < 0.5:
            dtype = self.any().type.dtype
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
        name, dtype = f"c{len(self.consts)}", self.any().type.dtype
        shape = [size for size in self.any().type.shape[-2:] if isinstance(size, int) and size]
        count = int(np.prod(shape))
        data = np.array([self.literal(dtype) for _ in range(count)], dtype.numpy).reshape(shape)
        node = self.graph.add(CONSTANT, [], ConstantAttributes(value=Tensor(data)))
        self.values[name] = node.result
        self.consts.append((name, str(node.result.type), _plain(data.tolist())))

    def any(self, fits: Callable[[Value], bool] = lambda value: True) -> Value:
        """A value, more often a young one. Raises ``NoneFits``."""
        found = [value for value in self.values.values() if fits(value)]
        if not found:
            raise NoneFits
        return found[min(int(self.rng.triangular(0, len(found), len(found))), len(found) - 1)]

    def _name(self, value: Value) -> str:
        return next(name for name, other in self.values.items() if other is value)

    def _line(self) -> None:
        name, recipe, _ = self.rng.choices(RECIPES, [weight for *_, weight in RECIPES])[0]
        try:
            operands, keywords = recipe(self)
            self._add(name, operands, keywords)
        except (NoneFits, DmlcError, OpError):
            return

    def _add(self, name: str, operands: Sequence[Any], keywords: dict[str, Any]) -> None:
        if name == "[]":
            self._add_index(operands[0], keywords["items"])
            return
        made = self._called(name, operands, keywords)
        if any(value.type.rank > 6 or _is_large(value.type) for value in made):
            return
        results = tuple(f"v{len(self.values) + i}" for i in range(len(made)))
        texts = tuple(f"({self._word(o)})" if isinstance(o, Arithmetic) else self._word(o) for o in operands)
        words = tuple((k, self._word(v)) for k, v in keywords.items())
        self.lines.append(Line(results, name, texts, words))
        self.values.update(zip(results, made, strict=True))

    def _called(self, name: str, operands: Sequence[Any], keywords: dict[str, Any]) -> Sequence[Value]:
        if name in BLOCKS:
            return std_block(name).add(self.graph, operands, keywords)
        if name.startswith("onnx."):
            return carry(self.graph, "", name.removeprefix("onnx."), operands, keywords, 1, CallSite()).results
        op = PREFIX[name] if name in PREFIX and len(operands) == 1 else INFIX.get(name) or OPERATIONS[name]
        return call_results(self.graph, op, operands, keywords, CallSite())

    def _add_index(self, x: Value, items: Sequence[Any]) -> None:
        value = index_tensor(self.graph, x, items, CallSite())
        if value is x or _is_large(value.type):
            return
        name, text = f"v{len(self.values)}", ", ".join(map(self._item, items))
        self.lines.append(Line((name,), "[]", (self._name(x),), (("items", text),)))
        self.values[name] = value

    # --- texts

    def _item(self, item: Any) -> str:
        """An item of an index."""
        if isinstance(item, SliceItem):
            start, stop, step = [
                "" if part is None else self._word(part) for part in (item.start, item.stop, item.step)
            ]
            return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
        return "..." if item is Ellipsis else self._word(item)

    def _word(self, value: Any) -> str:
        """An operand, a keyword or a part of one. Raises ``NoneFits`` for a size that no program can write."""
        if isinstance(value, Value):
            return self._name(value)
        if isinstance(value, DimExpr):
            return self._dim(value)
        if isinstance(value, SizeNumber):
            parts = [f"({text})" if " " in text else text for text in map(self._word, value.operands)]
            return f"-{parts[0]}" if len(parts) == 1 else f" {value.sign} ".join(parts)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self._word, value))}]"
        return _plain(value)

    def _dim(self, size: DimExpr) -> str:
        """A size by the names of its dims, or as that of a value."""
        if size.is_clamped or self.rng.random() < 0.3:
            for name, value in self.values.items():
                axes = [axis for axis, own in enumerate(value.type.shape) if own == size]
                if axes:
                    return f"size({name}, axis={axes[0]})"
                if product(value.type.shape) == size:
                    return f"size({name})"
        if size.is_clamped:
            raise NoneFits
        return str(size)

    # --- what recipes ask for

    def tensor(self, kinds: str = "fiub", rank: int = 0) -> Value:
        """A value of that kind (f float, i int, u uint, b bool) with at least so many axes."""
        kind = {"float": "f", "int": "i", "uint": "u", "bool": "b"}
        return self.any(lambda v: kind[v.type.dtype.kind] in kinds and v.type.rank >= rank)

    def axes(self, x: Value) -> list[int]:
        rank = x.type.rank
        chosen = self.rng.sample(range(rank), self.rng.randint(min(1, rank), rank))
        return [a - rank if self.rng.random() < 0.2 else a for a in chosen]

    def axis(self, x: Value) -> int:
        if not x.type.rank:
            raise NoneFits
        return self.rng.randrange(-x.type.rank, x.type.rank)

    def partner(self, a: Value) -> Value | Any:
        """A second operand that may broadcast: a value or a literal."""
        if self.dims and a.type.dtype is not bool_ and self.rng.random() < 0.15:
            return self.size_number(a.type.dtype)
        if self.rng.random() < 0.35:
            return self.literal(a.type.dtype)
        return self.any(lambda v: v.type.dtype is a.type.dtype and broadcasts(v.type.shape, a.type.shape))

    def number(self, dtype: DType) -> Any:
        """A literal, or a number with a dim."""
        if self.dims and dtype is not bool_ and self.rng.random() < 0.15:
            return self.size_number(dtype)
        return self.literal(dtype)

    def literal(self, dtype: DType) -> Any:
        if dtype is bool_:
            return self.rng.random() < 0.5
        if dtype.is_integer:
            choices = [1, 2, 3, 5, 7, 0, int(dtype.highest)] + ([] if dtype.kind == "uint" else [-1, -3])
            return self.rng.choice(choices)
        return self.rng.choice((0.5, 1.0, 2.0, 3.0, -1.5, 0.0, 0.1, 1e-3, 40.0, -0.25, Quotient(1, 3), Quotient(-5, 2)))

    def dtype_of(self, keyword: str) -> dict[str, Any]:
        """A dtype by name, or that of a value."""
        return {"like": self.tensor()} if self.values and self.rng.random() < 0.2 else {keyword: self._dtype()}

    def size_number(self, dtype: DType) -> Any:
        """A number with a dim, 1 or more where it is an integer, never 0."""
        sizes = {size for value in self.values.values() for size in value.type.shape if isinstance(size, DimExpr)}
        dim = symbol(self.rng.choice(self.dims)[0]) + 1
        if sizes and self.flag():
            dim = self.rng.choice(sorted(sizes, key=str)) + 1
        choices: list[Any] = [dim, dim * 2 - 1, (dim + 3) // 2]
        if dtype.is_float:
            choices += [dim / 2, 1 / dim, dim**-0.5, dim % 2.5 + 1, -(dim / 4)]
        return self.rng.choice(choices)

    def flag(self) -> bool:
        return self.rng.random() < 0.5


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, Quotient):
        return f"({value})"
    return value.name if isinstance(value, DType) else str(value)


def _is_large(type_: TensorType) -> bool:
    size = 1
    for dim in type_.shape:
        size *= dim if isinstance(dim, int) else 5
    return size > 4096


def generate(seed: int) -> FuzzProgram:
    """The program of that seed."""
    return Generator(seed).program()
