"""Scene of an ONNX model: its nodes with their places and groups, and the edges between them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence

from msgspec import Struct, field
from onnx import GraphProto, ModelProto, NodeProto

from dmlc.codegen.onnx.annotations import read_annotations
from dmlc.inference.model_facts import without_functions
from dmlc.onnx_schema.nested import graphs_of
from dmlc.placement.node import NodePlacement
from dmlc.placement.node_counts import is_constant
from dmlc.placement.report import Placement, node_path
from dmlc.views.places import INPUT, OUTPUT, place_of

#: The entry in which torch's exporter keeps the modules around a node.
_SCOPES = "pkg.torch.onnx.name_scopes"
#: Groups deeper than this are part of the group around them.
_MOST_DEPTH = 12


class SceneNode(Struct):
    """A node, an input or an output of a model. ``path`` has the groups around it, the outermost first.

    ``place`` is a key of ``PLACES``. ``row`` is the node's placement; None for inputs and outputs, and without one.
    ``proto`` is None for inputs and outputs. ``members`` counts the nodes that a group in place of nodes has.
    """

    name: str
    label: str
    place: str
    path: tuple[str, ...] = ()
    row: NodePlacement | None = None
    proto: NodeProto | None = None
    members: int = 1


class Scene(Struct):
    """Nodes in the order of the model, and edges ``(maker, reader)`` by their numbers, each once."""

    nodes: list[SceneNode]
    edges: list[tuple[int, int]]

    @property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """The groups around each node, by its name."""
        return {node.name: node.path for node in self.nodes if node.path}


def scene_of(model: ModelProto, placed: Placement | None, paths: Mapping[str, tuple[str, ...]] | None = None) -> Scene:
    """The scene of a model, functions inlined; constants and weights are left out.

    ``placed`` is the placement of this model. ``paths`` are the groups around the nodes of the source, for nodes that
    a rewrite made of them.
    """
    work = _SceneWalk(iter(placed.nodes if placed is not None else ()), paths or {})
    graph = without_functions(model).graph
    weights = {tensor.name for tensor in graph.initializer}
    makers: dict[str, int] = {}
    for info in graph.input:
        if info.name not in weights:
            makers[info.name] = work.add(SceneNode(info.name, info.name, INPUT))
    work.graph(graph, makers, "")
    for info in graph.output:
        work.read([info.name], makers, work.add(SceneNode(info.name, info.name, OUTPUT)))
    return Scene(work.nodes, list(work.edges))


class _SceneWalk(Struct):
    """One walk over a model, in the order of the rows of its placement."""

    rows: Iterator[NodePlacement]
    paths: Mapping[str, tuple[str, ...]]
    nodes: list[SceneNode] = field(default_factory=list)
    edges: dict[tuple[int, int], None] = field(default_factory=dict)

    def add(self, node: SceneNode) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def read(self, names: Sequence[str], makers: Mapping[str, int], reader: int) -> None:
        for name in names:
            if name in makers:
                self.edges[makers[name], reader] = None

    def graph(self, graph: GraphProto, makers: dict[str, int], path: str) -> None:
        for index, node in enumerate(graph.node):
            if is_constant(node):
                continue
            name, row = node_path(node, index, path), next(self.rows, None)
            number = self.add(SceneNode(name, node.op_type, place_of(row), self._path(node, name), row, node))
            self.read(node.input, makers, number)
            for inner in graphs_of(node):
                inside = {**makers, **{info.name: number for info in inner.input}}
                self.graph(inner, inside, f"{name}/")
            makers.update({result: number for result in node.output if result})

    def _path(self, node: NodeProto, name: str) -> tuple[str, ...]:
        parts = [part for part in name.split("/") if part]
        # a rewrite names the nodes that it makes after the node that they replace: NODE/Operator
        for source in (*read_annotations(node).get("from", ()), name.rpartition("/")[0]):
            if source in self.paths:
                return self.paths[source]
        for entry in node.metadata_props:
            if entry.key == _SCOPES:
                return _scopes(entry.value)
        return tuple(parts[:-1][:_MOST_DEPTH])


def _scopes(text: str) -> tuple[str, ...]:
    """The modules of torch's entry, each without its parent's name; none where the text is not a list of names."""
    try:
        names = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return ()
    found: list[str] = []
    whole = ""
    for name in names[:-1]:
        if name:
            found.append(name.removeprefix(f"{whole}."))
            whole = name
    return tuple(found[:_MOST_DEPTH])


# --- groups


def grouped(scene: Scene, most: int) -> Scene:
    """The scene with at most ``most`` nodes: groups take the place of their nodes, the innermost first."""
    if len(scene.nodes) <= most:
        return scene
    for depth in range(max(len(node.path) for node in scene.nodes), 0, -1):
        keys: list[object] = [
            node.path[:depth] if len(node.path) >= depth else number for number, node in enumerate(scene.nodes)
        ]
        if len(set(keys)) <= most:
            return _merged(scene, keys)
    size = -(-len(scene.nodes) // most)
    return _merged(scene, [number // size for number in range(len(scene.nodes))])


def _merged(scene: Scene, keys: Sequence[object]) -> Scene:
    members: dict[object, list[SceneNode]] = {}
    for key, node in zip(keys, scene.nodes, strict=True):
        members.setdefault(key, []).append(node)
    numbers = {key: number for number, key in enumerate(members)}
    edges = {(numbers[keys[a]], numbers[keys[b]]): None for a, b in scene.edges if keys[a] != keys[b]}
    return Scene([_group(found) for found in members.values()], list(edges))


def _group(members: list[SceneNode]) -> SceneNode:
    """The node in place of several: at the place of most of them."""
    first, total = members[0], sum(node.members for node in members)
    if len(members) == 1:
        return first
    places = [node.place for node in members for _ in range(node.members)]
    place = max(sorted(set(places)), key=places.count)
    shared = [a for a, *others in zip(*[node.path for node in members], strict=False) if all(a == b for b in others)]
    name = "/".join(shared) or f"{first.name} ..."
    return SceneNode(
        name, f"{shared[-1] if shared else first.label} ({total})", place, tuple(shared[:-1]), members=total
    )


class Group(Struct, frozen=True):
    """A group of nodes that gets a frame: its label, and the path of the group around it, None for an outermost one."""

    label: str
    outer: tuple[str, ...] | None


def frames_of(scene: Scene) -> dict[tuple[str, ...], Group]:
    """The groups that get a frame by path, outer groups first.

    A group of one node, of all nodes, or with another group alone in it gets none.
    """
    total: Counter[tuple[str, ...]] = Counter()
    own: Counter[tuple[str, ...]] = Counter()
    for node in scene.nodes:
        own[node.path] += 1
        total.update(node.path[:depth] for depth in range(1, len(node.path) + 1))
    every = sum(node.place not in (INPUT, OUTPUT) for node in scene.nodes)
    children: Counter[tuple[str, ...]] = Counter(path[:-1] for path in total)
    kept = {path for path in total if 1 < total[path] < every and (own[path] or children[path] > 1)}
    found: dict[tuple[str, ...], Group] = {}
    for path in sorted(kept, key=lambda path: (len(path), path)):
        outer = innermost(path[:-1], kept)
        found[path] = Group("/".join(path[len(outer or ()) :]), outer)
    return found


def innermost(path: tuple[str, ...], groups: Container[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The innermost of these groups that the path is inside of; None if there is none."""
    return next((path[:depth] for depth in range(len(path), 0, -1) if path[:depth] in groups), None)
