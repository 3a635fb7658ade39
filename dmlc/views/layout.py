"""Layout of a scene: positions of its nodes, frames of its groups, routes of its edges. ``graphlay`` computes it."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from msgspec import Struct, field

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.runs import NO_LIBRARY
from dmlc.views.escape import shortened
from dmlc.views.scene import Group, Scene, frames_of, innermost

#: Edges across more layers are drawn as curves after the layout: their bends would take most of the time and the width.
_MOST_LAYERS = 8
#: Attempts, the best first: with frames, and the layers that a laid out edge may cross.
_ATTEMPTS = ((True, _MOST_LAYERS), (False, _MOST_LAYERS), (False, 1))
_MOST_BENDS = 20_000
_HEIGHT, _LETTER, _MARK = 26, 7.1, 20
_LONGEST = 34
_OPTIONS: dict[str, Any] = {
    "direction": "topbottom",
    "effort": "fast",
    "limits": {"max_dummies": _MOST_BENDS},
    "spacing": {
        "layer_gap": 26.0,
        "node_gap": 18.0,
        "dummy_gap": 14.0,
        "stub": 6.0,
        "port_gap": 10.0,
        "port_stroke_clear": 6.0,
        "compound_header": 18.0,
        "compound_padding": 10.0,
    },
}
#: Space around the drawing.
_MARGIN = 16
Point = tuple[int, int]


class Box(Struct, frozen=True):
    """A rectangle in pixels, from its upper left corner."""

    x: int
    y: int
    width: int
    height: int


class GroupFrame(Struct, frozen=True):
    """The frame around the nodes of a group; ``depth`` counts the frames around it."""

    label: str
    box: Box
    depth: int


class Drawing(Struct):
    """A laid out scene. ``boxes`` are its nodes' in their order; ``routes`` hold the points of each edge.

    ``far`` are numbers of edges that cross many layers; their routes are two points, from maker to reader.
    """

    width: int
    height: int
    boxes: list[Box]
    routes: list[list[Point]]
    frames: list[GroupFrame] = field(default_factory=list)
    far: frozenset[int] = frozenset()


def label_of(text: str) -> str:
    """The text of a node as it is drawn."""
    return shortened(text, _LONGEST)


def drawing(scene: Scene) -> Drawing:
    """Lay a scene out, from top to bottom; the same drawing each time. Raises ``DmlcError`` E0561 without graphlay."""
    try:
        import graphlay
    except ImportError as error:
        help = 'pip install "dmlc[report]"; .mmd and .dot need nothing'
        raise fail(NO_LIBRARY, "pictures need the library graphlay, which is not installed", help=help) from error
    groups = frames_of(scene)
    for with_frames, layers in _ATTEMPTS:
        far = _far_edges(scene, layers)
        try:
            return _drawing(graphlay, scene, groups if with_frames else {}, far)
        except graphlay.GraphlayError:
            continue
    return _in_rows(scene)


def _far_edges(scene: Scene, layers: int) -> frozenset[int]:
    """The numbers of the edges that cross more layers."""
    rank, readers = [0] * len(scene.nodes), Counter[int]()
    forward = sorted((a, b) for a, b in scene.edges if a < b)
    for a, b in sorted(forward, key=lambda edge: edge[1]):
        rank[b] = max(rank[b], rank[a] + 1)
        readers[b] += 1
    nearest: dict[int, int] = {}
    for a, b in forward:
        nearest[a] = min(nearest.get(a, rank[b]), rank[b])
    for number, least in nearest.items():  # nodes without operands are drawn above its first reader
        if not readers[number]:
            rank[number] = least - 1
    return frozenset(number for number, (a, b) in enumerate(scene.edges) if abs(rank[b] - rank[a]) > layers)


def _drawing(graphlay: Any, scene: Scene, groups: dict[tuple[str, ...], Group], far: frozenset[int]) -> Drawing:
    graph, numbers, depths = graphlay.Graph(), dict[tuple[str, ...], int](), dict[tuple[str, ...], int]()
    for path, group in groups.items():
        around = {} if group.outer is None else {"parent": numbers[group.outer]}
        numbers[path] = graph.node(("group", path), width=10, height=10, **around)
        depths[path] = 0 if group.outer is None else depths[group.outer] + 1
    first = len(numbers)
    for number, node in enumerate(scene.nodes):
        inside = innermost(node.path, groups)
        around = {} if inside is None else {"parent": numbers[inside]}
        graph.node(number, width=_width(node.label), height=_HEIGHT, **around)
    near = [number for number in range(len(scene.edges)) if number not in far]
    for number in near:
        graph.edge(*scene.edges[number])
    found = graphlay.layout(graph, options=_OPTIONS)
    left, top = found.bounds["min"]["x"] - _MARGIN, found.bounds["min"]["y"] - _MARGIN
    every = [_box(node, left, top) for node in found.nodes]
    boxes = every[first:]
    routes = [_straight(boxes[a], boxes[b]) for a, b in scene.edges]
    for number, edge in zip(near, found.edges, strict=True):
        routes[number] = [(round(point["x"] - left), round(point["y"] - top)) for point in edge["points"]]
    frames = [GroupFrame(groups[path].label, every[number], depths[path]) for path, number in numbers.items()]
    width = found.bounds["max"]["x"] - left + _MARGIN
    return Drawing(math.ceil(width), math.ceil(found.bounds["max"]["y"] - top + _MARGIN), boxes, routes, frames, far)


def _in_rows(scene: Scene) -> Drawing:
    """A drawing in rows, in the order of the model, for a scene that cannot be laid out in layers."""
    boxes, x, y, width = [], _MARGIN, _MARGIN, 0
    for node in scene.nodes:
        if x > 1200:
            x, y = _MARGIN, y + 2 * _HEIGHT
        boxes.append(Box(x, y, _width(node.label), _HEIGHT))
        x += boxes[-1].width + _MARGIN
        width = max(width, x)
    routes = [_straight(boxes[a], boxes[b]) for a, b in scene.edges]
    return Drawing(width, y + _HEIGHT + _MARGIN, boxes, routes, far=frozenset(range(len(routes))))


def _width(label: str) -> int:
    return round(_MARK + 14 + _LETTER * len(label_of(label)))


def _box(node: dict[str, Any], left: float, top: float) -> Box:
    width, height = node["size"]["width"], node["size"]["height"]
    x, y = node["center"]["x"] - width / 2 - left, node["center"]["y"] - height / 2 - top
    return Box(round(x), round(y), round(width), round(height))


def _straight(a: Box, b: Box) -> list[Point]:
    """The ends of an edge, from the lower side of one box to the upper side of the other."""
    return [(a.x + a.width // 2, a.y + a.height), (b.x + b.width // 2, b.y)]
