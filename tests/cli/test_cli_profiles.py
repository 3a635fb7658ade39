"""``--profile``: files for combinations of sizes, their index, and the program that is chosen for what is fed."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import dmlc
from tests.command_line import Run
from tests.rows import each_row

PROGRAM = """dim batch in 1..64

model head(x: f32[batch, seq, 8], y: f32[batch, n]) -> (p, i) {
    p = softmax(x, axes=[2])
    i = argmax(y, axes=[1])
    return p, i
}
"""
MODEL = '<ir_version: 8, opset_import: ["": 17]> g (float[N, "a/b"] x) => (float[N, "a/b"] y) { y = Softmax(x) }'
PAGE = Path(__file__).parents[2] / "docs" / "profiles.md"
SIZES = {"batch": (1, 8), "seq": 16}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("head.dml").write_text(PROGRAM, encoding="utf-8")
    onnx.save(parser.parse_model(MODEL.replace('"a/b"', "ab")), "m.onnx")
    return command_line


def feeds(batch: int, seq: int, n: int = 3) -> dict[str, Any]:
    generator = np.random.default_rng(batch * 100 + seq)
    x = generator.standard_normal((batch, seq, 8)).astype(np.float32)
    return {"x": x, "y": generator.standard_normal((batch, n)).astype(np.float32)}


def declared(path: str) -> list[list[Any]]:
    inputs = onnx.load(path, load_external_data=False).graph.input
    return [[d.dim_value or d.dim_param for d in info.type.tensor_type.shape.dim] for info in inputs]


def names() -> set[str]:
    return {path.name for path in Path().iterdir()}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["batch=1,8", "seq=128"],
            {"batch1_seq128": [[1, 128, 8], [1, "n"]], "batch8_seq128": [[8, 128, 8], [8, "n"]]},
        ),
        (["seq=4"], {"seq4": [["batch", 4, 8], ["batch", "n"]]}),
        (
            ["n=2,3", "batch=5, 6"],
            {f"n{n}_batch{b}": [[b, "seq", 8], [b, n]] for n in (2, 3) for b in (5, 6)},
        ),
    ],
)
def test_one_file_for_each_combination_and_an_index(
    run: Run, words: list[str], expected: dict[str, list[list[Any]]]
) -> None:
    code, _, err = run("compile", "head.dml", "-o", "out.onnx", *[w for p in words for w in ("--profile", p)])
    assert code == 0, err
    assert names() == {"head.dml", "m.onnx", "out.profiles.json", *[f"out.{name}.onnx" for name in expected]}
    index = json.loads(Path("out.profiles.json").read_text())
    assert [p["file"] for p in index["profiles"]] == [f"out.{name}.onnx" for name in expected]
    for profile in index["profiles"]:
        shapes = declared(profile["file"])
        assert shapes == expected[profile["file"].split(".")[1]]
        for dim, size in profile["sizes"].items():
            place = index["dims"][dim]
            assert shapes["xy".index(place["input"])][place["axis"]] == size
        (facts,) = dmlc.model_facts(onnx.load(profile["file"]))
        assert json.loads(facts["profile"]) == profile["sizes"]
    assert err.count("directml, opset 21") == len(expected)


def test_every_file_is_that_of_bind(run: Run) -> None:
    assert run("compile", "head.dml", "-o", "a.onnx", "--profile", "batch=1,8", "--profile", "seq=3")[0] == 0
    for batch in (1, 8):
        assert run("compile", "head.dml", "-o", "b.onnx", "--bind", f"batch={batch}", "--bind", "seq=3")[0] == 0
        ours, bound = onnx.load(f"a.batch{batch}_seq3.onnx"), onnx.load("b.onnx")
        del ours.metadata_props[:], bound.metadata_props[:]
        assert ours.SerializeToString() == bound.SerializeToString()


def test_the_loader_of_the_page_chooses(run: Run) -> None:
    snippet, *_ = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    space: dict[str, Any] = {}
    exec(compile(snippet, "profiles.py", "exec"), space)
    assert run("compile", "head.dml", "-o", "d.onnx", "--profile", "batch=1,8", "--profile", "seq=16")[0] == 0
    loader = space["Profiles"]("d.profiles.json", providers=["CPUExecutionProvider"])
    program = dmlc.compile("head.dml", target="cpu")
    for batch in (1, 8, 1):
        given = feeds(batch, 16)
        got, wanted = loader.run(given), program.run(given)
        assert got["p"].shape == (batch, 16, 8)
        np.testing.assert_allclose(got["p"], wanted["p"], rtol=1e-5)
        np.testing.assert_array_equal(got["i"], wanted["i"])
    assert sorted(loader.sessions) == ["d.batch1_seq16.onnx", "d.batch8_seq16.onnx"]
    with pytest.raises(ValueError, match="no profile"):
        loader.run(feeds(2, 16))


@pytest.mark.parametrize("how", [lambda p: p, lambda p: pickle.loads(pickle.dumps(p)), copy.copy, copy.deepcopy])
def test_a_program_chooses_by_the_sizes_that_are_fed(run: Run, how: Callable[[Any], Any]) -> None:
    program = how(dmlc.compile("head.dml", target="cpu", profiles=SIZES))
    assert list(program.profiles) == [(("batch", b), ("seq", 16)) for b in (1, 8)]
    for sizes, used in (((8, 16), 1), ((1, 16), 0), ((2, 16), None), ((8, 5), None)):
        out = program.run(feeds(*sizes))
        assert out["p"].shape == (*sizes, 8)
        sessions = [bool(one._runners) for one in program.profiles.values()]
        assert used is None or sessions[used]
        assert used is not None or program._runners
    program.save("p.onnx")
    assert {"p.batch1_seq16.onnx", "p.batch8_seq16.onnx", "p.profiles.json"} < names()
    assert "p.onnx" not in names()


def test_feeds_that_do_not_match_are_refused_as_usual(run: Run) -> None:
    program = dmlc.compile("head.dml", target="cpu", profiles=SIZES)
    for wrong in (
        3,
        {},
        {"x": np.float32(1)},
        {"x": [[1], [2, 3]]},
        {**feeds(1, 16), "z": 1},
        {**feeds(1, 16), "x": feeds(8, 16)["x"]},
    ):
        with pytest.raises(dmlc.DmlcError, match=r"E042"):
            program.run(wrong)


def test_models_and_odd_names_of_dims(run: Run) -> None:
    model = onnx.load("m.onnx")
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.shape.dim[1].dim_param = "a/b é"
    onnx.save(model, "odd.onnx")
    code, _, err = run("compile", "odd.onnx", "-o", "o.onnx", "--profile", "a/b é=2,3", "--shape", "x=4,_")
    assert code == 0, err
    assert {"o.a_b__2.onnx", "o.a_b__3.onnx"} < names()
    assert declared("o.a_b__3.onnx") == [[4, 3]]


@each_row(
    "words",
    [
        ["--profile", "batch=1", "--profile", "batch=8"],
        ["--profile", "batch=1,1"],
        ["--profile", "batch=1", "--bind", "batch=1"],
        ["--profile", "batch=1", "--ledger", "l.json"],
        ["--profile", "batch=1", "--diff"],
        ["--profile", "batch=1", "--emit", "numpy"],
        ["--profile", "batch=1", "--emit", "dml"],
        ["--profile", "batch="],
        ["--profile", "batch"],
        ["--profile", "=1"],
        ["--profile", "batch=1,x"],
        ["--profile", "batch=-1"],
    ],
)
def test_wrong_usage_writes_nothing(run: Run, words: list[str]) -> None:
    before = names()
    assert run("compile", "head.dml", "-o", "out.onnx", *words)[0] == 2
    assert names() == before


@each_row(
    ("words", "says"),
    [
        (["--profile", "batch=1,65"], "E0555"),
        (["--profile", "bach=1"], "batch, n, seq"),
        (["--profile", "batch=0"], "E0555"),
        (["--profile", "batch=1", "--shape", "x=2,_,_"], "E0"),
    ],
)
def test_a_combination_that_fails_leaves_no_file(run: Run, words: list[str], says: str) -> None:
    before = names()
    code, _, err = run("compile", "head.dml", "-o", "out.onnx", *words)
    assert code == 1
    assert says in err
    assert names() == before


def test_a_file_that_cannot_be_written_leaves_no_file(run: Run) -> None:
    Path("out.batch8.onnx").mkdir()
    before = names()
    assert run("compile", "head.dml", "-o", "out.onnx", "--profile", "batch=1,8")[0] == 2
    assert names() == before
    assert run("compile", "head.dml", "-o", "missing/out.onnx", "--profile", "batch=1,8")[0] == 2
    assert run("compile", "head.dml", "-o", "out.onnx", "--profile", "batch=2", "--dry-run")[0] == 0
    assert names() == before


def test_sources_are_spared(run: Run) -> None:
    Path("m.onnx").rename("o.N2.onnx")
    data = Path("o.N2.onnx").read_bytes()
    assert run("compile", "o.N2.onnx", "-o", "o.onnx", "--profile", "N=1,2")[0] == 2
    assert Path("o.N2.onnx").read_bytes() == data


def with_weights(folder: Path) -> Path:
    folder.mkdir()
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N, 64] x) => (float[N, 64] y) { y = MatMul(x, w) }'
    )
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, folder / "w.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    return folder / "w.onnx"


@pytest.mark.parametrize("placement", ["default", "inline", "copy"])
def test_weights_elsewhere_are_held_once(run: Run, placement: str, tmp_path: Path) -> None:
    source = with_weights(tmp_path / "source")
    words = [] if placement == "default" else ["--weights", placement]
    Path("out.profiles.0123456789abcdef.data").write_bytes(b"of someone else")
    assert run("compile", str(source), "-o", "out.onnx", "--profile", "N=1,2,3", *words)[0] == 0
    data = [path for path in Path().glob("out.*.data") if path.stat().st_size > 100]
    assert len(data) == (0 if placement == "inline" else 1)
    assert len(list(Path().glob("out.*.data"))) == len(data) + 1
    x = np.ones((2, 64), np.float32)
    wanted = dmlc.compile(source, target="cpu").run({"x": x})["y"]
    np.testing.assert_allclose(dmlc.compile("out.N2.onnx", target="cpu").run({"x": x})["y"], wanted, rtol=1e-5)
    here = source.parent / "here.onnx"
    assert run("compile", str(source), "-o", str(here), "--profile", "N=1,2", "--weights", "reference")[0] == 0
    assert not list(source.parent.glob("here.*.data"))


def test_the_document_has_every_profile(run: Run) -> None:
    words = ["--profile", "batch=1,8", "--verify", "2", "--format", "json"]
    code, out, _ = run("compile", "head.dml", "-o", "out.onnx", *words)
    found = json.loads(out)
    assert (code, found["ok"], found["written"], found["output"]) == (0, True, True, "out.profiles.json")
    assert [row["sizes"] for row in found["profiles"]] == [{"batch": 1}, {"batch": 8}]
    assert all(Path(row["file"]).stat().st_size == row["bytes"] for row in found["profiles"])
    assert len(found["verification"]) == 2


@each_row(
    "profiles",
    [[1], "batch", {"batch": "1"}, {"batch": []}, {"batch": True}, {"batch": (1, 1)}, {"batch": (1.5,)}, {1: (1,)}],
)
def test_python_refuses_other_types(run: Run, profiles: Any) -> None:
    with pytest.raises(dmlc.DmlcError, match="E0555"):
        dmlc.compile("head.dml", profiles=profiles)


def test_open_dims_have_suggested_sizes(run: Run) -> None:
    (facts,) = dmlc.model_facts(dmlc.compile("head.dml").to_onnx())
    assert json.loads(facts["session"])["suggested_sizes"] == {"batch": [1, 64]}
    (facts,) = dmlc.model_facts(dmlc.compile("head.dml", bind={"batch": 2}).to_onnx())
    assert "suggested_sizes" not in json.loads(facts["session"])
