"""NodeRule plans: alternative ways to lower an operation, of which the cheapest is chosen.

A plan checks whether it applies, lists the nodes it would emit (for the cost), and makes them. The default lowering is
a plan too, ``Standing``: it is costed with the others and builds nothing.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from dmlc.ir import Dim, Graph, Node, Operation, Value, dim_names
from dmlc.ir.dim import evaluate
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import Lowered
from dmlc.passes.manager import EXACT, PassContext
from dmlc.passes.rewrite import M, Miss, Rule
from dmlc.targets.capabilities import Capabilities
from dmlc.targets.cost import Cheapest, Step, Work

#: The value that a size without an upper bound is weighed with, beside its lower bound.
_OPEN_END = 4096
#: With more open dims than this only the corners "all least" and "all most" are looked at.
_MOST_DIMS = 3


class Sizes:
    """The sizes of dims at one place of their bounds."""

    __slots__ = ("binding",)

    def __init__(self, binding: Mapping[str, int]) -> None:
        self.binding: Mapping[str, int] = binding

    def __call__(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else evaluate(dim, self.binding)

    def of(self, value: Value) -> tuple[int, ...]:
        """The shape of a value."""
        return tuple([self(d) for d in value.shape])


def ends(graph: Graph, *nodes: Node) -> dict[str, tuple[int, float]]:
    """The bounds of the dims in the types of some nodes, by their names."""
    values = [v for node in nodes for v in (*node.operands, *node.results) if v is not None]
    names = sorted({name for value in values for size in value.shape for name in dim_names(size)})
    bounds = {name: graph.dims.bounds.get(name) or (graph.dims.least, math.inf) for name in names}
    return {name: (max(int(low), 1), max(high, 1)) for name, (low, high) in bounds.items()}


def corners(graph: Graph, *nodes: Node) -> Iterator[Sizes]:
    """The ends of the bounds of the dims in the types of some nodes."""
    found = ends(graph, *nodes)
    rows = [(low, max(low, _OPEN_END) if high == math.inf else int(high)) for low, high in found.values()]
    if len(rows) > _MOST_DIMS:
        corners: Iterator[tuple[int, ...]] = iter([tuple([row[0] for row in rows]), tuple([row[1] for row in rows])])
    else:
        corners = itertools.product(*[dict.fromkeys(row) for row in rows])
    for corner in corners:
        yield Sizes(dict(zip(found, corner, strict=True)))


def spanned(nanoseconds: Sequence[float]) -> str:
    """Times as they are read, from the least to the most."""
    return " to ".join(dict.fromkeys(map(duration, (min(nanoseconds), max(nanoseconds)))))


def duration(nanoseconds: float) -> str:
    """A time as it is read."""
    for unit, size in (("ns", 1.0), ("us", 1e3), ("ms", 1e6)):
        if nanoseconds < 1000 * size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds / 1e9:.3g} s"


class Plan(ABC):
    """One lowering of some operations. Its name is the name of a rule, its docstring's first line says what it does.

    It is made for one context. A node that a plan made is offered to the other plans; to the plan itself where it is
    ``repeatable``, which is for plans that make smaller nodes than they take. One that ``looks_around`` asks what other
    nodes there are; the others are asked once for all nodes of one kind. One without ``steps`` is taken by times alone.
    """

    name: ClassVar[str]
    roots: ClassVar[tuple[Operation, ...]]
    rewrite_class: ClassVar[str] = EXACT
    repeatable: ClassVar[bool] = False
    looks_around: ClassVar[bool] = False

    def __init__(self, context: PassContext) -> None:
        self.context = context
        self.capabilities: Capabilities = context.capabilities

    @abstractmethod
    def applies(self, node: Node, graph: Graph) -> str | None:
        """Return the reason why the plan is not possible here; None if it is."""

    @property
    def is_estimated(self) -> bool:
        return type(self).steps is not Plan.steps

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Work]:
        """The nodes that it would emit. Called where it applies, for several sizes where some are not known."""
        raise NotImplementedError

    @abstractmethod
    def lower(self, e: Sketch, node: Node, *operands: Any) -> Lowered:
        """The values that replace the node's results, of the same types."""

    def class_of(self, node: Node, graph: Graph) -> str:
        """The rewrite class here, where it depends on dtypes."""
        return self.rewrite_class


class Standing(Plan):
    """The node as the target's own lowering says it: no rule, always possible."""

    name: ClassVar[str] = "unchanged"

    def applies(self, node: Node, graph: Graph) -> str | None:
        return None

    def lower(self, e: Sketch, node: Node, *operands: Any) -> Lowered:
        return node.results


def judged(rule: Rule[M], match: M, graph: Graph, estimated: Miss | None) -> Miss | None:
    """The reason against a rule by the times of the nodes that it matches; without times the estimated one."""
    tuner, rewrite_class = rule.context.options.tuner, rule.class_of(match, graph, rule.context)
    if tuner is None or rewrite_class not in rule.context.options.allowed:
        return estimated
    nodes = sorted({match.root, *match.consumed}, key=list(graph).index)
    if any(high == math.inf for _, high in ends(graph, *nodes).values()):
        return estimated
    classes = {Standing.name: EXACT, rule.name: rewrite_class}
    found = [tuner.times(nodes, classes, at.binding) for at in corners(graph, *nodes)]
    if not all(found):
        return estimated
    slower = [at for at in found if at.get(rule.name, math.inf) * at["noise"] > at[Standing.name]]
    return Miss("by its times it is not faster") if slower else None


__all__ = ["Cheapest", "Lowered", "Plan", "Sizes", "Sketch", "Standing", "Step", "Term", "Work"]
