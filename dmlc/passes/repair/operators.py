"""Repairs of single ONNX operators: attributes and results that do nothing, biases of attention, Split and Tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import FOREIGN, Dim, DType, Graph, Node, Operation, Value, product
from dmlc.ir.dtype import bool_, f16, f32, i64
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.binary import EQUAL, MUL, POW
from dmlc.ops.choose import CAST, CLIP, ClipAttributes
from dmlc.ops.constant import CONSTANT, constant_of
from dmlc.ops.elementwise import IS_INF, SIGMOID
from dmlc.ops.index import FULL, IOTA, SCATTER_ELEMENTS, is_written
from dmlc.ops.literals import attribute_array
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import (
    CONCAT,
    PAD,
    RESHAPE,
    RESHAPES,
    SLICE,
    SPLIT,
    TILE,
    ConcatAttributes,
    PadAttributes,
    SplitAttributes,
    TileAttributes,
)
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.ops.reduce import REDUCTIONS, axes_of, reduction_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.repair.foreign import element_dtype
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.targets.directml import operator_rows, refusal

# --- Repairs of elementwise operations: powers, remainders, truths, casts and clips


@lowers(POW, onnx=("Pow",), repairs=("pow-int",))
def power_by_products(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A power of i32 by a constant becomes products, of which a power of a program is made already."""
    if node.op is POW and node.origin is None:
        return KEEP
    base, exponent = operands[:2]
    if base is None or exponent is None or exponent.data is None or exponent.data.size != 1:
        return KEEP
    if not e.target.has_fault("pow-int", "Pow", "T", base.dtype):
        return KEEP
    number = exponent.data.array.reshape(())[()]
    if not 0 <= number < 2**31 or number != int(number):
        return Miss("the exponent {0} is negative or not an integer", (number,))
    return base ** exponent.cast(base.dtype)  # legalize makes products of it


@lowers(EQUAL)
def equality_of_truths(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """``a == b`` of truths becomes ``!(a ^ b)``.

    The provider has no kernel of Equal for truths, and one of Xor.
    """
    return ~(a ^ b) if a.dtype is bool_ and not e.target.leaves("Xor", bool_) else KEEP


@lowers(IS_INF, onnx=("IsInf",))
def infinity_of_half(e: Sketch, node: Node, x: Term) -> Lowered:
    """``is_inf`` of f16 is asked of the number in f32, which keeps every f16 and its infinities.

    The provider has no kernel of IsInf for f16, and the node would wait for a copy to the CPU.
    """
    return e.again(node, x.cast(f32)) if x.dtype is f16 and not e.target.leaves("IsInf", f32, "T1") else KEEP


#: The faults of casts to bool.
_CASTS = ("cast-bool", "cast-integer-bool", "cast-int-bool")


@lowers(CAST, onnx=("CastLike",), repairs=_CASTS)
def truth_by_comparison(e: Sketch, node: Node, x: Term, *_: Term | None) -> Lowered:
    """A cast of numbers to bool becomes Not(Equal(x, 0)), of which a NaN is true as it is in the cast."""
    op_type = "Cast" if node.op is CAST else "CastLike"
    is_wrong = any(e.target.has_fault(fault, op_type, "T1", x.dtype) for fault in _CASTS)
    return ~e.equal(x, 0) if node.result.type.dtype is bool_ and is_wrong else KEEP


@lowers(CLIP, onnx=("Clip",), repairs=("clip-64",))
def both_bounds(e: Sketch, node: Node, x: Term, *bounds: Term | None) -> Lowered:
    """A clip with a missing bound gets the lowest or highest number of its dtype."""
    if not e.target.has_fault("clip-64", "Clip", "T", x.dtype):
        return KEEP
    ends = (int(x.dtype.lowest), int(x.dtype.highest))
    if node.op is CLIP:
        a = node.attributes_as(ClipAttributes)
        low, high = (end if bound is None else bound for bound, end in zip((a.min, a.max), ends, strict=True))
        return KEEP if None not in (a.min, a.max) else e(CLIP, x, attributes=replace(a, min=low, max=high))
    given = [*bounds, None, None][:2]
    if None not in given:
        return KEEP
    limits = [e.number(end, x.dtype) if bound is None else bound for bound, end in zip(given, ends, strict=True)]
    return e(OPAQUE, x, *limits, attributes=OpaqueAttributes(op_type="Clip", types=(node.result.type,)))


# --- Repairs of forms of layout operators that the provider refuses: they are written in another form

#: Operands of Slice that are axes and steps.
_AXES, _STEPS = 3, 4


def _is_from(rule: Any, node: Node, graph: Graph) -> bool:
    """Return whether a model has the node as ONNX's operator of that name."""
    if node.origin is None:
        return False
    proto = node.origin.proto
    return proto.domain in ("", "ai.onnx") and proto.op_type in rule.onnx


@lowers(RESHAPE, onnx=("Reshape",), offered=_is_from, repairs=("reshape-allowzero",))
def plain_reshape(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A Reshape whose shape has a -1 loses allowzero, which says nothing there: ONNX has no 0 next to a -1."""
    if e.target.fault("reshape-allowzero", "Reshape") is None:
        return KEEP
    is_kept = any(attribute.name == "allowzero" and attribute.i for attribute in node.origin.proto.attribute)
    if not is_kept or -1 not in _shape_of(node):
        return KEEP
    if node.op is RESHAPE:
        return e.again(node)
    a = node.attributes_as(OpaqueAttributes)
    kept = tuple([pair for pair in a.attributes if pair[0] != "allowzero"])
    return e(OPAQUE, *operands, attributes=replace(a, attributes=kept))


def _shape_of(node: Node) -> Sequence[int]:
    """The numbers of the shape operand of a Reshape as the model has it; none where they are computed."""
    from dmlc.onnx_schema.origin import known_of  # loads onnx, which a model has loaded already

    names = [f"{number}" for number in range(len(node.origin.inputs))]
    array = known_of(node, names).constant(names[1])
    return () if array is None else array.ravel().tolist()


@lowers(SLICE, onnx=("Slice",), offered=_is_from, repairs=("slice-steps",))
def slice_with_axes(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A Slice with steps and without axes gets its axes: the first ones, as many as it has starts."""
    names = [*node.origin.proto.input, *[""] * (_STEPS + 1)]
    if e.target.fault("slice-steps", "Slice") is None or names[_AXES] or not names[_STEPS]:
        return KEEP
    if node.op is SLICE:
        return e.again(node)
    count = _count(node)
    if count is None:
        return KEEP
    axes = e.number(list(range(count)), i64)
    return e(OPAQUE, *operands[:_AXES], axes, *operands[_STEPS:], attributes=node.attributes)


def _count(node: Node) -> int | None:
    """The number of starts of an opaque Slice."""
    sizes = [v.shape[0] for v in node.operands[1:3] if v is not None and v.type.dtype is not FOREIGN and v.shape]
    return next((size for size in sizes if isinstance(size, int)), None)


@lowers(onnx=("GatherND",), repairs=("gather-nd-number",))
def gather_one_number(e: Sketch, node: Node, x: Term, indices: Term) -> Lowered:
    """A GatherND whose result is one number takes its indices as a row, and its result has an axis until a reshape."""
    result = node.result.type
    if e.target.fault("gather-nd-number", "GatherND") is None or FOREIGN in (indices.dtype, result.dtype):
        return KEEP
    if result.rank:
        return KEEP  # otherwise the indices have one axis
    record = replace(node.attributes_as(OpaqueAttributes), types=(result.with_shape((1,)),))
    return e(OPAQUE, x, indices.reshape((1, *indices.shape)), attributes=record).reshape(())


# --- Operands without an element, for which no DirectML operator is made: the provider leaves the result unwritten


def _full(e: Sketch, shape: Sequence[Dim], value: float | int | bool, dtype: DType) -> Term:
    if is_written(shape):
        data = np.broadcast_to(attribute_array(value, dtype, "value"), shape)  # type: ignore[arg-type]
        return e.of(e.constant(data))
    return e.full(shape=tuple(shape), value=value, dtype=dtype)


@lowers(*[op for op in ALL_OPERATIONS if op not in (CONSTANT, FULL, IOTA)], OPAQUE, repairs=("empty",))
def nothing_to_compute(e: Sketch, node: Node, *_: Term | None) -> Lowered:
    """A node whose results are all empty becomes tensors of no element, so that nothing is asked of the provider."""
    if not all(0 in v.shape and v.type.is_static for v in node.results):
        return KEEP
    return [_full(e, v.shape, 0, v.type.dtype) for v in node.results]


@lowers(*REDUCTIONS, repairs=("empty",))
def reduction_of_nothing(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction over an axis of no element becomes its identity.

    The sum is 0, the product 1, the largest the lowest of the type, the mean NaN, as the language says.
    """
    if all(x.shape[axis] != 0 for axis in axes_of(node)):
        return KEEP
    dtype = node.result.type.dtype
    value = reduction_of(node).of_nothing(dtype)
    return _full(e, node.result.shape, bool(value) if dtype is bool_ else value, dtype)


@lowers(MATMUL, repairs=("empty",))
def product_of_nothing(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """A matrix product over an axis of no element becomes zeros."""
    return _full(e, node.result.shape, 0, node.result.type.dtype) if a.shape[-1] == 0 else KEEP


@lowers(CONCAT, repairs=("empty",))
def concat_of_some(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """A concat leaves out operands that have no element."""
    axis = node.attributes_as(ConcatAttributes).axis
    left = [x for x in operands if x.shape[axis] != 0]
    if len(left) in (0, len(operands)):
        return KEEP
    return left[0] if len(left) == 1 else e.concat(*left, axis=axis)


@lowers(PAD, repairs=("empty",))
def pad_of_nothing(e: Sketch, node: Node, x: Term) -> Lowered:
    """A pad of a tensor that has no element is the value that it is padded with, everywhere."""
    result, value = node.result.type, node.attributes_as(PadAttributes).value
    return _full(e, result.shape, value, result.dtype) if 0 in x.shape else KEEP


@lowers(SCATTER_ELEMENTS, repairs=("empty",))
def scatter_of_nothing(e: Sketch, node: Node, x: Term, i: Term, updates: Term) -> Lowered:
    """A scatter of no updates is what it would have changed."""
    return x if 0 in updates.shape else KEEP


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
