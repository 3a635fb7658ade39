"""Shapes that the user fixes for the inputs of a model: they are declared before anything is inferred."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, TensorShapeProto, TypeProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.shapes import SHAPE_DOES_NOT_FIT
from dmlc.inference.protos import NO_NAMES
from dmlc.ir import Dim, symbol
from dmlc.ir.fixed_shapes import DeclaredInput, FixedShape, bound_dims, shape_option, shape_text


def fix_shapes(model: ModelProto, shapes: Mapping[str, FixedShape], binding: Mapping[str, int]) -> dict[str, int]:
    """Declare the shapes at the inputs of the model, in place, and return the dims that are bound.

    An open rank becomes a fixed one, an open size without a name the given one. A dim with a name keeps it: it is
    returned with ``binding``, for it means the same size wherever it stands. Raises ``DmlcError`` E0337.
    """
    if not shapes:
        return dict(binding)
    graph = model.graph
    weights = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    weights |= {sparse.values.name: tuple(sparse.dims) for sparse in graph.sparse_initializer}
    is_listed = model.ir_version < 4  # every weight is, and none can be fed
    inputs = {info.name: info.type for info in graph.input if not (is_listed and info.name in weights)}
    for name, shape in shapes.items():
        kind = inputs[name].WhichOneof("value") if name in inputs else "tensor_type"
        if kind != "tensor_type":
            has = "declares no type" if kind is None else f"is a {kind.removesuffix('_type')}, which has no shape"
            raise fail(
                SHAPE_DOES_NOT_FIT, f"{shape_text(name, shape)}: {name} {has}", help=f"drop {shape_option(name)}"
            )
    declared = {name: DeclaredInput(_sizes(type), None, weights.get(name)) for name, type in inputs.items()}
    out = bound_dims(declared, shapes, binding)
    for name, shape in shapes.items():
        _declare(inputs[name].tensor_type, shape)
    return out


def _sizes(type: TypeProto) -> tuple[Dim | None, ...] | None:
    """The declared sizes; None for an open one without a name, and for all where the rank is open."""
    tensor = type.tensor_type
    return tuple([_size(dim) for dim in tensor.shape.dim]) if tensor.HasField("shape") else None


def _size(dim: TensorShapeProto.Dimension) -> Dim | None:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return None if dim.dim_param in NO_NAMES else symbol(dim.dim_param)


def _declare(tensor: TypeProto.Tensor, shape: FixedShape) -> None:
    if not tensor.HasField("shape"):
        tensor.shape.SetInParent()
        for _ in shape:
            tensor.shape.dim.add()
    for dim, size in zip(tensor.shape.dim, shape, strict=True):
        if size is not None and _size(dim) is None:
            dim.dim_value = size
