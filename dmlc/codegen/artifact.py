"""What a code generator returns, and what a runtime needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dmlc.ir import Condition, Graph, TensorType
from dmlc.ir.dim import Interval


@dataclass(frozen=True, slots=True)
class Signature:
    """A model's interface: named, typed inputs and outputs, the bounds of dims, the relations to check."""

    name: str
    inputs: tuple[tuple[str, TensorType], ...]
    outputs: tuple[tuple[str, TensorType], ...]
    bounds: dict[str, Interval] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


def signature_of(graph: Graph) -> Signature:
    """The interface of a graph."""
    return Signature(
        name=graph.name,
        inputs=tuple((v.name or "", v.type) for v in graph.inputs),
        outputs=tuple((n, v.type) for n, v in graph.outputs),
        bounds=dict(graph.dims.bounds),
        conditions=tuple(graph.conditions),
    )


@dataclass(frozen=True, slots=True)
class Artifact:
    """Emitted code: ``payload`` is an ``onnx.ModelProto`` for ``onnx``, source text for ``numpy``.

    ``locations`` maps emitted node names to the source place they came from, for messages of a runtime.
    ``report`` holds sentences about what a user should know (own schemas of ONNX Runtime that were used, ...).
    """

    kind: str
    payload: Any
    signature: Signature
    locations: dict[str, str] = field(default_factory=dict)
    report: tuple[str, ...] = ()
