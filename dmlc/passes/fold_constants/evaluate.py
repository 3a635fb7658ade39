"""A node whose operands are all constants becomes constants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np

from dmlc.diagnostics.catalogue.limits import FOLDED_BYTES, FOLDED_ELEMENTS
from dmlc.ir import Array, DimExpr, ForeignType, Graph, Node, Operation, StoredTensor, Value
from dmlc.ops.binary import (
    ADD,
    AND,
    DIV,
    EQUAL,
    FLOORDIV,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    MAX,
    MIN,
    MOD,
    MUL,
    NOT_EQUAL,
    OR,
    POW,
    SUB,
    XOR,
)
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.constant import CONSTANT, constant_of
from dmlc.ops.elementwise import RELU, SIGN, UNARY
from dmlc.ops.index import FULL, GATHER, GATHER_ELEMENTS, MOST_FILLED, ONE_HOT, FullAttributes, full_value
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import CONCAT, EXPAND, PAD, RESHAPE, SLICE, SPLIT, SQUEEZE, TILE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.normalize import LAYER_NORM, LOG_SOFTMAX, LP_NORM, MEAN_VARIANCE_NORM, RMS_NORM, SOFTMAX
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, is_opaque
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, REDUCTIONS
from dmlc.ops.scan import CUMPROD, CUMSUM
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K
from dmlc.passes.expressions import Sketch
from dmlc.passes.fold_constants.opaque import evaluated, is_rounded
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

#: Results that every target gives bit for bit: moved, chosen, compared, or correctly rounded by IEEE 754.
_BIT_DEFINED = frozenset((
    RESHAPE, TRANSPOSE, SQUEEZE, UNSQUEEZE, CONCAT, SPLIT, SLICE, PAD, TILE, GATHER, GATHER_ELEMENTS, ONE_HOT,
    ARGMAX, ARGMIN, TOP_K, HARDMAX, REDUCE_MAX, REDUCE_MIN, MIN, MAX, CLIP, WHERE, CAST,
    EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL,
    *(op for op in UNARY if op.rounding != "approximate"), ADD, SUB, MUL, DIV, AND, OR, XOR, EXPAND,
))  # fmt: skip
#: Left out: ``full iota`` of some axes (small descriptions of large data) and ``scatter_elements`` (order of updates).
_FOLDABLE: tuple[Operation, ...] = tuple(
    dict.fromkeys((
        *sorted(_BIT_DEFINED, key=lambda op: op.name), *UNARY, *REDUCTIONS, POW, FLOORDIV, MOD, MATMUL,
        SOFTMAX, LOG_SOFTMAX, MEAN_VARIANCE_NORM, LAYER_NORM, RMS_NORM, LP_NORM, CUMSUM, CUMPROD, OPAQUE,
    ))
)  # fmt: skip
#: The most elements of a fill that only folded nodes use; of any other it is ``MOST_FILLED``.
_MOST_PASSING = 2**18


#: The most bytes that are read of a weight in a file of its own.
_MOST_APART = 1024
#: Reasons for which a limit keeps a node, with the code whose page says more and the override.
_TOO_LARGE = f"{FOLDED_ELEMENTS}: {{0}} has {{1:,}} elements, the limit is {{2:,}} (--limit folded_elements={{1}})"
_TOO_MANY = f"{FOLDED_BYTES}: the constants would take {{0:,}} bytes, the limit is {{1:,}} (--limit folded_bytes={{0}})"


class ConstantMatch(Match, eq=False, kw_only=True):
    """``found`` is the result of an opaque node, once it is computed."""

    found: Array | None


class Evaluate(Rule[ConstantMatch]):
    """A node whose operands are all constants becomes constants.

    The operation's reference is run on them, or the form of an ONNX operator (Conv, Einsum, Resize and others).
    ``exact`` where each target gives the same bits.

    Functions that targets round differently, and float sums, are ``reassociates``. A result that the language leaves
    unspecified is not folded. Neither is one of more than ``folded_elements``, or one that takes more than
    ``folded_bytes`` with all that was folded before.
    """

    name = "fold"
    roots = _FOLDABLE
    fed_by: ClassVar[Collection[Operation]] = (CONSTANT,)

    def match(self, node: Node, graph: Graph) -> ConstantMatch | None:
        makers = [value.producer for value in node.operands if value is not None]
        is_known = all(maker is not None and maker.op is CONSTANT for maker in makers)
        return ConstantMatch(node, found=None) if makers and is_known else None

    def check(self, match: ConstantMatch, graph: Graph) -> Miss | None:
        node, limits = match.root, self.context.options.limits
        for value in (*node.results, *[v for v in node.operands if v is not None]):
            if isinstance(value.type, ForeignType):
                return Miss("its type is not one that is computed while compiling")
            if not value.type.is_static:
                return Miss("its sizes are not known while compiling: {0}", (value.type,))
            size = _elements(value) * value.type.dtype.numpy.itemsize
            tensor = constant_of(value)
            if isinstance(tensor, StoredTensor) and tensor.is_apart and size > _MOST_APART:
                return Miss("{0} is in another file, which is not read", (value.type,))
            # A reduction of nothing makes results on the way that are larger than its operand.
            count = prod([size or 1 for size in value.shape if isinstance(size, int)])
            if count > limits.folded_elements:
                return Miss(_TOO_LARGE, (value.type, count, limits.folded_elements))
        if (_is_fill(node) or _enlarges(node)) and not _is_worth_filling(node):
            return Miss("{0} would take more space than its operands", (node.result.type,))
        if node.attributes.dims():
            return Miss("its attributes hold sizes that are not known while compiling")
        after = self.context.folded_bytes + _bytes(node)
        if after > limits.folded_bytes:
            return Miss(_TOO_MANY, (after, limits.folded_bytes))
        if node.op is OPAQUE:
            match.found = evaluated(node, _arrays(node))
            if match.found is None:
                op_type = node.attributes_as(OpaqueAttributes).op_type
                return Miss("{0} of constants is not computed while compiling", (op_type,))
        unspecified = _UNSPECIFIED.get(node.op)
        reason = unspecified(node, _arrays(node)) if unspecified is not None else None
        return None if reason is None else Miss(reason)

    def class_of(self, match: ConstantMatch, graph: Graph, context: PassContext) -> str:
        node = match.root
        if node.op is OPAQUE:
            return REASSOCIATES if is_rounded(node) else EXACT
        floats = any(v is not None and v.type.dtype.is_float for v in node.operands)
        return REASSOCIATES if floats and node.op not in _BIT_DEFINED else EXACT

    def describe(self, match: ConstantMatch) -> str:
        return f"{match.root.op.name} of constants"

    def build(self, match: ConstantMatch, rewriter: Rewriter) -> Sequence[Value]:
        node = match.root
        self.context.folded_bytes += _bytes(node)
        if node.op is OPAQUE:
            out: Any = match.found
        else:
            assert node.op.reference is not None
            out = node.op.reference(node.attributes, *_arrays(node))
        results = out if isinstance(out, tuple) else (out,)
        return [rewriter.constant(array, old.type.dtype) for array, old in zip(results, node.results, strict=True)]


@simplifies(
    FULL,
    describe=lambda rule, match: f"{match.root.attributes.value} as {match.root.result.type}",
)
def fill_scalar(e: Sketch, node: Node) -> Lowered:
    """A scalar that is filled with a number, or with a size that is known by now, becomes a constant. ``exact``."""
    a = node.attributes_as(FullAttributes)
    return KEEP if a.shape or isinstance(a.value, DimExpr) else e.of(e.constant(full_value(a)))


def _is_fill(node: Node) -> bool:
    """True for a small description of large data."""
    return node.op is EXPAND or any(is_opaque(node, name) for name in ("ConstantOfShape", "Range"))


def _enlarges(node: Node) -> bool:
    return is_opaque(node, "Resize") and _elements(node.result) > _elements(node.operand(0))


def _elements(value: Value) -> int:
    return prod([size for size in value.shape if isinstance(size, int)])


def _is_worth_filling(node: Node) -> bool:
    """True if the filled tensor is small, or is only used by nodes that become smaller constants with it."""
    count = _elements(node.result)
    if count <= MOST_FILLED:
        return True
    return count <= _MOST_PASSING and all(map(_folds_too, node.result.users))


def _folds_too(user: Node) -> bool:
    makers = [v.producer for v in user.operands if v is not None]
    known = all(maker is not None and (maker.op is CONSTANT or _is_fill(maker)) for maker in makers)
    return known and user.op in _FOLDABLE and all(value.type.is_static for value in user.results)


def _bytes(node: Node) -> int:
    """Return the bytes of the results; their sizes are known."""
    shapes = [([d for d in value.shape if isinstance(d, int)], value.type.dtype) for value in node.results]
    return sum(prod(sizes) * dtype.numpy.itemsize for sizes, dtype in shapes)


def _arrays(node: Node) -> list[Array | None]:
    data = [None if v is None else constant_of(v) for v in node.operands]
    return [None if tensor is None else tensor.array for tensor in data]


# --- what the language leaves unspecified


def _zero_divisor(node: Node, arrays: Sequence[Any]) -> str | None:
    divisor = arrays[1]
    return "an integer division by zero is unspecified" if divisor.dtype.kind != "f" and not divisor.all() else None


def _integer_power(node: Node, arrays: Sequence[Any]) -> str | None:
    base, exponent = arrays
    if base.dtype.kind == "f":
        return None
    if (exponent < 0).any():
        return "an integer to a negative power is unspecified"
    with np.errstate(over="ignore"):
        sizes = np.abs(base.astype(np.float64)) ** exponent.astype(np.float64)
    # no float is the highest i64: what rounds to the next one may be more
    return "an integer power that overflows is the target's" if (sizes >= np.iinfo(base.dtype).max).any() else None


def _any_nan(node: Node, arrays: Sequence[Any]) -> str | None:
    found = any(a is not None and a.dtype.kind == "f" and bool(np.isnan(a).any()) for a in arrays)
    return "which value wins where another is NaN is unspecified" if found else None


def _misfit(node: Node, arrays: Sequence[Any]) -> str | None:
    array, to = arrays[0], node.result.type.dtype
    if array.dtype.kind != "f" or not to.is_integer:
        return None
    whole = np.trunc(array.astype(np.float64))
    # 2^63 and 2^64 are floats, the highest i64 and u64 are not: compare with one more than the highest.
    fits = np.isfinite(whole) & (whole >= float(to.lowest)) & (whole < float(int(to.highest) + 1))
    return None if fits.all() else "a cast of NaN or out of range is unspecified"


def _outside(node: Node, arrays: Sequence[Any]) -> str | None:
    attributes: Any = node.attributes
    size, index = arrays[0].shape[attributes.axis], arrays[1]
    fits = index < size if index.dtype.kind == "u" else (index >= -size) & (index < size)
    return None if fits.all() else "an index out of range is unspecified"


_UNSPECIFIED: dict[Operation, Callable[[Node, Sequence[Any]], str | None]] = {
    **dict.fromkeys((DIV, FLOORDIV, MOD), _zero_divisor),
    POW: _integer_power,
    **dict.fromkeys((ARGMAX, ARGMIN, TOP_K, HARDMAX, REDUCE_MAX, REDUCE_MIN, MIN, MAX, CLIP, RELU, SIGN), _any_nan),
    CAST: _misfit,
    **dict.fromkeys((GATHER, GATHER_ELEMENTS), _outside),
}
