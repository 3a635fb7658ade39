"""ONNX operators that are carried through as they were written."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.registry import lowers
from dmlc.diagnostics import Label, fail
from dmlc.inference.carried import CARRIED, CARRIED_IMPURE, CarriedAttributes
from dmlc.ir import Node, OpError
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.onnx_schema.schemas import find_schema
from dmlc.onnx_schema.values import attribute_protos


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
