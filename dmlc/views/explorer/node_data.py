"""Node data for Model Explorer: where each node runs, as an overlay on a model that it shows."""

from __future__ import annotations

import json
from typing import Any

from onnx import ModelProto

from dmlc import api
from dmlc.placement.report import Placement
from dmlc.views.escape import plain
from dmlc.views.places import PLACES
from dmlc.views.scene import Scene, scene_of


def node_data(program: api.Program, placed: Placement) -> str:
    """The JSON of an overlay: the place of each node in words, with its colours, by the name of the node.

    ``placed`` is the placement of the model that the program was imported from, or of the model that it becomes.
    """
    source = program.source_model
    scene = None if source is None else scene_of(source, placed)
    if scene is None or not _is_of(scene, placed):
        made: ModelProto = api.emitted(program, "onnx").payload
        scene = scene_of(made, placed)
    results: dict[str, Any] = {}
    for node in scene.nodes:
        if node.proto is not None:
            place = PLACES[node.place]
            text_color, color = place.light
            results[node.proto.name or node.name] = {
                "value": plain(place.label),
                "bgColor": color,
                "textColor": text_color,
            }
    return json.dumps({"results": results}, indent=2) + "\n"


def _is_of(scene: Scene, placed: Placement) -> bool:
    """Return whether the placement is about the model of the scene."""
    names = [node.name for node in scene.nodes if node.proto is not None]
    return names == [row.name for row in placed.nodes]
