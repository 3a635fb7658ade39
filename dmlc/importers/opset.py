"""The opset of the emitted model: what the target wants where every carried node has a form there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from onnx import NodeProto, TensorProto
from onnx.defs import onnx_opset_version

from dmlc.diagnostics import fail, option
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.diagnostics.catalogue.functions import CANNOT_JOIN
from dmlc.ir import DType, Graph, Node
from dmlc.ir.dtype import bool_, f16, f32
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.nested import runs_by_body
from dmlc.onnx_schema.origin import known_of
from dmlc.onnx_schema.versions import fits, move, obstacle
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE, is_opaque
from dmlc.ops.select import HARDMAX
from dmlc.targets import KernelTable

#: The opset that brought a type of weights, by ONNX's number; all others are older than any opset that is read.
_SINCE = {
    TensorProto.FLOAT8E4M3FN: 19, TensorProto.FLOAT8E4M3FNUZ: 19, TensorProto.FLOAT8E5M2: 19,
    TensorProto.FLOAT8E5M2FNUZ: 19, TensorProto.UINT4: 21, TensorProto.INT4: 21, TensorProto.FLOAT4E2M1: 23,
    24: 24,  # FLOAT8E8M0
    25: 25, 26: 25,  # UINT2, INT2
}  # fmt: skip


def choose_opset(graph: Graph, wanted: int, lowest: int, *, asked: bool) -> int:
    """``wanted`` if all carried nodes fit it, else another opset.

    The highest one below is tried first, not under ``lowest``. Then the lowest one above, for a model must not be
    refused because a target is behind. The last resort is the model's own, at which nothing can be rewritten.

    Where the user ``asked`` for it, nothing else will do. Raises ``DmlcError`` E0501, which names a node.
    """
    own: int = graph.origin.versions.get("", 1)
    kept = graph.origin.frame.functions
    if kept:  # a body means what its own opset says
        if asked and wanted != own:
            message = f"function {kept[0].name} was written for an opset that it cannot leave"
            raise fail(
                codes.NEEDS_OPSET,
                message,
                help=f"leave out {option('--opset', 'opset=')}, or ask for {option('--opset ', 'opset=')}{own}",
            )
        if wanted != own:
            graph.notes.append(f"opset {own}, not {wanted}: function {kept[0].name} has no equal there")
        return own
    carried = list(_carried(graph))
    weight, least = _newest_weight(graph)
    guilty = _misfit(carried, wanted)
    if guilty is None and wanted >= least:
        return wanted
    label = f"weight {weight}" if guilty is None else _label(guilty)
    newest: int = max(onnx_opset_version(), graph.origin.versions.get("", 1))
    for opset in () if asked else (*range(wanted - 1, lowest - 1, -1), *range(wanted + 1, newest + 1)):
        if opset >= least and _misfit(carried, opset) is None:
            graph.notes.append(f"opset {opset}, not {wanted}: {label} has no equal there{_why(guilty, wanted)}")
            return int(opset)
    version: int = graph.origin.versions.get("", 1)
    if not asked:
        why = _why(guilty, wanted)
        graph.notes.append(
            f"opset {version}, and nothing is rewritten: {label} is not converted to opset {wanted}{why}"
        )
        return version
    raise fail(
        codes.NEEDS_OPSET,
        f"{label} of opset {version} is not converted to opset {wanted}{_why(guilty, wanted)}",
        help="ask for another opset (--opset N), or export the model anew",
    )


def join_opset(graph: Graph, wanted: int, lowest: int, *, asked: bool) -> int:
    """The opset for a program that calls models: ``wanted`` where all their nodes fit it; else the highest below, not
    under ``lowest``, else the lowest above.

    Raises ``DmlcError``: E0510 where no opset has all nodes, E0501 where the user ``asked`` for one that has not.
    """
    kept = [(function, graph.joined.calls[0]) for function in graph.joined.frame.functions]
    carried = list(_carried(graph))
    weight, least = _newest_weight(graph)
    newest = max([onnx_opset_version(), *(node.origin.version for node in carried)])
    own = {v.version for f, _ in kept for v in f.opset_import if not plain_domain(v.domain)}
    tried = [wanted] if asked else [wanted, *range(wanted - 1, lowest - 1, -1), *range(wanted + 1, newest + 1)]
    for opset in tried:
        if opset >= least and own <= {opset} and _misfit(carried, opset) is None:
            return opset
    guilty = _misfit(carried, wanted)
    if asked:
        label = f"function {kept[0][0].name}" if guilty is None and kept else f"weight {weight}"
        label = label if guilty is None else f"{_label(guilty)} of opset {guilty.origin.version}"
        message = f"{label} is not converted to opset {wanted}{_why(guilty, wanted)}"
        raise fail(codes.NEEDS_OPSET, message, help="leave out --opset, or ask for another")
    oldest = min(carried, key=lambda node: int(node.origin.version), default=None)
    latest = max(carried, key=lambda node: int(node.origin.version), default=None)
    ends = [f"{_label(node)} of opset {node.origin.version}" for node in (oldest, latest) if node is not None]
    ends = [*ends, *[f"function {f.name} of opset {', '.join(map(str, sorted(own)))}" for f, _ in kept[:1]]]
    message = f"{' and '.join(ends)} have no opset in common"
    raise fail(CANNOT_JOIN, message, help="export one of the models anew, for the opset of the other")


class LostDefinition(Struct, frozen=True):
    """A node that no kernel runs, and that ONNX's definition runs at the model's own opset only."""

    label: str
    op_type: str
    dtype: DType


def why_to_stay(graph: Graph, opset: int, table: KernelTable) -> str | None:
    """The reason for a model to stay at its own opset, or None: a node that would lose ONNX's definition of it."""
    lost = lost_definition(graph, opset, lambda kind, dtype: dtype in table.dtypes(kind, opset))
    if lost is None:
        return None
    label = f"{lost.label} has no kernel for {lost.dtype.name}, but ONNX's definition, which holds there"
    return f"opset {graph.origin.versions.get('', 1)}, not {opset}: {label}"


def lost_definition(graph: Graph, opset: int, computes: Callable[[str, DType], bool]) -> LostDefinition | None:
    """Return a node of the model that no kernel runs, but ONNX's definition of it, which does not hold at ``opset``.

    ``computes`` knows the kernels there. Of f16 and f32 ONNX Runtime has kernels, or casts.
    """
    own: int = graph.origin.versions.get("", 1)
    if own == opset:
        return None
    for node, dtype in _of_rare_dtypes(graph):

        def has_kernel(kind: str, dtype: DType = dtype) -> bool:
            return computes(kind, dtype)

        kind = node.origin.proto.op_type
        if not has_kernel(kind) and runs_by_body(kind, own, has_kernel) and not runs_by_body(kind, opset, has_kernel):
            return LostDefinition(_label(node), kind, dtype)
    return None


def _of_rare_dtypes(graph: Graph) -> Iterator[tuple[Node, DType]]:
    """ONNX's own nodes of an imported graph and of those inside it whose first operand is of neither f16, f32 nor bool;
    and its dtype."""
    for node in graph:
        if node.origin is None:
            continue
        for value in node.operands:
            if value is not None:
                if value.type.dtype not in _COMMON and not plain_domain(node.origin.proto.domain):
                    yield node, value.type.dtype
                break
    for node in graph.with_regions:
        for region in node.regions:
            yield from _of_rare_dtypes(region.graph)


_COMMON = (f32, f16, bool_)


def _label(node: Node) -> str:
    proto: NodeProto = node.origin.proto
    return f"node {proto.name or proto.output[0]} ({proto.op_type})"


def _newest_weight(graph: Graph) -> tuple[str, int]:
    """The name of the weight whose type came last, and the opset that brought it."""
    held_by = graph.nodes_of((OPAQUE,))
    found = [held.proto for node in held_by if is_opaque(node, "Initializer") for held in node.attributes.unplain]  # type: ignore[attr-defined]
    since = [(_SINCE.get(getattr(proto, "data_type", 0), 1), getattr(proto, "name", "")) for proto in found]
    least, name = max(since, default=(1, ""))
    return name, least


def _misfit(carried: Sequence[Node], opset: int) -> Node | None:
    return next((node for node in carried if not _fits(node, opset)), None)


def _why(node: Node | None, opset: int) -> str:
    """The reason why the node has no form at the opset, behind a colon; empty where none is known."""
    if node is None:
        return ""
    proto: NodeProto = node.origin.proto
    reason = obstacle(proto, node.origin.version, opset, known_of(node, proto.input))
    return f": {reason}" if reason else ""


_FLATTENING = ("Softmax", "LogSoftmax", "Hardmax")


def says_flattened(graph: Graph, opset: int) -> bool:
    """Return whether a softmax or hardmax runs over several axes, which one ONNX node can do up to opset 12 only."""
    return any(
        len(getattr(node.attributes, "axes", ())) > 1
        or (is_opaque(node, node.origin.proto.op_type) and _splits(node, opset))
        for node in graph.nodes_of((SOFTMAX, LOG_SOFTMAX, HARDMAX, OPAQUE))
        if node.origin is not None and node.origin.version < 13 and node.origin.proto.op_type in _FLATTENING
    )


def _splits(node: Node, opset: int) -> bool:
    """True if an opaque node becomes several nodes."""
    origin = node.origin
    moved = move(origin.proto, origin.version, opset, lambda base: f"\0{base}", known_of(node, origin.proto.input))
    return moved is not None and len(moved.nodes) > 1


def _fits(node: Node, opset: int) -> bool:
    proto: NodeProto = node.origin.proto
    return fits(proto, node.origin.version, opset, known_of(node, proto.input))


def _carried(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes_of((OPAQUE, OPAQUE_IMPURE)):
        if node.origin is not None:
            if not plain_domain(node.origin.proto.domain):
                yield node
            for region in node.regions:
                yield from _carried(region.graph)
