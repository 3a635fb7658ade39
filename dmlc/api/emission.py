"""Code of a lowered graph: the code generator is loaded when its code is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmlc.codegen.artifact import Artifact
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import runs as codes

if TYPE_CHECKING:
    from dmlc.codegen.numpy import Style
    from dmlc.ir import Graph
    from dmlc.placement.report import Placement
    from dmlc.targets import Target


def emit(kind: str, graph: Graph, target: Target, opset: int, style: Style) -> Artifact:
    """Return the artifact of a lowered graph. Raises ``DmlcError``, E0557 for a kind without a code generator."""
    if kind == "onnx":
        from dmlc.codegen import onnx as onnx_code

        return onnx_code.emit(graph, target, opset)
    if kind == "numpy":
        from dmlc.codegen import numpy as numpy_code

        return numpy_code.emit(graph, style)
    raise fail(codes.NOT_YET, f"{kind} output is not available yet", help="emit onnx, numpy, dxdispatch or dml")


def state_requirements(artifact: Artifact, opset: int, report: Placement | None) -> None:
    """Write what an ONNX model requires into its metadata; ``report`` is its placement, None without a provider."""
    from dmlc.onnx_schema.metadata import add_fact
    from dmlc.placement.requirements import FACT, requirements, requirements_of_opset

    found = requirements_of_opset(opset) if report is None else requirements(report)
    add_fact(artifact.payload, FACT, found.fact())
