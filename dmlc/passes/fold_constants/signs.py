"""Signs of the parts of a concat move into the factor behind it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from dmlc.ir import Graph, Node, Tensor, Value
from dmlc.ops.binary import MUL
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.elementwise import NEG
from dmlc.ops.move import CONCAT, ConcatAttributes
from dmlc.passes.patterns import both_ways, made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass

_Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
#: A larger constant is not negated: the model would hold it twice where others need it as it was.
_MOST_ELEMENTS = 1 << 22
#: Users of a factor that are asked whether they are such products too.
_MOST_USERS = 64


@dataclass(slots=True, eq=False)
class _SignMatch(Match):
    """A product of a concat with negated parts and a factor. ``signs`` are those along axis ``axis`` of the factor."""

    concat: Value | None = None
    factor: Value | None = None
    signs: tuple[int, ...] = ()
    axis: int = 0


class SignIntoFactor(Rule[_SignMatch]):
    """``concat(-a, b) * t`` becomes ``concat(a, b) * u``, where u is t with the signs of the parts.

    ``exact``: a product's sign is the product of the signs. Rotary embeddings rotate both query and key by one table,
    so that the negation is computed once for all of them, or not at all where the table is a constant.
    """

    name = "sign-into-factor"
    roots = (MUL,)
    fed_by = (CONCAT,)

    def match(self, node: Node, graph: Graph) -> _SignMatch | None:
        return _match(node)

    def check(self, match: _SignMatch, graph: Graph) -> Miss | None:
        assert match.concat is not None and match.factor is not None
        for node in match.consumed:
            if (miss := used_elsewhere(node.result)) is not None:
                return miss
        tensor = constant_of(match.factor)
        if tensor is not None:
            if tensor.size > _MOST_ELEMENTS:
                return Miss("the constant has {0} elements", (tensor.size,), match.factor)
            return None
        if not any(_shares(user, match) for user in islice(match.factor.users, _MOST_USERS)):
            return Miss("no other product shares the factor, whose signs would cost what is saved", (), match.factor)
        return None

    def describe(self, match: _SignMatch) -> str:
        return "the negation of parts of a concat, into the factor"

    def build(self, match: _SignMatch, rewriter: Rewriter) -> Sequence[Value]:
        concat, factor = match.concat, match.factor
        assert concat is not None and factor is not None and concat.producer is not None
        parts = [part.operand(0) if (part := made_by(v, NEG)) else v for v in concat.producer.operands]
        joined = rewriter.add(CONCAT, parts, concat.producer.attributes_as(ConcatAttributes))
        tensor, signs = constant_of(factor), _signs(match, factor)
        if tensor is not None:
            turned = _constant(rewriter, tensor.array * signs)
        else:
            turned = rewriter.add(MUL, [factor, _constant(rewriter, signs)])
        ours = match.root.operand(0) is concat
        return [rewriter.add(MUL, [joined, turned] if ours else [turned, joined])]


def _match(node: Node) -> _SignMatch | None:
    if not node.result.type.dtype.is_float:
        return None
    for value, factor in both_ways(node):
        concat = made_by(value, CONCAT)
        if concat is None:
            continue
        negated = [part for operand in concat.operands if (part := made_by(operand, NEG)) is not None]
        axis = concat.attributes_as(ConcatAttributes).axis + factor.type.rank - value.type.rank
        size = value.shape[concat.attributes_as(ConcatAttributes).axis]
        if not negated or axis < 0 or not isinstance(size, int) or factor.shape[axis] != size:
            continue
        signs = _signs_of(concat)
        if signs is not None:
            return _SignMatch(node, (concat, *dict.fromkeys(negated)), value, factor, signs, axis)
    return None


def _signs_of(concat: Node) -> tuple[int, ...] | None:
    """The sign of each place along the axis; None where a part's size is open."""
    axis = concat.attributes_as(ConcatAttributes).axis
    out: list[int] = []
    for part in concat.operands:
        assert part is not None
        size = part.shape[axis]
        if not isinstance(size, int):
            return None
        out += [1 if made_by(part, NEG) is None else -1] * size
    return tuple(out)


def _signs(match: _SignMatch, factor: Value) -> _Array:
    """The signs as numbers of the factor's dtype, with as many axes behind them as the factor has."""
    shape = (len(match.signs), *[1] * (factor.type.rank - 1 - match.axis))
    return np.asarray(match.signs, factor.type.dtype.numpy).reshape(shape)


def _constant(rewriter: Rewriter, array: _Array) -> Value:
    return rewriter.add(CONSTANT, (), ConstantAttributes(value=Tensor(array)))


def _shares(user: Node, match: _SignMatch) -> bool:
    """Return whether a user of the factor is another such product, or the factor with these signs already."""
    if user is match.root or user.op is not MUL:
        return False
    other = _match(user)
    if other is not None:
        alike = other.factor is match.factor and other.signs == match.signs and other.axis == match.axis
        return alike and all(node.result.is_used_once for node in other.consumed)
    assert match.factor is not None
    return any(
        value is match.factor and (tensor := constant_of(signs)) is not None and _is_same(tensor, _signs(match, value))
        for value, signs in both_ways(user)
    )


def _is_same(tensor: Tensor, array: _Array) -> bool:
    return tensor.array.shape == array.shape and bool((tensor.array == array).all())
