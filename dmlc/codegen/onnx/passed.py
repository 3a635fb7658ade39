"""Unchanged parts of an imported model: its nodes, and the model's other fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto

from dmlc.codegen.onnx.elementwise import needs_bounds
from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.look_alikes import keep_look_alikes
from dmlc.codegen.onnx.named_axes import names_axes, of_all_axes
from dmlc.codegen.onnx.registry import lowers
from dmlc.codegen.onnx.writer import attribute_proto, tensor_proto
from dmlc.diagnostics import Label, fail
from dmlc.inference.carried import CARRIED, CARRIED_IMPURE, CarriedAttributes
from dmlc.ir import Node, OpError, Region, Tensor
from dmlc.onnx_schema.declared import believed, completed, contradicts, open_negative_sizes
from dmlc.onnx_schema.domains import MICROSOFT, plain_domain
from dmlc.onnx_schema.metadata import other_entries
from dmlc.onnx_schema.moves.draft import NOTHING
from dmlc.onnx_schema.nested import graphs_in
from dmlc.onnx_schema.origin import ModelOrigin, NodeOrigin, known_of
from dmlc.onnx_schema.schemas import find_schema
from dmlc.onnx_schema.types import type_proto
from dmlc.onnx_schema.values import attribute_protos
from dmlc.onnx_schema.versions import move, unchanged
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE, OpaqueAttributes

_NO_NAMES: Mapping[str, str] = MappingProxyType({})
#: Emits the nodes of a graph inside a node.
EmitNodes = Callable[[Emitter], None]


def pass_on(emitter: Emitter, node: Node, emit_nodes: EmitNodes) -> bool:
    """Write the node as its model has it; False where that form says something else at the emitted opset."""
    origin: NodeOrigin = node.origin
    proto = origin.proto
    older = emitter.opset < origin.version  # an older operator takes fewer types, and a form may depend on sizes
    known = known_of(node, proto.input) if older else NOTHING
    if node.op not in (OPAQUE, OPAQUE_IMPURE):
        if not unchanged(proto, origin.version, emitter.opset, known) or needs_bounds(node, emitter.opset):
            return False
        _write(emitter, node, origin, _inputs(emitter, node, origin), emit_nodes)
        return True
    inputs = _inputs(emitter, node, origin)
    if plain_domain(proto.domain):
        emitter.domains.add(proto.domain)
    elif not unchanged(proto, origin.version, emitter.opset, known):
        _write_moved(emitter, node, origin, inputs, emit_nodes)
        return True
    _write(emitter, node, origin, inputs, emit_nodes)
    return True


def _inputs(emitter: Emitter, node: Node, origin: NodeOrigin) -> list[str]:
    out: list[str] = []
    for place in origin.inputs:
        if isinstance(place, int):
            out.append(emitter.of(node.operands[place]))
        else:
            out.append("" if place is None else emitter.tensor(place))
    return out


def _write(emitter: Emitter, node: Node, origin: NodeOrigin, inputs: list[str], emit_nodes: EmitNodes) -> None:
    unhidden = _unhide(emitter, node) if node.regions else _NO_NAMES
    made = emitter.nodes.add()
    made.CopyFrom(origin.proto)
    if node.name or made.name:
        made.name = _name(emitter, node)
    if inputs != made.input[:]:
        del made.input[:]
        made.input.extend(inputs)
    had = made.output[:]
    outputs = _outputs(emitter, node, had)
    if outputs != had:
        del made.output[:]
        made.output.extend(outputs)
    if node.regions:
        _write_regions(emitter, node, made, emit_nodes, unhidden)


def _unhide(emitter: Emitter, node: Node) -> dict[str, str]:
    """Copy what a graph called by name captures under a name of its own inputs or outputs; the copies' names."""
    copies: dict[str, str] = {}
    for region in node.regions:
        called = emitter.shared.names.called.get(region.graph, ())
        for place in region.captures:
            name = emitter.operand(node, place)
            if name in called and name not in copies:
                copies[name] = emitter.values.new(name)
                emitter.nodes.add(op_type="Identity", input=[name], output=[copies[name]])
    return copies


def _name(emitter: Emitter, node: Node) -> str:
    """The node's name; a node without one stays so."""
    return emitter.node_names.own(node, node.name) if node.name else ""


def _outputs(emitter: Emitter, node: Node, had: Sequence[str]) -> list[str]:
    """The names of the results; a result that was not named and is not used stays so."""
    return [
        emitter.name_result(value) if name or value.uses else "" for name, value in zip(had, node.results, strict=False)
    ]


def _write_regions(
    emitter: Emitter, node: Node, made: NodeProto, emit_nodes: EmitNodes, unhidden: Mapping[str, str] = _NO_NAMES
) -> None:
    regions = iter(node.regions)
    for attribute in made.attribute:
        for graph in graphs_in(attribute):
            region = next(regions)
            captured = [emitter.operand(node, place) for place in region.captures]
            captured = [unhidden.get(name, name) for name in captured]
            for value, place in zip(region.captured, region.captures, strict=True):
                outer = node.operands[place]
                assert outer is not None
                emitter.shared.captured[value] = outer
            with emitter.shared.types.hiding(emitter.shared.names.called.get(region.graph, ())):
                graph.CopyFrom(_region(emitter, region, captured, graph, emit_nodes))


def _region(
    emitter: Emitter, region: Region, captured: Sequence[str], old: GraphProto, emit_nodes: EmitNodes
) -> GraphProto:
    inner = Emitter(region.graph, emitter.target, emitter.opset, emitter)
    for value, info in zip(region.formals, old.input, strict=True):
        declared = inner.proto.input.add()
        declared.CopyFrom(info)
        declared.type.CopyFrom(believed(info.type, type_proto(value.type)))
        open_negative_sizes(declared.type)
        declared.name = inner.name_formal(value)
        inner.hold(value)
    for value, name in zip(region.captured, captured, strict=True):
        inner.name_input(value, name)
        inner.hold(value)
    emit_nodes(inner)
    keep_look_alikes(inner)
    inner.outputs({})
    inner.drop_unused()
    inner.declare_values()
    for made, info, (_, value) in zip(inner.proto.output, old.output, region.graph.outputs, strict=True):
        made.type.CopyFrom(completed(info.type, type_proto(value.type)))
        open_negative_sizes(made.type)
    if old.HasField("doc_string"):
        inner.proto.doc_string = old.doc_string
    return inner.proto


def _write_moved(
    emitter: Emitter, node: Node, origin: NodeOrigin, inputs: Sequence[str], emit_nodes: EmitNodes
) -> None:
    """The node in the form that it has at the emitted opset."""
    proto = NodeProto()
    proto.CopyFrom(origin.proto)
    proto.name = _name(emitter, node)
    del proto.input[:], proto.output[:]
    proto.input.extend(inputs)
    proto.output.extend(_outputs(emitter, node, origin.proto.output[:]))
    known = known_of(node, inputs[: len(origin.inputs)])
    moved = move(proto, origin.version, emitter.opset, emitter.values.new, known)
    assert moved is not None, f"{proto.op_type} does not fit opset {emitter.opset}"
    emitter.shared.weights.extend(moved.constants)
    for number, made in enumerate(moved.nodes):
        if number and made.name:
            made.name = emitter.node_names.new(made.name)
        _write_regions(emitter, node, made, emit_nodes)
        emitter.proto.node.append(made)
    if len(moved.nodes) > 1:
        emitter.type_between(moved.nodes)


@lowers(OPAQUE, OPAQUE_IMPURE)
def opaque(emitter: Emitter, node: Node) -> Sequence[str]:
    """A node that a rewrite made, or a weight of a type that the language does not have."""
    a = node.attributes_as(OpaqueAttributes)
    if a.op_type == "Initializer":
        return [_foreign_weight(emitter, node, a)]
    gone = ("axes",) if names_axes(emitter, node) else ()
    operands = of_all_axes(emitter, node) if gone else [emitter.of(v) for v in node.operands]
    protos = []
    for name, value in a.attributes:
        if name in gone:
            continue
        plain = tensor_proto(value.array) if isinstance(value, Tensor) else value
        protos.append(attribute_proto(name, plain))
    if a.domain == MICROSOFT:
        emitter.note(f"{a.full_name} is ONNX Runtime's own operator: onnx's checker does not know it")
    return emitter.ops(a.op_type, operands, len(node.results), domain=a.domain, protos=protos)


def _foreign_weight(emitter: Emitter, node: Node, a: OpaqueAttributes) -> str:
    data = a.unplain[0].proto
    name = emitter.name_result(node.result)
    if isinstance(data, SparseTensorProto):
        sparse = SparseTensorProto()
        sparse.CopyFrom(data)
        sparse.values.name = name
        emitter.shared.sparse.append(sparse)
        return name
    dense = TensorProto()
    dense.CopyFrom(data)
    dense.name = name
    emitter.shared.weights.append(dense)
    return name


def restore_frame(model: ModelProto, origin: ModelOrigin, emitter: Emitter) -> None:
    """Restore the imported model's other fields: versions, texts, functions, declared types of values still there."""
    frame = origin.frame
    for name in ("domain", "model_version", "doc_string"):
        if frame.HasField(name):
            setattr(model, name, getattr(frame, name))
    for key, value in other_entries(frame).items():
        model.metadata_props.add(key=key, value=value)
    model.training_info.extend(frame.training_info)
    restore_functions(model, origin, emitter)
    graph = model.graph
    graph.name = frame.graph.name
    if frame.graph.HasField("doc_string"):
        graph.doc_string = frame.graph.doc_string
    infos, annotations = frame.graph.value_info, frame.graph.quantization_annotation
    if infos or annotations:
        made = {name for node in graph.node for name in node.output}
        _add_claims(graph, [info for info in infos if info.name in made])
        there = made | {t.name for t in graph.initializer} | {i.name for i in graph.input}
        graph.quantization_annotation.extend([q for q in annotations if q.tensor_name in there])


def restore_functions(model: ModelProto, origin: ModelOrigin, emitter: Emitter) -> None:
    """Restore the functions that nodes call, and the domains that those import."""
    functions = origin.frame.functions
    model.functions.extend(functions)
    imported = {plain_domain(entry.domain) for function in functions for entry in function.opset_import} - {""}
    emitter.domains.update(imported & origin.versions.keys())


def _add_claims(graph: GraphProto, claims: Sequence[ValueInfoProto]) -> None:
    """Add what the model declares of values whose type, or whose shape, is not known otherwise."""
    there = {info.name: info for info in graph.value_info}
    for claim in claims:
        info = there.get(claim.name)
        if info is None:
            graph.value_info.append(claim)
        elif not info.type.tensor_type.HasField("shape") and not contradicts(info.type, claim.type):
            info.type.CopyFrom(claim.type)


# --- ONNX operators that are carried through as they were written


@lowers(CARRIED, CARRIED_IMPURE)
def carried(emitter: Emitter, node: Node) -> Sequence[str]:
    a = node.attributes_as(CarriedAttributes)
    try:
        schema = find_schema(a.domain, a.op_type, emitter.opset)
    except OpError as error:  # the graph was typed at another opset
        raise fail(error.code, error.message, *map(Label, node.spans[:1]), help=str(error.help)) from None
    protos = attribute_protos(a.attributes, schema)
    operands = [emitter.of(v) for v in node.operands]
    out = emitter.ops(a.op_type, operands, a.results, domain=a.domain, protos=protos)
    if schema.domain == MICROSOFT:
        emitter.note(f"{a.full_name} is ONNX Runtime's own operator: onnx's checker does not know it")
    return out
