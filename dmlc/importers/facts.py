"""Facts about a graph's values while it is read: the link between values and inference rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from dmlc.inference import Fact, Query, infer
from dmlc.inference.fact import is_size, of_array
from dmlc.inference.protos import of_type, takes_part
from dmlc.ir import FOREIGN, Dim, DimTable, Tensor, TensorType, Value
from dmlc.onnx_schema.types import ELEMENT_TYPE
from dmlc.ops.constant import CONSTANT, constant_of


class Question(Struct, frozen=True):
    """A node as its operator's rule sees it, but for the facts about its operands."""

    op_type: str
    domain: str
    opset: int
    operands: Sequence[Value | None]
    attributes: Mapping[str, Any]
    results: int

    @property
    def key(self) -> Hashable:
        """Equal for equal nodes."""
        attributes = tuple([(name, self.attributes[name]) for name in sorted(self.attributes)])
        return (self.op_type, self.domain, self.opset, tuple(self.operands), self.results, attributes)


class InferredFacts:
    """Facts about the values of one graph. A graph inside a node asks for those that it captures.

    ``certain`` has what follows from the nodes and the constants of the model alone, for the values of which more is
    known: by a declared type, or by elements that nodes compute. Only that is held against a model.
    """

    def __init__(self, dims: DimTable) -> None:
        self._dims = dims
        self._new_dim = dims.new_dim
        self._count = 0
        self._answers: dict[Hashable, list[Fact]] = {}
        self._of: dict[Value, Fact] = {}
        self.certain: dict[Value, Fact] = {}
        self._sized: dict[tuple[TensorType, tuple[Dim, ...]], Value] = {}

    def of(self, value: Value) -> Fact:
        """The fact about a value: what was learnt, else what its type or its data say."""
        found = self._of.get(value)
        if found is None:
            tensor = constant_of(value)
            found = of_type(value.type, self._new_dim) if tensor is None else _of_constant(tensor, self._new_dim)
            self._of[value] = found
        return found

    def have_elements(self, values: Sequence[Value | None]) -> bool:
        """True if all values are so small that their elements are known, as far as they are."""
        of = self._of
        for value in values:
            if value is None:
                continue
            fact = of.get(value)
            if fact is None:
                if value.producer is None or value.producer.op is not CONSTANT:
                    return False  # no fact was learnt
                fact = self.of(value)
            if fact.elements is None:
                return False
        return True

    def learn(self, value: Value, fact: Fact) -> None:
        """Keep a fact. Elements that a node computes are not certain."""
        self.certain.setdefault(value, Fact(fact.element, fact.shape, None, fact.proto))
        self._of[value] = fact

    def adopt(self, value: Value, fact: Fact) -> None:
        """Take over the fact about the value of a graph around this one."""
        self._of[value] = fact

    def are_certain(self, values: Sequence[Value | None]) -> bool:
        return not self.certain or self.certain.keys().isdisjoint(values)

    def keep_certain(self, value: Value, fact: Fact) -> None:
        """Keep what is certain of a value where its type says more."""
        if of_type(value.type, self._new_dim).shape != fact.shape:
            self.certain[value] = Fact(fact.element, fact.shape, None, fact.proto)

    def doubt(self, value: Value, *, keeps_shape: bool = False) -> None:
        """Take the value's element type alone as certain, with its shape if asked for."""
        fact = self.of(value)
        self.certain[value] = Fact(fact.element, fact.shape if keeps_shape else None, None, fact.proto)

    def certain_of(self, value: Value) -> Fact:
        return self.certain.get(value) or self.of(value)

    def twin(self, value: Value) -> Value | None:
        """An earlier value of the same type whose elements are the same sizes; None where there is none.

        The value itself is found so from now on. Numbers alone are left to constants.
        """
        elements = self.of(value).elements
        found = [] if elements is None else elements.ravel().tolist()
        if not all(map(is_size, found)) or all(isinstance(e, int) for e in found):
            return None
        earlier = self._sized.setdefault((value.type, tuple(found)), value)
        return None if earlier is value else earlier

    def sizes(self, value: Value) -> tuple[Dim, ...] | None:
        """The elements of a list or a scalar, where each is known as a size, if not as a number."""
        elements = self.of(value).elements
        if elements is None or elements.ndim > 1:
            return None
        found = elements.ravel().tolist()
        return tuple(found) if all(map(is_size, found)) else None

    def truth(self, value: Value) -> bool | None:
        """The one element of a condition, where it is known."""
        elements = self.of(value).elements
        found = None if elements is None or elements.size != 1 else elements.ravel()[0]
        return bool(found) if isinstance(found, int) else None

    def ask(self, node: Question) -> tuple[list[Fact], list[Fact], Query]:
        """The facts about the results of a node, those that its operator's rule alone gives, and the question asked,
        which has the faults. Equal nodes have the same new dims, and what was added to the facts of the first."""
        before = self._count
        found, query = self._answer(node, self.of, self._counted)
        if self._count > before:
            return self._answers.setdefault(node.key, list(found)), found, query
        return found, list(found), query

    def _counted(self) -> Dim:
        self._count += 1
        return self._new_dim()

    def ask_certain(self, node: Question) -> tuple[list[Fact], Query]:
        """The same by what is certain alone. A shape with a size that nothing gives is left out, as ONNX leaves out
        that of a node whose shape is computed."""
        made: list[Dim] = []

        def new_dim() -> Dim:
            made.append(self._new_dim())
            return made[-1]

        facts, query = self._answer(node, self.certain_of, new_dim)
        return [Fact(f.element, None, None, f.proto) for f in facts] if made else facts, query

    def _answer(
        self, node: Question, fact_of: Callable[[Value], Fact], new_dim: Callable[[], Dim]
    ) -> tuple[list[Fact], Query]:
        query = Query(
            node.op_type,
            [None if v is None else fact_of(v) for v in node.operands],
            opset=node.opset,
            results=node.results,
            domain=node.domain,
            attributes=node.attributes,
            dims=self._dims,
            new_dim=new_dim,
        )
        return infer(query), query


def _of_constant(tensor: Tensor, new_dim: Callable[[], Dim]) -> Fact:
    type = tensor.type
    if type.dtype is FOREIGN or not takes_part(ELEMENT_TYPE[type.dtype], tensor.size):
        return of_type(type, new_dim)
    return of_array(ELEMENT_TYPE[type.dtype], tensor.array)
