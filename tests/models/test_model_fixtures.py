"""Every model of the fixtures compiles for each ONNX target to a valid model with unchanged numbers."""

from __future__ import annotations

import pickle
import zlib

import onnx
import pytest
from models.compiled_fixture import TARGETS, CompiledFixture

from dmlc.onnx_schema.nested import graphs_of
from dmlc.placement.report import placement
from dmlc.targets import load_target
from tests.versions import ONNX_RUNTIME
from tools.fixture_folder import PARTS, cases, fixtures
from tools.model_checks import added_nodes, run, session, without_metadata
from tools.result_comparison import differences

pytestmark = pytest.mark.every_emitted
#: Least number of models of each part.
COUNTS = {"whole": 38, "patterns": 136, "torch": 35}


def test_fixture_compiles_to_a_valid_model_with_the_same_numbers(compiled: CompiledFixture) -> None:
    """For ``directml`` and ``cpu``, and for ``onnx`` every third of the whole models. The same model for two targets is
    compared once.

    For every fourth a pickled runner gives the numbers too. The report on the model as it is, with sizes left open,
    knows the type of each operand.
    """
    if compiled.path.stem == "chain_int_overflow" and ONNX_RUNTIME < (1, 27):
        pytest.skip("before 1.27 the sums of ONNX Runtime wrap, and the fixture's stop at the ends of their type")
    weights = {tensor.name for tensor in compiled.source.graph.initializer}
    names = [info.name for info in compiled.source.graph.input if info.name not in weights]
    told = cases(compiled.path)
    assert told, "a fixture has a case"
    wrong: dict[str, object] = {}
    compared: set[bytes] = set()
    turn = zlib.crc32(compiled.path.stem.encode())
    for target in TARGETS[:2] if compiled.path.parent.name == "patterns" or turn % 3 else TARGETS:
        program = compiled.program(target)
        program.require_sound()
        wrong[f"{target}: more nodes"] = added_nodes(compiled.source, program)
        model = compiled.model(target)
        data = without_metadata(model)
        if data in compared:
            continue
        compared.add(data)
        wrong[f"{target}: values without a type"] = _untyped(model.graph)
        found = session(model, compiled.path.parent)
        assert [i.name for i in found.get_inputs()] == names, target
        for number, (feeds, expected) in enumerate(told):
            wrong[f"{target}: case {number}"] = differences(expected, run(found, feeds))
    feeds, expected = told[0]
    if turn % 4 == 0:
        runner = pickle.loads(pickle.dumps(compiled.program("cpu").runner(threads=1)))
        wrong["pickled"] = differences(expected, runner.run(feeds))
        (name,) = list(expected)[:1]
        wrong["pickled, one output"] = differences({name: expected[name]}, runner.run(feeds, outputs=[name]))
    report = placement(compiled.source, load_target("directml"))
    wrong["unknown"] = [f"{node.op} {node.name}: {node.why}" for node in report.nodes if node.where == "unknown"]
    assert {what: found for what, found in wrong.items() if found} == {}


def _untyped(graph: onnx.GraphProto) -> list[str]:
    """The values that a graph makes without declaring a type, in the graphs inside its nodes too."""
    typed = {info.name for infos in (graph.value_info, graph.output) for info in infos}
    found = []
    for node in graph.node:
        found += [name for name in node.output if name and name not in typed]
        for inner in graphs_of(node):
            found += _untyped(inner)
    return found


@pytest.mark.parametrize("part", PARTS)
def test_all_fixtures_are_there(part: str) -> None:
    if not fixtures(part):
        pytest.skip("there is no folder of model fixtures")
    assert len(fixtures(part)) >= COUNTS[part]
