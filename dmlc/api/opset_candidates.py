"""Opsets at which the target's provider may take nodes that it does not take at the chosen one."""

from __future__ import annotations

from collections.abc import Iterator

from dmlc.ir import DType, Graph, Operation
from dmlc.onnx_schema.domains import plain_domain
from dmlc.passes.repair.foreign import element_dtype
from dmlc.targets import Target
from dmlc.targets.needed_kernels import NEEDS
from dmlc.targets.provider import Provider, provider

#: The opset from which ONNX Runtime makes an operator of those around another: GeluFusion, Gelu of ONNX.
_MADE_SINCE = {"Erf": 20}


def other_opsets(graph: Graph, target: Target, opset: int) -> list[int]:
    """Lower opsets to try, highest first; none where every node is as well off at ``opset``.

    The provider loses an operator at the opset that issues it anew, fails on some versions that it takes, and is handed
    operators that ONNX Runtime makes of others. So the last opset before each such change is a candidate. An operator
    that is lost there leads to further candidates: the provider has no ConstantOfShape at 20, where it has the If that
    it lacks at 21. All passes have run on ``graph``.
    """
    if target.provider is None:
        return []
    table = provider(target.provider)
    used = {
        (op_type, frozenset([dtype.name for dtype in dtypes if dtype is not None]))
        for op, carried, domain, dtypes in set(_used(graph))
        for op_type in _operators(op, carried, domain)
    }
    found, pending = set[int](), [opset]
    while pending:
        at = pending.pop()
        before = {o for op_type, names in used for o in _before(table, op_type, names, at, target.release)}
        before |= {_MADE_SINCE[name] - 1 for name, _ in used if name in _MADE_SINCE}
        new = {o for o in before if target.min_opset <= o < at} - found
        found |= new
        pending += new
    return sorted(found, reverse=True)


def _used(graph: Graph) -> Iterator[tuple[Operation, str, str, tuple[DType | None, ...]]]:
    """(operation, operator and domain that it carries, dtypes of the operands) of the nodes, in bodies too."""
    for node in graph:
        dtypes = tuple([element_dtype(value) for value in node.operands if value is not None])
        yield node.op, getattr(node.attributes, "op_type", ""), getattr(node.attributes, "domain", ""), dtypes
    for node in graph.with_regions:
        for region in node.regions:
            yield from _used(region.graph)


def _operators(op: Operation, carried: str, domain: str) -> list[str]:
    """ONNX's own operators that a node becomes, as far as its kind alone says."""
    if carried:
        return [] if plain_domain(domain) else [carried]
    need = NEEDS.get(op)
    return [] if need is None else [name for name, _ in need.kernels]


def _before(table: Provider, op_type: str, dtypes: frozenset[str], opset: int, release: str | None) -> Iterator[int]:
    row = table.row("", op_type)
    if row is None:
        return
    if not row.usable(opset):
        yield from (last for _, last in row.opsets)
    kernel = row.kernel(opset)
    if kernel is not None and row.kernel(opset, release) is None:  # not in this release yet
        yield kernel.since - 1
    for failure in table.failures_of(op_type, release):
        types = set().union(*(failure.types or {}).values())
        if kernel is not None and kernel.since in failure.since and types.intersection(dtypes):
            yield kernel.since - 1
