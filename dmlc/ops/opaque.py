"""Opaque nodes: operators without an equivalent in the language, kept as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from dmlc.ir import Attributes, Dim, Inference, Node, Operation, Tensor, TensorType, substitute
from dmlc.ops.constant import CONSTANT

#: An attribute's value: hashable. Bytes are text that is not UTF-8.
Plain: TypeAlias = "int | float | str | bytes | Tensor | tuple[int | float | str | bytes, ...]"


class Held:
    """Something of the model that is passed on as it is and equals only itself."""

    __slots__ = ("name", "proto")

    def __init__(self, proto: Any, name: str = "") -> None:
        self.proto: Any = proto
        self.name: str = name


class OpaqueAttributes(Attributes, frozen=True, kw_only=True):
    """An ONNX operator and the types of its results, which whoever makes the node knows.

    ``attributes`` are those that are set, sorted by name. ``unplain`` holds the attributes that have no plain value
    (types, sparse tensors), compared by identity.
    """

    op_type: str
    domain: str = ""
    types: tuple[TensorType, ...]
    attributes: tuple[tuple[str, Plain], ...] = ()
    unplain: tuple[Held, ...] = ()

    def substitute(self, binding: Mapping[str, Dim]) -> OpaqueAttributes:
        types = tuple(
            [t.with_shape(tuple([substitute(d, binding) for d in t.shape])) if t.shape else t for t in self.types]
        )
        return self if types == self.types else replace(self, types=types)

    @property
    def full_name(self) -> str:
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type


def _infer(call: Inference) -> Sequence[TensorType]:
    types: tuple[TensorType, ...] = call.attributes.types
    return types


def _operation(name: str, *, pure: bool) -> Operation:
    return Operation(
        name=name,
        operands=(),
        attributes=OpaqueAttributes,
        results=("results",),
        infer=_infer,
        summary="An ONNX operator that is passed through.",
        pure=pure,
        source="onnx.defs",
    )


OPAQUE = _operation("opaque", pure=True)
#: One whose results differ from call to call, or that may do more than compute: neither merged nor removed.
OPAQUE_IMPURE = _operation("opaque_impure", pure=False)


def is_opaque(node: Node | None, op_type: str, domain: str = "") -> bool:
    """Return whether the node is an opaque node of that ONNX operator."""
    if node is None or node.op is not OPAQUE:
        return False
    a = node.attributes_as(OpaqueAttributes)
    return a.op_type == op_type and a.domain == domain


def calls_by_name(node: Node) -> bool:
    """Return whether the node finds the inputs and outputs of graphs inside it by name; ONNX's own go by position."""
    return node.attributes_as(OpaqueAttributes).domain != ""


def attribute_of(node: Node, name: str, default: Any = None) -> Any:
    """The attribute of an opaque node, or ``default`` where it is not set."""
    for key, value in node.attributes_as(OpaqueAttributes).attributes:
        if key == name:
            return value
    return default


# --- Names of nodes, the same in messages, in the ledger and in the emitted model


def title_of(node: Node) -> str:
    """The ONNX operator that a node becomes, or the operation in ONNX's manner: ``reduce_sum`` is ``ReduceSum``."""
    if isinstance(node.attributes, OpaqueAttributes):
        return node.attributes.op_type
    return node.op.onnx_title


def node_name(node: Node) -> str:
    """The node as a user knows it: its name in an imported model, else ``VALUE/OPERATOR`` by the value that it makes,
    else the operator."""
    if node.name:
        return node.name
    made = next((r.name for r in node.results if r.name), None)
    if made is not None and node.op is CONSTANT:
        return made
    return title_of(node) if made is None else f"{made}/{title_of(node)}"
