"""The opset of the emitted model: what the target wants where every carried node has a form there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import NodeProto
from onnx.defs import onnx_opset_version

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.ir import Graph, Node
from dmlc.onnx_schema.origin import known_of
from dmlc.onnx_schema.versions import fits
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE
from dmlc.ops.select import HARDMAX


def choose_opset(graph: Graph, wanted: int, lowest: int, *, asked: bool) -> int:
    """``wanted`` where all carried nodes fit it; else the highest below that they fit, not under ``lowest``; else the
    lowest above it, for a model must not be refused because a target is behind; else the model's own, at which nothing
    can be rewritten.

    Where the user ``asked`` for it, nothing else will do. Raises ``DmlcError`` E0501, which names a node.
    """
    carried = list(_carried(graph))
    guilty = _misfit(carried, wanted)
    if guilty is None:
        return wanted
    proto = guilty.origin.proto
    label = f"node {proto.name or proto.output[0]} ({proto.op_type})"
    newest: int = max(onnx_opset_version(), graph.origin.versions.get("", 1))
    for opset in () if asked else (*range(wanted - 1, lowest - 1, -1), *range(wanted + 1, newest + 1)):
        if _misfit(carried, opset) is None:
            graph.notes.append(f"opset {opset}, not {wanted}: {label} has no equal there")
            return int(opset)
    version: int = graph.origin.versions.get("", 1)
    if not asked:
        graph.notes.append(f"opset {version}, and nothing is rewritten: {label} has no equal at a later one")
        return version
    raise fail(
        codes.NEEDS_OPSET,
        f"{label} of opset {version} has no equal at opset {wanted}",
        help="ask for another opset (--opset N), or export the model anew",
    )


def _misfit(carried: Sequence[Node], opset: int) -> Node | None:
    return next((node for node in carried if not _fits(node, opset)), None)


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
