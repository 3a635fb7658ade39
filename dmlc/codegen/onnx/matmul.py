"""Matrix products."""

from __future__ import annotations

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.registry import lowers
from dmlc.ir import Node, Shape, Value
from dmlc.ops.matmul import MATMUL


@lowers(MATMUL)
def matmul(emitter: Emitter, node: Node) -> str:
    """ONNX's MatMul has NumPy's rules. Sizes of 0 need care, as ONNX Runtime's CPU provider fails on them or leaves the
    result unwritten: a contraction that may be over nothing gets one more product, of zeros."""
    left, right = node.operand("a"), node.operand("b")
    a, b = emitter.of(left), emitter.of(right)
    smallest = emitter.graph.dims.interval
    if smallest(left.shape[-1])[0] <= 0:
        a, b = _longer(emitter, a, left, -1), _longer(emitter, b, right, -2 if right.type.rank > 1 else -1)
    vectors = left.type.rank == right.type.rank == 1
    if vectors or all(smallest(size)[0] > 0 for size in node.result.shape):
        return emitter.op("MatMul", [a, b])
    return _without_elements(emitter, node, a, b)


def _longer(emitter: Emitter, name: str, value: Value, axis: int) -> str:
    rank = value.type.rank
    pads = [0] * (2 * rank)
    pads[2 * rank + axis] = 1
    return emitter.op("Pad", [name, emitter.ints(pads), emitter.scalar(0, value.type.dtype)])


def _without_elements(emitter: Emitter, node: Node, a: str, b: str) -> str:
    """Emit MatMul for a result that may be empty, with both operands brought to the full form.

    The provider fails on an empty result if it has to broadcast an operand, or if the right one is a vector.
    """
    left, right = node.operand("a").shape, node.operand("b").shape
    squeezed = []
    if len(left) == 1:
        a, left = emitter.squeeze("Unsqueeze", a, [0], left, (1, *left)), (1, *left)
        squeezed.append(-2)
    if len(right) == 1:
        b, right = emitter.squeeze("Unsqueeze", b, [1], right, (*right, 1)), (*right, 1)
        squeezed.append(-1)
    batch: Shape = node.result.shape[: max(len(left), len(right)) - 2]
    if (*batch, *left[-2:]) != left:
        a = emitter.op("Expand", [a, emitter.sizes((*_missing(batch, left), 1, 1))])
    if len(right) > 2 and (*batch, *right[-2:]) != right:
        b = emitter.op("Expand", [b, emitter.sizes((*_missing(batch, right), 1, 1))])
    out = emitter.op("MatMul", [a, b])
    if not squeezed:
        return out
    axes = [axis + len(batch) + 2 for axis in squeezed]
    full = (*batch, left[-2], right[-1])
    return emitter.squeeze("Squeeze", out, axes, full, node.result.shape)


def _missing(batch: Shape, shape: Shape) -> Shape:
    """The batch sizes to which an operand is expanded: 1 for those that it has, so that none of them is computed."""
    own = (*[None] * (len(batch) + 2 - len(shape)), *shape[:-2])
    return tuple([1 if size == mine else size for size, mine in zip(batch, own, strict=True)])
