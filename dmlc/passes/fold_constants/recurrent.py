"""Initial states of recurrent layers that are zero, which is their default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from dmlc.ir import ForeignType, Graph, Node, Operation, Tensor, Value
from dmlc.ops.constant import constant_of
from dmlc.ops.input_uses import MOVES
from dmlc.ops.move import CONCAT, PAD
from dmlc.ops.opaque import OPAQUE, attribute_of, is_opaque
from dmlc.passes.rewrite import Match, Rewriter, Rule

#: Operators with an initial state, and the operands that hold it.
_STATES = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}
_LAYOUTS = frozenset(MOVES) - {PAD}
#: Layout operations and fills that are looked at, for each state.
_MOST_LAYOUTS = 16


class _StateMatch(Match, eq=False, kw_only=True):
    """``zeros`` are the operands that hold zeros."""

    zeros: tuple[int, ...]


class ZeroInitialState(Rule[_StateMatch]):
    """An initial state of zeros is left out of a GRU, LSTM or RNN: zeros are its default."""

    name = "zero-initial-state"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)

    def match(self, node: Node, graph: Graph) -> _StateMatch | None:
        places = next((places for op_type, places in _STATES.items() if is_opaque(node, op_type)), ())
        zeros = tuple([place for place in places if place < len(node.operands) and _is_zero(node.operands[place])])
        return _StateMatch(node, zeros=zeros) if zeros else None

    def build(self, match: _StateMatch, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        operands = [None if place in match.zeros else value for place, value in enumerate(root.operands)]
        while operands[-1] is None:
            operands.pop()
        made = rewriter.add_node(OPAQUE, operands, root.attributes)
        made.name = root.name
        if root.origin is not None:
            made.origin = replace(root.origin, inputs=root.origin.inputs[: len(operands)])
        return made.results


def _is_zero(value: Value | None) -> bool:
    """True if every element is +0."""
    pending = [value]
    for _ in range(_MOST_LAYOUTS):
        if not pending:
            return True
        value = pending.pop()
        node = None if value is None else value.producer
        if node is not None and node.op in _LAYOUTS:
            pending += node.operands if node.op is CONCAT else node.operands[:1]
        elif not _is_zero_fill(value):
            return False
    return not pending


def _is_zero_fill(value: Value | None) -> bool:
    """True for a constant of zeros, and for zeros of a computed shape."""
    node = None if value is None else value.producer
    if value is None or isinstance(value.type, ForeignType):
        return False
    if node is not None and is_opaque(node, "ConstantOfShape"):
        filled = attribute_of(node, "value")
        return filled is None or (isinstance(filled, Tensor) and _is_plus_zero(filled))
    tensor = constant_of(value)
    return tensor is not None and _is_plus_zero(tensor)


def _is_plus_zero(tensor: Tensor) -> bool:
    return not np.any(tensor.array) and not np.any(np.signbit(tensor.array))
