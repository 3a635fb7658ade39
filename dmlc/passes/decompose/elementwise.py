"""Elementwise functions by their declared form, and the operators of ``com.microsoft`` that are one with a bias."""

from __future__ import annotations

from dmlc.ir import Node
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.elementwise import GELU, UNARY, GeluAttributes, UnaryOperation
from dmlc.ops.opaque import OPAQUE
from dmlc.passes.decompose.decomposition import decomposes, given, operator_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import Lowered

_DECLARED = tuple([op for op in UNARY if op.composed is not None])
#: Forms of GELU, and whether each is the approximation.
_GELUS = {f"{MICROSOFT}.Gelu": "none", f"{MICROSOFT}.BiasGelu": "none", f"{MICROSOFT}.FastGelu": "tanh"}
#: x * sigmoid(alpha * x), and the default of alpha.
_SWISHES = {"Swish": 1.0, f"{MICROSOFT}.QuickGelu": 1.702}


@decomposes(*[op.onnx for op in _DECLARED if op.onnx], *_GELUS, *_SWISHES, roots=(*_DECLARED, OPAQUE))
def decompose_elementwise(e: Sketch, node: Node, x: Term, bias: Term | None = None) -> Lowered:
    """An elementwise function becomes the operations that its declaration writes it in."""
    kind, dtype = operator_of(node), x.dtype
    if kind in _GELUS and bias is not None:
        x = x + bias
    x = x.widened()
    if kind in _SWISHES:
        alpha = given(node, "alpha", _SWISHES[kind])
        return (x * e.sigmoid(x if alpha == 1 else x * alpha)).cast(dtype)
    if kind in _GELUS:
        return e.composed(GELU, x, GeluAttributes(approximate=_GELUS[kind])).cast(dtype)
    assert isinstance(node.op, UnaryOperation)
    return e.composed(node.op, x, node.attributes).cast(dtype)
