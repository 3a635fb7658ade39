"""Bounds on elements that the operators before a value show."""

from __future__ import annotations

from onnx import NodeProto

from dmlc.placement.values import ValueScope, attribute

#: Operators whose results lie in [-1, 1], and operators that keep such a range.
_UNIT = frozenset(("Cos", "Erf", "HardSigmoid", "Hardmax", "Sigmoid", "Sin", "Softmax", "Softsign", "Tanh"))
_KEEPS_RANGE = frozenset(
    (
        *("AveragePool", "Concat", "Dropout", "Expand", "Flatten", "Gather", "Identity", "MaxPool", "Neg", "Reshape"),
        *("Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    )
)
#: The largest magnitude of the types of one byte.
_BYTES = {"bool": 1.0, "i8": 128.0, "u8": 255.0}
_STEPS = 8


def bound_of(name: str, scope: ValueScope) -> float | None:
    """Return a number that no element of a value exceeds in magnitude; None if the operators before it show none."""
    for _ in range(_STEPS):
        found = scope.made_by.get(name)
        if found is None:
            return None
        if found.op_type in _UNIT:
            return 1.0
        bound = _clipped(found, scope) if found.op_type == "Clip" else _cast(found, scope)
        if bound is not None:
            return bound
        if found.op_type not in _KEEPS_RANGE or (found.op_type == "Concat" and len(set(found.input)) > 1):
            return None
        name = found.input[0]
    return None


def _clipped(node: NodeProto, scope: ValueScope) -> float | None:
    bounds = [attribute(node, name) for name in ("min", "max")]
    for index, name in enumerate(node.input[1:3]):
        found = scope.floats.get(name)
        bounds[index] = None if found is None else found.number
    numbers = [abs(bound) for bound in bounds if isinstance(bound, (int, float))]
    return max(numbers) if len(numbers) == len(bounds) else None


def _cast(node: NodeProto, scope: ValueScope) -> float | None:
    return _BYTES.get(scope.of(node.input[0]).dtype or "") if node.op_type == "Cast" else None
