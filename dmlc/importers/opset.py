"""The opset of the emitted model: what the target wants where every carried node has a form there."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.ir import Graph
from dmlc.onnx_schema.versions import fits
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE


def choose_opset(graph: Graph, wanted: int, lowest: int, *, asked: bool) -> int:
    """``wanted`` where all carried nodes fit it, else the highest below it that they fit, not under ``lowest``.

    Where the user ``asked`` for it, nothing else will do. Raises ``DmlcError`` E0501, which names a node.
    """
    carried = list(_carried(graph))
    guilty = ""
    for opset in range(wanted, lowest - 1, -1):
        misfit = next((p for p, version in carried if not fits(p, version, opset)), None)
        if misfit is None:
            if opset != wanted:
                graph.notes.append(f"opset {opset}, not {wanted}: {guilty} has no equal there")
            return opset
        guilty = guilty or f"node {misfit.name or misfit.output[0]} ({misfit.op_type})"
        if asked:
            break
    version = graph.origin.versions.get("", 1)
    raise fail(
        codes.NEEDS_OPSET,
        f"{guilty} of opset {version} has no equal at opset {wanted}",
        help="ask for another opset (--opset N), or export the model anew",
    )


def _carried(graph: Graph) -> Iterator[tuple[NodeProto, int]]:
    for node in graph:
        if node.op in (OPAQUE, OPAQUE_IMPURE) and node.origin is not None:
            if node.origin.proto.domain in ("", "ai.onnx"):
                yield node.origin.proto, node.origin.version
            for region in node.regions:
                yield from _carried(region.graph)
