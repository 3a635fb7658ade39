"""A node of an ONNX model with the types of its operands and results."""

from __future__ import annotations

from msgspec import Struct
from onnx import NodeProto

from dmlc.placement.values import KnownType, ValueScope


class TypedNode(Struct):
    """A node, the types of its operands and results, and the values around it."""

    proto: NodeProto
    domain: str
    opset: int
    operands: list[KnownType]
    results: list[KnownType]
    scope: ValueScope

    @property
    def op(self) -> str:
        return str(self.proto.op_type)

    @property
    def label(self) -> str:
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def values(self) -> list[KnownType]:
        given = [v for v, name in zip(self.operands, self.proto.input, strict=True) if name]
        return given + [v for v, name in zip(self.results, self.proto.output, strict=True) if name]

    def given(self, index: int) -> KnownType | None:
        """The type of an operand; None if the node does not have it."""
        return self.operands[index] if index < len(self.proto.input) and self.proto.input[index] else None
