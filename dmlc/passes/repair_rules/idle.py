"""Attributes that keep a node off the provider and say nothing where they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dmlc.ir import Graph, Node, Value
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Miss, Rewriter
from dmlc.records import dataclass


@dataclass(frozen=True, slots=True)
class _Idle:
    """An attribute of an operator, and whether it says nothing at a node; ``else_`` is what it says there."""

    failure: str
    op_type: str
    attribute: str
    holds: Callable[[Node], bool]
    else_: str


def _gives_no_indices(node: Node) -> bool:
    return not any(v.uses for v in node.results[1:])


def _crops_nothing(node: Node) -> bool:
    return bool(attribute_of(node, "coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize")


_ROWS = (
    _Idle("max-pool-order", "MaxPool", "storage_order", _gives_no_indices, "its indices are used"),
    _Idle("resize-extrapolation", "Resize", "extrapolation_value", _crops_nothing, "it crops, and the value is used"),
)


@dataclass(slots=True, eq=False)
class _IdleAttributeMatch(Match):
    row: _Idle = _ROWS[0]


class DropIdleAttribute(RepairRule[_IdleAttributeMatch]):
    """A MaxPool's storage order where no indices are used, and a Resize's value for what is not cropped, are left out.

    They say nothing there. The node stays in its model's form otherwise.
    """

    name = "drop-idle-attribute"
    optional = True
    roots = (OPAQUE,)
    repairs = tuple(row.failure for row in _ROWS)

    def match(self, node: Node, graph: Graph) -> _IdleAttributeMatch | None:
        a = node.attributes_as(OpaqueAttributes)
        row = next((row for row in _ROWS if row.op_type == a.op_type and not a.domain), None)
        if row is None or node.origin is None or attribute_of(node, row.attribute) is None:
            return None
        failure = self.support.of_kernel(row.failure, row.op_type)
        usual = None if failure is None else (failure.attributes_not or {}).get(row.attribute)
        if usual is None or attribute_of(node, row.attribute) == usual:
            return None
        return _IdleAttributeMatch(node, row=row)

    def check(self, match: _IdleAttributeMatch, graph: Graph) -> Miss | None:
        return None if match.row.holds(match.root) else Miss("{0}", (match.row.else_,))

    def describe(self, match: _IdleAttributeMatch) -> str:
        return f"{match.row.attribute} of {match.row.op_type}"

    def build(self, match: _IdleAttributeMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, name = match.root, match.row.attribute
        a, old = root.attributes_as(OpaqueAttributes), root.origin.proto
        kept = max([1, *(v.index + 1 for v in root.results if v.uses)])
        record = replace(a, types=a.types[:kept], attributes=tuple([pair for pair in a.attributes if pair[0] != name]))
        made = rewriter.add_node(OPAQUE, root.operands, record)
        proto = type(old)()
        proto.CopyFrom(old)
        del proto.attribute[:], proto.output[kept:]
        proto.attribute.extend([attribute for attribute in old.attribute if attribute.name != name])
        made.name, made.origin = root.name, replace(root.origin, proto=proto)
        return [*made.results, *root.results[kept:]]
