"""Parts of a model as models of their own: some of its nodes, with the values that enter and leave them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from dmlc.debugging.constants import Constant, constant_of
from dmlc.debugging.insides import NodeRecord, record_of
from dmlc.onnx_schema.nested import values_read_by
from dmlc.runtime.runnable import NotRunnable, RunFailed
from dmlc.runtime.weights import tensors_of
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.onnx_subject import OnnxSubject

_TENSOR = re.compile(r"tensor\((\w+)\)")
_WRAPPED = re.compile(r"(seq|optional)\((.*)\)")


class NodeGraph:
    """The nodes of a model that its outputs depend on, by number in topological order. Constant nodes do not count:
    they go with the nodes that read them.

    ``reads`` and ``makes`` have for each node the values of other nodes that it reads and its results; ``readers``
    the nodes that read a value.
    """

    def __init__(self, model: ModelProto, folder: Path | None = None) -> None:
        self.model: ModelProto = _with_weights_inside(model, folder)
        graph = self.model.graph
        self._results = {info.name for info in graph.output}
        self._constants = {node.output[0]: node for node in graph.node if constant_of(node) is not None}
        alive = _ancestors(graph.node, self._results)
        self.protos: list[NodeProto] = [
            node for node, lives in zip(graph.node, alive, strict=True) if lives and not self._is_data(node)
        ]
        self.makes: list[tuple[str, ...]] = [tuple(name for name in node.output if name) for node in self.protos]
        self.makers: dict[str, int] = {name: number for number, names in enumerate(self.makes) for name in names}
        read = [tuple(dict.fromkeys(values_read_by(node))) for node in self.protos]
        self.reads: list[tuple[str, ...]] = [tuple(name for name in names if name in self.makers) for names in read]
        self._outside = [tuple(name for name in names if name not in self.makers) for names in read]
        readers: dict[str, list[int]] = defaultdict(list)
        for number, names in enumerate(self.reads):
            for name in names:
                readers[name].append(number)
        self.readers: Mapping[str, Sequence[int]] = readers

    def _is_data(self, node: NodeProto) -> bool:
        return bool(node.output) and self._constants.get(node.output[0]) is node

    def __len__(self) -> int:
        return len(self.protos)

    def record(self, number: int) -> NodeRecord:
        """The node for a report."""
        return record_of(self.protos[number])

    def is_result(self, value: str) -> bool:
        """True for an output of the model."""
        return value in self._results

    def leaving(self, part: Collection[int]) -> list[str]:
        """The values that the nodes of a part make and nodes outside it read, or that are outputs of the model."""
        return [
            name
            for number in sorted(part)
            for name in self.makes[number]
            if name in self._results or any(reader not in part for reader in self.readers.get(name, ()))
        ]

    def entering(self, part: Collection[int]) -> list[str]:
        """The values that the nodes of a part read and nodes outside it make."""
        found = (name for number in sorted(part) for name in self.reads[number])
        return list(dict.fromkeys(name for name in found if self.makers[name] not in part))

    def crossing(self, part: Collection[int]) -> int:
        """Number of values that the nodes of a part make and nodes outside it read."""
        return sum(
            any(reader not in part for reader in self.readers.get(name, ())) for n in part for name in self.makes[n]
        )

    def ancestors(self, part: Iterable[int], given: Collection[str] = ()) -> set[int]:
        """The nodes of a part and all that they depend on, up to values that are given."""
        found: set[int] = set()
        pending = list(part)
        while pending:
            number = pending.pop()
            if number not in found:
                found.add(number)
                pending += [self.makers[name] for name in self.reads[number] if name not in given]
        return found

    def part(
        self,
        nodes: Collection[int],
        fed: Mapping[str, Any] | None = None,
        outputs: Sequence[str] | None = None,
        *,
        all_inputs: bool = True,
    ) -> ModelProto:
        """The model of some nodes. Values that enter are inputs, of the shapes that ``fed`` has; values that leave are
        outputs, unless ``outputs`` names them. With ``all_inputs`` it has all inputs of the model too, read or not."""
        entering, leaving = self.entering(nodes), list(self.leaving(nodes) if outputs is None else outputs)
        graph, chosen = self.model.graph, sorted(nodes)
        outside = {name for number in chosen for name in self._outside[number]}
        out = ModelProto()
        out.CopyFrom(self._frame)
        constants = [self._constants[name] for name in self._constants if name in outside]
        out.graph.node.extend([*constants, *(self.protos[number] for number in chosen)])
        out.graph.initializer.extend(tensor for tensor in graph.initializer if tensor.name in outside)
        out.graph.sparse_initializer.extend(t for t in graph.sparse_initializer if t.values.name in outside)
        held = {tensor.name for tensor in graph.initializer}
        for info in graph.input:
            if info.name in outside or (all_inputs and info.name not in held):
                out.graph.input.append(info)
        types = self._types((*entering, *leaving))
        out.graph.input.extend(_declared(types[name], None if fed is None else fed.get(name)) for name in entering)
        out.graph.output.extend(types[name] for name in leaving)
        inner = {name for number in chosen for name in self.makes[number]} - set(leaving)
        out.graph.value_info.extend(info for info in graph.value_info if info.name in inner)
        return out

    @cached_property
    def _frame(self) -> ModelProto:
        """The model without nodes, data and names of its makers."""
        out = ModelProto()
        for field, value in self.model.ListFields():
            if field.name == "graph":
                out.graph.name = value.name
            elif field.name in ("opset_import", "metadata_props", "functions"):
                getattr(out, field.name).extend(value)
            elif field.name == "ir_version":
                out.ir_version = value
        return out

    @cached_property
    def _declared_types(self) -> dict[str, ValueInfoProto]:
        graph = self.model.graph
        found = {info.name: info for info in (*graph.value_info, *graph.output) if info.HasField("type")}
        return {name: info for name, info in found.items() if name in self.makers}

    def _types(self, names: tuple[str, ...]) -> dict[str, ValueInfoProto]:
        """Types that the model declares, and else the dtypes that ONNX Runtime knows."""
        found = dict(self._declared_types)
        missing = [name for name in names if name not in found]
        if missing:
            found |= {name: info for name, info in self._inferred.items() if name in missing}
        return {name: found.get(name, ValueInfoProto(name=name)) for name in names}

    @cached_property
    def _inferred(self) -> dict[str, ValueInfoProto]:
        names = [name for name in self.makers if name not in self._declared_types]
        try:
            texts = OnnxSubject(self.model).value_types(names)
        except (NotRunnable, RunFailed):
            return {}
        types = {name: _type_of(text) for name, text in texts.items()}
        return {name: ValueInfoProto(name=name, type=type_) for name, type_ in types.items() if type_ is not None}


def fed_values(feeds: Feeds, values: Mapping[str, Any], part: ModelProto) -> Feeds:
    """Feeds of a part of the model: the inputs of the model, and values that enter it."""
    names = {info.name for info in part.graph.input}
    return {name: array for name, array in {**feeds, **values}.items() if name in names}


def _ancestors(nodes: Sequence[NodeProto], outputs: Iterable[str]) -> list[bool]:
    """True for each node that an output depends on."""
    wanted, found = set(outputs), []
    for node in reversed(nodes):
        lives = any(name in wanted for name in node.output)
        found.append(lives)
        if lives:
            wanted.update(values_read_by(node))
    return found[::-1]


def _with_weights_inside(model: ModelProto, folder: Path | None) -> ModelProto:
    """A copy with the data of all initializers. Raises ``DmlcError`` for external data that cannot be read."""
    out = ModelProto()
    out.CopyFrom(model)
    for tensor in tensors_of(out):
        _fill(tensor, folder)
    return out


def _fill(tensor: TensorProto, folder: Path | None) -> None:
    if tensor.data_location == TensorProto.EXTERNAL:
        data = Constant(tensor.name, tensor, folder).data
        filled = helper.make_tensor(tensor.name, tensor.data_type, tensor.dims, data.tobytes(), raw=True)
        tensor.CopyFrom(filled)


def _type_of(text: str) -> TypeProto | None:
    """The type that ONNX Runtime writes as ``tensor(float)`` or ``seq(tensor(float))``."""
    match = _TENSOR.fullmatch(text)
    if match is not None and match[1].upper() in set(TensorProto.DataType.keys()):
        return helper.make_tensor_type_proto(TensorProto.DataType.Value(match[1].upper()), None)
    wrapped = _WRAPPED.fullmatch(text)
    inner = None if wrapped is None else _type_of(wrapped[2])
    if wrapped is None or inner is None:
        return None
    make = helper.make_sequence_type_proto if wrapped[1] == "seq" else helper.make_optional_type_proto
    return make(inner)


def _declared(info: ValueInfoProto, value: Any) -> ValueInfoProto:
    """The value as an input: of the shape of its data where it is a tensor."""
    out = ValueInfoProto()
    out.CopyFrom(info)
    is_array = isinstance(value, np.ndarray | np.generic)
    if is_array and not out.type.WhichOneof("value"):
        out.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype)
    if is_array and out.type.HasField("tensor_type"):
        del out.type.tensor_type.shape.dim[:]
        out.type.tensor_type.shape.SetInParent()
        for size in np.shape(value):
            out.type.tensor_type.shape.dim.add(dim_value=size)
    return out
