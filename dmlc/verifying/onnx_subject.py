"""An ONNX model on ONNX Runtime: without optimizations on the CPU provider, on one thread, every value within reach."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeAlias

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, load, numpy_helper

from dmlc.ir import Array
from dmlc.onnx_schema.nested import all_nodes, graphs_of
from dmlc.ops.ranges import promised_in
from dmlc.runtime.ort_model import ALL, NONE, OrtModel, plain_message
from dmlc.runtime.runnable import NoEvidence, NotRunnable, RunFailed
from dmlc.verifying.inputs import Default, Feeds, Interface
from dmlc.verifying.load_phase import load_phase
from dmlc.verifying.onnx_bodies import SEEN, with_nans_seen
from dmlc.verifying.onnx_changes import (
    fed_patches,
    with_barriers,
    with_bodies,
    with_noise,
    with_noise_in_bodies,
    with_patches,
)
from dmlc.verifying.onnx_defaults import count_values, defaults, optional_specs
from dmlc.verifying.onnx_interface import element_name, interfaces, is_exotic, kind_of, required_inputs
from dmlc.verifying.rounding import Centring, Noise, Rounded
from dmlc.verifying.spread import EXACT_OPS, JUMPS
from dmlc.verifying.subject import Patch, Subject, TraceStep, op_key
from dmlc.verifying.undefined import SELECTIONS

#: A model, or where it lies.
ModelSource: TypeAlias = "ModelProto | str | os.PathLike[str]"

#: Types, as ONNX Runtime names them, whose values come as NumPy arrays.
_PLAIN_TYPES = re.compile(r"tensor\((float|float16|double|u?int(8|16|32|64)|bool)\)")
_EXOTIC_TYPES = re.compile(r"tensor\((bfloat16|float[48]\w*|u?int[24])\)")
#: Sequences, maps and optionals, and the floats that they are made of; the last type is the values'.
_COMPOSITE_TYPES = re.compile(r"(?:seq|map|optional)\(.*\btensor\((\w+)\)+")
_FLOAT_KINDS = {"float16": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16"}
#: Initializers up to this many bytes are read to be shown as operands.
_KNOWN_BYTES = 1 << 16
#: Operators around which ONNX Runtime's optimizations compute in integers, and mean to.
_ROUNDED_OTHERWISE = frozenset(("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"))
#: Weights are moved where all together have at most this many bytes.
_MOVED_BYTES = 1 << 24
#: Operators whose results have sizes that their numbers decide.
_SIZED_BY_DATA = ("Compress", "NonMaxSuppression", "NonZero", "Unique")
#: Normalizations that take a mean away, whose results have the shape of their operand.
_CENTRING = ("InstanceNormalization", "LayerNormalization", "MeanVarianceNormalization")


class OnnxSubject(Subject):
    """One model. Raises ``NotRunnable`` if ONNX Runtime cannot load it.

    Types that NumPy lacks are fed and handed over in f32 or i8, which the model casts. ``backend`` is ``cpu``,
    ``dml`` or ``webgpu`` for a provider with its optimizations; by default it is the CPU provider without any.
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
                raise NotRunnable(f"{path} cannot be read: {error}") from None
        graph = self._model.graph
        needed, optional = required_inputs(graph, self._model.ir_version)
        names = [info.name for info in graph.output]
        super().__init__([info.name for info in needed], names, len(graph.node), is_program=False)
        self.kinds = {
            info.name: kind_of(info.type.tensor_type.elem_type)
            for info in graph.output
            if info.type.HasField("tensor_type") and is_exotic(info.type.tensor_type.elem_type)
        }
        self.types: dict[str, str] = {info.name: _type_text(info) for info in (*needed, *optional)}
        self._session = self._load(names)
        self.composites: dict[str, str] = {
            n: t for n, t in self._session.types.items() if _COMPOSITE_TYPES.fullmatch(t)
        }
        self.kinds |= {n: kind for n, t in self.composites.items() if (kind := _values_of(t))}
        self._others: dict[tuple[Any, ...], _Loaded | OnnxSubject | None] = {}

    @cached_property
    def _inside(self) -> ModelProto:
        """The model whose nodes are traced."""
        return with_nans_seen(with_bodies(self._model), SELECTIONS)

    @cached_property
    def _is_rounded_otherwise(self) -> bool:
        return any(node.op_type in _ROUNDED_OTHERWISE for node in all_nodes(self._model.graph.node))

    def interfaces(self) -> list[Interface]:
        extra = optional_specs(self._model)
        promised = promised_in({entry.key: entry.value for entry in self._model.metadata_props})
        found = [replace(found, inputs=(*found.inputs, *extra)) for found in interfaces(self._model)]
        if not promised:
            return found
        return [replace(f, inputs=tuple([replace(s, range=promised.get(s.name)) for s in f.inputs])) for f in found]

    def defaults(self) -> list[Default]:
        return defaults(self._model, self._folder)

    def run(self, feeds: Feeds, wanted: Sequence[str] | None = None) -> dict[str, Any]:
        if wanted is None:
            return self._session.run(feeds)
        return self._load(list(wanted), only_numbers=True, pruned=True).run(feeds)

    def runs(self, many: Sequence[Feeds]) -> list[Callable[[], dict[str, Any]]]:
        return self._session.runs(many)

    def value_types(self, names: Sequence[str]) -> dict[str, str]:
        """The types of values as ONNX Runtime writes them. Raises ``NotRunnable`` as ``run`` does."""
        return dict(self._open(list(names), {}, {}, pruned=False).types)

    def run_optimized(self, feeds: Feeds, without: Sequence[str] = ()) -> dict[str, Any] | None:
        if self._backend or self._is_rounded_otherwise:
            return None
        key = ("optimized", *without)
        if key not in self._others:
            self._others[key] = self._load(list(self.outputs), level=ALL, disabled=without)
        session = self._others[key]
        assert isinstance(session, _Loaded)
        return session.run(feeds)

    def trace(self, feeds: Feeds, output: str, patches: Mapping[str, Patch] | None = None) -> list[TraceStep] | None:
        if patches:
            subject = self._with_patches(output, patches)
            steps = None if subject is None else subject.trace({**feeds, **fed_patches(patches)}, output)
            return None if steps is None else [step for step in steps if not _is_of_patch(step)]
        graph = self._inside.graph
        nodes = _ancestors(graph, output)
        values = self._values(feeds, output)
        used = {name for node in nodes for name in _inputs_of(node)}
        for tensor in graph.initializer:
            if tensor.name in used and tensor.name not in feeds:
                values[tensor.name] = _small_data(tensor)
        values.update({name: array for name, array in feeds.items() if isinstance(array, np.ndarray)})
        return [_step(node, values) for node in nodes]

    def _values(self, feeds: Feeds, output: str) -> dict[str, Any]:
        """The values that nodes on the way to an output make. Raises as ``run`` does, and ``NotRunnable`` where bodies
        of functions are written out wrongly."""
        key = ("traced", output)
        if key not in self._others:
            nodes = _ancestors(self._inside.graph, output)
            names = list(dict.fromkeys(name for node in nodes for name in node.output if name))
            self._others[key] = self._load(names, only_numbers=True)
        session = self._others[key]
        assert isinstance(session, _Loaded)
        values = session.run(feeds)
        if self._model.functions and not _is_same(values.get(output), found := self.run(feeds)[output]):
            # f16 is rounded where it is handed over
            alone = self._other(("inlined", output), lambda: with_patches(self._inside, output, {}))
            if alone is None or not _is_same(alone.run(feeds)[output], found):
                raise NotRunnable("ONNX's inliner makes another model")
        return values

    def samples(self, feeds: Feeds, output: str, fixed: frozenset[str], noises: Iterable[Noise]) -> Iterator[Any]:
        model = self._inside
        try:
            found = self._values(feeds, output)
        except (NotRunnable, RunFailed):
            found, model = {}, self._model
        nodes = _ancestors(model.graph, output)
        counts = count_values(model)
        made = {name for node in nodes if op_key(node.op_type) not in EXACT_OPS for name in node.output}
        made &= _reached(nodes, feeds)
        rounded = {n: x for n, x in found.items() if n in made and isinstance(x, np.ndarray) and x.dtype.kind == "f"}
        weights = {name: array for name, array in _weights(model).items() if name not in counts}
        makers = {name: node for node in nodes for name in node.output}
        values = {**found, **feeds, **weights}
        loose = {name: np.ones((), rounded[name].dtype) for name in _reached(nodes, [], _SIZED_BY_DATA) & set(rounded)}
        made_of = {name: _rounded(makers[name], values, x) for name, x in rounded.items() if name not in loose}
        added = frozenset(name for name, made in made_of.items() if made.size is not None)
        model, inner = with_noise_in_bodies(model, lambda node: op_key(node.op_type) not in EXACT_OPS | JUMPS)
        key = ("moved", output, added, *rounded)
        subject = self._other(key, lambda: with_noise(model, output, rounded, added, list(weights)))
        if subject is None:
            made_of, weights, inner, loose, subject = {}, {}, {}, {}, self
        narrow = self.run_narrow(feeds, output)
        if narrow is not None:
            yield narrow
        for noise in noises:
            given: Feeds = {**feeds, **noise.moved({**feeds, **weights}, fixed)}
            moves: Feeds = {name: noise.factor(name, one) for name, one in inner.items()}
            moves |= {f"{name}//noise": noise.factor(name, one) for name, one in loose.items()}
            moves |= {
                f"{name}//noise": noise.terms(made) if name in added else noise.factors(made)
                for name, made in made_of.items()
            }
            still: Feeds = {f"{n}//noise": np.asarray(n not in added, made.x.dtype) for n, made in made_of.items()}
            still |= inner | {f"{name}//noise": one for name, one in loose.items()}
            sizes = {name: x for name, x in moves.items() if name.removesuffix("//noise") in counts}
            rest = {name: x for name, x in moves.items() if name not in sizes}
            for more in (moves, {**still, **sizes}, {**still, **rest}, still):  # a size depends on rounding
                with suppress(RunFailed):
                    yield subject.run({**given, **more})[output]
                    break

    def run_narrow(self, feeds: Feeds, output: str) -> Any:
        """ONNX Runtime computes f16 in f32 where it lacks a kernel, and rounds nothing between two such nodes."""
        try:
            found = self._values(feeds, output)
            narrow = [name for name, x in found.items() if isinstance(x, np.ndarray) and x.dtype == np.float16]
            if self._backend or not (narrow or any(map(graphs_of, self._inside.graph.node))):
                return None
            subject = self._other(("narrow", output), lambda: with_barriers(self._inside, output, narrow))
            return None if subject is None else subject.run(feeds)[output]
        except (NotRunnable, RunFailed):
            return None

    def run_patched(self, feeds: Feeds, output: str, patches: Mapping[str, Patch]) -> Any:
        subject = self._with_patches(output, patches)
        try:
            return None if subject is None else subject.run({**feeds, **fed_patches(patches)})[output]
        except RunFailed:
            return None

    def _with_patches(self, output: str, patches: Mapping[str, Patch]) -> OnnxSubject | None:
        return self._other(("patched", output, *patches), lambda: with_patches(self._inside, output, patches))

    def _other(self, key: tuple[Any, ...], make: Callable[[], ModelProto]) -> OnnxSubject | None:
        """Another model that is kept; None for one that ONNX Runtime does not load."""
        if key not in self._others:
            try:
                self._others[key] = OnnxSubject(make(), self._folder, self._backend)
            except NotRunnable:  # a dtype that ONNX Runtime cannot multiply, or that NumPy lacks
                self._others[key] = None
        found = self._others[key]
        assert found is None or isinstance(found, OnnxSubject)
        return found

    # --- sessions

    def _load(
        self,
        outputs: list[str],
        *,
        only_numbers: bool = False,
        pruned: bool = False,
        level: str = NONE,
        disabled: Sequence[str] = (),
    ) -> _Loaded:
        """A session that gives these values, or the numbers among them. A ``pruned`` one has no other nodes than those
        of the values."""
        fed = {
            info.name: info.type.tensor_type.elem_type
            for info in required_inputs(self._model.graph, self._model.ir_version)[0]
            if info.type.HasField("tensor_type") and is_exotic(info.type.tensor_type.elem_type)
        }
        more: dict[str, Any] = {"pruned": pruned, "level": level, "disabled": disabled}
        model = self._open(outputs, fed, {}, **more)
        types = model.types
        exotic = {name: type_ for name, type_ in types.items() if _EXOTIC_TYPES.fullmatch(type_)}
        if exotic:
            model = self._open(outputs, fed, exotic, **more)
        names = {name: _cast_name(name) if name in exotic else name for name in outputs}
        if only_numbers:
            names = {n: f for n, f in names.items() if n in exotic or _PLAIN_TYPES.fullmatch(types.get(n, ""))}
        return _Loaded(model, names, types)

    def _open(
        self,
        outputs: list[str],
        fed: dict[str, int],
        exotic: dict[str, str],
        *,
        pruned: bool,
        level: str = NONE,
        disabled: Sequence[str] = (),
    ) -> OrtModel:
        """The model with these outputs; ``fed`` and ``exotic`` values are cast where they come in and go out."""
        model = self._model
        if outputs != list(self.outputs) or fed or exotic:
            model = _adapted(model if set(outputs) <= set(self.outputs) else self._inside, outputs, fed, exotic)
        if pruned:
            model = _pruned(model)
        backend, level = self._backend or "cpu", ALL if self._backend else level
        try:
            return OrtModel(
                model, self._folder, backend=backend, level=level, disabled=disabled, threads=1, isolated=True
            )
        except RunFailed as error:
            raise NotRunnable(f"ONNX Runtime refuses the model: {_refusal(model, error)}") from None
        except ValueError as error:  # a model of more than 2 GiB
            raise NoEvidence(f"a model cannot be handed to ONNX Runtime: {error}") from None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A loaded model, the name that each value is fetched by, and the types of the values."""

    model: OrtModel
    names: dict[str, str]
    types: dict[str, str]

    def run(self, feeds: Feeds) -> dict[str, Any]:
        try:
            found = self.model.run(feeds, list(self.names.values()))
        except RunFailed as error:
            raise RunFailed(_message(error), ended=error.ended) from None
        return self._named(found)

    def runs(self, many: Sequence[Feeds]) -> list[Callable[[], dict[str, Any]]]:
        """As ``Subject.runs``; one request asks for them all, and one for each if the process ends on the way."""
        try:
            found = self.model.run_each(many, list(self.names.values()))
        except RunFailed:
            return [partial(self.run, feeds) for feeds in many]
        return [partial(self._told, one) for one in found]

    def _told(self, found: dict[str, Any] | RunFailed) -> dict[str, Any]:
        if isinstance(found, RunFailed):
            raise RunFailed(_message(found)) from None
        return self._named(found)

    def _named(self, found: dict[str, Any]) -> dict[str, Any]:
        return {name: found[fetched] for name, fetched in self.names.items()}


def _weights(model: ModelProto) -> dict[str, Array]:
    """The float constants of more than one element that can be replaced, unless they are large altogether."""
    held = {tensor.name: tensor for tensor in model.graph.initializer}
    for info in model.graph.input:
        held.pop(info.name, None)
    found = {name: tensor for name, tensor in held.items() if _is_weight(tensor)}
    if sum(tensor.ByteSize() for tensor in found.values()) > _MOVED_BYTES:
        return {}
    return {name: np.asarray(numpy_helper.to_array(tensor)) for name, tensor in found.items()}


def _values_of(composite: str) -> str | None:
    """The kind of the floats that a sequence, a map or an optional is made of, from ONNX Runtime's text of its type."""
    match = _COMPOSITE_TYPES.fullmatch(composite)
    return None if match is None else _FLOAT_KINDS.get(match[1])


def _message(error: Exception) -> str:
    return shorten(plain_message(error), 300, placeholder=" ...")


def _refusal(model: ModelProto, error: Exception) -> str:
    """The reason as ``check`` says it where the load phase has it, else ONNX Runtime's own message."""
    refusal = load_phase(model).refusal
    return _message(error) if refusal is None else shorten(refusal.text, 300, placeholder=" ...")


def _type_text(info: ValueInfoProto) -> str:
    """Enough of a type to compare the inputs of two models."""
    which = info.type.WhichOneof("value") or ""
    if which != "tensor_type":
        return which.replace("_type", "")
    name = element_name(info.type.tensor_type.elem_type)
    return {"float": "float32", "double": "float64"}.get(name, name)


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


def _reached(nodes: Sequence[NodeProto], feeds: Iterable[str], makers: Collection[str] = ()) -> set[str]:
    """The values that depend on the numbers that are fed, or that ``makers`` make, not on sizes and constants alone."""
    found = set(feeds)
    for node in nodes:
        depends = not found.isdisjoint(_inputs_of(node)) and node.op_type not in ("Shape", "Size")
        if depends or node.op_type in makers:
            found.update(node.output)
    return found


def _inputs_of(node: NodeProto) -> list[str]:
    """Return the names that a node reads, including those its nested graphs capture."""
    return [*node.input, *(name for graph in graphs_of(node) for inner in graph.node for name in _inputs_of(inner))]


def _step(node: NodeProto, values: dict[str, Any]) -> TraceStep:
    reads, writes = tuple(_inputs_of(node)), tuple([name for name in node.output if not name.endswith(SEEN)])
    seen = _arrays([name for name in node.output if name.endswith(SEEN)], values)
    sees_nan = any(x is not None and bool(x.any()) for x in seen)
    inner = frozenset(_inner_ops(node))
    return TraceStep(
        op_key(node.op_type), _arrays(reads, values), _arrays(writes, values), inner, reads, writes, sees_nan
    )


def _rounded(node: NodeProto, values: Mapping[str, Any], x: Array) -> Rounded:
    """Return the rounding of a result of a node. A scale for each channel goes along axis 1."""
    operands = _arrays(node.input, values)
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    data, epsilon = operands[0] if operands else None, given.get("epsilon", 1e-5)
    if data is None or data.shape != x.shape or node.op_type not in _CENTRING:
        return Rounded.by(node.op_type, operands, x)
    if node.op_type == "LayerNormalization":
        axes = range(given.get("axis", -1) % x.ndim, x.ndim)
    elif node.op_type == "InstanceNormalization":
        axes, scale = range(2, x.ndim), operands[1]
        operands = (data, None if scale is None else scale.reshape(-1, *[1] * len(axes)))
    else:
        axes, epsilon = given.get("axes", (0, 2, 3)), 1e-9
    return Rounded.by(node.op_type, operands, x, Centring(tuple(axes), epsilon))


def _arrays(names: Sequence[str], values: Mapping[str, Any]) -> tuple[Array | None, ...]:
    found = [values.get(name) for name in names]
    return tuple([x if isinstance(x, np.ndarray) and x.dtype.kind in "fiub" else None for x in found])


def _is_same(a: Any, b: Any) -> bool:
    """Return whether the elements are the same; a shape without elements may depend on what is declared."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.dtype.kind not in "fiub":
        return False
    return a.size == b.size == 0 or np.array_equal(a, b, equal_nan=True)


def _is_of_patch(step: TraceStep) -> bool:
    """Return whether a step makes or places a patch."""
    return any("//" in name for name in (*step.reads, *step.writes))


def _inner_ops(node: NodeProto) -> set[str]:
    return {op_key(inner.op_type) for inner in all_nodes(node for graph in graphs_of(node) for node in graph.node)}


def _small_data(tensor: TensorProto) -> Array | None:
    """The data of an initializer that is in the model and small."""
    if tensor.data_location == TensorProto.EXTERNAL or tensor.ByteSize() > _KNOWN_BYTES:
        return None
    if is_exotic(tensor.data_type) or tensor.data_type == TensorProto.STRING:
        return None
    return np.asarray(numpy_helper.to_array(tensor))
