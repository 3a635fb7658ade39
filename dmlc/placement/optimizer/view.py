"""A graph as ONNX Runtime's optimizer sees it: nodes by operator, who makes a value, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from msgspec import Struct
from onnx import NodeProto

from dmlc.inference.fact import Fact
from dmlc.ir import Dim
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.nested import may_hold_graphs, values_read_by


class LookAlike(Struct, frozen=True):
    """Nodes that a transformer takes for its pattern although they compute something else.

    ``node`` is the index of the node to name, ``makes`` the operator of the node that would replace it and the others,
    ``difference`` how the pattern differs. ``edge`` is a
    value between two nodes of the pattern: with a copy of it, or with the epsilon that ``add`` adds subtracted instead,
    the transformer no longer takes them. ``is_taken`` is false where conditions of the transformer do not hold that
    another release, or another pass before it, may let hold.
    """

    transformer: str
    makes: str
    node: int
    difference: str
    edge: str
    is_taken: bool
    add: int | None = None


class GraphView:
    """The nodes of one graph. ``fact_of`` knows the types and the constants; ``outputs`` are the names of the graph's
    outputs, whose nodes no transformer removes."""

    def __init__(
        self, nodes: Sequence[NodeProto], outputs: Collection[str], fact_of: Callable[[str], Fact], opset: int
    ) -> None:
        self.nodes = nodes
        self.outputs = frozenset(outputs)
        self.fact_of = fact_of
        self.opset = opset
        self.by_operator: dict[str, list[int]] = {}
        for index, node in enumerate(nodes):
            if not plain_domain(node.domain):
                self.by_operator.setdefault(node.op_type, []).append(index)
        self._made_by: dict[str, int] = {}
        self._users: dict[str, list[int]] = {}

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

    def maker(self, name: str, operator: str) -> int | None:
        """The index of the node that makes a value, if it is one of ONNX's operator of that name."""
        index = self.made_by.get(name)
        return index if index is not None and self.is_operator(index, operator) else None

    def is_operator(self, index: int, *operators: str) -> bool:
        node = self.nodes[index]
        return node.op_type in operators and not plain_domain(node.domain)

    def readers(self, name: str, operator: str) -> list[int]:
        """The indices of the nodes of an operator that read a value."""
        return [index for index in self.users.get(name, ()) if self.is_operator(index, operator)]

    def only_reader(self, index: int) -> int | None:
        """The one node that reads the first result of a node, once; None if others do, or if it is an output."""
        name = self.nodes[index].output[0]
        users = self.users.get(name, ())
        return users[0] if len(users) == 1 and name not in self.outputs else None

    # --- values

    def number(self, name: str) -> float | None:
        """The number of a constant of one element."""
        elements = self.fact_of(name).elements
        if elements is None or elements.size != 1:
            return None
        found = elements.reshape(-1)[0]
        return float(found) if isinstance(found, (int, float, np.floating)) else None

    def rank(self, name: str) -> int | None:
        return self.fact_of(name).rank

    def last_size(self, name: str) -> Dim | None:
        shape = self.fact_of(name).shape
        return shape[-1] if shape else None

    def attribute(self, index: int, name: str, default: int) -> int:
        """An integer attribute of a node."""
        return next((a.i for a in self.nodes[index].attribute if a.name == name), default)
