"""Repairs of single ONNX operators: attributes and results that do nothing, biases of attention, Split and Tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import FOREIGN, Dim, Graph, Node, Operation, Value, product
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.binary import MUL
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import SIGMOID
from dmlc.ops.move import (
    RESHAPES,
    SPLIT,
    TILE,
    SplitAttributes,
    TileAttributes,
)
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.repair.foreign import element_dtype
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.targets.directml import operator_rows, refusal


class _Idle(Struct, frozen=True):
    """An attribute of an operator, and whether it says nothing at a node; ``else_`` is what it says there."""

    failure: str
    op_type: str
    attribute: str
    holds: Callable[[Node], bool]
    else_: str


def _gives_no_indices(node: Node) -> bool:
    return not any(v.uses for v in node.results[1:])


def _crops_nothing(node: Node) -> bool:
    return bool(attribute_of(node, "coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize")


_ROWS = (
    _Idle("max-pool-order", "MaxPool", "storage_order", _gives_no_indices, "its indices are used"),
    _Idle("resize-extrapolation", "Resize", "extrapolation_value", _crops_nothing, "it crops, and the value is used"),
)


class _IdleAttributeMatch(Match, eq=False, kw_only=True):
    row: _Idle


class DropIdleAttribute(Rule[_IdleAttributeMatch]):
    """A MaxPool's storage order where no indices are used, and a Resize's value for what is not cropped, are left out.

    They say nothing there. The node stays in its model's form otherwise.
    """

    name = "drop-idle-attribute"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = tuple(row.failure for row in _ROWS)

    def match(self, node: Node, graph: Graph) -> _IdleAttributeMatch | None:
        a = node.attributes_as(OpaqueAttributes)
        row = next((row for row in _ROWS if row.op_type == a.op_type and not a.domain), None)
        if row is None or node.origin is None or attribute_of(node, row.attribute) is None:
            return None
        failure = self.capabilities.fault(row.failure, row.op_type)
        usual = None if failure is None else (failure.attributes_not or {}).get(row.attribute)
        if usual is None or attribute_of(node, row.attribute) == usual:
            return None
        return _IdleAttributeMatch(node, row=row)

    def check(self, match: _IdleAttributeMatch, graph: Graph) -> Miss | None:
        return None if match.row.holds(match.root) else Miss("{0}", (match.row.else_,))

    def describe(self, match: _IdleAttributeMatch) -> str:
        return f"{match.row.attribute} of {match.row.op_type}"

    def build(self, match: _IdleAttributeMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, name = match.root, match.row.attribute
        a, old = root.attributes_as(OpaqueAttributes), root.origin.proto
        kept = max([1, *(v.index + 1 for v in root.results if v.uses)])
        record = replace(a, types=a.types[:kept], attributes=tuple([pair for pair in a.attributes if pair[0] != name]))
        made = rewriter.add_node(OPAQUE, root.operands, record)
        proto = type(old)()
        proto.CopyFrom(old)
        del proto.attribute[:], proto.output[kept:]
        proto.attribute.extend([attribute for attribute in old.attribute if attribute.name != name])
        made.name, made.origin = root.name, replace(root.origin, proto=proto)
        return [*made.results, *root.results[kept:]]


#: The operands of QLinearSigmoid that are zero points: of the operand, and of the result.
_ZERO_POINTS = (2, 4)


@lowers(onnx=(f"{MICROSOFT}.QLinearSigmoid",), repairs=("quantized-sigmoid",))
def explicit_zero_points(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A QLinearSigmoid without a zero point gets its default, 0."""
    x = operands[0]
    dtype = None if x is None else element_dtype(x.value)
    if len(operands) <= _ZERO_POINTS[0] or dtype is None:
        return KEEP
    given = [*operands, *[None] * (_ZERO_POINTS[-1] + 1 - len(operands))]
    if all(given[index] is not None for index in _ZERO_POINTS):
        return KEEP
    for index in _ZERO_POINTS:
        given[index] = e.number(0, dtype) if given[index] is None else given[index]
    return e(OPAQUE, *given, attributes=node.attributes)


class _ResultsMatch(Match, eq=False, kw_only=True):
    """``names`` are the results that stay, in the model that the node is of; a result without one is empty."""

    names: Sequence[str]


class DropUnusedResult(Rule[_ResultsMatch]):
    """A result that nothing uses is left out where the provider does not take the node with it."""

    name = "drop-unused-result"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("skip-norm-results", "attention-present", "mha-scores")

    def match(self, node: Node, graph: Graph) -> _ResultsMatch | None:
        a = node.attributes_as(OpaqueAttributes)
        names = ["result"] * len(node.results) if node.origin is None else [*node.origin.proto.output]
        known = [found for found in self.capabilities.faults(a.op_type, a.domain) if found.id in self.repairs]
        given = {index for found in known for index in found.results_given if index < len(names) and names[index]}
        if not given:
            return None
        kept = ["" if index in given and not node.results[index].uses else name for index, name in enumerate(names)]
        while not kept[-1]:
            kept.pop()
        return _ResultsMatch(node, names=kept)

    def check(self, match: _ResultsMatch, graph: Graph) -> Miss | None:
        root = match.root
        if root.origin is None and "" in match.names:
            return Miss("a result after it is used")
        had = ["result"] * len(root.results) if root.origin is None else root.origin.proto.output
        return Miss("its results are used") if match.names == [*had] else None

    def describe(self, match: _ResultsMatch) -> str:
        return f"{match.root.attributes_as(OpaqueAttributes).op_type} with {len(match.root.results)} results"

    def build(self, match: _ResultsMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, count = match.root, len(match.names)
        a = root.attributes_as(OpaqueAttributes)
        made = rewriter.add_node(OPAQUE, root.operands, replace(a, types=a.types[:count]))
        made.name = root.name
        if root.origin is not None:
            proto = type(root.origin.proto)()
            proto.CopyFrom(root.origin.proto)
            proto.output[:] = match.names
            made.origin = replace(root.origin, proto=proto)
        return [*made.results, *root.results[count:]]


@lowers(SPLIT, repairs=("split-gate",))
def slices_of_gate(e: Sketch, node: Node, x: Term) -> Lowered:
    """A Split of which one part is multiplied by the sigmoid of a part becomes slices: no two results of one node.

    DirectML has no nodes for views in between, so that it sees the same there.
    """
    if e.target.fault("split-gate", "Mul") is None or not any(_is_gated(part, node) for part in node.results):
        return KEEP
    a, out = node.attributes_as(SplitAttributes), []
    start: Dim = 0
    for size in a.sizes:
        out.append(e.slice(x, starts=(start,), ends=(start + size,), axes=(a.axis,), steps=(1,)))
        start = start + size
    return out


def _is_gated(part: Value, split: Node) -> bool:
    """True if the sigmoid of a part is multiplied by a part."""
    gates = [sigmoid.result for sigmoid in _readers(part) if sigmoid.op is SIGMOID]
    products = [node for gate in gates for node in _readers(gate) if node.op is MUL]
    return any(_viewed(value).producer is split for node in products for value in node.operands if value is not None)


def _readers(value: Value) -> Iterator[Node]:
    """The nodes that read a value, or a view of it."""
    for user in value.users:
        if user.op in RESHAPES:
            yield from _readers(user.result)
        else:
            yield user


def _viewed(value: Value) -> Value:
    """The value that a view is of; any other itself."""
    while value.producer is not None and value.producer.op in RESHAPES:
        value = value.producer.operand("x")
    return value


@lowers(TILE, onnx=("Tile",))
def tile_by_expand(e: Sketch, node: Node, x: Term, *_: Term | None) -> Lowered:
    """A Tile becomes, for each axis that is repeated, an Expand between two reshapes.

    DirectML's TILE has fewer types than the provider's kernel: f64 is registered, and the session fails. Expand takes
    all types. The tensors in between have three axes.
    """
    level, row = e.target.target.feature_level, operator_rows().get("TILE")
    if e.target.kernel("Tile") is None or row is None or level is None:
        return KEEP
    counts = _counts(node)
    if refusal(row, {"InputTensor": (x.dtype.name, None)}, level) is None or counts is None:
        return KEEP
    for axis, count in enumerate(counts):
        shape = x.shape
        before, after = product(shape[:axis]), product(shape[axis:])
        copies = e.expand(x.reshape((before, 1, after)), shape=(before, count, after))
        x = copies.reshape((*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))
    return x


def _counts(node: Node) -> Sequence[Dim] | None:
    """Return the repetitions of each axis, those that are numbers at least one; None if they are unknown or zero."""
    if node.op is TILE:
        counts: Sequence[Dim] = node.attributes_as(TileAttributes).repeats
    else:
        data = constant_of(node.operands[1])
        if data is None or data.array.shape != (node.operand(0).type.rank,):
            return None
        counts = [int(count) for count in data.array]
    return counts if all(not isinstance(count, int) or count > 0 for count in counts) else None


#: The number of the operand attention_bias, of [batch, heads, length, total].
_BIAS = 5


@lowers(onnx=(f"{MICROSOFT}.MultiHeadAttention",), repairs=("mha-bias-broadcast",))
def full_attention_bias(e: Sketch, node: Node, query: Term, *operands: Term | None) -> Lowered:
    """An attention_bias of one element along the batch or the heads is expanded."""
    bias = operands[_BIAS - 1] if len(operands) >= _BIAS else None
    if bias is None or query.dtype is FOREIGN or bias.rank != 4:
        return KEEP
    batch, heads, *matrix = bias.shape
    full = (query.shape[0] if batch == 1 else batch, attribute_of(node, "num_heads", 1) if heads == 1 else heads)
    shape = (*full, *matrix)
    return e.again(node, query, *operands[: _BIAS - 1], e.expand(bias, shape=shape)) if shape != bias.shape else KEEP
