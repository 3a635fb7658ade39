"""Fixtures with all sizes fixed: one fused graph wholly on DirectML, or the operators that prevent it are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from models.fixture_parameters import parameters

import dmlc
from dmlc.placement.obstacles import obstacles
from tools.canonical_form import operators
from tools.fixture_folder import cases, fixtures
from tools.model_checks import run, session
from tools.result_comparison import differences

APART = "fused graphs that no value connects"
LSTM = "LSTM has no graph support"
#: Models that are not one fused graph, each with words of every sentence on what prevents it.
PREVENTED: dict[str, tuple[str, ...]] = {
    "fw_silero_vad_v6": (LSTM,),
    "silero_vad_16k_op15": (LSTM,),
    "silero_vad_openvino_16k": (LSTM,),
    "encodec.ts17": (LSTM,),
    "gat_op16": (APART,),
    "kmeans_vq_op16": (APART,),
    "beam_search.ts16": (APART,),
    "losses.dyn18": (APART,),
    "odd_norms.dyn21": (APART,),
    "yolo_head.dyn20": (APART,),
    "sk_gpr_op16": ("no kernel for Scan",),
    "sk_knn_op15": ("no kernel for Scan",),
    "sk_logreg_scaler_op12": ("no kernel for ai.onnx.ml.LinearClassifier",),
    "retinanet.ts15": ("turns fusion off", "no kernel for NonMaxSuppression"),
    "ssd.ts14": ("turns fusion off", "no kernel for NonMaxSuppression"),
}
BOUND = [item for part in ("whole", "torch") for item in parameters(part)]


def shapes_of(path: Path) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in cases(path)[0][0].items()}


@pytest.fixture(scope="module", params=BOUND)
def bound(request: pytest.FixtureRequest) -> tuple[Path, dmlc.Program]:
    """Each fixture, compiled once for all tests of it."""
    path: Path = request.param
    return path, dmlc.compile(path, shapes=shapes_of(path))


def test_a_bound_fixture_is_one_fused_graph_or_names_what_prevents_it(bound: tuple[Path, dmlc.Program]) -> None:
    path, program = bound
    report = program.placement()
    assert [node.name for node in report.nodes if node.where == "unknown"] == []
    assert (report.dims, report.shapes) == ([], [])
    found = obstacles(report)
    expected: tuple[str, ...] = PREVENTED.get(path.stem, ())
    wrong = [sentence for sentence in found if not any(words in sentence for words in expected)]
    missing = [words for words in expected if not any(words in sentence for sentence in found)]
    assert (wrong, missing) == ([], [])
    if not expected:
        assert report.partitions == 1
        assert {(node.where, node.alone) for node in report.nodes} <= {("provider", ""), ("folded", "")}


def test_a_bound_fixture_keeps_the_numbers(bound: tuple[Path, dmlc.Program]) -> None:
    """And declares the sizes of the case at its inputs."""
    path, program = bound
    feeds, expected = cases(path)[0]
    model = program.to_onnx()
    assert differences(expected, run(session(model, path.parent), feeds)) == []
    for info in model.graph.input:
        declared: list[Any] = [size.dim_value for size in info.type.tensor_type.shape.dim]
        assert declared == list(feeds[info.name].shape)


def test_compiling_a_bound_fixture_again_changes_nothing(bound: tuple[Path, dmlc.Program]) -> None:
    first = bound[1].to_onnx()
    program = dmlc.compile(first)
    assert operators(program.to_onnx()) == operators(first), [entry.rule for entry in program.ledger]


def test_how_many_fixtures_are_one_fused_graph() -> None:
    """58 of 73, and 28 of the 35 exports; of the others 6 and 4 are whole graphs that no value connects."""
    counts = {part: len(fixtures(part)) for part in ("whole", "torch")}
    if not all(counts.values()):
        pytest.skip("there is no folder of model fixtures")
    exports = [name for name in PREVENTED if name in fixtures("torch")]
    assert (sum(counts.values()) - len(PREVENTED), counts["torch"] - len(exports)) == (58, 28)
