"""Normalizations of f16, whose variance DirectML keeps in f16."""

from __future__ import annotations

from dataclasses import replace

from dmlc.ir import FOREIGN, Attributes, Graph, Node
from dmlc.ir.dtype import f16, f32
from dmlc.ops.normalize import LAYER_NORM, RMS_NORM
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes

_OPAQUE = frozenset(
    (
        *(("", name) for name in ("GroupNormalization", "InstanceNormalization", "LayerNormalization")),
        *(("", name) for name in ("MeanVarianceNormalization", "RMSNormalization", "SimplifiedLayerNormalization")),
        *(("com.microsoft", name) for name in ("GroupNorm", "SkipGroupNorm")),
        *(("com.microsoft", name) for name in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")),
    )
)


def find_norms(graph: Graph) -> list[Node]:
    """Return the normalizations of f16 tensors, in the order of the graph."""
    return [node for node in graph if _is_norm(node)]


def _is_norm(node: Node) -> bool:
    if node.op not in (LAYER_NORM, RMS_NORM):
        if node.op is not OPAQUE:
            return False
        a = node.attributes_as(OpaqueAttributes)
        if (a.domain, a.op_type) not in _OPAQUE:
            return False
    x = node.operands[0] if node.operands else None
    return x is not None and x.type.dtype is f16 and not any(v.uses and v.type.dtype is FOREIGN for v in node.results)


def wide_attributes(node: Node) -> Attributes:
    """Return the attributes of a node with its results in f32 where they are f16."""
    if node.op is not OPAQUE:
        return node.attributes
    a = node.attributes_as(OpaqueAttributes)
    return replace(a, types=tuple([replace(t, dtype=f32) if t.dtype is f16 else t for t in a.types]))
