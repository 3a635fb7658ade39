"""Facts that pass in and out of the graphs inside If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx import GraphProto, TypeProto

from dmlc.inference.fact import NOTHING, Fact
from dmlc.inference.protos import of_proto, sequence_of, type_proto_of
from dmlc.inference.query import within
from dmlc.ir import Dim
from dmlc.onnx_schema.declared import common, fixed_sizes

#: Before this opset Scan takes lengths first, and all its other operands and results have a leading axis for batches.
_SCAN_WITHOUT_BATCHES = 9


def joined(branches: Sequence[Sequence[Fact]], new_dim: Callable[[], Dim]) -> list[Fact]:
    """The facts about the results of an If: what both branches share."""
    if len(branches) != 2 or len(branches[0]) != len(branches[1]):
        return []
    return [_either(a, b, new_dim) for a, b in zip(*branches, strict=True)]


def _either(a: Fact, b: Fact, new_dim: Callable[[], Dim]) -> Fact:
    if a.proto or b.proto:
        return _of_both(a.proto, b.proto)
    if a.element and b.element and a.element != b.element:
        return NOTHING
    element = a.element or b.element  # ONNX wants the element types of both branches to be equal
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return Fact(element)
    return Fact(element, tuple([x if x == y else new_dim() for x, y in zip(a.shape, b.shape, strict=True)]))


def _of_both(a: bytes, b: bytes) -> Fact:
    """The fact about a sequence, an optional or a map of either type."""
    held = common(TypeProto.FromString(a), TypeProto.FromString(b)) if a and b else None
    return NOTHING if held is None else Fact(proto=held.SerializeToString(deterministic=True))


def items(operands: Sequence[Fact], new_dim: Callable[[], Dim]) -> list[Fact]:
    """The facts about the inputs of the body of a SequenceMap: one item of each sequence, and tensors whole."""
    protos = [TypeProto.FromString(fact.proto).sequence_type.elem_type if fact.proto else None for fact in operands]
    return [fact if p is None else of_proto(p, new_dim) for fact, p in zip(operands, protos, strict=True)]


def sequences(made: Sequence[Fact]) -> list[Fact]:
    """The facts about the results of a SequenceMap, whose body gives one item of each."""
    return [sequence_of(fixed_sizes(type_proto_of(fact))) if fact.element else NOTHING for fact in made]


class Body:
    """The body of a Loop or Scan.

    ``first`` are the facts about inputs that each run gets anew, ``carried`` those about what one run hands to the
    next, ``last`` those about the slices that a Scan takes. Other outputs are stacked along ``axes``, to ``length``.
    ``batch`` is the size of an axis in front of all results that a run does not see; None without such an axis.
    """

    def __init__(
        self,
        first: Sequence[Fact],
        carried: Sequence[Fact],
        last: Sequence[Fact],
        axes: Sequence[int],
        length: Dim | None,
        batch: Dim | None = None,
    ) -> None:
        self._first = first
        self._carried = [Fact(fact.element, fact.shape, None, fact.proto) for fact in carried]
        self._last = last
        self._axes = axes
        self._length = length
        self._batch = batch
        self._head = 1 if first else 0
        self._open: set[tuple[int, int]] = set()

    def opened(self) -> Body:
        """The body that hands on tensors of any shape."""
        carried = [Fact(fact.element, None, None, fact.proto) for fact in self._carried]
        return Body(self._first, carried, self._last, self._axes, self._length, self._batch)

    def fed(self, new_dim: Callable[[], Dim]) -> list[Fact]:
        """The facts about the inputs of any run."""
        carried = [self._any_run(index, fact, new_dim) for index, fact in enumerate(self._carried)]
        return [*self._first, *carried, *self._last]

    def _any_run(self, index: int, fact: Fact, new_dim: Callable[[], Dim]) -> Fact:
        if fact.shape is None:
            return fact
        sizes = [new_dim() if (index, axis) in self._open else size for axis, size in enumerate(fact.shape)]
        return Fact(fact.element, tuple(sizes), None, fact.proto)

    def widen(self, made: Sequence[Fact]) -> bool:
        """Open the sizes in which the body's outputs differ from what it was fed; true if that changes anything."""
        changed = False
        for index, (fact, fact_made) in enumerate(zip(self._carried, made[self._head :], strict=False)):
            if fact.proto != fact_made.proto:
                self._carried[index] = _of_both(fact.proto, fact_made.proto)
                changed = changed or self._carried[index].proto != fact.proto
            elif fact.shape is not None:
                shape = fact_made.shape
                if shape is None or len(shape) != len(fact.shape):
                    self._carried[index], changed = Fact(fact.element, None), True
                    continue
                new = {(index, axis) for axis, size in enumerate(fact.shape) if shape[axis] != size} - self._open
                self._open |= new
                changed = changed or bool(new)
        return changed

    def results(self, made: Sequence[Fact], new_dim: Callable[[], Dim]) -> list[Fact]:
        """The facts about the node's results: what was carried last, and the stacked outputs of all runs."""
        made = made[self._head :]
        count = len(self._carried)
        out = []
        for index, fact in enumerate(self._carried):
            found = self._any_run(index, fact, new_dim)
            element = found.element or (made[index].element if index < len(made) else 0)
            out.append(Fact(element, found.shape, None, found.proto))
        for index, fact in enumerate(made[count:]):
            out.append(self._stacked(index, fact, new_dim))
        if self._batch is None:
            return out
        return [fact if fact.shape is None else Fact(fact.element, (self._batch, *fact.shape)) for fact in out]

    def _stacked(self, index: int, fact: Fact, new_dim: Callable[[], Dim]) -> Fact:
        if fact.shape is None:
            return Fact(fact.element)
        axis = within(self._axes[index] if index < len(self._axes) else 0, len(fact.shape) + 1)
        if axis is None:
            return Fact(fact.element)
        length = new_dim() if self._length is None else self._length
        return Fact(fact.element, (*fact.shape[:axis], length, *fact.shape[axis:]))


def body_of(kind: str, opset: int, operands: Sequence[Fact], attributes: Mapping[str, Any], graph: GraphProto) -> Body:
    """The body of a Loop or Scan with these operands."""
    if kind == "Loop":
        return Body([NOTHING, NOTHING], operands[2:], (), (), None)  # its own declarations type the counter
    number = attributes.get("num_scan_inputs")
    has_batches = opset < _SCAN_WITHOUT_BATCHES
    operands = operands[1:] if has_batches else operands
    batch = _batch(operands) if has_batches else None
    if not isinstance(number, int) or not 0 < number <= len(operands) or (has_batches and batch is None):
        return Body((), [NOTHING] * len(graph.output), (), (), None)
    if has_batches:
        attributes = {}
        operands = [Fact(fact.element, fact.shape[1:] if fact.shape else None) for fact in operands]
    scanned = operands[len(operands) - number :]
    axes = attributes.get("scan_input_axes") or ()
    length: Dim | None = None
    slices = []
    for index, fact in enumerate(scanned):
        axis = None if fact.shape is None else within(axes[index] if index < len(axes) else 0, len(fact.shape))
        if axis is None or fact.shape is None:
            slices.append(Fact(fact.element))
            continue
        length = fact.shape[axis] if length is None or isinstance(fact.shape[axis], int) else length
        slices.append(Fact(fact.element, (*fact.shape[:axis], *fact.shape[axis + 1 :])))
    carried = operands[: len(operands) - number]
    return Body((), carried, slices, attributes.get("scan_output_axes") or (), length, batch)


def _batch(operands: Sequence[Fact]) -> Dim | None:
    """The leading size that all operands share, a number where one is known; None where no shape is known."""
    sizes = [fact.shape[0] for fact in operands if fact.shape]
    return next((size for size in sizes if isinstance(size, int)), sizes[0] if sizes else None)
