"""Initializers of ONNX graphs: their types, their data, and how far two of them are apart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
from onnx import GraphProto, NodeProto, SparseTensorProto, TensorProto, numpy_helper
from onnx import helper as onnx_helper

from dmlc.importers.weights import blocks, external, read_external
from dmlc.ir import Array
from dmlc.ir.answers import Answer, words
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.types import DTYPE_OF, element_name
from dmlc.verifying.worst import WorstElement, worst_element

#: The bytes of external data that are read at once.
_BLOCK = 1 << 24


def type_name(elem_type: int) -> str:
    """The name of an ONNX element type: the language's, else ONNX's in lower case."""
    return DTYPE_OF[elem_type].name if elem_type in DTYPE_OF else element_name(elem_type)


def shape_text(sizes: Sequence[object]) -> str:
    return f"[{', '.join(map(str, sizes))}]"


class Constant:
    """An initializer, or a Constant node, of a graph; ``folder`` is where its external data lies."""

    def __init__(self, name: str, tensor: TensorProto, folder: Path | None) -> None:
        self.name: str = name
        self.tensor: TensorProto = tensor
        self.folder: Path | None = folder

    @property
    def type_text(self) -> str:
        return f"{type_name(self.tensor.data_type)}{shape_text(self.tensor.dims)}"

    @property
    def data(self) -> Array:
        """The elements. Raises ``DmlcError`` for external data that cannot be read."""
        if self.tensor.data_location != TensorProto.EXTERNAL:
            return np.asarray(numpy_helper.to_array(self.tensor))
        filled = TensorProto(data_type=self.tensor.data_type, dims=self.tensor.dims)
        filled.raw_data = read_external(external(self.tensor, self.folder))
        return np.asarray(numpy_helper.to_array(filled))

    @cached_property
    def digest(self) -> bytes:
        """A hash of the type and the elements. External data is read in blocks: it may not fit the memory."""
        found = hashlib.blake2b(self.type_text.encode(), digest_size=16)
        stored = external(self.tensor, self.folder) if self.tensor.data_location == TensorProto.EXTERNAL else None
        if stored is not None and self.tensor.data_type in DTYPE_OF:  # no elements of 4 bits, which are packed
            for block in blocks(stored, _BLOCK):
                found.update(block)
            return found.digest()
        data = self.data
        found.update(repr(data.tolist()).encode() if data.dtype.kind == "O" else data.tobytes())
        return found.digest()


class ConstantChange(Answer, frozen=True):
    """A constant that one model lacks, or that has another type or other elements.

    ``status`` is ``added``, ``removed``, ``retyped`` or ``changed``; ``a`` and ``b`` are the types. ``worst`` is set
    where elements differ.
    """

    name: str
    status: Annotated[str, words("added", "removed", "changed", "retyped")]
    a: str | None = None
    b: str | None = None
    worst: WorstElement | None = None

    def __str__(self) -> str:
        if self.status == "added":
            return f"added {self.name}: {self.b}"
        if self.status == "removed":
            return f"removed {self.name}: {self.a}"
        if self.worst is None:
            return f"changed {self.name}: {self.a} -> {self.b}"
        return f"changed {self.name}: {self.a}, {self.worst}"


def compared(name: str, a: Constant, b: Constant) -> ConstantChange | None:
    """The difference of two constants; None if all bits are the same. Raises as ``Constant.data`` does."""
    if a.type_text != b.type_text:
        return ConstantChange(name, "retyped", a.type_text, b.type_text)
    if a.digest == b.digest:
        return None
    worst = worst_element(a.data, b.data)
    if worst is None:  # zeros of another sign, or other bits of a NaN
        return ConstantChange(name, "changed", a.type_text, f"{b.type_text}, other bits of equal numbers")
    return ConstantChange(name, "changed", a.type_text, b.type_text, worst)


def constant_of(node: NodeProto) -> TensorProto | None:
    """The tensor of a Constant node; None for any other node, and for a sparse or absent one."""
    if node.op_type != "Constant" or plain_domain(node.domain) or len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    if attribute.name == "value":
        return attribute.t
    kinds = {
        "value_float": (TensorProto.FLOAT, [], [attribute.f]),
        "value_floats": (TensorProto.FLOAT, [len(attribute.floats)], list(attribute.floats)),
        "value_int": (TensorProto.INT64, [], [attribute.i]),
        "value_ints": (TensorProto.INT64, [len(attribute.ints)], list(attribute.ints)),
        "value_string": (TensorProto.STRING, [], [attribute.s]),
        "value_strings": (TensorProto.STRING, [len(attribute.strings)], list(attribute.strings)),
    }
    found = kinds.get(attribute.name)
    return None if found is None else onnx_helper.make_tensor("", *found)


def constants_of(graph: GraphProto, folder: Path | None) -> dict[str, Constant]:
    """The initializers and the Constant nodes of a graph by the name of their value."""
    found = {tensor.name: Constant(tensor.name, tensor, folder) for tensor in graph.initializer}
    for node in graph.node:
        tensor = constant_of(node)
        if tensor is not None and node.output:
            found.setdefault(node.output[0], Constant(node.output[0], tensor, folder))
    return found


def sparse_digest(tensor: SparseTensorProto) -> bytes:
    """The bytes that two equal sparse tensors share."""
    return bytes(tensor.SerializeToString(deterministic=True))
