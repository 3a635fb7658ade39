"""LayerNormalization with Mean and InvStdDev, which the provider leaves to the CPU."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, OpError, Value
from dmlc.ir.dtype import f32
from dmlc.ops.binary import ADD, MUL, SUB
from dmlc.ops.elementwise import RECIPROCAL, SQRT
from dmlc.ops.normalize import LAYER_NORM, NormAttributes
from dmlc.ops.opaque import OPAQUE, attribute_of, is_opaque
from dmlc.ops.reduce import REDUCE_MEAN, ReduceAttributes
from dmlc.passes.legal_rules.build import Maker
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Miss, Rewriter

#: The type of Mean and InvStdDev, f32, as LayerNormalization's attribute says it.
_F32 = 1


class OneLayerNormResult(RepairRule[Match]):
    """A LayerNormalization loses Mean and InvStdDev; where one is used, it is computed beside it.

    ``exact`` where none is used, else ``reassociates``.
    """

    name = "one-layer-norm-result"
    optional = True
    roots = (OPAQUE,)
    repairs = ("layer-norm-results",)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        if not is_opaque(node, "LayerNormalization") or self.support.of_kernel(failure, "LayerNormalization") is None:
            return None
        kernel, x = self.support.kernel("LayerNormalization"), node.operands[0]
        if kernel is None or x is None or x.type.dtype.name not in kernel.types["T"]:
            return None
        return Match(node) if len(node.results) > 1 else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        root = match.root
        if attribute_of(root, "stash_type", _F32) != _F32:
            return Miss("its statistics are not f32")
        try:
            graph.infer(LAYER_NORM, _operands(root), _record(root))
        except OpError as error:
            return Miss("{0}", (str(error),))
        return None

    def class_of(self, match: Match, graph: Graph, context: PassContext) -> str:
        return REASSOCIATES if any(v.uses for v in match.root.results[1:]) else EXACT

    def describe(self, match: Match) -> str:
        return f"LayerNormalization with {len(match.root.results)} results"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        record, x = _record(root), root.operand(0)
        out = [rewriter.add(LAYER_NORM, _operands(root), record)]
        if not any(v.uses for v in root.results[1:]):
            return [*out, *root.results[1:]]
        over = ReduceAttributes(axes=tuple(range(record.axis, x.type.rank)), keepdims=True)
        wide = make.cast(x, f32)
        mean = make(REDUCE_MEAN, wide, attributes=over)
        centred = make(SUB, wide, mean)
        variance = make(REDUCE_MEAN, make(MUL, centred, centred), attributes=over)
        deviation = make(SQRT, make(ADD, variance, make.constant(record.epsilon, f32)))
        return [*out, mean, make(RECIPROCAL, deviation)][: len(root.results)]


def _record(node: Node) -> NormAttributes:
    axis = int(attribute_of(node, "axis", -1))
    rank = node.operand(0).type.rank
    return NormAttributes(axis=axis + rank if axis < 0 else axis, epsilon=attribute_of(node, "epsilon", 1e-5))


def _operands(node: Node) -> list[Value]:
    return [v for v in node.operands if v is not None]
