"""The layer normalization whose mean is taken out after the scale, as TensorFlow's batch normalization writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.elementwise import RECIPROCAL
from dmlc.ops.normalize import LAYER_NORM
from dmlc.passes.layer_norm_rules.core import Norm, NormRule, find_deviation
from dmlc.passes.layer_norm_rules.factors import Factors, factors_of, without
from dmlc.passes.layer_norm_rules.statistics import Deviation, average_of, bare, centred_of
from dmlc.passes.patterns import Seen, both_ways, made_by
from dmlc.records import dataclass


@dataclass(frozen=True, slots=True)
class _MeanDifference:
    """``product - mean_product + plus``."""

    product: Node
    mean_product: Node
    plus: Value | None
    nodes: tuple[Node, ...]


class SplitLayerNorm(NormRule):
    """``x * s + (bias - mean(x) * s)`` with ``s = scale / sqrt(variance + epsilon)`` becomes ``layer_norm``.

    Taking the mean out after the scale cancels where the mean is large; the fused node takes it out first. A variance
    written as ``E[x^2] - E[x]^2`` makes it class ``range``.
    """

    name = "fuse-split-layer-norm"
    roots = (ADD, SUB)
    fed_by = (MUL, DIV)
    op = LAYER_NORM

    def match(self, node: Node, graph: Graph) -> Norm | None:
        for parts in _differences(node):
            found = _match(node, parts)
            if found is not None:
                return found
        return None

    def _wanted(self, deviation: Deviation) -> str:
        return "the value whose mean is taken out"


def _differences(node: Node) -> Iterator[_MeanDifference]:
    if node.op is SUB:
        a, b = made_by(node.operand(0), MUL, DIV), made_by(node.operand(1), MUL, DIV)
        if a is not None and b is not None:
            yield _MeanDifference(a, b, None, ())
        return
    for x, rest in both_ways(node):
        a, less = made_by(x, MUL, DIV), made_by(rest, SUB)
        b = None if less is None else made_by(less.operand(1), MUL, DIV)
        if a is not None and b is not None and less is not None:
            yield _MeanDifference(a, b, less.operand(0), (less,))


def _match(node: Node, parts: _MeanDifference) -> Norm | None:
    left, right = factors_of(parts.product), factors_of(parts.mean_product)
    if left is None or right is None or len(left.above) != len(right.above):
        return None
    counted, others = Counter(left.above), Counter(right.above)
    x, mean = list((counted - others).elements()), list((others - counted).elements())
    if len(x) != 1 or Counter(left.below) != Counter(right.below):
        return None
    seen: Seen = [*parts.nodes, *left.nodes, *right.nodes]
    average = average_of(mean[0], seen, squared=False)
    if average is None or bare(average.x) is not bare(x[0]) or not (average.is_mean and average.stands_in_place):
        return None
    shared = _opened(without(left.above, x[0]), left.below, seen)
    found = find_deviation(shared, seen)
    if found is None:
        return None
    deviation, factor = found
    spread = deviation.spread
    if spread.centred is None or spread.centred.perm is not None or bare(spread.centred.x) is not bare(x[0]):
        return None
    if not spread.moments:
        centred_of(spread.data, seen)
    if not average.axes == spread.centred.mean.axes == spread.average.axes:
        return None
    return Norm(
        node,
        tuple(dict.fromkeys([n for n in seen if n is not node])),
        op=LAYER_NORM,
        x=x[0],
        axes=average.axes,
        dtype=spread.data.type.dtype,
        deviation=deviation,
        above=without(shared.above, factor) if factor in shared.above else tuple(shared.above),
        below=tuple(shared.below) if factor in shared.above else without(shared.below, factor),
        plus=parts.plus,
    )


def _opened(above: Sequence[Value], below: Sequence[Value], seen: Seen) -> Factors:
    """The factors of the factors: they are used twice here, so they were left whole."""
    out = Factors()
    for values, upper in ((above, True), (below, False)):
        for value in values:
            node = made_by(value, MUL, DIV, RECIPROCAL)
            inner = None if node is None else factors_of(node)
            if inner is None or len(value.uses) != 2:
                (out.above if upper else out.below).append(value)
                continue
            seen.extend(inner.nodes)
            out.above += inner.above if upper else inner.below
            out.below += inner.below if upper else inner.above
    return out
