"""Cost comparison of a reduction before and after a hoist, if the target has a cost model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from dmlc.ir import DType, Graph, Operation
from dmlc.ir.dtype import f16, f32
from dmlc.ops.elementwise import EXP, LOG
from dmlc.ops.reduce import (
    EXTREMES,
    REDUCE_SUM,
    Reduction,
)
from dmlc.passes.lowering_plans.plan import Cheapest, Sizes, Step, Work, corners, duration
from dmlc.passes.lowering_plans.reduce import chain_steps, reduce_step
from dmlc.passes.manager import PassContext, Remark
from dmlc.passes.rewrite import Match, Miss, node_name
from dmlc.targets.cost import cost_model

#: The nodes of one form, for sizes at one place of their bounds.
Steps: TypeAlias = "Callable[[Sizes], Sequence[Work]]"

#: Elementwise operations with a row of their own.
_KERNELS: dict[Operation, str] = {EXP: "Exp", LOG: "Log"}
#: Kernels by what reductions do to each element.
_BEFORE = {"abs": "others", "square": "Square", "exp": "Exp"}


class Scales:
    """Weighs a hoist against the nodes as they stand, and tells what both cost."""

    def __init__(self, context: PassContext) -> None:
        self._model = cost_model(context.target)
        self._context = context

    @property
    def known(self) -> bool:
        """Return whether the target has a cost model."""
        return self._model is not None

    def why_dearer(self, match: Match, graph: Graph, before: Steps, after: Steps) -> Miss | None:
        """The reason against a hoist that saves nothing at some end of the bounds; none where a user asks for it."""
        if self._context.only_rules is not None:
            return None
        for old, new in self._costs(match, graph, before, after):
            if new >= old:
                return Miss("it would cost {0}, and as it stands {1}", (duration(new), duration(old)))
        return None

    def tell(self, rule: str, match: Match, graph: Graph, before: Steps, after: Steps) -> None:
        """Leave a remark of a hoist that is made."""
        if self._model is None:
            return
        costs = self._costs(match, graph, before, after)

        def reason() -> str:
            old, new = (_span(side) for side in zip(*costs, strict=True))
            return f"{rule} {new}, rather than as it stands {old}"

        self._context.remarks.append(Remark("hoist", reason, match.root.spans[:1], node_name(match.root), chosen=True))

    def _costs(self, match: Match, graph: Graph, before: Steps, after: Steps) -> list[tuple[float, float]]:
        model = self._model
        if model is None:
            return []
        # A part may have a dim whose size the other parts tell the whole: the reduction alone does not name it.
        places = corners(graph, match.root, *match.consumed)
        return [(model.total(before(s)), model.total(after(s))) for s in places]


def _span(costs: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(map(duration, (min(costs), max(costs)))))


def reduction_steps(op: Operation, dtype: DType, shape: Sequence[int], axes: Sequence[int]) -> list[Work]:
    """A reduction, as a node or as a chain of them."""
    home, total = f32 if dtype is f16 else dtype, math.prod(shape)
    kind = op if op in EXTREMES else REDUCE_SUM
    before = op.before if isinstance(op, Reduction) else ""
    inside: list[Work] = [Step(_BEFORE[before], home, total, total)] if before else []
    ways = (reduce_step(kind, home, shape, axes),), tuple(chain_steps(kind, home, shape, axes))
    return [*inside, Cheapest(ways)]


def elementwise_step(op: Operation, dtype: DType, count: int) -> Step:
    """An operation of one tensor, or of a tensor and numbers that stay in a cache."""
    return Step(_KERNELS.get(op, "others"), dtype, count, count, count)


def join_step(dtype: DType, count: int) -> Step:
    """An operation of two tensors of that many elements, even where a cache holds them."""
    return Step("Binary", dtype, 2 * count, count, count)


def copy_step(dtype: DType, count: int) -> Step:
    return Step("Copy", dtype, count, count, count)
