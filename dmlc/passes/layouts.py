"""Moves that only add or take out axes of size 1, as the rules see them between reductions."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Dim, Graph, Node, Shape, dim_names, product
from dmlc.ops.move import RESHAPE, SQUEEZE, UNSQUEEZE, AxesAttributes

#: Origin of an axis: an axis of the source, or None for an axis of size 1 that a move made.
Origin = int | None


def is_unit(graph: Graph, dim: Dim) -> bool:
    """Return whether the size is proved to be 1."""
    return dim == 1 if isinstance(dim, int) else graph.dims.is_one(dim)


def follow(graph: Graph, node: Node, origins: Sequence[Origin]) -> list[Origin] | None:
    """Return the origins of the axes of a layout operation's result; None if the operation does more."""
    if node.op is SQUEEZE:
        gone = node.attributes_as(AxesAttributes).axes
        if not all(is_unit(graph, node.operand("x").shape[a]) for a in gone):
            return None  # size 1 is only a condition there
        return [origin for i, origin in enumerate(origins) if i not in gone]
    if node.op is UNSQUEEZE:
        new = node.attributes_as(AxesAttributes).axes
        rest = iter(origins)
        return [None if i in new else next(rest) for i in range(node.result.type.rank)]
    if node.op is RESHAPE:
        return _follow_reshape(graph, node.operand("x").shape, node.result.shape, origins)
    return None


def _follow_reshape(graph: Graph, old: Shape, new: Shape, origins: Sequence[Origin]) -> list[Origin] | None:
    kept = [(d, origin) for d, origin in zip(old, origins, strict=True) if not is_unit(graph, d)]
    if [d for d, _ in kept] != [d for d in new if not is_unit(graph, d)]:
        return None
    rest = iter(kept)
    return [None if is_unit(graph, d) else next(rest)[1] for d in new]


def ones_between(graph: Graph, shape: Shape, target: Shape) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The axes of size 1 that go from ``shape``, and those of ``target`` that come; None where more differs."""
    removed: list[int] = []
    added: list[int] = []
    i = j = 0
    while i < len(shape) or j < len(target):
        if i < len(shape) and j < len(target) and shape[i] == target[j]:
            i, j = i + 1, j + 1
        elif i < len(shape) and is_unit(graph, shape[i]):
            removed.append(i)
            i += 1
        elif j < len(target) and is_unit(graph, target[j]):
            added.append(j)
            j += 1
        else:
            return None
    return tuple(removed), tuple(added)


def plainest(graph: Graph, shape: Shape, target: Shape) -> Shape:
    """``target`` with the size that follows from the number of elements in the form in which it follows from ``shape``:
    a reshape to a shape between may have left a quotient in it."""
    for axis, size in enumerate(target):
        others = product([*target[:axis], *target[axis + 1 :]])
        if isinstance(size, int) or graph.dims.interval(others)[0] < 1:
            continue
        total = product(shape)
        found = total // others
        # a size that the inputs give is plainer, and so is one that is known to be the smaller of two
        is_told = dim_names(found) & graph.dims.provided <= dim_names(size)
        is_told &= isinstance(found, int) or not found.is_clamped
        if found * others == total and is_told:
            return (*target[:axis], found, *target[axis + 1 :])
    return target


def groups(axes: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted axes as runs of neighbours: (first, last + 1) of each."""
    out: list[tuple[int, int]] = []
    for axis in axes:
        if out and out[-1][1] == axis:
            out[-1] = (out[-1][0], axis + 1)
        else:
            out.append((axis, axis + 1))
    return out


def around(shape: Sequence[Dim], first: int, last: int) -> tuple[Dim, Dim, Dim]:
    """Return the number of elements before, within and after the axes ``first`` to before ``last``."""
    return product(shape[:first]), product(shape[first:last]), product(shape[last:])
