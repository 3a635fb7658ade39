"""Weights and attributes that differ between two models, named whatever the numbers say: no input may reach them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from onnx import NodeProto, defs
from onnx.defs import SchemaError

from dmlc.debugging.constants import Constant, compared
from dmlc.debugging.graph_diff import attribute_details
from dmlc.debugging.insides import Inside
from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.counted import counted
from dmlc.onnx_schema.domains import imported_versions, plain_domain

#: Names in a note.
_SHOWN = 3


def unlike_parts(a: Inside, b: Inside) -> tuple[str, ...]:
    """Notes on two ONNX models: constants of one name and type with other elements, and nodes of one name and operator
    with other attributes. None for anything else."""
    if a.model is None or b.model is None:
        return ()
    out = list(_weights(a.constants, b.constants))
    versions = imported_versions(a.model.opset_import), imported_versions(b.model.opset_import)
    others = _named(b.model.graph.node)
    changed = []
    for name, node in _named(a.model.graph.node).items():
        if name in others:
            details = attribute_details(node, others[name], *versions)
            moved = _moved(node, others[name], *versions) if details else frozenset()
            details = [detail for detail in details if detail.partition(" ")[0] not in moved]
            changed += [f"{name} ({', '.join(details)})"] if details else []
    if changed:
        verb = "has" if len(changed) == 1 else "have"
        out.append(f"{counted(len(changed), 'node')} {verb} other attributes: {_listed(changed)}")
    return tuple(f"{note}; dmlc diff A B shows it" for note in out)


def _moved(a: NodeProto, b: NodeProto, versions_a: Mapping[str, int], versions_b: Mapping[str, int]) -> frozenset[str]:
    """The attributes of one node that are an operand of the other, as ``axes`` is since opset 18."""
    operands = [_operand_names(node, versions) for node, versions in ((a, versions_a), (b, versions_b))]
    attributes = [{entry.name for entry in node.attribute} for node in (a, b)]
    return frozenset((attributes[0] & operands[1]) | (attributes[1] & operands[0]))


def _operand_names(node: NodeProto, versions: Mapping[str, int]) -> set[str]:
    """The names that the operator has for the operands of a node; none for an operator that ONNX does not have."""
    domain = plain_domain(node.domain)
    try:
        formals = defs.get_schema(node.op_type, versions.get(domain, 1), domain).inputs
    except SchemaError:
        return set()
    return {formal.name for formal, value in zip(formals, node.input, strict=False) if value}


def _weights(before: Mapping[str, Constant], after: Mapping[str, Constant]) -> Iterator[str]:
    found, largest, reason = [], 0.0, ""
    for name, constant in before.items():
        other = after.get(name)
        if other is None or constant.type_text != other.type_text:
            continue
        try:
            change = compared(name, constant, other)
        except DmlcError as error:  # external data that cannot be read
            reason = error.diagnostics[0].message
            continue
        if change is not None and change.worst is not None:
            found.append(name)
            largest = max(largest, change.worst.absolute or 0.0)
    if found:
        verb = "differs" if len(found) == 1 else "differ"
        by = f", by up to {largest:.2g}" if largest else ""
        yield f"{counted(len(found), 'weight')} {verb}: {_listed(found)}{by}"
    if reason:
        yield f"weights were not compared: {reason}"


def _named(nodes: Iterable[NodeProto]) -> dict[str, NodeProto]:
    """The nodes by name; one without a name by its first result."""
    return {node.name or next(iter(node.output), ""): node for node in nodes}


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
