"""``keep-transposes``: ONNX Runtime does not make several transposes of one while a model loads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

from dmlc.ir import Graph, Node, Operation, Value, product
from dmlc.ops.binary import BINARY
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.elementwise import UNARY
from dmlc.ops.index import GATHER
from dmlc.ops.move import (
    CONCAT,
    PAD,
    RESHAPE,
    RESHAPES,
    SLICE,
    SPLIT,
    TILE,
    TRANSPOSE,
    ReshapeAttributes,
    SplitAttributes,
)
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.ops.reduce import REDUCTIONS
from dmlc.passes.manager import EXACT, PassContext
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, RewritePass, Rewriter, Rule
from dmlc.passes.split_from_slices import dispatches_each

#: Operations that ONNX Runtime moves a transpose through.
_PASSED = frozenset(
    (*UNARY, *BINARY, *REDUCTIONS, *RESHAPES, CAST, CLIP, CONCAT, GATHER, PAD, SLICE, SOFTMAX, SPLIT, TILE, WHERE)
)


class FlattenBeforeSplit(Rule[Match]):
    """A split of a transpose that leads to other transposes cuts a matrix of the same elements.

    ``exact``. ONNX Runtime would transpose each part instead of the whole (TransposeOptimizer). It moves a transpose
    through a split, but not through a flatten.
    """

    name = "flatten-before-split"
    roots: ClassVar[tuple[Operation, ...]] = (SPLIT,)
    fed_by: ClassVar[Collection[Operation]] = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        shapes = [size for value in (*node.operands, *node.results) if value is not None for size in value.shape]
        is_known = all(isinstance(size, int) and size for size in shapes)
        led = made_by(node.operand("x"), TRANSPOSE) is not None and is_known and _lead_to_transpose(node.results)
        return Match(node) if led else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, x = match.root, match.root.operand("x")
        axis = root.attributes_as(SplitAttributes).axis
        type = x.type.with_shape((product(x.shape[:axis]), product(x.shape[axis:])))
        record = OpaqueAttributes(op_type="Flatten", types=(type,), attributes=(("axis", axis),))
        sizes = tuple([product(value.shape[axis:]) for value in root.results])
        flat = rewriter.add(OPAQUE, [x], record)
        parts = rewriter.add_node(SPLIT, [flat], SplitAttributes(axis=1, sizes=sizes)).results
        whole = zip(parts, root.results, strict=True)
        return [rewriter.add(RESHAPE, [part], ReshapeAttributes(shape=value.shape)) for part, value in whole]


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
        return [FlattenBeforeSplit] if dispatches_each(context.capabilities) else []
