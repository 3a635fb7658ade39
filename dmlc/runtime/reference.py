"""A program by the reference: every operation by its own NumPy definition, one node after the other. Operators that
only ONNX defines run by ONNX's reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dmlc.codegen.artifact import signature_of
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import runs
from dmlc.ir import Array, Graph
from dmlc.ops.opaque import OPAQUE
from dmlc.runtime.feeds import FeedChecker
from dmlc.runtime.graph_model import GraphModel
from dmlc.runtime.opaque_nodes import OpaqueNodes
from dmlc.runtime.runnable import RunFailed


class Reference:
    """A graph whose inputs are checked first. Raises ``DmlcError`` E0553, here or in ``run``, for an operator without a
    reference."""

    def __init__(self, graph: Graph) -> None:
        self._checker = FeedChecker(signature_of(graph, checked=True))
        opaque = OpaqueNodes(graph, on_runtime=False) if graph.holds([OPAQUE]) else None
        self.model: GraphModel = GraphModel(graph, opaque)

    def run(self, feeds: Mapping[str, Any], wanted: Sequence[str] | None = None) -> dict[str, Array]:
        """The outputs by name, or the ``wanted`` values.

        Raises what ``FeedChecker.check`` and ``GraphModel.run`` raise, and E0554 if a reference fails on the data."""
        try:
            return self.model.run(self._checker.check(feeds), wanted)
        except RunFailed as error:
            raise fail(runs.RUNTIME_FAILED, f"the reference failed: {error}") from None


def evaluate(graph: Graph, feeds: Mapping[str, Any]) -> dict[str, Array]:
    """The outputs by name. Raises what ``Reference`` raises."""
    return Reference(graph).run(feeds)
