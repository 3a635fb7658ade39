"""``dmlc repro``: a planted fault is reduced to its nodes, and the bundle shows it again."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

import dmlc
from tests.command_line import Run
from tests.debugging import test_bisect, test_locate
from tests.debugging.test_bisect import HEAD, check_of
from tests.debugging.test_locate import plant
from tests.rows import each_row
from tests.versions import NEEDS_EXACT_LAYER_NORM

pytestmark = pytest.mark.usefixtures("sessions_here")

FEEDS = test_locate.FEEDS


def wrong_model(fault: str) -> tuple[ModelProto, str]:
    made = test_locate.model()
    return made, plant(made, fault)


def run_model(made: ModelProto, feeds: Any) -> dict[str, Any]:
    return test_bisect.faulty_backend.run(made, dict(feeds))


@each_row("fault", test_locate.FAULTS)
def test_fault_is_reduced_to_its_node(fault: str) -> None:
    wrong, name = wrong_model(fault)
    found = dmlc.repro(wrong, against=test_locate.model(), inputs=FEEDS)
    assert [node.name for node in found.nodes] == [name]
    assert found.start is not None
    assert found.start.name == name
    onnx.checker.check_model(found.model, full_check=True)
    assert found.right is not None
    contents = found.bundle.files
    expected, actual = (
        run_model(onnx.load_from_string(contents[name]), found.inputs) for name in ("right.onnx", "model.onnx")
    )
    for output, array in expected.items():
        np.testing.assert_array_equal(array, found.expected[output])
        np.testing.assert_array_equal(actual[output], found.actual[output])
    assert any(not np.array_equal(array, actual[output]) for output, array in expected.items())
    assert found.model.ByteSize() < wrong.ByteSize() / 2


@pytest.mark.parametrize("fault", ["weight", "axis", "operand"])
def test_inputs_that_show_the_fault_are_made_up(fault: str) -> None:
    wrong, name = wrong_model(fault)
    assert [node.name for node in dmlc.repro(wrong, against=test_locate.model()).nodes] == [name]
    if fault == "operand":  # bisect makes them up with the same function
        found = dmlc.bisect(wrong, against=test_locate.model())
        assert found.node is not None
        assert found.node.name == name


def test_fault_that_vanishes_is_reduced_to_the_kernel() -> None:
    """The two nodes of the wrong kernel are left, at sizes of 1 and with no number of the user."""
    found = dmlc.repro(test_bisect.model(), check=check_of("fused:MatMul+Add"), inputs=test_bisect.FEEDS)
    assert [node.name for node in found.nodes] == ["product", "bias"]
    assert (found.original, found.actual) == ((), {})
    assert all(np.size(array) == 1 for array in found.inputs.values())
    assert check_of("fused:MatMul+Add")(found.model, dict(found.inputs), found.expected) is False


@each_row("value", ["m", "n", "s", "a"])
def test_fault_near_a_value_is_found(value: str) -> None:
    """The value may be one inside the wrong kernel, or before or behind it."""
    check = check_of("fused:MatMul+Add")
    found = dmlc.repro(test_bisect.model(), check=check, inputs=test_bisect.FEEDS, value=value)
    assert [node.name for node in found.nodes] == ["product", "bias"]


@pytest.mark.parametrize("value", ["a", "n", "h"])
def test_search_starts_at_a_value(value: str) -> None:
    """The node that makes the value comes first."""
    check = check_of("node:gate")
    found = dmlc.repro(test_bisect.model(), check=check, inputs=test_bisect.FEEDS, value="e")
    assert [node.name for node in found.nodes] == ["gate"]
    first = {"a": "first", "n": "bias", "h": "mix"}[value]
    found = dmlc.repro(test_bisect.model(), check=check_of(f"node:{first}"), inputs=test_bisect.FEEDS, value=value)
    assert [node.name for node in found.nodes] == [first]
    with pytest.raises(dmlc.DmlcError, match="E0446"):
        dmlc.repro(test_bisect.model(), check=check, inputs=test_bisect.FEEDS, value="none")


def test_fault_of_many_nodes_keeps_them() -> None:
    """A fault that needs three nodes is reduced to these, whatever lies between them."""

    def check(made: ModelProto, feeds: Any, expected: Any) -> bool:
        return not {"first", "sine", "join"} <= {node.name for node in made.graph.node}

    found = dmlc.repro(test_bisect.model(), check=check, inputs=test_bisect.FEEDS)
    assert {node.name for node in found.nodes} == {"first", "sine", "join"}


def test_fault_of_the_whole_model_alone() -> None:
    def check(made: ModelProto, feeds: Any, expected: Any) -> bool:
        return len(made.graph.node) < 10

    found = dmlc.repro(test_bisect.model(), check=check, inputs=test_bisect.FEEDS)
    assert len(found.nodes) == 10


def test_model_that_fails_is_reduced() -> None:
    text = f"""{HEAD} g (float[2, 4] x) => (float[8] y) <int64[1] to = {{%d}}> {{
        [a] a = Relu(x)
        [cut] b = Reshape(a, to)
        [z] y = Neg(b)
    }}"""
    right, wrong = parser.parse_model(text % 8), parser.parse_model(text % 5)
    wrong.graph.output[0].type.tensor_type.shape.Clear()
    wrong.graph.output[0].type.tensor_type.shape.dim.add()
    found = dmlc.repro(wrong, against=right, inputs={"x": np.ones((2, 4), np.float32)})
    assert [node.name for node in found.nodes] == ["cut"]
    assert found.actual == {}


def test_wrong_element_of_a_large_weight_is_kept() -> None:
    """Rows and columns without the wrong element go, all others are seeded."""
    text = f"{HEAD} g (float[4, 96] x) => (float[4, 32] y) {{ [h] h = Sin(x)\n[mm] y = MatMul(h, w) }}"
    models = [parser.parse_model(text) for _ in range(2)]
    weight = np.random.default_rng(5).standard_normal((96, 32)).astype(np.float32)
    models[0].graph.initializer.append(numpy_helper.from_array(weight, "w"))
    weight[70, 3] += np.float32(0.5)
    models[1].graph.initializer.append(numpy_helper.from_array(weight, "w"))
    found = dmlc.repro(models[1], against=models[0], inputs={"x": np.ones((4, 96), np.float32)})
    assert [node.name for node in found.nodes] == ["mm"]
    assert found.right is not None
    arrays = [numpy_helper.to_array(made.graph.initializer[0]) for made in (found.right, found.model)]
    assert int((arrays[0] != arrays[1]).sum()) == 1
    assert arrays[0].size <= 16
    kept = np.isin(arrays[0], weight) | np.isin(arrays[1], weight)
    assert int(kept.sum()) == 1


def test_backend_beside_another(wrong_gate: np.float32) -> None:
    found = dmlc.repro(test_bisect.model(), backend="cpu", against="reference", inputs=3)
    assert [node.name for node in found.nodes] == ["gate"]
    assert (found.right, found.original) == (None, ())
    for name, array in found.expected.items():
        np.testing.assert_allclose(found.actual[name], array * wrong_gate, rtol=1e-5)


def test_wrong_rewrite_of_the_compiler(wrong_tanh: dmlc.Source) -> None:
    """The bundle has the compiled model, which is wrong, and its source."""
    found = dmlc.repro(wrong_tanh)
    assert [node.operator for node in found.nodes] == ["Tanh"]
    contents = found.bundle.files
    assert [node.op_type for node in onnx.load_from_string(contents["model.onnx"]).graph.node] == ["Sin"]
    assert [node.op_type for node in onnx.load_from_string(contents["source.onnx"]).graph.node] == ["Tanh"]


def test_models_of_other_inputs() -> None:
    """There is nothing to compare; the error names the value."""
    names, why = "u y", "the other model reads u too"
    text = HEAD + " g (float[4] {0}) => (float[4] {1}) {{ a = Sin({0}) {1} = Cos(a) }}"
    models = [parser.parse_model(text.format(*each.split())) for each in ("x y", names)]
    for call in (dmlc.repro, dmlc.bisect):
        with pytest.raises(dmlc.DmlcError, match=f"E0563.*{why}"):
            call(models[0], against=models[1], inputs={"x": np.ones(4, np.float32)})
        with pytest.raises(dmlc.DmlcError, match=f"E0563.*{why}"):
            call(models[0], against=models[1])


def test_right_model_writes_nothing() -> None:
    with pytest.raises(dmlc.DmlcError, match="E0565"):
        dmlc.repro(test_locate.model(), against=test_locate.model(), inputs=FEEDS)


@NEEDS_EXACT_LAYER_NORM
def test_right_kernels_write_nothing() -> None:
    with pytest.raises(dmlc.DmlcError, match="E0565"):
        dmlc.repro(test_locate.model(), backend="cpu", against="reference", inputs=4)


# --- the bundle


def unpacked(found: dmlc.Repro, folder: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(found.to_bytes())) as archive:
        archive.extractall(folder)
    return folder


def run_bundle(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code and the output of the bundle's runner, where neither dmlc nor onnx can be loaded."""
    code = "import runpy, sys; sys.modules.update(onnx=None, dmlc=None); runpy.run_path('run.py', run_name='__main__')"
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run([sys.executable, "-c", code, *words], cwd=folder, env=env, capture_output=True, text=True)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize("fault", ["weight", "axis", "tie"])
def test_runner_shows_the_fault_again(tmp_path: Path, fault: str) -> None:
    """It loads numpy and onnxruntime alone, and exits with 1 for the wrong model."""
    wrong, _ = wrong_model(fault)
    folder = unpacked(dmlc.repro(wrong, against=test_locate.model(), inputs=FEEDS), tmp_path)
    code, out = run_bundle(folder)
    assert code == 1, out
    for part in ("the fault shows", "expected", f"numpy {np.__version__}", "installed: onnxruntime"):
        assert part in out


def test_runner_exits_with_0_for_the_right_model_and_2_for_wrong_use(tmp_path: Path) -> None:
    wrong, _ = wrong_model("weight")
    folder = unpacked(dmlc.repro(wrong, against=test_locate.model(), inputs=FEEDS), tmp_path)
    (folder / "model.onnx").write_bytes((folder / "right.onnx").read_bytes())
    code, out = run_bundle(folder)
    assert (code, "the fault does not show" in out) == (0, True), out
    assert run_bundle(folder, "--provider", "none")[0] == 2


def test_bundle_has_all_that_a_report_needs(tmp_path: Path) -> None:
    wrong, _ = wrong_model("axis")
    found = dmlc.repro(wrong, against=test_locate.model(), inputs=FEEDS)
    contents = found.bundle.files
    assert {"model.onnx", "right.onnx", "case.npz", "run.py", "report.md"} <= contents.keys()
    with np.load(io.BytesIO(contents["case.npz"])) as case:
        assert sorted({name.partition("::")[0] for name in case.files}) == ["actual", "in", "out"]
    report = contents["report.md"].decode()
    for part in ("Wrong result of Softmax", "axis = 0", "onnxruntime ", "dmlc ", "largest magnitude", "python run.py"):
        assert part in report
    (json_file,) = [name for name in contents if name.endswith(".json")]
    dispatched = json.loads(contents[json_file])
    assert dispatched["$schema"] if "$schema" in dispatched else dispatched["resources"]


def test_bundle_without_dispatches_says_why() -> None:
    wrong, _ = wrong_model("branch")
    found = dmlc.repro(wrong, against=test_locate.model(), inputs=FEEDS)
    assert not any("dxdispatch" in name for name in found.bundle.files)
    assert any("DxDispatch" in note for note in found.notes)


def test_bundle_is_the_same_each_time() -> None:
    wrong, _ = wrong_model("epsilon")
    found = [dmlc.repro(wrong, against=test_locate.model(), inputs=FEEDS).to_bytes() for _ in range(2)]
    assert found[0] == found[1]


# --- the command line


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    monkeypatch.chdir(tmp_path)
    onnx.save(test_locate.model(), "right.onnx")
    onnx.save(wrong_model("weight")[0], "wrong.onnx")
    onnx.save(test_bisect.model(), "m.onnx")
    np.savez("in.npz", **FEEDS)

    return partial(command_line, "repro")


def test_command_writes_a_bundle(run: Run) -> None:
    given = ("--input", "x=in.npz", "--input", "c=in.npz")
    code, out, err = run("wrong.onnx", "--against", "right.onnx", "-o", "bug.zip", *given)
    assert (code, err) == (0, "")
    assert "MatMul mm" in out
    assert "your own numbers in it: w" in out
    assert out.splitlines()[-1].startswith("WRITTEN bug.zip | 1 of 9 nodes | ")
    with zipfile.ZipFile("bug.zip") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == sorted(archive.namelist())
    first = Path("bug.zip").read_bytes()
    code, out, _ = run("wrong.onnx", "--against", "right.onnx", "-o", "bug.zip", *given, "--format", "json")
    document = json.loads(out)
    assert (code, [node["name"] for node in document["nodes"]], document["ok"]) == (0, ["mm"], True)
    assert document["bytes"] < 1000
    assert first == Path("bug.zip").read_bytes()


def test_command_decides_about_a_kernel(run: Run, backend: str) -> None:
    code, out, _ = run("m.onnx", "--check", f"{backend} fused:MatMul+Add", "-o", "bug.zip", "-q")
    assert (code, out.split(" | ")[1]) == (0, "2 of 10 nodes")


def test_nothing_is_written_where_no_fault_shows(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = run("right.onnx", "--against", "right.onnx", "-o", "bug.zip")
    assert (code, "E0565" in err, Path("bug.zip").exists()) == (1, True, False)
    from dmlc.debugging import reproduction

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction, "_finished", interrupted)
    code, _, _ = run(
        "wrong.onnx", "--against", "right.onnx", "-o", "bug.zip", "--input", "x=in.npz", "--input", "c=in.npz"
    )
    assert (code, Path("bug.zip").exists()) == (130, False)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("wrong.onnx", "--against", "right.onnx"), 2),
        (("wrong.onnx", "--against", "right.onnx", "-o", "bug.txt"), 2),
        (("wrong.onnx", "--against", "in.npz", "-o", "bug.zip"), 2),
        (("wrong.onnx", "--against", "none.onnx", "-o", "bug.zip"), 2),
        (("wrong.onnx", "--against", "cp", "-o", "bug.zip"), 1),
        (("wrong.onnx", "--check", "true", "-o", "bug.zip"), 2),
        (("wrong.onnx", "--against", "right.onnx", "--value", "none", "-o", "bug.zip"), 1),
        (("wrong.onnx", "--against", "right.onnx", "-o", "no/such/bug.zip"), 2),
    ],
)
def test_wrong_use(run: Run, words: tuple[str, ...], code: int) -> None:
    found, _, err = run(*words)
    assert found == code
    assert err


def test_number_of_runs_is_small() -> None:
    """One node of a long chain is found by halves, not one by one."""
    lines = "\n".join(f"[n{n}] v{n + 1} = Sin(v{n})" for n in range(300))
    made = parser.parse_model(f"{HEAD} g (float[4] v0) => (float[4] v300) {{ {lines} }}")
    found = dmlc.repro(made, check=check_of("node:n217"), inputs={"v0": np.ones(4, np.float32)})
    assert [node.name for node in found.nodes] == ["n217"]
    assert found.runs <= math.log2(300) + 12
