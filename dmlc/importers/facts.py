"""Facts about a graph's values while it is read: the link between values and inference rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from dmlc.inference import Fact, Query, infer
from dmlc.inference.fact import is_size, of_array
from dmlc.inference.protos import ELEMENT_OF, of_type, takes_part
from dmlc.ir import FOREIGN, Dim, DimTable, Tensor, TensorType, Value
from dmlc.ops.constant import constant_of


class Facts:
    """Facts about the values of one graph. A graph inside a node asks for those that it captures.

    ``new_dim`` makes a dim for a size that no rule can express.
    """

    def __init__(self, dims: DimTable, new_dim: Callable[[], Dim]) -> None:
        self._dims = dims
        self._new_dim = new_dim
        self._count = 0
        self._answers: dict[Hashable, list[Fact]] = {}
        self._of: dict[Value, Fact] = {}
        self._sized: dict[tuple[TensorType, tuple[Dim, ...]], Value] = {}

    def of(self, value: Value) -> Fact:
        """The fact about a value: what was learnt, else what its type or its data say."""
        found = self._of.get(value)
        if found is None:
            tensor = constant_of(value)
            found = of_type(value.type, self._new_dim) if tensor is None else _of_constant(tensor, self._new_dim)
            self._of[value] = found
        return found

    def learn(self, value: Value, fact: Fact) -> None:
        self._of[value] = fact

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

    def ask(
        self,
        op_type: str,
        domain: str,
        opset: int,
        operands: Sequence[Value | None],
        attributes: Mapping[str, Any],
        results: int,
    ) -> list[Fact]:
        """The facts about the results of a node. Equal nodes have the same new dims."""
        before = self._count
        query = Query(
            op_type,
            [None if v is None else self.of(v) for v in operands],
            opset=opset,
            results=results,
            domain=domain,
            attributes=attributes,
            dims=self._dims,
            new_dim=self._counted,
        )
        found = infer(query)
        if self._count == before:
            return found
        asked = tuple([(name, attributes[name]) for name in sorted(attributes)])
        return self._answers.setdefault((op_type, domain, opset, tuple(operands), results, asked), found)

    def _counted(self) -> Dim:
        self._count += 1
        return self._new_dim()


def _of_constant(tensor: Tensor, new_dim: Callable[[], Dim]) -> Fact:
    type = tensor.type
    if type.dtype is FOREIGN or not takes_part(ELEMENT_OF[type.dtype], tensor.size):
        return of_type(type, new_dim)
    return of_array(ELEMENT_OF[type.dtype], tensor.array)
