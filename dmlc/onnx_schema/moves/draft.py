"""A node while it is moved, and what is known of the values around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct, field
from onnx import AttributeProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from dmlc.ir import Array


class Unmovable(Exception):
    """The node has no equal form at the other opset; the text says why."""


def _nothing(name: str) -> None:
    return None


class KnownValues(Struct, frozen=True):
    """Known constants and types of the values that a node reads and makes, by their names in that node.

    ``constant`` gives the data of a constant, ``type`` the type of a value; None if it is not known. A form that
    depends on unknown facts is not used. Element types are the exception: a node without known types is assumed to have
    types that both versions allow.
    """

    constant: Callable[[str], Array | None] = _nothing
    type: Callable[[str], TypeProto | None] = _nothing


NOTHING = KnownValues()


class Draft(Struct):
    """A copy of a node, which rows change in place, and the constants and nodes it came to need.

    ``op`` is the operator that the node was at first, ``want`` the opset that it is moved to. Nodes of ``before`` make
    what it reads, nodes of ``after`` what its results become; rows make them in the form that they have at ``want``.
    """

    node: NodeProto
    known: KnownValues
    fresh: Callable[[str], str]
    want: int
    op: str = ""
    constants: list[TensorProto] = field(default_factory=list)
    before: list[NodeProto] = field(default_factory=list)
    after: list[NodeProto] = field(default_factory=list)

    # --- attributes

    def has(self, name: str) -> bool:
        return any(a.name == name for a in self.node.attribute)

    def get(self, name: str, default: Any = None) -> Any:
        """The value: numbers, lists of them, texts, protos."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                return plain(attribute)
        return default

    def pop(self, name: str, default: Any = None) -> Any:
        """The value of an attribute that is taken away."""
        for i, attribute in enumerate(self.node.attribute):
            if attribute.name == name:
                value = plain(attribute)
                del self.node.attribute[i]
                return value
        return default

    def set(self, name: str, value: Any, kind: int | None = None) -> None:
        self.pop(name)
        self.node.attribute.append(helper.make_attribute(name, value, attr_type=kind))

    # --- inputs and outputs

    def input(self, index: int) -> str:
        """The name of an input; empty where it is absent."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def set_input(self, index: int, name: str) -> None:
        while len(self.node.input) <= index:
            self.node.input.append("")
        self.node.input[index] = name

    def set_constant(self, index: int, array: Array, base: str) -> None:
        """Make an input a constant of that data."""
        self.set_input(index, self.new_constant(array, base))

    def new_constant(self, array: Array, base: str) -> str:
        """The name of a constant of that data."""
        name = self.fresh(base)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def add_before(self, op: str, inputs: Sequence[str], base: str, **attributes: Any) -> str:
        """The result of a new node that comes before this one."""
        name = self.fresh(base)
        self.before.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def flatten(self, axis: int) -> None:
        """Give the node its first input as a matrix, of the axes before ``axis`` and those from it on, and its first
        result the shape of that input. Raises ``Unmovable`` where a size of 0 would be read as a copy."""
        if self.want < 14 and not self._copies_right(axis):
            raise Unmovable("a size may be 0, which a Reshape says from opset 14 on")
        x, y = self.input(0), self.node.output[0]
        shape = self.add_before("Shape", [x], "shape")
        self.set_input(0, self.add_before("Flatten", [x], "flat", axis=axis))
        self.node.output[0] = self.fresh("matrix")
        whole = {"allowzero": 1} if self.want >= 14 else {}
        self.after.append(helper.make_node("Reshape", [self.node.output[0], shape], [y], **whole))

    def _copies_right(self, axis: int) -> bool:
        """True if each size of the input that may be 0 is the matrix's at the same place, so that 0 may copy it."""
        sizes = self.sizes(0)
        if sizes is None:
            return False
        axis %= max(len(sizes), 1)
        may_copy = {0: axis > 0, 1: axis == 1}
        return all((isinstance(size, int) and size > 0) or may_copy.get(i, False) for i, size in enumerate(sizes))

    def drop_inputs(self, first: int) -> None:
        """Take away the inputs from that number on, and the constants that only they used."""
        gone = set(self.node.input[first:])
        del self.node.input[first:]
        self.constants = [t for t in self.constants if t.name not in gone or t.name in self.node.input]
        self.trim()

    def trim(self, least: int = 0) -> None:
        """Leave out absent inputs and outputs at the end, but for the first ``least`` inputs."""
        for names, kept in ((self.node.input, least), (self.node.output, 0)):
            while len(names) > kept and not names[-1]:
                del names[-1]

    def known_constant(self, index: int) -> Array | None:
        """The data of an input; None where it is absent or no constant."""
        name = self.input(index)
        if not name:
            return None
        for made in self.constants:
            if made.name == name:
                own: Array = numpy_helper.to_array(made)
                return own
        return self.known.constant(name)

    def constant(self, index: int, what: str) -> Array | None:
        """The data of an input; None where it is absent. Raises ``Unmovable`` where it is not a constant."""
        data = self.known_constant(index)
        if data is None and self.input(index):
            raise Unmovable(f"{what} is computed, and has to be a constant there")
        return data

    # --- types

    def element_type(self, index: int) -> int | None:
        type = self._tensor(index)
        return int(type.elem_type) if type is not None and type.elem_type else None

    def sizes(self, index: int) -> list[int | str | None] | None:
        """The shape of an input: numbers, names, None for what is not known; None where the rank is not known."""
        type = self._tensor(index)
        if type is None or not type.HasField("shape"):
            return None
        return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in type.shape.dim]

    def rank(self, index: int, why: str) -> int:
        """The rank of an input. Raises ``Unmovable`` where it is not known."""
        sizes = self.sizes(index)
        if sizes is None:
            raise Unmovable(f"{why}, and the rank of its input is not known")
        return len(sizes)

    def _tensor(self, index: int) -> TypeProto.Tensor | None:
        name = self.input(index)
        for made in self.constants:
            if name and made.name == name:
                return helper.make_tensor_type_proto(made.data_type, made.dims).tensor_type
        type = self.known.type(name) if name else None
        return type.tensor_type if type is not None and type.HasField("tensor_type") else None

    def type_text(self, name: str) -> str | None:
        """The type of a value as schemas spell it; None where it is not known."""
        for made in self.constants:
            if name and made.name == name:
                return element_text(made.data_type)
        type = self.known.type(name) if name else None
        return None if type is None else _spell(type)


def plain(attribute: AttributeProto) -> Any:
    """The value of an attribute; texts as ``str``, lists as lists."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return list(value) if attribute.type in _LISTS else value


_LISTS = (AttributeProto.INTS, AttributeProto.FLOATS)


def ints(array: Array) -> list[int]:
    return [int(i) for i in np.asarray(array).reshape(-1)]


def int64(values: Sequence[int]) -> Array:
    return np.asarray(list(values), np.int64)


def count(array: Array) -> int:
    return prod(array.shape)


# --- types as schemas spell them


def element_text(number: int) -> str | None:
    """A tensor of that element type; None where the installed onnx does not know the type."""
    if number not in TensorProto.DataType.values() or number == TensorProto.UNDEFINED:
        return None
    name = TensorProto.DataType.Name(number).lower()
    return f"tensor({name})"


def _spell(type: TypeProto) -> str | None:
    which = type.WhichOneof("value")
    if which == "tensor_type":
        return element_text(type.tensor_type.elem_type)
    if which == "sequence_type":
        inner = _spell(type.sequence_type.elem_type)
        return inner and f"seq({inner})"
    if which == "optional_type":
        inner = _spell(type.optional_type.elem_type)
        return inner and f"optional({inner})"
    return None


# --- The form of a row: a change with one version of an operator, and the form of a node before and after it

#: Changes the draft in place. Raises ``Unmovable``.
Step: TypeAlias = Callable[[Draft], None]


def as_it_is(draft: Draft) -> None:
    """The older form is a form of the newer version too, or the general rules say all there is to say."""


def never(why: str) -> Step:
    def refuse(draft: Draft) -> None:
        raise Unmovable(why)

    return refuse


class Row(Struct, frozen=True):
    """The change that came with version ``since`` of an operator.

    ``up`` turns the form before it into the form after it. ``down`` turns it the other way, for versions above the
    oldest opset of the targets; what the older version does not have is refused in general after it. ``becomes`` is the
    operator that took this one's place. ``why`` says what changed (onnx, docs/Changelog.md, under the operator and
    version, unless it says otherwise).
    """

    op: str
    since: int
    why: str
    up: Step = as_it_is
    down: Step = as_it_is
    becomes: str = ""
