"""Elementwise functions by their declared form, and the operators of ``com.microsoft`` that are one with a bias."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Node, Operation, Value
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.elementwise import GELU, SIGMOID, UNARY, GeluAttributes, UnaryOperation
from dmlc.ops.opaque import OPAQUE
from dmlc.passes.decompose.decomposition import Decomposition, given, operand, operator_of
from dmlc.passes.node_maker import Maker, composed_of
from dmlc.passes.primitives import accumulated

_DECLARED = tuple([op for op in UNARY if op.composed is not None])
#: Forms of GELU, and whether each is the approximation.
_GELUS = {f"{MICROSOFT}.Gelu": "none", f"{MICROSOFT}.BiasGelu": "none", f"{MICROSOFT}.FastGelu": "tanh"}
#: x * sigmoid(alpha * x), and the default of alpha.
_SWISHES = {"Swish": 1.0, f"{MICROSOFT}.QuickGelu": 1.702}


class DecomposeElementwise(Decomposition):
    """An elementwise function becomes the operations that its declaration writes it in."""

    name = "decompose-elementwise"
    roots: ClassVar[tuple[Operation, ...]] = (*_DECLARED, OPAQUE)
    operators: ClassVar[tuple[str, ...]] = (*[op.onnx for op in _DECLARED if op.onnx], *_GELUS, *_SWISHES)

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        kind, x = operator_of(node), node.operand(0)
        dtype, bias = x.type.dtype, operand(node, 1)
        if kind in _GELUS and bias is not None:
            x = make(ADD, x, bias)

        def compute(wide: Value) -> Value:
            if kind in _SWISHES:
                alpha = given(node, "alpha", _SWISHES[kind])
                inner = wide if alpha == 1 else make(MUL, wide, make.constant(alpha, wide.type.dtype))
                return make(MUL, wide, make(SIGMOID, inner))
            if kind in _GELUS:
                return composed_of(make, GELU, wide, GeluAttributes(approximate=_GELUS[kind]))
            assert isinstance(node.op, UnaryOperation)
            return composed_of(make, node.op, wide, node.attributes)

        return [accumulated(make, x, compute, dtype)]
