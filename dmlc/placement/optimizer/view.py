"""A graph as ONNX Runtime's optimizer sees it: nodes by operator, who makes a value, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from msgspec import Struct
from onnx import NodeProto

from dmlc.inference.fact import Fact
from dmlc.ir import Shape
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.nested import may_hold_graphs, values_read_by


class Summed(Struct, frozen=True):
    """A cure: the Add ``index`` becomes a Sum, or a Sub of the opposite where there is no kernel of Sum."""

    index: int


class Copied(Struct, frozen=True):
    """A cure: every reader of ``value``, and the output of that name, has a copy of it.

    It is a sum with -0, a choice that is always of the value, or the maximum of the value with itself: no transformer
    removes them.
    """

    value: str


class Given(Struct, frozen=True):
    """A cure: the node ``index`` has a constant for an absent operand, at ``position``, that means the same: the vector
    ``numbers`` of i64."""

    index: int
    position: int
    numbers: tuple[int, ...]


Cure: TypeAlias = "Summed | Copied | Given"


class LookAlike(Struct, frozen=True):
    """Nodes that a transformer takes for its pattern although it makes something else of them, or nothing that loads.

    ``node`` is the index of the node to name, ``makes`` what would replace it and others, and ``difference`` how it
    differs from the pattern. With ``cure`` the nodes compute the same, bit by bit, and the transformer does not take
    them. ``is_taken`` is false where conditions of the transformer do not hold that another release, or another pass
    before it, may let hold.
    """

    transformer: str
    makes: str
    node: int
    difference: str
    cure: Cure
    is_taken: bool = True


class GraphView:
    """The nodes of one graph. ``fact_of`` knows the types and the constants; ``outputs`` are the names of the graph's
    outputs, whose nodes no transformer removes. ``is_inner`` for a graph inside a node."""

    def __init__(
        self, nodes: Sequence[NodeProto], outputs: Collection[str], fact_of: Callable[[str], Fact], *, is_inner: bool
    ) -> None:
        self.nodes = nodes
        self.outputs: frozenset[str] = frozenset(outputs)
        self.fact_of = fact_of
        self.is_inner = is_inner
        self.by_operator: dict[str, list[int]] = {}
        for index, node in enumerate(nodes):
            if not plain_domain(node.domain):
                self.by_operator.setdefault(node.op_type, []).append(index)
        self._made_by: dict[str, int] = {}
        self._users: dict[str, list[int]] = {}

    def of(self, *operators: str) -> list[int]:
        """The indices of the nodes of ONNX's operators of these names."""
        return [index for operator in operators for index in self.by_operator.get(operator, ())]

    @property
    def made_by(self) -> dict[str, int]:
        """The index of the node that makes a value, by the name of the value."""
        if not self._made_by:
            self._made_by = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}
        return self._made_by

    @property
    def users(self) -> dict[str, list[int]]:
        """The indices of the nodes that read a value, once for each time that they do."""
        if not self._users:
            for index, node in enumerate(self.nodes):
                is_plain = not may_hold_graphs(node.domain, node.op_type)
                for name in node.input if is_plain else values_read_by(node):
                    self._users.setdefault(name, []).append(index)
        return self._users

    def maker(self, name: str, *operators: str) -> int | None:
        """The index of the node that makes a value, if it is of one of ONNX's operators of these names."""
        index = self.made_by.get(name)
        return index if index is not None and self.is_operator(index, *operators) else None

    def is_operator(self, index: int, *operators: str) -> bool:
        node = self.nodes[index]
        return node.op_type in operators and not plain_domain(node.domain)

    def readers(self, name: str, *operators: str) -> list[int]:
        """The indices of the nodes of ONNX's operators of these names that read a value."""
        return [index for index in self.users.get(name, ()) if self.is_operator(index, *operators)]

    def only_reader(self, index: int, *operators: str) -> int | None:
        """The one node that reads the first result of a node, once; None if others do, if it is an output, or if the
        reader is not of ``operators``, where some are given."""
        name = self.nodes[index].output[0]
        users = self.users.get(name, ())
        if len(users) != 1 or name in self.outputs or (operators and not self.is_operator(users[0], *operators)):
            return None
        return users[0]

    # --- operands, values, attributes

    def operand(self, index: int, position: int) -> str:
        """The name of an operand; empty where it is absent."""
        names = self.nodes[index].input
        return str(names[position]) if position < len(names) else ""

    def other(self, index: int, name: str) -> str:
        """The other one of two operands."""
        a, b = self.nodes[index].input
        return str(b if a == name else a)

    def number(self, name: str) -> float | None:
        """The number of a constant of one element."""
        elements = self.fact_of(name).elements
        if elements is None or elements.size != 1:
            return None
        found = elements.reshape(-1)[0]
        return float(found) if isinstance(found, (int, float)) else None

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """The elements of a constant of integers."""
        return self.fact_of(name).numbers if name else None

    def shape(self, name: str) -> Shape | None:
        return self.fact_of(name).shape if name else None

    def rank(self, name: str) -> int | None:
        return self.fact_of(name).rank if name else None

    def element(self, name: str) -> int:
        """The number that ONNX has for the element type; 0 where it is unknown."""
        return self.fact_of(name).element if name else 0

    def attribute(self, index: int, name: str, default: int) -> int:
        """An integer attribute of a node."""
        return next((a.i for a in self.nodes[index].attribute if a.name == name), default)

    def list_attribute(self, index: int, name: str) -> tuple[int, ...]:
        """An attribute of integers; empty where the node does not have it."""
        return next((tuple(a.ints) for a in self.nodes[index].attribute if a.name == name), ())

    def word(self, index: int, name: str) -> str:
        """An attribute that is a text; empty where the node does not have it."""
        return next((a.s.decode("utf-8", "replace") for a in self.nodes[index].attribute if a.name == name), "")
