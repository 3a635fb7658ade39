"""Models as functions: the nodes of an ONNX model in the graph of a program that calls it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from onnx import FunctionProto, ModelProto, ValueInfoProto, numpy_helper

from dmlc.diagnostics import DmlcError, Help, fail, naming
from dmlc.diagnostics.catalogue import files
from dmlc.diagnostics.catalogue import functions as codes
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.importers.again import read_again
from dmlc.importers.model import import_model
from dmlc.importers.types import Path as GraphPath
from dmlc.importers.types import Placeholders, dim_of_text
from dmlc.inference.protos import NO_NAMES
from dmlc.ir import (
    Condition,
    Dim,
    DimExpr,
    ForeignType,
    Graph,
    Node,
    OpError,
    OutputAttributes,
    Tensor,
    TensorType,
    Value,
    dim_names,
    substitute,
)
from dmlc.onnx_schema.inlining import inlined
from dmlc.onnx_schema.origin import ModelOrigin
from dmlc.onnx_schema.types import DTYPE_OF, type_proto
from dmlc.ops.call import CallSite
from dmlc.ops.constant import constant_of
from dmlc.ops.model_call import ModelInput
from dmlc.ops.move import RESHAPE, ReshapeAttributes
from dmlc.ops.opaque import OpaqueAttributes, calls_by_name
from dmlc.ops.written import cast_help

# --- Parts that called models bring beside their nodes, in one model


def joined_parts(before: ModelOrigin | None, model: ModelOrigin, call: str) -> tuple[ModelOrigin, str]:
    """The parts of all models so far and of another one, and the name of its call, which no other call has.

    Raises ``DmlcError`` E0510 for versions or functions that differ, E0401 for weights in unrelated folders.
    """
    if before is None:
        frame = ModelProto(ir_version=model.frame.ir_version)
        frame.functions.extend(model.frame.functions)
        versions = {domain: version for domain, version in model.versions.items() if domain}
        return ModelOrigin(frame, versions, model.folder, calls=(call,)), call
    versions = dict(before.versions)
    for domain, version in model.versions.items():
        if domain and versions.setdefault(domain, version) != version:
            message = f"{call} has version {version} of {domain}, and {before.calls[0]} version {versions[domain]}"
            raise fail(codes.CANNOT_JOIN, message, help="export the models with one version")
    frame = ModelProto(ir_version=max(before.frame.ir_version, model.frame.ir_version))
    frame.functions.extend(before.frame.functions)
    known = {_key(function): function for function in before.frame.functions}
    for function in model.frame.functions:
        if known.setdefault(_key(function), function) != function:
            message = f"the function {function.name} of {call} differs from the one of {before.calls[0]}"
            raise fail(codes.CANNOT_JOIN, message, help="rename one of the two functions")
        if _key(function) not in {_key(f) for f in frame.functions}:
            frame.functions.append(function)
    if before.folder is not None and model.folder is not None and before.folder != model.folder:
        message = f"weights of {call} lie below {model.folder}, and others below {before.folder}"
        raise fail(files.CANNOT_LOAD, message, help="call both from a program in a folder above")
    name, number = call, 1
    while name in before.calls:
        number += 1
        name = f"{call}_{number}"
    return ModelOrigin(frame, versions, before.folder or model.folder, calls=(*before.calls, name)), name


def _key(function: FunctionProto) -> tuple[str, str]:
    return function.domain, function.name


#: Larger constants are operands like others: no operator takes so many sizes.
_MOST_ELEMENTS = 1024


class ModelFunction:
    """An ONNX model that programs call. It keeps the model, whose weights are read once at most.

    ``folder`` is where external data lies, ``title`` the name that messages call the model by. With ``opaque`` its
    nodes are passed on as they are.
    """

    def __init__(
        self, model: ModelProto, folder: Path | None, title: str, limits: Limits = DEFAULTS, *, opaque: bool = False
    ) -> None:
        self._model = inlined(model)
        self._folder = folder
        self._limits = limits
        self._opaque = opaque
        self._stored: dict[tuple[GraphPath, str], Tensor] = {}
        self._read: dict[object, Graph] = {}
        self.title = title
        graph = self._model.graph
        weights = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
        is_listed = model.ir_version < 4  # every weight is, and none can be fed
        self._infos = {info.name: info for info in graph.input if not (is_listed and info.name in weights)}
        self.inputs: list[ModelInput] = [_input(info, info.name in weights) for info in self._infos.values()]
        self.outputs: list[str] = [info.name for info in graph.output]

    def add_to(self, graph: Graph, operands: Mapping[str, Value], name: str, site: CallSite) -> list[Value]:
        """Add the model's nodes to the graph, typed by the operands; the results.

        Raises ``OpError`` E0360 for an operand that does not fit, and for sizes that break a rule inside; ``DmlcError``
        E0510 where the model cannot stand beside those that the graph has already.
        """
        span = (site.span,) if site.span else ()
        fixed = {info.name for info in self.inputs if info.has_default}
        fitted = _Operands(graph, self.title, self._infos, operands, fixed)
        inner = self._imported(fitted)
        graph.joined, name = joined_parts(graph.joined, inner.origin, name)
        graph.reader = None if self._opaque else read_again
        graph.dims.taken = {*graph.dims.taken, *_input_dims(graph)}
        binding: dict[str, Dim] = dict(fitted.placed.dims)
        for dim in sorted(_dims(inner) - binding.keys()):
            binding[dim] = graph.dims.new_dim()
        for condition in fitted.conditions:
            graph.conditions.setdefault(condition, site.span)
        made, results = graph.splice(inner, [fitted.value(v.name or "", site) for v in inner.inputs], binding)
        _name(made, name)
        for cause, names in inner.removed.items():
            graph.removed.setdefault(cause, []).extend([_below(name, removed) for removed in names])
        for node in made:
            node.spans = span
        graph.advice += inner.advice
        return results

    def _imported(self, operands: _Operands) -> Graph:
        """The model read with the types of the operands; the same for equal types. Raises ``OpError``."""
        types = [(info.name, info.type.SerializeToString(deterministic=True)) for info in operands.infos]
        key = (tuple(types), tuple(operands.constants.items()), operands.bound)
        found = self._read.get(key)
        if found is None:
            try:
                with self._declaring(operands) as model:
                    named = {d.dim_param for info in model.graph.input for d in info.type.tensor_type.shape.dim}
                    binding = {name: size for name, size in operands.bound if name in named}
                    found = self._import(model, binding, runs=True)
            except DmlcError as error:
                self._import(self._model, {}, runs=False)  # raises what is wrong with the model itself
                given = ", ".join(f"{name}: {value.type}" for name, value in operands.given.items())
                message = f"{self.title} does not take {given}: {error.diagnostics[0].message}"
                raise OpError(codes.OPERAND_DOES_NOT_FIT, message) from None
            self._read[key] = found
        return found

    def _import(self, model: ModelProto, binding: Mapping[str, int], *, runs: bool) -> Graph:
        with naming(self.title):
            return import_model(
                model,
                folder=self._folder,
                binding=binding,
                limits=self._limits,
                opaque=self._opaque,
                runs=runs,
                weights=self._stored,
            )

    @contextmanager
    def _declaring(self, operands: _Operands) -> Iterator[ModelProto]:
        """Let the model declare its inputs as they are given, meanwhile, and small constants as weights. An input
        that is left out has its default, or is absent."""
        absent = {i.name for i in self.inputs if i.name not in operands.given and not i.has_default}
        model = self._model
        if absent:
            model = ModelProto()
            model.CopyFrom(self._model)
            for node in model.graph.node:
                node.input[:] = ["" if name in absent else name for name in node.input]
        own, weights = list(model.graph.input), len(model.graph.initializer)
        try:
            del model.graph.input[:]
            model.graph.input.extend([info for info in operands.infos if info.name not in operands.constants])
            for name, tensor in operands.constants.items():
                model.graph.initializer.append(numpy_helper.from_array(tensor.array, name))
            yield model
        finally:
            del model.graph.input[:], model.graph.initializer[weights:]
            model.graph.input.extend(own)
            for name in operands.constants:  # another call may give another number
                self._stored.pop(((), name), None)


class _Operands:
    """Operands against the inputs of a model: the types that it is read with, and what is left to run time."""

    def __init__(
        self,
        graph: Graph,
        title: str,
        infos: Mapping[str, ValueInfoProto],
        operands: Mapping[str, Value],
        defaults: Collection[str],
    ) -> None:
        self.graph = graph
        self.title = title
        self.given = operands
        self.placed = Placeholders()
        self.conditions: list[Condition] = []
        self._sizes: dict[str, tuple[Dim, str]] = {}  # sizes of named dims, each with what gave it
        self._shapes: dict[str, tuple[Dim, ...]] = {}  # shapes of operands whose size is one that the model says
        names = {dim.dim_param for info in infos.values() for dim in info.type.tensor_type.shape.dim}
        self.infos = [self._declared(infos[name], value, names) for name, value in operands.items()]
        #: Small constants, which may be shapes: the model is read with their elements.
        known = map(_known, operands.items())
        self.constants = {name: tensor for name, tensor in known if tensor is not None and name not in defaults}
        self.bound = frozenset((name, size) for name, (size, _) in self._sizes.items() if isinstance(size, int))

    def value(self, name: str, site: CallSite) -> Value:
        """The operand of an input; one whose sizes are left to run time gets those that the model says."""
        value, shape = self.given[name], self._shapes.get(name)
        if shape is None or shape == value.shape:
            return value
        spans = (site.span,) if site.span else ()
        return self.graph.add(RESHAPE, [value], ReshapeAttributes(shape=shape), spans=spans).result

    def _declared(self, info: ValueInfoProto, value: Value, names: set[str]) -> ValueInfoProto:
        """The input as it is declared for the call. Raises ``OpError``."""
        out = ValueInfoProto(name=info.name)
        given, tensor = value.type, info.type.tensor_type
        if isinstance(given, ForeignType):
            own, theirs = info.type.WhichOneof("value"), type_proto(given).WhichOneof("value")
            if own and theirs and (own != theirs or tensor.elem_type != type_proto(given).tensor_type.elem_type):
                raise self._misfit(info.name, given, "has another type")
            out.type.CopyFrom(info.type)
            return out
        kind = info.type.WhichOneof("value")
        wanted = DTYPE_OF.get(tensor.elem_type)
        if kind not in (None, "tensor_type") or (tensor.elem_type and wanted is not given.dtype):
            what = f"is {wanted.name}" if wanted is not None else "has a type that the language lacks"
            raise self._misfit(
                info.name, given, what, "" if wanted is None else cast_help("cast it:", wanted, info.name)
            )
        shape = given.shape
        if tensor.HasField("shape"):
            if len(tensor.shape.dim) != given.rank:
                raise self._misfit(info.name, given, f"has {len(tensor.shape.dim)} axes")
            shape = tuple([self._size(info, axis, given, names) for axis in range(given.rank)])
            self._shapes[info.name] = shape
        out.type.CopyFrom(type_proto(self.placed.type(TensorType(given.dtype, shape))))
        for own, made in zip(tensor.shape.dim, out.type.tensor_type.shape.dim, strict=False):
            if isinstance(self._sizes.get(own.dim_param, ("", ""))[0], int):
                made.dim_param = own.dim_param  # it is bound, wherever the model names it
        return out

    def _size(self, info: ValueInfoProto, axis: int, given: TensorType, names: set[str]) -> Dim:
        """The size of an axis inside the model. Raises ``OpError``."""
        declared, size = info.type.tensor_type.shape.dim[axis], given.shape[axis]
        if declared.HasField("dim_value") and declared.dim_value >= 0:
            fixed = int(declared.dim_value)
            self._require(info.name, axis, given, fixed, f"has {fixed}")
            return fixed
        if declared.dim_param in NO_NAMES:
            return size
        text = declared.dim_param
        meant = dim_of_text(text, names)
        if isinstance(meant, DimExpr) and meant.name == text:
            if text not in self._sizes:
                self._sizes[text] = (size, f"{info.name} has {text} = {size}")
                self.placed.prefer(text, size)
                return size
            known, why = self._sizes[text]
            self._require(info.name, axis, given, known, f"has {text}, and {why}")
            return known
        known_names = {name: found for name, (found, _) in self._sizes.items()}
        if not isinstance(meant, int) and not dim_names(meant) <= known_names.keys():
            return size
        told = substitute(meant, known_names)
        self._require(info.name, axis, given, told, f"has {text}, which is {told}")
        return told

    def _require(self, name: str, axis: int, given: TensorType, wanted: Dim, what: str) -> None:
        """Prove that the axis has the size, or leave it to run time. Raises ``OpError``."""
        size = given.shape[axis]
        equal = self.graph.dims.equal(size, wanted)
        if equal is False:
            raise self._misfit(name, given, f"{what} at axis {axis}")
        if equal is None:
            self.conditions.append(Condition(size, "==", wanted, f"the input {name} of {self.title} {what}"))

    def _misfit(self, name: str, given: TensorType, what: str, help: Help = "") -> OpError:
        mine = self.given[name].name
        message = f"{mine if mine else 'the operand'} is {given}, and the input {name} of {self.title} {what}"
        return OpError(codes.OPERAND_DOES_NOT_FIT, message, at=name, under=f"this is {given}", help=help)


def _known(operand: tuple[str, Value]) -> tuple[str, Tensor | None]:
    name, value = operand
    tensor = constant_of(value)
    return name, tensor if tensor is not None and tensor.size <= _MOST_ELEMENTS else None


def _input(info: ValueInfoProto, has_default: bool) -> ModelInput:
    dtype = DTYPE_OF.get(info.type.tensor_type.elem_type) if info.type.HasField("tensor_type") else None
    return ModelInput(info.name, dtype, has_default, info.type.HasField("optional_type"))


def _input_dims(graph: Graph) -> set[str]:
    return {name for value in graph.inputs for size in value.shape for name in dim_names(size)}


def _dims(graph: Graph) -> set[str]:
    """All dims in the types of a graph's values, and of the graphs inside it."""
    names = _input_dims(graph)
    for node in graph:
        for value in node.results:
            for size in value.shape:
                names |= dim_names(size)
        for size in node.attributes.dims():
            names |= size.names()
        if isinstance(node.attributes, OpaqueAttributes):
            names |= {name for type in node.attributes.types for size in type.shape for name in dim_names(size)}
        for region in node.regions:
            names |= _dims(region.graph)
    return names


def _name(nodes: Sequence[Node], name: str) -> None:
    """Let the names of nodes and values, those of the graphs inside included, begin with the name of the call."""
    for number, node in enumerate(nodes):
        title = node.attributes.op_type if isinstance(node.attributes, OpaqueAttributes) else node.op.name
        node.name = _below(name, node.name or f"{title}_{number}")
        for value in node.results:
            value.name = _below(name, value.name) if value.name else None
        for region in node.regions:
            if not calls_by_name(node):
                for value in region.graph.inputs:
                    value.name = _below(name, value.name) if value.name else None
                region.graph.output.attributes = _renamed(region.graph, name)
            _name(list(region.graph), name)


def _renamed(graph: Graph, name: str) -> OutputAttributes:
    return OutputAttributes(names=tuple([_below(name, output) for output, _ in graph.outputs]))


def _below(name: str, inner: str) -> str:
    """The name of something in a call; exporters begin names with a slash."""
    return f"{name}/{inner.removeprefix('/')}"
