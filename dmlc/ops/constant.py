"""Constants in the graph."""

from __future__ import annotations

from dmlc.ir import Array, Attributes, Inference, Operation, Tensor, TensorType, Value


class ConstantAttributes(Attributes, frozen=True, kw_only=True):
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


def constant_of(value: Value | None) -> Tensor | None:
    """The data of a value that is a constant; None for others."""
    if value is None or value.producer is None or value.producer.op is not CONSTANT:
        return None
    return value.producer.attributes_as(ConstantAttributes).value
