"""``keep-transposes``: ONNX Runtime does not make several transposes of one while a model loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.ir import Node, Value, product
from dmlc.ops.binary import BINARY
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.elementwise import UNARY
from dmlc.ops.index import GATHER
from dmlc.ops.move import CONCAT, PAD, RESHAPES, SLICE, SPLIT, TILE, TRANSPOSE, SplitAttributes
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.reduce import REDUCTIONS
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import EXACT, PassContext
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import RewritePass, Rule
from dmlc.passes.split_from_slices import dispatches_each

#: Operations that ONNX Runtime moves a transpose through.
_PASSED = frozenset(
    (*UNARY, *BINARY, *REDUCTIONS, *RESHAPES, CAST, CLIP, CONCAT, GATHER, PAD, SLICE, SOFTMAX, SPLIT, TILE, WHERE)
)


@simplifies(SPLIT, fed_by=(TRANSPOSE,))
def flatten_before_split(e: Sketch, node: Node, x: Term) -> Lowered:
    """A split of a transpose that leads to other transposes cuts a matrix of the same elements.

    ``exact``. ONNX Runtime would transpose each part instead of the whole (TransposeOptimizer). It moves a transpose
    through a split, but not through a flatten.
    """
    is_known = all(isinstance(size, int) and size for value in (x.value, *node.results) for size in value.shape)
    if made_by(x.value, TRANSPOSE) is None or not is_known or not _lead_to_transpose(node.results):
        return KEEP
    axis = node.attributes_as(SplitAttributes).axis
    type = x.type.with_shape((product(x.shape[:axis]), product(x.shape[axis:])))
    sizes = [product(value.shape[axis:]) for value in node.results]
    parts = e.parts(e.onnx("Flatten", type, x, axis=axis), 1, *sizes)
    return [part.reshape(value.shape) for part, value in zip(parts, node.results, strict=True)]


def _lead_to_transpose(values: Sequence[Value]) -> bool:
    """Return whether operations that a transpose goes through lead to another one."""
    waiting, seen = [*values], {*values}
    while waiting:
        for user in waiting.pop().users:
            if user.op is TRANSPOSE:
                return True
            new = [result for result in user.results if result not in seen] if user.op in _PASSED else []
            waiting += new
            seen.update(new)
    return False


class KeepTransposes(RewritePass, frozen=True):
    """Runs last: other rules join reshapes, and look for transposes. Where each transpose is a dispatch."""

    name: ClassVar[str] = "keep-transposes"
    summary: ClassVar[str] = "Keep transposes where ONNX Runtime would make more of them."
    rewrite_class: ClassVar[str] = EXACT

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [flatten_before_split] if dispatches_each(context.capabilities) else []
