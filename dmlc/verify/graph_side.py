"""A graph by the references of its operations, one node after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlc.diagnostics import DmlcError
from dmlc.ir import Array, Attributes, DimExpr, ForeignType, Graph, Node, Value, evaluate
from dmlc.ops.input_uses import DIVISIONS, MOVES, uses_of
from dmlc.verify.inputs import Default, Feeds, InputSpec, Interface, NoInputs
from dmlc.verify.loose import loose, loose_result
from dmlc.verify.onnx_interface import WIDEST
from dmlc.verify.opaque_nodes import OpaqueNodes, runs_alone
from dmlc.verify.trace import NotVerifiable, Patch, RunFailed, TraceStep, op_key


@dataclass(frozen=True)
class _BoundNode:
    """A node at known sizes: its attributes, and the shapes of its results; none where they are not checked."""

    node: Node
    attributes: Attributes
    shapes: tuple[tuple[int, ...], ...]


def graph_interface(graph: Graph) -> Interface:
    """The inputs of a graph, with the sizes that they are indices into. Raises ``NoInputs`` for a type without data."""
    found = uses_of(graph)
    specs = []
    for value in graph.inputs:
        if value in graph.defaults:
            continue
        if isinstance(value.type, ForeignType):
            raise NoInputs(f"input {value.name} is not a tensor of a dtype that numbers are made up for")
        kind, name = value.type.dtype.long_name, value.name or ""
        uses: dict[str, Any] = {"nonzero": value in found.divisors, "wraps": value in found.wrapping}
        uses["range"] = graph.ranges.get(name)
        specs.append(InputSpec(name, kind, value.shape, found.limits.get(value), **uses))
    divides = any(node.op in DIVISIONS and node.operand("a").type.dtype.is_integer for node in graph)
    widest = WIDEST if divides else None
    bounds, conditions = dict(graph.dims.bounds), tuple(graph.conditions)
    return Interface(tuple(specs), bounds, conditions, graph.dims.least, widest)


class GraphSide:
    """The meaning of a graph. Raises ``NotVerifiable`` where an operation has no reference.

    With ``opaque``, nodes that only ONNX Runtime knows run there, each alone.
    """

    def __init__(self, graph: Graph, opaque: OpaqueNodes | None = None) -> None:
        self._graph = graph
        self._opaque = opaque
        self.input_names = tuple(v.name or "" for v in graph.inputs if v not in graph.defaults)
        self.output_names = tuple(name for name, _ in graph.outputs)
        self.kinds: dict[str, str] = {name: kind for name, value in graph.outputs if (kind := _computed_in(value))}
        self.composites: dict[str, str] = {}
        self.size = len(graph)
        self.defines_empty = True
        self._plans: dict[tuple[tuple[str, int], ...], list[_BoundNode]] = {}
        for node in graph:
            if node.op.reference is None and (opaque is None or not runs_alone(node)):
                name = getattr(node.attributes, "full_name", node.op.name)
                raise NotVerifiable(f"{name} has no reference: only ONNX Runtime knows it")

    def interfaces(self) -> list[Interface]:
        return [graph_interface(self._graph)]

    def run(self, feeds: Feeds) -> dict[str, Any]:
        values = self._evaluate(feeds, keep=False)
        return {name: values[value] for name, value in self._graph.outputs}

    def defaults(self) -> list[Default]:
        return []

    def run_optimized(self, feeds: Feeds) -> dict[str, Any] | None:
        return None

    def weights(self) -> dict[str, Array]:
        return {}

    def run_with(self, feeds: Feeds, weights: Mapping[str, Array]) -> dict[str, Any]:
        """The outputs as they come out where nothing is rounded to f16 on the way, and where small sigmoids are less:
        what kernels do."""
        values = self._evaluate(feeds, keep=False, loosely=True)
        with np.errstate(all="ignore"):
            return {name: values[value].astype(value.type.dtype.numpy) for name, value in self._graph.outputs}

    def all_values(self, feeds: Feeds) -> dict[Value, Array]:
        """Every value of the graph. Raises ``RunFailed``."""
        return self._evaluate(feeds, keep=True)

    def run_rounded(self, feeds: Feeds, output: str, rng: np.random.Generator) -> dict[str, Any] | None:
        return None

    def run_narrow(self, feeds: Feeds, output: str) -> Any:
        return None

    def run_patched(self, feeds: Feeds, output: str, patches: Mapping[str, Patch]) -> Any:
        named = {name: value for value, name in self._names().items()}
        patched = {named[name]: patch for name, patch in patches.items()}
        try:
            return self._evaluate(feeds, keep=True, patches=patched)[dict(self._graph.outputs)[output]]
        except RunFailed:
            return None

    def _names(self) -> dict[Value, str]:
        """The name of each value in a trace; an input has its own."""
        made = [value for node in self._graph for value in node.results]
        names = {value: f"% {number}" for number, value in enumerate(made)}
        return names | {value: value.name or "" for value in self._graph.inputs}

    def trace(self, feeds: Feeds, output: str) -> list[TraceStep] | None:
        values = self._evaluate(feeds, keep=True)
        target = dict(self._graph.outputs)[output]
        wanted: set[Value] = set()
        pending = [target]
        while pending:
            value = pending.pop()
            if value not in wanted:
                wanted.add(value)
                pending += [v for v in (value.producer.operands if value.producer else ()) if v is not None]
        names = self._names()
        return [
            TraceStep(
                op_key(getattr(node.attributes, "op_type", node.op.name)),
                tuple([None if v is None else values[v] for v in node.operands]),
                tuple([values[v] for v in node.results]),
                reads=tuple(["" if v is None else names[v] for v in node.operands]),
                writes=tuple([names[v] for v in node.results]),
            )
            for node in self._graph
            if not wanted.isdisjoint(node.results)
        ]

    def _evaluate(
        self, feeds: Feeds, *, keep: bool, loosely: bool = False, patches: Mapping[Value, Patch] | None = None
    ) -> dict[Value, Array]:
        """All values, or without ``keep`` those that are outputs; ``patches`` go into what nodes give. Raises
        ``RunFailed``."""
        graph = self._graph
        values = {v: feeds[v.name or ""] if (v.name or "") in feeds else graph.defaults[v].array for v in graph.inputs}
        binding = _binding(graph, values)
        is_told = self._opaque is not None or bool(graph.provides)  # results give sizes too
        if loosely:
            values = {v: loose(array) for v, array in values.items()}
        waiting = {value: len(value.uses) for value in values}
        with np.errstate(all="ignore"):
            for bound in self._bound_later(binding) if is_told else self._bound(binding):
                node = bound.node
                results = self._results(bound, [None if v is None else values[v] for v in node.operands], loosely)
                if is_told:
                    binding.update(_told_sizes(node, results, binding))
                for value, array in zip(node.results, results, strict=True):
                    made = patches[value].into(array) if patches and value in patches else array
                    values[value], waiting[value] = made, len(value.uses)
                for operand in () if keep else node.operands:
                    if operand is not None:
                        waiting[operand] -= 1
                        if not waiting[operand]:
                            del values[operand]
        return values

    def _results(self, bound: _BoundNode, operands: list[Array | None], loosely: bool) -> tuple[Array, ...]:
        if self._opaque is not None and bound.node.op.reference is None:
            return self._opaque.run(bound.node, operands)
        return _results(bound, operands, loosely)

    def _bound_later(self, binding: dict[str, int]) -> Iterator[_BoundNode]:
        """The nodes at sizes that the results of nodes before them also give."""
        for node in self._graph:
            attributes = node.attributes.substitute(binding) if node.attributes.dims() else node.attributes
            yield _BoundNode(node, attributes, ())

    def _bound(self, binding: dict[str, int]) -> list[_BoundNode]:
        """The nodes at these sizes; kept, for the same sizes come again and again."""
        key = tuple(binding.items())
        if key not in self._plans:
            self._plans[key] = [
                _BoundNode(
                    node,
                    node.attributes.substitute(binding) if node.attributes.dims() else node.attributes,
                    tuple([tuple([evaluate(size, binding) for size in value.shape]) for value in node.results]),
                )
                for node in self._graph
            ]
        return self._plans[key]


def _binding(graph: Graph, values: dict[Value, Array]) -> dict[str, int]:
    """The sizes of the dims in what is fed."""
    out: dict[str, int] = {}
    for value in graph.inputs:
        for size, got in zip(value.shape, values[value].shape, strict=True):
            if isinstance(size, DimExpr) and size.name is not None:
                out[size.name] = got
    return out


def _told_sizes(node: Node, results: tuple[Array, ...], binding: Mapping[str, int]) -> dict[str, int]:
    """The sizes by name that the results of a node are the first to give."""
    out: dict[str, int] = {}
    for value, array in zip(node.results, results, strict=True):
        if isinstance(value.type, ForeignType):
            continue
        for size, got in zip(value.shape, array.shape, strict=False):
            if isinstance(size, DimExpr) and size.name is not None and size.name not in binding:
                out[size.name] = got
    return out


def _results(bound: _BoundNode, operands: list[Array | None], loosely: bool) -> tuple[Array, ...]:
    node = bound.node
    assert node.op.reference is not None
    try:
        found = node.op.reference(bound.attributes, *operands)
    except (DmlcError, ValueError, IndexError, ZeroDivisionError, OverflowError, MemoryError) as error:
        raise RunFailed(f"{node.op.name}: {error}") from None
    results = found if isinstance(found, tuple) else (found,)
    if loosely:
        return tuple([loose_result(node.op, array, operands) for array in results])
    for value, shape, array in zip(node.results, bound.shapes, results, strict=bool(bound.shapes)):
        if array.dtype != value.type.dtype.numpy or array.shape != shape:
            raise RunFailed(f"the reference of {node.op.name} gives {array.dtype}{list(array.shape)}, not {value.type}")
    return results


def _computed_in(output: Value) -> str | None:
    """The narrowest dtype that the numbers of a float output were rounded to, where that is not its own."""
    if isinstance(output.type, ForeignType) or not output.type.dtype.is_float:
        return None
    own = found = output.type.dtype
    pending, seen = [output], {output}
    while pending:
        value = pending.pop()
        node = value.producer
        if node is None:
            continue
        if node.op not in MOVES and node.operands and value.type.dtype.bits < found.bits:
            found = value.type.dtype
        floats = [v for v in node.operands if v is not None and v.type.dtype.is_float and v not in seen]
        seen.update(floats)
        pending += floats
    return None if found is own else found.long_name
