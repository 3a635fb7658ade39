"""Nodes of the emitted model that ONNX Runtime's own optimizer would take for something else: they are kept apart."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.ir import Graph
from dmlc.ir.dtype import bool_
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.nested import may_hold_graphs, values_read_by
from dmlc.onnx_schema.types import DTYPE_OF
from dmlc.placement.optimizer import look_alikes
from dmlc.placement.optimizer.view import Copied, Given, GraphView, LookAlike, Summed
from dmlc.targets.activations import HOSTS, takes_activation
from dmlc.targets.capabilities import Capabilities


def keep_look_alikes(emitter: Emitter) -> None:
    """Write what ``dmlc.placement.optimizer`` finds in a form that no transformer takes, and that computes the same."""
    view = GraphView(emitter.nodes, emitter.output_names, emitter.fact_of, is_inner=not emitter.is_outermost)
    capabilities = Capabilities(emitter.target, emitter.opset)
    lacks_sum = capabilities.has_provider and capabilities.kernel("Sum") is None
    found = look_alikes(view)
    _note_reasons(emitter, found)
    cures = [one.cure for one in found]
    copied = {view.made_by[cure.value]: cure for cure in cures if isinstance(cure, Copied)}
    for cure in cures:
        if isinstance(cure, Given):
            _give(emitter, cure)
    summed = {cure.index for cure in cures if isinstance(cure, Summed)}
    for index in sorted(copied.keys() | summed, reverse=True):
        if index in copied:
            _copy(emitter, index, copied[index], lacks_sum=lacks_sum)
        if index in summed and lacks_sum:
            _subtract(emitter, index)
        elif index in summed:
            emitter.nodes[index].op_type = "Sum"


def _note_reasons(emitter: Emitter, found: Sequence[LookAlike]) -> None:
    """Note why nodes are written in another form, once for each transformer and reason."""
    kept: dict[str, list[str]] = {}
    for one in found:
        node = emitter.nodes[one.node]
        reason = f"ONNX Runtime's {one.transformer} would make {one.makes} of it, but {one.difference}"
        kept.setdefault(reason, []).append(f"{node.op_type} {node.name or node.output[0]}")
    for reason, names in kept.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        emitter.note(f"{names[0]}{more} in a form that ONNX Runtime does not change: {reason}")


def _subtract(emitter: Emitter, index: int) -> None:
    """Take the opposite of the second operand off instead of adding it: every float is the same."""
    node = emitter.nodes[index]
    name = emitter.values.new(f"{node.input[1]}/Neg")
    opposite = NodeProto(op_type="Neg", input=[node.input[1]], output=[name])
    opposite.name = emitter.node_names.new(f"{node.name or name}/Neg")
    node.op_type, node.input[1] = "Sub", name
    emitter.nodes.insert(index, opposite)


def _give(emitter: Emitter, cure: Given) -> None:
    """Write an optional operand out."""
    node = emitter.nodes[cure.index]
    node.input.extend([""] * (cure.position + 1 - len(node.input)))
    node.input[cure.position] = emitter.ints(cure.numbers)


def _copy(emitter: Emitter, index: int, cure: Copied, *, lacks_sum: bool) -> None:
    """Sum with -0 leaves every float as it is, -0 and NaN too; so does a choice that is always of the value.

    The choice is between the value and a scalar: TransposeOptimizer would move a transpose behind a choice of two
    transposed values. Integers, which have fewer kernels, are the maximum of themselves.
    """
    node, name = emitter.nodes[index], cure.value
    dtype = DTYPE_OF.get(emitter.fact_of(name).element)
    kept = emitter.rename_result(node, name)
    if dtype is not None and dtype.is_float and not lacks_sum:
        copy = NodeProto(op_type="Sum", input=[kept, emitter.scalar(-0.0, dtype)], output=[name])
    elif dtype is None or (dtype.is_integer and emitter.opset >= 12):  # Max takes floats only below
        copy = NodeProto(op_type="Max", input=[kept, kept], output=[name])
    else:
        choice = [emitter.scalar(True, bool_), kept, emitter.scalar(0, dtype)]
        copy = NodeProto(op_type="Where", input=choice, output=[name])
    copy.name = emitter.node_names.new(f"{node.name or name}/{copy.op_type}")
    emitter.nodes.insert(index + 1, copy)


# --- Outputs of the model whose node the DirectML provider would replace by one that computes an activation as well

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
