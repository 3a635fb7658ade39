"""Products seen as their factors, in whatever order they are multiplied and divided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from dmlc.ir import Node, Value
from dmlc.ops.binary import DIV, MUL
from dmlc.ops.elementwise import RECIPROCAL
from dmlc.passes.patterns import broadcasts, made_by, scalar_of
from dmlc.records import dataclass

#: Products of more factors than these are not of the kind that is looked for.
_MOST = 8


@dataclass(slots=True)
class Factors:
    """``above`` and ``below`` the line; ``nodes`` multiply and divide them. ``sides`` says of each factor into which
    operands of the root it goes."""

    above: list[Value] = field(default_factory=list)
    below: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    sides: dict[Value, set[int]] = field(default_factory=dict)

    def meet_at_root(self, a: Value, b: Value) -> bool:
        """Return whether the root itself multiplies the two factors, and not a product inside of it."""
        return len(self.sides[a] | self.sides[b]) > 1


def without(values: Sequence[Value], value: Value) -> tuple[Value, ...]:
    """The values but for one occurrence of ``value``."""
    place = list(values).index(value)
    return (*values[:place], *values[place + 1 :])


def factors_of(root: Node) -> Factors | None:
    """The factors of a product. What is used elsewhere, and a square, are factors of their own."""
    out = Factors()
    pending: list[tuple[Node, bool, int | None]] = [(root, True, None)]
    while pending:
        node, above, root_side = pending.pop()
        out.nodes.append(node)
        for i, value in enumerate(node.operands):
            assert value is not None
            side = i if root_side is None else root_side
            upper = above ^ (node.op is RECIPROCAL or (node.op is DIV and i == 1))
            inner = made_by(value, MUL, DIV, RECIPROCAL)
            if inner is not None and value.is_used_once and len(set(inner.operands)) == len(inner.operands):
                pending.append((inner, upper, side))
            elif not (scalar_of(value) == 1 and not broadcasts(value, root.result)):
                (out.above if upper else out.below).append(value)
                out.sides.setdefault(value, set()).add(side)
        if len(out.nodes) > _MOST:
            return None
    return out
