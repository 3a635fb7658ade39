"""Adapter that Model Explorer loads: a program or a model as written and as compiled, by where each node runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from model_explorer import Adapter, AdapterMetadata, graph_builder

from dmlc import api
from dmlc.codegen.onnx.annotations import read_annotations
from dmlc.inference.model_facts import types_by_name
from dmlc.ir import TensorType
from dmlc.views.escape import plain
from dmlc.views.places import PLACES
from dmlc.views.scene import Scene, SceneNode
from dmlc.views.stages import compiled_scene, source_scene


class DmlcAdapter(Adapter):  # type: ignore[misc]
    """Shows what ``dmlc graph`` draws. A program has one graph, a model two: before and after."""

    metadata = AdapterMetadata(
        id="dmlc",
        name="dmlc",
        description="ONNX models and .dml programs, as written and as compiled for DirectML",
        fileExts=["onnx", "dml"],
    )

    def convert(self, model_path: str, settings: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return the graphs of a file. Raises ``DmlcError`` where it does not compile."""
        program = api.compile(model_path)
        graphs = [_graph("compiled", compiled_scene(program), api.emitted(program, "onnx").types)]
        if program.source_model is not None:
            graphs.insert(0, _graph("source", source_scene(program, None), types_by_name(program.source_graph)))
        return {"graphs": graphs}


def _graph(name: str, scene: Scene, types: Mapping[str, TensorType]) -> Any:
    edges: dict[int, list[Any]] = {}
    for maker, reader in scene.edges:
        found = edges.setdefault(reader, [])
        found.append(graph_builder.IncomingEdge(sourceNodeId=str(maker), targetNodeInputId=str(len(found))))
    nodes = [_node(number, node, edges.get(number, []), types) for number, node in enumerate(scene.nodes)]
    return graph_builder.Graph(id=name, nodes=nodes)


def _node(number: int, node: SceneNode, edges: list[Any], types: Mapping[str, TensorType]) -> Any:
    place = PLACES[node.place]
    border, field = place.light
    facts = {"name": node.name, "runs on": place.label, "reason": "" if node.row is None else node.row.verdict}
    if node.proto is not None:
        facts |= {key: ", ".join(names) for key, names in read_annotations(node.proto).items()}
    results = [node.name] if node.proto is None else node.proto.output
    return graph_builder.GraphNode(
        id=str(number),
        label=plain(node.label),
        namespace="/".join(map(plain, node.path)),
        attrs=_pairs(facts),
        incomingEdges=edges,
        outputsMetadata=[
            graph_builder.MetadataItem(str(index), _pairs({"name": result, "type": str(types.get(result, ""))}))
            for index, result in enumerate(results)
        ],
        style=graph_builder.GraphNodeStyle(backgroundColor=field, borderColor=border),
    )


def _pairs(facts: Mapping[str, str]) -> list[Any]:
    return [graph_builder.KeyValue(key, plain(text)) for key, text in facts.items() if text]
