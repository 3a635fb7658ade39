"""A model on ONNX Runtime's CPU provider as it stands: no optimization, one thread, every value within reach."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, load, numpy_helper

from dmlc.ir import Array
from dmlc.onnx_schema.nested import all_nodes, graphs_of
from dmlc.ops.ranges import promised_in
from dmlc.verify.inputs import Default, Feeds, Interface
from dmlc.verify.onnx_defaults import defaults, optional_specs
from dmlc.verify.onnx_interface import element_name, interfaces, is_exotic, kind_of, required_inputs
from dmlc.verify.onnx_noise import with_barriers, with_noise
from dmlc.verify.onnx_patches import fed_patches, with_patches
from dmlc.verify.process import ProcessSession
from dmlc.verify.trace import NoEvidence, NotVerifiable, Patch, RunFailed, TraceStep, op_key
from dmlc.verify.unstable import UNITS

#: A model, or where it lies.
ModelSource: TypeAlias = "ModelProto | str | os.PathLike[str]"

#: Types, as ONNX Runtime names them, whose values come as NumPy arrays.
_PLAIN_TYPES = re.compile(r"tensor\((float|float16|double|u?int(8|16|32|64)|bool)\)")
_EXOTIC_TYPES = re.compile(r"tensor\((bfloat16|float[48]\w*|u?int[24])\)")
#: Sequences, maps and optionals, and the floats that they are made of; the last type is that of the values.
_COMPOSITE_TYPES = re.compile(r"(?:seq|map|optional)\(.*\btensor\((\w+)\)+")
_FLOAT_KINDS = {"float16": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16"}
#: Initializers up to this many bytes are read to be shown as operands.
_KNOWN_BYTES = 1 << 16
#: Operators around which ONNX Runtime's optimizations compute in integers, and mean to.
_ROUNDED_OTHERWISE = frozenset(("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"))
#: Weights are moved where all together have at most this many bytes.
_MOVED_BYTES = 1 << 24


class OnnxSide:
    """One model. Raises ``NotVerifiable`` where ONNX Runtime cannot load it.

    Types that NumPy lacks are fed and handed over in f32 or i8, which the model casts. ``backend`` is ``cpu`` or
    ``dml`` for a provider with its optimizations; by default it is the CPU provider without any.
    """

    def __init__(self, source: ModelSource, folder: Path | None = None, backend: str = "") -> None:
        self._backend = backend
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
        self.composites = {n: t for n, t in self._session.types.items() if _COMPOSITE_TYPES.fullmatch(t)}
        self.kinds |= {n: kind for n, t in self.composites.items() if (kind := _values_of(t))}
        self._optimized: OnnxSide | None = None
        self._weights: dict[str, Array] | None = None
        self._open_session: tuple[ProcessSession, dict[str, str]] | None = None
        self._noisy: dict[str, tuple[OnnxSide, dict[str, str]] | None] = {}
        self._narrow: dict[str, OnnxSide | None] = {}
        self._patched: dict[tuple[str, ...], OnnxSide | None] = {}
        self._traces: dict[str, tuple[ProcessSession, dict[str, str], list[NodeProto]]] = {}

    def interfaces(self) -> list[Interface]:
        extra = optional_specs(self._model)
        promised = promised_in({entry.key: entry.value for entry in self._model.metadata_props})
        found = [replace(found, inputs=(*found.inputs, *extra)) for found in interfaces(self._model)]
        if not promised:
            return found
        return [replace(f, inputs=tuple([replace(s, range=promised.get(s.name)) for s in f.inputs])) for f in found]

    def defaults(self) -> list[Default]:
        return defaults(self._model, self._folder)

    def run(self, feeds: Feeds) -> dict[str, Any]:
        return self._run(self._session, self._names, feeds)

    def run_optimized(self, feeds: Feeds) -> dict[str, Any] | None:
        if self._backend or any(node.op_type in _ROUNDED_OTHERWISE for node in all_nodes(self._model.graph.node)):
            return None
        if self._optimized is None:
            self._optimized = OnnxSide(self._model, self._folder, "cpu")
        return self._optimized.run(feeds)

    def weights(self) -> dict[str, Array]:
        if self._weights is None:
            held = {tensor.name: tensor for tensor in self._model.graph.initializer}
            for info in self._model.graph.input:
                held.pop(info.name, None)
            found = {name: tensor for name, tensor in held.items() if _is_weight(tensor)}
            fits = sum(tensor.ByteSize() for tensor in found.values()) <= _MOVED_BYTES
            self._weights = {n: np.asarray(numpy_helper.to_array(t)) for n, t in found.items()} if fits else {}
        return self._weights

    def run_with(self, feeds: Feeds, weights: Mapping[str, Array]) -> dict[str, Any]:
        if not weights:
            return self.run(feeds)
        if self._open_session is None:
            self._open_session = self._load(list(self.output_names), fed_weights=list(self.weights()))
        return self._run(*self._open_session, {**feeds, **weights})

    def trace(self, feeds: Feeds, output: str) -> list[TraceStep] | None:
        if output not in self._traces:
            nodes = _ancestors(self._model.graph, output)
            if not nodes:
                return []
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

    def values(self, feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        """The values of these names, which become outputs of the model; those that are not tensors are left out.

        Only the nodes that they depend on run. Raises ``RunFailed``, and ``NotVerifiable`` where ONNX Runtime refuses
        the model with these outputs.
        """
        session, fetched = self._load(list(names), only_numbers=True, pruned=True)
        return self._run(session, fetched, feeds)

    def value_types(self, names: Sequence[str]) -> dict[str, str]:
        """The types of values as ONNX Runtime writes them. Raises ``NotVerifiable`` as ``values`` does."""
        return self._open(list(names), {}, {}, (), pruned=False).types

    def run_rounded(self, feeds: Feeds, output: str, rng: np.random.Generator) -> dict[str, Any] | None:
        if output not in self._noisy:
            self._noisy[output] = self._with_noise(output)
        found = self._noisy[output]
        if found is None:
            return None
        side, noise = found
        moved = {
            name: np.asarray(1 + rng.integers(-UNITS, UNITS + 1) * np.finfo(dtype).eps, dtype)
            for name, dtype in noise.items()
        }
        try:
            return {output: side.run({**feeds, **moved})[output]}
        except RunFailed:
            return None

    def run_narrow(self, feeds: Feeds, output: str) -> Any:
        if output not in self._narrow:
            self._narrow[output] = self._with_narrow_values(output)
        side = self._narrow[output]
        try:
            return None if side is None else side.run(feeds)[output]
        except RunFailed:
            return None

    def run_patched(self, feeds: Feeds, output: str, patches: Mapping[str, Patch]) -> Any:
        key = (output, *patches)
        if key not in self._patched:
            try:
                model = with_patches(self._model, output, patches)
                self._patched[key] = OnnxSide(model, self._folder, self._backend)
            except NotVerifiable:  # a type that NumPy lacks
                self._patched[key] = None
        side = self._patched[key]
        try:
            return None if side is None else side.run({**feeds, **fed_patches(patches)})[output]
        except RunFailed:
            return None

    def _with_noise(self, output: str) -> tuple[OnnxSide, dict[str, str]] | None:
        """The model with noise on the way to an output, and the dtypes of the inputs that it comes from."""
        if output not in self._traces:
            return None
        session, fetched, _ = self._traces[output]
        model, noise = with_noise(self._model, fetched, session.types)
        try:
            return OnnxSide(model, self._folder, self._backend), noise
        except NotVerifiable:  # a dtype that ONNX Runtime cannot multiply
            return None

    def _with_narrow_values(self, output: str) -> OnnxSide | None:
        """The model with a barrier behind each f16 value on the way to an output; None without such values.

        ONNX Runtime computes f16 in f32 where it lacks a kernel, and rounds nothing between two such nodes.
        """
        if output not in self._traces or self._backend:
            return None
        session, fetched, _ = self._traces[output]
        narrow = [name for name in fetched if session.types.get(name) == "tensor(float16)"]
        return OnnxSide(with_barriers(self._model, narrow), self._folder) if narrow else None

    # --- sessions

    def _load(
        self,
        outputs: list[str],
        *,
        only_numbers: bool = False,
        fed_weights: Sequence[str] = (),
        pruned: bool = False,
    ) -> tuple[ProcessSession, dict[str, str]]:
        """A session that gives these values, and the name that each is fetched by. ``fed_weights`` can be replaced.

        A ``pruned`` session has no other nodes than those of the values.
        """
        fed = {
            info.name: info.type.tensor_type.elem_type
            for info in required_inputs(self._model.graph, self._model.ir_version)[0]
            if info.type.HasField("tensor_type") and is_exotic(info.type.tensor_type.elem_type)
        }
        session = self._open(outputs, fed, {}, fed_weights, pruned=pruned)
        found = session.types
        exotic = {name: type_ for name, type_ in found.items() if _EXOTIC_TYPES.fullmatch(type_)}
        if exotic:
            session = self._open(outputs, fed, exotic, fed_weights, pruned=pruned)
        names = {name: _cast_name(name) if name in exotic else name for name in outputs}
        if only_numbers:
            names = {n: f for n, f in names.items() if n in exotic or _PLAIN_TYPES.fullmatch(found.get(n, ""))}
        return session, names

    def _open(
        self,
        outputs: list[str],
        fed: dict[str, int],
        exotic: dict[str, str],
        fed_weights: Sequence[str],
        *,
        pruned: bool,
    ) -> ProcessSession:
        """A session; ``fed`` and ``exotic`` values are cast where they come in and go out."""
        model = self._model
        if outputs != list(self.output_names) or fed or exotic:
            model = _adapted(self._model, outputs, fed, exotic)
        if pruned:
            model = _pruned(model)
        if fed_weights:
            model = _with_open_weights(model, fed_weights)
        try:
            return ProcessSession(model, None if self._folder is None else str(self._folder.absolute()), self._backend)
        except RunFailed as error:
            raise NotVerifiable(f"ONNX Runtime refuses the model: {_message(error)}") from None
        except ValueError as error:  # a model of more than 2 GiB
            raise NoEvidence(f"a model cannot be handed to ONNX Runtime: {error}") from None

    def _run(self, session: ProcessSession, names: dict[str, str], feeds: Feeds) -> dict[str, Any]:
        if not names:  # asked for nothing, ONNX Runtime gives all outputs
            return {}
        try:
            results = session.run(list(names.values()), feeds)
        except RunFailed as error:
            raise RunFailed(_message(error), ended=error.ended) from None
        return dict(zip(names, results, strict=True))


def _values_of(composite: str) -> str | None:
    """The kind of the floats that a sequence, a map or an optional is made of, from ONNX Runtime's text of its type."""
    match = _COMPOSITE_TYPES.fullmatch(composite)
    return None if match is None else _FLOAT_KINDS.get(match[1])


def _message(error: Exception) -> str:
    text = " ".join(str(error).split())
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)[:300]


def _type_text(info: ValueInfoProto) -> str:
    """Enough of a type to compare the inputs of two models."""
    which = info.type.WhichOneof("value") or ""
    if which != "tensor_type":
        return which.replace("_type", "")
    return element_name(info.type.tensor_type.elem_type)


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


def _pruned(model: ModelProto) -> ModelProto:
    """The model with the nodes that its outputs depend on, and no others."""
    graph = model.graph
    needed = _ancestors(graph, *(info.name for info in graph.output))
    out = ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    out.graph.node.extend(needed)
    return out


def _with_open_weights(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """The model with initializers that can be overridden: they are listed as inputs, from IR version 4 on."""
    out = ModelProto()
    out.CopyFrom(model)
    out.ir_version = max(out.ir_version, 4)
    held = {tensor.name: tensor for tensor in out.graph.initializer}
    for name in names:
        out.graph.input.append(helper.make_tensor_value_info(name, held[name].data_type, list(held[name].dims)))
    return out


def _is_weight(tensor: TensorProto) -> bool:
    floats = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)
    is_here = tensor.data_location != TensorProto.EXTERNAL
    return tensor.data_type in floats and is_here and math.prod(tensor.dims) > 1


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
        for inner in graphs_of(node):
            _rename_uses(inner, old, new)
    if graph.output and any(info.name == old for info in graph.output):  # an input that is an output too
        graph.node.append(helper.make_node("Identity", [new], [old]))


# --- steps


def _ancestors(graph: GraphProto, *outputs: str) -> list[NodeProto]:
    """The nodes that the outputs depend on, in order."""
    nodes = list(graph.node)
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    wanted: set[int] = set()
    pending = list(outputs)
    while pending:
        place = makers.get(pending.pop())
        if place is not None and place not in wanted:
            wanted.add(place)
            pending += _inputs_of(nodes[place])
    return [nodes[place] for place in sorted(wanted)]


def _inputs_of(node: NodeProto) -> list[str]:
    """Return the names that a node reads, including those its nested graphs capture."""
    return [*node.input, *(name for graph in graphs_of(node) for inner in graph.node for name in _inputs_of(inner))]


def _step(node: NodeProto, values: dict[str, Any]) -> TraceStep:
    def arrays(names: Sequence[str]) -> tuple[Array | None, ...]:
        found = [values.get(name) for name in names]
        return tuple([x if isinstance(x, np.ndarray) and x.dtype.kind in "fiub" else None for x in found])

    reads, writes = tuple(_inputs_of(node)), tuple(node.output)
    return TraceStep(op_key(node.op_type), arrays(reads), arrays(writes), frozenset(_inner_ops(node)), reads, writes)


def _inner_ops(node: NodeProto) -> set[str]:
    return {op_key(inner.op_type) for inner in all_nodes(node for graph in graphs_of(node) for node in graph.node)}


def _small_data(tensor: TensorProto) -> Array | None:
    """The data of an initializer that is in the model and small."""
    if tensor.data_location == TensorProto.EXTERNAL or tensor.ByteSize() > _KNOWN_BYTES:
        return None
    if is_exotic(tensor.data_type) or tensor.data_type == TensorProto.STRING:
        return None
    return np.asarray(numpy_helper.to_array(tensor))
