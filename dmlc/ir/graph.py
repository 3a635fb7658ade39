"""Value, Node, Graph: the one mutable structure of the compiler.

Types, attributes and spans are frozen; only ``Graph`` changes, through its methods, which keep use lists and
the topological order right. Values are inferred when they are made, so a graph never holds an unknown shape.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from dmlc.diagnostics import Diagnostic, Span
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.shown import Shown
from dmlc.ir.dim import Dim, Interval, dim_names, substitute
from dmlc.ir.dim_table import DimTable
from dmlc.ir.history import AS_WRITTEN, History
from dmlc.ir.operation import Attributes, Condition, Inference, Operation, OpError
from dmlc.ir.tensor import Tensor
from dmlc.ir.types import TensorType

A = TypeVar("A", bound=Attributes)
#: The end of a name that was taken.
_NUMBER = re.compile(r"(_\d+)?")


#: Reads an opaque node again: a graph that computes its results, and the operands that the graph's inputs stand for.
Reader: TypeAlias = "Callable[[Node], tuple[Graph, list[Value]] | None]"
#: The operation of a node, and those that make its operands. A graph has one for all nodes that it fits.
Kind: TypeAlias = "tuple[Operation, frozenset[Operation]]"


class Value(Struct, eq=False):
    """A graph input (``producer`` is None) or a result of a node.

    ``name`` is the user's name, if any. ``span`` is where its type was written (inputs only).
    ``uses`` is an ordered set of (node, operand number); graph outputs count, as uses by ``Graph.output``.
    """

    type: TensorType
    producer: Node | None
    index: int
    name: str | None = None
    span: Span | None = None
    uses: dict[tuple[Node, int], None] = {}  # a new one for each value

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.type.shape

    @property
    def is_used_once(self) -> bool:
        return len(self.uses) == 1

    @property
    def users(self) -> list[Node]:
        """The nodes that use it, each once, in order of first use."""
        nodes = [node for node, _ in self.uses]
        return nodes if len(nodes) < 2 else list(dict.fromkeys(nodes))

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a value cannot be copied or pickled without its graph: copy or pickle its graph")

    def __copy__(self) -> Value:
        raise TypeError("a value cannot be copied or pickled without its graph: copy or pickle its graph")

    def __repr__(self) -> str:
        return f"<{self.type} {self.name or '%'}>"


class Node:
    """An operation applied to operands (None where an optional one is absent).

    ``spans`` are all source places it came from, ``history`` says which rewrites made it of what. ``name`` is its
    name in an imported model, ``origin`` the form it had there: true as long as the node stands, for a rewrite makes
    new nodes. ``regions`` are graphs that it runs (the branches of an If, the body of a Loop).
    """

    __slots__ = (
        "_kind",
        "_next",
        "_previous",
        "attributes",
        "graph",
        "history",
        "name",
        "op",
        "operands",
        "origin",
        "regions",
        "results",
        "spans",
    )

    def __init__(
        self,
        op: Operation,
        operands: tuple[Value | None, ...],
        attributes: Attributes,
        types: Sequence[TensorType],
        spans: tuple[Span, ...],
        history: History,
    ) -> None:
        self.op: Operation = op
        self.attributes: Attributes = attributes
        self.operands: tuple[Value | None, ...] = operands
        self.results: tuple[Value, ...] = (
            (Value(types[0], self, 0),) if len(types) == 1 else tuple([Value(t, self, i) for i, t in enumerate(types)])
        )
        self.spans: tuple[Span, ...] = spans
        self.history: History = history
        self.name: str = ""
        self.origin: Any = None
        self.regions: tuple[Region, ...] = ()
        self.graph: Graph | None = None
        self._kind: Kind | None = None
        self._previous: Node  # a graph sets both; the nodes stand in a ring that begins and ends at its output node
        self._next: Node

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    @property
    def is_used(self) -> bool:
        """True if something takes one of its results, or may ask for a size that only they provide."""
        for value in self.results:
            if value.uses:
                return True
        assert self.graph is not None
        provides = self.graph.provides
        return bool(provides) and not provides.keys().isdisjoint(self.results)

    @property
    def kind(self) -> Kind:
        """The kind that rules are found by; kept until an operand changes."""
        if self._kind is None:
            makers = [v.producer.op for v in self.operands if v is not None and v.producer is not None]
            kind: Kind = (self.op, frozenset(makers))
            self._kind = kind if self.graph is None else self.graph._kinds.setdefault(kind, kind)
        return self._kind

    def operand(self, which: str | int) -> Value:
        """An operand that is present, by its name in the operation's declaration or, as of carried nodes, by number."""
        value = self.operands[self.op.places[which] if isinstance(which, str) else which]
        assert value is not None
        return value

    def attributes_as(self, kind: type[A]) -> A:
        """The attributes, typed."""
        assert isinstance(self.attributes, kind)
        return self.attributes

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a node cannot be copied or pickled without its graph: copy or pickle its graph")

    def __repr__(self) -> str:
        return f"<node {self.op.name}>"


class Region(Struct, frozen=True):
    """A graph inside a node. Its last inputs stand for values of the graph around it: input number
    ``len(graph.inputs) - len(captures) + i`` is the node's operand ``captures[i]``, so that a capture is a use.

    ``attribute`` is the name that the node calls it by. Dims are dims of the graph around it.
    """

    attribute: str
    graph: Graph
    captures: tuple[int, ...] = ()

    @property
    def formals(self) -> list[Value]:
        """The inputs that the node itself feeds."""
        return self.graph.inputs[: len(self.graph.inputs) - len(self.captures)]

    @property
    def captured(self) -> list[Value]:
        """The inputs that stand for values of the graph around it."""
        return self.graph.inputs[len(self.graph.inputs) - len(self.captures) :]


class OutputAttributes(Attributes, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()


OUTPUT = Operation(
    name="output",
    operands=(),
    attributes=OutputAttributes,
    results=(),
    infer=lambda _: (),
    summary="The graph's outputs",
)


class Graph(Shown):
    """A dataflow graph in topological order.

    ``dims`` holds the declared bounds. ``conditions`` are the relations between sizes that run time must check, each
    with the span of the call that asked. ``opset`` is the ONNX opset at which carried operators are typed.
    ``metadata`` is free text that code generators pass on, ``ranges`` the promised bounds of inputs, by name.
    ``defaults`` are the data of inputs that need not be fed. ``origin`` holds the parts of an imported model beside its
    nodes, ``joined`` those of the models that a program calls. ``notes`` are sentences for the artifact's report.
    ``removed`` are names of nodes of an imported model that are not in the graph, by the cause. ``advice`` are
    diagnostics about the source that the front end found. ``with_regions`` are the nodes that have
    regions. ``provides`` are the dims that only one value has, by that value, each with its axis
    (``dmlc.ir.providers``). ``reader`` reads an opaque node of an imported model again. ``retyped`` are the nodes that
    were not inferred anew since an operand got another type, ``outdated`` those of them that only the reader infers.
    """

    def __init__(self, name: str, *, opset: int = 21) -> None:
        self.name = name
        self.opset = opset
        self.dims: DimTable = DimTable()
        self.inputs: list[Value] = []
        self.conditions: dict[Condition, Span | None] = {}
        self.metadata: dict[str, str] = {}
        self.defaults: dict[Value, Tensor] = {}
        self.ranges: dict[str, tuple[int | float, int | float]] = {}
        self.origin: Any = None
        self.joined: Any = None
        self.notes: list[str] = []
        self.removed: dict[str, list[str]] = {}
        self.advice: list[Diagnostic] = []
        self.with_regions: dict[Node, None] = {}
        self.provides: dict[Value, tuple[tuple[str, int], ...]] = {}
        self.reader: Reader | None = None
        self.retyped: dict[Node, None] = {}
        self.outdated: dict[Node, None] = {}
        self.output: Node = Node(OUTPUT, (), OutputAttributes(), (), (), AS_WRITTEN)
        self.output.graph = self
        self.output._previous = self.output._next = self.output
        self._of_operation: defaultdict[Operation, int] = defaultdict(int)
        self._kinds: dict[Kind, Kind] = {}
        self._names: set[str] | None = None
        self._numbers: dict[str, int] = {}

    # --- reading

    def name_node(self, node: Node, base: str, *, replaces: Collection[str] = ()) -> None:
        """Name a node ``base``, or ``base_2`` and so on where another node has or had that name. It takes such a name
        over from a node that it ``replaces``."""
        if self._names is None:
            self._names = {node.name for node in self}
        names, name = self._names, base
        if replaces:
            alike = [old for old in replaces if old.startswith(base) and _NUMBER.fullmatch(old, len(base))]
            name = min(alike, default=base)
        if name in names and name not in replaces:
            number = self._numbers.get(base, 1)
            while name in names and name not in replaces:
                number += 1
                name = f"{base}_{number}"
            self._numbers[base] = number
        names.add(name)
        node.name = name

    def __len__(self) -> int:
        """The number of nodes, the output node not counted."""
        return sum(self._of_operation.values())

    def __iter__(self) -> Iterator[Node]:
        """All nodes in topological order. The graph may change meanwhile; nodes added further on are visited."""
        node = self.output._next
        while node is not self.output:
            if node.graph is self:  # an erased node still leads to those that stood behind it
                yield node
            node = node._next

    def nodes_of(self, operations: Collection[Operation]) -> Iterator[Node]:
        """The nodes of these operations, in order; as for ``iter``, the graph may change meanwhile."""
        node = self.output._next if self.holds(operations) else self.output
        while node is not self.output:
            if node.op in operations and node.graph is self:
                yield node
            node = node._next

    def nodes_except(self, idle: Collection[Kind], operations: Collection[Operation]) -> Iterator[Node]:
        """The nodes of these operations whose kind is not ``idle``, in order; graph and kinds may change meanwhile."""
        node = self.output._next if self.holds(operations) else self.output
        while node is not self.output:
            if node.op in operations and (node._kind or node.kind) not in idle and node.graph is self:
                yield node
            node = node._next

    def holds(self, operations: Collection[Operation]) -> bool:
        """Return whether the graph has a node of one of these operations; the output node does not count."""
        return any(count for op, count in self._of_operation.items() if op in operations)

    @property
    def operations(self) -> list[Operation]:
        """The operations of its nodes, the output node's not counted, in the order in which they first came."""
        return [op for op, count in self._of_operation.items() if count]

    def __reversed__(self) -> Iterator[Node]:
        node = self.output._previous
        while node is not self.output:
            before = node._previous
            yield node
            node = before

    @property
    def outputs(self) -> list[tuple[str, Value]]:
        """The outputs by name, in order."""
        names = self.output.attributes_as(OutputAttributes).names
        return [(n, v) for n, v in zip(names, self.output.operands, strict=True) if v is not None]

    # --- building

    def declare_dim(self, name: str, interval: Interval) -> None:
        self.dims.bounds[name] = interval

    def add_input(self, name: str, type: TensorType, span: Span | None = None) -> Value:
        value = Value(type, None, len(self.inputs), name, span)
        self.inputs.append(value)
        self.dims.taken.update(*map(dim_names, type.shape))
        return value

    def add_output(self, name: str, value: Value) -> None:
        names = self.output.attributes_as(OutputAttributes).names
        self.output.attributes = OutputAttributes(names=(*names, name))
        value.uses[self.output, len(self.output.operands)] = None
        self.output.operands = (*self.output.operands, value)

    def set_outputs(self, outputs: Sequence[tuple[str, Value]]) -> None:
        """Replace all outputs."""
        for i, old in enumerate(self.output.operands):
            if old is not None:
                del old.uses[self.output, i]
        self.output.operands = tuple(v for _, v in outputs)
        self.output.attributes = OutputAttributes(names=tuple(n for n, _ in outputs))
        for i, (_, value) in enumerate(outputs):
            value.uses[self.output, i] = None

    def add(
        self,
        op: Operation,
        operands: Sequence[Value | None],
        attributes: Attributes,
        *,
        spans: tuple[Span, ...] = (),
        history: History = AS_WRITTEN,
        before: Node | None = None,
        regions: tuple[Region, ...] = (),
    ) -> Node:
        """Make a node, infer its results, and put it at the end or before ``before``.

        Raises ``OpError`` where the types do not fit; then the graph is unchanged.
        """
        context = Inference(attributes, [None if v is None else v.type for v in operands], self.dims)
        node = Node(op, tuple(operands), attributes, op.infer(context), spans, history)
        node.regions = regions
        self.place(node, context.conditions, before)
        return node

    def draft(
        self, op: Operation, operands: Sequence[Value | None], attributes: Attributes
    ) -> tuple[Node, list[Condition]]:
        """A node outside the graph with its results inferred, and what that could not prove. Raises ``OpError``."""
        types, conditions = self.infer(op, operands, attributes)
        return Node(op, tuple(operands), attributes, types, (), AS_WRITTEN), conditions

    def place(self, node: Node, conditions: Iterable[Condition], before: Node | None = None) -> None:
        """Put a node that was drafted at the end or before ``before``."""
        for condition in conditions:
            self.conditions.setdefault(condition, node.spans[0] if node.spans else None)
        self._link(node, before)

    def infer(
        self, op: Operation, operands: Sequence[Value | None], attributes: Attributes
    ) -> tuple[Sequence[TensorType], list[Condition]]:
        """The result types that the operation's rule gives, and what it could not prove."""
        context = Inference(attributes, [None if v is None else v.type for v in operands], self.dims)
        return op.infer(context), context.conditions

    # --- changing

    def reinfer(self, node: Node, attributes: Attributes | None = None) -> bool:
        """Infer a node's results anew, after its operands or the opset changed; whether a type or condition is new.

        ``attributes`` replace the node's, if they are given. Raises ``OpError`` where the types do not fit any more.
        """
        if attributes is not None:
            node.attributes = attributes
        types, conditions = self.infer(node.op, node.operands, node.attributes)
        changed = False
        for value, type in zip(node.results, types, strict=True):
            if value.type != type:
                value.type = type
                changed = True
        for condition in conditions:
            changed |= condition not in self.conditions
            self.conditions.setdefault(condition, node.spans[0] if node.spans else None)
        return changed

    def set_operand(self, node: Node, index: int, value: Value | None) -> None:
        """Replace one operand; its type may be more precise, results are not inferred anew."""
        old = node.operands[index]
        if old is value:
            return
        if old is not None:
            del old.uses[node, index]
        node.operands = (*node.operands[:index], value, *node.operands[index + 1 :])
        node._kind = None
        if value is not None:
            value.uses[node, index] = None

    def drop_captures(self, node: Node) -> bool:
        """Let the graphs inside a node no longer capture what they do not use; whether one captured such a value."""
        gone: set[int] = set()
        for region in node.regions:
            gone |= {place for value, place in zip(region.captured, region.captures, strict=True) if not value.uses}
            gone -= {place for value, place in zip(region.captured, region.captures, strict=True) if value.uses}
        if not gone:
            return False
        for place, value in enumerate(node.operands):
            if value is not None:
                del value.uses[node, place]
        kept = [place for place in range(len(node.operands)) if place not in gone]
        moved = {place: number for number, place in enumerate(kept)}
        node.operands = tuple([node.operands[place] for place in kept])
        node._kind = None
        for place, value in enumerate(node.operands):
            if value is not None:
                value.uses[node, place] = None
        regions = []
        for region in node.regions:
            inner, formals = region.graph, region.formals
            held = [v for v, place in zip(region.captured, region.captures, strict=True) if place in moved]
            inner.inputs = [*formals, *held]
            for number, value in enumerate(inner.inputs):
                value.index = number
            captures = tuple([moved[place] for place in region.captures if place in moved])
            regions.append(Region(region.attribute, inner, captures))
        node.regions = tuple(regions)
        return True

    def replace_all_uses(self, old: Value, new: Value) -> None:
        """Let every user of ``old`` use ``new``, which provides the sizes that ``old`` does; a user's name moves along
        where ``new`` has none."""
        if old is new:
            return
        if old.type != new.type:
            self.retyped.update(dict.fromkeys(old.users))
        for node, index in list(old.uses):
            self.set_operand(node, index, new)
        if old in self.provides:
            self.provides[new] = self.provides.get(new, ()) + self.provides.pop(old)
        if new.name is None and new.producer is not None:
            new.name = old.name

    def erase(self, node: Node) -> None:
        """Remove a node whose results are not used."""
        assert not node.is_used, "an erased node's results must not be used"
        self._unlink(node)

    def _unlink(self, node: Node) -> None:
        for i, value in enumerate(node.operands):
            if value is not None:
                value.uses.pop((node, i))
        node._previous._next, node._next._previous = node._next, node._previous
        node.graph = None
        for value in node.results:
            value.producer = None  # a cycle would keep both until the next garbage collection
        if node.regions:
            self.with_regions.pop(node, None)
        self._of_operation[node.op] -= 1

    def erase_dead(self, nodes: Iterable[Node]) -> list[Node]:
        """Erase those of ``nodes`` that are pure and unused, and whatever dies with them; the erased nodes."""
        pending = list(nodes)
        gone: list[Node] = []
        while pending:
            node = pending.pop()
            if node.graph is not self or node is self.output or not node.op.pure or node.is_used:
                continue
            operands = node.operands
            self._unlink(node)
            gone.append(node)
            pending.extend([v.producer for v in operands if v is not None and not v.uses and v.producer is not None])
        return gone

    def _link(self, node: Node, before: Node | None) -> None:
        node.graph = self
        for i, value in enumerate(node.operands):
            if value is not None:
                value.uses[node, i] = None
        after = self.output if before is None else before
        node._previous, node._next = after._previous, after
        after._previous._next = after._previous = node
        if node.regions:
            self.with_regions[node] = None
        self._of_operation[node.op] += 1

    # --- copying

    def clone(self, binding: Mapping[str, Dim] | None = None) -> Graph:
        """A deep copy; with ``binding``, dims are replaced everywhere and all types inferred anew.

        Raises ``OpError`` where a bound size breaks a rule.
        """
        bound = binding or {}
        return self._clone(bound, self.dims.without(bound))

    def takes(self, binding: Mapping[str, Dim]) -> bool:
        """Return whether no rule is broken at these sizes of the dims."""
        try:
            return bool(self.clone(binding))
        except OpError:
            return False

    def _clone(self, bound: Mapping[str, Dim], dims: DimTable) -> Graph:
        out = Graph(self.name, opset=self.opset)
        out.dims = dims
        out.metadata = dict(self.metadata)
        out.ranges = dict(self.ranges)
        out.origin, out.joined = self.origin, self.joined
        out.notes = list(self.notes)
        out.removed = {cause: list(names) for cause, names in self.removed.items()}
        out.advice = list(self.advice)
        out.reader = self.reader
        mapping: dict[Value | None, Any] = {None: None}
        for value in self.inputs:
            type = value.type
            if bound:
                type = type.with_shape(tuple([substitute(d, bound) for d in type.shape]))
            mapping[value] = out.add_input(value.name or "", type, value.span)
        out.defaults = {mapping[value]: data for value, data in self.defaults.items()}
        for condition, span in self.conditions.items():
            out._add_bound_condition(condition, bound, span)
        for node in self:
            out._copy(node, mapping, bound)
        out.set_outputs([(n, mapping[v]) for n, v in self.outputs])
        for value, pairs in self.provides.items():
            kept = tuple([pair for pair in pairs if pair[0] not in bound])
            if kept:
                out.provides[mapping[value]] = kept
        return out

    def splice(
        self, inner: Graph, operands: Sequence[Value | None], binding: Mapping[str, Dim]
    ) -> tuple[list[Node], list[Value]]:
        """Copy the nodes of another graph to the end of this one, with operands in the place of its inputs and its dims
        replaced; the new nodes, and the values of its outputs. Raises ``OpError`` where a size breaks a rule."""
        mapping: dict[Value | None, Any] = {None: None, **dict(zip(inner.inputs, operands, strict=True))}
        for condition, span in inner.conditions.items():
            self._add_bound_condition(condition, binding, span)
        made = [self._copy(node, mapping, binding) for node in inner]
        return made, [mapping[value] for _, value in inner.outputs]

    def _add_bound_condition(self, condition: Condition, binding: Mapping[str, Dim], span: Span | None) -> None:
        left, right = substitute(condition.left, binding), substitute(condition.right, binding)
        if isinstance(left, int) and isinstance(right, int) and condition.holds(left, right):
            return
        self.conditions[Condition(left, condition.relation, right, condition.why)] = span

    def _copy(self, node: Node, mapping: dict[Value | None, Any], binding: Mapping[str, Dim]) -> Node:
        operands = tuple(map(mapping.__getitem__, node.operands))
        results, regions = node.results, node.regions
        if regions:
            regions = tuple([Region(r.attribute, r.graph._clone(binding, self.dims), r.captures) for r in regions])
        if binding:
            attributes = node.attributes.substitute(binding)
            try:
                twin = self.add(node.op, operands, attributes, spans=node.spans, history=node.history, regions=regions)
            except OpError as error:
                error.spans = node.spans
                raise
        else:
            twin = Node(node.op, operands, node.attributes, [r.type for r in results], node.spans, node.history)
            twin.regions = regions
            self._link(twin, None)
        twin.name, twin.origin = node.name, node.origin
        for new in twin.results:
            old = results[new.index]
            new.name = old.name
            mapping[old] = new
        return twin

    def __copy__(self) -> Graph:
        return self.clone()

    def __deepcopy__(self, memo: object) -> Graph:
        return self.clone()

    def headline(self) -> str:
        """Return the name, and the number of inputs and nodes."""
        return f"{self.name}: {counted(len(self.inputs), 'input')}, {counted(len(self), 'node')}"

    def __str__(self) -> str:
        """The graph as the text of a program."""
        return self.to_text().rstrip("\n")
