"""Fused attention: the numbers of the fixtures, and what ONNX Runtime's own optimizer leaves of it."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from models.compiled_fixture import CompiledFixture
from models.fixture_parameters import of_whole_models
from models.test_runtime_rewrites import LEVELS, findings, optimized

import dmlc
from tools.canonical_form import operators
from tools.fixture_folder import cases, fixtures
from tools.model_checks import new_defects, run, session
from tools.result_comparison import differences

#: Fixtures with attention, by how many are fused.
FUSED = {
    "whole": {
        "bert_tiny_op14": 2, "llama_tiny_op18": 2, "t5_block_op15": 1, "vit_block_op9": 1, "vit_tiny_op17": 2,
        "vit_block_op13_manual_softmax": 1,
    },
    "torch": {
        "albert.ts13": 2,
        "bert_sdpa.dyn23": 2, "clip.dyn20": 2, "davit.ts15": 4, "detr.dyn20": 3, "gpt2.ts13": 2, "llama.ts17": 2,
        "llama_sdpa23.dyn23": 2, "mask2former_pixel.ts17": 2, "t5_decoder.ts17": 4,
        "t5_encoder.ts15": 2, "wav2vec2.dyn20": 2, "whisper.dyn20": 3, "xcit.ts17": 2,
    },
}  # fmt: skip
#: Operators of ONNX that compute a softmax.
WITH_SOFTMAX = (":Softmax", ":Attention")


def count(model: onnx.ModelProto, op_type: str) -> int:
    return sum(node.op_type == op_type for node in model.graph.node)


@of_whole_models
def test_fused_fixture_keeps_its_numbers(compiled: CompiledFixture, tmp_path: Path) -> None:
    path, plain = compiled.path, compiled.model("directml")
    wanted = FUSED["torch" if path.parent.name == "torch" else "whole"].get(path.stem, 0)
    if not any(operators(plain)[name] for name in WITH_SOFTMAX):
        assert wanted == 0  # there is no attention without a softmax
        return
    program = dmlc.compile(path, fuse=("attention",))
    model = program.to_onnx()
    fused = count(model, "MultiHeadAttention")
    assert fused == wanted
    if not fused:
        return  # the other tests compile the same
    program.require_sound()
    assert new_defects(model, compiled.source, path.parent) == {}
    assert len(model.graph.node) < len(plain.graph.node) or path.stem.startswith("davit")
    found = session(model, path.parent)
    for feeds, expected in cases(path):
        assert differences(expected, run(found, feeds)) == []
    reported = findings(model)
    for level in LEVELS:
        after = optimized(model, level, path.parent, tmp_path)
        assert count(after, "MultiHeadAttention") == fused, level
        assert findings(after) <= reported, level


@pytest.mark.parametrize("part", FUSED)
def test_fused_fixtures_are_there(part: str) -> None:
    if not fixtures(part):
        pytest.skip("there is no folder of model fixtures")
    assert FUSED[part].keys() <= fixtures(part).keys()
