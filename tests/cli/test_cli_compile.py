"""The output of `compile` and `explain`: the table, the diff, the ledger, rules by name, near misses, progress."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlc
from dmlc import api
from dmlc.cli.console import human_bytes
from dmlc.cli.main import main
from dmlc.cli.progress import Progress
from dmlc.verifying import Verdict
from tests.command_line import Run
from tests.rows import each_row

PROGRAM = """\
model head(x: f32[4, 8]) -> (mean, twice) {
    mean = reduce_sum(reduce_sum(x, axes=[0]), axes=[1])
    twice = reduce_max(reduce_min(x, axes=[0]), axes=[1])
    return mean, twice
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a program and a model in it."""
    monkeypatch.chdir(tmp_path)
    Path("head.dml").write_text(PROGRAM)
    onnx.save(small_model(), "small.onnx")
    return tmp_path


def small_model() -> onnx.ModelProto:
    """Two sums of which one is the other's, a max of a min, and a weight of 64 numbers."""
    weight = np.arange(64, dtype=np.float32).reshape(8, 8) + 0.125
    zero, one = np.array([0], np.int64), np.array([1], np.int64)
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["h"], name="dense"),
        helper.make_node("ReduceSum", ["h", "zero"], ["s"], name="inner_sum"),
        helper.make_node("ReduceSum", ["s", "one"], ["y"], name="outer_sum"),
        helper.make_node("ReduceMin", ["h", "zero"], ["m"], name="inner_min"),
        helper.make_node("ReduceMax", ["m", "one"], ["z"], name="outer_max"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1]) for name in ("y", "z")],
        [numpy_helper.from_array(a, n) for a, n in ((weight, "weight"), (zero, "zero"), (one, "one"))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def document(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output)
    assert found["schema"] == 1
    return found


def row(text: str, name: str) -> list[str]:
    """The cells of a row of the table."""
    (line,) = [line for line in text.splitlines() if re.match(rf"\s*{re.escape(name)}\s\s", line)]
    return line.strip()[len(name) :].split()


# --- the table


def test_the_table_of_a_model(command_line: Run) -> None:
    code, out, err = command_line("compile", "small.onnx", "-o", "out.onnx", "-v")
    assert (code, out) == (0, "")
    assert err.startswith("out.onnx: directml, opset 21, 4 nodes, all on the GPU, 1 fused graph, ")
    assert row(err, "nodes") == ["5", "4"]
    assert row(err, "ReduceSum") == ["2", "1"]
    assert row(err, "ReduceMin") == ["1", "1"]
    assert row(err, "nodes on the CPU") == ["0", "0"]
    assert " ".join(row(err, "fused graphs")) == "2 1 1 node fused, 3 not: batch is dynamic"
    assert row(err, "GPU dispatches") == ["5", "4"]
    assert row(err, "opset") == ["18", "21"]
    assert row(err, "seconds")
    err = command_line("compile", "small.onnx", "-o", "out.onnx")[2]
    assert row(err, "GPU dispatches") == ["5", "4"]
    assert "nodes on the CPU" not in err, "it did not change"
    assert "ReduceSum" not in err, "operators are shown by -v"
    assert "  rewritten: 1 merge-nested-reductions; opset 18 -> 21\n" in err


def test_a_quiet_compilation_makes_no_comparison(command_line: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("only what is printed is computed")

    monkeypatch.setattr("dmlc.cli.model_comparison.compare", refuse)
    monkeypatch.setattr("dmlc.cli.next_steps.later_steps", refuse)
    for source in ("small.onnx", "head.dml"):
        assert command_line("compile", source, "-o", "out.onnx", "-q") == (0, "", "")
    code, _, err = command_line("compile", "small.onnx", "-o", "out.onnx")
    assert (code, "only what is printed is computed" in err) == (3, True)


def test_the_table_leaves_out_what_did_not_change(command_line: Run) -> None:
    command_line("compile", "small.onnx", "-o", "out.onnx", "--bind", "batch=4")
    err = command_line("compile", "out.onnx", "-o", "again.onnx")[2]
    assert "before" not in err
    assert err.startswith("again.onnx: directml, opset 21, 4 nodes in 1 fused graph, 1.")
    assert "next:" not in err, "nothing is left to do"


def test_amounts_are_compared_at_the_sizes_of_the_next_command(command_line: Run) -> None:
    """``x`` is [batch, 8]: at batch=1 the product reads and writes 8 numbers, and 64 of the weight."""
    err = command_line("compile", "small.onnx", "-o", "out.onnx", "--only-rule", "cse")[2]
    assert "bytes moved" not in err, "it did not change"
    err = command_line("compile", "small.onnx", "-o", "out.onnx")[2]
    product, axes = (8 + 64 + 8) * 4, 8
    sums = [(8 + 8) * 4 + axes, (8 + 1) * 4 + axes]
    before = product + 2 * sum(sums)
    after = before - sum(sums) + (8 + 1) * 4 + 2 * axes
    assert row(err, "bytes moved") == [str(before), "B", str(after), "B", "at", "batch=1"]


def test_the_next_command_has_the_sizes_of_the_inputs(command_line: Run) -> None:
    np.save("x.npy", np.zeros((6, 8), np.float32))
    err = command_line("compile", "small.onnx", "-o", "out.onnx", "--input", "x=x.npy")[2]
    (step,) = re.findall(r"next: dmlc (.+)", err)
    assert step.endswith(" --input x=x.npy --bind batch=6")
    assert row(err, "bytes moved")[-1] == "batch=6"
    assert command_line(*step.split())[0] == 0
    checked = command_line("check", "small.onnx", "--input", "x=x.npy")[1]
    assert re.findall(r"--bind \S+", checked) == ["--bind batch=6"]


def test_arrays_that_no_input_takes_are_refused_before_anything_is_written(command_line: Run) -> None:
    np.save("x.npy", np.zeros((6, 8, 2), np.float32))
    for given, code in (("x=x.npy", "E0425"), ("z=x.npy", "E0423"), ("x=nosuch.npy", "E0420")):
        assert code in command_line("compile", "small.onnx", "-o", "no.onnx", "--input", given)[2]
    usage = command_line("compile", "small.onnx", "-o", "no.onnx", "--input", "x=x.npy", "--profile", "batch=1,2")
    assert (usage[0], "--profile prints none" in usage[2]) == (2, True)
    assert not Path("no.onnx").exists()


def test_each_number_that_rises_has_a_reason(command_line: Run) -> None:
    """DirectML has no kernel for Gelu in its tanh form; written out it is more nodes."""
    text = (
        '<ir_version: 9, opset_import: ["": 20]> g (float[4] x) => (float[4] y) { y = Gelu<approximate = "tanh">(x) }'
    )
    onnx.save(onnx.parser.parse_model(text), "gelu.onnx")
    err = command_line("compile", "gelu.onnx", "-o", "out.onnx")[2]
    assert row(err, "nodes on the CPU") == ["1", "0"]
    (nodes,) = re.findall(r"^  nodes +1 +(\d+)   (.*)$", err, re.MULTILINE)
    assert nodes[1] == "1 Gelu in operators that DirectML has"
    assert re.search(r"^  GPU dispatches +0 +\d+   1 node came from the CPU$", err, re.MULTILINE)
    assert re.search(r"^  fused graphs +0 +1   \d+ nodes fused$", err, re.MULTILINE)
    assert re.search(r"^  file size .*B   [\d.]+ k?B more of ", err, re.MULTILINE)


LINE = re.compile(
    r"(?P<out>\S+): directml, opset (?P<opset>\d+), (?P<nodes>\d+) nodes in 2 fused graphs, "
    r"\d+ dispatch(es)?, [\d.]+ k?B, \d+\.\d\d s"
)


def test_one_line_for_a_program(command_line: Run) -> None:
    """A program is the source: it is not compared with itself."""
    code, out, err = command_line("compile", "head.dml")
    assert (code, out) == (0, "")
    found = LINE.fullmatch(err.splitlines()[0])
    assert found is not None, err
    assert (found["out"], found["nodes"]) == ("head.onnx", "3")
    assert "before" not in err
    assert re.fullmatch(
        r"head.py: numpy, 3 operations, [\d.]+ kB, \d.\d\d s\n", command_line("compile", "head.dml", "-o", "head.py")[2]
    )


def test_the_table_of_a_program(command_line: Run) -> None:
    """Before is what the target needs, with no other rewrite."""
    err = command_line("compile", "head.dml", "-v")[2]
    assert row(err, "ReduceSum") == ["2", "1"]
    # each of the first reads 128 and writes 32, each of the second reads 32 and writes 4; all read their axes
    assert row(err, "bytes moved")[:2] == [str(2 * (128 + 32 + 32 + 4) + 4 * 8), "B"]
    assert command_line("compile", "head.dml", "-q") == (0, "", "")
    assert "nodes" not in command_line("compile", "head.dml", "-o", "head.py")[2].partition("\n")[2]


def test_a_program_that_uses_a_model_is_compared_with_that_model(command_line: Run) -> None:
    """Before are the five nodes of the model, which no rewrite touched, and the one of the head."""
    Path("use.dml").write_text(
        'use small from "small.onnx"\nmodel m(x: f32[batch, 8]) -> (y) {\n    y, _ = small(x)\n    return exp(y)\n}\n'
    )
    found = document(command_line("compile", "use.dml", "--format", "json", "-q")[1])
    assert found["before"]["nodes"]["ReduceSum"] == 2
    assert found["before"]["nodes"]["Exp"] == 1
    assert (found["before"]["opset"], found["after"]["opset"]) == (18, 21)
    assert found["after"]["nodes"]["ReduceSum"] == 1
    assert row(command_line("compile", "use.dml")[2], "nodes")[0] == str(found["before"]["total"])


def test_the_table_as_json(command_line: Run) -> None:
    code, out, err = command_line("compile", "small.onnx", "-o", "out.onnx", "--format", "json", "--bind", "batch=4")
    assert code == 0
    assert re.fullmatch(r"out.onnx: directml, opset 21, 4 nodes in 1 fused graph, [^\n]*\n", err)
    found = document(out)
    assert found["before"]["nodes"] == {"ReduceSum": 2, "MatMul": 1, "ReduceMax": 1, "ReduceMin": 1}
    assert (found["before"]["total"], found["after"]["total"]) == (5, 4)
    assert (found["before"]["opset"], found["after"]["opset"]) == (18, 21)
    assert found["before"]["bytes"] == Path("small.onnx").stat().st_size
    assert found["after"]["bytes"] == Path("out.onnx").stat().st_size == found["bytes"]
    assert isinstance(found["after"]["bytes_moved"], int)
    placed = {key: found["after"][key] for key in ("on_cpu", "copies", "fused_graphs")}
    assert placed == {"on_cpu": 0, "copies": 0, "fused_graphs": 1}
    assert found["seconds"] > 0
    assert (found["written"], found["rewrites"], found["next"]) == (True, 1, [])
    found = document(command_line("compile", "small.onnx", "-o", "out.onnx", "--format", "json", "-q")[1])
    assert "batch" in found["after"]["bytes_moved"]
    (step,) = found["next"]
    assert step["command"] == "dmlc compile small.onnx -o out.onnx --format json -q --bind batch=1"
    assert step["effect"] == "1 fused graph of 3 nodes, nothing on the CPU"
    assert found["after"]["fused_graphs"] == 1
    again = document(command_line(*step["command"].split()[1:])[1])
    assert (again["after"]["fused_graphs"], again["after"]["total"], again["after"]["on_cpu"]) == (1, 3, 0)


def test_the_requirements_of_a_model(command_line: Run) -> None:
    found = document(command_line("compile", "small.onnx", "-o", "out.onnx", "--format", "json")[1])
    assert found["requires"]["opset"] == 21
    assert found["requires"]["feature_level"] == "5.0"
    (facts,) = dmlc.model_facts(onnx.load("out.onnx"))
    assert json.loads(facts["requires"]) == found["requires"]
    for verb in ("check", "inspect"):
        assert document(command_line(verb, "out.onnx", "--format", "json")[1])["requires"] == found["requires"]
    assert "\nrequires ONNX Runtime 1.19, opset 21, feature level 5.0\n" in command_line("inspect", "out.onnx")[1]
    written = document(command_line("inspect", "head.dml", "--format", "json")[1])["requires"]
    assert (written["opset"], written["feature_level"]) == (21, "5.0")
    older = document(command_line("compile", "small.onnx", "-o", "out.onnx", "--opset", "17", "--format", "json")[1])
    assert older["requires"] == {"onnxruntime": "1.12", "opset": 17, "feature_level": "5.0", "device_types": []}
    assert "requires" not in command_line("compile", "small.onnx", "-o", "out.onnx", "--opset", "17")[2]
    assert "  requires ONNX Runtime " in command_line("compile", "small.onnx", "-o", "out.onnx")[2]
    cpu = document(command_line("compile", "small.onnx", "-o", "o.onnx", "--target", "cpu", "--format", "json")[1])
    assert cpu["requires"] == {"onnxruntime": "1.18", "opset": 21, "feature_level": None, "device_types": []}
    assert cpu["after"]["on_cpu"] is None


@each_row(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (9995, "10.0 kB"), (999_499, "999 kB"), (999_500, "1.00 MB"),
     (12_345_678, "12.3 MB"), (4 * 2**30, "4.29 GB"), (5 * 10**15, "5000 TB")],
)  # fmt: skip
def test_bytes_for_people(number: int, text: str) -> None:
    assert human_bytes(number) == text


# --- dry runs, diffs


def test_a_dry_run_writes_nothing(command_line: Run, folder: Path) -> None:
    before = sorted(folder.iterdir())
    code, out, err = command_line("compile", "small.onnx", "--dry-run", "--ledger", "l.json")
    assert (code, out) == (0, "")
    assert err.startswith("dry run: directml, ")
    assert row(err, "nodes")[:2] == ["5", "4"]
    assert "not written" in command_line("compile", "head.dml", "--dry-run")[2]
    found = document(command_line("compile", "head.dml", "--dry-run", "-o", "-", "--format", "json")[1])
    assert found["written"] is False
    assert sorted(folder.iterdir()) == before


def test_the_diff(command_line: Run) -> None:
    code, out, err = command_line("compile", "small.onnx", "-o", "out.onnx", "--diff", "-q")
    assert (code, err) == (0, "")
    assert Path("out.onnx").exists()
    lines = out.splitlines()
    assert lines[:2] == ["--- as written", "+++ compiled"]
    assert any(line.startswith("-") and "reduce_sum" in line and "axes=[0]" in line for line in lines)
    assert any(line.startswith("+") and "reduce_sum(h)" in line for line in lines)
    assert "0.125" not in out
    found = document(command_line("compile", "small.onnx", "--dry-run", "--diff", "--format", "json")[1])
    assert found["diff"] == out
    Path("plain.dml").write_text("model m(x: f32[4]) -> (y) {\n    return abs(x)\n}\n")
    assert command_line("compile", "plain.dml", "--dry-run", "--diff", "-q") == (0, "", "")


# --- rules


def test_list_rules_needs_no_source(command_line: Run) -> None:
    code, out, err = command_line("compile", "--list-rules")
    assert (code, err) == (0, "")
    assert re.search(r"^merge-nested-reductions +by case +canonicalize-reduce", out, re.MULTILINE)
    assert re.search(r"^lower-hardmax +exact \*", out, re.MULTILINE)
    found = document(command_line("compile", "--list-rules", "--format", "json")[1])
    rules = {rule["rule"]: rule for rule in found["rules"]}
    assert rules["cse"] == {
        "rule": "cse", "class": "exact", "by_case": False, "optional": True, "passes": ["cse"],
        "summary": "Merge nodes that compute the same.",
    }  # fmt: skip


def test_rules_by_name(command_line: Run) -> None:
    def operators(*argv: str) -> list[str]:
        assert command_line("compile", "small.onnx", "-o", "out.onnx", "-q", *argv) == (0, "", "")
        return [node.op_type for node in onnx.load("out.onnx").graph.node]

    assert operators().count("ReduceSum") == 1
    assert operators("--exact").count("ReduceSum") == 2
    assert operators("--skip-rule", "merge-nested-reductions").count("ReduceSum") == 2
    assert operators("--only-rule", "cse").count("ReduceSum") == 2
    assert operators("--only-rule", "cse", "--only-rule", "merge-nested-reductions").count("ReduceSum") == 1


@each_row(
    ("argv", "text"),
    [
        (["--skip-rule", "merge-nested"], 'did you mean "merge-nested-reductions"?'),
        (["--only-rule", "dec"], 'did you mean "dce"?'),
        (["--skip-rule", "lower-hardmax"], "cannot be skipped"),
        (["--skip-rule", "fold-constants"], "its rules are fold, "),
    ],
)
def test_rules_that_do_not_exist(command_line: Run, argv: list[str], text: str) -> None:
    for verb in ("compile", "explain", "check"):
        output = ["-o", "out.onnx"] if verb == "compile" else []
        code, out, err = command_line(verb, "small.onnx", *output, *argv)
        assert (code, out) == (2, "")
        assert text in err
    assert not Path("out.onnx").exists()


# --- the ledger


def test_the_ledger(command_line: Run) -> None:
    assert command_line("compile", "small.onnx", "-o", "out.onnx", "--ledger", "l.json", "-q")[0] == 0
    found = document(Path("l.json").read_text(encoding="utf-8"))
    assert (found["model"], found["target"], found["opset"]) == ("small", "directml", 21)
    (merge,) = [entry for entry in found["rewrites"] if entry["rule"] == "merge-nested-reductions"]
    assert (merge["class"], merge["before"]) == ("reassociates", ["outer_sum", "inner_sum"])
    assert len(merge["after"]) == 1
    assert command_line("compile", "head.dml", "--ledger", "l.json", "-q")[0] == 0
    entries = document(Path("l.json").read_text())["rewrites"]
    assert any(place.startswith("head.dml:2:") for entry in entries for place in entry["places"])


def test_the_ledger_is_written_whole_or_not_at_all(command_line: Run, folder: Path) -> None:
    before = sorted(folder.iterdir())
    for ledger in ("no/such/l.json", str(folder)):
        code, _, err = command_line("compile", "small.onnx", "-o", "out.onnx", "--ledger", ledger)
        assert code == 2
        assert "error[E0421]" in err
        assert sorted(folder.iterdir()) == before


# --- usage


@each_row(
    "argv",
    [
        ["compile"],
        ["compile", "small.onnx"],
        ["compile", "small.onnx", "-o", "small.onnx"],
        ["compile", "small.onnx", "-o", "./small.onnx"],
        ["compile", "small.onnx", "-o", "link.onnx"],
        ["compile", "small.onnx", "-o", "-", "--diff"],
        ["compile", "small.onnx", "-o", "-", "--format", "json"],
        ["compile", "small.onnx", "-o", "out.onnx", "--ledger", "out.onnx"],
        ["compile", "small.onnx", "-o", "out.onnx", "--ledger", "small.onnx"],
        ["compile", "small.onnx", "-o", "out.onnx", "--ledger", "-"],
        ["compile", "small.onnx", "-o", "out.onnx", "--weights", "elsewhere"],
        ["compile", "small.onnx", "-o", "out.onnx", "--verify", "0"],
        ["compile", "small.onnx", "-o", "out.onnx", "--verify", "many"],
    ],
    ids=" ".join,
)
def test_wrong_usage(command_line: Run, folder: Path, argv: list[str]) -> None:
    Path("link.onnx").unlink(missing_ok=True)
    Path("link.onnx").symlink_to("small.onnx")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    code, out, err = command_line(*argv)
    assert (code, out) == (2, "")
    assert err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_model_as_a_program(command_line: Run) -> None:
    """Weights lie beside it; what it compiles to is the same."""
    code, out, err = command_line("compile", "small.onnx", "-o", "text.dml")
    assert (code, out) == (0, "")
    assert err.startswith("text.dml: directml, ")
    assert 'load("text.npz"' in Path("text.dml").read_text()
    assert command_line("compile", "text.dml", "-q")[0] == 0
    assert sorted(n.op_type for n in onnx.load("text.onnx").graph.node) == [
        "MatMul", "ReduceMax", "ReduceMin", "ReduceSum",
    ]  # fmt: skip


def test_a_model_to_stdout(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["compile", "small.onnx", "-o", "-", "--bind", "batch=3"]) == 0
    made = onnx.load_from_string(capfdbinary.readouterr().out)
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 3


@pytest.mark.parametrize("ok", [True, False])
def test_nothing_is_written_where_verifying_finds_a_difference(
    command_line: Run, monkeypatch: pytest.MonkeyPatch, ok: bool
) -> None:
    verdict = Verdict("equal" if ok else "different", ("exact",), seed=7, inputs=3, ran=3, reason="planted")
    asked: list[tuple[int, int]] = []

    def verify(self: object, number: int, *, seed: int, written: Path | None = None) -> Verdict:
        asked.append((number, seed))
        return verdict

    monkeypatch.setattr(api.Program, "verify", verify, raising=False)
    argv = ("compile", "small.onnx", "-o", "out.onnx", "--ledger", "l.json", "--verify", "3", "--verify-seed", "7")
    code, out, err = command_line(*argv)
    assert (code, out, asked) == (0 if ok else 1, "", [(3, 7)])
    assert verdict.to_text() in err
    assert [Path(name).exists() for name in ("out.onnx", "l.json")] == [ok, ok]


@pytest.mark.parametrize("status", ["equal", "different", "not verified"])
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_one_document_whatever_the_verdict(
    command_line: Run, monkeypatch: pytest.MonkeyPatch, status: str, options: tuple[str, ...]
) -> None:
    verdict = Verdict(status, ("exact",), seed=7, inputs=3, ran=3, reason="planted")
    monkeypatch.setattr(api.Program, "verify", lambda *_, **__: verdict)
    code, out, _ = command_line(
        "compile", "small.onnx", "-o", "out.onnx", "--verify", "3", "--format", "json", *options
    )
    found = document(out)
    assert code == (0 if verdict.ok else 1)
    assert (found["command"], found["ok"], found["verification"]) == ("compile", verdict.ok, verdict.to_json())
    assert found["written"] == (verdict.ok and not options) == Path("out.onnx").exists()


# --- explain


def test_explain_a_model(command_line: Run) -> None:
    code, out, err = command_line("explain", "small.onnx")
    assert (code, err) == (0, "")
    assert out.startswith("small for directml: 5 nodes as written, 4 after\n")
    assert "\n  1 merge-nested-reductions (rounding may change): " in out
    assert "      outer_sum, inner_sum -> " in out
    assert "      reduce_sum of reduce_sum\n" in command_line("explain", "small.onnx", "-v")[1]
    reason = "reduce_max of reduce_min is not a single reduction (would save 1 node)"
    assert f" merge-nested-reductions at outer_max: {reason}" in " ".join(out.split())
    found = document(command_line("explain", "small.onnx", "--format", "json")[1])
    assert found["nodes"] == {"before": 5, "after": 4}
    (entry,) = [entry for entry in found["rewrites"] if entry["rule"] == "merge-nested-reductions"]
    assert entry["before"] == ["outer_sum", "inner_sum"]
    misses = [(m["rule"], m["node"]) for m in found["missed"]]
    assert misses.count(("merge-nested-reductions", "outer_max")) == 1


SHAPES = """
<ir_version: 8, opset_import: ["": 17]>
g (float[N, 4] x) => (float[N, 2, 2] y)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] half = {2}, float[4] k = {1, 2, 3, 4}> {
    s = Shape (x)  n = Gather (s, zero)  m = Gather (s, one)  h = Div (m, half)  t = Concat <axis = 0> (n, h, half)
    c = Exp (k)  i = Identity (x)  a = Mul (i, c)  y = Reshape (a, t)
}
"""


def test_each_removed_node_has_a_reason(command_line: Run) -> None:
    """In ``explain``, in the ledger, in what the model carries, and so in ``diff``."""
    model = onnx.parser.parse_model(SHAPES)
    for node in model.graph.node:
        node.name = node.output[0]
    onnx.save(model, "shapes.onnx")
    out = command_line("explain", "shapes.onnx")[1]
    assert "\n  2 shape computations: every size but N is known\n      m, h\n" in out
    assert "\n  1 node that passes its input on\n      i\n" in out
    found = document(command_line("explain", "shapes.onnx", "--format", "json")[1])
    removed = {row["cause"]: row["nodes"] for row in found["removed"]}
    assert removed == {"known-shapes": ["m", "h"], "passed-on": ["i"]}
    err = command_line("compile", "shapes.onnx", "-o", "out.onnx", "--ledger", "l.json")[2]
    assert "  rewritten: 2 shape computations, " in err
    ledger = document(Path("l.json").read_text(encoding="utf-8"))
    assert ledger["removed"] == found["removed"]
    gone = {node.name or node.output[0] for node in onnx.load("shapes.onnx").graph.node}
    gone -= {node.name or node.output[0] for node in onnx.load("out.onnx").graph.node}
    told = {name for row in ledger["removed"] for name in row["nodes"]}
    assert gone <= told | {name for row in ledger["rewrites"] for name in row["before"]}
    code, out, _ = command_line("diff", "shapes.onnx", "out.onnx")
    assert code == 1
    assert "\n-m = Gather(s, one)  # 2 shape computations: every size but N is known\n" in out
    assert "\n-h = Div(m, half)  # 2 shape computations: every size but N is known\n" in out
    assert "\n-i = Identity(x)  # 1 node that passes its input on\n" in out


def test_explain_says_what_a_class_forbids(command_line: Run) -> None:
    out = command_line("explain", "small.onnx", "--exact")[1]
    assert "merge-nested-reductions at outer_sum: it reassociates: rounding may differ" in out


def test_explain_shortens_long_lists_of_nodes(command_line: Run) -> None:
    made = small_model()
    for i in range(9):
        made.graph.node.append(helper.make_node("Exp", ["x"], [f"unused{i}"], name=f"unused_{i}"))
    onnx.save(made, "small.onnx")
    out = command_line("explain", "small.onnx", "--skip-rule", "cse")[1]
    assert "      unused_0, unused_1, unused_2, unused_3, unused_4, unused_5 and 3 more -> nothing\n" in out
    assert "unused_8" in command_line("explain", "small.onnx", "--skip-rule", "cse", "-v")[1]


# --- progress


class Clock:
    """Stands for the event that ends the watch: ``waits`` turns of the loop, and no time passes."""

    def __init__(self, waits: int) -> None:
        self.waits = waits
        self.asked: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.asked.append(seconds)
        return len(self.asked) > self.waits

    def set(self) -> None:
        pass


@pytest.mark.parametrize("waits", [0, 2])
def test_progress(waits: int, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress("big.onnx", shown=True)
    progress._done = clock = Clock(waits)  # type: ignore[assignment]
    progress("fold-constants")
    with progress:
        pass
    err = capsys.readouterr().err
    assert err.count("\r\x1b[Kbig.onnx: 0 s, fold-constants") == waits
    assert err.endswith("\r\x1b[K") or not waits
    assert clock.asked[0] >= 1  # a pass that is done soon prints nothing


def test_progress_only_on_a_terminal(command_line: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[bool] = []
    monkeypatch.setattr(Progress, "__enter__", lambda self: shown.append(self.shown) or self)
    monkeypatch.setattr(Progress, "__exit__", lambda self, *_: None)
    command_line("compile", "head.dml")
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    monkeypatch.setenv("TERM", "xterm")
    command_line("compile", "head.dml")
    command_line("compile", "head.dml", "-q")
    monkeypatch.setenv("TERM", "dumb")
    command_line("compile", "head.dml")
    assert shown == [False, True, False, False]


def test_data_of_another_model_beside_a_dxdispatch_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, dtype in (("a", "f16"), ("b", "i64")):
        (tmp_path / f"{name}.dml").write_text(f"model m(x: {dtype}[4, 5]) -> (y) {{\n    return argmax(x)\n}}\n")
    out = str(tmp_path / "out.dxdispatch.json")
    assert main(["compile", str(tmp_path / "a.dml"), "-o", out, "-q"]) == 0
    assert main(["compile", str(tmp_path / "b.dml"), "-o", out, "-q"]) == 1
    said = capsys.readouterr().err
    assert "E0424" in said and "x.npy" in said and "remove" in said
    (tmp_path / "out.dxdispatch" / "x.npy").unlink()
    assert main(["compile", str(tmp_path / "b.dml"), "-o", out, "-q"]) == 0


def test_what_is_not_known_is_said(command_line: Run) -> None:
    inputs, outputs = "float[B, 8] x", "float[B, 8] y, float[B, 8] z"
    text = f'<ir_version: 8, opset_import: ["": 99]> g ({inputs}) => ({outputs}) {{ y = Frob(x) z = Relu(x) }}'
    onnx.save(onnx.parser.parse_model(text), "new.onnx")
    code, out, err = command_line("compile", "new.onnx", "-o", "out.onnx")
    said = out + err
    assert code == 0
    assert "opset 99 is newer than the installed onnx" in said
    assert "ONNX has no operator Frob at opset" in said
    assert "nothing on the CPU" not in said and "1 node where nobody knows" in said


def test_folded_nodes_are_not_on_the_gpu(command_line: Run) -> None:
    text = "(float[2] x) => (float[2] y) <float[2] c = {1, 2}> { d = Add(c, c) y = Add(x, d) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}'), "folded.onnx")
    first = command_line("check", "folded.onnx")[1].splitlines()[0]
    assert first.endswith("its 1 node on the GPU in 1 fused graph, 1 folded while loading")


def test_facts_of_a_compiled_model_are_read_by_people(command_line: Run) -> None:
    assert command_line("compile", "small.onnx", "-o", "out.onnx", "-q")[0] == 0
    page = command_line("inspect", "out.onnx")[1].partition("compiled by dmlc")[2]
    assert "rewrites  " in page
    assert "enable_mem_pattern false" in " ".join(page.split())
    assert "{" not in page and '"' not in page
