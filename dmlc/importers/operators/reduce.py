"""Reductions in all their spellings: axes as attribute or operand, by default all or none, pooling over a whole map."""

from __future__ import annotations

from dmlc.importers.registry import Found, Made, Reading, reads
from dmlc.ir import Operation
from dmlc.ops import reduce as ops
from dmlc.ops.reduce import ReduceAttributes

_KINDS: dict[str, Operation] = {op.onnx: op for op in ops.REDUCTIONS}
_POOLS: dict[str, Operation] = {"GlobalAveragePool": ops.REDUCE_MEAN, "GlobalMaxPool": ops.REDUCE_MAX}


@reads(*_KINDS)
def reduction(r: Reading) -> Found:
    """Axes that are computed while running are carried."""
    rank = r.x.type.rank
    axes = r.integers("axes")
    if axes is None and len(r.inputs) > 1 and r.inputs[1] is not None:
        axes = r.ints(1)
        if axes is None:
            return None
    if not axes:
        axes = () if r.integer("noop_with_empty_axes", 0) else tuple(range(rank))
    found = r.axes(axes, rank)
    if found is None:
        return None
    return Made(_KINDS[r.op_type], [r.x], ReduceAttributes(axes=found, keepdims=bool(r.integer("keepdims", 1))))


@reads(*_POOLS)
def global_pool(r: Reading) -> Found:
    rank = r.x.type.rank
    if rank < 3:
        return None
    return Made(_POOLS[r.op_type], [r.x], ReduceAttributes(axes=tuple(range(2, rank)), keepdims=True))
