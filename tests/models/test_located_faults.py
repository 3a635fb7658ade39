"""Faults planted in the model fixtures: each that shows in an output is located to its node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models.fixture_parameters import named

import dmlc
from tools.planted_faults import planted

#: A fault that shows of each kind, in models of each kind: attention, convolutions, selections, trees of other domains,
#: operators without names.
FAULTS = {
    "bert_tiny_op14": ("weight",),
    "cbam_op12": ("weight",),
    "convnext_op13": ("weight",),
    "ctc_greedy_op13": ("axis",),
    "gat_op16": ("weight",),
    "gpt2.ts13": ("axis",),
    "sk_mlp_digits_op17": ("axis",),
    "vit_tiny_op17": ("epsilon",),
}


@pytest.mark.parametrize("path", named(*FAULTS))
def test_fault_is_located_to_its_node(path: Path) -> None:
    with np.load(path.with_suffix(".npz")) as case:
        feeds = {key[4:]: case[key] for key in case.files if key.startswith("in::")}
    assert dmlc.locate(path, path, inputs=feeds).ok
    for kind in FAULTS[path.stem]:
        wrong = onnx.load(path)
        wanted = planted(wrong, kind)
        found = dmlc.locate(path, wrong, inputs=feeds)
        assert found.location is not None and found.location.node is not None, kind
        assert found.location.node.name in wanted, kind
