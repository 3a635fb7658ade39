"""Building an ``onnx.GraphProto`` node by node.

A lowering calls :meth:`NodeWriter.op` for each ONNX node it wants and returns the names of its results. The nodes of
one IR node are kept as plain lists until its lowering is done; only then they get their names and become protos, so
that a result is written under its final name without a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct, field
from onnx import AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto

from dmlc.codegen.onnx.annotations import annotations_of, has_annotations
from dmlc.codegen.onnx.names import Names, Namespace, is_weight, must_copy, output_owner
from dmlc.codegen.onnx.value_types import ValueTypes
from dmlc.diagnostics import Span
from dmlc.inference import Fact
from dmlc.ir import DType, Graph, Node, StoredTensor, Tensor, TensorType, Value, as_dtype, dim_names, is_absent
from dmlc.ir.dtype import i64
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.schemas import DOMAIN_VERSIONS
from dmlc.onnx_schema.types import ELEMENT_TYPE, type_proto
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.targets import KernelTable, Target, kernel_table


class _Pending(Struct):
    """An ONNX node before it has its name. ``label`` is the name of a node that belongs to no IR node.

    ``form`` is its operator with its attributes, None where it must not be shared."""

    op_type: str
    domain: str
    inputs: list[str]
    outputs: list[str]
    attributes: list[AttributeProto] = field(default_factory=list)
    label: str = ""
    form: tuple[Any, ...] | None = None


class _Shared:
    """State that the graph of a model and the graphs inside its nodes share: the names, and the weights, which stand
    in the outermost graph."""

    def __init__(self, graph: Graph) -> None:
        self.names: Names = Names(graph)
        self.weights: list[TensorProto] = []
        self.sparse: list[SparseTensorProto] = []
        self.locations: dict[str, str] = {}
        self.report: dict[str, None] = {}
        self.domains: set[str] = set()
        self.constants: dict[Tensor, str] = {}
        #: Initializers without a name, by what stands for it until the model is written.
        self.unnamed: dict[str, TensorProto] = {}
        self.int_vectors: dict[tuple[int, ...], str] = {}
        self.attributes: dict[Any, AttributeProto] = {}
        #: The values around a graph inside a node, by the inputs that stand for them in it.
        self.captured: dict[Value, Value] = {}
        self.types: ValueTypes = ValueTypes(graph.dims, self.weights, _declared_dims(graph))


def _declared_dims(graph: Graph) -> set[str]:
    """The names of dims that the model's inputs declare."""
    if graph.origin is None:
        return {name for value in graph.inputs for size in value.shape for name in dim_names(size)}
    infos = graph.origin.inputs.values()
    return {size.dim_param for info in infos for size in info.type.tensor_type.shape.dim}


_Writer = TypeVar("_Writer", bound="NodeWriter")


class NodeWriter:
    """The state of one emission: names, constants, and the nodes of the IR node at work.

    ``parent`` is the writer of the graph around this one, ``proto`` where to write to.
    """

    def __init__(
        self: _Writer,
        graph: Graph,
        target: Target,
        opset: int,
        parent: _Writer | None = None,
        proto: GraphProto | None = None,
    ) -> None:
        self.graph = graph
        self.target = target
        self.opset = opset
        self.kernels: KernelTable | None = kernel_table(target)
        self.proto: GraphProto = GraphProto() if proto is None else proto
        self.proto.name = graph.name
        self.nodes: Any = self.proto.node
        self.is_outermost: bool = parent is None
        self.shared: _Shared = _Shared(graph) if parent is None else parent.shared
        self._names: dict[Value, str] = {}
        self._output_names: dict[Value, str] = {}
        self._outputs: list[str] = []
        self._pending: list[_Pending] = []
        self._made: dict[str, tuple[_Pending, int]] = {}
        #: The result of each node by its form and inputs: what two lowerings need is computed once.
        self._written: dict[tuple[Any, ...], str] = {}
        self._shared_now: dict[tuple[Any, ...], str] = {}
        self._taken: dict[str, tuple[str, list[str], str, Mapping[str, Any]]] = {}
        self.base: str = ""
        #: The node that makes the first result of the IR node at work; it has that one's name.
        self._main: _Pending | None = None
        self._annotates: bool = has_annotations(graph, target, opset) if parent is None else parent._annotates
        self._annotations: list[tuple[str, str]] = []
        self._temporaries = 0
        self._between: list[str] = []
        self._around: set[str] = set()
        self._dropped: set[str] = set()
        self.values: Namespace = self.shared.names.values
        self.node_names: Namespace = self.shared.names.nodes
        self._begin(parent)
        self._name_interface(outermost=parent is None)

    def _begin(self: _Writer, parent: _Writer | None) -> None:
        """Set up what a class below adds, from what ``parent`` knows."""

    @property
    def locations(self) -> dict[str, str]:
        return self.shared.locations

    @property
    def report(self) -> dict[str, None]:
        return self.shared.report

    @property
    def domains(self) -> set[str]:
        return self.shared.domains

    def _name_interface(self, *, outermost: bool) -> None:
        """Name the outputs, and the inputs of a model. Both are kept verbatim.

        Outputs of a graph inside a node are mostly known by position: these give way to names that others have.
        """
        graph = self.graph
        is_verbatim = outermost or graph in self.shared.names.called
        if outermost:
            for value in graph.inputs:
                assert value.name is not None
                self.name_input(value, value.name)
        for name, value in graph.outputs:
            final = name
            if not is_verbatim:
                final = self.values.own(output_owner(graph, value), name, "output")
                if final in self._outputs:
                    final = self.values.new(name)
            self._outputs.append(final)
            if value.producer is not None and not must_copy(value.producer, outermost=outermost):
                self._output_names.setdefault(value, final)

    def name_input(self, value: Value, name: str) -> None:
        """Name an input of the model, or a value that a graph inside a node captures."""
        self._names[value] = name
        self._around.add(name)
        self.shared.types.types[name] = value.type

    def name_formal(self, value: Value) -> str:
        """Name an input of a graph inside a node. One that is known by position gives way."""
        called = self.shared.names.called.get(self.graph, ())
        name = value.name if value.name and value.name in called else self.values.own(value, value.name, "input")
        self.name_input(value, name)
        return name

    # --- operands

    def of(self, value: Value | None) -> str:
        """The ONNX name of an operand; empty where it is absent."""
        if value is None:
            return ""
        name = self._names.get(value)
        if name is None:
            producer = value.producer
            assert producer is not None
            assert producer.op is CONSTANT, producer
            tensor = producer.attributes_as(ConstantAttributes).value
            name = self._names[value] = self.tensor(tensor, value.name)
        return name

    def bind(self, value: Value, name: str) -> None:
        """Name a value that is in no graph, until ``release``."""
        self._names[value] = name

    def release(self, value: Value) -> str:
        """Forget a value that is in no graph; its name."""
        return self._names.pop(value)

    def operand(self, node: Node, index: int) -> str:
        return self.of(node.operands[index])

    def is_written(self, value: Value) -> bool:
        """Return whether a result has a name by now; one that nothing reads may have none."""
        return value in self._names

    # --- constants

    def tensor(self, tensor: Tensor, name: str | None = None) -> str:
        """An initializer with that data; equal data is stored once."""
        constants = self.shared.constants
        found = constants.get(tensor)
        if found is None:
            found = self.values.own(tensor, name) if name else f"\0{len(constants)}"
            constants[tensor] = found
            self.shared.weights.append(weight_proto(tensor, found))
            if not name:
                self.shared.unnamed[found] = self.shared.weights[-1]
        return found

    def array(self, data: Any, dtype: DType) -> str:
        return self.tensor(Tensor(np.asarray(data, dtype=dtype.numpy)))

    def scalar(self, value: int | float | bool, dtype: DType) -> str:
        return self.array(value, dtype)

    def ints(self, values: Iterable[int]) -> str:
        """A vector of i64, as shapes and axes are given."""
        key = tuple(values)
        found = self.shared.int_vectors.get(key)
        if found is None:
            found = self.shared.int_vectors[key] = self.array(key, i64)
        return found

    # --- nodes

    def op(self, op_type: str, inputs: Sequence[str], *, domain: str = "", label: str = "", **attributes: Any) -> str:
        """A node with one result; its name. Trailing absent inputs are left out, attributes of None too."""
        return self.ops(op_type, inputs, 1, domain=domain, label=label, **attributes)[0]

    def ops(
        self,
        op_type: str,
        inputs: Sequence[str],
        count: int,
        *,
        domain: str = "",
        label: str = "",
        protos: Sequence[AttributeProto] = (),
        **attributes: Any,
    ) -> list[str]:
        """A node with ``count`` results; their names. ``protos`` are attributes that are made already."""
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        form = None if protos or count > 1 else _form(op_type, domain, attributes)
        key = (form, *given)
        twin = None if form is None else self._shared_now.get(key) or self._written.get(key)
        if twin is not None:
            self._taken[twin] = (op_type, given, domain, attributes)
            return [twin]
        out = self._add(op_type, given, count, domain, label, protos, attributes, form)
        if form is not None:
            self._shared_now[key] = out[0]
        return out

    def _add(
        self,
        op_type: str,
        given: list[str],
        count: int,
        domain: str,
        label: str,
        protos: Sequence[AttributeProto],
        attributes: Mapping[str, Any],
        form: tuple[Any, ...] | None,
    ) -> list[str]:
        outputs = [self._temporary() for _ in range(count)]
        made = [*protos, *[self._attribute(k, v) for k, v in attributes.items() if v is not None]]
        entry = _Pending(op_type, domain, given, outputs, made, label, form)
        for i, name in enumerate(outputs):
            self._made[name] = (entry, i)
        self._pending.append(entry)
        if domain:
            self.domains.add(domain)
        return list(outputs)

    def cast(self, name: str, to: DType, *, have: DType | None = None) -> str:
        """The value in another dtype; itself where it is known to have it."""
        return name if have is to else self.op("Cast", [name], to=ELEMENT_TYPE[to])

    def note(self, sentence: str) -> None:
        """A sentence for the artifact's report; equal ones stand there once."""
        self.report[sentence] = None

    def name_result(self, value: Value) -> str:
        """The name of a result that is written as it is: an output's, else its own, else a new one."""
        wanted = self._output_names.get(value)
        name = self._names[value] = wanted or self.values.own(value, value.name, "value")
        self.shared.types.types[name] = value.type
        return name

    # --- one IR node

    def begin(self, base: str, node: Node | None = None) -> None:
        """Begin a group of ONNX nodes. They and their values are named after ``node``, or else after ``base``."""
        self.base = self.node_names.own(node, node.name if node is not None else None, base)
        self._main = None
        self._annotations = annotations_of(node) if node is not None and self._annotates else []
        self._temporaries = 0
        self._taken = {}

    def finish(self, node: Node, results: Sequence[str]) -> None:
        """Give the results their final names and turn what is pending into protos."""
        renamed: dict[str, str] = {}
        many, unread = len(node.results) > 1, False
        if not self._pending and len(results) == 1 and results[0] in self._taken:
            # A node as a whole is not shared: that is ``cse``, which may have been left out.
            op_type, given, domain, attributes = self._taken[results[0]]
            results = [self._add(op_type, given, 1, domain, "", (), attributes, None)[0]]
        for i, (value, name) in enumerate(zip(node.results, results, strict=True)):
            wanted = self._output_names.get(value)
            entry = self._made.get(name)
            if entry is None or name in renamed:
                if wanted is None:
                    self._names[value] = renamed.get(name, name)
                    continue
                name = self.op("Identity", [renamed.get(name, name)])
                entry = self._made[name]
            is_read = not i or wanted is not None or value.uses
            if not is_read and is_absent(value.type):
                entry[0].outputs[entry[1]] = ""  # an optional result that the node does not have
                continue
            final = wanted or self.values.own(value, value.name, f"{self.base}.{i}" if many else self.base)
            entry[0].outputs[entry[1]] = final
            self._main = self._main or entry[0]
            renamed[name] = final
            self._names[value] = final
            if is_read:
                self.shared.types.types[final] = value.type
            else:
                unread = True  # nothing has cast it: it is of the type that the node gives
        self.flush(node.spans[0] if node.spans else None, renamed, between=unread)

    def flush(self, span: Span | None, renamed: dict[str, str] | None = None, *, between: bool = False) -> None:
        """Turn what is pending into protos. ``between`` says that the types of some results are not known yet."""
        pending = self._pending
        if not pending:
            return
        place = span.place if span is not None else ""
        own = len([entry for entry in pending if not entry.label])
        for k, entry in enumerate(pending):
            inputs = entry.inputs
            if renamed and len(pending) > 1:
                inputs = [renamed.get(n, n) for n in inputs]
            if entry is self._main or (own == 1 and not entry.label):
                name = self.base
            else:
                name = self.node_names.new(entry.label or f"{self.base}/{entry.op_type}_{k}")
            self._write(entry, name, inputs, place)
            if entry.form is not None:
                self._written.setdefault((entry.form, *inputs), entry.outputs[0])
        if len(pending) > 1 or between:
            self.type_between(self.nodes[len(self.nodes) - len(pending) :])
        pending.clear()
        self._made.clear()
        self._shared_now.clear()

    def _write(self, entry: _Pending, name: str, inputs: Sequence[str], place: str) -> None:
        # field by field: keywords of ``add`` take longer
        node = self.nodes.add()
        node.op_type = entry.op_type
        if entry.domain:
            node.domain = entry.domain
        node.name = name
        node.input.extend(inputs)
        node.output.extend(entry.outputs)
        if entry.attributes:
            attributes = node.attribute
            for made in entry.attributes:
                attributes.add().CopyFrom(made)
        if self._annotations:
            rows = node.metadata_props
            for key, text in self._annotations:
                row = rows.add()
                row.key = key
                row.value = text
        if place:
            node.doc_string = place
            self.locations[name] = place

    def type_between(self, nodes: Sequence[NodeProto]) -> None:
        """Type the results of nodes of the graph that a lowering made on its way to a value's."""
        self._between += self.shared.types.infer(nodes, self._opset_of)

    def _opset_of(self, domain: str) -> int:
        if not plain_domain(domain):
            return self.opset
        versions = getattr(self.graph.origin or self.graph.joined, "versions", {})
        return int(versions.get(domain) or DOMAIN_VERSIONS.get(domain, 1))

    def declare_values(self) -> None:
        """Write the types of all values of the graph that are not part of its interface into its ``value_info``."""
        made = [
            name for value, name in self._names.items() if value.producer is not None and not is_weight(value.producer)
        ]
        apart = {*self._around, *self._dropped, *self._outputs, *self.shared.constants.values()}
        names = [name for name in dict.fromkeys([*made, *self._between]) if name not in apart]
        self.shared.types.declare(self.proto, names, self.domains)

    def outputs(self, declared: Mapping[str, ValueInfoProto]) -> None:
        """The graph's outputs; those that are inputs, constants or were named already are copied.

        ``declared`` are the declarations that an imported model has.
        """
        written: set[str] = set()
        for name, (_, value) in zip(self._outputs, self.graph.outputs, strict=True):
            source = self.of(value)
            if source != name and name not in written:
                self.begin(f"output_{name}")
                copy = self.op("Identity", [source])
                self._made[copy][0].outputs[0] = name
                self.flush(value.producer.spans[0] if value.producer and value.producer.spans else None)
            written.add(name)
            self.proto.output.append(declared.get(name) or value_info(name, value.type))

    @property
    def output_names(self) -> Sequence[str]:
        """The names of the graph's outputs."""
        return self._outputs

    def copy_to_output(self, node: NodeProto, user: NodeProto) -> None:
        """Rename the one result of a node, an output that one node reads, and make the output a copy of it."""
        output = node.output[0]
        name = self.rename_result(node, output)
        user.input[:] = [name if read == output else read for read in user.input]
        self.begin(f"output_{output}")
        copy = self.op("Identity", [name])
        self._made[copy][0].outputs[0] = output
        self.flush(None)

    def rename_result(self, node: NodeProto, name: str) -> str:
        """Give a result of a node a new name; the caller writes what has the old one from then on."""
        kept = self.values.new(f"{name}/kept")
        node.output[:] = [kept if each == name else each for each in node.output]
        if name in self.shared.types.types:
            self.shared.types.types[kept] = self.shared.types.types[name]
        self._between.append(kept)
        return kept

    def fact_of(self, name: str) -> Fact:
        """The type of a value of the emitted graph, and its elements where it is a small constant."""
        return self.shared.types.fact_of(name)

    def _temporary(self) -> str:
        self._temporaries += 1
        return self.values.new(f"{self.base}:{self._temporaries}")

    # --- attributes

    def _attribute(self, name: str, value: Any) -> AttributeProto:
        if isinstance(value, (TensorProto, GraphProto)):
            return attribute_proto(name, value)
        kind = type(value[0]) if isinstance(value, tuple) and value else type(value)
        key = (name, kind, value)
        found = self.shared.attributes.get(key)
        if found is None:
            found = self.shared.attributes[key] = attribute_proto(name, value)
        return found


def _form(op_type: str, domain: str, attributes: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The operator with its attributes, to compare; None for one that is not compared."""
    if op_type == "Identity" or any(isinstance(v, (TensorProto, GraphProto)) for v in attributes.values()):
        return None
    return (op_type, domain, *[(k, type(v), v) for k, v in attributes.items() if v is not None])


def attribute_proto(name: str, value: Any) -> AttributeProto:
    """An attribute from a bool, int, float, str, tensor, graph, or a tuple of ints, floats or strings."""
    out = AttributeProto(name=name)
    if isinstance(value, (bool, int)):
        out.type, out.i = AttributeProto.INT, int(value)
    elif isinstance(value, float):
        out.type, out.f = AttributeProto.FLOAT, value
    elif isinstance(value, str):
        out.type, out.s = AttributeProto.STRING, value.encode()
    elif isinstance(value, TensorProto):
        out.type = AttributeProto.TENSOR
        out.t.CopyFrom(value)
    elif isinstance(value, GraphProto):
        out.type = AttributeProto.GRAPH
        out.g.CopyFrom(value)
    elif value and isinstance(value[0], str):
        out.type = AttributeProto.STRINGS
        out.strings.extend([text.encode() for text in value])
    elif value and isinstance(value[0], float):
        out.type = AttributeProto.FLOATS
        out.floats.extend(value)
    else:
        out.type = AttributeProto.INTS
        out.ints.extend(value)
    return out


def tensor_proto(array: np.ndarray[Any, Any], name: str = "") -> TensorProto:
    """A tensor with raw little-endian data."""
    data = array if array.dtype.byteorder != ">" else array.astype(array.dtype.newbyteorder("<"))
    dtype = ELEMENT_TYPE[as_dtype(array.dtype)]
    return TensorProto(name=name, dims=array.shape, data_type=dtype, raw_data=data.tobytes())


def weight_proto(tensor: Tensor, name: str) -> TensorProto:
    """The data as an initializer; data that an imported model stores is passed on as it is stored."""
    store = tensor.store if isinstance(tensor, StoredTensor) else None
    if not isinstance(store, TensorProto):
        return tensor_proto(tensor.array, name)
    if store.name == name:
        return store
    out = TensorProto()
    out.CopyFrom(store)
    out.name = name
    return out


def value_info(name: str, type: TensorType) -> ValueInfoProto:
    """A typed value; symbolic sizes are parameters by their text."""
    return ValueInfoProto(name=name, type=type_proto(type))
