"""Names of values while a graph is read, and how a graph inside a node sees those around it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path as Folder

from onnx import GraphProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.models import BROKEN_MODEL
from dmlc.importers.facts import InferredFacts
from dmlc.importers.order import live_names, used_names
from dmlc.importers.types import DeclaredTypes, Path
from dmlc.ir import Dim, Graph, Tensor, Value
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of


class GraphScope:
    """The values of one graph by name. A name of a graph around it becomes a capture when it is first used. A constant
    of a graph around it becomes a constant of its own, so that it folds here too.

    A branch that is known to run is read into the graph around it: then both scopes have one graph.
    """

    def __init__(
        self,
        graph: Graph,
        types: DeclaredTypes,
        path: Path,
        outer: GraphScope | None,
        folder: Folder | None,
        source: GraphProto,
    ) -> None:
        self.graph = graph
        self.folder = folder
        self._source = source
        self.types = types
        self.path = path
        self.outer = outer
        self.values: dict[str, Value | None] = {}
        self.captures: dict[str, Value] = {}
        self._weights: dict[str, Callable[[], Value]] = {}
        is_shared = outer is not None and outer.graph is graph
        self.facts: InferredFacts = outer.facts if outer is not None and is_shared else InferredFacts(graph.dims)

    def new_dim(self) -> Dim:
        """Make a dim for a size that only one value provides."""
        return self.graph.dims.new_dim()

    @cached_property
    def used(self) -> set[str]:
        """The names that something uses; few operators ask."""
        return used_names(self._source)

    @cached_property
    def live(self) -> set[str]:
        """The names of values that each run of the model computes; empty for a graph inside a node."""
        return live_names(self._source) if self.outer is None else set()

    def define(self, name: str, value: Value | None) -> None:
        if name:
            self.values[name] = value

    def define_weight(self, name: str, make: Callable[[], Value]) -> None:
        """A weight that enters the graph when something uses it. Raises ``DmlcError`` E0431 for a name that one has."""
        if name in self._weights:
            message = f"two weights are named {name}"
            raise fail(BROKEN_MODEL, message, help="which of them is meant is not known")
        self._weights[name] = make

    def find(self, name: str) -> Value | None:
        """The value of that name; None where there is none."""
        value = self.values.get(name)
        if value is not None:
            return value
        make = self._weights.get(name)
        if make is not None:
            value = self.values[name] = make()
            return value
        if self.outer is None:
            return None
        source = self.outer.find(name)
        if source is None or self.outer.graph is self.graph:
            return source
        return self._capture(name, source)

    def _capture(self, name: str, source: Value) -> Value:
        assert self.outer is not None
        tensor = constant_of(source)
        if tensor is not None:
            value = self.constant(tensor, source.name)
        else:
            value = Value(source.type, None, 0, name)
            self.captures[name] = value
            self.facts.adopt(value, self.outer.facts.of(source))
        if source in self.outer.facts.certain:
            self.facts.certain[value] = self.outer.facts.certain[source]
        self.values[name] = value
        return value

    def constant(self, tensor: Tensor, name: str | None = None) -> Value:
        """A constant node's result. Constants come first, so that all may use them."""
        node = self.graph.add(CONSTANT, (), ConstantAttributes(value=tensor))
        node.result.name = name
        return node.result
