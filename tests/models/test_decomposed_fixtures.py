"""Each model of the fixtures, decomposed, gives the same numbers, and ``compile`` fuses it again."""

from __future__ import annotations

from collections import Counter

import onnx
from models.compiled_fixture import CompiledFixture

import dmlc
from dmlc.api.decomposition import stayed
from dmlc.onnx_schema.nested import all_nodes
from dmlc.passes.decompose import OPERATORS
from tools.fixture_folder import cases
from tools.model_checks import run, session
from tools.result_comparison import differences

#: Operators that ``compile`` fuses the parts to again.
FUSED_AGAIN = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "InstanceNormalization",
               "Softmax", "LogSoftmax", "ReduceL1", "ReduceSumSquare", "ReduceLogSum")  # fmt: skip
#: Models whose parts ``compile`` fuses otherwise, and why.
OTHERWISE = {
    "gmm_mixture.ts14": "a softmax and a log-sum-exp of one value share their maximum and their powers",
    "losses.dyn18": "a softmax and a log-softmax of one value share their maximum, their powers and their sum",
    "neg_gn_strided": "a normalization of channels without a scale is one of the last axis",
    "neg_softmax_11_coerce": "a softmax over several axes has no node at the emitted opset: reshapes stand around it",
    "seg_head_op13": "a normalization of channels without a scale is one of the last axis",
    "slot_attention.dyn20": "two layer norms of one value share their statistics",
    "slovorez_test": "a softmax of f16 is computed in f32, which its casts say",
    "stat_pool_op17_fp16": "a softmax of f16 is computed in f32, which its casts say",
}


def operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in all_nodes(model.graph.node))


def test_decomposed_fixture_has_the_same_numbers_and_compile_fuses_the_parts_again(compiled: CompiledFixture) -> None:
    found = operators(compiled.source)
    there, names = [[name for name in wanted if found[name]] for wanted in (OPERATORS, FUSED_AGAIN)]
    program = dmlc.decompose(compiled.path)
    if not there:
        assert program.ledger == ()
        return
    assert stayed(program) == ()
    model = program.to_onnx()
    made = session(model, compiled.path.parent)
    wrong = [differences(expected, run(made, feeds)) for feeds, expected in cases(compiled.path)]
    assert not any(wrong), wrong
    if names:
        parts = model if {*names} == {*there} else dmlc.decompose(compiled.path, names).to_onnx()
        again, first = operators(dmlc.compile(parts, target="onnx").to_onnx()), operators(compiled.model("onnx"))
        assert (again == first) is (compiled.path.stem not in OTHERWISE), f"{first - again} became {again - first}"
