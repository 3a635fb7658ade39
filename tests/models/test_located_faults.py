"""Faults planted in the model fixtures: each that shows in an output is located to its node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models.fixture_parameters import parameters

import dmlc
from tools.fixture_folder import PARTS
from tools.planted_faults import planted

#: One of each kind: attention, convolutions, selections, recurrences, trees of other domains, operators without names.
NAMES = (
    "bert_tiny_op14",
    "cbam_op12",
    "convnext_op13",
    "ctc_greedy_op13",
    "gat_op16",
    "llama_tiny_op18",
    "sk_mlp_digits_op17",
    "vit_tiny_op17",
    "gpt2.ts13",
)
PATHS = [found for part in PARTS for found in parameters(part) if str(getattr(found, "id", "")).endswith(NAMES)]


@pytest.mark.parametrize("path", PATHS or parameters("whole"))
@pytest.mark.parametrize("kind", ["weight", "epsilon", "axis"])
def test_fault_is_located_to_its_node(path: Path, kind: str) -> None:
    wrong = onnx.load(path)
    wanted = planted(wrong, kind)
    if not wanted:
        return
    with np.load(path.with_suffix(".npz")) as case:
        feeds = {key[4:]: case[key] for key in case.files if key.startswith("in::")}
    assert dmlc.locate(path, path, inputs=feeds).ok
    found = dmlc.locate(path, wrong, inputs=feeds)
    if found.ok:  # this fault does not show on this case
        assert found.location is None
        return
    assert found.location is not None
    assert found.location.node is not None
    assert found.location.node.name in wanted
