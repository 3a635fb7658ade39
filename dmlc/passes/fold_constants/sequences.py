"""Elements, lengths and concatenations of ONNX sequences whose elements are known while compiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct

from dmlc.ir import FOREIGN, Array, Graph, Node, Operation, Value
from dmlc.ops.constant import constant_of
from dmlc.ops.move import (
    CONCAT,
    SPLIT,
    SQUEEZE,
    UNSQUEEZE,
    AxesAttributes,
    ConcatAttributes,
    NewAxesAttributes,
    SplitAttributes,
)
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.expressions import Formulas
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

#: A sequence of more elements is left alone.
_MOST_ELEMENTS = 1024


class _SplitPart(Struct, frozen=True):
    """One part of a tensor that is split; its axis of size 1 goes unless ``keeps_axis``."""

    x: Value
    split: SplitAttributes
    index: int
    keeps_axis: bool


_T = TypeVar("_T")
_Element: TypeAlias = "Value | _SplitPart"


class _SequenceMatch(Match, eq=False, kw_only=True):
    """``elements`` are the elements of the sequence that the root uses."""

    elements: Sequence[_Element]


class KnownSequence(Rule[_SequenceMatch]):
    """An element of a sequence of known tensors becomes that tensor, its length a constant, and its concatenation a
    concat.

    The parts of a SplitToSequence become the parts of a split, which execution providers have kernels for.
    """

    name = "known-sequence"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)

    def match(self, node: Node, graph: Graph) -> _SequenceMatch | None:
        if _first(_BUILDERS, node) is None:
            return None
        elements = _elements(node.operands[0])
        return None if elements is None else _SequenceMatch(node, elements=elements)

    def check(self, match: _SequenceMatch, graph: Graph) -> Miss | None:
        root, count = match.root, len(match.elements)
        if is_opaque(root, "SequenceAt"):
            place = _integer(root.operands[1])
            if place is None:
                return Miss("the position is not known while compiling")
            return None if -count <= place < count else Miss("position {0} of {1} elements", (place, count))
        if is_opaque(root, "ConcatFromSequence"):
            types = [element.x.type if isinstance(element, _SplitPart) else element.type for element in match.elements]
            if not types or any(t.dtype is FOREIGN for t in types):
                return Miss("the type of an element is not known")
        return None

    def describe(self, match: _SequenceMatch) -> str:
        op_type = match.root.attributes_as(OpaqueAttributes).op_type
        return f"{op_type} of a sequence of {len(match.elements)}"

    def build(self, match: _SequenceMatch, rewriter: Rewriter) -> Sequence[Value]:
        build = _first(_BUILDERS, match.root)
        assert build is not None
        return [build(match, rewriter)]


def _at(match: _SequenceMatch, make: Formulas) -> Value:
    place = _integer(match.root.operands[1])
    assert place is not None
    return _tensor(match.elements[place], make)


def _length(match: _SequenceMatch, make: Formulas) -> Value:
    return make.constant(np.asarray(len(match.elements), np.int64))


def _concat(match: _SequenceMatch, make: Formulas) -> Value:
    root = match.root
    values = [_tensor(element, make) for element in match.elements]
    is_new = bool(attribute_of(root, "new_axis", 0))
    rank = values[0].type.rank + is_new
    axis = int(attribute_of(root, "axis")) % rank
    if is_new:
        values = [make.add(UNSQUEEZE, [value], NewAxesAttributes(axes=(axis,))) for value in values]
    return make.add(CONCAT, values, ConcatAttributes(axis=axis))


_BUILDERS = {"ConcatFromSequence": _concat, "SequenceAt": _at, "SequenceLength": _length}


def _tensor(element: _Element, make: Formulas) -> Value:
    if isinstance(element, Value):
        return element
    part = make.add_node(SPLIT, [element.x], element.split).results[element.index]
    if element.keeps_axis:
        return part
    return make.add(SQUEEZE, [part], AxesAttributes(axes=(element.split.axis,)))


def _elements(sequence: Value | None) -> list[_Element] | None:
    """The elements of the sequence; None where they are not known."""
    changes: list[Node] = []
    while True:
        node = None if sequence is None else sequence.producer
        if node is None:
            return None
        if not any(is_opaque(node, op_type) for op_type in ("SequenceInsert", "SequenceErase")):
            break
        changes.append(node)
        sequence = node.operands[0]
    source = _first(_SOURCES, node)
    out = None if source is None else source(node)
    for change in reversed(changes):
        if out is None or not _changed(out, change):
            return None
    return out


def _first(table: Mapping[str, _T], node: Node) -> _T | None:
    """The entry of the node's operator."""
    return next((entry for op_type, entry in table.items() if is_opaque(node, op_type)), None)


def _listed(node: Node) -> list[_Element] | None:
    return [value for value in node.operands if value is not None]


def _changed(elements: list[_Element], change: Node) -> bool:
    """Insert into the elements or erase one of them, as ``change`` does; False where its position is not known."""
    inserts = is_opaque(change, "SequenceInsert")
    index, count = 2 if inserts else 1, len(elements)
    given = change.operands[index] if len(change.operands) > index else None
    place = (count if inserts else count - 1) if given is None else _integer(given)
    if place is None or not -count <= place < count + inserts:
        return False
    place += count if place < 0 else 0
    if inserts:
        elements.insert(place, change.operand(1))
    else:
        del elements[place]
    return True


def _parts(node: Node) -> list[_Element] | None:
    """The parts of a SplitToSequence along an axis of known size."""
    x, given = node.operand(0), node.operands[1] if len(node.operands) > 1 else None
    if not x.type.rank:  # or it is not known
        return None
    axis = int(attribute_of(node, "axis", 0)) % x.type.rank
    size = x.shape[axis]
    wanted = np.asarray(1) if given is None else _array(given)
    if wanted is None or not isinstance(size, int):
        return None
    keeps = bool(attribute_of(node, "keepdims", 1))
    if given is not None and not keeps:  # ONNX ignores keepdims here, ONNX Runtime does not
        return None
    if not wanted.ndim:
        each = int(wanted)
        sizes = [min(each, size - start) for start in range(0, size, each)] if each > 0 else []
    else:
        sizes = [int(part) for part in wanted]
    if not 0 < len(sizes) <= _MOST_ELEMENTS or min(sizes) < 0 or sum(sizes) != size:
        return None
    split = SplitAttributes(axis=axis, sizes=tuple(sizes))
    return [_SplitPart(x, split, index, keeps) for index in range(len(sizes))]


def _array(value: Value) -> Array | None:
    tensor = constant_of(value)
    return None if tensor is None else tensor.array


def _integer(value: Value | None) -> int | None:
    tensor = constant_of(value)
    return None if tensor is None else int(tensor.array.reshape(()))


_SOURCES = {"SequenceConstruct": _listed, "SequenceEmpty": _listed, "SplitToSequence": _parts}
