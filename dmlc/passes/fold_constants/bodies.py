"""Operators of imported models that are known by now: If with one branch, Scan, recurrent layers, sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import ClassVar, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import FOREIGN, Array, ForeignType, Graph, Node, Operation, Region, Tensor, Value
from dmlc.ir.dtype import i64
from dmlc.ops.constant import CONSTANT, constant_of
from dmlc.ops.index import FULL, IOTA
from dmlc.ops.input_uses import MOVES
from dmlc.ops.move import CONCAT, EXPAND, PAD, SPLIT, ExpandAttributes, SplitAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.ops.reduce import REDUCTIONS, axes_of
from dmlc.passes.expressions import Formulas, Sketch, Term, plain
from dmlc.passes.fold_constants.between import ELEMENTWISE
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

# --- Branches that always run: their condition is known, or the other branch gives a rank with which a run fails

#: Nodes that are followed from a value to what fixes its rank.
_MOST_NODES = 8
_RECURRENT = frozenset(("GRU", "LSTM", "RNN"))
#: Operators whose result has the rank of their first operand.
_SAME_RANK = frozenset(
    (
        *("Abs", "Cast", "Ceil", "Clip", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"),
        *("Identity", "LeakyRelu", "Log", "LogSoftmax", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid"),
        *("Sign", "Softmax", "Softplus", "Sqrt", "Tanh"),
    )
)


class BranchMatch(Match, eq=False, kw_only=True):
    """``taken`` is the branch that always runs."""

    taken: Region


class InlineBranch(Rule[BranchMatch]):
    """An If of a constant condition becomes the nodes of the branch that it takes.

    So does one whose other branch gives a rank that a user refuses. A recurrent layer reads three axes, and a
    convolution as many as its weights have. TorchScript writes such an If for each ``squeeze`` of an open size.
    """

    name = "inline-branch"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)

    def match(self, node: Node, graph: Graph) -> BranchMatch | None:
        if not is_opaque(node, "If"):
            return None
        condition = constant_of(node.operands[0])
        if condition is None:
            possible = _possible_branches(node)
            return BranchMatch(node, taken=possible[0]) if len(possible) == 1 else None
        wanted = "then_branch" if condition.array.all() else "else_branch"
        return BranchMatch(node, taken=next(r for r in node.regions if r.attribute == wanted))

    def build(self, match: BranchMatch, rewriter: Rewriter) -> Sequence[Value]:
        return rewriter.inline(match.taken.graph, _captured(match.root, match.taken))


def _captured(node: Node, region: Region) -> dict[Value, Value]:
    """The values around a region by what stands for them inside it."""
    return {inner: node.operand(place) for inner, place in zip(region.captured, region.captures, strict=True)}


def _possible_branches(node: Node) -> list[Region]:
    """The branches of an If whose results have ranks that all users take."""
    wanted = [(i, needed_rank(v)) for i, v in enumerate(node.results) if v.type.dtype is FOREIGN]
    wanted = [(i, rank) for i, rank in wanted if rank is not None]
    out = []
    for region in node.regions if wanted else ():
        around, outputs = _captured(node, region), [value for _, value in region.graph.outputs]
        ranks = [(rank, possible_ranks(outputs[i], around)) for i, rank in wanted]
        if all(found is None or rank in found for rank, found in ranks):
            out.append(region)
    return out


def needed_rank(value: Value, steps: int = _MOST_NODES) -> int | None:
    """Return the rank that a value has in each run that does not fail, by the nodes that read it; None if none says."""
    found = [_rank_for(user, index, steps) for user, index in value.uses if user.op is OPAQUE and steps]
    return next((rank for rank in found if rank is not None), None)


def _rank_for(node: Node, index: int, steps: int) -> int | None:
    """The rank that a node wants of its operand of that number."""
    a = node.attributes_as(OpaqueAttributes)
    if a.domain:
        return None
    if a.op_type in _RECURRENT:
        return 3 if index in (0, 5, 6) else None
    if a.op_type in ("Conv", "ConvTranspose"):
        weights = node.operands[1]
        return weights.type.rank if index == 0 and weights is not None and weights.type.dtype is not FOREIGN else None
    more = None if index else _axes_more(node)
    after = None if more is None else needed_rank(node.results[0], steps - 1)
    return None if more is None or after is None else after - more


def _axes_more(node: Node) -> int | None:
    """Return how many axes more than its first operand the result of an opaque node has; None if that is not known."""
    a = node.attributes_as(OpaqueAttributes)
    if a.domain or a.op_type in _SAME_RANK:
        return None if a.domain else 0
    if a.op_type not in ("Squeeze", "Unsqueeze"):
        return None
    axes = attribute_of(node, "axes")
    operand = constant_of(node.operands[1]) if len(node.operands) > 1 else None
    count = len(axes) if axes is not None else operand.size if operand is not None else 0
    return (count if a.op_type == "Unsqueeze" else -count) if count else None


def possible_ranks(value: Value, around: Mapping[Value, Value], steps: int = _MOST_NODES) -> frozenset[int] | None:
    """Return the ranks that a value may have; None where they are not known. ``around`` are captured values."""
    while value in around:
        value = around[value]
    if value.type.dtype is not FOREIGN:
        return frozenset((value.type.rank,))
    node = value.producer
    if node is None or node.op is not OPAQUE or not steps:
        return None
    if is_opaque(node, "If"):
        parts = [
            possible_ranks(region.graph.outputs[value.index][1], {**around, **_captured(node, region)}, steps - 1)
            for region in node.regions
        ]
        return None if None in parts else frozenset([rank for part in parts for rank in part or ()])
    more = _axes_more(node)
    before = None if more is None else possible_ranks(node.operand(0), around, steps - 1)
    return None if more is None or before is None else frozenset([rank + more for rank in before])


# --- Scans that hand nothing on from run to run

_REDUCTIONS = frozenset(REDUCTIONS)
#: Operations without operands that give the same in each run.
_FIXED = frozenset((CONSTANT, FULL, IOTA))
#: All runs together write no larger tensor.
_MOST_RUN = 1 << 24


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
                if node.op not in ELEMENTWISE | _REDUCTIONS | _FIXED:
                    return Miss("{0} is not computed for all runs together", (value,))
                sizes = [size for size in value.shape if isinstance(size, int)]
                if not value.type.is_static or match.runs * prod(sizes) > _MOST_RUN:
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
                axes = axes_of(each)
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


# --- Initial states of recurrent layers that are zero, which is their default

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


# --- Elements, lengths and concatenations of ONNX sequences whose elements are known while compiling

#: A sequence of more elements is left alone.
_MOST_ELEMENTS = 1024


class _SplitPart(Struct, frozen=True):
    """One part of a tensor that is split; its axis of size 1 goes unless ``keeps_axis``."""

    x: Value
    split: SplitAttributes
    index: int
    keeps_axis: bool


_T = TypeVar("_T")
_Element: TypeAlias = "Value | _SplitPart"


@simplifies(onnx=("ConcatFromSequence", "SequenceAt", "SequenceLength"))
def known_sequence(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """An element of a sequence of known tensors becomes that tensor, its length a constant, and its concatenation a
    concat.

    The parts of a SplitToSequence become the parts of a split, which execution providers have kernels for.
    """
    op_type, elements = node.attributes_as(OpaqueAttributes).op_type, _elements(node.operands[0])
    if elements is None:
        return KEEP
    if op_type == "SequenceLength":
        return e.number(len(elements), i64)
    if op_type == "SequenceAt":
        place, count = _integer(node.operands[1]), len(elements)
        if place is None:
            return Miss("the position is not known while compiling")
        if not -count <= place < count:
            return Miss("position {0} of {1} elements", (place, count))
        return _tensor(elements[place], e)
    types = [element.x.type if isinstance(element, _SplitPart) else element.type for element in elements]
    if not types or any(t.dtype is FOREIGN for t in types):
        return Miss("the type of an element is not known")
    values = [_tensor(element, e) for element in elements]
    is_new = bool(attribute_of(node, "new_axis", 0))
    axis = int(attribute_of(node, "axis")) % (values[0].type.rank + is_new)
    return e.concat(*[e.unsqueeze(value, axes=(axis,)) if is_new else value for value in values], axis=axis)


def _tensor(element: _Element, e: Sketch) -> Value:
    if isinstance(element, Value):
        return element
    part = e.results(SPLIT, element.x, attributes=element.split)[element.index]
    return plain(part if element.keeps_axis else e.squeeze(part, axes=(element.split.axis,)))


def _elements(sequence: Value | None) -> list[_Element] | None:
    """The elements of the sequence; None where they are not known."""
    changes: list[Node] = []
    while True:
        node = None if sequence is None else sequence.producer
        if node is None:
            return None
        if not any(is_opaque(node, op_type) for op_type in ("SequenceInsert", "SequenceErase")):
            break
        changes.append(node)
        sequence = node.operands[0]
    source = _first(_SOURCES, node)
    out = None if source is None else source(node)
    for change in reversed(changes):
        if out is None or not _changed(out, change):
            return None
    return out


def _first(table: Mapping[str, _T], node: Node) -> _T | None:
    """The entry of the node's operator."""
    return next((entry for op_type, entry in table.items() if is_opaque(node, op_type)), None)


def _listed(node: Node) -> list[_Element] | None:
    return [value for value in node.operands if value is not None]


def _changed(elements: list[_Element], change: Node) -> bool:
    """Insert into the elements or erase one of them, as ``change`` does; False where its position is not known."""
    inserts = is_opaque(change, "SequenceInsert")
    index, count = 2 if inserts else 1, len(elements)
    given = change.operands[index] if len(change.operands) > index else None
    place = (count if inserts else count - 1) if given is None else _integer(given)
    if place is None or not -count <= place < count + inserts:
        return False
    place += count if place < 0 else 0
    if inserts:
        elements.insert(place, change.operand(1))
    else:
        del elements[place]
    return True


def _parts(node: Node) -> list[_Element] | None:
    """The parts of a SplitToSequence along an axis of known size."""
    x, given = node.operand(0), node.operands[1] if len(node.operands) > 1 else None
    if not x.type.rank:  # or it is not known
        return None
    axis = int(attribute_of(node, "axis", 0)) % x.type.rank
    size = x.shape[axis]
    wanted = np.asarray(1) if given is None else _array(given)
    if wanted is None or not isinstance(size, int):
        return None
    keeps = bool(attribute_of(node, "keepdims", 1))
    if given is not None and not keeps:  # ONNX ignores keepdims here, ONNX Runtime does not
        return None
    if not wanted.ndim:
        each = int(wanted)
        sizes = [min(each, size - start) for start in range(0, size, each)] if each > 0 else []
    else:
        sizes = [int(part) for part in wanted]
    if not 0 < len(sizes) <= _MOST_ELEMENTS or min(sizes) < 0 or sum(sizes) != size:
        return None
    split = SplitAttributes(axis=axis, sizes=tuple(sizes))
    return [_SplitPart(x, split, index, keeps) for index in range(len(sizes))]


def _array(value: Value) -> Array | None:
    tensor = constant_of(value)
    return None if tensor is None else tensor.array


def _integer(value: Value | None) -> int | None:
    tensor = constant_of(value)
    return None if tensor is None else int(tensor.array.reshape(()))


_SOURCES = {"SequenceConstruct": _listed, "SequenceEmpty": _listed, "SplitToSequence": _parts}
