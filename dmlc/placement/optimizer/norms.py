"""Normalizations in parts, as LayerNormFusion and SimplifiedLayerNormFusion of ONNX Runtime take them.

Both begin at a root of a mean of a power, and end in a quotient by it that is scaled (core/optimizer/
layer_norm_fusion.cc of releases 1.20 to 1.32). They do not ask for the exponent, for ``keepdims``, for the order of the
operands of Sub, Div and Pow, for sizes that the scale enlarges, or for the type before a Cast that they remove.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from onnx import TensorProto

from dmlc.inference.fact import FLOATS, fitting
from dmlc.placement.optimizer.view import GraphView, LookAlike, Summed

#: Operators that a graph must have to be looked at.
OPERATORS = frozenset(("Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul"))
#: The epsilon that ONNX Runtime writes where it does not find one.
_DEFAULT_EPSILON = 1e-5


class _Chain(Struct, frozen=True):
    """The indices of the nodes of a normalization in parts. ``quotient`` is the node that divides ``dividend`` by the
    root (None where the root is divided), ``scaled`` the Mul behind it.

    ``mean`` is the mean of the power, ``epsilon`` the position of the number that is added to it.
    """

    power: int
    mean: int
    add: int
    epsilon: int
    root: int
    quotient: int
    dividend: str | None
    scaled: int


def find(view: GraphView) -> Iterator[LookAlike]:
    """Yield what looks like a layer norm or an RMS norm and is neither."""
    for root in view.by_operator["Sqrt"]:
        for chain in _chains(view, root):
            is_layer_norm = _centring(view, view.nodes[chain.power].input[0]) is not None
            difference = _difference(view, chain)
            if difference:
                kind = "" if is_layer_norm else "Simplified"
                yield LookAlike(
                    transformer=f"{kind}LayerNormFusion",
                    makes=f"{kind}LayerNormalization",
                    node=chain.quotient,
                    difference=difference,
                    cure=Summed(chain.add),
                    is_taken=_is_taken(view, chain),
                )
                break


def _chains(view: GraphView, root: int) -> Iterator[_Chain]:
    node = view.nodes[root]
    add = view.maker(node.input[0], "Add")
    if add is None:
        return
    for epsilon in (1, 0):
        mean = view.maker(view.nodes[add].input[1 - epsilon], "ReduceMean")
        power = None if mean is None else view.maker(view.nodes[mean].input[0], "Pow")
        if mean is None or power is None:
            continue
        for division in view.readers(node.output[0], "Div"):
            quotient, dividend = _quotient(view, division, node.output[0])
            for reader in view.users.get(view.nodes[quotient].output[0], ()):
                scaled = reader if view.is_operator(reader, "Mul") else _behind(view, reader)
                if scaled is not None:
                    yield _Chain(power, mean, add, epsilon, root, quotient, dividend, scaled)


def _quotient(view: GraphView, division: int, root: str) -> tuple[int, str | None]:
    """The node that divides by the root, and what it divides: DivMulFusion makes ``b / a`` of ``1 / a * b`` before."""
    dividend, divisor = view.nodes[division].input
    if divisor != root:
        return division, None
    product = view.only_reader(division) if view.number(dividend) == 1 else None
    if product is None or not view.is_operator(product, "Mul"):
        return division, dividend
    return product, view.other(product, view.nodes[division].output[0])


def _behind(view: GraphView, index: int) -> int | None:
    """The Mul behind a node that ONNX Runtime removes."""
    if not view.is_operator(index, "Cast", "Identity", "Dropout"):
        return None
    return next(iter(view.readers(view.nodes[index].output[0], "Mul")), None)


def _centring(view: GraphView, name: str) -> int | None:
    """The Sub of which one operand is a ReduceMean, if it makes the value; a Cast may come between."""
    cast = view.maker(name, "Cast")
    sub = view.maker(name if cast is None else view.nodes[cast].input[0], "Sub")
    if sub is None or all(view.maker(operand, "ReduceMean") is None for operand in view.nodes[sub].input):
        return None
    return sub


# --- what the transformers get wrong


def _difference(view: GraphView, chain: _Chain) -> str:
    """Return what ONNX Runtime would get wrong; empty for a norm in the very form that it computes."""
    nodes = view.nodes
    base, exponent = nodes[chain.power].input
    if view.number(exponent) != 2 or (view.rank(exponent) or 0) > (view.rank(base) or 0):
        return "the power is not 2"
    if not view.attribute(chain.mean, "keepdims", 1):
        return "the mean of the squares has keepdims=0"
    if chain.dividend is None or not _are_same(view, chain.dividend, base):
        return "the model does not divide the squared value by the root"
    return _epsilon(view, chain) or _scale(view, chain, base) or _centre(view, chain, base)


def _are_same(view: GraphView, a: str, b: str) -> bool:
    """Return whether two values are one, or the same difference written twice."""
    a, b = _uncast(view, a), _uncast(view, b)
    if a == b:
        return True
    left, right = view.maker(a, "Sub"), view.maker(b, "Sub")
    return left is not None and right is not None and view.nodes[left].input[:] == view.nodes[right].input[:]


def _uncast(view: GraphView, name: str) -> str:
    """The value before casts to its own type, which ONNX Runtime removes."""
    cast = view.maker(name, "Cast", "Identity")
    while cast is not None and view.element(view.operand(cast, 0)) == view.element(name):
        name = view.operand(cast, 0)
        cast = view.maker(name, "Cast", "Identity")
    return name


def _epsilon(view: GraphView, chain: _Chain) -> str:
    """Return why ONNX Runtime reads another epsilon: it takes an f32 constant that is the second operand, or 1e-5."""
    name = view.nodes[chain.add].input[chain.epsilon]
    number, element = view.number(name), view.fact_of(name).element
    if number is None:
        return f"the epsilon becomes {_DEFAULT_EPSILON:g}"
    is_default = number in (_DEFAULT_EPSILON, fitting(element, _DEFAULT_EPSILON))
    if (view.rank(name) or 0) > 1 or not (is_default or (element == TensorProto.FLOAT and chain.epsilon == 1)):
        return f"the epsilon {number:g} becomes {_DEFAULT_EPSILON:g}"
    return ""


def _scale(view: GraphView, chain: _Chain, base: str) -> str:
    """Return why the scale is not the one of a norm: a vector of the size of the last axis, of more than one axis."""
    value = view.nodes[chain.quotient].output[0]
    name = next((each for each in view.nodes[chain.scaled].input if _uncast(view, each) == value), None)
    if name is None:
        return "the cast before the scale is lost"
    scale = view.other(chain.scaled, name)
    shape = view.shape(base)
    if shape is not None and len(shape) > 1 and view.shape(scale) == shape[-1:]:
        return ""
    return "the scale is not a vector of the size of the last axis"


def _centre(view: GraphView, chain: _Chain, base: str) -> str:
    """Return why no layer norm has this difference from the mean; RMS norms have none."""
    sub = _centring(view, base)
    if sub is None or not _adds_vector(view, chain):
        return ""
    x, mean = view.nodes[sub].input
    reduce = view.maker(mean, "ReduceMean")
    if reduce is None or view.nodes[reduce].input[0] != x:
        return "the model does not subtract the mean from the data"
    if not view.attribute(reduce, "keepdims", 1):
        return "the mean has keepdims=0"
    if view.maker(x, "Cast") is not None:
        return "the cast before the mean is lost, and the types no longer fit"
    added = view.only_reader(chain.scaled)
    bias = "" if added is None else view.other(added, view.nodes[chain.scaled].output[0])
    if view.shape(bias) != (view.shape(base) or ())[-1:]:
        return "the bias is not a vector of the size of the last axis"
    return ""


def _adds_vector(view: GraphView, chain: _Chain) -> bool:
    """Return whether a vector is added to the scaled quotient, as LayerNormFusion asks."""
    added = view.only_reader(chain.scaled)
    if added is None or not view.is_operator(added, "Add"):
        return False
    return any(view.rank(name) in (1, None) for name in view.nodes[added].input)


# --- conditions of the transformers


def _is_taken(view: GraphView, chain: _Chain) -> bool:
    """Return whether the conditions hold that the transformers do check."""
    inner = (chain.power, chain.mean, chain.add, chain.root, chain.quotient)
    if any(view.only_reader(index) is None for index in inner) or not _is_of_last_axis(view, chain.mean):
        return False
    if any(view.fact_of(name).element not in FLOATS for name in view.nodes[chain.power].input):
        return False
    if all(view.rank(name) != 1 for name in view.nodes[chain.scaled].input):
        return False
    base = view.nodes[chain.power].input[0]
    if _centring(view, base) is not None and _adds_vector(view, chain):
        return True
    return chain.dividend == base and view.only_reader(chain.quotient) == chain.scaled


def _is_of_last_axis(view: GraphView, mean: int) -> bool:
    axes = view.list_attribute(mean, "axes") or view.numbers(view.operand(mean, 1)) or ()
    rank = view.rank(view.operand(mean, 0))
    return len(axes) == 1 and (axes[0] == -1 or (rank is not None and axes[0] == rank - 1))
