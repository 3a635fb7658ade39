"""The adapter for Model Explorer, with records of the fields that its documentation gives in place of the package."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict, make_dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import onnx
import pytest
from onnx import parser

_TEXT = """<ir_version: 8, opset_import: ["": 17]> g (float[B, 4] x) => (float[B, 4] y) {
    s = Shape(x)
    [grown] e = Expand(x, s)
    y = Relu(e)
}"""
_FIELDS = {
    "Graph": ["id", "nodes"],
    "GraphNode": ["id", "label", "namespace", "attrs", "incomingEdges", "outputsMetadata", "style"],
    "IncomingEdge": ["sourceNodeId", "targetNodeInputId"],
    "MetadataItem": ["id", "attrs"],
    "KeyValue": ["key", "value"],
    "GraphNodeStyle": ["backgroundColor", "borderColor"],
}


@pytest.fixture
def adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The adapter as Model Explorer makes it: the module ``main`` of the extension, and the class in it."""
    monkeypatch.chdir(tmp_path)
    package = ModuleType("model_explorer")
    package.Adapter = object  # type: ignore[attr-defined]
    package.AdapterMetadata = SimpleNamespace  # type: ignore[attr-defined]
    records = {name: make_dataclass(name, fields) for name, fields in _FIELDS.items()}
    package.graph_builder = SimpleNamespace(**records)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "model_explorer", package)
    monkeypatch.delitem(sys.modules, "dmlc.views.explorer.main", raising=False)
    return importlib.import_module("dmlc.views.explorer.main").DmlcAdapter()


def test_a_model_has_its_graph_before_and_after(adapter: Any, tmp_path: Path) -> None:
    onnx.save(parser.parse_model(_TEXT), "g.onnx")
    before, after = [asdict(graph) for graph in adapter.convert(str(tmp_path / "g.onnx"), {})["graphs"]]
    assert [before["id"], after["id"]] == ["source", "compiled"]
    assert [node["label"] for node in before["nodes"]] == ["x", "Shape", "Expand", "Relu", "y"]
    assert [node["label"] for node in after["nodes"]] == ["x", "Relu", "y"]
    ids = {node["id"] for node in before["nodes"]}
    edges = {edge["sourceNodeId"] for node in before["nodes"] for edge in node["incomingEdges"]}
    assert edges < ids and len(ids) == 5
    facts = {pair["key"]: pair["value"] for pair in before["nodes"][3]["attrs"]}
    assert facts == {"name": "y", "runs on": "GPU, one at a time", "reason": facts["reason"]}
    (result,) = before["nodes"][3]["outputsMetadata"]
    assert result["attrs"][1] == {"key": "type", "value": "f32[B, 4]"}
    json.dumps(before)


def test_a_program_has_one_graph(adapter: Any) -> None:
    Path("m.dml").write_text("model m(x: f32[N, 3]) -> (y) {\n    return softmax(x, axes=[1])\n}\n")
    (graph,) = adapter.convert("m.dml", {})["graphs"]
    assert [node.label for node in graph.nodes] == ["x", "Softmax", "y"]
    assert set(adapter.metadata.fileExts) == {"onnx", "dml"}
