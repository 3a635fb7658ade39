"""Constants in the graph."""

from __future__ import annotations

from dataclasses import dataclass

from dmlc.ir import Array, Attributes, Inference, Operation, Tensor, TensorType


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantAttributes(Attributes):
    value: Tensor


def _infer(call: Inference) -> list[TensorType]:
    value: Tensor = call.attributes.value
    return [value.type]


def _reference(attributes: ConstantAttributes) -> Array:
    return attributes.value.array


CONSTANT = Operation(
    name="constant",
    operands=(),
    attributes=ConstantAttributes,
    infer=_infer,
    reference=_reference,
    summary="Data known while compiling.",
)
