"""A program by the reference: every operation by its own NumPy definition, one node after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dmlc.codegen.artifact import signature_of
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import runs
from dmlc.ir import Array, Graph
from dmlc.runtime.feeds import FeedChecker
from dmlc.runtime.graph_model import GraphModel
from dmlc.runtime.runnable import RunFailed


class Reference:
    """A graph whose inputs are checked first. Raises ``DmlcError`` E0553 for an operator without a reference."""

    def __init__(self, graph: Graph) -> None:
        self._checker = FeedChecker(signature_of(graph, checked=True))
        self.model: GraphModel = GraphModel(graph)

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
