"""A graph by the references of its operations, one node after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from dmlc.diagnostics import DmlcError, Label, fail, option
from dmlc.diagnostics.catalogue import bugs, runs
from dmlc.ir import Array, Attributes, DimExpr, ForeignType, Graph, Node, Value, evaluate
from dmlc.runtime.opaque_nodes import OpaqueNodes, runs_alone
from dmlc.runtime.runnable import NotRunnable, RunFailed

#: Other results of a node, for those that were computed from its operands.
Change: TypeAlias = "Callable[[Node, Sequence[Array | None], tuple[Array, ...]], tuple[Array, ...]]"

#: Exceptions of NumPy for operands that a reference cannot take.
_FAILURES = (ValueError, IndexError, ZeroDivisionError, OverflowError)


class GraphModel:
    """The meaning of a graph. ``names`` are the names of its values: an output's own, or ``%`` and a number.

    ``opaque`` runs the nodes without a reference of dmlc's, each alone. Raises ``DmlcError`` E0553, here or in ``run``,
    for an operator that nothing computes.
    """

    def __init__(self, graph: Graph, opaque: OpaqueNodes | None = None) -> None:
        self.graph: Graph = graph
        self._opaque = opaque
        self.inputs: tuple[str, ...] = tuple(v.name or "" for v in graph.inputs if v not in graph.defaults)
        self.outputs: tuple[str, ...] = tuple(name for name, _ in graph.outputs)
        self.names: dict[Value, str] = names_in(graph)
        #: For values that are asked for, the nodes that they need, each with the values that none after it reads.
        self._needed: dict[frozenset[Value], dict[Node, list[Value]]] = {}
        #: True if results give sizes that no input gives.
        self._tells = opaque is not None or bool(graph.provides)
        self._plans: dict[tuple[tuple[str, int], ...], list[tuple[Node, Attributes, _Shapes]]] = {}
        for node in graph:
            if node.op.reference is None and (opaque is None or not runs_alone(node)):
                raise _no_reference(node)

    def run(
        self, inputs: Mapping[str, Any], wanted: Sequence[str] | None = None, *, change: Change | None = None
    ) -> dict[str, Any]:
        """The outputs by name, or the ``wanted`` values; ``change`` replaces what nodes give.

        Raises ``RunFailed``, and ``DmlcError`` as references do; I0901 for one that breaks its inferred type.
        """
        outputs = dict(self.graph.outputs)
        names = self.outputs if wanted is None else wanted
        if not set(names) <= outputs.keys():
            outputs = {name: value for value, name in self.names.items()} | outputs
        chosen = {name: outputs[name] for name in names if name in outputs}
        values = self._evaluate(inputs, frozenset(chosen.values()), change)
        return {name: np.array(values[value]) for name, value in chosen.items()}

    def all_values(self, inputs: Mapping[str, Any], *, change: Change | None = None) -> dict[Value, Array]:
        """Every value. Raises as ``run`` does."""
        return self._evaluate(inputs, None, change)

    def _evaluate(
        self, inputs: Mapping[str, Any], kept: frozenset[Value] | None, change: Change | None
    ) -> dict[Value, Array]:
        """The ``kept`` values among others, or all of them."""
        needed = None if kept is None else self._nodes_for(kept)
        values: dict[Value, Array] = {}
        for value in self.graph.inputs:
            fed = inputs.get(value.name or "")
            values[value] = self.graph.defaults[value].array if fed is None else fed
        with np.errstate(all="ignore"):
            for node, attributes, shapes in self._bound(values):
                if needed is not None and node not in needed:
                    continue
                operands = [None if v is None else values[v] for v in node.operands]
                results = self._results(node, attributes, operands)
                if change is None:
                    _check(node, results, shapes)
                else:
                    results = change(node, operands, results)
                values.update(zip(node.results, results, strict=True))
                for value in () if needed is None else needed[node]:
                    del values[value]
        return values

    def _nodes_for(self, kept: frozenset[Value]) -> dict[Node, list[Value]]:
        if kept not in self._needed:
            read = set(kept)
            found: dict[Node, list[Value]] = {}
            for node in reversed(self.graph):
                if self._tells or not read.isdisjoint(node.results):
                    found[node] = [v for v in dict.fromkeys(node.operands) if v is not None and v not in read]
                    read.update(found[node])
            self._needed[kept] = found
        return self._needed[kept]

    def _bound(self, values: Mapping[Value, Array]) -> Iterator[tuple[Node, Attributes, _Shapes]]:
        """The nodes at the sizes of what is fed: attributes, and the shapes of results as far as they are known."""
        binding = _binding(self.graph, values)
        if not self._tells:
            key = tuple(binding.items())
            if key not in self._plans:  # the same sizes come again and again
                self._plans[key] = [_at_sizes(node, binding) for node in self.graph]
            yield from self._plans[key]
            return
        for node in self.graph:
            bound = _at_sizes(node, binding)
            yield bound
            for value in node.results:
                if not isinstance(value.type, ForeignType) and value in values:
                    for size, got in zip(value.shape, values[value].shape, strict=False):
                        if isinstance(size, DimExpr) and size.name is not None:
                            binding.setdefault(size.name, got)

    def _results(self, node: Node, attributes: Attributes, operands: list[Array | None]) -> tuple[Array, ...]:
        if node.op.reference is None:
            assert self._opaque is not None
            try:
                return self._opaque.run(node, operands)
            except NotRunnable:
                raise _no_reference(node) from None
        try:
            found = node.op.reference(attributes, *operands)
        except _FAILURES as error:
            raise RunFailed(f"{node.op.name}: {error}") from None
        return found if isinstance(found, tuple) else (found,)


#: The shapes of a node's results; None for one that is not known before the node runs.
_Shapes: TypeAlias = "tuple[tuple[int, ...] | None, ...]"


def _at_sizes(node: Node, binding: Mapping[str, int]) -> tuple[Node, Attributes, _Shapes]:
    attributes = node.attributes.substitute(binding) if node.attributes.dims() else node.attributes
    return node, attributes, tuple([_shape_of(node, value, binding) for value in node.results])


def _shape_of(node: Node, value: Value, binding: Mapping[str, int]) -> tuple[int, ...] | None:
    if node.op.reference is None or isinstance(value.type, ForeignType):
        return None
    try:
        return tuple([evaluate(size, binding) for size in value.shape])
    except KeyError:  # a size that the node itself gives
        return None


def _check(node: Node, results: Sequence[Array], shapes: _Shapes) -> None:
    """The reference keeps the inferred type; anything else is our bug."""
    for value, array, shape in zip(node.results, results, shapes, strict=True):
        if node.op.reference is None:
            continue
        if array.dtype != value.type.dtype.numpy or (shape is not None and array.shape != shape):
            got = f"{array.dtype}{list(array.shape)}"
            message = f"the reference of {node.op.name} gives {got}, inference says {value.type}"
            raise fail(bugs.INTERNAL, message, *map(Label, node.spans[:1]), exit_code=3)


def _binding(graph: Graph, values: Mapping[Value, Array]) -> dict[str, int]:
    """The sizes of the dims in what is fed."""
    out: dict[str, int] = {}
    for value in graph.inputs:
        for size, got in zip(value.shape, values[value].shape, strict=True):
            if isinstance(size, DimExpr) and size.name is not None:
                out[size.name] = got
    return out


def names_in(graph: Graph) -> dict[Value, str]:
    """A name for each value, each another one."""
    values = [*graph.inputs, *(value for node in graph for value in node.results)]
    # an output may have another name than its value; the first one is what other models know
    outputs = {value: name for name, value in reversed(graph.outputs) if value.producer is not None}
    taken = set(outputs.values())
    names: dict[Value, str] = {}
    for number, value in enumerate(values):
        name = outputs.get(value) or value.name
        if not name or (value not in outputs and name in taken):
            name = f"%{number}"
        taken.add(name)
        names[value] = name
    return names


def _no_reference(node: Node) -> DmlcError:
    name = getattr(node.attributes, "full_name", node.op.name)
    help = "use " + option("--backend cpu", "backend='cpu'")
    message = f"{name} has no reference: only ONNX Runtime knows it"
    return fail(runs.NO_BACKEND, message, *map(Label, node.spans[:1]), help=help)
