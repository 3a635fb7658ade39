"""``use`` lines: defs and consts of other files, their paths, and what is wrong with them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from text_helpers import errors, source

import dmlc
from dmlc import text
from dmlc.diagnostics import DmlcError, Source
from dmlc.ops.constant import CONSTANT
from tests.rows import each_row

MODEL = "model m(x: f32[N, 4]) -> (y) {\n    return f(x)\n}\n"
BLOCKS = """use inner from "deep/inner.dml"

dim Q in 1..4

const scale: f32[] = 0.5

def f(x) {
    return helper(x) + inner(x)
}

def helper(x) {
    return x * scale
}

def sized(x) {
    return reshape(x, shape=[Q])
}

model m(x: f32[R]) -> (y) {
    return x
}
"""
INNER = """const scale: f32[] = 3

def inner(x) {
    return helper(x)
}

def helper(x) {
    return x * scale
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "blocks.dml").write_text(BLOCKS)
    (tmp_path / "deep" / "inner.dml").write_text(INNER)
    return tmp_path


def of(folder: Path, program: str, **options: object) -> dmlc.Program:
    (folder / "head.dml").write_text(program)
    return dmlc.compile(folder / "head.dml", **options)


X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.mark.parametrize("target", ["directml", "cpu", "onnx", "numpy"])
def test_defs_and_consts_see_their_own_file(folder: Path, target: str) -> None:
    head = """use f as g, scale as half from "blocks.dml"
use inner from "deep/inner.dml"

const scale: f32[] = 100

def helper(x) {
    return x + scale
}

def f(x) {
    return helper(g(x)) + inner(x) * half
}

"""
    program = of(folder, head + MODEL, target=target)
    for backend in ("reference", "numpy", "cpu") if target == "numpy" else ("cpu", "reference"):
        found = program.run({"x": X}, backend=backend)["y"]
        np.testing.assert_allclose(found, X * 0.5 + X * 3 + 100 + X * 3 * 0.5)
    again = dmlc.compile(Source("again.dml", program.to_bytes("dml").decode()), target=target)
    assert "use" not in program.to_bytes("dml").decode()
    np.testing.assert_array_equal(again.run({"x": X})["y"], program.run({"x": X})["y"])


def test_a_const_is_held_once_whatever_it_is_called(folder: Path) -> None:
    (folder / "a.dml").write_text("const w: f32[4] = [1, 2, 3, 4]\ndef f(x) {\n    return x * w\n}\n")
    graph = of(folder, 'use f, w as v from "a.dml"\nuse w from "a.dml"\n' + MODEL.replace("f(x)", "f(x) + v + w"))
    assert sum(node.op is CONSTANT for node in graph.source_graph) == 1


def test_consts_of_one_name_stay_apart_in_every_form(folder: Path) -> None:
    for name, first in (("one", 1), ("two", 2)):
        (folder / name).mkdir()
        (folder / name / "same.dml").write_text(
            f"const w: f32[4] = [{first}, 2, 3, 4]\n\ndef f(x) {{\n    return x * w\n}}\n"
        )
    head = 'use f from "one/same.dml"\nuse f as g from "two/same.dml"\nconst w: f32[4] = [9, 9, 9, 9]\n'
    program = of(folder, head + MODEL.replace("f(x)", "f(x) + g(x) + w"))
    wanted = X * [1, 2, 3, 4] + X * [2, 2, 3, 4] + 9
    np.testing.assert_allclose(program.run({"x": X}, backend="cpu")["y"], wanted)
    program = of(folder, head + MODEL.replace("f(x)", "f(x) + g(x) + w"), target="numpy")
    np.testing.assert_allclose(program.run({"x": X}, backend="numpy")["y"], wanted)
    text_of = Source("t.dml", program.to_bytes("dml").decode())
    np.testing.assert_allclose(dmlc.compile(text_of).run({"x": X}, backend="cpu")["y"], wanted)


def test_words_of_a_use_line_are_names_everywhere_else() -> None:
    program = (
        "def use(from) {\n    std = from + 1\n    return std\n}\n\n"
        "model std(from: f32[use, 2], use: f32[2]) -> (std) {\n    use2 = use(from)\n    return use2 * use\n}\n"
    )
    assert [name for name, _ in text.load(source(program)).outputs] == ["std"]
    assert text.format_source(source(program)) == program


def test_words_may_be_used_names(tmp_path: Path) -> None:
    (tmp_path / "std").write_text("def from(x) {\n    return x + 1\n}\nconst std: f32[] = 2\nconst use: f32[] = 3\n")
    head = 'use from as f, std, use from "std"\n'
    assert of(tmp_path, head + MODEL.replace("f(x)", "f(x) * std * use")).run({"x": X})["y"][0, 0] == 6


def test_formatting_keeps_use_lines() -> None:
    long = ", ".join(f"a_rather_long_name_{i}" for i in range(9))
    program = f'use a, b as c from "x.dml"  # why\n{"use " + long} from "y.dml"\nuse s from std\n\n{MODEL}'
    assert text.format_source(source(program)) == program
    loose = program.replace("a, b as c", " a ,b   as c")
    assert text.format_source(source(loose)) == program


@each_row(
    ("head", "expected"),
    [
        ('use nothing from "blocks.dml"', ("E0212", 1, 5)),
        ('use Q from "blocks.dml"', ("E0212", 1, 5)),
        ('use m from "blocks.dml"', ("E0212", 1, 5)),
        ('use inner from "blocks.dml"', ("E0212", 1, 5)),  # a name that the file itself uses
        ("use nothing from std", ("E0212", 1, 5)),
        ('use helper as exp from "blocks.dml"', ("E0205", 1, 15)),
        ('use helper as f32 from "blocks.dml"', ("E0205", 1, 15)),
        ('use helper, f as helper from "blocks.dml"', ("E0204", 1, 18)),
        ('use helper as own from "blocks.dml"', ("E0204", 1, 15)),
        ('use scale as own from "blocks.dml"', ("E0204", 1, 14)),
        ('use scale as D from "blocks.dml"', ("E0204", 1, 14)),
        ('use f from "block.dml"', ("E0401", 1, 12)),
        ('use f from "deep"', ("E0401", 1, 12)),
        ('use f from ""', ("E0401", 1, 12)),
        ('use f from "../blocks.dml"', ("E0402", 1, 12)),
        ('use f from "deep/../blocks.dml"', ("E0402", 1, 12)),
        ('use f from "/blocks.dml"', ("E0402", 1, 12)),
        ('use f from "C:\\\\blocks.dml"', ("E0402", 1, 12)),
        ("use f from blocks", ("E0101", 1, 12)),
        ('use f "blocks.dml"', ("E0101", 1, 7)),
        ('use from "blocks.dml"', ("E0101", 1, 10)),
        ('use f as from "blocks.dml"', ("E0101", 1, 15)),
    ],
)
def test_wrong_use_lines(folder: Path, head: str, expected: tuple[str, int, int]) -> None:
    program = f"{head}\ndim D in 1..2\nconst own: f32[] = 1\ndef own(x) {{\n    return x\n}}\n"
    found = errors(program + "model m(x: f32[D]) -> (y) {\n    return f(x) + D2\n}\n", folder)
    assert found[0] == expected
    if expected[0] == "E0401":  # names that a wrong line would bring cause no error
        assert [code for code, _, _ in found] == ["E0401", "E0202"]


@each_row("before", ["const c: f32[] = 1", "def g(x) {\n    return x\n}", MODEL])
def test_use_lines_come_first(before: str) -> None:
    assert errors(f'{before}\nuse f from "blocks.dml"\n')[0][0] == "E0101"
    assert errors(f'dim N in 1..2\nuse f from "blocks.dml"\n{MODEL}')[0][0] == "E0407"


def refused(folder: Path, program: str, **options: object) -> dmlc.Diagnostic:
    with pytest.raises(DmlcError) as caught:
        of(folder, program, **options)
    return caught.value.diagnostics[0]


def test_mistakes_inside_name_their_file_and_the_call(folder: Path) -> None:
    found = refused(folder, 'use f from "blocks.dml"\n' + MODEL.replace("f32", "i32"))
    assert found.code.id == "E0310" or found.code.id.startswith("E03")
    assert found.source_name == str(folder / "blocks.dml")
    assert list(dict.fromkeys([label.span.source.name for label in found.labels[1:]])) == [
        str(folder / "blocks.dml"),
        str(folder / "head.dml"),
    ]
    (folder / "broken.dml").write_text("def f(x) {\n    return x +\n}\n")
    found = refused(folder, 'use f from "broken.dml"\n' + MODEL)
    assert (found.code.id, found.source_name) == ("E0101", str(folder / "broken.dml"))
    (folder / "empty.dml").write_text("")
    assert refused(folder, 'use f from "empty.dml"\n' + MODEL).source_name == str(folder / "empty.dml")


@pytest.mark.parametrize("call", ["sized(x)", "x"])
def test_dims_do_not_come_along(folder: Path, call: str) -> None:
    found = refused(folder, 'use sized from "blocks.dml"\ndim Q in 1..4\n' + MODEL.replace("f(x)", call))
    assert (found.code.id, found.source_name) == ("E0214", str(folder / "blocks.dml"))


def test_dims_of_inputs_do_not_come_along_either(folder: Path) -> None:
    blocks = "def f(x) {\n    return reshape(x, shape=[R])\n}\nmodel m(x: f32[R]) -> (y) {\n    return f(x)\n}\n"
    assert of(folder, blocks).run({"x": X[0]})["y"].shape == (4,)
    (folder / "lib.dml").write_text(blocks)
    assert refused(folder, 'use f from "lib.dml"\n' + MODEL).code.id == "E0214"


@each_row("length", [1, 2, 5])
def test_circles_of_files(tmp_path: Path, length: int) -> None:
    for i in range(length):
        after = "head.dml" if i + 1 == length else f"f{i + 1}.dml"
        (tmp_path / ("head.dml" if i == 0 else f"f{i}.dml")).write_text(f'use f from "{after}"\n{MODEL}')
    with pytest.raises(DmlcError) as caught:
        dmlc.compile(tmp_path / "head.dml")
    assert caught.value.diagnostics[0].code.id == "E0213"
    (tmp_path / "other.dml").write_text('use f from "head.dml"\n' + MODEL)
    with pytest.raises(DmlcError) as caught:
        dmlc.compile(tmp_path / "other.dml")
    assert caught.value.diagnostics[0].code.id == "E0213"


def test_a_file_is_read_once_however_many_use_it(tmp_path: Path) -> None:
    depth = 40  # read anew for each line, these would be 2 ** 40 files
    (tmp_path / "f0.dml").write_text("def f(x) {\n    return x + 1\n}\n")
    for i in range(1, depth):
        before = f'"f{i - 1}.dml"'
        body = "def f(x) {\n    return g(x)\n}\n"
        (tmp_path / f"f{i}.dml").write_text(f"use f as g from {before}\nuse f as h from {before}\n{body}")
    program = of(tmp_path, f'use f from "f{depth - 1}.dml"\n' + MODEL)
    np.testing.assert_array_equal(program.run({"x": X})["y"], X + 1)


def test_too_long_a_chain_of_files_is_refused(tmp_path: Path) -> None:
    for i in range(210):
        (tmp_path / f"f{i}.dml").write_text(f'use f as g from "f{i + 1}.dml"\ndef f(x) {{\n    return x\n}}\n')
    assert refused(tmp_path, 'use f from "f0.dml"\n' + MODEL).code.id == "E0105"


def test_included_folders_are_tried_in_order(tmp_path: Path) -> None:
    for name, number in (("one", 1), ("two", 2), ("own", 3)):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.dml").write_text(f"def f(x) {{\n    return x + {number}\n}}\n")
        (tmp_path / name / "all.dml").write_text(f"def f(x) {{\n    return x + {number}\n}}\n")
        np.save(tmp_path / name / "w.npy", np.float32(number))
    include = [tmp_path / "one", str(tmp_path / "two")]
    for file, number in (("all.dml", 3), ("one.dml", 1), ("two.dml", 2)):
        program = of(tmp_path / "own", f'use f from "{file}"\n' + MODEL, include=include)
        np.testing.assert_array_equal(program.run({"x": X})["y"], X + number)
    (tmp_path / "own" / "w.npy").unlink()
    loaded = 'const w: f32[] = load("w.npy")\n' + MODEL.replace("f(x)", "x + w")
    np.testing.assert_array_equal(of(tmp_path / "own", loaded, include=include).run({"x": X})["y"], X + 1)
    assert refused(tmp_path / "own", 'use f from "../one/one.dml"\n' + MODEL, include=include).code.id == "E0402"
    assert refused(tmp_path / "own", 'use f from "one.dml"\n' + MODEL).code.id == "E0401"


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_links_are_not_followed(folder: Path, link: object) -> None:
    (folder / "own").mkdir()
    link(folder / "blocks.dml", folder / "own" / "blocks.dml")  # type: ignore[operator]
    assert refused(folder / "own", 'use f from "blocks.dml"\n' + MODEL).code.id == "E0402"
    other = refused(folder, 'use f from "blocks.dml"\n' + MODEL, include=[folder / "own"]) if link is os.link else None
    assert other is None or other.code.id == "E0402"


def test_text_stands_in_the_folder_of_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = 'use f from "blocks.dml"\n' + MODEL
    program = dmlc.compile(Source(str(folder / "any.dml"), head))
    np.testing.assert_allclose(program.run({"x": X})["y"], X * 3.5)
    monkeypatch.chdir(folder)
    assert dmlc.compile(Source("<stdin>", head)).to_bytes("dml") == program.to_bytes("dml")


def test_a_used_def_that_is_not_called_is_checked(folder: Path) -> None:
    (folder / "lib.dml").write_text("def f(x) {\n    return x * nothing\n}\ndef g(x) {\n    return x * nothing\n}\n")
    found = refused(folder, 'use f from "lib.dml"\n' + MODEL.replace("f(x)", "x"))
    assert (found.code.id, found.span.line if found.span else 0) == ("E0202", 2)


def test_consts_that_nothing_needs_are_not_read(folder: Path) -> None:
    (folder / "lib.dml").write_text('const w: f32[] = load("nothing.npy")\ndef f(x) {\n    return x\n}\n')
    assert of(folder, 'use f from "lib.dml"\n' + MODEL).run({"x": X})["y"].shape == (2, 4)
    assert refused(folder, 'use f, w from "lib.dml"\n' + MODEL.replace("f(x)", "f(x) + w")).code.id == "E0401"


def test_several_models_and_many_calls_of_used_defs(folder: Path) -> None:
    second = MODEL.replace("model m", "model n").replace("f(x)", "f(f(x))")
    program = of(folder, 'use f from "blocks.dml"\n' + MODEL + second, model="n")
    np.testing.assert_allclose(program.run({"x": X})["y"], X * 3.5 * 3.5)
    wide = "".join(f"def g{i}(x) {{\n    return g{i - 1}(x) + g{i - 1}(x)\n}}\n" for i in range(1, 30))
    (folder / "wide.dml").write_text("def g0(x) {\n    return x + 1\n}\n" + wide)
    assert refused(folder, 'use g29 as f from "wide.dml"\n' + MODEL).code.id in ("E0117", "E0441")
