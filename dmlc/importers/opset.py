"""The opset of the emitted model: what the target wants where every carried node has a form there."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.ir import Graph, Node
from dmlc.onnx_schema.origin import known_of
from dmlc.onnx_schema.versions import fits
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE
from dmlc.ops.select import HARDMAX


def choose_opset(graph: Graph, wanted: int, lowest: int, *, asked: bool) -> int:
    """``wanted`` where all carried nodes fit it, else the highest below it that they fit, not under ``lowest``.

    Where the user ``asked`` for it, nothing else will do. Raises ``DmlcError`` E0501, which names a node.
    """
    carried = list(_carried(graph))
    guilty = ""
    for opset in range(wanted, lowest - 1, -1):
        misfit = next((n for n in carried if not _fits(n, opset)), None)
        if misfit is None:
            if opset != wanted:
                graph.notes.append(f"opset {opset}, not {wanted}: {guilty} has no equal there")
            return opset
        proto = misfit.origin.proto
        guilty = guilty or f"node {proto.name or proto.output[0]} ({proto.op_type})"
        if asked:
            break
    version = graph.origin.versions.get("", 1)
    raise fail(
        codes.NEEDS_OPSET,
        f"{guilty} of opset {version} has no equal at opset {wanted}",
        help="ask for another opset (--opset N), or export the model anew",
    )


def says_flattened(graph: Graph) -> bool:
    """Whether a softmax or hardmax runs over several axes, which ONNX says in one node up to opset 12 only."""
    return any(
        node.op in (SOFTMAX, LOG_SOFTMAX, HARDMAX)
        and node.origin is not None
        and node.origin.version < 13
        and len(getattr(node.attributes, "axes", ())) > 1
        for node in graph
    )


def _fits(node: Node, opset: int) -> bool:
    proto: NodeProto = node.origin.proto
    return fits(proto, node.origin.version, opset, known_of(node, proto.input))


def _carried(graph: Graph) -> Iterator[Node]:
    for node in graph:
        if node.op in (OPAQUE, OPAQUE_IMPURE) and node.origin is not None:
            if node.origin.proto.domain in ("", "ai.onnx"):
                yield node
            for region in node.regions:
                yield from _carried(region.graph)
