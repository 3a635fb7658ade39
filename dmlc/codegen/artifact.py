"""Artifact: the result of a code generator, with all that a runtime needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from dmlc.ir import Array, Condition, Graph, TensorType, dim_names
from dmlc.ir.dim import Interval


class Signature(Struct, frozen=True):
    """A model's interface: named, typed inputs and outputs, the bounds of dims, the relations to check.

    ``optional`` are the inputs that have a default, ``ranges`` the promised bounds of inputs. The runtime
    checks the sizes of an imported model.
    """

    name: str
    inputs: tuple[tuple[str, TensorType], ...]
    outputs: tuple[tuple[str, TensorType], ...]
    bounds: dict[str, Interval] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    optional: frozenset[str] = frozenset()
    ranges: dict[str, tuple[int | float, int | float]] = field(default_factory=dict)


def signature_of(graph: Graph, *, checked: bool = False) -> Signature:
    """The interface of a graph.

    An imported model leaves the relations of its sizes to ONNX Runtime, which refuses what it cannot compute. Where it
    runs without, they are to be ``checked`` as those of a program are.
    """
    imported = graph.origin is not None
    names = {name for value in graph.inputs for size in value.shape for name in dim_names(size)}
    return Signature(
        name=graph.name,
        inputs=tuple((v.name or "", v.type) for v in graph.inputs),
        outputs=tuple((n, v.type) for n, v in graph.outputs),
        bounds=dict.fromkeys(sorted(names), (0, inf)) if imported else dict(graph.dims.bounds),
        conditions=() if imported and not checked else tuple(_checkable(graph, names)),
        optional=frozenset(v.name or "" for v in graph.defaults),
        ranges=dict(graph.ranges),
    )


def _checkable(graph: Graph, names: set[str]) -> Iterable[Condition]:
    """The relations of sizes that inputs provide. Others are between sizes that only nodes of a called model know."""
    if graph.joined is None and not graph.dims.provided:
        return graph.conditions
    return [c for c in graph.conditions if dim_names(c.left) | dim_names(c.right) <= names]


def unshared(artifact: Artifact) -> Artifact:
    """A copy whose parts the caller may change."""
    payload = artifact.payload
    if not isinstance(payload, str):
        payload = type(payload)()
        payload.CopyFrom(artifact.payload)
    return replace(artifact, payload=payload, locations=dict(artifact.locations), arrays=dict(artifact.arrays))


class Artifact(Struct, frozen=True):
    """Emitted code: ``payload`` is an ``onnx.ModelProto`` for ``onnx``, source text for ``numpy``.

    ``locations`` maps emitted node names to the source place they came from, for messages of a runtime.
    ``folder`` is where the external data lies that an ONNX model refers to, ``arrays`` what a
    program of the language loads from a file beside it. ``types`` are those of an ONNX model's values, by name.
    ``report`` holds sentences about what a user should know (own schemas of ONNX Runtime that were used, ...).
    """

    kind: str
    payload: Any
    signature: Signature
    locations: dict[str, str] = field(default_factory=dict)
    report: tuple[str, ...] = ()
    folder: Path | None = None
    arrays: dict[str, Array] = field(default_factory=dict)
    types: Mapping[str, TensorType] = field(default_factory=dict)
