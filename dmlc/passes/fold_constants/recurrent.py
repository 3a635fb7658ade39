"""Initial states of recurrent layers that are zero, which is their default."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from dmlc.ir import Graph, Node, Tensor, Value
from dmlc.ops.constant import constant_of
from dmlc.ops.input_uses import MOVES
from dmlc.ops.move import CONCAT, PAD
from dmlc.ops.opaque import OPAQUE, attribute_of, is_opaque
from dmlc.passes.rewrite import Match, Rewriter, Rule

#: Operators with an initial state, and the operands that hold it.
_STATES = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}
_LAYOUTS = frozenset(MOVES) - {CONCAT, PAD}
#: Layout operations between the fill and the layer.
_MOST_LAYOUTS = 8


class _StateMatch(Match, eq=False, kw_only=True):
    """``zeros`` are the operands that hold zeros."""

    zeros: tuple[int, ...]


class ZeroInitialState(Rule[_StateMatch]):
    """An initial state of zeros is left out of a GRU, LSTM or RNN: zeros are its default."""

    name = "zero-initial-state"
    roots = (OPAQUE,)

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
    for _ in range(_MOST_LAYOUTS):
        node = None if value is None else value.producer
        if node is None or node.op not in _LAYOUTS:
            break
        value = node.operands[0]
    if node is not None and is_opaque(node, "ConstantOfShape"):
        filled = attribute_of(node, "value")
        return filled is None or (isinstance(filled, Tensor) and _is_plus_zero(filled))
    tensor = None if value is None else constant_of(value)
    return tensor is not None and _is_plus_zero(tensor)


def _is_plus_zero(tensor: Tensor) -> bool:
    return not np.any(tensor.array) and not np.any(np.signbit(tensor.array))
