"""Plans: lowerings among which the cheapest is chosen, the sizes for comparing them, and their view of an operand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, cast

from msgspec import Struct

from dmlc.ir import Dim, Graph, Node, Operation, Shape, Value, dim_names
from dmlc.ir.dim import evaluate
from dmlc.ops.opaque import OPAQUE, title_of
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import Function, LoweredNode, NodeRule, lowers
from dmlc.passes.manager import EXACT, PassContext
from dmlc.passes.rewrite import M, Miss, Rule

#: The name of the way in which the target writes a node without any plan.
UNCHANGED = "unchanged"
#: The value that a size without an upper bound is weighed with, beside its lower bound.
_OPEN_END = 4096
#: With more open dims than this only the corners "all least" and "all most" are looked at.
_MOST_DIMS = 3


class Plan(NodeRule):
    """A lowering that is taken where it costs less than the node as it is.

    A node that a plan made is offered to the other plans; to the plan itself where it is ``repeatable``, which is for
    plans that make smaller nodes than they take. One that ``looks_around`` asks what other nodes there are; the others
    are asked once for all nodes of one kind. One that is not ``is_estimated`` is taken by times alone.
    """

    optional = True
    repeatable: ClassVar[bool] = False
    looks_around: ClassVar[bool] = False
    is_estimated: ClassVar[bool] = True

    def describe(self, match: LoweredNode) -> str:
        node = match.root
        return f"{title_of(node) if node.op is OPAQUE else node.op.name} of {node.operand(0).type}"


def plan(*roots: Operation, **facts: Any) -> Callable[[Function], type[Plan]]:
    """Make a function a plan, as ``lowers`` makes it a lowering."""
    return cast("Callable[[Function], type[Plan]]", lowers(*roots, base=Plan, **facts))


def plans_by_root(kinds: Iterable[type[Plan]], context: PassContext) -> dict[Operation, list[Plan]]:
    """The plans whose costs are estimated, by the operations of their roots."""
    plans = [kind(context) for kind in kinds if kind.is_estimated and context.wants(kind.name)]
    return {op: [one for one in plans if op in one.roots] for op in {op for one in plans for op in one.roots}}


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


def judged(rule: Rule[M], match: M, graph: Graph, estimated: Miss | None) -> Miss | None:
    """The reason against a rule by the times of the nodes that it matches; without times the estimated one."""
    tuner, rewrite_class = rule.context.options.tuner, rule.class_of(match, graph, rule.context)
    if tuner is None or rewrite_class not in rule.context.options.allowed:
        return estimated
    nodes = sorted({match.root, *match.consumed}, key=list(graph).index)
    if any(high == math.inf for _, high in ends(graph, *nodes).values()):
        return estimated
    classes = {UNCHANGED: EXACT, rule.name: rewrite_class}
    found = [tuner.times(nodes, classes, at.binding) for at in corners(graph, *nodes)]
    if not all(found):
        return estimated
    slower = [at for at in found if at.get(rule.name, math.inf) * at["noise"] > at[UNCHANGED]]
    return Miss("by its times it is not faster") if slower else None


# --- An operand as the plans see it: neighbouring axes of one kind are one segment, axes of size 1 are gone


class View(Struct, frozen=True):
    """``sizes`` of the segments and which are ``searched``; both kinds alternate, until a segment is split."""

    sizes: Shape
    searched: tuple[bool, ...]

    @property
    def groups(self) -> tuple[int, ...]:
        """The searched segments."""
        return tuple([i for i, searched in enumerate(self.searched) if searched])

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple([i for i, searched in enumerate(self.searched) if not searched])

    @property
    def kind(self) -> str:
        """The segments as letters: ``KR`` where the last axes are searched."""
        return "".join(["KR"[searched] for searched in self.searched])

    def split(self, segment: int, outer: int, inner: int) -> View:
        """The segment as two."""
        sizes = (*self.sizes[:segment], outer, inner, *self.sizes[segment + 1 :])
        return View(sizes, (*self.searched[: segment + 1], *self.searched[segment:]))

    def at(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple([sizes(d) for d in self.sizes])


def view_of(graph: Graph, node: Node, axes: Sequence[int]) -> View:
    """Return a node's first operand as segments. At least one is reduced, of size 1 if all reduced axes are."""
    shape = node.operand("x").shape
    return merged([(d, i in axes) for i, d in enumerate(shape) if not is_unit(graph, d)])


def merged(segments: Sequence[tuple[Dim, bool]]) -> View:
    """Neighbours of one kind as one; at least one is searched."""
    sizes: list[Dim] = []
    searched: list[bool] = []
    for size, mine in segments:
        if searched and searched[-1] == mine:
            sizes[-1] = sizes[-1] * size
        else:
            sizes.append(size)
            searched.append(mine)
    if True not in searched:
        sizes.append(1)
        searched.append(True)
    return View(tuple(sizes), tuple(searched))


#: No memory holds as many elements as the square of this; sizes of a broken model may be larger.
_FACTORS = 1 << 20
#: Reductions go fastest over multiples of so many elements.
_VECTOR = 8


@lru_cache(maxsize=256)
def _divisors(size: int) -> tuple[int, ...]:
    """Return the divisors up to a bound and their quotients; 1 if there are none."""
    lows = [low for low in range(1, min(math.isqrt(size), _FACTORS) + 1) if size % low == 0]
    return tuple([one for low in lows for one in (low, size // low)]) or (1,)


def divisor_near(size: int, wanted: float) -> int:
    """The divisor of a size that is nearest to what is wanted, as a ratio: one of 8 if such a one is near enough."""
    found = _divisors(size)
    even = [one for one in found if one % _VECTOR == 0 and wanted / _VECTOR < one < wanted * _VECTOR]
    return min(even or found, key=lambda one: abs(math.log(one / wanted)))
