"""``explain --missed``: near misses, first those that would save most."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.cli.main import main
from dmlc.cli.near_misses import near_misses

#: Near misses of one, two and five nodes, in the order of the least first, and one of a pattern that is not whole.
TEXT = """\
model m(x: f32[4, 8], n: f32[4, 8]) -> (a, b, c) {
    a = reduce_max(reduce_min(n, axes=[0]), axes=[1])
    e = exp(x)
    b = e / reduce_sum(e, axes=[1])
    d = x - reduce_mean(x, axes=[1])
    c = d / sqrt(reduce_mean(d * d, axes=[1]) + 0.00001)
    return a, b, c
}
"""
ATTENTION = """<ir_version: 8, opset_import: ["": 17]>
g (float[2, 4, 24] q, float[2, 4, 24] k, float[2, 4, 24] v, float[2, 3] m) => (float[2, 4, 24] y, float[1, 1] z)
<int64[4] heads = {2, 4, 3, 8}, int64[3] joined = {2, 4, 24}, float scale = {0.25}> {
    q4 = Reshape(q, heads)
    k4 = Reshape(k, heads)
    v4 = Reshape(v, heads)
    qt = Transpose<perm = [0, 2, 1, 3]>(q4)
    kt = Transpose<perm = [0, 2, 3, 1]>(k4)
    vt = Transpose<perm = [0, 2, 1, 3]>(v4)
    s = MatMul(qt, kt)
    scaled = Mul(s, scale)
    p = Softmax<axis = -1>(scaled)
    o = MatMul(p, vt)
    t = Transpose<perm = [0, 2, 1, 3]>(o)
    y = Reshape(t, joined)
    r = ReduceMin<axes = [0]>(m)
    z = ReduceMax<axes = [1]>(r)
}"""
Documents = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Documents:
    """The near misses in JSON, whose order is that of the text."""
    monkeypatch.chdir(tmp_path)
    Path("m.dml").write_text(TEXT)
    onnx.save(parser.parse_model(ATTENTION), "attention.onnx")

    def call(*argv: str) -> list[dict[str, Any]]:
        capsys.readouterr()
        assert main(["explain", *argv, "--missed", "--format", "json"]) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["missed"]
        assert main(["explain", *argv, "--missed"]) == 0
        lines = capsys.readouterr().out
        text = " ".join(lines.split())
        assert re.findall(r"^  (\S+) at (.+?):[ \n]", lines, re.MULTILINE) == [(m["rule"], m["node"]) for m in found]
        for one in found:
            if one["saves"] and " save " not in one["reason"]:
                assert f"{one['reason']} (would save {one['saves']} node" in text
        return found

    return call


def test_what_would_save_most_comes_first(missed: Documents) -> None:
    found = missed("m.dml", "--exact", "--target", "onnx")
    saves = [-1 if one["saves"] is None else one["saves"] for one in found]
    assert saves == sorted(saves, reverse=True)
    assert len(set(saves)) > 2
    best = {one["rule"]: one["saves"] for one in reversed(found)}
    assert best["merge-nested-reductions"] == 1
    assert found[0]["saves"] > 2
    assert found[0]["places"][0].startswith("m.dml:6")


@pytest.mark.parametrize("target", ["onnx", "cpu"])
def test_what_a_near_miss_would_save_is_what_it_saves_when_it_fires(target: str, missed: Documents) -> None:
    """The rewrites that --exact leaves out, each made alone."""
    from dmlc.cli.counts import nodes_after

    exact = dmlc.compile("m.dml", target=target, exact=True)
    before = nodes_after(exact).total()
    tried = 0
    for miss in near_misses(exact):
        if "only exact rewrites are allowed" not in miss.reason or not miss.saves:
            continue
        others = {m.rule for m in near_misses(exact)} - {miss.rule}
        after = nodes_after(dmlc.compile("m.dml", target=target, skip_rules=sorted(others))).total()
        assert before - after >= miss.saves, miss
        tried += 1
    assert tried


def test_a_rule_that_knows_what_it_saves_is_believed(missed: Documents) -> None:
    found = missed("attention.onnx")
    assert [one["rule"] for one in found] == ["multi-head-attention", "merge-nested-reductions"]
    assert found[0]["saves"] == int(re.findall(r"save at least (\d+)", found[0]["reason"])[0]) > 1


def test_a_rewrite_that_costs_more_saves_nothing(missed: Documents) -> None:
    Path("log.dml").write_text(
        "model m(x: f32[4, 8]) -> (y) {\n    y = log(reduce_sum(exp(x), axes=[1]))\n    return y\n}\n"
    )
    for target in ("directml", "onnx"):
        for one in missed("log.dml", "--target", target, "--allow", "range"):
            if "no fewer than" in one["reason"]:
                assert one["saves"] == 0


def test_the_fault_that_a_rule_repairs_is_its_reason(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "m.dml").write_text("model m(x: f32[4]) -> (y) {\n    return gelu(x, approximate=tanh)\n}\n")
    assert main(["explain", str(tmp_path / "m.dml")]) == 0
    assert "because DirectML computes the erf form of GELU" in capsys.readouterr().out


def test_a_fault_of_an_operator_that_the_model_lacks_is_no_reason(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = '<ir_version: 10, opset_import: ["" : 20]> m (float[4] x) => (float[4] y) { y = Gelu (x) }'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    assert main(["explain", str(tmp_path / "m.onnx")]) == 0
    printed = capsys.readouterr().out
    assert "because DirectML's provider has com.microsoft.Gelu" in printed
    assert "erf form" not in printed
