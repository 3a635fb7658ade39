"""Options of a provider that a model may ask for: i64 by its low 32 bits, and the layout of ONNX."""

from __future__ import annotations

from collections.abc import Iterator

from dmlc.ir import Graph, Node, Value
from dmlc.ir.dtype import i64
from dmlc.ops.binary import EQUAL
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS, IndexAttributes
from dmlc.ops.move import RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE, OpaqueAttributes
from dmlc.passes.intervals import Intervals
from dmlc.passes.patterns import scalar_of
from dmlc.targets.capabilities import Capabilities
from dmlc.targets.needed_kernels import NEEDS

#: The buffers of the device hold fewer elements than that, of two bytes or more each.
_LOWEST, _HIGHEST = float(-(2**31)), float(2**31 - 1)
#: Operations whose second operand are indices. No axis is so long that they need more than 32 bits.
_INDEXED = (GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS)
#: Operators that ONNX Runtime's layout transformer wraps (core/optimizer/layout_transformation).
_OF_LAYOUT = frozenset(
    (
        *("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace", "GlobalAveragePool"),
        *("GlobalMaxPool", "GridSample", "InstanceNormalization", "MaxPool", "Resize"),
    )
)
_VIEWS = (RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE)


def low_words_suffice(graph: Graph, capabilities: Capabilities) -> bool:
    """Return whether the option of the provider for i64 keeps every number of the graph.

    What nodes of the device read and write in i64, for the option alone, must fit 32 bits by the intervals of the
    graph. A model with graphs inside its nodes gets no option: the provider fails on values from around them (0.4.0).
    """
    if not capabilities.has_provider or not capabilities.provider.session.int64_options or graph.with_regions:
        return False
    known = Intervals(graph, counted=_HIGHEST)
    known.ranges = {**_of_indices(graph), **known.ranges}
    return all(_fits(value, known) for node in graph for value in _read_by_option(node, capabilities))


def _of_indices(graph: Graph) -> dict[str, tuple[int | float, int | float]]:
    """The ranges of inputs that are read as indices: beyond the axis they mean nothing.

    A view of an input has its elements. A loss reads labels so, but for the one that it ignores:
    ``where(label == -100, 0, label)``.
    """
    found: dict[str, tuple[int | float, int | float]] = {}
    for node in graph.nodes_of(_INDEXED):
        size = node.operand(0).shape[node.attributes_as(IndexAttributes).axis]
        most = min(_HIGHEST, size) if isinstance(size, int) else _HIGHEST
        index = _viewed(node.operand(1))
        choice, ignored = index.producer, None
        if choice is not None and choice.op is WHERE:
            test, index = choice.operand("cond").producer, choice.operand(2)
            if test is None or test.op is not EQUAL or test.operand("a") is not index:
                continue
            ignored, index = scalar_of(test.operand("b")), _viewed(index)
            if ignored is None:
                continue
        if index.producer is None and index.name:
            found[index.name] = (min(-most, ignored or 0), max(most - 1, ignored or 0))
    return found


def _viewed(value: Value) -> Value:
    """The value that views show, or itself."""
    while value.producer is not None and value.producer.op in _VIEWS:
        value = value.producer.operand(0)
    return value


def depends_on_layout(graph: Graph) -> bool:
    """Return whether the layout that the provider prefers changes nodes: it has transposes around some operators, and
    moves all that change the place of the channels as far as it can."""
    if graph.holds([TRANSPOSE]):
        return True
    records = [node.attributes_as(OpaqueAttributes) for node in graph.nodes_of((OPAQUE,))]
    return any(not a.domain and a.op_type in _OF_LAYOUT for a in records)


def _fits(value: Value, known: Intervals) -> bool:
    low, high = known.of(value)
    return low >= _LOWEST and high <= _HIGHEST


def _read_by_option(node: Node, capabilities: Capabilities) -> Iterator[Value]:
    """The values of i64 that a kernel takes for the option alone."""
    if node.op in (OPAQUE, OPAQUE_IMPURE):
        a = node.attributes_as(OpaqueAttributes)
        row, kernel = capabilities.row(a.op_type, a.domain), capabilities.kernel(a.op_type, a.domain)
        for letters, values in ((row and row.inputs, node.operands), (row and row.outputs, node.results)):
            for index, value in enumerate(values):
                letter = letters[min(index, len(letters) - 1)] if letters else ""
                if kernel is not None and letter in kernel.int64 and value is not None and value.type.dtype is i64:
                    yield value
    elif node.op in NEEDS and not _takes_by_option(node, capabilities):
        return
    else:
        operands = node.operands[:1] if node.op in _INDEXED else node.operands
        results = () if node.op is CAST else node.results  # the kernels of Cast write i64 without it
        yield from [value for value in (*operands, *results) if value is not None and value.type.dtype is i64]


def _takes_by_option(node: Node, capabilities: Capabilities) -> bool:
    """True if a kernel that the node becomes takes i64 for the option alone."""
    kernels = [(capabilities.kernel(name), parameter) for name, parameter in NEEDS[node.op].kernels]
    return any(kernel is not None and parameter in kernel.int64 for kernel, parameter in kernels)
