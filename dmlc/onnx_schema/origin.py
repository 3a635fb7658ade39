"""What an imported model says beside its numbers: the form of each node, and the model around them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from onnx import ModelProto, NodeProto, ValueInfoProto

from dmlc.ir import Tensor


@dataclass(frozen=True, slots=True)
class NodeOrigin:
    """A node as the model has it. ``inputs`` says for each of its inputs which operand of the IR node that is, or
    which constant; None where it is absent. ``version`` is that of its domain in the model."""

    proto: NodeProto
    inputs: tuple[int | Tensor | None, ...]
    version: int


@dataclass(frozen=True, slots=True)
class ModelOrigin:
    """The model that a graph came from: ``frame`` is the model without nodes and weights.

    ``folder`` is where its external data lies. ``inputs`` and ``outputs`` are the declarations of its interface, by
    name, as they stand after dims were bound.
    """

    frame: ModelProto
    versions: dict[str, int]
    folder: Path | None = None
    inputs: dict[str, ValueInfoProto] = field(default_factory=dict)
    outputs: dict[str, ValueInfoProto] = field(default_factory=dict)
