"""Operations with constants, one after another, that are one operation with one constant."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from dmlc.ir import Graph, Node, Operation, StoredTensor, Tensor, Value
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.constant import constant_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, LoweredNode, simplifies
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Miss, used_elsewhere

_Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
#: A constant of more elements is not computed: the model would hold it beside those that others need.
_MOST_ELEMENTS = 1 << 22
#: A sum of floats smaller than this part of its larger term has lost the digits that rounded ``x + c`` before.
_LEAST_SUM = 0.5


class _ConstantStep(Struct, frozen=True):
    """``x + c``, or ``c - x`` where it is ``inverted``; ``x * c``, or ``c / x``."""

    node: Node
    x: Value
    constant: Tensor
    inverted: bool

    def wide(self) -> _Array:
        """``c``, floats as f64: the reciprocal of a divisor, a negated subtrahend."""
        op, array = self.node.op, self.constant.array
        wide = array.astype(np.float64) if array.dtype.kind == "f" else array
        if self.inverted or op is ADD or op is MUL:
            return wide
        return np.asarray(1 / wide if op is DIV else 0 - wide, wide.dtype)


_TERMS, _FACTORS = (ADD, SUB), (MUL, DIV)


def _class(rule: Any, match: LoweredNode, graph: Graph, context: PassContext) -> str:
    return REASSOCIATES if match.root.result.type.dtype.is_float else EXACT


@simplifies(
    *(ADD, SUB, MUL, DIV),
    fed_by=(ADD, SUB, MUL, DIV),
    rewrite_class=REASSOCIATES,
    class_of=_class,
    describe=lambda rule, match: f"{match.root.op.name} of {match.consumed[0].op.name} by constants",
)
def constants_in_a_row(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """``x * c * d`` becomes ``x * (c * d)``, and ``x + c + d`` becomes ``x + (c + d)``; ``/`` and ``-`` count too.

    ``exact`` for integers, ``reassociates`` for floats: not where terms cancel or a product leaves the dtype's range.
    """
    second, is_product, dtype = _step(node), node.op in _FACTORS, node.result.type.dtype
    inner = None if second is None else made_by(second.x, *(_FACTORS if is_product else _TERMS))
    first = None if inner is None else _step(inner)
    if second is None or first is None:
        return KEEP
    most = max(first.constant.size, second.constant.size)
    if most > _MOST_ELEMENTS:
        return Miss("a constant has {0} elements", (most,))
    with np.errstate(all="ignore"):
        wide = _combined(node.op, second, first)
        constant = np.asarray(wide).astype(dtype.numpy)
        if reason := _why_kept(node.op, first, second, wide, constant):
            return reason
    e.taken.append(first.node)
    inverted = first.inverted != second.inverted
    if not e.target.has_kernel(DIV if inverted else MUL, dtype):
        return Miss("the target computes {0} with casts around it", (dtype,))
    if reason := used_elsewhere(first.node.result):
        return reason
    x, row = e.of(first.x), e.number(constant, dtype)
    if inverted:
        return row / x if is_product else row - x
    return x * row if is_product else x + row


def _step(node: Node) -> _ConstantStep | None:
    """The node as an operation with one constant; None if it is not one. Quotients of integers round."""
    a, b = node.operand("a"), node.operand("b")
    for x, other in ((a, b), (b, a)):
        tensor = constant_of(other)
        if tensor is None or (isinstance(tensor, StoredTensor) and tensor.is_apart):
            continue
        if constant_of(x) is not None or (node.op is DIV and not x.type.dtype.is_float):
            return None
        return _ConstantStep(node, x, tensor, other is a and node.op in (SUB, DIV))
    return None


def _combined(op: Operation, second: _ConstantStep, first: _ConstantStep) -> _Array:
    """The constant of both steps at once."""
    outer, inner = second.wide(), first.wide()
    if op in _FACTORS:
        return np.asarray(outer / inner if second.inverted else outer * inner)
    return np.asarray(outer - inner if second.inverted else outer + inner)


def _why_kept(
    op: Operation, first: _ConstantStep, second: _ConstantStep, wide: _Array, constant: _Array
) -> Miss | None:
    most = max(first.constant.size, second.constant.size)
    if constant.size > most:
        return Miss("both constants together have {0} elements, and the larger one {1}", (constant.size, most))
    if constant.dtype.kind != "f":
        return None
    sizes = np.abs(wide)
    if op in _FACTORS:
        limits = np.finfo(constant.dtype)
        fits = (sizes >= limits.tiny) & (sizes <= limits.max)
        return None if fits.all() else Miss("the product of the constants leaves the range of {0}", (constant.dtype,))
    larger = np.maximum(np.abs(first.wide()), np.abs(second.wide()))
    fits = np.isfinite(constant) & (sizes >= _LEAST_SUM * larger)
    return None if fits.all() else Miss("the constants cancel: their sum has fewer digits than they have")
