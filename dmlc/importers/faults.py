"""Faults of a model that ONNX Runtime refuses to load: each node against its schema and ONNX's inference.

A node is looked at by itself, with the types that were inferred for its operands. What a model declares of the values
in between is not asked: ONNX Runtime tolerates wrong sizes there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, defs

from dmlc.diagnostics import Diagnostic, DmlcError
from dmlc.diagnostics.catalogue import models as codes
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.importers.inference import weight_info
from dmlc.importers.order import in_order
from dmlc.importers.types import bind
from dmlc.onnx_schema.inference import infer, is_known
from dmlc.records import dataclass

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
#: Faults that are reported of one model.
_MOST = 10
#: The first of a body's outputs that is a result of the node around it.
_RETURNED = {"If": 0, "Loop": 1, "Scan": 0}
_INTEGER = TypeProto(tensor_type=TypeProto.Tensor(elem_type=TensorProto.INT64))
_FLAG = TypeProto(tensor_type=TypeProto.Tensor(elem_type=TensorProto.BOOL))
_HANDED: dict[str, Callable[[list[TypeProto | None]], list[TypeProto | None]]] = {
    "Loop": lambda given: [_INTEGER, _FLAG, *given[2:]],
    "SequenceMap": lambda given: [],
}
#: Operators that are named in the sentence on what was not checked.
_NAMED = 3


@dataclass(slots=True)
class Unchecked:
    """The nodes of a model of which nothing says whether they load: by operator, and those of unknown operands."""

    operators: Counter[str] = field(default_factory=Counter)
    untyped: Counter[str] = field(default_factory=Counter)

    @property
    def sentence(self) -> str:
        """One line; empty if everything was checked."""
        parts = []
        if self.operators:
            parts.append(f"{_nodes(self.operators)}, which onnx {onnx.__version__} does not know")
        if self.untyped:
            parts.append(f"{_nodes(self.untyped)}, whose operands are not known well enough")
        return f"not checked: {'; '.join(parts)}" if parts else ""


def _nodes(counts: Counter[str]) -> str:
    total = sum(counts.values())
    names = sorted(counts)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{total} {'node' if total == 1 else 'nodes'} ({', '.join(names[:_NAMED])}{more})"


def check_nodes(
    model: ModelProto, versions: Mapping[str, int], binding: Mapping[str, int], limits: Limits = DEFAULTS
) -> Unchecked:
    """Check each node of a model, those of graphs inside nodes too; the nodes that could not be checked.

    Raises ``DmlcError`` E0431 with a diagnostic for each faulty node, ten at most.
    """
    check = _Check(versions, {(f.domain, f.name) for f in model.functions}, limits)
    check.interface(model)
    check.graph(model.graph, None, binding, is_constant=model.ir_version < 4)
    if check.faults:
        raise DmlcError(check.faults[:_MOST])
    return check.unchecked


@dataclass(slots=True)
class _TypeScope:
    """The types and small constants of one graph's values, and of those around it."""

    outer: _TypeScope | None
    types: dict[str, TypeProto] = field(default_factory=dict)
    data: dict[str, TensorProto] = field(default_factory=dict)

    def find(self, name: str) -> tuple[TypeProto | None, TensorProto | None]:
        scope: _TypeScope | None = self
        while scope is not None:
            if name in scope.types or name in scope.data:
                return scope.types.get(name), scope.data.get(name)
            scope = scope.outer
        return None, None


@dataclass(frozen=True, slots=True)
class _Answer:
    """The findings about nodes of one kind: a fault in words, or the types of the results.

    ``is_checked`` is false where ONNX's inference was not asked.
    """

    fault: str = ""
    types: Sequence[TypeProto | None] = ()
    is_checked: bool = True


class _Check:
    def __init__(self, versions: Mapping[str, int], functions: set[tuple[str, str]], limits: Limits) -> None:
        self.versions = versions
        self.limits = limits
        self.functions = functions
        self.faults: list[Diagnostic] = []
        self.unchecked = Unchecked()
        self._answers: dict[Any, _Answer] = {}
        self._interned: dict[bytes, TypeProto] = {}
        self._schemas: dict[tuple[str, str], bool] = {}
        self._kept: list[TensorProto] = []  # those whose identity is part of a key
        self._context = onnx.checker.C.CheckerContext()
        self._context.ir_version = onnx.IR_VERSION
        self._context.opset_imports = {**versions}

    def interface(self, model: ModelProto) -> None:
        """Look for inputs and weights without a type, and for operators of version 0."""
        names = [info.name for info in model.graph.input if not _is_typed(info.type)]
        names += [tensor.name for tensor in model.graph.initializer if tensor.data_type == 0]
        problems = [f"{name} lacks a type" for name in names]
        if self.versions.get("") == 0:
            problems.append("the model imports version 0 of ONNX's operators")
        self.faults += [Diagnostic(codes.BROKEN_MODEL, problem) for problem in problems]

    def graph(
        self,
        graph: GraphProto,
        outer: _TypeScope | None,
        binding: Mapping[str, int],
        given: Sequence[TypeProto | None] = (),
        *,
        is_constant: bool,
    ) -> list[TypeProto | None]:
        """Check the nodes of a graph; the types of its outputs, without sizes.

        ``given`` are the types that the node around the graph hands to its inputs, for those that declare none.
        ``is_constant`` says that initializers are constants though they are listed as inputs.
        """
        scope = _TypeScope(outer)
        for index, info in enumerate(graph.input):
            type = self._declared(info, binding, with_shape=True)
            if not _is_typed(type) and index < len(given):
                type = given[index] or type
            scope.types[info.name] = type
        fed = set() if is_constant else set(scope.types)
        for tensor in graph.initializer:
            if tensor.name not in fed:
                self._constant(scope, tensor.name, tensor)
        declared: dict[str, ValueInfoProto] | None = None
        for listed in in_order(graph.node, scope.types, self.limits):
            node = listed.proto
            if node.op_type == "Constant" and node.domain in ("", "ai.onnx") and self._constant_node(scope, node):
                continue
            types = self._node(node, scope, binding, is_constant=is_constant)
            for name, type in zip(node.output, types, strict=False):
                if not name:
                    continue
                if type is None:
                    if declared is None:
                        declared = {info.name: info for info in (*graph.value_info, *graph.output)}
                    type = self._declared(declared[name], {}, with_shape=False) if name in declared else None
                if type is not None:
                    scope.types[name] = type
        return [self._unsized(scope.find(info.name)[0]) for info in graph.output]

    def _unsized(self, type: TypeProto | None) -> TypeProto | None:
        """A type without its sizes."""
        if type is None or not type.HasField("tensor_type"):
            return type
        return self._intern(TypeProto(tensor_type=TypeProto.Tensor(elem_type=type.tensor_type.elem_type)))

    def _declared(self, info: ValueInfoProto, binding: Mapping[str, int], *, with_shape: bool) -> TypeProto:
        """A declared type; of one that ONNX Runtime may find wrong only the element type."""
        if not binding:
            type = self._intern(info.type)
        else:
            bound = TypeProto()
            bound.CopyFrom(info.type)
            bind(bound, binding)
            type = self._intern(bound)
        return type if with_shape else self._unsized(type) or type

    def _intern(self, type: TypeProto) -> TypeProto:
        return self._interned.setdefault(type.SerializeToString(deterministic=True), type)

    def _constant(self, scope: _TypeScope, name: str, tensor: TensorProto) -> None:
        scope.types[name] = self._intern(weight_info(tensor).type)
        if is_known(tensor):
            scope.data[name] = tensor
            self._kept.append(tensor)

    def _constant_node(self, scope: _TypeScope, node: NodeProto) -> bool:
        """Take over the tensor or the integers of a Constant; False for one of another form."""
        if len(node.attribute) != 1 or len(node.output) != 1 or node.input:
            return False
        (attribute,) = node.attribute
        if attribute.name == "value" and attribute.type == AttributeProto.TENSOR:
            tensor = attribute.t
        elif attribute.name == "value_ints" and attribute.type == AttributeProto.INTS:
            tensor = TensorProto(dims=[len(attribute.ints)], data_type=TensorProto.INT64, int64_data=attribute.ints)
        else:
            return False
        self._constant(scope, node.output[0], tensor)
        return True

    def _node(
        self, node: NodeProto, scope: _TypeScope, binding: Mapping[str, int], *, is_constant: bool
    ) -> Sequence[TypeProto | None]:
        domain = "" if node.domain == "ai.onnx" else node.domain
        label = f"{domain}.{node.op_type}" if domain else node.op_type
        graphs = [g for a in node.attribute if a.type in _GRAPHS for g in (a.g, *a.graphs) if g.name or g.node]
        if not self._is_known(domain, node.op_type):
            self.unchecked.operators[label] += 1
            answer = _Answer()
        else:
            answer = self._answer(node, domain, scope, bool(graphs))
            if answer.fault:
                self._report(node, label, answer.fault)
            elif not answer.is_checked and not graphs:
                self.unchecked.untyped[label] += 1
        made: list[Sequence[TypeProto | None]] = []
        for graph in graphs:
            given = [self._unsized(scope.find(name)[0]) for name in node.input]
            made.append(self.graph(graph, scope, {}, _HANDED.get(node.op_type, list)(given), is_constant=is_constant))
        if made and not domain and node.op_type in _RETURNED:
            return [*made[0][_RETURNED[node.op_type] :], *[None] * len(node.output)]
        return answer.types or [None] * len(node.output)

    def _is_known(self, domain: str, op_type: str) -> bool:
        key = (domain, op_type)
        if key not in self._schemas:
            version = self.versions.get(domain)
            newest = defs.onnx_opset_version() if domain == "" else _ENDLESS
            self._schemas[key] = (
                version is not None
                and key not in self.functions  # whose bodies are not looked into
                and version <= newest
                and defs.has(op_type, version, domain)
                and not defs.get_schema(op_type, version, domain).deprecated  # ONNX Runtime loads some of them
            )
        return self._schemas[key]

    def _report(self, node: NodeProto, label: str, fault: str) -> None:
        name = node.name or next(filter(None, node.output), "")
        where = f"{label} {name}".strip()
        help = "onnx.checker.check_model(model, full_check=True) says so, and ONNX Runtime does not load it"
        self.faults.append(Diagnostic(codes.BROKEN_MODEL, f"node {where}: {fault}", help=help))

    # --- one node

    def _answer(self, node: NodeProto, domain: str, scope: _TypeScope, has_graphs: bool) -> _Answer:
        numbers: dict[str, int] = {}
        operands = []
        for name in node.input:
            type, data = scope.find(name) if name else (None, None)
            operands.append((numbers.setdefault(name, len(numbers)) if name else -1, type, data))
        if has_graphs:
            return self._look(node, domain, operands, has_graphs)
        key = (
            node.op_type,
            domain,
            tuple([attribute.SerializeToString(deterministic=True) for attribute in node.attribute]),
            tuple([(number, id(type), id(data)) for number, type, data in operands]),
            tuple([bool(name) for name in node.output]),
        )
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = self._look(node, domain, operands, has_graphs)
        return found

    def _look(self, node: NodeProto, domain: str, operands: Sequence[_Operand], has_graphs: bool) -> _Answer:
        for a in node.attribute:
            if a.ref_attr_name:
                where = f"attribute {a.name} of {node.op_type}"
                return _Answer(f"{where} refers to {a.ref_attr_name}, but the node is in no function")
        if any(a.t.data_location == TensorProto.EXTERNAL for a in node.attribute if a.type == AttributeProto.TENSOR):
            return _Answer(is_checked=False)  # onnx would look for the file
        plain = _renamed(node, domain, operands)
        try:
            onnx.checker.check_node(plain, self._context)
        except onnx.checker.ValidationError as error:
            return _Answer(_sentence(error))
        if has_graphs or any(number >= 0 and not _is_typed(type) for number, type, _ in operands):
            return _Answer(is_checked=False)
        model = self._one_node(plain, operands)
        try:
            found = infer(model, strict=True)
        except onnx.shape_inference.InferenceError as error:
            if "[TypeInferenceError]" not in str(error) and any(_lacks_rank(type) for _, type, _ in operands):
                return _Answer(is_checked=False)  # onnx takes axes of unknown rank for absent ones
            schema = defs.get_schema(plain.op_type, self.versions[domain], domain)
            if schema.has_type_and_shape_inference_function:
                return _Answer(_sentence(error))
            # onnx inferred the body of a function, which ONNX Runtime does not where it has a kernel
            return _Answer(types=self._by_parameters(plain, domain, operands))
        except Exception:  # what protobuf cannot write, or ONNX did not expect
            return _Answer(is_checked=False)
        if found is None or model.graph.node[0].op_type != node.op_type:
            return _Answer(types=self._by_parameters(plain, domain, operands), is_checked=False)
        types = {info.name: info.type for infos in (found.graph.value_info, found.graph.output) for info in infos}
        return _Answer(types=[self._result(types.get(name)) if name else None for name in plain.output])

    def _by_parameters(self, plain: NodeProto, domain: str, operands: Sequence[_Operand]) -> Sequence[TypeProto | None]:
        """The element types of results that share a type parameter with an operand."""
        schema = defs.get_schema(plain.op_type, self.versions[domain], domain)
        known: dict[str, TypeProto] = {}
        for parameter, (_, type, _) in zip(schema.inputs, operands, strict=False):
            unsized = self._unsized(type)
            if unsized is not None:
                known.setdefault(parameter.type_str, unsized)
        return [known.get(schema.outputs[min(i, len(schema.outputs) - 1)].type_str) for i in range(len(plain.output))]

    def _one_node(self, plain: NodeProto, operands: Iterable[_Operand]) -> ModelProto:
        graph = GraphProto(name="one_node", node=[plain])
        for number, type, data in {o[0]: o for o in operands if o[0] >= 0}.values():
            if data is not None:
                tensor = graph.initializer.add()
                tensor.CopyFrom(data)
                tensor.name = f"i{number}"
            else:
                graph.input.append(ValueInfoProto(name=f"i{number}", type=type))
        model = ModelProto(ir_version=onnx.IR_VERSION, graph=graph)
        for domain, version in self.versions.items():
            model.opset_import.add(domain=domain, version=version)
        return model

    def _result(self, type: TypeProto | None) -> TypeProto | None:
        """A result's type without the names that ONNX made up."""
        if type is None or not _is_typed(type):
            return None
        for dim in type.tensor_type.shape.dim if type.HasField("tensor_type") else ():
            if dim.dim_param.startswith("unk__"):
                dim.ClearField("dim_param")
        return self._intern(type)


#: An operand: its number among the names, -1 for one that is left out; its type; its data.
_Operand = tuple[int, "TypeProto | None", "TensorProto | None"]
_ENDLESS = 1 << 62


def _is_typed(type: TypeProto | None) -> bool:
    """True if a type has an element type, of a tensor or of what a sequence holds."""
    if type is None or type.WhichOneof("value") is None:
        return False
    return not type.HasField("tensor_type") or type.tensor_type.elem_type != 0


def _lacks_rank(type: TypeProto | None) -> bool:
    return type is not None and type.HasField("tensor_type") and not type.tensor_type.HasField("shape")


def _renamed(node: NodeProto, domain: str, operands: Sequence[_Operand]) -> NodeProto:
    """The node with numbers for names, and with empty graphs inside."""
    out = NodeProto(op_type=node.op_type, domain=domain)
    out.input.extend([f"i{number}" if number >= 0 else "" for number, *_ in operands])
    out.output.extend([f"o{index}" if name else "" for index, name in enumerate(node.output)])
    for attribute in node.attribute:
        if attribute.type in _GRAPHS:
            made = out.attribute.add(name=attribute.name, type=attribute.type)
            single = attribute.type == AttributeProto.GRAPH
            for graph in [made.g] if single else [made.graphs.add() for _ in attribute.graphs]:
                graph.name = "graph"
        else:
            out.attribute.append(attribute)
    return out


#: What ONNX's inference puts before its sentence.
_PREFIX = re.compile(r"(\[\w*Error\]|Inference error\(s\):|\(op_type:[^)]*\):|\s)+")


def _sentence(error: Exception) -> str:
    """The sentence of an error of ONNX, without the frames of its own source."""
    text = " ".join(str(error).split("==>")[0].split())
    return _PREFIX.sub("", text, count=1) if _PREFIX.match(text) else text
