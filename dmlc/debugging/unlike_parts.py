"""Weights, attributes and operator counts that differ between two models: no input may reach what they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from onnx import ModelProto, NodeProto, defs
from onnx.defs import SchemaError

from dmlc.debugging.constants import Constant, compared
from dmlc.debugging.insides import Inside
from dmlc.debugging.node_attributes import attribute_details
from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.counted import counted, first_of
from dmlc.onnx_schema.domains import imported_versions, plain_domain
from dmlc.placement.node_counts import node_counts

#: Names in a note.
_SHOWN = 3


def unlike_parts(a: Inside, b: Inside, *, is_compiled: bool, shown_by: str) -> tuple[str, ...]:
    """Notes on two ONNX models: constants of one name and type with other elements, nodes of one name and operator with
    other attributes, and operators that are there another number of times. None for anything else.

    If the operators are the same, in one order, names that A lacks are paired by position. Operators are not counted in
    a ``b`` that ``is_compiled`` from ``a``. ``shown_by`` is the command that shows more.
    """
    if a.model is None or b.model is None:
        return ()
    values, nodes = _renamed(a.model, b.model)
    constants = {values.get(name, name): constant for name, constant in b.constants.items()}
    out = [*_weights(a.constants, constants), *_attributes(a.model, b.model, nodes)]
    out += [] if is_compiled else _operators(a.model, b.model)
    return tuple(f"{note}; see: {shown_by}" if shown_by else note for note in out)


def _renamed(a: ModelProto, b: ModelProto) -> tuple[dict[str, str], dict[str, str]]:
    """A's names of the values and the nodes that B calls by names that A lacks; none if the operators are not the same
    in one order."""
    pairs = [[node for node in model.graph.node if node.op_type != "Constant"] for model in (a, b)]
    if [node.op_type for node in pairs[0]] != [node.op_type for node in pairs[1]]:
        return {}, {}
    values: dict[str, str] = {}
    nodes: dict[str, str] = {}
    for node, other in zip(*pairs, strict=True):
        nodes[_name(other)] = _name(node)
        values |= zip(other.input, node.input, strict=False)
    own = {name for node in a.graph.node for name in (*node.input, _name(node))}
    values, nodes = ({new: old for new, old in names.items() if new not in own} for names in (values, nodes))
    return values, nodes


def _attributes(a: ModelProto, b: ModelProto, renamed: Mapping[str, str]) -> Iterator[str]:
    versions = imported_versions(a.opset_import), imported_versions(b.opset_import)
    others = {renamed.get(name, name): node for name, node in _named(b.graph.node).items()}
    changed = []
    for name, node in _named(a.graph.node).items():
        if name in others:
            details = attribute_details(node, others[name], *versions)
            moved = _moved(node, others[name], *versions) if details else frozenset()
            details = [detail for detail in details if detail.partition(" ")[0] not in moved]
            changed += [f"{name} ({', '.join(details)})"] if details else []
    if changed:
        verb = "has" if len(changed) == 1 else "have"
        yield f"{counted(len(changed), 'node')} {verb} other attributes: {first_of(changed, _SHOWN)}"


def _operators(a: ModelProto, b: ModelProto) -> Iterator[str]:
    """The operators whose numbers differ, the largest difference first; constants are not counted."""
    before, after = node_counts(a), node_counts(b)
    differing = [name for name in before | after if before[name] != after[name]]
    differing.sort(key=lambda name: (-abs(before[name] - after[name]), name))
    if differing:
        changes = [f"{name} {before[name]} -> {after[name]}" for name in differing]
        yield f"operator counts differ: {first_of(changes, _SHOWN)}"


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
        yield f"{counted(len(found), 'weight')} {verb}: {first_of(found, _SHOWN)}{by}"
    if reason:
        yield f"weights were not compared: {reason}"


def _named(nodes: Iterable[NodeProto]) -> dict[str, NodeProto]:
    """The nodes by name; one without a name by its first result."""
    return {_name(node): node for node in nodes}


def _name(node: NodeProto) -> str:
    return node.name or next(iter(node.output), "")
