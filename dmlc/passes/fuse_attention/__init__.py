"""``fuse-attention``: attention becomes the one operator that ONNX Runtime's DirectML provider has for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise, zip_longest
from math import isfinite
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from dmlc.diagnostics.counted import counted
from dmlc.ir import Dim, Graph, Node, Operation, Shape, TensorType, Value, dim_names, product
from dmlc.ir.dtype import f16
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.choose import WHERE
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import RESHAPE, RESHAPES, TRANSPOSE, ReshapeAttributes, TransposeAttributes
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, is_opaque
from dmlc.passes.choose_lowering.plan import judged
from dmlc.passes.fuse_attention.scores import (
    HEADS_LAST,
    KEY_HEADS_LAST,
    Bias,
    Tokens,
    Weights,
    apart,
    bias_of,
    reshaped,
    scores_of,
    token_rows,
    tokens_of,
    weights_of,
    why_not_weights,
)
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, RewritePass, Rewriter, Rule
from dmlc.targets.directml import operator_rows

# --- Attention that is written out becomes ``com.microsoft.MultiHeadAttention``

_OPERATOR = "MultiHeadAttention"


class Attention(Struct, frozen=True):
    """The operands of attention, and its sizes: batch, heads, lengths of query and key, sizes of a head."""

    query: Tokens
    key: Tokens
    value: Tokens
    bias: Bias
    scale: float
    sizes: tuple[Dim, int, Dim, Dim, int, int]
    is_half: bool
    nodes: tuple[Node, ...]

    @property
    def moves_scale(self) -> bool:
        return self.query.scale != 1 or self.key.scale != 1


class AttentionMatch(Match, eq=False, kw_only=True):
    """A product of weights and values, and the attention around it."""

    found: Attention


class MultiHeadAttention(Rule[AttentionMatch]):
    """``softmax(scale * q @ k + bias) @ v`` becomes one ``com.microsoft.MultiHeadAttention``.

    ``reassociates``; ``range`` where a mask may hide a whole row, and where a factor of f16 moves behind the product.
    Where its time is less than its parts'; without times only with ``--fuse attention``, and where it saves operators.

    The kernel takes (batch, length, heads * size) and a bias of the shape of the scores (onnxruntime,
    DmlOperatorMultiHeadAttention.cpp). So a bias that broadcasts is expanded. No mask operand is used: what it adds,
    -10000, does not hide every score. ``scale`` is written and never 0, which the provider takes literally.
    """

    name = "multi-head-attention"
    roots: ClassVar[tuple[Operation, ...]] = (MATMUL, OPAQUE)
    fed_by: ClassVar[Collection[Operation]] = (SOFTMAX, WHERE)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> AttentionMatch | Miss | None:
        if node.op is OPAQUE and not is_opaque(node, "MatMul"):
            return None
        weights = weights_of(node.operand(0))
        if weights is None:
            return None
        if node.op is OPAQUE:
            miss = sizes_that_are_open(node, graph)
            return None if miss is None else self._no_kernel(node) or miss
        found = self._no_kernel(node) or self._attention(node, weights)
        if isinstance(found, Attention):
            return AttentionMatch(node, found.nodes, found=found)
        return found if found.value is None else sizes_that_are_open(found.value.producer, graph) or found

    def check(self, match: AttentionMatch, graph: Graph) -> Miss | None:
        saved, estimated = _saved(match.root, match.found), None
        if saved < 1:
            more = f"{-saved} more operators than" if saved else "as many operators as"
            estimated = Miss("its layouts and bias would take {0} the fusion saves", (more,), saves=0)
        elif not self.context.options.fuse:
            estimated = Miss(
                "--fuse attention would make one operator of it and save at least {0}",
                (counted(saved, "node"),),
                saves=saved,
            )
        return judged(self, match, graph, estimated)

    def class_of(self, match: AttentionMatch, graph: Graph, context: PassContext) -> str:
        found = match.found
        moves_half = found.is_half and (found.moves_scale or found.bias.mask is not None)
        return RANGE if moves_half or found.bias.is_range else REASSOCIATES

    def describe(self, match: AttentionMatch) -> str:
        return f"attention of {match.found.sizes[1]} heads"

    def build(self, match: AttentionMatch, rewriter: Rewriter) -> Sequence[Value]:
        found = match.found
        batch, heads, length, total, size, value_size = found.sizes
        query = found.query.build(rewriter, (batch, length, heads * size))
        key = found.key.build(rewriter, (batch, total, heads * size))
        value = found.value.build(rewriter, (batch, total, heads * value_size))
        bias, rows = found.bias.build(rewriter)
        record = OpaqueAttributes(
            op_type=_OPERATOR,
            domain=MICROSOFT,
            types=(TensorType(query.type.dtype, (batch, length, heads * value_size)),),
            attributes=(("num_heads", heads), ("scale", found.scale)),
        )
        operands = [query, key, value] if bias is None else [query, key, value, None, None, bias]
        y = rewriter.add(OPAQUE, operands, record)
        if rows is not None:
            y = token_rows(rewriter, rows, y, heads)
        parted = rewriter.add(RESHAPE, [y], ReshapeAttributes(shape=(batch, length, heads, value_size)))
        turned = rewriter.add(TRANSPOSE, [parted], TransposeAttributes(perm=HEADS_LAST))
        return [reshaped(rewriter, turned, match.root.result.shape)]

    def _no_kernel(self, node: Node) -> Miss | None:
        """The reason where the provider has no kernel for it in this release, or DirectML not at this level."""
        dtype = node.result.type.dtype
        if self.capabilities.leaves(_OPERATOR, dtype, domain=MICROSOFT):
            return Miss("{0} has no {1} of {2}", (self.capabilities.target.name, _OPERATOR, dtype.name))
        level, row = self.capabilities.target.feature_level, operator_rows().get("MULTIHEAD_ATTENTION")
        if level is not None and row is not None and row.at(level) is None:
            return Miss("feature level {0} has no {1}: {2} has", (level, _OPERATOR, row.introduced))
        return None

    def _attention(self, node: Node, weights: Weights) -> Attention | Miss:
        probabilities, value = node.operand("a"), node.operand("b")
        if (miss := why_not_weights(weights, probabilities)) is not None:
            return miss
        parts = probabilities.shape[:2] if probabilities.type.rank == 4 else _parts(value)
        if parts is None:
            return Miss("heads are not apart from the batch", (), value)
        shape = apart(probabilities.shape, parts)
        scores = scores_of(weights.softmax.operand("x"), (shape, (product(parts), *shape[2:])))
        if isinstance(scores, Miss):
            return scores
        query, key = scores.product.operand("a"), scores.product.operand("b")
        sizes = _sizes(query, key, value, shape)
        if isinstance(sizes, Miss):
            return sizes
        if weights.rows is not None and scores.trail.terms != (weights.rows,):
            return Miss("rows of another value than the bias are tested", (), weights.rows)
        bias = bias_of(scores.trail, shape, is_safe=weights.is_safe)
        if isinstance(bias, Miss):
            return bias
        batch, heads, length, total, size, value_size = sizes
        is_half = node.result.type.dtype is f16
        scales = not is_half or RANGE in self.context.options.allowed
        q = tokens_of(query, HEADS_LAST, parts, (batch, length, heads * size), scales=scales)
        k = tokens_of(key, KEY_HEADS_LAST, parts, (batch, total, heads * size), scales=scales)
        v = tokens_of(value, HEADS_LAST, parts, (batch, total, heads * value_size), scales=False)
        with np.errstate(over="ignore"):
            scale = float(np.float32(scores.trail.scale * q.scale * k.scale))
        if not isfinite(scale) or scale == 0:
            return Miss("the scale is {0:g}", (scale,))
        nodes = (*weights.nodes, *scores.trail.nodes, *q.nodes, *k.nodes, *v.nodes)
        return Attention(q, k, v, bias, scale, sizes, is_half, nodes)


def _parts(value: Value) -> Shape | None:
    """Batch and heads of values that have them as one axis: those that a reshape merges."""
    view = made_by(value, *RESHAPES)
    before = () if view is None else view.operand("x").shape
    return before[:2] if apart(value.shape, before[:2]) == before else None


def _sizes(query: Value, key: Value, value: Value, scores: Shape) -> tuple[Dim, int, Dim, Dim, int, int] | Miss:
    """Batch, heads, the lengths of query and key, and the sizes of a head of query and value."""
    shapes = [apart(operand.shape, scores[:2]) for operand in (query, key, value)]
    for operand, shape in zip((query, key, value), shapes, strict=True):
        if len(shape) != 4 or shape[:2] != scores[:2]:
            return Miss("the operands broadcast: {0} and {1}", (operand.type, scores), operand)
    batch, heads, length, size = shapes[0]
    total, value_size = shapes[2][2:]
    if not isinstance(heads, int) or not isinstance(size, int) or not isinstance(value_size, int):
        return Miss("the number of heads or their size is open", (), query)
    if 0 in (batch, heads, length, total, size, value_size):
        return Miss("an operand has no elements", (), query)
    return batch, heads, length, total, size, value_size


def _saved(root: Node, found: Attention) -> int:
    """Count the operators that go, less those that come; a reshape is none."""
    gone: set[Node] = {root}
    users = list(dict.fromkeys(root.result.users))
    if root.result.type.rank == 3 and all(user.op in RESHAPES and user.result.type.rank == 4 for user in users):
        gone.update(users)
        users = [user for view in users for user in view.result.users]
    turned = [user for user in users if user.op is TRANSPOSE]
    if turned and len(turned) == len(users):
        perms = [node.attributes_as(TransposeAttributes).perm for node in turned]
        added = -sum(perm == HEADS_LAST for perm in perms)
    else:
        added = 1
    for node in dict.fromkeys(found.nodes):
        if all(user in gone for value in node.results for user in value.users):
            gone.add(node)
    removed = sum(node.op not in RESHAPES for node in gone)
    added += 1 + found.query.cost + found.key.cost + found.value.cost + found.bias.cost + found.bias.share()
    return removed - added


#: Operators whose operands have to fit.
_FIT = ("MatMul", "Add", "Sub", "Mul", "Div", "Where")


def sizes_that_are_open(node: Node | None, graph: Graph) -> Miss | None:
    """The reason where the node is one of the model whose operands are not known to fit, and the options that help."""
    if node is None or not any(is_opaque(node, name) for name in _FIT):
        return None
    pairs = [(a, b) for a, b in _pairs(node) if a != b and 1 not in (a, b)]
    names = {name for pair in pairs for dim in pair for name in dim_names(dim)}
    if not names:
        return None
    from dmlc.inference.open_sizes import fixing_options, nameless_dims  # loads onnx, as a model has already

    given = {name for value in graph.inputs for dim in value.shape for name in dim_names(dim)}
    options = fixing_options(names if names <= given else given, nameless_dims(graph))
    shown = ", ".join(f"{a} and {b}" for a, b in dict.fromkeys(pairs))
    return Miss("the sizes {0} are not known to fit{1}", (shown, f": {options}" if options else ""), node.result)


def _pairs(node: Node) -> Iterator[tuple[Dim, Dim]]:
    """The sizes that have to fit: those that broadcast, and those that a product sums over."""
    shapes = [value.shape[::-1] for value in node.operands if value is not None]
    if is_opaque(node, "MatMul") and all(len(shape) > 1 for shape in shapes):
        a, b = shapes
        yield a[0], b[1]
        shapes = [a[2:], b[2:]]
    for sizes in zip_longest(*shapes, fillvalue=1):
        others = [d for d in dict.fromkeys(sizes) if d != 1]
        yield from pairwise(others)


class FuseAttention(RewritePass, frozen=True):
    """A late choice: until here attention is products and a softmax, which other rules read.

    Where the user did not ask for it, each attention is a remark that says what would be saved: the time of the fused
    operator on a GPU was not measured.
    """

    name: ClassVar[str] = "fuse-attention"
    summary: ClassVar[str] = "Make attention one operator, where that is asked for."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [MultiHeadAttention]

    def run(self, graph: Graph, context: PassContext) -> bool:
        if not graph.holds((SOFTMAX,)):
            return False
        return super().run(graph, context)
