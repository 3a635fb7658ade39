"""Selections over types that no kernel compares."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ir.dtype import f64, i64, u64
from dmlc.ops.binary import ADD
from dmlc.ops.index import ONE_HOT, OneHotAttributes
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K, ArgAttributes, HardmaxAttributes
from dmlc.passes.kernel_support import LegalRule, Maker, dtype_of
from dmlc.passes.legalize.reductions import biased
from dmlc.passes.rewrite import Match, Rewriter


class SelectBiased(LegalRule):
    """A selection over u64 becomes one over i64 in the same order: less 2^63."""

    name = "select-biased"
    roots = (ARGMAX, ARGMIN, TOP_K)

    def wants(self, node: Node, graph: Graph) -> bool:
        return dtype_of(node) is u64

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        node, make = match.root, Maker(rewriter)
        found = rewriter.add_node(node.op, [biased(make, node.operand(0), i64)], node.attributes)
        if node.op is not TOP_K:
            return found.results
        values, indices = found.results
        return [make.cast(make(ADD, values, make.constant(i64.lowest, i64)), u64), indices]


class HardmaxByIndex(LegalRule):
    """Hardmax of f64, which has no kernel anywhere, becomes argmax and one_hot."""

    name = "hardmax-by-index"
    roots = (HARDMAX,)

    def wants(self, node: Node, graph: Graph) -> bool:
        return dtype_of(node) is f64 and len(node.attributes_as(HardmaxAttributes).axes) == 1

    def make(self, node: Node, make: Maker) -> Value:
        x, axes = node.operand(0), node.attributes_as(HardmaxAttributes).axes
        index = make(ARGMAX, x, attributes=ArgAttributes(axes=axes, ties="first", dtype=i64, keepdims=False))
        record = OneHotAttributes(depth=x.shape[axes[0]], axis=axes[0], on=1, off=0, dtype=f64)
        return make(ONE_HOT, index, attributes=record)


RULES: Sequence[type[LegalRule]] = (SelectBiased, HardmaxByIndex)
