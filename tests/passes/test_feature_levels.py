"""Operators that a feature level of DirectML lacks: no rule makes them."""

from __future__ import annotations

import numpy as np
import pytest

import dmlc
from tests.kit import onnx

GELU = "g (float[2, 8] x) => (float[2, 8] y) { d = Div(x, s) e = Erf(d) f = Add(e, o) h = Mul(x, f) y = Mul(h, z) }"
NORM = (
    "g (float[2, 8] x) => (float[2, 8] y) { m = ReduceMean <axes = [-1]> (x) d = Sub(x, m) p = Mul(d, d) "
    "v = ReduceMean <axes = [-1]> (p) w = Add(v, z) q = Sqrt(w) y = Div(d, q) }"
)


@pytest.mark.parametrize(
    ("text", "rule", "operator", "level", "enough"),
    [(GELU, "erf-gelu", "Gelu", "5.0", "5.1"), (NORM, "fuse-layer-norm", "LayerNormalization", "6.2", "6.3")],
    ids=["gelu", "layer norm"],
)
def test_no_rule_makes_what_the_feature_level_lacks(
    text: str, rule: str, operator: str, level: str, enough: str
) -> None:
    model = onnx(text, s=np.float32(1.4142135), o=np.float32(1), z=np.float32(0.5))
    lower = dmlc.compile(model, feature_level=level)
    assert rule not in {entry.rule for entry in lower.ledger}
    assert operator not in {node.op_type for node in lower.to_onnx().graph.node}
    assert not [found for found in lower.diagnostics if found.code.id == "E0591"]
    assert rule in {entry.rule for entry in dmlc.compile(model, feature_level=enough).ledger}
