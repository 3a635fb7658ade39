"""Text of a scene for Mermaid (``.mmd``) and Graphviz (``.dot``): groups, places and colours as in the picture."""

from __future__ import annotations

from collections.abc import Callable

from dmlc.views.escape import dot, mermaid
from dmlc.views.places import INPUT, OUTPUT, PLACES
from dmlc.views.scene import Scene, SceneNode, frames_of, innermost
from dmlc.views.svg import places_in


def mermaid_text(scene: Scene) -> str:
    """The scene as a Mermaid flowchart."""
    out = "flowchart TB\n"
    for key in [*places_in(scene), INPUT, OUTPUT]:
        line, field = PLACES[key].light
        dash = f",stroke-dasharray:{PLACES[key].dash}" if PLACES[key].dash else ""
        out += f"  classDef p_{key} fill:{field},stroke:{line},color:#1b1f24{dash}\n"

    def opening(number: int, label: str) -> str:
        return f'subgraph g{number}["{mermaid(label)}"]'

    def entry(number: int, node: SceneNode) -> str:
        left, right = ("([", "])") if node.place in (INPUT, OUTPUT) else ("[", "]")
        return f'n{number}{left}"{mermaid(_text(node))}"{right}:::p_{node.place}'

    out += _nested(scene, opening, "end", entry)
    return out + "".join(f"  n{a} --> n{b}\n" for a, b in scene.edges)


def dot_text(scene: Scene) -> str:
    """The scene as a digraph for Graphviz."""
    font = 'fontname="Helvetica" fontsize=11'
    out = f'digraph {{\n  node [shape=box style="rounded,filled" {font}];\n  graph [{font}];\n'

    def opening(number: int, label: str) -> str:
        return f'subgraph cluster_{number} {{ label="{dot(label)}"; style=rounded; color="#8a94a0";'

    def entry(number: int, node: SceneNode) -> str:
        place = PLACES[node.place]
        line, field = place.light
        style = "rounded,filled,dashed" if place.dash else "rounded,filled"
        colors = f'color="{line}" fillcolor="{field}" style="{style}"'
        return f'n{number} [label="{dot(_text(node))}" tooltip="{dot(node.name)}" {colors}];'

    out += _nested(scene, opening, "}", entry)
    return out + "".join(f"  n{a} -> n{b};\n" for a, b in scene.edges) + "}\n"


def _text(node: SceneNode) -> str:
    letter = PLACES[node.place].letter
    return f"{letter} {node.label}" if letter else node.label


def _nested(
    scene: Scene, opening: Callable[[int, str], str], closing: str, entry: Callable[[int, SceneNode], str]
) -> str:
    """The nodes inside of their groups, as indented lines."""
    groups = frames_of(scene)
    inside: dict[tuple[str, ...] | None, list[str]] = {None: [], **{path: [] for path in groups}}
    for number, node in enumerate(scene.nodes):
        inside[innermost(node.path, groups)].append(entry(number, node))
    for number, path in reversed(list(enumerate(groups))):  # inner groups first
        group = groups[path]
        lines = [opening(number, group.label), *[f"  {line}" for line in inside[path]], closing]
        inside[group.outer] = [*lines, *inside[group.outer]]
    return "".join(f"  {line}\n" for line in inside[None])
