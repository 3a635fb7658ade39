"""choose-lowering: what is chosen, by which costs, what is said of it, and where nothing is chosen."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from pass_helpers import Building, names
from search_helpers import check, chosen, fired, one, operators

import dmlc
from dmlc import builder
from dmlc.cli.main import main
from dmlc.ops.select import ARGMAX, HARDMAX
from dmlc.passes.choose_lowering import ChooseLowering
from dmlc.passes.inventory import all_rules
from dmlc.passes.manager import PassContext, PassManager
from dmlc.passes.options import Options
from dmlc.passes.pipeline import default_pipeline
from dmlc.targets import load_target, target_names
from tests.rows import each_row

BIG = "dml 1\nmodel m(x: f32[1024, 4096]) -> (y: u32[1024, 1]) {\n    return argmax(x, axes=[1])\n}\n"


@each_row("target", target_names())
def test_only_a_target_with_costs_chooses(target: str) -> None:
    order = [step.name for step in default_pipeline(load_target(target), Options()).passes]
    assert ("choose-lowering" in order) is (target == "cpu")
    if target == "cpu":
        assert order.index("choose-lowering") < order.index("lower-hardmax") < order.index("legalize")


@pytest.mark.usefixtures("by_one_calibration")
def test_the_pass_keeps_its_word() -> None:
    """The manager checks the graph after it, and that it says whether it changed anything."""
    for op, shape, axes in ((ARGMAX, (512, 512), [0]), (ARGMAX, (3, 4), [0]), (HARDMAX, (8, 32, 8, 64), [1, 3])):
        b = Building()
        graph = b.done(b(op, b.input("x", shape), axes=axes))
        context = PassContext(load_target("cpu"), 21, Options(exact=True), verify=True)
        PassManager((ChooseLowering(),)).run(graph, context)
        assert (names(graph) == ["argmax"]) is (shape == (3, 4))


def test_without_costs_the_pass_does_nothing() -> None:
    b = Building()
    graph = b.done(b(ARGMAX, b.input("x", (512, 512)), axes=[0]))
    context = PassContext(load_target("directml"), 21, verify=True)
    PassManager((ChooseLowering(),)).run(graph, context)
    assert names(graph) == ["argmax"]
    assert context.remarks == []


def test_what_was_chosen_and_what_it_was_chosen_from_is_said() -> None:
    program = one("argmax", (1024, 4096), [1])
    (remark,) = [r for r in program.remarks if r.chosen]
    assert (remark.rule, remark.node) == ("choose-lowering", "y/ArgMax")
    first, _, others = remark.reason().partition(", rather than ")
    assert first.startswith("blocked-argmax ") and first.endswith(" us")
    assert [part.split(" ")[0] for part in others.split("; ")] == [
        "unchanged", "fine-blocked-argmax:", "inner-first-argmax:",
    ]  # fmt: skip
    assert re.fullmatch(r"unchanged [\d.]+ ms", others.split("; ")[0])
    assert "inner-first-argmax: the axes are adjacent" in others


def test_explain_prints_the_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "big.dml"
    source.write_text(BIG)
    assert main(["explain", str(source), "--target", "cpu"]) == 0
    text = capsys.readouterr().out
    assert "lowerings, with their estimated costs on one thread\n  y/ArgMax: blocked-argmax " in text
    assert "1 blocked-argmax (same bits): " in text
    assert main(["explain", str(source), "--target", "cpu", "--format", "json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["lowerings"][0]["node"] == "y/ArgMax"
    assert "rather than unchanged" in page["lowerings"][0]["choice"]
    assert page["missed"] == []
    assert main(["explain", str(source)]) == 0
    assert "lowerings" not in capsys.readouterr().out


def test_plans_are_rules_by_name() -> None:
    rules = {rule.name: rule for rule in all_rules() if "choose-lowering" in rule.passes}
    assert {"blocked-argmax", "hardmax-by-places", "max-of-blocks"} <= set(rules)
    assert "unchanged" not in rules
    assert all(rule.optional and rule.summary.endswith(".") for rule in rules.values())
    assert rules["blocked-argmax"].rewrite_class == "exact"


def test_a_plan_that_is_left_out_is_not_chosen() -> None:
    shape, axes = (8, 32, 8, 64), [1, 3]
    assert fired(one("argmax", shape, axes))[0] == "blocked-argmax"
    without = one("argmax", shape, axes, skip_rules=["blocked-argmax"])
    assert "blocked-argmax" not in fired(without)
    assert re.search(r"(?<!-)blocked-argmax", chosen(without)[0]) is None


def test_a_plan_that_is_asked_for_is_taken_at_any_cost() -> None:
    program = one("argmax", (4, 6), [1], only_rules=["blocked-argmax"])
    assert fired(program) == ["blocked-argmax"]
    assert "rather than unchanged" in chosen(program)[0]
    assert fired(one("argmax", (4, 6), [1], only_rules=[])) == []


@pytest.mark.usefixtures("by_one_calibration")
def test_open_sizes_take_what_is_never_dearer() -> None:
    """A batch of any size: a row is long enough to be searched in blocks even where there is but one."""
    program = one("argmax", ("n", 256, 512), [1, 2])
    assert fired(program)[0] == "blocked-argmax"
    assert " to " in chosen(program)[0].partition(",")[0]
    check(program, *[{"x": np.random.default_rng(n).integers(0, 9, (n, 256, 512)).astype(np.float32)} for n in (1, 3)])
    # With one row the blocks are dearer, with many cheaper: it is left unchanged.
    program = one("argmax", ("n", 1024), [1])
    assert fired(program) == []
    assert chosen(program)[0].startswith("unchanged ")
    # Known bounds decide.
    assert fired(one("argmax", ("n", 1024), [1], dims={"n": (512, 4096)}))[0] == "blocked-argmax"
    assert fired(one("argmax", ("n", 1024), [1], bind={"n": 512}))[0] == "blocked-argmax"


@pytest.mark.usefixtures("by_one_calibration")
def test_graphs_inside_nodes_are_chosen_for_too() -> None:
    import onnx

    make, float_ = onnx.helper, onnx.TensorProto.FLOAT
    index = make.make_tensor_value_info("i", onnx.TensorProto.INT64, [512])
    branches = [
        make.make_graph([make.make_node(kind, ["x"], ["i"], axis=0, keepdims=0)], kind, [], [index])
        for kind in ("ArgMax", "ArgMin")
    ]
    node = make.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    c = make.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])
    x = make.make_tensor_value_info("x", float_, [512, 512])
    y = make.make_tensor_value_info("y", onnx.TensorProto.INT64, [512])
    graph = make.make_graph([node], "g", [c, x], [y])
    program = dmlc.compile(
        make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8), target="cpu"
    )
    assert fired(program).count("blocked-argmax") >= 2
    data = np.random.default_rng(0).integers(0, 9, (512, 512)).astype(np.float32)
    for truth, search in ((True, np.argmax), (False, np.argmin)):
        found = program.run({"c": np.array(truth), "x": data}, backend="cpu")["y"]
        np.testing.assert_array_equal(found, search(data, axis=0))


def test_the_numpy_code_of_a_cpu_program_is_not_changed() -> None:
    graph = builder.Graph("g")
    graph.output("y", builder.argmax(graph.input("x", dtype="f32", shape=[64, 4096]), axes=[1]))
    assert dmlc.compile(graph, target="cpu").to_numpy() == dmlc.compile(graph, target="numpy").to_numpy()
    assert "ReduceMax" not in operators(dmlc.compile(graph, target="onnx"))
