"""A model on ONNX Runtime's CPU provider as it stands: no optimization, one thread, every value within reach."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, load, numpy_helper

from dmlc.ir import Array
from dmlc.verify.inputs import Feeds, Interface
from dmlc.verify.onnx_interface import interfaces, is_exotic, kind_of, required_inputs
from dmlc.verify.trace import NotVerifiable, RunFailed, Step, op_key

#: A model, or where it lies.
ModelSource: TypeAlias = "ModelProto | str | os.PathLike[str]"

#: Where external data of a model that is given as bytes lies (onnxruntime_session_options_config_keys.h).
_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
#: What arrays of ONNX Runtime's names for types come as.
_PLAIN_TYPES = re.compile(r"tensor\((float|float16|double|u?int(8|16|32|64)|bool)\)")
_EXOTIC_TYPES = re.compile(r"tensor\((bfloat16|float[48]\w*|u?int[24])\)")
#: Initializers up to this many bytes are read to be shown as operands.
_KNOWN_BYTES = 1 << 16


class OnnxSide:
    """One model. Raises ``NotVerifiable`` where ONNX Runtime cannot load it.

    Types that NumPy lacks are fed and handed over in f32 or i8, which the model casts.
    """

    def __init__(self, source: ModelSource, folder: Path | None = None) -> None:
        if isinstance(source, ModelProto):
            self._model, self._folder = source, folder
        else:
            path = Path(source)
            try:
                self._model, self._folder = load(path, load_external_data=False), path.absolute().parent
            except Exception as error:  # protobuf's errors and OSError
                raise NotVerifiable(f"{path} cannot be read: {error}") from None
        graph = self._model.graph
        needed, optional = required_inputs(graph, self._model.ir_version)
        self.input_names = tuple(info.name for info in needed)
        self.output_names = tuple(info.name for info in graph.output)
        self.kinds = {
            info.name: kind_of(info.type.tensor_type.elem_type)
            for info in graph.output
            if info.type.HasField("tensor_type") and is_exotic(info.type.tensor_type.elem_type)
        }
        self.size = len(graph.node)
        self.defines_empty = False
        self.types = {info.name: _type_text(info) for info in (*needed, *optional)}
        self._session, self._names = self._load(list(self.output_names))
        self._traces: dict[str, tuple[Any, dict[str, str], list[NodeProto]]] = {}

    def interfaces(self) -> list[Interface]:
        return interfaces(self._model)

    def run(self, feeds: Feeds) -> dict[str, Any]:
        return self._run(self._session, self._names, feeds)

    def trace(self, feeds: Feeds, output: str) -> list[Step] | None:
        if output not in self._traces:
            nodes = _ancestors(self._model.graph, output)
            names = list(dict.fromkeys(name for node in nodes for name in node.output if name))
            self._traces[output] = (*self._load(names, only_numbers=True), nodes)
        session, fetched, nodes = self._traces[output]
        values = self._run(session, fetched, feeds)
        used = {name for node in nodes for name in _inputs_of(node)}
        for tensor in self._model.graph.initializer:
            if tensor.name in used and tensor.name not in feeds:
                values[tensor.name] = _small_data(tensor)
        values.update({name: array for name, array in feeds.items() if isinstance(array, np.ndarray)})
        return [_step(node, values) for node in nodes]

    # --- sessions

    def _load(self, outputs: list[str], *, only_numbers: bool = False) -> tuple[Any, dict[str, str]]:
        """A session that gives these values, and the name that each is fetched by."""
        fed = {
            info.name: info.type.tensor_type.elem_type
            for info in self._model.graph.input
            if info.type.HasField("tensor_type") and is_exotic(info.type.tensor_type.elem_type)
        }
        session = self._open(outputs, fed, {})
        found = {value.name: value.type for value in session.get_outputs()}
        exotic = {name: type_ for name, type_ in found.items() if _EXOTIC_TYPES.fullmatch(type_)}
        if exotic:
            session = self._open(outputs, fed, exotic)
        names = {name: _cast_name(name) if name in exotic else name for name in outputs}
        if only_numbers:
            names = {n: f for n, f in names.items() if n in exotic or _PLAIN_TYPES.fullmatch(found.get(n, ""))}
        return session, names

    def _open(self, outputs: list[str], fed: dict[str, int], exotic: dict[str, str]) -> Any:
        """A session; ``fed`` and ``exotic`` values are cast where they come in and go out."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        if self._folder is not None:
            options.add_session_config_entry(_WEIGHTS_FOLDER, str(self._folder.absolute()))
        model = self._model
        if outputs != list(self.output_names) or fed or exotic:
            model = _adapted(self._model, outputs, fed, exotic)
        try:
            data = model.SerializeToString()
            return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise NotVerifiable(f"ONNX Runtime refuses the model: {_message(error)}") from None

    def _run(self, session: Any, names: dict[str, str], feeds: Feeds) -> dict[str, Any]:
        try:
            results = session.run(list(names.values()), feeds)
        except Exception as error:  # as above
            raise RunFailed(_message(error)) from None
        return dict(zip(names, results, strict=True))


def _message(error: Exception) -> str:
    text = " ".join(str(error).split())
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)[:300]


def _type_text(info: ValueInfoProto) -> str:
    """Enough of a type to tell whether two models are fed the same."""
    which = info.type.WhichOneof("value") or ""
    if which != "tensor_type":
        return which.replace("_type", "")
    return str(TensorProto.DataType.Name(info.type.tensor_type.elem_type)).lower()


# --- models with other interfaces


def _cast_name(name: str) -> str:
    return f"{name}//as a number"


def _adapted(model: ModelProto, outputs: Sequence[str], fed: dict[str, int], exotic: dict[str, str]) -> ModelProto:
    """The model with these outputs, fed in types that NumPy has."""
    out = ModelProto()
    out.CopyFrom(model)
    graph = out.graph
    casts = []
    for info in graph.input:
        if info.name in fed:
            wide = helper.np_dtype_to_tensor_dtype(np.dtype(_fed_as(kind_of(fed[info.name]))))
            info.type.tensor_type.elem_type = wide
            _rename_uses(graph, info.name, inner := f"{info.name}//as declared")
            casts.append(helper.make_node("Cast", [info.name], [inner], to=fed[info.name]))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    declared = {info.name: info for info in graph.output}
    kept = [declared.get(name) or ValueInfoProto(name=name) for name in outputs if name not in exotic]
    kept = [_copy(info) for info in kept]
    for name, type_ in exotic.items():
        to = TensorProto.INT8 if "int" in type_ else TensorProto.FLOAT
        graph.node.append(helper.make_node("Cast", [name], [_cast_name(name)], to=to))
        kept.append(ValueInfoProto(name=_cast_name(name)))
    del graph.output[:]
    graph.output.extend(kept)
    return out


def _fed_as(kind: str) -> str:
    return "float32" if kind == "bfloat16" else kind


def _copy(info: ValueInfoProto) -> ValueInfoProto:
    out = ValueInfoProto()
    out.CopyFrom(info)
    return out


def _rename_uses(graph: GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name == old:
                node.input[place] = new
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _rename_uses(inner, old, new)
    if graph.output and any(info.name == old for info in graph.output):  # an input that is an output too
        graph.node.append(helper.make_node("Identity", [new], [old]))


# --- steps


def _ancestors(graph: GraphProto, output: str) -> list[NodeProto]:
    """The nodes that the output depends on, in order."""
    nodes = list(graph.node)
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    wanted: set[int] = set()
    pending = [output]
    while pending:
        place = makers.get(pending.pop())
        if place is not None and place not in wanted:
            wanted.add(place)
            pending += _inputs_of(nodes[place])
    return [nodes[place] for place in sorted(wanted)]


def _inputs_of(node: NodeProto) -> list[str]:
    """What a node reads, what its graphs capture too."""
    return [*node.input, *(name for graph in _graphs(node) for inner in graph.node for name in _inputs_of(inner))]


def _graphs(node: NodeProto) -> list[GraphProto]:
    return [graph for a in node.attribute for graph in ([a.g] if a.HasField("g") else list(a.graphs))]


def _step(node: NodeProto, values: dict[str, Any]) -> Step:
    def arrays(names: Sequence[str]) -> tuple[Array | None, ...]:
        found = [values.get(name) for name in names]
        return tuple([x if isinstance(x, np.ndarray) and x.dtype.kind in "fiub" else None for x in found])

    return Step(op_key(node.op_type), arrays(_inputs_of(node)), arrays(node.output), frozenset(_inner_ops(node)))


def _inner_ops(node: NodeProto) -> set[str]:
    return {op for graph in _graphs(node) for inner in graph.node for op in (op_key(inner.op_type), *_inner_ops(inner))}


def _small_data(tensor: TensorProto) -> Array | None:
    """The data of an initializer that is in the model and small."""
    if tensor.data_location == TensorProto.EXTERNAL or tensor.ByteSize() > _KNOWN_BYTES:
        return None
    if is_exotic(tensor.data_type) or tensor.data_type == TensorProto.STRING:
        return None
    return np.asarray(numpy_helper.to_array(tensor))
