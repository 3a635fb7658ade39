"""Statistics of a model without running it: nodes, dispatches on DirectML, bytes moved. Estimates for comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from onnx import GraphProto, ModelProto, TensorProto

from dmlc.ir import Dim, TensorType, dim_names
from dmlc.onnx_schema.nested import graphs_of
from dmlc.placement.costs import total
from dmlc.placement.node import CPU
from dmlc.placement.node_counts import node_counts
from dmlc.placement.report import Placement, placement
from dmlc.placement.values import element_bits, told_names
from dmlc.targets import Target, load_target


class Statistics(Struct):
    """``nodes`` by operator are those of ``node_counts``.

    ``on_cpu`` are the nodes on the CPU, ``copies`` the copies between CPU and GPU. ``dispatches`` and ``bytes_moved``
    may be expressions of the model's dims, or None where sizes are not known: ``unknown`` is the number of nodes which
    that is due to. ``external_bytes`` are weights outside of the file.
    """

    opset: int
    nodes: dict[str, int]
    on_cpu: int
    copies: int
    fused_graphs: int
    dispatches: Dim | None
    bytes_moved: Dim | None
    unknown: int
    external_bytes: int

    @property
    def total(self) -> int:
        return sum(self.nodes.values())


def statistics(
    model: ModelProto,
    types: Mapping[str, TensorType] | None = None,
    target: Target | None = None,
    placed: Placement | None = None,
) -> Statistics:
    """The statistics of a model on a target, or on ``directml`` where that names no provider. It is not changed.

    Calls of its functions count as the nodes of their bodies. ``types`` are those of its values, by name, where the
    caller knows them better than inference. ``placed`` is the model's placement, where the caller has it.
    """
    if placed is None:
        if target is None or target.provider is None:
            target = load_target("directml")
        placed = placement(model, target, types=types)
    dispatches = [_meaningful(node.dispatches, placed.named) for node in placed.nodes]
    bytes_moved = [_meaningful(node.bytes, placed.named) for node in placed.nodes]
    return Statistics(
        opset=placed.opset,
        nodes=dict(node_counts(model)),
        on_cpu=placed.count(CPU),
        copies=len(placed.transfers),
        fused_graphs=placed.partitions,
        dispatches=total(dispatches),
        bytes_moved=total(bytes_moved),
        unknown=bytes_moved.count(None),
        external_bytes=sum(map(_external_bytes, _weights(model.graph))),
    )


def _meaningful(amount: Dim | None, named: frozenset[str]) -> Dim | None:
    """The amount; None where it depends on a size whose name a tool made up."""
    if amount is None or isinstance(amount, int):
        return amount
    unknown = dim_names(amount) - named
    return amount if len(told_names(unknown)) == len(unknown) else None


def _weights(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for inner in graphs_of(node):
            yield from _weights(inner)


def _external_bytes(tensor: TensorProto) -> int:
    if tensor.data_location != TensorProto.EXTERNAL:
        return 0
    length = next((e.value for e in tensor.external_data if e.key == "length"), "")
    if length.isdecimal():
        return int(length)
    bits = element_bits(tensor.data_type) or 0
    elements = 1
    for size in tensor.dims:
        elements *= size
    return elements * bits // 8
