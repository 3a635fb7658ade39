"""``accumulate-f32``: norms, long sums, written-out squares and variances, of f16 are computed in f32 on request."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dmlc.ir import DType, Graph, Node, Tensor, Value
from dmlc.ir.dtype import f16, f32
from dmlc.ir.history import AS_WRITTEN
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.node_name import node_name
from dmlc.passes.accumulate_f32.region import find_norms, find_regions, wide_attributes
from dmlc.passes.manager import REASSOCIATES, Pass, PassContext
from dmlc.passes.rewrite import merge_spans

#: Constants of up to so many elements are stored in f32; a larger one is cast where it is used.
_SMALL = 65536


class AccumulateF32(Pass, frozen=True):
    """Compute written-out reductions and normalizations of f16 in f32: cast once on the way in, once on the way out.

    The region is the product before a sum or a mean, the reduction, and the steps that make its result smaller again (a
    division, an epsilon, a root). ``reassociates``: rounding differs, and a value that overflowed may no longer
    overflow.
    """

    name: ClassVar[str] = "accumulate-f32"
    summary: ClassVar[str] = (
        "Compute norms, Lp poolings, long sums, and written-out squares and products, of f16 in f32."
    )
    rewrite_class: ClassVar[str] = REASSOCIATES

    def run(self, graph: Graph, context: PassContext) -> bool:
        regions, norms = find_regions(graph), find_norms(graph)
        if not regions and not norms:
            return False
        for node in norms:
            name = node_name(node)
            text = f"{getattr(node.attributes, 'op_type', node.op.name)} of f16 in f32"
            context.record(self.name, self.rewrite_class, text, merge_spans([node]), (name,), (name,))
        chosen = {node for region in regions for node in region.nodes}
        order = [node for node in graph if node in chosen]
        for region in regions:
            nodes = [node for node in order if node in region.nodes]
            text = f"{', '.join(dict.fromkeys(node.op.name for node in nodes))} of f16 in f32"
            names = tuple([node_name(node) for node in nodes])
            context.record(self.name, self.rewrite_class, text, merge_spans(nodes), names, names)
        chosen.update(norms)
        _Widener(graph, chosen).run([node for node in graph if node in chosen] if norms else order)
        return True


class _Widener:
    def __init__(self, graph: Graph, chosen: set[Node]) -> None:
        self.graph = graph
        self.chosen = chosen
        self.wide: dict[Value, Value] = {}

    def run(self, order: list[Node]) -> None:
        """Make each node anew in f32, and cast back what others need of it: that has the name, of which a model may say
        that it is f16."""
        for node in order:
            operands = [None if v is None else self._widened(v, node) for v in node.operands]
            history = node.history.then(AccumulateF32.name, AccumulateF32.rewrite_class)
            made = self.graph.add(
                node.op, operands, wide_attributes(node), spans=node.spans, history=history, before=node
            )
            made.name = node.name
            for old, new in zip(node.results, made.results, strict=True):
                self._replace(old, new, node)
        self.graph.erase_dead(reversed(order))

    def _replace(self, old: Value, new: Value, node: Node) -> None:
        """Cast back what others need of a result."""
        if old.type.dtype is not f16:
            self.graph.replace_all_uses(old, new)
            new.name = old.name
            return
        self.wide[old] = new
        outside = [use for use in old.uses if use[0] not in self.chosen]
        if outside:
            back = self._cast(new, f16, node)
            back.name = old.name
            for user, index in outside:
                self.graph.set_operand(user, index, back)

    def _widened(self, value: Value, before: Node) -> Value:
        if value.type.dtype is not f16:
            return value
        found = self.wide.get(value)
        if found is None:
            data = constant_of(value)
            if data is not None and data.size <= _SMALL:
                record = ConstantAttributes(value=Tensor(data.array.astype(np.float32)))
                found = self.graph.add(CONSTANT, (), record, before=before).result
            else:
                found = self._cast(value, f32, before)
            self.wide[value] = found
        return found

    def _cast(self, value: Value, to: DType, before: Node) -> Value:
        record = CastAttributes(to=to)
        return self.graph.add(
            CAST,
            [value],
            record,
            spans=before.spans,
            history=AS_WRITTEN.then(AccumulateF32.name, AccumulateF32.rewrite_class),
            before=before,
        ).result
