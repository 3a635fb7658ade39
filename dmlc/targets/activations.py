"""Activations that the DirectML provider computes within the operator before them.

The provider fuses them at level 2, node by node, in the outermost graph: the operator before has one use, and the
activation one operand (onnxruntime 1.30 providers/dml: ``GraphTransformer.cpp``, ``OperatorUtility.cpp``).
"""

from __future__ import annotations

_SIMPLE = frozenset(("Relu", "LeakyRelu"))
_ACTIVATIONS = _SIMPLE | frozenset(
    (
        *("Elu", "HardSigmoid", "ParametricSoftplus", "ScaledTanh", "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh"),
        "ThresholdedRelu",
    )
)
#: The operators that take an activation, with those that they take.
HOSTS = {
    **dict.fromkeys(
        ("BatchNormalization", "Conv", "ConvTranspose", "Gemm", "InstanceNormalization", "MatMul"), _ACTIVATIONS
    ),
    "MeanVarianceNormalization": _ACTIVATIONS,
    **dict.fromkeys(("Add", "Sum"), _SIMPLE),
}


def takes_activation(host: str, operands: int, activation: str) -> bool:
    """Return whether the provider fuses an operator of ``activation`` into the one before it, ``host``."""
    return activation in HOSTS.get(host, ()) and (host != "Sum" or operands == 2)
