"""Names of an emitted model: no two values and no two nodes share one, graphs inside nodes included.

ONNX keeps one namespace for values and another for nodes (onnx, docs/IR.md, "Names Within a Graph"). A graph inside a
node must not reuse the name of a value around it, and ONNX Runtime refuses two nodes of one name. ``Names`` first
records who said which name, over the whole model; everything else gets a name that nobody said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onnx import GraphProto, NodeProto, SparseTensorProto, TensorProto

from dmlc.ir import Graph, Node, Region, Value
from dmlc.onnx_schema.nested import inner_graphs
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, calls_by_name


class Namespace:
    """The names of one kind, each with its owner: the first object that said it, or None for a new name."""

    __slots__ = ("_counts", "owners")

    def __init__(self) -> None:
        self.owners: dict[str, Any] = {}
        self._counts: dict[str, int] = {}

    def claim(self, owner: object, name: str | None) -> None:
        """Let ``owner`` have the name unless another said it before."""
        if name:
            self.owners.setdefault(name, owner)

    def own(self, owner: object, name: str | None, base: str = "") -> str:
        """The name that ``owner`` claimed, where it has it; else a new one after that name, or after ``base``."""
        if name and self.owners.get(name) is owner:
            return name
        return self.new(name or base)

    def new(self, base: str) -> str:
        """``base`` where nobody has it, else ``base_2``, ``base_3`` and so on. It is taken from then on."""
        owners = self.owners
        name = base
        if name in owners:
            count = self._counts.get(base, 1)
            while name in owners:
                count += 1
                name = f"{base}_{count}"
            self._counts[base] = count
        owners[name] = None
        return name


class Names:
    """The namespaces of one model: ``values`` (weights included) and ``nodes``.

    Claims go by rank: the interface, which never changes; those of graphs that a node calls by name; the other values
    of the outermost graph; those of the graphs inside nodes; declarations of values that are gone. The data of a
    constant owns its name, because captures copy it.

    ``called`` are the graphs whose inputs and outputs a node finds by name: those inside ``com.microsoft.BeamSearch``
    and its like. They keep these names even if others have them, as the inputs of the model mostly do.
    """

    def __init__(self, graph: Graph) -> None:
        self.values: Namespace = Namespace()
        self.nodes: Namespace = Namespace()
        for value in graph.inputs:
            self.values.claim(value, value.name)
        for name, _ in graph.outputs:
            self.values.claim(graph.output, name)
        self.called: dict[Graph, frozenset[str]] = {}
        self._claim_called(graph)
        waiting = [graph]
        for each in waiting:
            for region in self._claim_nodes(each):
                for value in region.formals:
                    self.values.claim(value, value.name)
                for name, value in region.graph.outputs:
                    self.values.claim(output_owner(region.graph, value), name)
                waiting.append(region.graph)
        if graph.origin is not None:
            frame = graph.origin.frame.graph
            for info in frame.value_info:
                self.values.claim(frame, info.name)
            for annotation in frame.quantization_annotation:
                self.values.claim(frame, annotation.tensor_name)

    def _claim_called(self, graph: Graph) -> None:
        """Claim the inputs and outputs of the graphs that a node calls by name."""
        for node in graph.with_regions:
            by_name = calls_by_name(node)
            for region in node.regions:
                inside = region.graph
                if by_name:
                    formals = [value.name for value in region.formals if value.name]
                    self.called[inside] = frozenset([*formals, *[name for name, _ in inside.outputs]])
                    for name in self.called[inside]:
                        self.values.claim(inside, name)
                self._claim_called(inside)

    def _claim_nodes(self, graph: Graph) -> list[Region]:
        """Claim for the nodes of a graph and their results; the graphs inside them."""
        values, nodes = self.values.owners.setdefault, self.nodes.owners.setdefault  # a call for each takes longer
        regions: list[Region] = []
        for node in graph:
            if node.name:
                nodes(node.name, node)
            for value in node.results:
                name = value.name
                if name:
                    values(name, value if node.op is not CONSTANT else _data(value))
            if node.regions:
                regions.extend(node.regions)
        return regions


def output_owner(graph: Graph, value: Value) -> object:
    """The owner of an output's name in a graph inside a node: the value, or the graph where a node has to copy it."""
    return graph.output if value.producer is not None and must_copy(value.producer, outermost=False) else value


def must_copy(node: Node, *, outermost: bool) -> bool:
    """True if a result of the node can be an output only as a copy.

    Weights stand in the outermost graph, where constants are shared; ONNX Runtime gives out no sparse tensor.
    """
    if node.op is not OPAQUE:
        return node.op is CONSTANT
    attributes = node.attributes_as(OpaqueAttributes)
    if attributes.op_type == "Initializer" and not outermost:
        return True
    return any(h.name == "sparse_value" or isinstance(h.proto, SparseTensorProto) for h in attributes.unplain)


def is_weight(node: Node) -> bool:
    """True for a node that becomes an initializer."""
    if node.op is not OPAQUE:
        return node.op is CONSTANT
    return node.attributes_as(OpaqueAttributes).op_type == "Initializer"


def _data(value: Value) -> object:
    assert value.producer is not None
    return value.producer.attributes_as(ConstantAttributes).value


# --- Names of initializers that nothing named: after the first node that takes them, and the role that they have there

_AXES = ("data", "axes")
_BOTH = ("A", "B")
#: The names of operands in ONNX's schemas, of operators that take a constant of dmlc's making. Loading the schemas
#: takes longer than naming.
ROLES: Mapping[str, tuple[str, ...]] = {
    "Clip": ("input", "min", "max"),
    "ConstantOfShape": ("input",),
    "CumSum": ("x", "axis"),
    "Expand": ("input", "shape"),
    "Gather": ("data", "indices"),
    "GatherElements": ("data", "indices"),
    "LayerNormalization": ("X", "Scale", "B"),
    "OneHot": ("indices", "depth", "values"),
    "Pad": ("data", "pads", "constant_value", "axes"),
    "Pow": ("X", "Y"),
    "Range": ("start", "limit", "delta"),
    "Reshape": ("data", "shape"),
    "Resize": ("X", "roi", "scales", "sizes"),
    "ScatterElements": ("data", "indices", "updates"),
    "Slice": ("data", "starts", "ends", "axes", "steps"),
    "Split": ("input", "split"),
    "Tile": ("input", "repeats"),
    "TopK": ("X", "K"),
    "Where": ("condition", "X", "Y"),
    **dict.fromkeys(("Squeeze", "Unsqueeze", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"), _AXES),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"), _AXES),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "MatMul", "And", "Or", "Xor", "Equal"), _BOTH),
    **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"), _BOTH),
}


def name_initializers(
    graph: GraphProto, waiting: Mapping[str, TensorProto], new_name: Callable[[str], str], *, nested: bool
) -> None:
    """Name the tensors of ``waiting`` ``NODE.ROLE``, such as ``/norm/ReduceMean.axes``.

    ``waiting`` has them by the names that stand for theirs in the graph so far. Nothing reads those that keep one.
    ``nested`` says that nodes have graphs inside.
    """
    named: dict[str, str] = {}
    graphs = [graph] if waiting else []
    for each in graphs:
        for node in each.node:
            inputs = node.input[:]
            if waiting.keys().isdisjoint(inputs):
                continue
            for place, name in enumerate(inputs):
                if name in waiting:
                    if name not in named:
                        named[name] = waiting[name].name = new_name(_name_at(node, place))
                    node.input[place] = named[name]
        if nested:
            graphs += inner_graphs(each.node)


def _name_at(node: NodeProto, place: int) -> str:
    roles = () if node.domain else ROLES.get(node.op_type, ())
    return f"{node.name or node.output[0]}.{roles[place] if place < len(roles) else f'input{place}'}"
