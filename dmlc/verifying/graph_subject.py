"""A graph by the references of its operations, one node after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dmlc.diagnostics import DmlcError
from dmlc.ir import Array, ForeignType, Graph, Node, Value
from dmlc.ops.input_uses import DIVISIONS, MOVES, uses_of
from dmlc.runtime.graph_model import Change, GraphModel
from dmlc.runtime.opaque_nodes import OpaqueNodes
from dmlc.runtime.runnable import NotRunnable, RunFailed
from dmlc.verifying.inputs import Feeds, InputSpec, Interface, NoInputs
from dmlc.verifying.onnx_interface import WIDEST
from dmlc.verifying.rounding import Noise
from dmlc.verifying.spread import EXACT_OPS, JUMPS
from dmlc.verifying.subject import Patch, Subject, TraceStep, op_key


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


class GraphSubject(Subject):
    """The meaning of a graph. Raises ``NotRunnable`` if an operation has no reference.

    With ``opaque``, nodes that only ONNX Runtime knows run there, each alone.
    """

    def __init__(self, graph: Graph, opaque: OpaqueNodes | None = None) -> None:
        try:
            self.model: GraphModel = GraphModel(graph, opaque)
        except DmlcError as error:
            raise NotRunnable(error.diagnostics[0].message) from None
        super().__init__(self.model.inputs, self.model.outputs, len(graph))
        self.kinds: dict[str, str] = {name: kind for name, value in graph.outputs if (kind := _computed_in(value))}

    def interfaces(self) -> list[Interface]:
        return [graph_interface(self.model.graph)]

    def run(self, feeds: Feeds, wanted: Sequence[str] | None = None) -> dict[str, Any]:
        return self._told(lambda: self.model.run(feeds, wanted))

    def samples(self, feeds: Feeds, output: str, fixed: frozenset[str], noises: Iterable[Noise]) -> Iterator[Any]:
        """Runtimes may keep f16 in f32 between nodes: so does every other pair of samples."""
        dtype = dict(self.model.graph.outputs)[output].type.dtype.numpy
        for number, noise in enumerate(noises):
            given, wide = {**feeds, **noise.moved(feeds, fixed)}, bool(number // 2 % 2)
            if wide:
                given = {name: _wide(x) for name, x in given.items()}
            found = self._changed(given, output, _rounding(noise, wide=wide))
            with np.errstate(all="ignore"):
                yield found.astype(dtype)

    def run_patched(self, feeds: Feeds, output: str, patches: Mapping[str, Patch]) -> Any:
        try:
            return self._changed(feeds, output, self._patched(patches))
        except RunFailed:
            return None

    def _patched(self, patches: Mapping[str, Patch]) -> Change:
        def patched(node: Node, operands: Sequence[Array | None], results: tuple[Array, ...]) -> tuple[Array, ...]:
            names = [self.model.names[value] for value in node.results]
            pairs = zip(names, results, strict=True)
            return tuple(patches[name].into(array) if name in patches else array for name, array in pairs)

        return patched

    def _changed(self, feeds: Feeds, output: str, change: Change) -> Any:
        return self._told(lambda: self.model.run(feeds, [output], change=change))[output]

    def _told(self, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The result of a run. Raises ``RunFailed`` for what references raise."""
        try:
            return run()
        except (DmlcError, MemoryError) as error:
            raise RunFailed(str(error)) from None

    def trace(self, feeds: Feeds, output: str, patches: Mapping[str, Patch] | None = None) -> list[TraceStep] | None:
        graph, names, values = self.model.graph, self.model.names, {}

        def all_values() -> dict[str, Any]:
            values.update(self.model.all_values(feeds, change=self._patched(patches) if patches else None))
            return {}

        self._told(all_values)
        wanted: set[Value] = set()
        pending = [dict(graph.outputs)[output]]
        while pending:
            value = pending.pop()
            if value not in wanted:
                wanted.add(value)
                pending += [v for v in (value.producer.operands if value.producer else ()) if v is not None]
        return [
            TraceStep(
                op_key(getattr(node.attributes, "op_type", node.op.name)),
                tuple([None if v is None else values[v] for v in node.operands]),
                tuple([values[v] for v in node.results]),
                reads=tuple(["" if v is None else names[v] for v in node.operands]),
                writes=tuple([names[v] for v in node.results]),
            )
            for node in graph
            if not wanted.isdisjoint(node.results)
        ]


def _wide(x: Any) -> Any:
    return x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype == np.float16 else x


def _rounding(noise: Noise, *, wide: bool) -> Change:
    def rounded(node: Node, operands: Sequence[Array | None], results: tuple[Array, ...]) -> tuple[Array, ...]:
        key = op_key(getattr(node.attributes, "op_type", node.op.name))
        if key not in EXACT_OPS and key not in JUMPS:
            results = tuple([noise.result(node, operands, array) for array in results])
        return tuple(map(_wide, results)) if wide else results

    return rounded


def _computed_in(output: Value) -> str | None:
    """The narrowest dtype that the numbers of a float output were rounded to, if that is not its own."""
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
