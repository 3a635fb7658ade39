"""``infer-shapes``: every type inferred anew, and every operand's dtype checked against the declaration."""

from __future__ import annotations

from typing import ClassVar

from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import DType, Graph, Node, Operation, OpError
from dmlc.ops.call import CallSite, diagnose
from dmlc.passes.manager import Pass, PassContext

#: An operation with the dtypes of its operands: checked once, however many nodes have it.
_Signature = tuple[Operation, tuple[DType | None, ...]]


class InferShapes(Pass, frozen=True):
    """Values have types from birth; this pass renews them after dims were bound or the opset was changed.

    The graph takes the opset of the context, at which carried operators are typed. Raises the error of the rule that
    is broken (E03), at the place of the node.
    """

    name: ClassVar[str] = "infer-shapes"
    summary: ClassVar[str] = "Infer all types anew and check operand dtypes."
    ensures: ClassVar[tuple[str, ...]] = ("inferred-types",)

    def run(self, graph: Graph, context: PassContext) -> bool:
        changed = graph.opset != context.opset
        graph.opset = context.opset
        if graph.dims.least == 0:
            return changed  # an imported model was typed when it was read, with its dims bound
        checked: set[_Signature] = set()
        for node in graph:
            try:
                signature = (node.op, tuple([None if v is None else v.type.dtype for v in node.operands]))
                if signature not in checked:
                    _check_dtypes(node)
                    checked.add(signature)
                # Carried operators are meant at an opset; the record is asked, so that no pass has to load onnx.
                at_opset = getattr(node.attributes, "at_opset", None)
                changed |= graph.reinfer(node, None if at_opset is None else at_opset(context.opset))
            except OpError as error:
                site = CallSite(span=node.spans[0] if node.spans else None)
                raise DmlcError(diagnose(error, site, node.operands)) from None
        return changed


def _check_dtypes(node: Node) -> None:
    """Each operand has a declared dtype, and operands of one group have the same. Raises ``OpError``."""
    declared = node.op.operands
    groups: dict[str, DType] = {}
    for index, value in enumerate(node.operands):
        if value is None or not declared:
            continue
        spec = declared[min(index, len(declared) - 1)]
        dtype = value.type.dtype
        if dtype not in spec.dtypes:
            allowed = ", ".join(d.name for d in spec.dtypes)
            message = f"{node.op.symbol or node.op.name} does not take {dtype.name}: it takes {allowed}"
            raise OpError(codes.OPERAND_DTYPE, message, at=index, about=index)
        first = groups.setdefault(spec.group, dtype)
        if first is not dtype:
            message = f"dtypes differ: {first.name} and {dtype.name} in {node.op.name}"
            raise OpError(codes.MIXED_DTYPES, message, at=index, about=index)
