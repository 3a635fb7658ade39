"""Cost of work on a target: a few numbers per kernel, so that lowerings can be compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

from dmlc.ir import DType
from dmlc.targets.target import Target, load_data

#: A kernel that has no row of its own costs what this row says.
_OTHERS = "others"
#: For any dtype that has no row of its own.
_ANY = "any"


class Step(Struct, frozen=True):
    """The work of one node: the ONNX operator, how many elements it reads and writes, and in what order.

    ``run`` is the number of elements read that lie together each time. A sum over the last axis of 100 reads runs of
    100. A search over the first axis of ``[8, 100]``, by a kernel that goes output by output, reads runs of 1.
    ``dtype`` is the dtype of the elements read. A step that moves nothing (a reshape) reads 0 elements.
    """

    kernel: str
    dtype: DType
    reads: int = 0
    writes: int = 0
    run: int = 1


class Cheapest(Struct, frozen=True):
    """Work for which there are several ways, of which the cheapest will be taken."""

    ways: tuple[tuple[Work, ...], ...]


Work: TypeAlias = "Step | Cheapest"


class Rates(Struct, frozen=True):
    """Nanoseconds: per node, per element read, per run of elements that lie together, and per element written."""

    node: float
    read: float
    run: float
    write: float


class CostModel:
    """The costs of one target's kernels. A step costs ``node + reads*read + ceil(reads/run)*run + writes*write``.

    ``calibrations`` are the costs on other machines and releases.
    """

    def __init__(self, rows: dict[tuple[str, str], Rates], calibrations: Sequence[CostModel] = ()) -> None:
        self._rows = rows
        self.calibrations = calibrations

    def scaled(self, factors: Mapping[str, float]) -> CostModel:
        """The model of another machine: how many times as much a kernel takes there, and ``others`` all others."""
        return CostModel(
            {
                (kernel, dtype): Rates(*[factors.get(kernel, factors[_OTHERS]) * rate for rate in astuple(rates)])
                for (kernel, dtype), rates in self._rows.items()
            }
        )

    def rates(self, kernel: str, dtype: DType) -> Rates:
        """The row of the kernel for the dtype, or for any, or else the row of other kernels."""
        rows = self._rows
        for key in ((kernel, dtype.name), (kernel, _ANY), (_OTHERS, dtype.name)):
            if key in rows:
                return rows[key]
        return rows[_OTHERS, _ANY]

    def total(self, work: Iterable[Work]) -> float:
        """The estimated nanoseconds of nodes on one thread."""
        out = 0.0
        for part in work:
            out += self.step(part) if isinstance(part, Step) else min(map(self.total, part.ways))
        return out

    def count(self, work: Iterable[Work]) -> int:
        """The least number of nodes."""
        return sum(1 if isinstance(part, Step) else min(map(self.count, part.ways)) for part in work)

    def step(self, step: Step) -> float:
        """The estimated nanoseconds of one node on one thread."""
        rates = self.rates(step.kernel, step.dtype)
        runs = math.ceil(step.reads / step.run) if step.run > 1 else step.reads
        return rates.node + step.reads * rates.read + runs * rates.run + step.writes * rates.write


def parse_costs(data: dict[str, Any], calibrations: Iterable[Mapping[str, Any]] = ()) -> CostModel:
    """The cost model of a document, and of the documents of other calibrations."""
    cells = [(name, types, numbers) for name, kinds in data["kernels"].items() for types, numbers in kinds.items()]
    rows = {(name, dtype): Rates(*numbers) for name, types, numbers in cells for dtype in types.split()}
    base = CostModel(rows)
    return CostModel(rows, [base.scaled(one["factors"]) for one in calibrations])


@lru_cache(maxsize=4)
def _model(name: str) -> CostModel:
    data = load_data(name)
    return parse_costs(data, [load_data(f"calibrations/{one}") for one in data["calibrations"]])


def cost_model(target: Target) -> CostModel | None:
    """The costs of a target, read when they are first asked for; None where it has none."""
    return None if target.costs is None else _model(target.costs)
