"""ONNX Runtime's own optimizer makes no node of a compiled model run elsewhere than the placement report says."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime
import pytest
from models.compiled_fixture import CompiledFixture

import dmlc
from dmlc.placement.report import placement
from dmlc.targets import load_target
from dmlc.targets.provider import provider

pytestmark = pytest.mark.every_emitted
LEVELS = {
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
}
#: Passes of the extended level that ONNX Runtime runs for its CPU provider and not for DirectML's, as
#: core/optimizer/graph_transformer_utils.cc has it.
FOR_THE_CPU_ALONE = (
    *("GemmActivationFusion", "DynamicQuantizeMatMulFusion", "ConvActivationFusion", "SimplifiedLayerNormFusion"),
    *("GatherSliceToSplitFusion", "GatherToSliceFusion", "BiasSoftmaxFusion", "MatMulNBitsFusion"),
    *("QDQSelectorActionTransformer", "QDQS8ToU8Transformer", "NhwcTransformer", "ConvAddActivationFusion"),
    *("TransposeOptimizer_CPUExecutionProvider", "Avx2WeightS8ToU8Transformer", "ConvAddFusion", "ConvMulFusion"),
)
#: Without these, only the report knows what becomes of a GELU.
GELU_RULES = ("erf-gelu", "tanh-gelu", "gelu-operator")


def optimized(model: onnx.ModelProto, level: str, folder: Path, out: Path) -> onnx.ModelProto:
    """The model as ONNX Runtime leaves it at a level of optimization. Weights stand in ``folder``."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.optimized_model_filepath = str(out / f"{level}.onnx")
    options.log_severity_level = 4
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=FOR_THE_CPU_ALONE
    )
    return onnx.load(out / f"{level}.onnx", load_external_data=False)


def findings(model: onnx.ModelProto) -> set[str]:
    """The operators that DirectML's provider leaves to the CPU, or computes otherwise, by the report on the model."""
    report = placement(model, load_target("directml"))
    return {finding.operator for _, finding in report.findings if finding.effect != "unknown"}


def test_optimizer_makes_no_operator_without_a_kernel_that_was_not_reported(
    compiled: CompiledFixture, tmp_path: Path
) -> None:
    """If a rule for GELU fires, the model without these rules is tested as well."""
    programs = [compiled.program("directml")]
    if any(entry.rule in GELU_RULES for entry in programs[0].ledger):
        programs.append(dmlc.compile(compiled.path, target="directml", skip_rules=GELU_RULES))
    for program in programs:
        model = program.to_onnx()
        reported = findings(model)
        seen = [model.graph]
        for level in LEVELS:
            after = optimized(model, level, compiled.path.parent, tmp_path)
            if after.graph not in seen:
                assert findings(after) <= reported, level
            seen.append(after.graph)


def test_each_rewrite_without_a_pattern_makes_an_operator_with_a_kernel() -> None:
    table = provider("dml_ep")
    for rewrite in table.rewrites:
        row = table.row(rewrite.domain, rewrite.makes)
        assert bool(rewrite.patterns) or row is not None, rewrite
