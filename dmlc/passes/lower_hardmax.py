"""``lower-hardmax``: hardmax over several axes becomes argmax and one_hot, softmax that over one: ONNX has these.

In the graph several axes are the canonical form; this lowering runs once, late, and nothing raises to it after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.ir import Attributes, Node, Operation, product
from dmlc.ir.dtype import i64
from dmlc.ops.move import RESHAPE, ReshapeAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes, has_sound_kernel
from dmlc.ops.reduce import axes_of
from dmlc.ops.select import HARDMAX, HardmaxAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fold_constants.layouts import MOVE_RULES
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.manager import PassContext
from dmlc.passes.patterns import may_be_empty
from dmlc.passes.rewrite import Miss, RewritePass, Rule


class LowerHardmax(RewritePass, frozen=True):
    """Hardmax over one axis, for which targets have a node of their own, is lowered where the user asks for it.

    Neighbouring axes cost no transpose: argmax over them, one_hot in their place, reshape. ``exact``. Axes that may be
    empty, as in an imported model, become one axis of the target's own hardmax.
    """

    name: ClassVar[str] = "lower-hardmax"
    summary: ClassVar[str] = "Lower hardmax over several axes to argmax and one_hot, softmax to one axis."
    ensures: ClassVar[tuple[str, ...]] = ("lowered-hardmax",)

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [lower_hardmax, merge_softmax_axes, *MOVE_RULES]


@lowers(HARDMAX)
def lower_hardmax(e: Sketch, node: Node, x: Term) -> Lowered:
    """``hardmax`` over several axes becomes ``argmax`` and ``one_hot``, with transposes unless they are adjacent."""
    given, wanted = axes_of(node), e.rule.context.options.lower_hardmax
    if node.origin is not None and e.graph.opset < 13:
        return KEEP  # up to opset 12 ONNX's own takes all axes from one on together
    if len(given) < 2 and not wanted:
        return Miss("over one axis the target's own Hardmax stays (--lower-hardmax lowers it too)")
    axes = e.counting(x, given)
    if len(axes) == 1 and not wanted:
        return e.hardmax(x, axes=axes)
    if _are_neighbours(e, x, axes):
        return _neighbouring(e, x, axes[0], axes[-1])
    kept = [a for a in range(x.rank) if a not in axes]
    perm = (*kept, *axes)
    hot = _neighbouring(e, x.transposed(perm), len(kept), x.rank - 1)
    return hot.transposed([perm.index(a) for a in range(len(perm))])


@lowers(SOFTMAX, LOG_SOFTMAX)
def merge_softmax_axes(e: Sketch, node: Node, x: Term) -> Lowered:
    """``softmax`` over neighbouring axes becomes that over one, where the opset takes one axis alone."""
    axes = axes_of(node)
    if e.target.target.code == "numpy" or e.target.opset < 13 or len(axes) < 2 or not _are_neighbours(e, x, axes):
        return KEEP
    if not has_sound_kernel(node.op, x.dtype, e.graph.dims):
        return KEEP
    axes = e.counting(x, axes)
    attributes = SoftmaxAttributes(axes=axes[:1])
    if len(axes) == 1:
        return e(node.op, x, attributes=attributes)
    return _merged(e, x, axes[0], axes[-1], node.op, attributes)


def _are_neighbours(e: Sketch, x: Term, axes: Sequence[int]) -> bool:
    """Return whether only axes of size 1 lie between those that count."""
    axes = e.counting(x, axes)
    return all(is_unit(e.graph, x.shape[a]) for a in range(axes[0], axes[-1]) if a not in axes)


def _merged(e: Sketch, x: Term, first: int, last: int, op: Operation, attributes: Attributes) -> Term:
    """The operation over the neighbouring axes ``first`` to ``last`` as one."""
    shape = (*x.shape[:first], product(x.shape[first : last + 1]), *x.shape[last + 1 :])
    flat = e(RESHAPE, x, attributes=ReshapeAttributes(shape=shape))
    return e(RESHAPE, e(op, flat, attributes=attributes), attributes=ReshapeAttributes(shape=x.shape))


def _neighbouring(e: Sketch, x: Term, first: int, last: int) -> Term:
    """Hardmax over the neighbouring axes ``first`` to ``last``. The index is i64, as ONNX's own: no cast."""
    axes = tuple(range(first, last + 1))
    wanted = e.rule.context.options.lower_hardmax
    if not e.graph.dims.least and not wanted and may_be_empty(e.graph, x.value, axes):
        # the target's own gives nothing for nothing, where ArgMax fails: what an imported model is fed may be empty
        return _merged(e, x, first, last, HARDMAX, HardmaxAttributes(axes=(first,)))
    index = e.argmax(x, axes=axes, ties="first", dtype=i64, keepdims=False)
    depth = product([x.shape[a] for a in axes])
    return e.one_hot(index, depth=depth, axis=first, on=1, off=0, dtype=x.dtype).reshape(x.shape)
