"""A maximum beside an argmax over the same axes, which has found the maximum of each block already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.move import RESHAPE
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, ReduceAttributes
from dmlc.passes.choose_lowering.blocks import PLANS as BLOCKED
from dmlc.passes.choose_lowering.blocks import Blocks, extreme_of_blocks, reduce_step
from dmlc.passes.choose_lowering.plan import Lowered, Plan, Sizes, Sketch, Step, Term, Work
from dmlc.passes.choose_lowering.reduce import ReduceAsItStands, reduce_view


class ExtremeOfBlocks(Plan):
    """A maximum over the axes of a blocked argmax becomes the maximum of its blocks' maxima."""

    name: ClassVar[str] = "max-of-blocks"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_MAX, REDUCE_MIN)
    looks_around = True

    def applies(self, node: Node, graph: Graph) -> str | None:
        return None if self._blocks(node) else "no argmax over the same axes is made in blocks"

    def _blocks(self, node: Node) -> Blocks | None:
        """Return the blocks whose max or min is in the graph, computed in the operand's own dtype."""
        x, view = node.operand("x"), reduce_view(node)
        for plan in BLOCKED:
            blocks = plan(self.context).divide(view)
            if isinstance(blocks, Blocks) and any(_reduces(user, node, blocks) for user in _users(x, blocks)):
                return blocks
        return None

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Work]:
        blocks = self._blocks(node)
        assert blocks is not None
        dtype = node.operand("x").type.dtype
        shape = [1 if i in blocks.inner else size for i, size in enumerate(blocks.view.at(sizes))]
        out = [Step("Reshape", dtype)]
        for i in reversed(blocks.outer):
            out.append(reduce_step(dtype, shape, i))
            shape[i] = 1
        return out

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        blocks = self._blocks(node)
        assert blocks is not None
        # The reductions that the argmax has made are made again, and found to be the same by ``cse``.
        best = extreme_of_blocks(e, node.op, x.reshape(blocks.view.sizes), blocks)
        for i in reversed(blocks.outer):
            best = e.reduced(node.op, best, [i])
        return best.reshape(node.result.shape)


def _users(x: Value, blocks: Blocks) -> list[Node]:
    """The users of the operand in the shape of the blocks."""
    if x.shape == blocks.view.sizes:
        return x.users
    views = [user.result for user in x.users if user.op is RESHAPE and user.result.shape == blocks.view.sizes]
    return [user for view in views for user in view.users]


def _reduces(user: Node, node: Node, blocks: Blocks) -> bool:
    """Return whether the user is the reduction over the blocks that a lowered argmax or argmin made."""
    made = any(plan.name in user.history.rules for plan in BLOCKED)
    record = ReduceAttributes(axes=blocks.inner[-1:], keepdims=len(blocks.inner) > 1)
    return made and user.op is node.op and user.attributes == record


PLANS: Sequence[type[Plan]] = (ReduceAsItStands, ExtremeOfBlocks)
