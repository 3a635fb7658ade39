"""Every model of the fixtures compiles for each ONNX target to a valid model with unchanged numbers."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from models.fixture_parameters import parameters

import dmlc
from dmlc.onnx_schema.functions import graphs_of
from dmlc.placement.report import placement
from dmlc.targets import load_target
from tools.fixture_folder import PARTS, cases, fixtures
from tools.model_checks import added_nodes, new_defects, run, session
from tools.result_comparison import differences

TARGETS = ("directml", "cpu", "onnx")
#: How many models there are of each part, at least.
COUNTS = {"whole": 38, "patterns": 136, "torch": 35}


@pytest.mark.parametrize("path", [item for part in PARTS for item in parameters(part)])
def test_fixture_compiles_to_a_valid_model_with_the_same_numbers(path: Path) -> None:
    """The same model for two targets is checked once."""
    source = onnx.load(path)
    checked: dict[bytes, str] = {}
    for target in TARGETS:
        program = dmlc.compile(path, target=target)
        program.require_sound()
        assert added_nodes(source, program) == "", target
        model = program.to_onnx()
        data = _without_metadata(model)
        if data in checked:
            continue
        checked[data] = target
        assert new_defects(model, source, path.parent) == {}, target
        assert _untyped(model.graph) == [], target
        _compare(path, source, model, target)


def _untyped(graph: onnx.GraphProto) -> list[str]:
    """The values that a graph makes without declaring a type, in the graphs inside its nodes too."""
    typed = {info.name for infos in (graph.value_info, graph.output) for info in infos}
    found = []
    for node in graph.node:
        found += [name for name in node.output if name and name not in typed]
        for inner in graphs_of(node):
            found += _untyped(inner)
    return found


@pytest.mark.parametrize("path", [item for part in PARTS for item in parameters(part)])
def test_fixture_is_placed_without_an_unknown_node(path: Path) -> None:
    """As it is, with sizes left open: the type of each operand is known."""
    report = placement(onnx.load(path, load_external_data=False), load_target("directml"))
    assert [f"{node.op} {node.name}: {node.why}" for node in report.nodes if node.where == "unknown"] == []


def _compare(path: Path, source: onnx.ModelProto, model: onnx.ModelProto, target: str) -> None:
    found = session(model, path.parent)
    assert [i.name for i in found.get_inputs()] == [i.name for i in session(source, path.parent).get_inputs()]
    told = cases(path)
    assert told, "a fixture has a case"
    for feeds, expected in told:
        assert differences(expected, run(found, feeds)) == [], target


def _without_metadata(model: onnx.ModelProto) -> bytes:
    """The model's bytes without what names the target."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ClearField("metadata_props")
    return copy.SerializeToString(deterministic=True)


@pytest.mark.parametrize("part", PARTS)
def test_all_fixtures_are_there(part: str) -> None:
    if not fixtures(part):
        pytest.skip("there is no folder of model fixtures")
    assert len(fixtures(part)) >= COUNTS[part]
