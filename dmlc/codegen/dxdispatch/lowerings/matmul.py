"""The matrix product."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from dmlc.codegen.dxdispatch.lowering import DispatchCall, lowers
from dmlc.codegen.dxdispatch.view import BufferView, Sizes, broadcast_sizes
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
    product = _gemm(c, a, b) if a.dtype.is_float else _sum_of_products(c, a, b)
    return c.build.regroup(product, c.sizes)


def _gemm(c: DispatchCall, a: BufferView, b: BufferView) -> BufferView:
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
    c.build.call("GEMM", ATensor=a, BTensor=b, OutputTensor=out, TransA=none, TransB=none, Alpha=1.0, Beta=0.0)
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
