"""SVG of a drawing: one file, which follows the reader's light or dark theme and loads nothing."""

from __future__ import annotations

from collections.abc import Iterable

from dmlc.views.escape import markup
from dmlc.views.layout import Box, Drawing, GroupFrame, Point, drawing, label_of
from dmlc.views.places import INPUT, OUTPUT, PLACES
from dmlc.views.scene import Scene, SceneNode, grouped

#: Scenes with more nodes are grouped first.
MOST_NODES = 2000
_FONT = "font:12px ui-sans-serif,system-ui,'Segoe UI','DejaVu Sans',sans-serif"
_LEGEND_HEIGHT = 34


def picture(scene: Scene) -> str:
    """The text of an SVG file, with a legend; the same for the same scene. Raises ``DmlcError`` without graphlay."""
    scene = grouped(scene, MOST_NODES)
    drawn = drawing(scene)
    legend, legend_width = _legend(scene)
    width, height = max(drawn.width, legend_width), drawn.height + _LEGEND_HEIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-label="graph of {len(scene.nodes)} nodes">\n<style>{style()}</style>\n'
        f'<rect class="page" width="100%" height="100%"/>\n{legend}\n'
        f'<g transform="translate(0 {_LEGEND_HEIGHT})">\n{marks(scene, drawn, titles=True)}</g>\n</svg>\n'
    )


def style(root: str = "svg", *, with_colors: bool = True) -> str:
    """The style sheet of pictures; ``root`` selects what it is for."""
    dark = f"@media(prefers-color-scheme:dark){{{root}{{{colors(1)}}}}}"
    rules = [
        *([f"{root}{{{_FONT};{colors(0)}}}", dark] if with_colors else [f"{root}{{{_FONT}}}"]),
        f"{root} .page{{fill:var(--page)}}",
        f"{root} .n rect{{stroke-width:1.3;rx:5px}}",
        f"{root} .n text{{fill:var(--ink)}}",
        f"{root} .n .m{{font-weight:700;text-anchor:middle}}",
        f"{root} .n .l{{text-anchor:middle}}",
        f"{root} .in rect,{root} .out rect{{rx:13px}}",
        f"{root} .e path{{fill:none;stroke:var(--edge);stroke-width:1.2}}",
        f"{root} .e .far{{stroke-dasharray:2 4;opacity:.55}}",
        f"{root} .f rect{{fill:var(--frame);stroke:var(--line);rx:8px}}",
        f"{root} .f text{{fill:var(--soft);font-size:11px}}",
    ]
    for key, place in PLACES.items():
        dash = f";stroke-dasharray:{place.dash.replace(' ', ',')}" if place.dash else ""
        rules.append(f"{root} .{key} rect{{stroke:var(--{key});fill:var(--{key}-field){dash}}}")
        rules.append(f"{root} .{key} .m{{fill:var(--{key})}}")
    return "\n".join(rules)


def colors(theme: int) -> str:
    """The colours of a theme as variables: 0 is light, 1 is dark."""
    page, ink, soft, edge, line, frame = (
        ("#ffffff", "#1b1f24", "#59636e", "#8a94a0", "#d5dbe1", "#6b7a8c08"),
        ("#15181c", "#e8ebee", "#a3adb8", "#77818d", "#363d46", "#9fb0c408"),
    )[theme]
    named = {"page": page, "ink": ink, "soft": soft, "edge": edge, "line": line, "frame": frame}
    for key, place in PLACES.items():
        named[key], named[f"{key}-field"] = (place.light, place.dark)[theme]
    return ";".join(f"--{name}:{color}" for name, color in named.items())


def marks(scene: Scene, drawn: Drawing, *, titles: bool) -> str:
    """The frames, edges and nodes as SVG elements; ``titles`` adds each node's name and place, which browsers show."""
    parts = ['<g class="f">', *[_frame(frame) for frame in drawn.frames], '</g><g class="e">']
    parts += [_edge(route, is_far=number in drawn.far) for number, route in enumerate(drawn.routes)]
    parts.append("</g>")
    for number, (node, box) in enumerate(zip(scene.nodes, drawn.boxes, strict=True)):
        title = f"<title>{title_of(node)}</title>" if titles else ""
        parts.append(f'<g class="n {node.place}" data-i="{number}">{title}{_node(node, box)}</g>')
    return "\n".join(parts) + "\n"


def title_of(node: SceneNode) -> str:
    """The name of a node, and in a second line its place and the reason, for SVG."""
    why = "" if node.row is None else f": {node.row.verdict}"
    return f"{markup(node.name)}\n{markup(PLACES[node.place].label + why)}"


def _frame(frame: GroupFrame) -> str:
    box = frame.box
    text = markup(label_of(frame.label))
    return (
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"/>'
        f'<text x="{box.x + 8}" y="{box.y + 14}">{text}</text>'
    )


def _edge(route: list[Point], *, is_far: bool) -> str:
    (x, y), *rest = route
    if is_far:
        (to_x, to_y) = rest[-1]
        bend = max(40, abs(to_y - y) // 8)
        return f'<path class="far" d="M{x} {y}C{x} {y + bend} {to_x} {to_y - bend} {to_x} {to_y}"/>'
    path, previous = f"M{x} {y}", (x, y)
    for point in rest:
        path += _segment(previous, point)
        previous = point
    return f'<path d="{path}"/>' + _head(route)


def _segment(a: Point, b: Point) -> str:
    if a[0] == b[0]:
        return f"V{b[1]}"
    return f"H{b[0]}" if a[1] == b[1] else f"L{b[0]} {b[1]}"


def _head(route: list[Point]) -> str:
    """The arrow head, for an edge that ends downwards; few others exist."""
    (x, y), (_, before) = route[-1], route[-2]
    return f'<path d="M{x - 3} {y - 5}L{x} {y}L{x + 3} {y - 5}"/>' if before < y else ""


def _node(node: SceneNode, box: Box) -> str:
    letter = PLACES[node.place].letter
    middle = box.y + box.height // 2 + 4
    mark = f'<text class="m" x="{box.x + 13}" y="{middle}">{letter}</text>' if letter else ""
    center = box.x + box.width // 2 + (9 if letter else 0)
    return (
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"/>{mark}'
        f'<text class="l" x="{center}" y="{middle}">{markup(label_of(node.label))}</text>'
    )


def places_in(scene: Scene) -> list[str]:
    """The keys of the places that the nodes of a scene have, the best first."""
    found = {node.place for node in scene.nodes}
    return [key for key in PLACES if key in found and key not in (INPUT, OUTPUT)]


def _legend(scene: Scene) -> tuple[str, int]:
    """The legend in one row, and its width."""
    parts, x = [], 16
    for key in places_in(scene):
        place, number = PLACES[key], _count(scene.nodes, key)
        text = f"{place.label} ({number:,})"
        box = Box(x, 8, 26, 18)
        letter = f'<text class="m" x="{x + 13}" y="21">{place.letter}</text>' if place.letter else ""
        rect = f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"/>'
        parts.append(f'<g class="n {key}">{rect}{letter}<text x="{x + 34}" y="21">{markup(text)}</text></g>')
        x += 34 + round(7.1 * len(text)) + 20
    return "".join(parts), x


def _count(nodes: Iterable[SceneNode], key: str) -> int:
    return sum(node.members for node in nodes if node.place == key)
