"""One reduction in the shape that is asked for, with as few moves of axes of size 1 as can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dmlc.ir import Graph, Operation, Shape, Value
from dmlc.ops.rules import reduced_shape
from dmlc.passes.reduce_rules.moves import is_unit, reshape_ones
from dmlc.passes.rewrite import Rewriter
from dmlc.records import dataclass


@dataclass(frozen=True, slots=True)
class Fit:
    """Attributes with which a reduction gives the shape."""

    axes: tuple[int, ...]
    keepdims: bool


def fit(graph: Graph, shape: Shape, axes: Sequence[int], target: Shape) -> Fit | None:
    """Find attributes with which a reduction over ``axes`` gives ``target``; None if there are none.

    Axes of size 1 are reduced too if that helps. At least one axis is given, so one more of size 1 changes nothing.
    """
    if reduced_shape(shape, axes, True) == target:
        return Fit(tuple(axes), True)
    gone = set(axes)
    place = 0
    for axis, size in enumerate(shape):
        if axis in gone:
            continue
        if place < len(target) and size == target[place]:
            place += 1
        elif is_unit(graph, size):
            gone.add(axis)
        else:
            return None
    return Fit(tuple(sorted(gone)), False) if place == len(target) else None


def reduce_to(rewriter: Rewriter, op: Operation, x: Value, attributes: Any, target: Shape) -> Value:
    """The reduction (or selection) of ``x``, in a shape that differs from what it would have by axes of size 1 only."""
    found = fit(rewriter.graph, x.shape, attributes.axes, target) or Fit(attributes.axes, False)
    made = rewriter.add(op, [x], replace(attributes, axes=found.axes, keepdims=found.keepdims))
    return reshape_ones(rewriter, made, target)
