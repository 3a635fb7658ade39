"""Each node of the fixtures that is not in the compiled model has a reason: a rewrite, or a cause of its removal."""

from __future__ import annotations

import pytest
from models.compiled_fixture import CompiledFixture
from models.fixture_parameters import of_whole_models

import dmlc
from dmlc.onnx_schema.inlining import inlined


@of_whole_models
def test_each_removed_node_has_a_reason(compiled: CompiledFixture) -> None:
    program = compiled.program("directml")
    assert program.source_model is not None
    nodes = [node for node in inlined(program.source_model).graph.node if node.op_type != "Constant" and node.name]
    left = {node.name for node in compiled.model("directml").graph.node}
    reasons = {name for entry in program.ledger for name in entry.before}
    reasons |= {name for removal in program.removed for name in removal.nodes}
    assert {node.name for node in nodes} - left - reasons == set()


def test_shape_computations_are_one_entry() -> None:
    from tools.fixture_folder import fixtures

    path = fixtures("torch").get("swin.ts17")
    if path is None:
        pytest.skip("there is no folder of model fixtures")
    (removal,) = dmlc.compile(path).removed
    assert removal.text == "401 shape computations: every size but batch is known"
    assert len(removal.nodes) == 401
