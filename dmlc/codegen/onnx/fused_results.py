"""Outputs of the model whose node the DirectML provider would replace by one that computes an activation as well."""

from __future__ import annotations

from onnx import NodeProto

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.ir import Graph
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.nested import may_hold_graphs, values_read_by
from dmlc.targets.activations import HOSTS, takes_activation
from dmlc.targets.capabilities import Capabilities

_FAULT = "fused-output"


def keep_fused_results(emitter: Emitter) -> None:
    """Make an output the copy of a value that has an activation as its only use.

    The value then has two uses, and the provider fuses nothing (``GraphTransformer.cpp`` counts uses by nodes).
    """
    if not _has_used_outputs(emitter.graph):
        return
    capabilities = Capabilities(emitter.target, emitter.opset)
    if capabilities.kernel("Identity") is None or capabilities.fault(_FAULT, "MatMul") is None:
        return
    outputs = frozenset(emitter.output_names)
    hosts = [n for n in emitter.nodes if n.op_type in HOSTS and len(n.output) == 1 and n.output[0] in outputs]
    if not hosts:
        return
    users: dict[str, list[NodeProto]] = {node.output[0]: [] for node in hosts}
    for node in emitter.nodes:
        if not users.keys().isdisjoint(node.input) or may_hold_graphs(node.domain, node.op_type):
            for name in values_read_by(node):
                if name in users:
                    users[name].append(node)
    for host in hosts:
        _copy_lost(emitter, host, users[host.output[0]])


def _has_used_outputs(graph: Graph) -> bool:
    return any(value.producer is not None and value.users != [graph.output] for _, value in graph.outputs)


def _copy_lost(emitter: Emitter, host: NodeProto, users: list[NodeProto]) -> None:
    """Copy the result of a node into the output, if the provider would lose it."""
    if len(users) != 1 or len(users[0].input) != 1 or plain_domain(host.domain) or plain_domain(users[0].domain):
        return
    (activation,) = users
    if takes_activation(host.op_type, len(host.input), activation.op_type):
        emitter.copy_to_output(host, activation)
