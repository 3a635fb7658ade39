"""What is known of a model's values: types, small constants, and what is constant at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import lru_cache

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, defs, helper, numpy_helper

from dmlc.ir import Array, Dim, TensorType, dim_names, product, symbol
from dmlc.ir.dim import substitute
from dmlc.records import dataclass

_NAMES = {
    TensorProto.FLOAT16: "f16",
    TensorProto.FLOAT: "f32",
    TensorProto.DOUBLE: "f64",
    TensorProto.BFLOAT16: "bf16",
    TensorProto.INT8: "i8",
    TensorProto.INT16: "i16",
    TensorProto.INT32: "i32",
    TensorProto.INT64: "i64",
    TensorProto.UINT8: "u8",
    TensorProto.UINT16: "u16",
    TensorProto.UINT32: "u32",
    TensorProto.UINT64: "u64",
    TensorProto.BOOL: "bool",
    TensorProto.STRING: "string",
    TensorProto.INT4: "i4",
    TensorProto.UINT4: "u4",
}
_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "bool": 1} | {
    f"{s}{b}": b // 8 for s in "iu" for b in (8, 16, 32, 64)
}
#: Constants up to this many elements are read.
_READ = 1024


@dataclass(frozen=True, slots=True)
class Known:
    """A value: its element type and its shape, None for what is not known. ``other`` is no tensor of a listed type."""

    dtype: str | None = None
    shape: tuple[Dim, ...] | None = None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def static(self) -> bool:
        return self.shape is not None and all(isinstance(size, int) for size in self.shape)

    @property
    def empty(self) -> bool:
        return self.shape is not None and 0 in self.shape

    @property
    def bytes(self) -> Dim | None:
        size = _BYTES.get(self.dtype or "")
        return None if size is None or self.shape is None else product(self.shape) * size

    @property
    def text(self) -> str:
        sizes = "?" if self.shape is None else ", ".join(map(str, self.shape))
        return f"{self.dtype or '?'}[{sizes}]"


NOTHING = Known()


@dataclass(slots=True)
class Scope:
    """The values that a graph sees. ``constant`` are those known before the model runs, ``arrays`` the small ones.

    What is known alike is one object: ``kinds`` holds all that scopes of one model have.
    """

    types: dict[str, Known] = field(default_factory=dict)
    constant: set[str] = field(default_factory=set)
    arrays: dict[str, Array] = field(default_factory=dict)
    inputs: set[str] = field(default_factory=set)
    on_cpu: set[str] = field(default_factory=set)
    kinds: dict[Known, Known] = field(default_factory=dict)

    def inner(self) -> Scope:
        return Scope(dict(self.types), set(self.constant), dict(self.arrays), set(), set(self.on_cpu), self.kinds)

    def know(self, name: str, known: Known) -> None:
        self.types[name] = self.kinds.setdefault(known, known)

    def of(self, name: str) -> Known:
        return self.types.get(name, NOTHING)

    def declare(self, graph: GraphProto, given: Mapping[str, TensorType], binding: Mapping[str, int]) -> None:
        """Take over what a graph says of its values; ``given`` is known better than what it says."""
        for infos in (graph.value_info, graph.input, graph.output):
            for info in infos:
                self.know(info.name, _known(info.type, binding))
        self._take_given(given, binding)
        self.inputs = {info.name for info in graph.input}
        for tensor in graph.initializer:
            if tensor.name not in self.inputs:
                self.add_constant(tensor.name, tensor)

    def _take_given(self, given: Mapping[str, TensorType], binding: Mapping[str, int]) -> None:
        for name, type in given.items():
            if type.dtype.name in _BYTES and not self.of(name).static:
                shape = tuple([_bound(size, binding) for size in type.shape])
                self.know(name, Known(type.dtype.name, shape))

    def add_constant(self, name: str, tensor: TensorProto) -> None:
        self.constant.add(name)
        self.know(name, Known(_NAMES.get(tensor.data_type, "other"), tuple(tensor.dims)))
        count = 1
        for size in tensor.dims:
            count *= size
        has_data = count == 0 or any(f.name.endswith("_data") for f, _ in tensor.ListFields())
        if count <= _READ and tensor.data_location != TensorProto.EXTERNAL and has_data:
            try:
                self.arrays[name] = numpy_helper.to_array(tensor)
            except (ValueError, TypeError, KeyError):  # a tensor without its data
                return

    def add_constant_node(self, node: NodeProto) -> None:
        for attribute in node.attribute:
            if attribute.name == "value":
                self.add_constant(node.output[0], attribute.t)
            elif attribute.name.startswith("value_"):
                value = np.asarray(helper.get_attribute_value(attribute))
                kind = {"f": "f32", "i": "i64"}.get(value.dtype.kind, "string")
                self.know(node.output[0], Known(kind, value.shape))
                self.arrays[node.output[0]] = value
        self.constant.update(node.output)


def _bound(size: Dim, binding: Mapping[str, int]) -> Dim:
    return size if isinstance(size, int) or not binding else substitute(size, binding)


def _known(type: TypeProto, binding: Mapping[str, int]) -> Known:
    if not type.HasField("tensor_type"):
        return Known("other") if type.WhichOneof("value") else NOTHING
    tensor = type.tensor_type
    dtype = _NAMES.get(tensor.elem_type, "other") if tensor.elem_type else None
    if not tensor.HasField("shape"):
        return Known(dtype)
    sizes: list[Dim] = []
    for index, size in enumerate(tensor.shape.dim):
        if size.HasField("dim_value"):
            sizes.append(size.dim_value)
        else:
            sizes.append(binding.get(size.dim_param, symbol(size.dim_param or f"?{index}")))
    return Known(dtype, tuple(sizes))


def bind(model: ModelProto, binding: Mapping[str, int]) -> ModelProto:
    """The model with dims of its inputs fixed, as a free dimension override does; the model itself is not changed."""
    out = ModelProto()
    out.CopyFrom(model)
    del out.graph.value_info[:]
    for info in (*out.graph.input, *out.graph.output):
        for size in info.type.tensor_type.shape.dim:
            if size.dim_param in binding:
                size.dim_value = binding[size.dim_param]
    return out


def names_of(values: Iterable[Known]) -> list[str]:
    """The names of the open sizes, sorted."""
    return sorted({n for v in values if v.shape is not None for size in v.shape for n in dim_names(size)})


def attribute(node: NodeProto, name: str) -> object:
    """The value of an attribute in Python; None where it is not given."""
    for found in node.attribute:
        if found.name == name and found.type not in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            value = helper.get_attribute_value(found)
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return None


@lru_cache(maxsize=4096)
def parameters(domain: str, op_type: str, opset: int) -> tuple[tuple[str, ...], tuple[str, ...], bool] | None:
    """The type parameters of an operator's operands and results, and whether the last of the operands repeats."""
    try:
        schema = defs.get_schema(op_type, opset, domain)
    except defs.SchemaError:
        return None
    variadic = bool(schema.inputs) and schema.inputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic
    return tuple(p.type_str for p in schema.inputs), tuple(p.type_str for p in schema.outputs), variadic
