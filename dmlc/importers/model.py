"""A model becomes a graph: its interface, its weights, its nodes in order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from onnx import GraphProto, ModelProto, SparseTensorProto, TensorProto, ValueInfoProto

from dmlc.diagnostics import DmlcError, did_you_mean, fail, naming, sentences
from dmlc.diagnostics.catalogue import models as codes
from dmlc.diagnostics.catalogue import runs
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.importers.claims import ClaimCheck, changing_formals, corrected, formal_types, wrong
from dmlc.importers.faults import FaultCheck, sizes_without_end
from dmlc.importers.nodes import NodeReader
from dmlc.importers.order import Listed, check_names, in_order
from dmlc.importers.registry import Reading
from dmlc.importers.scope import GraphScope
from dmlc.importers.types import DeclaredTypes, bind, type_of, weight_type
from dmlc.importers.types import Path as GraphPath
from dmlc.importers.weights import stored
from dmlc.inference.protos import NO_NAMES
from dmlc.ir import DimTable, ForeignType, Graph, Region, StoredTensor, Tensor, Value
from dmlc.ir.providers import record_providers
from dmlc.onnx_schema.declared import believed, declared_dims, open_negative_sizes, own_dims
from dmlc.onnx_schema.domains import imported_versions
from dmlc.onnx_schema.functions import check_functions
from dmlc.onnx_schema.inlining import inlined
from dmlc.onnx_schema.nested import all_nodes
from dmlc.onnx_schema.origin import ModelOrigin
from dmlc.onnx_schema.types import DTYPE_OF, type_proto
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE, Held, OpaqueAttributes
from dmlc.ops.ranges import Range, promise, promised_in

#: The first line of a pointer file (git-lfs, docs/spec.md).
_POINTER = b"version https://git-lfs"


def read_model(path: Path, data: bytes, limits: Limits = DEFAULTS) -> ModelProto:
    """The model in a file's bytes; external data is not looked at.

    Raises ``DmlcError``: E0430, and what functions raise that a runtime would unfold without end.
    """
    with naming(str(path)):
        return _parsed(path, data, limits)


def _parsed(path: Path, data: bytes, limits: Limits) -> ModelProto:
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except Exception:  # protobuf's DecodeError, whose module is not ours to load
        if data.startswith(_POINTER):
            help = "git lfs pull fetches the model"
            raise fail(codes.NOT_A_MODEL, f"{path} is a pointer of Git LFS, not an ONNX model", help=help) from None
        raise fail(codes.NOT_A_MODEL, f"{path} is not an ONNX model: it cannot be parsed") from None
    _require_graph(model)
    check_functions(model, limits)
    return model


def _require_graph(model: ModelProto) -> None:
    """Raises ``DmlcError`` E0430 for a message without a graph or opsets, which an empty file holds too."""
    if not model.HasField("graph") or not model.opset_import:
        raise fail(codes.NOT_A_MODEL, "the model has no graph or imports no operators", help="is it an ONNX model?")


def import_model(
    model: ModelProto,
    *,
    folder: Path | None = None,
    binding: Mapping[str, int] | None = None,
    limits: Limits = DEFAULTS,
    opaque: bool = False,
    has_shapes: bool = False,
    runs: bool = False,
    weights: dict[tuple[GraphPath, str], Tensor] | None = None,
) -> Graph:
    """The graph of a model; ``binding`` fixes its named dims. The model is not changed, and the graph refers to it.

    Outputs are declared as they are in the model; with the type that is known where it declares none, and with the
    sizes that are known if sizes are bound, or the model ``has_shapes`` that ``fix_shapes`` declared. With ``opaque``
    every node is imported as an opaque one: nothing about it can be rewritten. With ``runs``, a node that loads and
    fails in each run is a fault of the model too.
    ``weights`` keeps the weights that are read, so that the same model read again holds the same ones.

    Sizes that are not named become dims ``unknown_0`` and so on; all dims are 0 or more. Raises ``DmlcError``: E0430
    if it is not an ONNX model, E0431 if its graph is broken, E0555 for a dim that it does not have, and the codes of
    the limits on nodes, axes and names.
    """
    _check(model, limits)
    bound = dict(binding or {})
    _check_binding(model.graph, bound)
    check_functions(model, limits)
    model = inlined(model)
    importer = _Importer(model, folder, bound, limits, opaque=opaque, completes=bool(bound) or has_shapes)
    importer.stored = {} if weights is None else weights
    try:
        graph = importer.run()
        importer.check.raise_if_any(runs=runs)
        return graph
    except DmlcError:
        raise
    except Exception:
        importer.check.raise_if_any()  # a faulty node is the reason
        raise


def _check(model: ModelProto, limits: Limits) -> None:
    _require_graph(model)
    if not model.graph.output:
        raise fail(codes.BROKEN_MODEL, "the model has no outputs")
    if any(entry.version < 0 for entry in model.opset_import):
        raise fail(codes.BROKEN_MODEL, "the model imports operators of a negative version")
    uncountable = next(sizes_without_end(model.graph), None)
    if uncountable is not None:
        raise fail(codes.BROKEN_MODEL, uncountable)
    check_names([*own_dims(model.graph), model.graph.name], limits)


def _check_binding(graph: GraphProto, binding: Mapping[str, int]) -> None:
    weights = {t.name for t in graph.initializer}
    inputs = [i for i in graph.input if i.name not in weights]
    names = sorted({d.dim_param for i in inputs for d in i.type.tensor_type.shape.dim if d.dim_param})
    for name, size in binding.items():
        if name not in names:
            has = f"its dims are {', '.join(names)}" if names else "none of its sizes has a name"
            help = sentences(did_you_mean(name, names), has)
            raise fail(runs.BAD_BINDING, f"the model has no dim {name}", help=help)
        if size < 0:
            raise fail(runs.BAD_BINDING, f"{name}={size} is out of bounds: {name} is 0 or more")


class _Importer:
    def __init__(
        self,
        model: ModelProto,
        folder: Path | None,
        binding: Mapping[str, int],
        limits: Limits,
        *,
        opaque: bool,
        completes: bool,
    ) -> None:
        self.model = model
        self.completes = completes
        self.opaque = opaque
        self.limits = limits
        self.count = 0
        self.folder = folder
        self.binding = binding
        self.versions = imported_versions(model.opset_import)
        self.nodes = self._in_order(model.graph, {info.name for info in model.graph.input})
        holders = [node.proto for node in self.nodes if node.attributes and node.may_hold_graphs]
        self.dims = DimTable(least=0, taken=dict.fromkeys(sorted(declared_dims(model.graph, holders))))
        self.types = DeclaredTypes(model, binding, self.dims.new_dim)
        self.claims = ClaimCheck()
        self.check = FaultCheck(model, self.versions)
        self.inlined = GraphProto().value_info
        self.stored: dict[tuple[GraphPath, str], Tensor] = {}

    def run(self) -> Graph:
        source = self.model.graph
        graph = Graph(source.name or "model", opset=self.versions.get("", 1))
        graph.dims = self.dims
        scope = GraphScope(graph, self.types, (), None, self.folder, source)
        overridable = self._inputs(scope, source)
        self._weights(scope, source, overridable)
        self._read(scope, self.nodes)
        for info in source.output:
            graph.add_output(info.name, self._output(scope, info.name))
        promise(graph, self._promised(graph))
        record_providers(graph)
        self.claims.graph(scope, source)
        graph.advice += self.claims.advice()
        self.check.raise_if_any()
        graph.origin = self._origin(scope, source)
        return graph

    def _inputs(self, scope: GraphScope, source: GraphProto) -> set[str]:
        """Declare the inputs; the names of those that have a default. Before IR version 4 every weight is listed."""
        weights = {t.name for t in source.initializer} | {t.values.name for t in source.sparse_initializer}
        overridable = set()
        for info in source.input:
            if info.name in weights:
                if self.model.ir_version < 4:
                    continue
                overridable.add(info.name)
            if info.name in scope.values:
                raise fail(codes.BROKEN_MODEL, f"two inputs are named {info.name}")
            type = type_of(info.type, self.binding, self.dims.new_dim)
            self._check_rank(info.name, type.rank)
            scope.define(info.name, scope.graph.add_input(info.name, type))
        return overridable

    def _promised(self, graph: Graph) -> dict[str, Range]:
        """The ranges that a compiled model promises of the inputs that it still has."""
        found = promised_in({entry.key: entry.value for entry in self.model.metadata_props})
        names = {value.name for value in graph.inputs}
        return {name: range for name, range in found.items() if name in names}

    def _weights(self, scope: GraphScope, source: GraphProto, overridable: set[str]) -> None:
        for tensor in source.initializer:
            if tensor.name in overridable:
                value = scope.values[tensor.name]
                assert value is not None
                scope.graph.defaults[value] = self._default(tensor)
            else:
                self._weight(scope, tensor)
        for sparse in source.sparse_initializer:
            scope.define_weight(sparse.values.name, lambda s=sparse: self._foreign(scope, s.values.name, s))  # type: ignore[misc]

    def _default(self, tensor: TensorProto) -> Tensor:
        """The data of an input that need not be fed; of a type that the language lacks it is only passed on."""
        if tensor.data_type in DTYPE_OF:
            return stored(tensor, self.folder)
        return StoredTensor(ForeignType(), tensor, _nothing)

    def _check_rank(self, name: str, rank: int) -> None:
        if rank > self.limits.rank:
            raise self.limits.passed("rank", f"{name} has", rank)

    def _weight(self, scope: GraphScope, tensor: TensorProto) -> None:
        self._check_rank(tensor.name, len(tensor.dims))
        if tensor.data_type in DTYPE_OF:
            scope.define_weight(tensor.name, lambda: scope.constant(self._stored(scope, tensor), tensor.name))
        else:
            scope.define_weight(tensor.name, lambda: self._foreign(scope, tensor.name, tensor))

    def _stored(self, scope: GraphScope, tensor: TensorProto) -> Tensor:
        key = (scope.path, tensor.name)
        found = self.stored.get(key)
        if found is None:
            found = self.stored[key] = stored(tensor, self.folder)
        return found

    def _foreign(self, scope: GraphScope, name: str, data: TensorProto | SparseTensorProto) -> Value:
        """A weight of a type that the language does not have: a node without operands that holds it."""
        type = ForeignType()
        if isinstance(data, TensorProto):
            type = ForeignType(proto=weight_type(data).SerializeToString(deterministic=True))
        attributes = OpaqueAttributes(op_type="Initializer", types=(type,), unplain=(Held(data),))
        node = scope.graph.add(OPAQUE, (), attributes)
        node.result.name = name
        return node.result

    def _in_order(self, source: GraphProto, known: Collection[str]) -> list[Listed]:
        """The nodes of a graph in order; ``known`` are the names of values that are there before them."""
        self.count += len(source.node)
        if self.count > self.limits.nodes:
            have = sum(1 for _ in all_nodes(self.model.graph.node))
            raise self.limits.passed("nodes", "the model has", have)
        nodes = in_order(source.node, {*known, *[tensor.name for tensor in source.initializer]}, self.limits)
        check_names([node.name for node in nodes], self.limits)
        return nodes

    def _read(self, scope: GraphScope, nodes: list[Listed]) -> None:
        """Read the nodes, and empty the list meanwhile: it takes as much memory as the graph."""
        reader = NodeReader(
            scope, self.versions, self._region, self._inline, self.limits, self.check, opaque=self.opaque
        )
        nodes.reverse()
        while nodes:
            reader.read(nodes.pop())

    def _output(self, scope: GraphScope, name: str) -> Value:
        value = scope.find(name)
        if value is None:
            raise fail(codes.BROKEN_MODEL, f"output {name} is made by no node")
        return value

    def _region(
        self, reading: Reading, path: GraphPath, attribute: str, source: GraphProto
    ) -> tuple[Region, list[Value]]:
        """A graph inside a node, and the values around it that it captures. Their operand numbers are counted from 0;
        the node's own operands come before."""
        opened: set[int] = set()
        faults = len(self.check.faults)
        while True:  # until the declared inputs hold for every run of a body
            del self.check.faults[faults:]
            scope = self._inner(reading, path, attribute, source, opened)
            changing = changing_formals(reading, Region(attribute, scope.graph))
            if changing <= opened:
                break
            opened |= changing
        self.claims.graph(scope, source)
        outer, graph = reading.scope, scope.graph
        captured = []
        for name, value in scope.captures.items():
            value.index = len(graph.inputs)
            graph.inputs.append(value)
            around = outer.find(name)
            assert around is not None
            captured.append(around)
        return Region(attribute, graph, tuple(range(len(captured)))), captured

    def _inner(
        self, reading: Reading, path: GraphPath, attribute: str, source: GraphProto, opened: set[int]
    ) -> GraphScope:
        """A graph inside a node, read; its inputs number ``opened`` may have any shape."""
        check_names(own_dims(source), self.limits)
        outer = reading.scope
        graph = Graph(source.name or attribute, opset=outer.graph.opset)
        graph.dims = self.dims
        scope = GraphScope(graph, self.types, path, outer, self.folder, source)
        types = formal_types(reading, attribute, source.input, self.binding, opened)
        for info, type in zip(source.input, types, strict=True):
            value = graph.add_input(info.name, type)
            scope.define(info.name, value)
            if type_proto(type) != info.type and not outer.facts.are_certain(reading.inputs):
                scope.facts.doubt(value)  # it is typed as it is fed
            if believed(info.type, type_proto(type)) is not info.type:
                self.claims.note(scope, info, type)
        self._weights(scope, source, set())
        self._read(scope, self._in_order(source, scope.values))
        for info in source.output:
            graph.add_output(info.name, self._output(scope, info.name))
        return scope

    def _inline(self, outer: GraphScope, path: GraphPath, source: GraphProto) -> list[Value]:
        check_names(own_dims(source), self.limits)
        scope = GraphScope(outer.graph, self.types, path, outer, self.folder, source)
        self._weights(scope, source, set())
        self._read(scope, self._in_order(source, scope.values))
        self.claims.graph(scope, source)
        values = [self._output(scope, info.name) for info in source.output]
        for info, value in zip(source.output, values, strict=True):
            is_opaque = value.producer is not None and value.producer.op in (OPAQUE, OPAQUE_IMPURE)
            if is_opaque and value.name and not wrong(scope, info):
                declared = self.inlined.add()  # ONNX Runtime may need a shape that its inference does not give
                declared.CopyFrom(info)
                declared.name = value.name
        return values

    def _origin(self, scope: GraphScope, source: GraphProto) -> ModelOrigin:
        frame = ModelProto()
        for name in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"):
            if self.model.HasField(name):
                setattr(frame, name, getattr(self.model, name))
        for name in ("opset_import", "metadata_props", "training_info", "functions"):
            getattr(frame, name).extend(getattr(self.model, name))
        if source.HasField("doc_string"):
            frame.graph.doc_string = source.doc_string
        frame.graph.name = source.name
        for name in ("quantization_annotation", "metadata_props"):
            if hasattr(source, name):
                getattr(frame.graph, name).extend(getattr(source, name))
        frame.graph.value_info.extend([info for info in source.value_info if not wrong(scope, info)])
        there = {info.name for info in frame.graph.value_info}
        frame.graph.value_info.extend([info for info in self.inlined if info.name not in there])
        for info in frame.graph.value_info:
            bind(info.type, self.binding)
            open_negative_sizes(info.type)
        names = {size.dim_param for info in source.input for size in info.type.tensor_type.shape.dim} - NO_NAMES
        outputs = [corrected(scope, info, names, has_new_sizes=self.completes) for info in source.output]
        return ModelOrigin(frame, self.versions, self.folder, self._infos(source.input), self._infos(outputs))

    def _infos(self, infos: Sequence[ValueInfoProto]) -> dict[str, ValueInfoProto]:
        out = {}
        for info in infos:
            copy = ValueInfoProto()
            copy.CopyFrom(info)
            bind(copy.type, self.binding)
            open_negative_sizes(copy.type)
            out[info.name] = copy
        return out


def _nothing() -> None:
    """Data of a type that the language lacks: nobody reads it."""
