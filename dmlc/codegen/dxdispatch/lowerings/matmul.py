"""The matrix product."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from msgspec.structs import replace

from dmlc.codegen.dxdispatch.lowering import DispatchCall, lowers, lowers_onnx
from dmlc.codegen.dxdispatch.view import BufferView, Sizes, broadcast_sizes
from dmlc.diagnostics.catalogue.dxdispatch import NO_OPERATOR
from dmlc.ops import matmul

#: GEMM's tensors have a batch and a channel axis before rows and columns.
_BATCHES = 2


@lowers(matmul.MATMUL)
def _matmul(c: DispatchCall) -> BufferView:
    a, b = c.view(0), c.view(1)
    if a.rank == 1:
        a = a.padded(2)
    if b.rank == 1:
        b = replace(b, sizes=(*b.sizes, 1), strides=(*b.strides, 1))
    product = _multiplied(c, a, b) if a.dtype.is_float else _sum_of_products(c, a, b)
    return c.build.regroup(product, c.sizes)


@lowers_onnx("Gemm")
def _gemm(c: DispatchCall) -> BufferView:
    """ONNX's alpha * A @ B + beta * C, of which a matrix may be transposed and C is broadcast."""
    given = dict(c.attributes.attributes)
    a, b = (
        c.view(i).transposed((1, 0)) if given.get(name) else c.view(i) for i, name in enumerate(("transA", "transB"))
    )
    alpha, beta = float(given.get("alpha", 1.0)), float(given.get("beta", 1.0))
    has_c = len(c.node.operands) > 2 and c.node.operands[2] is not None and beta != 0
    if a.dtype.is_float:
        added = {"CTensor": c.view(2).broadcast((1, 1, *c.sizes))} if has_c else {}
        product = _multiplied(c, a, b, added, alpha, beta if has_c else 0.0)
        return c.build.regroup(product, c.sizes)
    if alpha != 1 or (has_c and beta != 1):
        message = f"DirectML multiplies integers by integers, and alpha is {alpha:g}, beta {beta:g}"
        raise c.build.refuse(NO_OPERATOR, message, "scale the operands with mul")
    product = c.build.regroup(_sum_of_products(c, a, b), c.sizes)
    return c.build.binary("ELEMENT_WISE_ADD", product, c.view(2)) if has_c else product


def _multiplied(
    c: DispatchCall,
    a: BufferView,
    b: BufferView,
    added: Mapping[str, BufferView] | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> BufferView:
    """Batches are broadcast by strides; more than two batch axes are merged."""
    batch = broadcast_sizes([replace(v, sizes=v.sizes[:-2], strides=v.strides[:-2]) for v in (a, b)])
    if len(batch) > _BATCHES:
        merged: Sizes = (prod(batch[:-1]), batch[-1])
        a, b = (c.build.regroup(v.broadcast((*batch, *v.sizes[-2:])), (*merged, *v.sizes[-2:])) for v in (a, b))
    else:
        merged = (1,) * (_BATCHES - len(batch)) + batch
        a, b = (v.broadcast((*merged, *v.sizes[-2:])) for v in (a, b))
    out = c.build.new(a.dtype, (*merged, a.sizes[-2], b.sizes[-1]))
    none = "DML_MATRIX_TRANSFORM_NONE"
    tensors = {"ATensor": a, "BTensor": b, **(added or {}), "OutputTensor": out}
    c.build.call("GEMM", **tensors, TransA=none, TransB=none, Alpha=alpha, Beta=beta)
    return out


def _sum_of_products(c: DispatchCall, a: BufferView, b: BufferView) -> BufferView:
    """Integers: GEMM takes floats only. Every product is written out, which wants memory."""
    build = c.build
    a, b = build.widened(a), build.widened(b)
    rows = replace(a, sizes=(*a.sizes, 1), strides=(*a.strides, 1))
    columns = replace(b, sizes=(*b.sizes[:-2], 1, *b.sizes[-2:]), strides=(*b.strides[:-2], 1, *b.strides[-2:]))
    products = build.binary("ELEMENT_WISE_MULTIPLY", rows, columns)
    total = build.reduce("SUM", products, (products.rank - 2,))
    return build.cast(total, c.dtype)
