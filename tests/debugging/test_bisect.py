"""``dmlc bisect``: the node with which a fault comes in, also one that vanishes when a value becomes an output."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import dmlc
from dmlc.debugging.cuts import CutChoice
from dmlc.debugging.submodels import NodeGraph
from tests.command_line import Run
from tests.debugging import faulty_backend
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("sessions_here")

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
#: Two towers that meet, with a pattern for a fused kernel in each and a value that both read.
TEXT = f"""{HEAD} g (float[2, 4] x, float[2, 4] z) => (float[2, 4] y, float[2, 4] s)
<float[4, 4] w, float[4] b> {{
    [first] a = Relu(x)
    [product] m = MatMul(a, w)
    [bias] n = Add(m, b)
    [sine] s = Sin(n)
    [left] c = Cos(a)
    [other] d = MatMul(c, w)
    [gate] e = Sigmoid(d)
    [join] f = Mul(s, e)
    [mix] h = Sub(f, z)
    [last] y = Tanh(h)
}}"""
FEEDS = {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4), "z": np.full((2, 4), 0.25, np.float32)}
NODES = ["first", "product", "bias", "sine", "left", "other", "gate", "join", "mix", "last"]


def model(text: str = TEXT) -> ModelProto:
    made = parser.parse_model(text)
    arrays = {"w": np.linspace(-1, 1, 16).reshape(4, 4), "b": np.linspace(0, 1, 4)}
    del made.graph.initializer[:]
    made.graph.initializer.extend(numpy_helper.from_array(x.astype(np.float32), n) for n, x in arrays.items())
    return made


def check_of(fault: str, seen: list[ModelProto] | None = None) -> Callable[..., bool | None]:
    """A check in this process that finds the fault as the faulty backend does."""

    def check(made: ModelProto, feeds: dict[str, Any], expected: Mapping[str, Any]) -> bool | None:
        onnx.checker.check_model(made, full_check=True)
        if seen is not None:
            seen.append(made)
        try:
            found = faulty_backend.run(faulty_backend.broken(made, fault), feeds)
        except Exception:
            return None
        return all(np.allclose(found[name], array, equal_nan=True) for name, array in expected.items())

    return check


def bound(found: Any) -> int:
    return math.floor(math.log2(found.nodes) + 2 + found.width)


@each_row("from_end", [False, True])
@each_row("name", NODES)
def test_wrong_node_is_found(name: str, from_end: bool) -> None:
    seen: list[ModelProto] = []
    found = dmlc.bisect(model(), check=check_of(f"node:{name}", seen), inputs=FEEDS, from_end=from_end)
    assert found.node is not None
    assert (found.status, found.node.name) == ("found", name)
    assert found.alone is True
    assert [node.name for node in found.region] == [name]
    assert len(seen) == found.runs <= bound(found)
    assert found.width == 1 or any(len(step.cut) == found.width for step in found.steps)


@pytest.mark.parametrize("from_end", [False, True])
def test_fault_that_vanishes_when_its_value_is_an_output(from_end: bool) -> None:
    """``--locate`` finds nothing, as it makes the value an output; the cut keeps the kernel whole."""
    check = check_of("fused:MatMul+Add")
    exposed = model()
    exposed.graph.output.append(helper.make_tensor_value_info("m", TensorProto.FLOAT, (2, 4)))
    assert check(exposed, FEEDS, faulty_backend.run(exposed, FEEDS)) is True
    found = dmlc.bisect(model(), check=check, inputs=FEEDS, from_end=from_end)
    assert found.node is not None
    assert found.node.name == ("product" if from_end else "bias")
    assert [node.name for node in found.region] == ["product", "bias"]
    assert (found.hidden, found.alone) == (("m",), False)
    assert found.runs <= bound(found)


def test_no_other_outputs_enter_a_part() -> None:
    """A value is an output of a part only if a node outside of it reads it, or if it is one of the whole model."""
    seen: list[ModelProto] = []
    dmlc.bisect(model(), check=check_of("node:join", seen), inputs=FEEDS)
    graph = NodeGraph(model())
    for made in seen:
        names = {node.name for node in made.graph.node}
        for info in made.graph.output:
            readers = {graph.protos[n].name for n in graph.readers.get(info.name, ())}
            assert graph.is_result(info.name) or readers - names


def random_model(rng: np.random.Generator, size: int) -> ModelProto:
    """A graph of random form in which every value reaches an output."""
    values, nodes, unread = ["x"], [], []
    for number in range(size):
        operator = str(rng.choice(["Sin", "Add", "Mul", "Cos"]))
        arity = 2 if operator in ("Add", "Mul") else 1
        near = values[-1 - int(rng.integers(0, min(len(values), 4)))]
        read = [near, values[int(rng.integers(len(values)))]][:arity]
        nodes.append(helper.make_node(operator, read, [f"v{number}"], f"n{number}"))
        unread = [name for name in unread if name not in read] + [f"v{number}"]
        values.append(f"v{number}")
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (3,)) for name in unread]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3,))]
    made = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), ir_version=10)
    made.opset_import[0].version = 21
    return made


@each_row("seed", range(12))
def test_any_node_of_a_random_graph_is_found_within_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = random_model(rng, int(rng.integers(2, 40)))
    feeds = {"x": rng.standard_normal(3).astype(np.float32)}
    name = f"n{rng.integers(len(made.graph.node))}"
    for from_end in (False, True):
        found = dmlc.bisect(made, check=check_of(f"node:{name}"), inputs=feeds, from_end=from_end)
        if found.status == "found":
            assert found.node is not None
            assert found.node.name == name
        else:  # an addition of 1 may be lost on the way to all outputs
            assert found.status == "not shown"
        assert found.runs <= bound(found)


@each_row("seed", range(6))
@each_row("size", [1, 2, 3, 7, 64, 200])
def test_number_of_cuts_and_order_of_each(seed: int, size: int) -> None:
    """For all answers each cut has all that it depends on, and log2 of the nodes are enough."""
    rng = np.random.default_rng(seed)
    graph = NodeGraph(random_model(rng, size))
    choice, below, above = CutChoice(graph), frozenset[int](), frozenset(range(size))
    asked = 0
    while len(above) - len(below) > 1:
        left = len(above) - len(below)
        half = 1 << ((left - 1).bit_length() - 1)
        cut = choice.best(below, above, left - half, half, ())
        assert cut is not None
        assert below < cut.part < above
        assert graph.ancestors(cut.part) == cut.part
        assert cut.width == graph.crossing(cut.part)
        below, above = (cut.part, above) if rng.integers(2) else (below, cut.part)
        asked += 1
    assert asked <= math.ceil(math.log2(size)) if size > 1 else asked == 0


def test_narrow_cut_is_chosen() -> None:
    """Near the middle the cut is taken where a single value crosses."""
    wide = "\n".join(f"a{n} = Sin(j)" for n in range(6)) + "\ny = Sum(a0, a1, a2, a3, a4, a5)"
    text = f"{HEAD} g (float[3] x) => (float[3] y) {{ b = Sin(x)\nc = Cos(x)\nd = Add(b, c)\nj = Relu(d)\n{wide} }}"
    graph = NodeGraph(parser.parse_model(text))
    cut = CutChoice(graph).best(frozenset(), frozenset(range(len(graph))), 2, 8, ())
    assert cut is not None
    assert (sorted(cut.part), cut.width) == ([0, 1, 2, 3], 1)


def test_fault_that_does_not_show() -> None:
    found = dmlc.bisect(model(), check=check_of("node:none"), inputs=FEEDS)
    assert (found.status, found.runs, found.node) == ("not shown", 1, None)
    assert [diagnostic.code.id for diagnostic in found.diagnostics] == ["E0565"]
    assert dmlc.bisect(model(), backend="cpu", against="reference").status == "not shown"


def test_skipped_models_leave_a_range() -> None:
    """Models that end in the middle of three nodes cannot be checked; the others tell that the fault is there."""
    right = check_of("node:other")

    def check(made: ModelProto, feeds: dict[str, Any], expected: dict[str, Any]) -> bool | None:
        names = {node.name for node in made.graph.node}
        return None if names & {"left", "other", "gate"} not in (set(), {"left", "other", "gate"}) else right(
            made, feeds, expected
        )  # fmt: skip

    found = dmlc.bisect(model(), check=check, inputs=FEEDS)
    assert (found.status, found.node) == ("range", None)
    assert [node.name for node in found.region] == ["left", "other", "gate"]
    assert [diagnostic.code.id for diagnostic in found.diagnostics] == ["E0566"]


def test_skipped_model_is_gone_round() -> None:
    right, asked = check_of("node:gate"), []

    def check(made: ModelProto, feeds: dict[str, Any], expected: dict[str, Any]) -> bool | None:
        asked.append(len(made.graph.node))
        return None if len(asked) == 2 else right(made, feeds, expected)

    found = dmlc.bisect(model(), check=check, inputs=FEEDS)
    assert found.node is not None
    assert found.node.name == "gate"
    assert found.steps[0].status == "skip"


def test_backend_that_refuses_the_model() -> None:
    """A part that does not run is bad if the whole model does not run."""
    text = TEXT.replace("[join] f = Mul(s, e)", "[cut] k = Reshape(e, to) [join] f = Mul(s, k)")
    made = model(text.replace("<float[4, 4] w", "<int64[1] to = {8}, float[4, 4] w"))
    made.graph.initializer.append(numpy_helper.from_array(np.array([8]), "to"))

    def check(part: ModelProto, feeds: dict[str, Any], expected: dict[str, Any]) -> bool:
        return not any(node.op_type == "Sigmoid" for node in part.graph.node)

    made.graph.node[8].input[1] = "e"
    found = dmlc.bisect(made, check=check, inputs=FEEDS)
    assert found.node is not None
    assert found.node.name == "gate"


def test_wrong_rewrite_of_the_compiler(wrong_tanh: dmlc.Source) -> None:
    """Without a backend the parts of a program are compared with what they compile to."""
    found = dmlc.bisect(wrong_tanh)
    assert found.node is not None
    assert found.node.operator == "Tanh"
    assert found.feeds is not None


def test_sequence_at_a_cut_is_not_fed() -> None:
    text = f"""{HEAD} g (float[4] x) => (float[4] y) {{
        [a] a = Sin(x)
        [seq] q = SequenceConstruct(a, x)
        [b] b = Cos(a)
        [at] t = SequenceAt(q, k)
        [add] y = Add(t, b)
    }}"""
    made = parser.parse_model(text)
    made.graph.initializer.append(numpy_helper.from_array(np.array(0), "k"))
    feeds = {"x": np.ones(4, np.float32)}
    for name, from_end in (("b", False), ("b", True), ("at", False), ("add", False)):
        found = dmlc.bisect(made, check=check_of(f"node:{name}"), inputs=feeds, from_end=from_end)
        assert found.node is not None
        assert found.node.name == name


# --- the command line


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    monkeypatch.chdir(tmp_path)
    onnx.save(model(), "m.onnx")
    np.savez("in.npz", **FEEDS)

    return partial(command_line, "bisect")


GIVEN = ("--input", "x=in.npz", "--input", "z=in.npz")


def test_command_of_the_user_is_the_check(run: Run, backend: str) -> None:
    code, out, _ = run("m.onnx", "--check", f"{backend} fused:MatMul+Add", *GIVEN)
    lines = out.splitlines()
    assert code == 0
    assert lines[-1].startswith("FOUND | Add bias | ")
    assert "as outputs these values hide the fault: m" in out
    assert "MatMul product" in out
    code, out, _ = run("m.onnx", "--check", f"{backend} fused:MatMul+Add", "--format", "json")
    document = json.loads(out)
    assert (code, document["node"]["name"], document["hidden"]) == (0, "bias", ["m"])
    runs = int(document["summary"].split(" | ")[2].split()[0])
    assert document["runs"] == runs <= math.log2(10) + 2 + document["width"]
    assert run("m.onnx", "--check", f"{backend} node:gate", "-q")[1].startswith("FOUND | Sigmoid gate | ")


def test_exit_codes_of_the_command(run: Run) -> None:
    code, out, err = run("m.onnx", "--check", "true {model}")
    assert (code, out.count("the fault does not show"), err, out.splitlines()[-1][:18]) == (
        1,
        1,
        "",
        "NOT SHOWN | 1 run ",
    )
    assert "help: dmlc explain E0565" in out
    code, _, err = run("m.onnx", "--check", "exit 125; {model}")
    assert (code, "E0563" in err) == (1, True)
    for command in ("no-such-command {model}", "kill -9 $$; {model}", "exit 128; {model}"):
        code, _, err = run("m.onnx", "--check", command)
        assert (code, "E0568" in err) == (1, True)
    assert run("m.onnx", "--check", "true")[0] == 2
    assert run("m.onnx", "--check", "true {model}", "--backend", "cpu")[0] == 2
    code, out, err = run("m.onnx", "--check", "exit 2; {model}")  # bad, whatever is cut
    assert (code, out.splitlines()[-1][:19]) == (0, "FOUND | Relu first ")


def test_search_goes_on_from_its_state(run: Run, backend: str) -> None:
    command = f"{backend} node:gate"
    whole = run("m.onnx", "--check", command, *GIVEN, "--state", "s.json", "--format", "json")[1]
    kept = json.loads(Path("s.json").read_text())
    for count in (1, len(kept["runs"]) - 1):  # as after an interrupt: some runs are known
        Path("s.json").write_text(json.dumps({**kept, "runs": dict([*kept["runs"].items()][:count])}))
        Path("counted").write_text("")
        again = run(
            "m.onnx", "--check", f"echo >> counted; {command}", *GIVEN, "--state", "s.json", "--format", "json"
        )[1]
        a, b = json.loads(whole), json.loads(again)
        assert {**a, "seconds": 0, "summary": ""} == {**b, "seconds": 0, "summary": ""}
        assert len(Path("counted").read_text()) == len(kept["runs"]) - count
        assert json.loads(Path("s.json").read_text()) == kept
    Path("s.json").write_text(json.dumps(kept))
    # no run is needed any more, so that the command may be on another machine
    assert run("m.onnx", "--check", "exit 1 {model}", *GIVEN, "--state", "s.json")[0] == 0
    code, _, err = run("m.onnx", "--check", command, "--seed", "1", "--state", "s.json")
    assert (code, "E0567" in err) == (1, True)
    for text in ("", "{}", "[]", '{"runs": 3}'):
        Path("s.json").write_text(text)
        code, _, err = run("m.onnx", "--check", command, *GIVEN, "--state", "s.json")
        assert (code, "E0567" in err) == (1, True)


def test_interrupt_leaves_the_runs_that_were_made(run: Run, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dmlc.debugging import checks

    original, calls = checks._run, []

    def interrupted(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(checks, "_run", interrupted)
    command = f"{backend} node:gate"
    assert run("m.onnx", "--check", command, *GIVEN, "--state", "s.json")[0] == 130
    assert len(json.loads(Path("s.json").read_text())["runs"]) == 2
    assert sorted(path.name for path in Path().iterdir()) == ["in.npz", "m.onnx", "s.json"]
    assert run("m.onnx", "--check", command, *GIVEN, "--state", "s.json")[0] == 0


@pytest.mark.usefixtures("wrong_gate")
def test_backend_beside_another(run: Run) -> None:
    """A wrong operator of the reference is found by ONNX Runtime, and the other way round."""
    for sides in (("cpu", "--against", "reference"), ("cpu:numpy",)):
        code, out, _ = run("m.onnx", "--backend", *sides, "--inputs", "3")
        assert code == 0, out
        assert out.splitlines()[-1].startswith("FOUND | Sigmoid gate | ")
        assert "of the largest value" in out


def test_weight_that_is_one_bit_off_when_no_difference_is_allowed(run: Run) -> None:
    moved = model()
    (weight,) = [tensor for tensor in moved.graph.initializer if tensor.name == "b"]
    array = numpy_helper.to_array(weight)
    weight.CopyFrom(numpy_helper.from_array(np.nextafter(array, np.float32(9)), "b"))
    onnx.save(moved, "moved.onnx")
    words = ("moved.onnx", "--against", "m.onnx", *GIVEN)
    assert run(*words)[0] == 1
    code, out, _ = run(*words, "--exact", "-q")
    assert (code, out.split(" | ")[:2]) == (0, ["FOUND", "Add bias"])
    assert run(*words, "--exact", "--atol", "1")[0] == 2


@each_row(
    ("words", "code"),
    [
        (("m.onnx", "--backend", "cp"), 1),
        (("m.onnx", "--backend", "cpu:cp"), 1),
        (("m.onnx", "--backend", "cpu:reference", "--against", "reference"), 2),
        (("m.onnx", "--backend", "cpu", "--against", "cpu:reference"), 1),
        (("m.onnx", "--against", "m.onnx"), 1),
        (("none.onnx", "--backend", "cpu"), 2),
        (("m.onnx", "--backend", "cpu", "--inputs", "0"), 2),
        (("m.onnx", "--backend", "cpu", "--rtol", "-1"), 2),
        (("in.npz", "--backend", "cpu"), 2),
        (("m.onnx", "--check", "true {model}", "--input", "x=in.npz"), 1),
        (("m.onnx", "--backend", "cpu", "--state", "no/such/folder/s.json"), 2),
    ],
)
def test_wrong_use(run: Run, words: tuple[str, ...], code: int) -> None:
    found, out, err = run(*words)
    assert found == code
    assert err or "E0565" in out
