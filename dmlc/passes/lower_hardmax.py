"""``lower-hardmax``: hardmax over several axes becomes argmax and one_hot, softmax that over one: ONNX has these.

In the graph several axes are the canonical form; this lowering runs once, late, and nothing raises to it after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.ir import Attributes, Graph, Node, Operation, Value, product
from dmlc.ir.dtype import i64
from dmlc.ops.index import ONE_HOT, OneHotAttributes
from dmlc.ops.move import RESHAPE, TRANSPOSE, ReshapeAttributes, TransposeAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes, has_sound_kernel
from dmlc.ops.select import ARGMAX, HARDMAX, ArgAttributes, HardmaxAttributes
from dmlc.passes.fold_constants import MOVE_RULES
from dmlc.passes.layouts import is_unit
from dmlc.passes.manager import PassContext
from dmlc.passes.patterns import may_be_empty
from dmlc.passes.rewrite import Match, Miss, RewritePass, Rewriter, Rule


class LowerHardmax(RewritePass, frozen=True):
    """Hardmax over one axis, for which targets have a node of their own, is lowered where the user asks for it.

    Neighbouring axes cost no transpose: argmax over them, one_hot in their place, reshape. ``exact``. Axes that may be
    empty, as in an imported model, become one axis of the target's own hardmax.
    """

    name: ClassVar[str] = "lower-hardmax"
    summary: ClassVar[str] = "Lower hardmax over several axes to argmax and one_hot, softmax to one axis."
    ensures: ClassVar[tuple[str, ...]] = ("lowered-hardmax",)

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [_Lower, _MergeSoftmaxAxes, *MOVE_RULES]


class _HardmaxMatch(Match, eq=False, kw_only=True):
    """``axes`` without the ones of size 1, if any other is left."""

    axes: tuple[int, ...]


class _Lower(Rule[_HardmaxMatch]):
    """``hardmax`` over several axes becomes ``argmax`` and ``one_hot``, with transposes unless they are adjacent."""

    name = "lower-hardmax"
    optional = False
    roots = (HARDMAX,)

    def match(self, node: Node, graph: Graph) -> _HardmaxMatch | None:
        if node.origin is not None and graph.opset < 13:
            return None  # up to opset 12 ONNX's own takes all axes from one on together
        return _HardmaxMatch(node, axes=_counting(graph, node.operand("x"), node.attributes_as(HardmaxAttributes).axes))

    def check(self, match: _HardmaxMatch, graph: Graph) -> Miss | None:
        if len(match.root.attributes_as(HardmaxAttributes).axes) > 1 or self.context.options.lower_hardmax:
            return None
        return Miss("over one axis the target's own Hardmax stays (--lower-hardmax lowers it too)")

    def build(self, match: _HardmaxMatch, rewriter: Rewriter) -> Sequence[Value]:
        x, axes = match.root.operand("x"), match.axes
        if len(axes) == 1 and not self.context.options.lower_hardmax:
            return [rewriter.add(HARDMAX, [x], HardmaxAttributes(axes=axes))]
        first, last = axes[0], axes[-1]
        if _are_neighbours(rewriter.graph, x, axes):
            return [self._neighbouring(rewriter, x, first, last)]
        kept = [a for a in range(x.type.rank) if a not in axes]
        perm = (*kept, *axes)
        moved = rewriter.add(TRANSPOSE, [x], TransposeAttributes(perm=perm))
        hot = self._neighbouring(rewriter, moved, len(kept), x.type.rank - 1)
        back = tuple([perm.index(a) for a in range(len(perm))])
        return [rewriter.add(TRANSPOSE, [hot], TransposeAttributes(perm=back))]

    def _neighbouring(self, rewriter: Rewriter, x: Value, first: int, last: int) -> Value:
        graph = rewriter.graph
        if graph.dims.least or self.context.options.lower_hardmax or not may_be_empty(graph, x, range(first, last + 1)):
            return _one_hot(rewriter, x, first, last)
        # the target's own gives nothing for nothing, where ArgMax fails: what an imported model is fed may be empty
        return _merged(rewriter, x, first, last, HARDMAX, HardmaxAttributes(axes=(first,)))


class _MergeSoftmaxAxes(Rule[Match]):
    """``softmax`` over neighbouring axes becomes that over one, where the opset takes one axis alone."""

    name = "merge-softmax-axes"
    optional = False
    roots = (SOFTMAX, LOG_SOFTMAX)

    def match(self, node: Node, graph: Graph) -> Match | None:
        axes = node.attributes_as(SoftmaxAttributes).axes
        is_spelled = self.context.target.code != "numpy" and self.context.opset >= 13
        if not is_spelled or len(axes) < 2 or not _are_neighbours(graph, node.operand("x"), axes):
            return None
        return Match(node) if has_sound_kernel(node.op, node.operand("x").type.dtype, graph.dims) else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, x = match.root, match.root.operand("x")
        axes = _counting(rewriter.graph, x, root.attributes_as(SoftmaxAttributes).axes)
        attributes = SoftmaxAttributes(axes=axes[:1])
        if len(axes) == 1:
            return [rewriter.add(root.op, [x], attributes)]
        return [_merged(rewriter, x, axes[0], axes[-1], root.op, attributes)]


def _counting(graph: Graph, x: Value, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes without the ones of size 1, if any other is left."""
    return tuple([axis for axis in axes if not is_unit(graph, x.shape[axis])]) or axes[:1]


def _are_neighbours(graph: Graph, x: Value, axes: Sequence[int]) -> bool:
    """Return whether only axes of size 1 lie between those that count."""
    axes = _counting(graph, x, tuple(axes))
    return all(is_unit(graph, x.shape[a]) for a in range(axes[0], axes[-1]) if a not in axes)


def _merged(rewriter: Rewriter, x: Value, first: int, last: int, op: Operation, attributes: Attributes) -> Value:
    """The operation over the neighbouring axes ``first`` to ``last`` as one."""
    shape = (*x.shape[:first], product(x.shape[first : last + 1]), *x.shape[last + 1 :])
    flat = rewriter.add(RESHAPE, [x], ReshapeAttributes(shape=shape))
    out = rewriter.add(op, [flat], attributes)
    return rewriter.add(RESHAPE, [out], ReshapeAttributes(shape=x.shape))


def _one_hot(rewriter: Rewriter, x: Value, first: int, last: int) -> Value:
    """Hardmax over the neighbouring axes ``first`` to ``last``. The index is i64, as ONNX's own: no cast."""
    axes = tuple(range(first, last + 1))
    index = rewriter.add(ARGMAX, [x], ArgAttributes(axes=axes, ties="first", dtype=i64, keepdims=False))
    depth = product([x.shape[a] for a in axes])
    attributes = OneHotAttributes(depth=depth, axis=first, on=1, off=0, dtype=x.type.dtype)
    hot = rewriter.add(ONE_HOT, [index], attributes)
    return hot if hot.shape == x.shape else rewriter.add(RESHAPE, [hot], ReshapeAttributes(shape=x.shape))
