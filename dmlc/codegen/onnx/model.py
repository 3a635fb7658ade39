"""A graph becomes an ``onnx.ModelProto``."""

from __future__ import annotations

import json
from math import isinf

from onnx import ModelProto

from dmlc import __version__
from dmlc.codegen.artifact import Artifact, signature_of
from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.registry import LOWERINGS
from dmlc.codegen.onnx.rounding import RoundingWatch
from dmlc.codegen.onnx.writer import value_info
from dmlc.diagnostics import Label, fail
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.ir import Graph, Node
from dmlc.onnx_schema.schemas import DOMAIN_VERSIONS
from dmlc.ops.constant import CONSTANT
from dmlc.ops.move import RESHAPE
from dmlc.targets import Target

#: The IR version that each opset came with (onnx, docs/Versioning.md).
_IR_VERSION = {11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10}


def emit(graph: Graph, target: Target, opset: int) -> Artifact:
    """The graph as an ONNX model: an artifact whose payload is the ``ModelProto``.

    The graph is expected as ``legalize`` leaves it. Same graph, same bytes. Raises ``DmlcError`` E0501 where an
    operation has no equivalent at the opset, E0503 where a tensor has more axes than the target takes.
    """
    emitter = Emitter(graph, target, opset)
    for value in graph.inputs:
        assert value.name is not None
        emitter.proto.input.append(value_info(value.name, value.type))
    index = 0
    watch = RoundingWatch()
    for node in graph:
        if node.op is CONSTANT:
            continue
        _check_rank(node, target)
        lowering = LOWERINGS.get(node.op)
        if lowering is None:
            raise fail(INTERNAL, f"{node.op.name} has no ONNX lowering", *_labels(node), exit_code=3)
        emitter.begin(f"{getattr(node.attributes, 'op_type', node.op.name)}_{index}")
        if target.native_f16:
            watch.visit(node, emitter.base)
        out = lowering(emitter, node)
        emitter.finish(node, (out,) if isinstance(out, str) else out)
        index += 1
    emitter.outputs()
    if watch.found:
        emitter.note(watch.sentence())
    return Artifact(
        kind="onnx",
        payload=_model(emitter, graph, target, opset),
        signature=signature_of(graph),
        locations=emitter.locations,
        report=tuple(emitter.report),
    )


def _labels(node: Node) -> list[Label]:
    return [Label(span) for span in node.spans[:1]]


def _check_rank(node: Node, target: Target) -> None:
    if target.max_rank is None or node.op is RESHAPE:  # a reshape is how a rank comes down; it computes nothing
        return
    for value in (*node.operands, *node.results):
        if value is not None and len(value.type.shape) > target.max_rank:
            message = f"{value.type} has {value.type.rank} axes, {target.name} takes up to {target.max_rank}"
            raise fail(codes.TOO_MANY_AXES, message, *_labels(node), help="reshape it to fewer axes first")


def _model(emitter: Emitter, graph: Graph, target: Target, opset: int) -> ModelProto:
    model = ModelProto(
        ir_version=min(_IR_VERSION[opset], target.ir_version),
        producer_name="dmlc",
        producer_version=__version__,
        graph=emitter.proto,
    )
    model.opset_import.add(domain="", version=opset)
    for domain in sorted(emitter.domains):
        model.opset_import.add(domain=domain, version=DOMAIN_VERSIONS.get(domain, 1))
    facts = {
        "dmlc.version": __version__,
        "dmlc.target": target.name,
        "dmlc.conditions": json.dumps([str(c) for c in graph.conditions]),
        "dmlc.dims": json.dumps({name: _interval(*bounds) for name, bounds in sorted(graph.dims.bounds.items())}),
    }
    for key, value in {**facts, **dict(sorted(graph.metadata.items()))}.items():
        model.metadata_props.add(key=key, value=value)
    return model


def _interval(low: float, high: float) -> list[int | None]:
    """Bounds as JSON: None where there is no upper one."""
    return [None if isinf(b) else int(b) for b in (low, high)]
