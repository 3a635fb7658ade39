"""Which operations the fast style computes part by part.

Operations one after another that treat some axes alike, place by place, can be done for a part of those axes at a
time: what is computed on the way then stays in the cache. Such a group is a ``Region``; it becomes a function in the
generated one, called for each part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from dmlc.ir import Dim, Graph, Node, Operation, Value, product
from dmlc.ir.dtype import f32, f64
from dmlc.ops import binary, choose, elementwise, normalize, reduce
from dmlc.records import dataclass

#: Below this many elements all stays in the cache anyway.
_LARGE = 1 << 16
#: How far ahead a group is looked for, which bounds the work.
_HORIZON = 64
#: What is won with fewer operations on each element is lost by copying the parts of the result.
_LEAST_ELEMENTWISE = 3
_LEAST_PARTS = 4

_ELEMENTWISE = frozenset(
    [op for module in (elementwise, binary, choose) for op in vars(module).values() if isinstance(op, Operation)]
)
_REDUCTIONS = frozenset(reduce.REDUCTIONS)
_NORMS = frozenset([op for op in vars(normalize).values() if isinstance(op, Operation)])
_KNOWN = _ELEMENTWISE | _REDUCTIONS | _NORMS
#: Those that go over the elements more than once.
_LONG = _NORMS | {reduce.REDUCE_LOG_SUM_EXP, reduce.REDUCE_L1}


@dataclass(frozen=True, slots=True)
class Region:
    """``nodes`` in order, the ``axes`` that are split, the ``arrays`` that have them, the ``results`` used outside."""

    nodes: tuple[Node, ...]
    axes: tuple[int, ...]
    arrays: tuple[Value, ...]
    results: tuple[Value, ...]

    @property
    def operands(self) -> tuple[Value | None, ...]:
        return tuple([v for node in self.nodes for v in node.operands])


Item: TypeAlias = Node | Region


def with_regions(graph: Graph, nodes: Iterable[Node]) -> list[Item]:
    """Some nodes of a graph in an order that is as good, with groups in place of their nodes."""
    items: list[Item] = list(nodes)
    live = {*items, graph.output}
    place = 0
    while place < len(items):
        seed = items[place]
        place += 1
        if not isinstance(seed, Node) or seed.op not in _KNOWN:
            continue
        if graph.dims.at_most(product(_work(seed)), _LARGE) is True:
            continue
        growth = _Growth(seed)
        if not growth.has_nodes:
            continue
        for item in items[place : place + _HORIZON]:
            growth.meet(item)
        region = growth.region(live)
        if region is not None:
            items[place - 1 : place + _HORIZON] = [*growth.before, region, *growth.after]
            place -= 1  # what came before may be a region too
    return items


def is_in_dot(node: Node) -> bool:
    """Whether the node is a product that is only summed or averaged: a dot product needs no array for it."""
    if node.op is not binary.MUL or node.result.type.dtype not in (f32, f64) or not node.result.is_used_once:
        return False
    user = node.result.users[0]
    same = all(v is not None and v.shape == node.result.shape for v in node.operands)
    return same and user.op in (reduce.REDUCE_SUM, reduce.REDUCE_MEAN) and bool(_mixed(user))


class _Growth:
    """A region that grows over the items that follow its first node.

    ``before`` are the items that it does not need to come before, ``after`` those that use its results.
    """

    def __init__(self, seed: Node) -> None:
        self.before: list[Item] = []
        self.after: list[Item] = []
        self._later: set[Value] = set()
        self._nodes: list[Node] = []
        self._made: set[Value] = set()
        self._frame: tuple[Dim, ...] = _work(seed)
        self._axes = set(range(len(self._frame)))
        self._dropped = len(self._frame)
        if self._may_join(seed):
            self._join(seed)

    @property
    def has_nodes(self) -> bool:
        return bool(self._nodes)

    def meet(self, item: Item) -> None:
        """Take an item into the region, or leave it before or after."""
        operands = [v for v in item.operands if v is not None]
        if any(v in self._later for v in operands):
            self._leave(item)
        elif isinstance(item, Node) and self._may_join(item):
            self._join(item)
        elif any(v in self._made for v in operands):
            self._leave(item)
        else:
            self.before.append(item)

    def _leave(self, item: Item) -> None:
        self.after.append(item)
        self._later.update(item.results)

    def _may_join(self, node: Node) -> bool:
        """Whether the node does alike at each place of enough axes."""
        if node.op not in _KNOWN or not self._frame:
            return False
        work = _work(node)
        axes = self._axes - _mixed(node)
        if len(work) != len(self._frame) or any(work[a] != self._frame[a] for a in axes):
            return False
        inside = [v for v in node.operands if v in self._made]
        if self._nodes and not inside and not any(v in self._arrays() for v in node.operands):
            return False
        if any(v is not None and v.type.rank != len(self._frame) for v in inside):
            return False
        parts = product([self._frame[a] for a in axes])
        return bool(axes) and not (isinstance(parts, int) and parts < _LEAST_PARTS)

    def _join(self, node: Node) -> None:
        self._nodes.append(node)
        self._made.update(node.results)
        self._axes -= _mixed(node)
        if node.result.type.rank < len(self._frame):
            self._dropped = min(self._dropped, *_mixed(node))

    def _arrays(self) -> tuple[Value, ...]:
        """The operands from outside that have some of the axes."""
        found = [v for node in self._nodes for v in node.operands if v is not None and v not in self._made]
        return tuple([v for v in dict.fromkeys(found) if self._has_axes(v)])

    def _has_axes(self, value: Value) -> bool:
        shift = len(self._frame) - value.type.rank
        return any(a >= shift and value.shape[a - shift] != 1 for a in self._axes)

    def region(self, live: set[Item]) -> Region | None:
        """The region, if it is worth it; ``live`` are the nodes whose uses count."""
        axes = tuple(sorted(a for a in self._axes if a < self._dropped))
        arrays = self._arrays()
        fits = bool(axes) and any(v.type.rank == len(self._frame) for v in arrays)
        if not fits or not self._pays():
            return None
        nodes = tuple(self._nodes)
        inside = set(nodes)
        results = [v for v in self._made if any(n in live and n not in inside for n, _ in v.uses)]
        order = {v: i for i, node in enumerate(nodes) for v in node.results}
        return Region(nodes, axes, arrays, tuple(sorted(results, key=order.__getitem__)))

    def _pays(self) -> bool:
        full = [node for node in self._nodes if _work(node) == self._frame and not is_in_dot(node)]
        if any(node.op in _LONG for node in full):
            return True
        least = 2 if any(node.op in _REDUCTIONS for node in full) else _LEAST_ELEMENTWISE
        return len(full) >= least


def _work(node: Node) -> tuple[Dim, ...]:
    """The shape that the node goes over."""
    return node.operand(0).shape if node.op in _REDUCTIONS else node.result.shape


def _mixed(node: Node) -> frozenset[int]:
    """The axes along which the node takes elements together."""
    a: Any = node.attributes
    if node.op in _REDUCTIONS or node.op in (normalize.SOFTMAX, normalize.LOG_SOFTMAX, normalize.MEAN_VARIANCE_NORM):
        return frozenset(a.axes)
    if node.op in (normalize.LAYER_NORM, normalize.RMS_NORM):
        return frozenset(range(a.axis, node.operand(0).type.rank))
    return frozenset((a.axis,)) if node.op in _NORMS else frozenset()
