"""Fixtures with all sizes fixed: one fused graph wholly on DirectML, or the operators that prevent it are named."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from models.compiled_fixture import CompiledFixture
from models.fixture_parameters import of_whole_models

import dmlc
from dmlc.placement.requirements import obstacles
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
    "sk_logreg_scaler_op12": ("no kernel for ai.onnx.ml.LinearClassifier",),
    "retinanet.ts15": ("turns fusion off", "no kernel for NonMaxSuppression"),
    "ssd.ts14": ("turns fusion off", "no kernel for NonMaxSuppression"),
}


def shapes_of(path: Path) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in cases(path)[0][0].items()}


@of_whole_models
def test_a_bound_fixture_is_one_fused_graph_or_names_what_prevents_it(compiled: CompiledFixture) -> None:
    """It keeps the numbers, declares the sizes of the case at its inputs, and compiled again is as it was."""
    path = compiled.path
    program = dmlc.compile(path, shapes=shapes_of(path))
    model = program.to_onnx()
    feeds, results = cases(path)[0]
    again = dmlc.compile(model)
    before, after = operators(model), operators(again.to_onnx())
    wrong = {
        "placement": _misplaced(program, PREVENTED.get(path.stem, ())),
        "numbers": differences(results, run(session(model, path.parent), feeds)),
        "sizes": [info.name for info in model.graph.input if _declared(info) != list(feeds[info.name].shape)],
        "again": "" if before == after else f"{before - after} became {after - before} by {again.ledger}",
    }
    assert {what: found for what, found in wrong.items() if found} == {}


def _declared(info: onnx.ValueInfoProto) -> list[int]:
    return [size.dim_value for size in info.type.tensor_type.shape.dim]


def _misplaced(program: dmlc.Program, expected: tuple[str, ...]) -> list[str]:
    """Describe what differs from one fused graph on DirectML, or from the sentences with the ``expected`` words."""
    report = program.placement()
    wrong = [f"unknown: {node.name}" for node in report.nodes if node.where == "unknown"]
    wrong += [f"open: {size}" for size in (*report.dims, *report.shapes)]
    found = obstacles(report)
    wrong += [sentence for sentence in found if not any(words in sentence for words in expected)]
    wrong += [f"missing: {words}" for words in expected if not any(words in sentence for sentence in found)]
    if not expected:
        wrong += [f"{report.partitions} fused graphs"] if report.partitions != 1 else []
        together = {("provider", ""), ("folded", "")}
        wrong += [f"apart: {node.name}" for node in report.nodes if (node.where, node.alone) not in together]
    return wrong


def test_how_many_fixtures_are_one_fused_graph() -> None:
    """60 of 73, and 28 of the 35 exports; of the others 6 and 4 are whole graphs that no value connects."""
    counts = {part: len(fixtures(part)) for part in ("whole", "torch")}
    if not all(counts.values()):
        pytest.skip("there is no folder of model fixtures")
    exports = [name for name in PREVENTED if name in fixtures("torch")]
    assert (sum(counts.values()) - len(PREVENTED), counts["torch"] - len(exports)) == (60, 28)
