"""``accumulate-f32``: norms, long sums, written-out squares and variances, of f16 are computed in f32 on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from dmlc.ir import Attributes, DType, Graph, Node, Tensor, Value, product
from dmlc.ir.dtype import f16, f32
from dmlc.ir.history import AS_WRITTEN
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.binary import ADD, DIV, MAX, MIN, MUL, POW, SUB
from dmlc.ops.choose import CAST, CLIP, CastAttributes
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.elementwise import ABS, LOG, NEG, RECIPROCAL, SQRT
from dmlc.ops.move import RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.normalize import LAYER_NORM, RMS_NORM
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, node_name
from dmlc.ops.reduce import REDUCE_L1, REDUCE_LOG_SUM, REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE, REDUCTIONS
from dmlc.passes.manager import REASSOCIATES, Pass, PassContext
from dmlc.passes.patterns import made_by, scalar_of
from dmlc.passes.rewrite import merge_spans
from dmlc.targets.directml import MEASURED_SUM

# --- Regions and normalizations that ``accumulate-f32`` computes in f32, and the warnings if it does not run

#: Reductions that square, and others.
_SQUARING = tuple([op for op in REDUCTIONS if op.before == "square"])
_ROOTS = (*_SQUARING, REDUCE_SUM, REDUCE_MEAN, REDUCE_L1, REDUCE_LOG_SUM)
_MOVES = (RESHAPE, TRANSPOSE, SQUEEZE, UNSQUEEZE)
#: Operations that may stand between a product and the reduction.
_BETWEEN = (*_MOVES, NEG, ADD, SUB, MUL, DIV)
#: Operations that may follow the reduction: alone, or with a number beside.
_AFTER = (*_MOVES, SQRT, RECIPROCAL, LOG, NEG, ABS, CLIP)
_AFTER_WITH_NUMBER = (ADD, SUB, MUL, DIV, MAX, MIN, POW)
_SHRINKS = (SQRT, RECIPROCAL, LOG, MUL, DIV, POW)
#: So many nodes before a reduction are looked at, one after the other.
_STEPS = 6


class AccumulationRegion(Struct):
    """``products`` are what may overflow before the reduction ``root`` makes it smaller, or before what follows a sum
    of squares does; ``nodes`` is all that is computed together. A norm overflows late, so that it is not a product."""

    root: Node
    products: list[Node] = field(default_factory=list)
    nodes: dict[Node, None] = field(default_factory=dict)


def find_regions(graph: Graph) -> list[AccumulationRegion]:
    """The regions of a graph, in the order of their reductions; they may share nodes."""
    found = [_region(root) for root in graph.nodes_of(_ROOTS) if root.operand("x").type.dtype is f16]
    return [region for region in found if region is not None]


def is_square(node: Node) -> bool:
    """Return whether the node is ``x * x`` or ``x ** 2``."""
    if node.op is MUL:
        return node.operand("a") is node.operand("b")
    return node.op is POW and scalar_of(node.operand("b")) == 2


def _region(root: Node) -> AccumulationRegion | None:
    region = AccumulationRegion(root, nodes={root: None})
    is_long = _is_long(root)
    if root.op not in _SQUARING:
        if not _before(root.operand("x"), region) and not is_long:
            return None
        _after(root, region)
        return region
    shrinks = _after(root, region)
    if not shrinks and not is_long:  # the result is what overflows
        return None
    _difference(root.operand("x"), region)
    if root.op is REDUCE_SUM_SQUARE and shrinks:
        region.products.append(root)
    return region


def _is_long(root: Node) -> bool:
    """Return whether each result is known to be of more elements than DirectML is known to sum in f16."""
    before, after = product(root.operand("x").shape), product(root.result.shape)
    return isinstance(before, int) and isinstance(after, int) and before > MEASURED_SUM * after > 0


# --- before the reduction


def _is_product(node: Node) -> bool:
    if node.op is MUL:
        return not any(scalar_of(v) is not None for v in node.operands)
    power = scalar_of(node.operand("b")) if node.op is POW else None
    return power is not None and power > 1


def _before(value: Value, region: AccumulationRegion, steps: int = _STEPS) -> bool:
    """Take in the products that the reduction sums, and what stands between them and it; whether there are any."""
    node = value.producer
    if node is None or not steps:
        return False
    if node in region.nodes:
        return True
    product = _is_product(node)
    if not product and node.op not in _BETWEEN:
        return False
    inner = [_before(v, region, steps - 1) for v in dict.fromkeys(node.operands) if v is not None]
    if product:
        region.products.append(node)
        if is_square(node):
            _difference(node.operand("a"), region)
    elif not any(inner):
        return False
    region.nodes[node] = None
    return True


def _difference(value: Value, region: AccumulationRegion) -> None:
    """Take in ``x - mean(x)`` that is squared, and the mean."""
    node = made_by(value, SUB, ADD)
    if node is None:
        return
    region.nodes[node] = None
    for side in node.operands:
        inner = made_by(side, NEG)
        mean = made_by(inner.operand(0) if inner else side, REDUCE_MEAN)
        if mean is not None and mean.operand("x") in node.operands:
            region.nodes.update(dict.fromkeys([mean, *([inner] if inner else [])]))


# --- after the reduction


def _after(root: Node, region: AccumulationRegion) -> bool:
    """Add the nodes after the reduction, up to the last that is not a layout operation.

    Return whether they make a value that would overflow smaller.
    """
    found: list[Node] = []
    pending: list[Node] = [root]
    while pending:
        node = pending.pop()
        for user in node.result.users:
            if user not in region.nodes and _follows(user, node.result):
                region.nodes[user] = None
                found.append(user)
                pending.append(user)
                _take_product_beside(user, node.result, region)
    for node in reversed(found):
        if node.op in _MOVES and not any(user in region.nodes for user in node.result.users):
            del region.nodes[node]
    return any(node.op in _SHRINKS for node in found)


def _follows(user: Node, value: Value) -> bool:
    if user.op in _AFTER:
        return True
    if user.op not in _AFTER_WITH_NUMBER:
        return False
    others = _others(user, value)
    if all(_is_number(v) for v in others):
        return bool(others)
    return user.op in (SUB, ADD) and all(_square_of_mean(v) for v in others)


def _is_number(value: Value) -> bool:
    """One element: a constant, or an epsilon that is fed."""
    return all(size == 1 for size in value.shape)


def _others(user: Node, value: Value) -> Sequence[Value]:
    return [v for v in user.operands if v is not None and v is not value]


def _square_of_mean(value: Value) -> bool:
    """Return whether the value is the squared mean that a variance subtracts from the mean of squares."""
    node = value.producer
    if node is None or not is_square(node):
        return False
    return made_by(node.operand("a"), REDUCE_MEAN, REDUCE_SUM) is not None


def _take_product_beside(user: Node, value: Value, region: AccumulationRegion) -> None:
    for other in _others(user, value):
        node = other.producer
        if node is not None and not _is_number(other):
            region.nodes[node] = None
            mean = node.operand(0).producer
            if mean is not None:
                region.nodes[mean] = None


#: Operators that add squares of f16, or norm by them, by domain and name.
_OPAQUE = frozenset(
    (
        *(("", name) for name in ("GlobalLpPool", "LpPool")),
        *(("", name) for name in ("GroupNormalization", "InstanceNormalization", "LayerNormalization")),
        *(("", name) for name in ("MeanVarianceNormalization", "RMSNormalization", "SimplifiedLayerNormalization")),
        *((MICROSOFT, name) for name in ("GroupNorm", "SkipGroupNorm")),
        *((MICROSOFT, name) for name in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")),
    )
)


def find_norms(graph: Graph) -> list[Node]:
    """Return the normalizations and Lp poolings of f16 tensors, in the order of the graph."""
    return [node for node in graph if _is_norm(node)]


def _is_norm(node: Node) -> bool:
    if node.op not in (LAYER_NORM, RMS_NORM):
        if node.op is not OPAQUE:
            return False
        a = node.attributes_as(OpaqueAttributes)
        if (a.domain, a.op_type) not in _OPAQUE:
            return False
    x = node.operands[0] if node.operands else None
    return x is not None and x.type.dtype is f16


def wide_attributes(node: Node) -> Attributes:
    """Return the attributes of a node with its results in f32 where they are f16."""
    if node.op is not OPAQUE:
        return node.attributes
    a = node.attributes_as(OpaqueAttributes)
    return replace(a, types=tuple([replace(t, dtype=f32) if t.dtype is f16 else t for t in a.types]))


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
