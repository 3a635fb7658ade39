"""``explain --node``: one node, from the source or from the metadata of a compiled model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.command_line import Run

TEXT = """\
model head(x: f32[3, 4]) -> (mean) {
    mean = reduce_mean(reduce_mean(x, axes=[0]), axes=[1])
    return mean
}
"""


@pytest.fixture
def dmlc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    """Runs a command in a folder with a program; gives exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    Path("head.dml").write_text(TEXT)
    return command_line


def test_explain_a_node_of_a_program(dmlc: Run) -> None:
    code, out, _ = dmlc("explain", "head.dml", "--node", "mean/ReduceMean")
    assert code == 0
    assert "merge-nested-reductions (reassociates)" in out
    assert "head.dml:2" in out
    found = json.loads(dmlc("explain", "head.dml", "--node", "mean/ReduceMean", "--format", "json")[1])
    assert (found["source"], found["node"], found["class"]) == ("head.dml", "mean/ReduceMean", ["reassociates"])


def test_explain_reads_back_a_node_of_a_compiled_model(dmlc: Run) -> None:
    assert dmlc("compile", "head.dml", "-o", "head.onnx", "-q")[0] == 0
    Path("head.dml").unlink()
    code, out, _ = dmlc("explain", "head.onnx", "--node", "mean/ReduceMean")
    assert code == 0
    assert re.search(r"made by +merge-nested-reductions\n", out)
    assert re.search(r"from places +head\.dml:2", out)


def test_explain_a_node_that_does_not_exist(dmlc: Run) -> None:
    code, out, err = dmlc("explain", "head.dml", "--node", "mean/ReduceMaen")
    assert (code, out) == (2, "")
    assert "there is no node 'mean/ReduceMaen' in head.dml" in err
    assert 'did you mean "mean/ReduceMean"?' in err


def test_the_name_of_a_value_leads_to_its_node(dmlc: Run) -> None:
    code, _, err = dmlc("explain", "head.dml", "--node", "mean")
    assert code == 2
    assert "there is no node 'mean' in head.dml: 'mean/ReduceMean' makes a value of that name" in err
    assert dmlc("compile", "head.dml", "-o", "head.onnx", "-q")[0] == 0
    assert "'mean/ReduceMean' makes" in dmlc("explain", "head.onnx", "--node", "mean")[2]


def test_a_node_without_a_name_is_none(dmlc: Run) -> None:
    code, out, err = dmlc("explain", "head.dml", "--node", "")
    assert (code, out) == (2, "")
    assert "there is no node '' in head.dml" in err
