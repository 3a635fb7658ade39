"""Activations that the DirectML provider computes within the node before them, in a graph."""

from __future__ import annotations

from onnx import NodeProto

from dmlc.onnx_schema.domains import plain_domain
from dmlc.placement.values import ValueScope
from dmlc.targets.activations import takes_activation


def fused_activation(host: NodeProto, scope: ValueScope) -> NodeProto | None:
    """Return the activation that the provider fuses into a node, or None.

    The provider does not ask if the result of the node is an output of the graph.
    """
    if plain_domain(host.domain) or len(host.output) != 1:
        return None
    users = scope.users.get(host.output[0], ())
    if len(users) != 1 or len(users[0].input) != 1 or plain_domain(users[0].domain):
        return None
    return users[0] if takes_activation(host.op_type, len(host.input), users[0].op_type) else None


def host_of(activation: NodeProto, scope: ValueScope) -> NodeProto | None:
    """Return the node that the provider fuses an activation into, or None."""
    host = scope.made_by.get(activation.input[0]) if len(activation.input) == 1 else None
    return host if host is not None and fused_activation(host, scope) is activation else None
