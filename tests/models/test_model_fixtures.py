"""Every model of the fixtures compiles for each ONNX target to a valid model with unchanged numbers."""

from __future__ import annotations

import pickle
from pathlib import Path

import onnx
import pytest
from models.compiled_fixture import TARGETS, CompiledFixture

from dmlc.onnx_schema.nested import graphs_of
from dmlc.placement.report import placement
from dmlc.targets import load_target
from tools.fixture_folder import PARTS, cases, fixtures
from tools.model_checks import added_nodes, run, session, without_metadata
from tools.result_comparison import differences

pytestmark = pytest.mark.every_emitted
#: Least number of models of each part.
COUNTS = {"whole": 38, "patterns": 136, "torch": 35}


def test_fixture_compiles_to_a_valid_model_with_the_same_numbers(compiled: CompiledFixture) -> None:
    """The same model for two targets is compared once."""
    names = [i.name for i in session(compiled.source, compiled.path.parent).get_inputs()]
    compared: set[bytes] = set()
    for target in TARGETS:
        program = compiled.program(target)
        program.require_sound()
        assert added_nodes(compiled.source, program) == "", target
        model = program.to_onnx()
        data = without_metadata(model)
        if data in compared:
            continue
        compared.add(data)
        assert _untyped(model.graph) == [], target
        _compare(compiled.path, names, model, target)


def test_a_pickled_runner_gives_the_same_numbers(compiled: CompiledFixture) -> None:
    runner = pickle.loads(pickle.dumps(compiled.program("cpu").runner(threads=1)))
    feeds, expected = cases(compiled.path)[0]
    found = runner.run(feeds)
    assert differences(expected, found) == []
    (name,) = list(expected)[:1]
    assert differences({name: expected[name]}, runner.run(feeds, outputs=[name])) == []


def _untyped(graph: onnx.GraphProto) -> list[str]:
    """The values that a graph makes without declaring a type, in the graphs inside its nodes too."""
    typed = {info.name for infos in (graph.value_info, graph.output) for info in infos}
    found = []
    for node in graph.node:
        found += [name for name in node.output if name and name not in typed]
        for inner in graphs_of(node):
            found += _untyped(inner)
    return found


def test_fixture_is_placed_without_an_unknown_node(compiled: CompiledFixture) -> None:
    """As it is, with sizes left open: the type of each operand is known."""
    report = placement(onnx.load(compiled.path, load_external_data=False), load_target("directml"))
    assert [f"{node.op} {node.name}: {node.why}" for node in report.nodes if node.where == "unknown"] == []


def _compare(path: Path, inputs: list[str], model: onnx.ModelProto, target: str) -> None:
    found = session(model, path.parent)
    assert [i.name for i in found.get_inputs()] == inputs
    told = cases(path)
    assert told, "a fixture has a case"
    for feeds, expected in told:
        assert differences(expected, run(found, feeds)) == [], target


@pytest.mark.parametrize("part", PARTS)
def test_all_fixtures_are_there(part: str) -> None:
    if not fixtures(part):
        pytest.skip("there is no folder of model fixtures")
    assert len(fixtures(part)) >= COUNTS[part]
