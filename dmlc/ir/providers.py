"""Values that provide a size: of dims that no input has, the first value in which the dim stands alone.

Such a dim (the count of a NonZero, a size of a Conv of open sizes) exists only while its provider does.
``Graph.provides`` records it, so that a node counts as used while something may ask for the size. The invariant, which
the verifier checks for imported graphs: each dim of an attribute is provided before the node, by an input or by a value
that is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dmlc.ir.dim import Shape, dim_names, substitute
from dmlc.ir.graph import Graph, Node, Value


def record_providers(graph: Graph) -> None:
    """Record the dims that each value of the graph, and of the graphs inside it, is the first to provide."""
    _record(graph, set())


def _record(graph: Graph, provided: set[str]) -> None:
    """``provided`` are the dims that the graphs around it provide at that place; it is left as it was."""
    added = list(_new(graph.inputs, provided))
    shapes: set[Shape] = set()
    last: Shape | None = None
    for node in graph:
        if node.regions:
            for region in node.regions:
                _record(region.graph, provided)
        for value in node.results:
            shape = value.type.shape
            if shape is last:
                continue
            last = shape
            if shape in shapes:
                continue  # the first value of that shape provides its dims
            shapes.add(shape)
            found = [(name, axis) for name, axis in alone(value) if name not in provided]
            if found:
                graph.provides[value] = tuple({name: (name, axis) for name, axis in reversed(found)}.values())
                added += _new((value,), provided)
    provided.difference_update(added)


def _new(values: Iterable[Value], provided: set[str]) -> Iterator[str]:
    """Add the dims that stand alone in the values to ``provided``; those that are new there."""
    for value in values:
        for name, _ in alone(value):
            if name not in provided:
                provided.add(name)
                yield name


def alone(value: Value) -> Sequence[tuple[str, int]]:
    """The dims that are a size of the value, with their axes."""
    shape = value.type.shape
    if _NUMBERS.issuperset(map(type, shape)):
        return ()
    return [(size.name, axis) for axis, size in enumerate(shape) if not isinstance(size, int) and size.name is not None]


_NUMBERS = frozenset((int,))


def asked_dims(node: Node) -> set[str]:
    """The dims that code for the node, and for the nodes of the graphs inside it, may compute."""
    names: set[str] = set()
    for value in (*node.operands, *node.results):
        if value is not None:
            for size in value.type.shape:
                if not isinstance(size, int):
                    names |= size.names()
    for value in node.operands:
        if value is not None:
            names.difference_update([name for name, _ in alone(value)])
    for region in node.regions:
        for inner in region.graph:
            names |= asked_dims(inner)
    names |= {name for size in node.attributes.dims() for name in size.names()}
    return names


def missing_dim(graph: Graph) -> tuple[Node, str] | None:
    """A node with a dim among its attributes that nothing provides, and the dim; None where all are provided."""
    return _missing(graph, set())


def _missing(graph: Graph, provided: set[str]) -> tuple[Node, str] | None:
    added = list(_new(graph.inputs, provided))
    # a dim of an input's expression is the caller's business
    sizes = [size for value in graph.inputs for size in value.type.shape]
    known = {name for size in sizes for name in dim_names(size)} - provided
    provided |= known
    added += known
    for node in graph:
        for size in node.attributes.dims():
            for name in sorted(size.names()):
                if name not in provided:
                    return node, name
        for region in node.regions:
            found = _missing(region.graph, provided)
            if found is not None:
                return found
        for value in node.results:
            added += _new((value,), provided)
            for name, _ in graph.provides.get(value, ()):
                if name not in provided:
                    provided.add(name)
                    added.append(name)
    provided.difference_update(added)
    return None


# --- dims whose size becomes known


def numbers_of(provided: Iterable[tuple[str, int]], value: Value) -> dict[str, int]:
    """The dims among the ``provided`` ones, with their axes, that are numbers in the type of the value by now."""
    shape = value.type.shape
    return {name: size for name, axis in provided if axis < len(shape) and isinstance(size := shape[axis], int)}


def fix_dims(graph: Graph, sizes: Mapping[str, int]) -> bool:
    """Replace the dims by their sizes in the graph and in those inside it; return whether there were any.

    Users of values that have another type by now are marked as retyped.
    """
    changed = False
    for value, pairs in list(graph.provides.items()):
        kept = tuple([pair for pair in pairs if pair[0] not in sizes])
        if kept:
            graph.provides[value] = kept
        else:
            del graph.provides[value]
    for node in graph:
        attributes = node.attributes.substitute(sizes)
        if attributes is not node.attributes:
            node.attributes = attributes
            graph.retyped[node] = None
            changed = True
        for value in node.results:
            changed |= _fix(value, sizes, graph)
        for region in node.regions:
            for value in (*region.captured, *region.graph.inputs):
                changed |= _fix(value, sizes, region.graph)
            changed |= fix_dims(region.graph, sizes)
    return changed


def _fix(value: Value, sizes: Mapping[str, int], graph: Graph) -> bool:
    shape = value.type.shape
    if _NUMBERS.issuperset(map(type, shape)) or sizes.keys().isdisjoint({n for size in shape for n in dim_names(size)}):
        return False
    value.type = value.type.with_shape(tuple([substitute(size, sizes) for size in shape]))
    graph.retyped.update(dict.fromkeys(value.users))
    return True
