"""``fuse-gemm``: a product with a matrix and a bias is one operator, where its reshapes cost no more than it saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from dmlc.ir import Graph, Node, Shape, Value, product
from dmlc.ops.binary import ADD
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import RESHAPES
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fold_constants.between import MOST_NODES, is_elementwise
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.patterns import both_ways, made_by
from dmlc.passes.rewrite import Miss, RewritePass, Rule


class _Biased(Struct, frozen=True, eq=False):
    """``x`` times ``matrix`` plus ``bias``; ``node`` is the product, ``total`` the sum."""

    total: Node
    node: Node
    x: Value
    matrix: Value
    bias: Value

    @property
    def is_flat(self) -> bool:
        return self.x.type.rank == 2


@simplifies(
    ADD,
    fed_by=(MATMUL,),
    gives=REASSOCIATES,
    describe=lambda rule, match: f"a product of {match.root.result.type} and a bias",
)
def product_with_bias(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """``matmul(x, w) + b`` with a matrix and a bias for each column becomes a Gemm, for more axes between reshapes.

    ``reassociates``. Only where there are no more nodes for it: the reshapes merge with those around, or several
    products share one. ONNX Runtime's own MatMulAddFusion needs known sizes, and puts reshapes around each product.
    """
    found, type = _biased(node), node.result.type
    if found is None:
        return KEEP
    e.taken.append(found.node)
    if not e.target.takes("Gemm", type.dtype):
        return Miss("the target has no kernel of Gemm for {0}", (type.dtype,))
    if e.graph.dims.interval(found.matrix.shape[0])[0] < 1:
        return Miss("the matrix has {0} rows, and a Gemm of none may leave its result unset", found.matrix.shape[:1])
    plan = getattr(e.rule, "plan", None)
    if plan is None or plan[0] is not e.graph:
        plan = e.rule.plan = e.graph, frozenset(_worthwhile(e.graph))
    if node not in plan[1]:
        return Miss("the reshapes around a Gemm would be more nodes than the sum", saves=0)
    x, rows = e.of(found.x), product(type.shape[:-1])
    flat = x if found.is_flat else x.reshape((rows, x.shape[-1]))
    return e.onnx("Gemm", type.with_shape((rows, type.shape[-1])), flat, found.matrix, found.bias).reshape(type.shape)


def _biased(node: Node) -> _Biased | None:
    """The product and the bias of a sum; None if it is another one."""
    if node.op is not ADD or not node.result.type.dtype.is_float:
        return None
    for value, bias in both_ways(node):
        inner = made_by(value, MATMUL)
        if inner is None:
            continue
        x, matrix = inner.operand("a"), inner.operand("b")
        is_product = x.type.rank >= 2 and matrix.type.rank == 2 and value.is_used_once
        if is_product and (bias.shape == matrix.shape[1:] or (x.type.rank == 2 and bias.shape == (1, matrix.shape[1]))):
            return _Biased(node, inner, x, matrix, bias)
    return None


def _worthwhile(graph: Graph) -> Iterator[Node]:
    """Yield the sums whose Gemm costs no node: those whose reshapes merge, where the sizes that they take do not cost
    more nodes than all sums together."""
    candidates = {found.node: found for node in graph.nodes_of((ADD,)) if (found := _biased(node)) is not None}
    yield from [found.total for found in candidates.values() if found.is_flat]
    free: dict[Node, int] = {}  # by product: ends without a reshape of their own
    lists: dict[Node, set[Shape]] = {}  # by product: the sizes that its rows become, where nodes must compute them
    for found in candidates.values():
        if not found.is_flat:
            readers = sum(user in candidates for user in found.x.users)
            free.setdefault(found.node, 0)
            free[found.node] += readers > 1 or made_by(found.x, *RESHAPES) is not None
            after = _behind(found.total.result, candidates)
            free[found.node] += after is not None
            for user in after or ():
                free[user] = free.get(user, 0) + 1
            lists[found.node] = set() if after else _computed_shapes(found.total.result)
    chosen = [found for node, found in candidates.items() if free.get(node, 0)]
    saved = sum(free[found.node] - 1 for found in chosen) - _shared_reshapes(chosen)
    computed = {shape for found in chosen for shape in lists[found.node]}
    read = {tuple([size for size in shape if not isinstance(size, int)]) for shape in computed}
    if saved >= len(computed) + len(read):
        yield from [found.total for found in chosen]


def _shared_reshapes(chosen: Sequence[_Biased]) -> int:
    """The reshapes that several products share: none of them counts it."""
    shared = [found.x for found in chosen if made_by(found.x, *RESHAPES) is None]
    return len({value for value in shared if shared.count(value) > 1})


def _computed_shapes(value: Value) -> set[Shape]:
    """The shapes that the rows of a product become, where a reshape to it takes more than a constant."""
    shapes = {user.result.shape if user.op in RESHAPES else value.shape for user in value.users}
    return {shape for shape in shapes if sum(not isinstance(size, int) for size in shape) > 1}


def _behind(value: Value, candidates: dict[Node, Any]) -> list[Node] | None:
    """The products that take a sum as rows: all that is behind it is a reshape, or elementwise up to one product.

    None where the sum needs a reshape.
    """
    users = value.users
    if users and all(user.op in RESHAPES for user in users):
        return []
    pending, region, ends = [value], {value}, set()
    while pending and len(region) <= MOST_NODES:
        for user in pending.pop().users:
            if user in candidates and user.operand("a") in region:
                ends.add(user)
            elif not is_elementwise(user) or user.result.shape != value.shape:
                return None
            elif user.result not in region:
                region.add(user.result)
                pending.append(user.result)
    others = [v for end in region for v in (end.producer.operands if end.producer and end is not value else ())]
    broadcast = all(v is None or v in region or v.type.rank <= 1 or all(d == 1 for d in v.shape) for v in others)
    return [*ends] if len(ends) == 1 and not pending and broadcast else None


class FuseGemm(RewritePass, frozen=True):
    """Runs where attention is fused already, which looks for products and sums."""

    name: ClassVar[str] = "fuse-gemm"
    summary: ClassVar[str] = "Make a Gemm of a product with a matrix and a bias."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [product_with_bias]
