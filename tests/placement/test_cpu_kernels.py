"""Nodes that DirectML's provider leaves to the CPU, where ONNX Runtime may have no kernel for them either."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

from dmlc.placement.report import placement
from dmlc.targets import load_target
from tests.kit import refusal
from tests.rows import each_row

TRAINING = "ai.onnx.preview.training"
MOMENTUM = f'{TRAINING}.Momentum <alpha = 0.9, beta = 1.0, norm_coefficient = 0.1, mode = "standard"> (r, t, x, x, x)'
#: By name: the opset, the inputs, the result and the node; the effect, and the end of the reason.
NODES = {
    "operator": (17, "float r, int64 t, float[2] x", "float[2] y, float[2] z", f"y, z = {MOMENTUM}",
                 "fails", "has none either"),
    "type": (21, "bfloat16[2] x", "bfloat16[2] y", "y = Add (x, x)", "fails", "has none either for bfloat16"),
    "wide type": (21, "double[1, 2, 4, 4] x, double[2, 2, 1, 1] w", "double[1, 2, 4, 4] y", "y = Conv (x, w)",
                  "fails", "has none either for double"),
    "type that the CPU has": (21, "double[2] x", "double[2] y", "y = Log (x)", "cpu", ""),
    "older version": (12, "double[2] x", "double[2] y", "y = Log (x)", "cpu", ""),
    "half that is computed in f32": (21, "float16[2, 2] x", "float16 y", "y = Det (x)", "cpu", ""),
    "operator with a definition": (21, "bfloat16[2] x", "bfloat16[2] y", "y = Elu (x)", "cpu", ""),
}  # fmt: skip


def model(opset: int, inputs: str, outputs: str, node: str) -> onnx.ModelProto:
    imports = f'"": {opset}, "{TRAINING}": 1'
    made: onnx.ModelProto = parser.parse_model(
        f"<ir_version: 10, opset_import: [{imports}]> g ({inputs}) => ({outputs}) {{ {node} }}"
    )
    return made


def _runs(made: onnx.ModelProto) -> bool:
    message = refusal(made)
    assert not message or "NOT_IMPLEMENTED" in message or "not a registered" in message
    return not message


@pytest.mark.emits_invalid("nodes without a kernel")
@each_row("name", NODES)
def test_what_runs_nowhere_fails(name: str) -> None:
    *form, effect, reason = NODES[name]
    made = model(*form)
    (row,) = placement(made, load_target("directml")).nodes
    (finding,) = row.findings
    assert (row.where, finding.effect) == ("cpu", effect)
    assert finding.limit.endswith(reason) and ("none either" in finding.limit) is (effect == "fails")
    if name != "operator with a definition":
        assert _runs(made) is (effect == "cpu")


def test_a_newer_opset_than_the_table_is_not_judged() -> None:
    made = model(21, "bfloat16[2] x", "bfloat16[2] y", "y = Add (x, x)")
    made.opset_import[0].version = 99
    (row,) = placement(made, load_target("directml")).nodes
    assert not any("none either" in finding.limit for finding in row.findings)
