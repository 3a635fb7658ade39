"""Less data in a model that shows a fault: smaller sizes, and seeded numbers in place of weights and inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from dmlc.debugging.constants import constant_of
from dmlc.ir import Array
from dmlc.onnx_schema.nested import graphs_of

#: A tensor of so many integers may be a shape, whose entries are sizes.
_MOST_AXES = 8
_FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


@dataclass(frozen=True, slots=True)
class FaultCase:
    """A model with a fault, the right one beside it if that is another model, and the inputs of both.

    ``original`` names the weights and inputs whose numbers are the user's.
    """

    model: ModelProto
    right: ModelProto | None
    feeds: Mapping[str, Any]
    original: frozenset[str]

    @property
    def models(self) -> list[ModelProto]:
        return [self.model] if self.right is None else [self.model, self.right]


class DataReduction:
    """Reduction of a case as long as ``is_bad`` finds the fault in it."""

    def __init__(self, is_bad: Callable[[FaultCase], bool]) -> None:
        self._is_bad = is_bad

    def reduced(self, case: FaultCase) -> FaultCase:
        """The case with smaller sizes and seeded numbers."""
        before = None
        while case is not before:  # an axis may become shorter once another one, of indices into it, has
            before = case
            for size in sorted(_sizes(case), reverse=True):
                case = self._with_smaller_size(case, size)
        for name in sorted(case.feeds):
            case = self._kept(case, _with_seeded_input(case, name))
        for tensor in list(case.model.graph.initializer):
            case = self._kept(case, _with_seeded_weight(case, tensor.name))
        return case

    def _kept(self, case: FaultCase, tried: FaultCase | None) -> FaultCase:
        return case if tried is None or not self._is_bad(tried) else tried

    def _with_smaller_size(self, case: FaultCase, size: int) -> FaultCase:
        """Cut all axes of one size down to one place, to two, else to a half again and again."""
        while size > 1:
            half = size // 2
            for window in dict.fromkeys(((0, 1), (0, 2), (0, half), (half, size))):
                if window[1] - window[0] < size and (found := self._windowed(case, size, window)) is not None:
                    case, size = found, window[1] - window[0]
                    break
            else:
                return case
        return case

    def _windowed(self, case: FaultCase, size: int, window: tuple[int, int]) -> FaultCase | None:
        for with_shapes in (False, True):
            found = _cut_down(case, size, window, with_shapes=with_shapes)
            if found is not None and self._is_bad(found):
                return found
        return None


def _sizes(case: FaultCase) -> set[int]:
    arrays = [np.shape(array) for array in case.feeds.values() if isinstance(array, np.ndarray)]
    tensors = [tuple(tensor.dims) for model in case.models for tensor in _tensors(model)]
    return {size for shape in (*arrays, *tensors) for size in shape if size > 1}


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    yield from model.graph.initializer
    for node in model.graph.node:
        found = _tensor_of(node)
        if found is not None:
            yield found


def _tensor_of(node: NodeProto) -> TensorProto | None:
    """The tensor inside a Constant node, to be changed in place."""
    found = constant_of(node)
    return found if found is not None and node.attribute[0].name == "value" else None


# --- sizes


def _cut_down(case: FaultCase, size: int, window: tuple[int, int], *, with_shapes: bool) -> FaultCase | None:
    """All axes of this size with the elements of a window alone; ``with_shapes`` also the sizes that tensors of few
    integers hold. None if nothing changes."""
    changed = False

    def cut(array: Array) -> Array:
        nonlocal changed
        for axis, extent in enumerate(array.shape):
            if extent == size:
                array = np.take(array, range(*window), axis)
                changed = True
        return array

    models = []
    renamed = False
    for model in case.models:
        out = ModelProto()
        out.CopyFrom(model)
        for tensor in _tensors(out):
            array = np.asarray(numpy_helper.to_array(tensor))
            if array.dtype.kind == "i" and array.ndim <= 1 and array.size <= _MOST_AXES:
                found = np.where(array == size, window[1] - window[0], array) if with_shapes else array
                renamed |= not np.array_equal(found, array)
            else:
                found = cut(array)
            if found is not array:
                tensor.CopyFrom(numpy_helper.from_array(found.astype(array.dtype), tensor.name))
        models.append(out)
    feeds = {name: cut(array) if isinstance(array, np.ndarray) else array for name, array in case.feeds.items()}
    if not changed or renamed is not with_shapes:
        return None
    for model in models:
        _open_shapes(model, feeds)
    return replace(case, model=models[0], right=models[1] if len(models) > 1 else None, feeds=feeds)


def _open_shapes(model: ModelProto, feeds: Mapping[str, Any]) -> None:
    """Declare the inputs as they are fed, the outputs by their rank, and nothing in between."""
    _open_graph(model.graph)
    for info in model.graph.input:
        if info.name in feeds and info.type.HasField("tensor_type"):
            declare_shape(info, np.shape(feeds[info.name]))


def _open_graph(graph: GraphProto) -> None:
    del graph.value_info[:]
    for info in graph.output:
        for dim in info.type.tensor_type.shape.dim:
            dim.Clear()
    for node in graph.node:
        for inner in graphs_of(node):
            _open_graph(inner)


def declare_shape(info: Any, shape: tuple[int, ...]) -> None:
    """Declare the shape of an input or output."""
    del info.type.tensor_type.shape.dim[:]
    info.type.tensor_type.shape.SetInParent()
    for size in shape:
        info.type.tensor_type.shape.dim.add(dim_value=size)


# --- numbers


def _seeded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Multiples of an eighth from -1 to 1, always the same."""
    return np.asarray(np.random.default_rng(0).integers(-8, 9, shape) / 8, dtype)


def _with_seeded_input(case: FaultCase, name: str) -> FaultCase | None:
    array = case.feeds[name]
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or not array.ndim:
        return None
    feeds = {**case.feeds, name: _seeded(array.shape, array.dtype)}
    return replace(case, feeds=feeds, original=case.original - {name})


def _with_seeded_weight(case: FaultCase, name: str) -> FaultCase | None:
    """Elements that both models share are replaced; those that differ are the fault."""
    found = [[t for t in model.graph.initializer if t.name == name] for model in case.models]
    if not all(found) or any(t.data_type not in _FLOATS for (t, *_) in found):
        return None
    arrays = [np.asarray(numpy_helper.to_array(tensor)) for (tensor, *_) in found]
    first = arrays[0]
    if not first.ndim or any(array.shape != first.shape or array.dtype != first.dtype for array in arrays):
        return None
    shared = np.equal(first, arrays[-1])
    models = []
    for model, array in zip(case.models, arrays, strict=True):
        out = ModelProto()
        out.CopyFrom(model)
        (tensor,) = [t for t in out.graph.initializer if t.name == name]
        tensor.CopyFrom(numpy_helper.from_array(np.where(shared, _seeded(first.shape, first.dtype), array), name))
        models.append(out)
    original = case.original - {name} if shared.all() else case.original
    return replace(case, model=models[0], right=models[1] if len(models) > 1 else None, original=original)
