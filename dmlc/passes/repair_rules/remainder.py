"""Remainders of integers that the provider's kernel does not take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Graph, Node, Value
from dmlc.ops.binary import ADD, AND, DIV, LESS, MOD, MUL, NOT_EQUAL, SUB, XOR
from dmlc.ops.choose import WHERE
from dmlc.ops.constant import constant_of
from dmlc.ops.index import IOTA
from dmlc.ops.select import ARGMAX, ARGMIN
from dmlc.passes.intervals import Intervals
from dmlc.passes.legal_rules.build import Maker, dtype_of
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Rewriter

#: What is never negative, where it wraps no number: indices and counts.
_COUNTS = (ARGMAX, ARGMIN, IOTA)


class RemainderByDivision(RepairRule[Match]):
    """A remainder of 64-bit integers becomes a - (a / b) * b, with b added where the signs differ.

    The provider has no kernel of Mod for them, and one of Div, which truncates. Where neither number is negative
    nothing needs to be added.
    """

    name = "remainder-by-division"
    roots = (MOD,)
    repairs = ()
    #: What is known of the ranges of the graph at work; a value keeps its range.
    _intervals: Intervals | None = None

    def match(self, node: Node, graph: Graph) -> Match | None:
        name, mod, div = dtype_of(node).name, self.support.kernel("Mod"), self.support.kernel("Div")
        if mod is None or div is None:
            return None
        return Match(node) if name not in mod.types["T"] and name in div.types["T"] else None

    def describe(self, match: Match) -> str:
        return f"remainder of {dtype_of(match.root)}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        node, make = match.root, Maker(rewriter)
        a, b, dtype = node.operand(0), node.operand(1), dtype_of(node)
        rest = make(SUB, a, make(MUL, make(DIV, a, b), b))
        if dtype.kind == "uint" or (self._is_count(a, rewriter.graph) and _is_positive(b)):
            return [rest]
        zero = make.constant(0, dtype)
        negative = make(LESS, rest, zero)
        if _is_positive(b):
            return [make(WHERE, negative, make(ADD, rest, b), rest)]
        differs = make(XOR, negative, make(LESS, b, zero))
        return [make(WHERE, make(AND, make(NOT_EQUAL, rest, zero), differs), make(ADD, rest, b), rest)]

    def _is_count(self, value: Value, graph: Graph) -> bool:
        """True if no element is negative: an index, a count, or what is selected or computed from such."""
        if value.producer is not None and value.producer.op in _COUNTS:
            return True
        if self._intervals is None or self._intervals.graph is not graph:
            self._intervals = Intervals(graph)
        return self._intervals.of(value)[0] >= 0


def _is_positive(value: Value) -> bool:
    data = constant_of(value)
    return data is not None and bool(np.all(data.array > 0))
