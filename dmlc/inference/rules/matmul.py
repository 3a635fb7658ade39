"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from dmlc.inference.fact import Fact
from dmlc.inference.query import Fault, Query, need_equal
from dmlc.inference.registry import rule
from dmlc.ir import Dim, Shape


def product_shape(q: Query, a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape of NumPy's ``matmul``."""
    if a == () or b == ():
        raise Fault("an operand is a scalar")
    if not a or not b:
        return None
    left: Shape = (1, *a) if len(a) == 1 else a
    right: Shape = (*b, 1) if len(b) == 1 else b
    batch = q.broadcast(left[:-2], right[:-2])
    if batch is None:
        return None
    need_equal(left[-1], right[-2], "the sizes that are multiplied")
    return (*batch, *left[-2 : -1 if len(a) > 1 else -2], *right[-1 : None if len(b) > 1 else -1])


@rule("MatMul")
def matmul(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0) or q.element(1), product_shape(q, q.shape(0), q.shape(1)))]


@rule("MatMulInteger")
def matmul_integer(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.INT32, product_shape(q, q.shape(0), q.shape(1)))]


@rule("QLinearMatMul")
def quantized_matmul(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(7), product_shape(q, q.shape(0), q.shape(3)))]


@rule("Gemm")
def gemm(q: Query) -> Sequence[Fact]:
    a, b = q.shape(0), q.shape(1)
    q.need_rank(0, 2)
    q.need_rank(1, 2)
    if a is None or b is None:
        return [Fact(q.element(0), q.fresh_shape(2))]
    trans_a, trans_b = bool(q.integer("transA")), bool(q.integer("transB"))
    need_equal(a[not trans_a], b[trans_b], "the sizes that are multiplied")
    return [Fact(q.element(0), (a[trans_a], b[not trans_b]))]


@rule("Det")
def determinant(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    return [Fact(q.element(0), None if shape is None else shape[:-2])]


@rule("Einsum")
def einsum(q: Query) -> Sequence[Fact]:
    element = next((q.element(i) for i in range(len(q.operands)) if q.element(i)), 0)
    return [Fact(element, _einsum_shape(q))]


def _einsum_shape(q: Query) -> Shape | None:
    """The sizes of the letters of the result. Operands of unknown rank leave theirs open."""
    equation = q.word("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    need_equal(len(terms), len(q.operands), "the numbers of terms and of operands")
    sizes: dict[str, Dim] = {}
    dots: Shape | None = ()
    for i, term in enumerate(terms):
        shape = q.shape(i)
        before, has_dots, after = term.partition("...")
        if shape is None:
            dots = None if has_dots else dots
            continue
        count = len(shape) - len(before) - len(after)
        if count < 0 or (count and not has_dots):
            raise Fault(f"operand {i + 1} has {len(shape)} axes, and its term is {term}")
        for letter, size in zip(before + after, (*shape[: len(before)], *shape[len(before) + count :]), strict=True):
            if size != 1 and sizes.get(letter, 1) != 1:
                q.fails_unless_equal(sizes[letter], size, f"the sizes of {letter}")
            if (isinstance(size, int) and size != 1) or letter not in sizes or sizes[letter] == 1:
                sizes[letter] = size
        if has_dots and dots is not None:
            dots = q.broadcast(dots, shape[len(before) : len(before) + count])
    if not arrow:
        letters = "".join(terms).replace(".", "")
        right = ("..." if "..." in left else "") + "".join(sorted({c for c in letters if letters.count(c) == 1}))
    before, has_dots, after = right.partition("...")
    if has_dots and dots is None:
        return None
    middle = dots if has_dots and dots is not None else ()
    ends = [[sizes[c] if c in sizes else q.new_dim() for c in part] for part in (before, after)]
    return (*ends[0], *middle, *ends[1])
