"""Details of the nodes of a report: what a click on a node shows, as plain data for the page's script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from dmlc.codegen.onnx.annotations import read_annotations
from dmlc.views.escape import plain
from dmlc.views.scene import Scene, SceneNode

#: Names and lines that are kept of one node.
_MOST = 12


class SceneDetails(Struct):
    """Facts about nodes and values that a scene lacks, by name.

    ``types`` are the values' types in words, ``promises`` the words for classes of rewrites. ``places`` are source
    places and ``lines`` source lines by place; ``sources`` are the nodes and rules that a node was made from, for
    models without annotations. ``fates`` say what became of nodes that are not in the result.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    promises: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str]] = field(default_factory=dict)
    fates: Mapping[str, str] = field(default_factory=dict)


def details_of(scene: Scene, more: SceneDetails) -> list[dict[str, Any]]:
    """An entry for each node of a scene; keys without a value are left out."""
    return [{key: value for key, value in _entry(node, more).items() if value} for node in scene.nodes]


def _entry(node: SceneNode, more: SceneDetails) -> dict[str, Any]:
    row, proto = node.row, node.proto
    entry: dict[str, Any] = {"n": plain(node.name), "o": plain(node.label), "p": node.place}
    if row is not None:
        entry["w"] = plain(row.verdict)
        entry["d"] = ", ".join(row.directml)
        entry["f"] = [plain(f"{finding.limit} ({finding.source})") for finding in row.findings][:_MOST]
    entry["g"] = plain(more.fates.get(node.name, ""))
    if proto is None:
        entry["t"] = plain(more.types.get(node.name, ""))
        return entry
    entry["t"] = plain(", ".join(more.types[name] for name in proto.output if name in more.types))
    notes = read_annotations(proto)
    made_from, rules, rewrite_class = more.sources.get(node.name, ((), (), ""))
    entry["s"] = [plain(name) for name in notes.get("from", made_from)][:_MOST]
    entry["r"] = [plain(name) for name in notes.get("rules", rules)]
    kind = next(iter(notes.get("class", ())), rewrite_class)
    entry["c"] = more.promises.get(kind, kind)
    places = notes.get("source", [more.places[node.name]] if node.name in more.places else [])[:_MOST]
    entry["l"] = [plain(f"{place}  {more.lines.get(place, '')}".rstrip()) for place in places]
    return entry
