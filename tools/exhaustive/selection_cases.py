"""Every order that a few values can have, with ties, infinities and signed zeros, through every way of selecting.

What is right comes from the element-by-element oracle, which is written from the pages of the DirectML operators.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

import dmlc
from dmlc.diagnostics import Source
from dmlc.passes.inventory import all_rules
from tools.model_checks import session
from tools.oracles.groups import arg, hardmax, top_k

Array = np.ndarray


def weak_orderings(count: int) -> list[tuple[int, ...]]:
    """All ways to rank ``count`` values with ties; rank 0 is the lowest. 1, 3, 13, 75, 541, 4,683 of them."""
    ranks = itertools.product(range(count), repeat=count)
    return [row for row in ranks if set(row) == set(range(max(row) + 1))]


def rows(count: int, dtype: str) -> Array:
    """The orderings as rows of numbers; for floats also with infinities at either end, and with each level zero, of
    mixed signs."""
    base = np.array(weak_orderings(count))
    if dtype[0] != "f":
        return np.concatenate([base.astype(_NUMPY[dtype]), _extremes(base, dtype)])
    out = []
    top = base.max(axis=1, keepdims=True)
    for zero in range(-1, count):
        values = (base - zero).astype(_NUMPY[dtype]) if zero >= 0 else (base + 1).astype(_NUMPY[dtype])
        if zero >= 0:
            keep = (base == zero).any(axis=1)
            signs = np.where((np.arange(base.size).reshape(base.shape) * 7 // 3) % 2 == 0, 1, -1)
            values = np.where(base == zero, np.copysign(values, signs.astype(values.dtype)), values)[keep]
        else:
            keep = np.ones(len(base), bool)
        out.append(values)
        high, low = base[keep] == top[keep], base[keep] == 0
        for plus, minus in ((True, False), (False, True), (True, True)):
            masked = np.where(high & plus, np.inf, np.where(low & minus, -np.inf, values))
            out.append(masked.astype(values.dtype))
    return np.concatenate(out)


def _extremes(base: Array, dtype: str) -> Array:
    """The same orders between the type's lowest and highest."""
    limits = np.iinfo(_NUMPY[dtype])
    top = base.max(axis=1, keepdims=True)
    return np.where(base == top, _NUMPY[dtype](limits.max), (limits.min + base).astype(_NUMPY[dtype]))


_NUMPY: dict[str, Any] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One selection over ``axes`` of a tensor; the batch of orderings is an axis in front, which is not counted."""

    op: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: str
    last: bool = False

    @property
    def group(self) -> int:
        return int(np.prod([self.shape[axis] for axis in self.axes]))

    def table(self) -> Array:
        """The orderings as rows; groups of more than 6 get orderings drawn at random."""
        if self.group <= 6:
            return rows(self.group, self.dtype)
        rng = np.random.default_rng(self.group)
        return rng.integers(0, 4, (24_000 // self.group, self.group)).astype(_NUMPY[self.dtype])

    def data(self) -> Array:
        """The orderings laid along the reduced axes."""
        return self._laid(self.table())

    def _laid(self, table: Array) -> Array:
        """Rows along the reduced axes, which keep size 1 where a row has one element; the first rows fill what is
        left of the last batch."""
        kept = [axis for axis in range(len(self.shape)) if axis not in self.axes]
        places = int(np.prod([self.shape[axis] for axis in kept]))
        batch = -(-len(table) // places)
        table = table[np.arange(batch * places) % len(table)]
        order = [*kept, *self.axes]
        inner = [self.shape[axis] if table.shape[1] == self.group else 1 for axis in self.axes]
        x = table.reshape(batch, *[self.shape[axis] for axis in kept], *inner)
        return np.ascontiguousarray(np.transpose(x, [0, *[1 + order.index(axis) for axis in range(len(self.shape))]]))

    def text(self, batch: int) -> str:
        """The program."""
        axes = [axis + 1 for axis in self.axes]
        if self.op == "hardmax":
            call = f"hardmax(x, axes={axes})"
        elif self.op == "top_k":
            order = "smallest" if self.last else "largest"
            call = f"top_k(x, k={self.group}, axis={axes[0]}, order={order})"
        else:
            call = f"{self.op}(x, axes={axes}, ties={'last' if self.last else 'first'})"
        sizes = ", ".join(map(str, (batch, *self.shape)))
        results = "v, i" if self.op == "top_k" else "y"
        return (
            f"model m(x: {self.dtype}[{sizes}]) -> ({results}) {{\n    {results} = {call}\n    return {results}\n}}\n"
        )

    def expected(self) -> list[Array]:
        """The oracle's answer for the rows, laid like them."""
        return [self._laid(answer) for answer in _answers(self.op, self.group, self.dtype, self.last)]

    def asked(self, x: Array, axes: Sequence[int]) -> list[Array]:
        """The oracle's answer for x, element by element; reduced axes keep size 1."""
        if self.op == "hardmax":
            return [hardmax(x, axes, self.dtype)]
        if self.op == "top_k":
            return list(top_k(x, self.group, axes[0], largest=not self.last, name=self.dtype, index="u32"))
        return [arg(x, axes, largest=self.op == "argmax", last=self.last, dtype="u32")]


@lru_cache(maxsize=1024)
def _answers(op: str, group: int, dtype: str, last: bool) -> list[Array]:
    """The oracle's answer for the rows: asked once for all shapes whose groups have so many elements, as it takes
    longer than everything else."""
    case = Case(op, (group,), (0,), dtype, last)
    return case.asked(case.table(), (1,))


def cases(ops: tuple[str, ...] = ("argmax", "argmin", "top_k", "hardmax"), rank: int = 4) -> Iterator[Case]:
    """All axis subsets of all shapes of ranks 1 to ``rank`` with sizes 1 to 3, in both directions."""
    for op in ops:
        for length in range(1, rank + 1):
            for shape in itertools.product((1, 2, 3), repeat=length):
                for count in range(1, 2 if op == "top_k" else length + 1):
                    for axes in itertools.combinations(range(length), count):
                        for last in (False,) if op == "hardmax" else (False, True):
                            yield Case(op, shape, axes, "f32", last)


def with_dtypes(found: Iterator[Case], seed: int) -> Iterator[Case]:
    """The cases with dtypes drawn for each."""
    rng = random.Random(seed)
    for case in found:
        dtypes = ("f16", "f32", "f32", "f64") if case.op == "hardmax" else tuple(_NUMPY)
        yield Case(case.op, case.shape, case.axes, rng.choice(dtypes), case.last)


# --- ways

Runner = Callable[[Array], list[Array]]


def ways(case: Case, batch: int) -> Iterator[tuple[str, Runner]]:
    """(name, run) of each way through the compiler: back ends, targets, and every lowering by force."""
    source = Source("m.dml", case.text(batch))
    program = dmlc.compile(source, target="numpy")
    for backend in ("reference", "numpy"):
        yield backend, partial(_run, program, backend)
    plans = [rule.name for rule in all_rules() if rule.optional and set(rule.passes) & {"choose-lowering", "repair"}]
    options: list[dict[str, Any]] = [{"target": target} for target in ("directml", "cpu", "onnx")]
    options += [{"target": "cpu", "only_rules": (plan,)} for plan in plans]
    options += [{"target": "directml", "only_rules": ()}, {"target": "onnx", "lower_hardmax": True}]
    seen: set[bytes] = set()
    for chosen in options:
        model = dmlc.compile(source, **chosen).to_onnx()
        del model.metadata_props[:]
        data = model.SerializeToString(deterministic=True)
        if data in seen:
            continue
        seen.add(data)
        for optimized in (True, False):
            found = session(model, optimized=optimized)
            yield f"{chosen}, optimized: {optimized}", lambda x, found=found: list(found.run(None, {"x": x}))  # type: ignore[misc]


def _run(program: dmlc.Program, backend: str, x: Array) -> list[Array]:
    return list(program.run({"x": x}, backend=backend).values())


def problems(case: Case) -> tuple[int, int, list[str]]:
    """(orderings, ways, what is wrong) of a case: once with numbers, once with NaN among them."""
    x = case.data()
    wanted = case.expected()
    wrong: list[str] = []
    count = 0
    for name, run in ways(case, len(x)):
        count += 1
        for got, right in zip(run(x), wanted, strict=True):
            if got.dtype != right.dtype or got.shape != right.shape or not np.array_equal(got, right):
                wrong.append(f"{case} by {name}: {_first(x, got, right)}")
        if case.dtype[0] == "f":
            wrong += [f"{case} by {name}: {text}" for text in _nan_promises(case, x, run)]
    return x.size // case.group, count, wrong


def _first(x: Array, got: Array, right: Array) -> str:
    if got.shape != right.shape or got.dtype != right.dtype:
        return f"{got.dtype}{list(got.shape)}, not {right.dtype}{list(right.shape)}"
    place = tuple(np.argwhere(got != right)[0])
    return f"at {list(map(int, place))} {got[place]}, not {right[place]}, for {x[place[0]].tolist()}"


def _nan_promises(case: Case, x: Array, run: Runner) -> Iterator[str]:
    """With NaN anywhere: indices stay in range, a group has at most one 1, and nothing but 0 and 1."""
    mask = np.random.default_rng(case.group).random(x.shape) < 0.4
    got = run(np.where(mask, np.nan, x).astype(x.dtype))[-1]
    if case.op == "hardmax":
        axes = tuple(axis + 1 for axis in case.axes)
        if not np.isin(got, (0, 1)).all() or (got.sum(axis=axes, dtype=np.float64) > 1).any():
            yield "NaN: a group with more than one 1, or other numbers"
    elif (got >= case.group).any():
        yield f"NaN: index {got.max()} of {case.group}"
