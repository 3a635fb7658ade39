"""Selections, what stands around them, and the reasons against making one."""

from __future__ import annotations

from dmlc.ir import DType, Graph, Node, Operation, Value
from dmlc.ir.dtype import i64, u32, u64
from dmlc.ops.binary import DIV, MUL, SUB
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import NEG
from dmlc.ops.reduce import Reduction
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K
from dmlc.passes.canonicalize_reduce.kinds import magnitude
from dmlc.passes.patterns import Seen, both_ways, made_by, scalar_of
from dmlc.passes.rewrite import Miss, used_elsewhere
from dmlc.targets.capabilities import Capabilities

#: Searches for the other end.
OTHER_END = {ARGMAX: ARGMIN, ARGMIN: ARGMAX}
OTHER_ORDER = {"largest": "smallest", "smallest": "largest"}


def through_index_cast(value: Value, seen: Seen) -> Value:
    """Return the operand of a cast of an index. It is in range of every index type (32 or 64 bits), so no type loses
    it."""
    node = made_by(value, CAST)
    if node is None:
        return value
    seen.append(node)
    return node.operand("x")


def negation_of(value: Value, seen: Seen) -> Value | None:
    """``x`` where the value is ``-x``, ``0 - x``, ``x * -1`` or ``x / -1``. Of zeros the sign may differ."""
    node = made_by(value, NEG, SUB, MUL, DIV)
    if node is None:
        return None
    x = node.operand("x") if node.op is NEG else _negated(node)
    if x is None or x.type != value.type:  # a constant of many axes would broadcast it
        return None
    seen.append(node)
    return x


def _negated(node: Node) -> Value | None:
    a, b = node.operand("a"), node.operand("b")
    if node.op is SUB:
        return b if scalar_of(a) == 0 else None
    if node.op is DIV:
        return a if scalar_of(b) == -1 else None
    return next((x for x, c in both_ways(node) if scalar_of(c) == -1), None)


def why_order_may_not_turn(x: Value, graph: Graph) -> Miss | None:
    """The reason why negating ``x`` might not turn its order around: the lowest integer negates to itself."""
    dtype = x.type.dtype
    if dtype.is_float or (dtype.kind == "int" and magnitude(x, graph) <= int(dtype.highest)):
        return None
    return Miss("it is not proved that {0} is above {1}, which negates to itself", (name_of(x), dtype.lowest), x)


def is_search(node: Node) -> bool:
    """Return whether the node only selects a position: argmax, argmin, or a top_k whose values nobody uses."""
    return node.op in OTHER_END or (node.op is TOP_K and not node.results[0].uses)


def why_kept_alive(value: Value) -> Miss | None:
    """The reason why a search that no longer reads the value saves nothing: others than searches read it too."""
    if all(is_search(user) for user in value.users):
        return None
    return used_elsewhere(value)


def name_of(value: Value) -> str:
    if value.name:
        return value.name
    return "an input" if value.producer is None else f"the result of {value.producer.op.name}"


def why_no_extreme(capabilities: Capabilities, op: Operation, dtype: DType) -> Miss | None:
    """The reason against a new ``reduce_max`` or ``reduce_min`` (``op``) of the dtype where there was none.

    i64 (and what is computed in it) is compared wrongly by ONNX Runtime's CPU provider. An execution provider has
    it where a kernel takes the dtype and no session fails for it.
    """
    if not capabilities.emits_nodes or capabilities.is_native(op, dtype):
        return None
    if dtype in (i64, u32, u64):
        return Miss("ReduceMax and ReduceMin of {0} need detours: kernels compare large ones wrongly", (dtype,))
    assert isinstance(op, Reduction)
    if capabilities.has_provider and not capabilities.computes(op.onnx, dtype):
        name, opset = capabilities.target.name, capabilities.opset
        return Miss("{0} has no {1} of {2} at opset {3}", (name, op.onnx, dtype, opset))
    return None
