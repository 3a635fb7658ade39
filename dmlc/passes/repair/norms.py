"""Repairs of normalizations and of GELU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import pi, sqrt
from typing import ClassVar

from dmlc.ir import FOREIGN, DType, Graph, Node, Operation, OpError, Value
from dmlc.ir.dtype import f16, f32
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.binary import ADD, DIV, MUL, POW, SUB
from dmlc.ops.elementwise import ERF, GELU, NEG, TANH, GeluAttributes
from dmlc.ops.normalize import LAYER_NORM, LP_NORM, LpNormAttributes, NormAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque, title_of
from dmlc.passes.expressions import Formulas, Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.manager import EXACT, REASSOCIATES
from dmlc.passes.normal_form import Form, Forms, number, plus, power, quotient, times
from dmlc.passes.patterns import scalar_of
from dmlc.passes.primitives import centred, deviation, lp_norm
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.targets.capabilities import Capabilities

#: The type of Mean and InvStdDev, f32, as LayerNormalization's attribute says it.
_F32 = 1
#: Means that are so many deviations from 0 cost a norm of f32 a thousandth.
_FAR = 32


@lowers(
    onnx=("LayerNormalization",),
    optional=True,
    repairs=("layer-norm-results",),
    gives=(REASSOCIATES, EXACT),
)
def one_layer_norm_result(e: Sketch, node: Node, x: Term, *factors: Term | None) -> Lowered:
    """A LayerNormalization loses Mean and InvStdDev; where one is used, other nodes compute it.

    ``exact`` where none is used, else ``reassociates``.
    """
    fault = e.target.fault("layer-norm-results", "LayerNormalization")
    kernel = e.target.kernel("LayerNormalization")
    if fault is None or len(node.results) < 2 or kernel is None or x.dtype.name not in kernel.types["T"]:
        return KEEP
    if attribute_of(node, "stash_type", _F32) != _F32:
        return Miss("its statistics are not f32")
    record = _record(node)
    try:
        out = e(LAYER_NORM, x, *[v for v in factors if v is not None], attributes=record)
    except OpError as error:
        return Miss("{0}", (str(error),))
    if not any(v.uses for v in node.results[1:]):
        e.gives = EXACT
        return out
    axes = range(record.axis, x.rank)
    rest, mean = centred(e, x.cast(f32), axes)
    return [out, mean, e.reciprocal(deviation(e, rest, axes, record.epsilon))][: len(node.results)]


def _record(node: Node) -> NormAttributes:
    axis = int(attribute_of(node, "axis", -1))
    rank = node.operand(0).type.rank
    return NormAttributes(axis=axis + rank if axis < 0 else axis, epsilon=attribute_of(node, "epsilon", 1e-5))


_FULL, _SIMPLIFIED = f"{MICROSOFT}.SkipLayerNormalization", f"{MICROSOFT}.SkipSimplifiedLayerNormalization"
#: The operand of the simplified form that is a bias, and that the provider reads as another.
_BIAS = 3


@lowers(onnx=(_FULL, _SIMPLIFIED), optional=True, repairs=("skip-norm-bias", "skip-norm-broadcast"), gives=REASSOCIATES)
def plain_skip_norm(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A skip that broadcasts is expanded, and the bias of the simplified form is added before the node."""
    simplified = node.attributes_as(OpaqueAttributes).full_name == _SIMPLIFIED
    x, skip, *rest = operands
    if x is None or skip is None or FOREIGN in (x.dtype, skip.dtype):
        return KEEP
    bias = operands[_BIAS] if simplified and len(operands) > _BIAS else None
    if bias is None and not _broadcasts(skip, x):
        return KEEP
    if bias is not None:
        skip, rest = skip + bias.reshape(skip.shape[-1:]), rest[:1]
    if _broadcasts(skip, x):
        skip = e.expand(skip, shape=x.shape)
    return e.results(OPAQUE, x, skip, *rest, attributes=node.attributes)


def _broadcasts(skip: Term, x: Term) -> bool:
    """Return whether the skip broadcasts. Open sizes of which neither is 1 are equal in every model that runs."""
    return skip.rank != x.rank or any(m != n and m == 1 for m, n in zip(skip.shape, x.shape, strict=True))


@lowers(
    LAYER_NORM, onnx=("LayerNormalization",), optional=True, repairs=("norm-far-mean",), gives=REASSOCIATES, trusts=True
)
def centred_norm(e: Sketch, node: Node, x: Term, *_: Term | None) -> Lowered:
    """The mean is taken off before a layer normalization, where ranges show it far from 0.

    The result is the same but for rounding, and the kernel's difference of squares loses no digits then.
    """
    if len(node.results) > 1 or e.target.fault("norm-far-mean", "LayerNormalization") is None:
        return KEEP
    low, high = e.interval(x)
    is_far = (low > 0 or high < 0) and min(abs(low), abs(high)) > _FAR * (high - low) / 2
    if not is_far or not math.isfinite(high - low):
        return KEEP
    record = node.attributes_as(NormAttributes) if node.op is LAYER_NORM else _record(node)
    return e.again(node, centred(e, x, range(record.axis, x.rank))[0])


@lowers(LP_NORM, optional=True, repairs=("lp-epsilon",), gives=REASSOCIATES)
def lp_norm_in_parts(e: Sketch, node: Node, x: Term) -> Lowered:
    """lp_norm becomes a division by its norm; a row of zeros is divided by 1."""
    ask, a = e.target, node.attributes_as(LpNormAttributes)
    if ask.fault("lp-epsilon", "LpNormalization") is None or ask.leaves("LpNormalization", x.dtype):
        return KEEP
    return lp_norm(e, x.widened(), a.axis, a.p).cast(x.dtype)


# --- GELU in every spelling: the erf form as ONNX Runtime's own Gelu, the tanh form in operations that stay apart

_ARITHMETIC = (ADD, SUB, MUL, DIV, NEG, POW)
#: The cube's coefficient of the tanh form, and the factor of its argument (Hendrycks and Gimpel, arXiv 1606.08415).
_CUBE, _FACTOR = 0.044715, sqrt(2 / pi)
#: The argument of the inner function, made of the form of x.
_ARGUMENTS: Mapping[Operation, Callable[[Form], Form]] = {
    ERF: lambda x: times(number(sqrt(0.5)), x),
    TANH: lambda x: plus(times(number(_FACTOR), x), times(number(_FACTOR * _CUBE), power(x, 3))),
}
#: Nodes between the inner function and the last multiplication, and values that its argument is made of, at most.
_MOST_STEPS, _MOST_VALUES = 8, 12
#: ONNX Runtime compares constants to so many digits (optimizer/utils.cc); constants of f16 have fewer.
_TOLERANCE, _HALF_TOLERANCE = 1e-5, 2e-3


class GeluMatch(Match, eq=False, kw_only=True):
    """A product that is the GELU of ``x`` times ``factor``, made with ``inner``: erf or tanh."""

    x: Value
    inner: Operation
    shared: Miss | None
    factor: float


def find_gelu(inner: Node) -> GeluMatch | None:
    """The GELU around an erf or a tanh: the product that it is made for, in any order and grouping of its factors.

    Around an erf, if no product is a GELU, the first one that is a GELU times a number. A pass, or an earlier tool, may
    have put the half into the weights or the sum that follow.
    """
    scaled = None
    result, tolerance = inner.result, _tolerance(inner.result)
    if _next_step(result) is None:
        return None
    wanted = [
        (forms, x, times(forms.of(x), plus(number(0.5), times(number(0.5 * sign), forms.of(result)))))
        for x, sign in _arguments(inner.op, inner.operand("x"), tolerance)
        if x.type == result.type
        for forms in [Forms(x, result, alone=True)]
    ]
    chain, shared, value = [inner], None, result
    for _ in range(_MOST_STEPS):
        shared = shared or used_elsewhere(value)
        root = _next_step(value)
        if root is None:
            break
        value = root.result
        for forms, x, want in wanted:
            factor = _multiple(forms, value, want, tolerance) if value.type == x.type else None
            if factor is None:
                continue
            factor = 1.0 if abs(factor - 1) <= tolerance else factor
            match = GeluMatch(root, tuple(chain), x=x, inner=inner.op, shared=shared, factor=factor)
            if factor == 1:
                return match if shared is None or scaled is None else scaled
            scaled = scaled or (match if inner.op is ERF else None)
        chain.append(root)
    return scaled


def _next_step(value: Value) -> Node | None:
    return next((node for node in value.users if node.op in _ARITHMETIC), None)


def _multiple(forms: Forms, value: Value, want: Form, tolerance: float) -> float | None:
    """The number that times ``want`` is the value."""
    try:
        found = quotient(forms.of(value, _MOST_STEPS), want, tolerance)
    except ArithmeticError:  # it depends on something else
        return None
    return None if found is None or found[0] else found[1]


def _tolerance(value: Value) -> float:
    return _HALF_TOLERANCE if value.type.dtype is f16 else _TOLERANCE


def _arguments(op: Operation, argument: Value, tolerance: float) -> Iterator[tuple[Value, int]]:
    """Each ``x`` of which the argument of the inner function is the right polynomial, or its negative: (x, sign)."""
    pending = [argument]
    for x in pending:
        forms = Forms(x, alone=True)
        factor = _multiple(forms, argument, _ARGUMENTS[op](forms.of(x)), tolerance)
        if factor is not None and abs(abs(factor) - 1) <= tolerance:
            yield x, 1 if factor > 0 else -1
        if x.producer is not None and x.producer.op in _ARITHMETIC and len(pending) < _MOST_VALUES:
            pending += [v for v in x.producer.operands if v is not None and v not in pending and scalar_of(v) is None]


class GeluRule(Rule[GeluMatch]):
    """Base of the rules that start from the inner function of a GELU."""

    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> GeluMatch | None:
        if not _has_gelu(self.capabilities, node.result.type.dtype):
            return None
        return find_gelu(node)

    def check(self, match: GeluMatch, graph: Graph) -> Miss | None:
        return match.shared

    def describe(self, match: GeluMatch) -> str:
        return f"GELU by {match.inner.name}"


class ErfGelu(GeluRule):
    """x * (1 + erf(x / sqrt(2))) / 2, in any form, becomes com.microsoft.Gelu; another multiple times a number."""

    name = "erf-gelu"
    roots: ClassVar[tuple[Operation, ...]] = (ERF,)
    repairs: ClassVar[tuple[str, ...]] = ("gelu",)

    def build(self, match: GeluMatch, rewriter: Rewriter) -> Sequence[Value]:
        gelu = own_gelu(rewriter, match.x)
        return [gelu if match.factor == 1 else (rewriter.of(gelu) * match.factor).value]


class TanhGelu(GeluRule):
    """x * (1 + tanh(u)) / 2, with u of GELU's approximation, becomes x * sigmoid(2 u), or com.microsoft.FastGelu where
    that is right."""

    name = "tanh-gelu"
    roots: ClassVar[tuple[Operation, ...]] = (TANH,)
    repairs: ClassVar[tuple[str, ...]] = ("fast-gelu",)

    def build(self, match: GeluMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [tanh_gelu(rewriter, match.x, self.capabilities)]


@lowers(
    GELU,
    onnx=("Gelu", f"{MICROSOFT}.FastGelu"),
    repairs=("gelu", "fast-gelu"),
    optional=True,
    gives=(REASSOCIATES, EXACT),
    describe=lambda rule, match: title_of(match.root),
)
def gelu_operator(e: Sketch, node: Node, x: Term | None, bias: Term | None = None) -> Lowered:
    """ONNX's Gelu becomes com.microsoft.Gelu; its tanh form, and FastGelu, become x * sigmoid(2 u), or FastGelu where
    that is right."""
    if x is None or not _has_gelu(e.target, x.dtype):
        return KEEP
    if is_opaque(node, "FastGelu", MICROSOFT) and _has_fast_gelu(e.target, x.dtype):
        return KEEP
    # a program of the language does not ask for one operator: the rule chooses it
    e.gives = EXACT if node.op is GELU and node.origin is None else REASSOCIATES
    if _is_erf_form(node):
        return own_gelu(e, x.value)
    return tanh_gelu(e, (x if bias is None else x + bias.reshape(x.shape[-1:])).value, e.target)


def _is_erf_form(node: Node) -> bool:
    if node.op is GELU:
        return node.attributes_as(GeluAttributes).approximate == "none"
    return is_opaque(node, "Gelu") and bool(attribute_of(node, "approximate", "none") == "none")


def own_gelu(e: Formulas, x: Value) -> Value:
    """ONNX Runtime's own Gelu of a value."""
    return e.add(OPAQUE, [x], OpaqueAttributes(op_type="Gelu", domain=MICROSOFT, types=(x.type,)))


def tanh_gelu(e: Formulas, x: Value, capabilities: Capabilities) -> Value:
    """GELU's tanh form: ONNX Runtime's own operator, or as the declaration of ``gelu`` writes it."""
    if _has_fast_gelu(capabilities, x.type.dtype):
        return e.add(OPAQUE, [x], OpaqueAttributes(op_type="FastGelu", domain=MICROSOFT, types=(x.type,)))
    return e.composed(GELU, e.of(x), GeluAttributes(approximate="tanh")).value


def _has_gelu(capabilities: Capabilities, dtype: DType) -> bool:
    """Return whether the provider computes ONNX Runtime's own Gelu."""
    return not capabilities.leaves("Gelu", dtype, domain=MICROSOFT) and capabilities.reaches("Gelu", MICROSOFT)


def _has_fast_gelu(capabilities: Capabilities, dtype: DType) -> bool:
    """Return whether the provider computes FastGelu, and nothing is known to go wrong with it."""
    is_left = capabilities.leaves("FastGelu", dtype, domain=MICROSOFT)
    return not is_left and not capabilities.faults("FastGelu", MICROSOFT)
