"""Transfers: the copies between CPU and GPU that ONNX Runtime makes inside a placed model.

A value that one side writes and the other reads is one copy, however many nodes read it (onnxruntime,
transformer_memcpy.cc). Inputs and outputs of the model are not counted: they are on the CPU unless a caller binds them.
Constants are kept where they are read. A node with graphs inside copies what it hands to them and takes from them, each
time it runs one (onnxruntime, controlflow/if.cc, loop.cc, scan_utils.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct, field
from onnx import GraphProto, NodeProto

from dmlc.ir import Dim
from dmlc.placement.node import CPU, FOLDED, OF_SHAPES, PROVIDER, UNKNOWN, NodePlacement
from dmlc.placement.values import KnownType, ValueScope, names_of, told_names

#: The sides that a value lies on.
GPU, HOST = "gpu", "cpu"
_SIDES = {PROVIDER: GPU, CPU: HOST, UNKNOWN: UNKNOWN}


class Transfer(Struct, frozen=True):
    """One copy of a value, from ``from_device`` to ``to_device``: ``maker`` writes it, ``readers`` read it there.

    ``bytes`` may be an expression of dims, or None where a size or the type is not known; ``open_dims`` are the open
    sizes by name. ``cure`` says what saves the copy; empty where nothing is known to.
    """

    value: str
    kind: KnownType
    maker: str
    readers: tuple[str, ...]
    from_device: str
    to_device: str
    cure: str

    @property
    def bytes(self) -> Dim | None:
        return self.kind.bytes

    @property
    def open_dims(self) -> list[str]:
        return told_names(names_of([self.kind]))


class PlacedNode(Struct, frozen=True):
    """A node and its placement; the numbers of the operands and results that are on the CPU wherever it runs."""

    proto: NodeProto
    row: NodePlacement
    host_operands: tuple[int, ...]
    host_results: tuple[int, ...]


class PlacedGraph(Struct):
    """A graph whose nodes are placed. ``holder`` is the node that it is inside of, ``inner`` are the graphs inside."""

    graph: GraphProto
    scope: ValueScope
    holder: NodePlacement | None = None
    nodes: list[PlacedNode] = field(default_factory=list)
    inner: list[PlacedGraph] = field(default_factory=list)

    @property
    def is_mixed(self) -> bool:
        """True if something in it does not run on the provider, or lies on the CPU."""
        return any(graph.is_mixed for graph in self.inner) or any(
            node.host_operands or node.host_results or node.row.where in (CPU, UNKNOWN) for node in self.nodes
        )


class _ValueSpot(Struct, frozen=True):
    """The side that a value lies on, and the node that put it there; None for a model's input."""

    side: str
    maker: NodePlacement | None


class _ValueReader(Struct, frozen=True):
    """A node that reads a value; ``operand`` is its number where a node of the provider reads it on the CPU."""

    row: NodePlacement
    operand: int | None = None


#: The place of a value of the graphs around; None for one that is never copied.
_Outside = Callable[[str], "_ValueSpot | None"]


def transfers(model: PlacedGraph, bindings: str) -> tuple[list[Transfer], int]:
    """List the copies inside a model; and count the values that may be copied, for it is not known where the node runs
    that makes or reads them. ``bindings`` are the options that fix its open sizes."""
    if not model.is_mixed:
        return [], 0
    found = list(_copies(model, lambda _: None, bindings))
    sure = [copy for copy in found if UNKNOWN not in (copy.from_device, copy.to_device)]
    return sure, len({copy.value for copy in found}) - len({copy.value for copy in sure})


def _copies(placed: PlacedGraph, outside: _Outside, bindings: str) -> Iterator[Transfer]:
    """Yield the copies of a graph and of those inside it, in the order of the nodes that read them."""
    made = _made(placed)
    reads = _reads(placed)
    inputs = {info.name for info in placed.graph.input}

    def spot_of(name: str) -> _ValueSpot | None:
        if name in placed.scope.constant:
            return None
        if name in made or name in inputs:
            return made.get(name)
        return outside(name)

    for (name, side), readers in reads.items():
        spot = spot_of(name)
        if spot is not None and spot.side != side:
            maker = spot.maker or placed.holder
            assert maker is not None  # only what is inside a node reads inputs from elsewhere
            cure = _cure(maker, spot.side, readers[0], bindings)
            names = tuple(dict.fromkeys(reader.row.name for reader in readers))
            yield Transfer(name, placed.scope.of(name), maker.name, names, spot.side, side, cure)
    for inner in placed.inner:
        assert inner.holder is not None
        yield from _copies(inner, _seen_from(inner.holder, spot_of, reads, inputs), bindings)


def _seen_from(
    holder: NodePlacement, spot_of: _Outside, reads: dict[tuple[str, str], list[_ValueReader]], inputs: set[str]
) -> _Outside:
    """The places of values as a graph inside ``holder`` finds them. An input of the model that only the GPU reads is
    there; one that nothing else reads is where the holder runs."""

    def spot(name: str) -> _ValueSpot | None:
        found = spot_of(name)
        if found is not None or name not in inputs:
            return found
        sides = {side for side in (GPU, HOST) if (name, side) in reads} or {_side(holder)}
        return _ValueSpot(HOST if HOST in sides else GPU, None)

    return spot


def _side(row: NodePlacement) -> str:
    return _SIDES.get(row.where, HOST)


def _made(placed: PlacedGraph) -> dict[str, _ValueSpot]:
    """The places of the values that a graph makes, or that its holder feeds."""
    made: dict[str, _ValueSpot] = {}
    if placed.holder is not None:
        made.update(dict.fromkeys([info.name for info in placed.graph.input], _ValueSpot(HOST, placed.holder)))
    for node in placed.nodes:
        if node.row.where == FOLDED:
            continue
        side = _side(node.row)
        for index, name in enumerate(node.proto.output):
            if name:
                made[name] = _ValueSpot(HOST if index in node.host_results else side, node.row)
    return made


def _reads(placed: PlacedGraph) -> dict[tuple[str, str], list[_ValueReader]]:
    """The readers by value and side, in the order of the nodes; a holder reads the outputs of a graph inside it."""
    reads: dict[tuple[str, str], list[_ValueReader]] = {}
    for node in placed.nodes:
        if node.row.where == FOLDED:
            continue
        side = _side(node.row)
        for index, name in enumerate(node.proto.input):
            if name and index in node.host_operands:
                reads.setdefault((name, HOST), []).append(_ValueReader(node.row, index))
            elif name:
                reads.setdefault((name, side), []).append(_ValueReader(node.row))
    if placed.holder is not None:
        for info in placed.graph.output:
            reads.setdefault((info.name, _side(placed.holder)), []).append(_ValueReader(placed.holder))
    return reads


def _cure(maker: NodePlacement, side: str, reader: _ValueReader, bindings: str) -> str:
    """The change that saves a copy: of the node on the CPU, or of the operand that is read there."""
    if side == GPU and reader.operand is not None:
        return f"a constant operand {reader.operand} of {reader.row.op} {reader.row.name}"
    on_cpu = reader.row if side == GPU else maker
    if on_cpu.where == PROVIDER or on_cpu.why == OF_SHAPES:
        return f"{bindings} makes it a constant" if bindings else ""
    repair = next((f.repair for f in on_cpu.findings if f.effect == "cpu" and f.repair), "")
    return f"run {on_cpu.op} {on_cpu.name} on the GPU: {repair}" if repair else ""


# --- Partitions: the nodes of a graph that the DirectML provider compiles together


class Partitions(Struct):
    """``first`` is the number of partitions that other graphs have; ``off`` says that a node with a graph inside stands
    in this one, which turns fusion off."""

    first: int
    off: bool
    _parents: list[int] = field(default_factory=list)
    _closed: set[int] = field(default_factory=set)
    _made_by: dict[str, int] = field(default_factory=dict)

    def add(self, node: NodeProto, joins: bool) -> tuple[int | None, str]:
        """The number of the node's partition while they are built, or why it has none."""
        before = {self._root(self._made_by[name]) for name in node.input if name in self._made_by}
        if not joins:
            self._closed |= before
            return None, ""
        if self.off:
            return None, "a node with a graph inside (If, Loop, Scan) turns fusion off"
        open_ones = sorted(before - self._closed)
        self._closed |= before & self._closed
        if open_ones:
            number = open_ones[0]
            for other in open_ones[1:]:
                self._parents[other] = number
        else:
            number = len(self._parents)
            self._parents.append(number)
        self._made_by.update(dict.fromkeys(filter(None, node.output), number))
        return -1 - number, ""

    def _root(self, number: int) -> int:
        parents = self._parents
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]  # halves the way for whoever asks next
        return number

    def finish(self) -> dict[int | None, int]:
        """The final number, from ``first`` on, of each that was given."""
        roots = sorted({self._root(number) for number in range(len(self._parents))})
        place = {root: self.first + index for index, root in enumerate(roots)}
        return {-1 - number: place[self._root(number)] for number in range(len(self._parents))}
