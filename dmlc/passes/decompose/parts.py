"""Nodes of a decomposition, whose operator may demand more of its operands than their types prove."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.diagnostics.catalogue import targets as codes
from dmlc.ir import Attributes, Dim, DimTable, Inference, Node, Operation, OpError, TensorType, Value
from dmlc.ir.dtype import f64
from dmlc.onnx_schema.reshapes import ALLOWZERO_OPSET, copied_sizes
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.choose import ClipAttributes
from dmlc.ops.matmul import MATMUL
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.expressions import Sketch, Term

#: Operations of two operands that are one operator of ONNX.
_OPERATORS = {ADD: "Add", SUB: "Sub", MUL: "Mul", DIV: "Div", MATMUL: "MatMul"}

#: The first opset at which kernels of Clip take f64.
_CLIP_OPSET = 12


class OpenSketch(Sketch):
    """Drafts sums and products whose sizes the decomposed operator demands to fit, though nothing proves it.

    Sizes of different names are not proved equal, so the language refuses the operands. The node is then ONNX's
    operator as it is, as an imported model has it: run time checks the sizes, as it does for the decomposed operator.
    No kernel counts: all is primitive.
    """

    __slots__ = ()

    def add_node(self, op: Operation, operands: Sequence[Value | None], attributes: Attributes | None = None) -> Node:
        if self.graph.opset < _CLIP_OPSET and isinstance(attributes, ClipAttributes):
            x = operands[0]
            if x is not None and x.type.dtype is f64:  # ONNX Runtime's older kernels of Clip do not take it
                return self._clipped(Term(self, x), attributes)
        try:
            return super().add_node(op, operands, attributes)
        except OpError:
            if op not in _OPERATORS:
                raise
        types = _fitted(self.graph.dims, op, *[value.type for value in operands if value is not None])
        return super().add_node(OPAQUE, operands, OpaqueAttributes(op_type=_OPERATORS[op], types=tuple(types)))

    def _clipped(self, x: Term, bounds: ClipAttributes) -> Node:
        """A clip by a maximum and a minimum."""
        made = self.smaller(self.larger(x, bounds.min), bounds.max).value.producer
        assert made is not None
        return made

    def log_sum(self, x: Term, axes: Sequence[int]) -> Term:
        return self.log(self.sum(x, axes))

    def reshape(self, value: Value, shape: Sequence[Dim]) -> Value:
        """The value in that shape. Raises ``OpError`` E0501 for one that no Reshape of the opset can state."""
        graph, want = self.graph, tuple(shape)
        is_old = graph.opset < ALLOWZERO_OPSET and 0 not in want
        if is_old and copied_sizes(graph.dims, value.shape, want) is None:
            sizes = ", ".join(map(str, want))
            message = f"a reshape to [{sizes}], whose sizes may be 0, needs opset {ALLOWZERO_OPSET}"
            raise OpError(codes.NEEDS_OPSET, message)
        return super().reshape(value, want)


def _fitted(dims: DimTable, op: Operation, a: TensorType, b: TensorType) -> Sequence[TensorType]:
    """The results' types where sizes that are not proved to fit do. Raises ``OpError`` for sizes that never fit."""
    left, right = list(a.shape), list(b.shape)
    pairs = [(axis, axis) for axis in range(-min(len(left), len(right)), 0)]
    if op is MATMUL:
        pairs = [*pairs[:-2], (-1, -2)]
    for i, j in pairs:
        is_broadcast = i == j and (dims.is_one(left[i]) or dims.is_one(right[j]))
        if not is_broadcast and dims.equal(left[i], right[j]) is None:
            right[j] = left[i]
    return op.infer(Inference(op.attributes(), (a, b.with_shape(tuple(right))), dims))
