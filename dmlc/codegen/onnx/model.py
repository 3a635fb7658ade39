"""A graph becomes an ``onnx.ModelProto``."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from math import isinf
from typing import TYPE_CHECKING

from onnx import ModelProto

from dmlc import __version__
from dmlc.codegen.artifact import Artifact, signature_of
from dmlc.codegen.onnx.annotations import ir_version_of
from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.look_alikes import keep_fused_results, keep_look_alikes
from dmlc.codegen.onnx.named_axes import names_axes
from dmlc.codegen.onnx.names import name_initializers
from dmlc.codegen.onnx.registry import lowering_of
from dmlc.codegen.onnx.rounding import RoundingWatch
from dmlc.codegen.onnx.writer import value_info, weight_proto
from dmlc.diagnostics import Label, fail
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.ir import Graph, Node
from dmlc.ir.dtype import i64
from dmlc.ir.printer import number_text
from dmlc.onnx_schema.metadata import keyed, open_dims
from dmlc.onnx_schema.schemas import DOMAIN_VERSIONS
from dmlc.ops.constant import CONSTANT
from dmlc.ops.move import RESHAPE, RESHAPES
from dmlc.ops.opaque import node_name
from dmlc.passes.provider_options import depends_on_layout, low_words_suffice
from dmlc.targets import Target
from dmlc.targets.capabilities import Capabilities
from dmlc.targets.provider import SessionFacts, provider
from dmlc.targets.session_advice import RUNS_ON, session_advice

if TYPE_CHECKING:
    from dmlc.onnx_schema.origin import ModelOrigin


def emit(graph: Graph, target: Target, opset: int) -> Artifact:
    """The graph as an ONNX model: an artifact whose payload is the ``ModelProto``.

    The graph is expected as ``legalize`` leaves it. Same graph, same bytes. Raises ``DmlcError`` E0501 where an
    operation has no equivalent at the opset, E0503 where a tensor has more axes than the target takes.
    """
    model = ModelProto()
    emitter = Emitter(graph, target, opset, proto=model.graph)
    origin: ModelOrigin | None = graph.origin
    for value in graph.inputs:
        assert value.name is not None
        declared = None if origin is None else origin.inputs.get(value.name)
        emitter.proto.input.append(declared or value_info(value.name, value.type))
        emitter.hold(value)
    for value, data in graph.defaults.items():
        emitter.shared.weights.append(weight_proto(data, value.name or ""))
    for sentence in graph.notes:
        emitter.note(sentence)
    watch = RoundingWatch()
    emit_nodes(emitter, watch)
    keep_fused_results(emitter)
    keep_look_alikes(emitter)
    emitter.outputs({} if origin is None else origin.outputs)
    emitter.drop_unused()
    emitter.declare_values()
    if watch.found:
        emitter.note(watch.sentence())
    name_initializers(emitter.proto, emitter.shared.unnamed, emitter.values.new, nested=bool(graph.with_regions))
    unread = {id(tensor) for name, tensor in emitter.shared.unnamed.items() if tensor.name == name}
    emitter.proto.initializer.extend([tensor for tensor in emitter.shared.weights if id(tensor) not in unread])
    emitter.proto.sparse_initializer.extend(emitter.shared.sparse)
    _frame(model, emitter)
    return Artifact(
        kind="onnx",
        payload=model,
        signature=signature_of(graph),
        locations=emitter.locations,
        report=tuple(emitter.report),
        folder=getattr(graph.origin or graph.joined, "folder", None),
        types=emitter.shared.types.types,
    )


def emit_nodes(emitter: Emitter, watch: RoundingWatch) -> None:
    """The nodes of the emitter's graph, and of the graphs inside them."""

    def inside(inner: Emitter) -> None:
        emit_nodes(inner, watch)

    for node in emitter.graph:
        if node.op is CONSTANT:
            if node.result in emitter.graph.provides:
                emitter.hold(node.result)
            continue
        if emitter.reuse(node):
            continue
        is_rewritten = _is_rewritten(emitter, node)
        if node.origin is None or is_rewritten or not _pass_on()(emitter, node, inside):
            if node.origin is None or not is_rewritten:
                _check_rank(node, emitter.target)
            _lower(emitter, node, watch)
        for value in node.results:
            if emitter.is_written(value):
                emitter.hold(value)


def _is_rewritten(emitter: Emitter, node: Node) -> bool:
    """Return whether the form that the node has in its model is not the one to emit."""
    return (node.op in RESHAPES and emitter.is_laid_out(node.operand("x"))) or names_axes(emitter, node)


@cache
def _pass_on() -> Callable[[Emitter, Node, Callable[[Emitter], None]], bool]:
    """Only imported models load it."""
    from dmlc.codegen.onnx.passed import pass_on

    return pass_on


def _lower(emitter: Emitter, node: Node, watch: RoundingWatch) -> None:
    lowering = lowering_of(node.op)
    if lowering is None:
        raise fail(INTERNAL, f"{node.op.name} has no ONNX lowering", *_labels(node), exit_code=3)
    emitter.begin(node_name(node), node)
    if emitter.target.native_f16:
        watch.visit(node, emitter.base)
    out = lowering(emitter, node)
    emitter.finish(node, (out,) if isinstance(out, str) else out)


def _labels(node: Node) -> list[Label]:
    return [Label(span) for span in node.spans[:1]]


def _check_rank(node: Node, target: Target) -> None:
    if target.max_rank is None or node.op is RESHAPE:  # a reshape is how a rank comes down; it computes nothing
        return
    for value in (*node.operands, *node.results):
        if value is not None and len(value.type.shape) > target.max_rank:
            message = f"{value.type} has {value.type.rank} axes, {target.name} takes up to {target.max_rank}"
            raise fail(codes.TOO_MANY_AXES, message, *_labels(node), help="reshape it to fewer axes first")


def _frame(model: ModelProto, emitter: Emitter) -> None:
    """Write the model's header: versions, producer, opsets and metadata."""
    graph, target, opset = emitter.graph, emitter.target, emitter.opset
    origin: ModelOrigin | None = graph.origin
    model.ir_version = ir_version_of(graph, target, opset)
    model.producer_name = "dmlc"
    model.producer_version = __version__
    if origin is not None:
        from dmlc.codegen.onnx.passed import restore_frame

        restore_frame(model, origin, emitter)
    elif graph.joined is not None:
        from dmlc.codegen.onnx.passed import restore_functions

        restore_functions(model, graph.joined, emitter)
    model.opset_import.add(domain="", version=opset)
    for domain in sorted(emitter.domains):
        version = getattr(origin or graph.joined, "versions", {}).get(domain)
        model.opset_import.add(domain=domain, version=version or DOMAIN_VERSIONS.get(domain, 1))
    for key, text in keyed(_facts(model, emitter)).items():
        model.metadata_props.add(key=key, value=text)


def _facts(model: ModelProto, emitter: Emitter) -> dict[str, str]:
    graph, target = emitter.graph, emitter.target
    facts = {"version": __version__, "target": target.name}
    conditions = [] if graph.origin is not None else signature_of(graph).conditions
    if conditions:
        facts["conditions"] = json.dumps([str(c) for c in conditions])
    if graph.origin is None and graph.dims.bounds:
        facts["dims"] = json.dumps({name: _interval(*bounds) for name, bounds in sorted(graph.dims.bounds.items())})
    if graph.ranges:
        promised = {name: [number_text(low), number_text(high)] for name, (low, high) in sorted(graph.ranges.items())}
        facts["ranges"] = json.dumps(promised)
    facts |= sorted(graph.metadata.items())
    if target.provider is not None:
        session = provider(target.provider).session
        if not target.runs_on_cpu:
            facts[RUNS_ON] = session.provider
        options = _provider_options(emitter, session)
        facts["session"] = session_advice(session, open_dims(model.graph.input), _ends(graph), options)
    return facts


def _provider_options(emitter: Emitter, session: SessionFacts) -> dict[str, str]:
    """The options of the provider that keep the numbers of the model, and more of its nodes on the device.

    ONNX's layout takes fewer dispatches: over the fixtures, 110 transposes fewer than the layout that WebGPU prefers.
    """
    options: dict[str, str] = {}
    has_wide = session.int64_options and any(type.dtype is i64 for type in emitter.shared.types.types.values())
    if has_wide and low_words_suffice(emitter.graph, Capabilities(emitter.target, emitter.opset)):
        options |= session.int64_options
    if session.plain_layout and depends_on_layout(emitter.graph):
        options |= session.plain_layout
    return options


def _ends(graph: Graph) -> dict[str, list[int]]:
    """The lowest and the highest size of each dim that a program declares with both."""
    declared = graph.dims.bounds.items() if graph.origin is None else ()
    return {name: sorted({int(low), int(high)}) for name, (low, high) in declared if not isinf(high)}


def _interval(low: float, high: float) -> list[int | None]:
    """Bounds as JSON: None where there is no upper one."""
    return [None if isinf(b) else int(b) for b in (low, high)]
