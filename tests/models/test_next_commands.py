"""The command that ``compile`` says comes next is true: run as it is, it makes the fused graphs that it promises."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from models.fixture_parameters import WHOLE_MODELS

from dmlc.cli.main import main

PROMISE = re.compile(
    r"(?:(\d+) fused graphs? of (\d+) nodes?, )?(?:(\d+) nodes? not fused, )?(?:(\d+) nodes?|nothing) on the CPU"
)


#: The models of the suite, one for each kind of answer: sizes by name or by place, one to three of
#: them, one fused graph or several, nodes that are not fused, nodes on the CPU, warnings, and nothing left to do.
NAMES = (
    "beam_search.ts16", "bert_tiny_op14", "centernet_decode.dyn20", "ctc_greedy_op13", "encodec.ts17",
    "fw_silero_vad_v6", "gmm_mixture.ts14", "losses.dyn18", "moe_router.ts17", "odd_norms.dyn21", "sk_gpr_op16",
    "sk_kmeans_op13", "sk_knn_op15", "sk_logreg_scaler_op12", "slot_attention.dyn20", "stat_pool_op17_fp16",
    "surfaces_knr", "yolo_head.dyn20",
)  # fmt: skip


@pytest.mark.parametrize("path", WHOLE_MODELS)
def test_the_next_command_makes_what_it_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def document(*argv: str) -> dict:
        capsys.readouterr()
        assert main([*argv]) == 0
        return json.loads(capsys.readouterr().out)

    compiled = document("compile", str(path), "-o", "out.onnx", "--format", "json", "-q")
    left = [found["help"] for found in compiled["diagnostics"] if "dmlc compile" in found["help"]]
    assert left == [], "the command that a help of check gives leaves what it is about"
    steps = compiled["next"]
    for step in steps:
        promise = PROMISE.fullmatch(step["effect"])
        assert promise is not None, step
        words = shlex.split(step["command"])
        assert words[0] == "dmlc"
        made = document(*words[1:])
        nodes = document("check", "out.onnx", "--format", "json")["nodes"]
        alone = sum(node["where"] == "provider" and bool(node["alone"]) for node in nodes)
        fused = sum(node["partition"] is not None for node in nodes)
        graphs, on_cpu = made["after"]["fused_graphs"], made["after"]["on_cpu"]
        assert [graphs, fused, alone, on_cpu] == [int(text or 0) for text in promise.groups()]
        assert made["next"] == [] or made["next"] != steps


def test_a_bert_with_three_dynamic_sizes_is_one_fused_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tools.fixture_folder import fixtures

    path = fixtures("torch").get("bert_sdpa.dyn23")
    if path is None:
        pytest.skip("there is no folder of model fixtures")
    monkeypatch.chdir(tmp_path)
    assert main(["compile", str(path), "-o", "out.onnx"]) == 0
    err = capsys.readouterr().err
    assert re.search(
        r"^  nodes on the CPU +34 +7   shape computations, because s33, s50 and s6 are dynamic$", err, re.M
    )
    assert re.search(r"^  CPU/GPU copies +31 +0$", err, re.M)
    assert "--bind s33=1 --bind s50=64 --bind s6=1\n            1 fused graph of 75 nodes, nothing on the CPU\n" in err
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text("utf-8").split())
    assert "has 34 nodes on the CPU and 31 CPU/GPU copies. Compiled it has 7 and none" in readme
    assert "with fixed sizes it is one fused graph of 75 nodes" in readme
