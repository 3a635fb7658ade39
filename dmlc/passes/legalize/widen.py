"""A missing kernel is replaced by the kernel of a wider type, with casts around it; and which nodes are offered."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dmlc.diagnostics import DmlcError, Label, fail
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.ir import Attributes, DType, Graph, Node
from dmlc.ir.dtype import f64, i8, i16, i32, i64, u8, u16, u32, u64
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS, GatherAttributes
from dmlc.ops.move import PadAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, LoweredNode, NodeRule, lowers
from dmlc.targets.needed_kernels import NEEDS, Need

#: From here on a lower opset takes what a higher one does, but for types that the language lacks.
_WIDE_OPSET = 20


def is_of_program(rule: Any, node: Node, graph: Graph) -> bool:
    """Return whether a node is not as an imported model has it, which is what its user runs.

    It may be imported with an older opset, whose operator may not take its type.
    """
    return bool(node.origin is None or graph.opset < min(node.origin.version, _WIDE_OPSET))


def is_promised(rule: Any, node: Node, graph: Graph) -> bool:
    """The same for what the language says and ONNX does not (integers that wrap): imported models have what their
    runtime does."""
    return graph.dims.least > 0 and is_of_program(rule, node, graph)


def is_for_cpu(rule: Any, node: Node, graph: Graph) -> bool:
    """The same for what ONNX Runtime's CPU provider lacks or computes wrongly: a node that the execution provider
    computes stays where the CPU need not run it."""
    return is_of_program(rule, node, graph) and not rule.capabilities.is_native(node.op, node.operand(0).type.dtype)


def is_promised_for_cpu(rule: Any, node: Node, graph: Graph) -> bool:
    """Both."""
    return is_promised(rule, node, graph) and is_for_cpu(rule, node, graph)


def _in_home(rule: NodeRule, match: LoweredNode) -> str:
    dtype = _dtype(match.root)
    return f"{match.root.op.name} of {dtype.name} in {rule.capabilities.compute_dtype(match.root.op, dtype)}"


def _lacks_kernel(rule: NodeRule, node: Node, graph: Graph) -> bool:
    if not is_of_program(rule, node, graph):
        return False
    dtype = _dtype(node)
    home = rule.capabilities.compute_dtype(node.op, dtype)
    if home is None:
        raise _refuse(node, dtype)
    return home is not dtype


@lowers(*NEEDS, offered=_lacks_kernel, describe=_in_home)
def widen_dtype(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A node whose dtype has no kernel is computed in a wider one, with casts around it.

    The rule of the table: it comes after the others, so what it cannot do nobody can.
    """
    dtype, need = _dtype(node), NEEDS[node.op]
    home = e.target.compute_dtype(node.op, dtype)
    assert home is not None
    which = range(len(operands)) if need.operands is None else need.operands
    wide = [x.cast(home) if x is not None and i in which else x for i, x in enumerate(operands)]
    made = e.results(node.op, *wide, attributes=_adapted(node.attributes, dtype))
    back = range(len(made)) if need.results is None else need.results
    return [
        x.cast(old.type.dtype) if i in back else x for i, (x, old) in enumerate(zip(made, node.results, strict=True))
    ]


def _refuse(node: Node, dtype: DType) -> DmlcError:
    labels = [Label(span) for span in node.spans[:1]]
    kernels = " and ".join(name for name, _ in NEEDS[node.op].kernels)
    message = f"{node.op.name} of {dtype.name} has no exact form: ONNX Runtime has no such kernel of {kernels}"
    wide = "f32" if dtype is f64 else "a dtype that it takes"
    return fail(codes.NO_EXACT_FORM, message, *labels, help=f"cast the operand to {wide}, if the precision suffices")


def _dtype(node: Node) -> DType:
    need: Need = NEEDS[node.op]
    return node.operand(need.operands[0] if need.operands else 0).type.dtype


def _adapted(attributes: Attributes, dtype: DType) -> Attributes:
    if isinstance(attributes, PadAttributes) and dtype.kind == "bool":
        return replace(attributes, value=int(attributes.value))
    return attributes


@lowers(GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS, offered=is_of_program)
def signed_indices(e: Sketch, node: Node, x: Term, i: Term, *updates: Term) -> Lowered:
    """Unsigned indices are cast to i64: ONNX takes i32 and i64, and GatherND i64 only."""
    is_nd = node.op is GATHER and node.attributes_as(GatherAttributes).batch_axes > 0
    return e.again(node, x, i.cast(i64)) if i.dtype in (u32, u64) or (is_nd and i.dtype is not i64) else KEEP


#: Integer types whose sums i64 holds, and f64 too unless there are millions of the largest.
NARROW: tuple[DType, ...] = (i8, i16, i32, u8, u16, u32)
