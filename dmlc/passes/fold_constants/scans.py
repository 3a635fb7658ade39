"""Scans that hand nothing on from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, Region, Value
from dmlc.ops.binary import BINARY
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.constant import CONSTANT
from dmlc.ops.elementwise import UNARY
from dmlc.ops.index import FULL, IOTA
from dmlc.ops.move import EXPAND, ExpandAttributes
from dmlc.ops.opaque import OPAQUE, attribute_of, is_opaque
from dmlc.ops.reduce import REDUCTIONS, ReduceAttributes
from dmlc.passes.expressions import Formulas
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

_ELEMENTWISE = frozenset((*UNARY, *BINARY, CAST, CLIP, WHERE))
_REDUCTIONS = frozenset(REDUCTIONS)
#: Operations without operands that give the same in each run.
_FIXED = frozenset((CONSTANT, FULL, IOTA))
#: All runs together write no larger tensor.
_MOST_ELEMENTS = 1 << 24


class ScanMatch(Match, eq=False, kw_only=True):
    """``runs`` is the number of runs of the ``body``, of whose inputs the first ``states`` stay as they are."""

    body: Region
    states: int
    runs: int


class RunsTogether(Rule[ScanMatch]):
    """A Scan whose runs are independent, of elementwise operations and reductions, computes all runs together.

    scikit-learn's distances are exported so. Sizes must be known: all runs together take more memory. ``exact``;
    ``reassociates`` with reductions of floats.
    """

    name = "runs-together"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> ScanMatch | Miss | None:
        if not is_opaque(node, "Scan") or node.origin is None or node.origin.version < 9 or len(node.regions) != 1:
            return None
        body, axes = node.regions[0], ("scan_input_axes", "scan_output_axes", "scan_input_directions")
        if any(any(attribute_of(node, name, ())) for name in (*axes, "scan_output_directions")):
            return Miss("it takes or writes its slices another way")
        states = len(body.formals) - int(attribute_of(node, "num_scan_inputs", 0))
        first = node.operand(states)
        runs = first.shape[0] if first.shape else None
        if not isinstance(runs, int):
            return Miss("the number of its runs is not known")
        return ScanMatch(node, body=body, states=states, runs=runs)

    def check(self, match: ScanMatch, graph: Graph) -> Miss | None:
        body, results = match.body, match.body.graph.outputs
        if any(results[i][1] is not body.formals[i] for i in range(match.states)):
            return Miss("a run changes what the next one gets")
        for node in body.graph:
            for value in node.results:
                if node.op not in _ELEMENTWISE | _REDUCTIONS | _FIXED:
                    return Miss("{0} is not computed for all runs together", (value,))
                sizes = [size for size in value.shape if isinstance(size, int)]
                if not value.type.is_static or match.runs * prod(sizes) > _MOST_ELEMENTS:
                    return Miss("{0} of all runs has more than 2^24 elements, or sizes that are not known", (value,))
        return None

    def class_of(self, match: ScanMatch, graph: Graph, context: PassContext) -> str:
        rounds = any(n.op in _REDUCTIONS and n.result.type.dtype.is_float for n in match.body.graph)
        return REASSOCIATES if rounds else EXACT

    def build(self, match: ScanMatch, rewriter: Rewriter) -> Sequence[Value]:
        node, body = match.root, match.body
        known = {inner: node.operand(index) for index, inner in enumerate(body.formals)}
        known |= {inner: node.operand(place) for inner, place in zip(body.captured, body.captures, strict=True)}
        varied = set(body.formals[match.states :])
        for each in body.graph:
            record, rank = each.attributes, each.result.type.rank
            varies = not varied.isdisjoint([v for v in each.operands if v is not None])
            if varies and each.op in _REDUCTIONS:
                axes = each.attributes_as(ReduceAttributes).axes
                record, rank = replace(record, axes=tuple([axis + 1 for axis in axes])), each.operand(0).type.rank
            operands = [
                v and _aligned(known[v], rank, rewriter) if v in varied else v and known[v] for v in each.operands
            ]
            known[each.result] = rewriter.add(each.op, operands, record)
            varied |= {each.result} if varies else set()
        out = [node.operand(index) for index in range(match.states)]
        for _, value in body.graph.outputs[match.states :]:
            shape = ExpandAttributes(shape=(match.runs, *value.shape))
            out.append(known[value] if value in varied else rewriter.add(EXPAND, [known[value]], shape))
        return out


def _aligned(value: Value, rank: int, make: Formulas) -> Value:
    """The value of all runs with ones behind their axis, so that it meets operands of that rank in each run."""
    runs, *sizes = value.shape
    return make.reshape(value, (runs, *[1] * (rank - len(sizes)), *sizes))
