"""``const``: literals of a type, and data that is loaded from the program's folder and only from there."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from text_helpers import codes, diagnostics, errors, graph_of, in_model

from dmlc.ir import Value
from dmlc.ops.constant import constant_of
from tests.rows import each_row


def const(type: str, value: str, use: str = "w") -> str:
    return f"const w: {type} = {value}\n" + in_model(f"return {use}")


def array_of(program: str, folder: Path | None = None) -> np.ndarray:
    value: Value = graph_of(program, folder).outputs[0][1]
    tensor = constant_of(value)
    assert tensor is not None
    return tensor.array


@each_row(
    ("type", "value", "expected"),
    [
        ("f32[]", "0.125", np.float32(0.125)),
        ("f32[]", "-(1 + 2) * 2", np.float32(-6)),
        ("i64[3]", "[1, -2, 3]", np.array([1, -2, 3])),
        ("u8[2, 2]", "[[0, 255], [1_0, 0x10]]", np.array([[0, 255], [10, 16]], np.uint8)),
        ("bool[2]", "[true, 1 > 2]", np.array([True, False])),
        ("f16[3]", "[inf, -inf, 1 / 2.0]", np.array([np.inf, -np.inf, 0.5], np.float16)),
        ("f32[0]", "[]", np.zeros(0, np.float32)),
        ("f32[2, 0]", "[[], []]", np.zeros((2, 0), np.float32)),
        ("f32[0, 3]", "[]", np.zeros((0, 3), np.float32)),
        ("f32[2 * 1, 1]", "([([1]), [2],])", np.array([[1], [2]], np.float32)),
        ("u64[1]", "[18446744073709551615]", np.array([2**64 - 1], np.uint64)),
        ("i64[1]", "[-9223372036854775808]", np.array([-(2**63)], np.int64)),
        ("i32[2]", "[2.0, 1e3]", np.array([2, 1000], np.int32)),
    ],
)
def test_literals(type: str, value: str, expected: np.ndarray) -> None:
    found = array_of(const(type, value))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@each_row(
    ("type", "value", "expected"),
    [
        ("f32[2]", "0.5", [("E0334", 1, 19)]),
        ("f32[]", "[0.5]", [("E0334", 1, 18)]),
        ("f32[2]", "[1]", [("E0334", 1, 19)]),
        ("f32[2, 2]", "[[1, 2], [3]]", [("E0334", 1, 31)]),
        ("f32[2]", "[1, [2]]", [("E0334", 1, 23)]),
        ("f32[2, 1]", "[1, [2]]", [("E0334", 1, 23)]),
        ("u8[]", "256", [("E0311", 1, 17)]),
        ("i32[2]", "[1, 0.5]", [("E0311", 1, 23)]),
        ("f16[]", "1e6", [("E0311", 1, 18)]),
        ("bool[]", "1", [("E0311", 1, 19)]),
        ("f32[]", "true", [("E0311", 1, 18)]),
        ("f32[]", "none", [("E0331", 1, 18)]),
        ("f32[]", "other", [("E0202", 1, 18)]),
        ("f32[]", "exp(1)", [("E0331", 1, 18)]),
        ("f32[]", "1 as f32", [("E0331", 1, 18)]),
        ("f32[]", '"text"', [("E0331", 1, 18)]),
        ("f32[N]", "[1]", [("E0332", 1, 10)]),
        ("f32[2]", "load()", [("E0331", 1, 19)]),
        ("f32[2]", "load(w)", [("E0331", 1, 19)]),
        ("f32[2]", 'load("a", "b", "c")', [("E0331", 1, 19)]),
        ("f32[2]", 'load("a", key="b")', [("E0331", 1, 19)]),
        ("f32[2]", '[load("a"), 1]', [("E0331", 1, 20)]),
    ],
)
def test_wrong_literals(type: str, value: str, expected: list[tuple[str, int, int]]) -> None:
    assert errors(const(type, value)) == expected


def test_an_unused_const_is_fine_and_makes_no_node() -> None:
    assert len(graph_of("const w: f32[2] = [1, 2]\n" + in_model("return x"))) == 0


def test_a_const_is_one_node_however_often_it_is_used() -> None:
    graph = graph_of("const w: f32[] = 2\ndef f(a) {\n    return a * w\n}\n" + in_model("return f(f(x)) + w"))
    assert [node.op.name for node in graph] == ["constant", "mul", "mul", "add"]
    assert next(iter(graph)).result.name == "w"


# --- load

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "program"
    (inside / "sub").mkdir(parents=True)
    np.save(inside / "w.npy", WEIGHTS)
    np.save(inside / "sub" / "w.npy", WEIGHTS + 1)
    np.savez(inside / "w.npz", a=WEIGHTS + 2, b=np.zeros(3, np.int64))
    np.savez_compressed(inside / "packed.npz", a=WEIGHTS + 3)
    np.save(tmp_path / "secret.npy", WEIGHTS)
    return inside


@each_row(
    ("call", "offset"),
    [
        ('load("w.npy")', 0),
        ('load("./w.npy")', 0),
        ('load("sub/w.npy")', 1),
        ('load("w.npz", "a")', 2),
        ('load("packed.npz", "a")', 3),
    ],
)
def test_load(folder: Path, call: str, offset: int) -> None:
    np.testing.assert_array_equal(array_of(const("f32[2, 3]", call), folder), WEIGHTS + offset)


def test_load_reads_every_layout_that_numpy_writes(folder: Path) -> None:
    np.save(folder / "fortran.npy", np.asfortranarray(WEIGHTS))
    np.save(folder / "big.npy", WEIGHTS.astype(">f4"))
    np.save(folder / "empty.npy", np.zeros((0, 3), np.float32))
    np.save(folder / "scalar.npy", np.float32(2.5))
    np.save(folder / "bool.npy", np.array([True, False]))
    with (folder / "v2.npy").open("wb") as stream:
        np.lib.format.write_array(stream, WEIGHTS, version=(2, 0))
    for name in ("fortran", "big", "v2"):
        np.testing.assert_array_equal(array_of(const("f32[2, 3]", f'load("{name}.npy")'), folder), WEIGHTS)
    assert array_of(const("f32[0, 3]", 'load("empty.npy")'), folder).shape == (0, 3)
    assert array_of(const("f32[]", 'load("scalar.npy")'), folder) == 2.5
    assert array_of(const("bool[2]", 'load("bool.npy")'), folder).tolist() == [True, False]


@each_row(
    ("call", "code"),
    [
        ('load("missing.npy")', "E0401"),
        ('load("sub")', "E0401"),
        ('load("")', "E0401"),
        ('load("w.npy/x.npy")', "E0401"),
        ('load("a\\tb.npy")', "E0401"),
        ('load("../secret.npy")', "E0402"),
        ('load("sub/../../secret.npy")', "E0402"),
        ('load("sub/../w.npy")', "E0402"),
        ('load("/etc/passwd")', "E0402"),
        ('load("/dev/zero")', "E0402"),
        ('load("C:/w.npy")', "E0402"),
        ('load("C:w.npy")', "E0402"),
        ('load("\\\\\\\\host\\\\share\\\\w.npy")', "E0402"),
        ('load("..\\\\secret.npy")', "E0402"),
        ('load("w.npz")', "E0405"),
        ('load("w.npz", "c")', "E0405"),
        ('load("w.npy", "a")', "E0405"),
        ('load("w.npz", "b")', "E0406"),
    ],
)
def test_what_is_not_loaded(folder: Path, call: str, code: str) -> None:
    assert errors(const("f32[2, 3]", call), folder) == [(code, 1, 22)]


@each_row("type", ["f64[2, 3]", "f32[3, 2]", "f32[6]", "f32[2, 3, 1]", "i32[2, 3]", "f32[1, 3]"])
def test_the_type_must_be_the_written_one(folder: Path, type: str) -> None:
    (found,) = diagnostics(const(type, 'load("w.npy")'), folder)
    assert found.code.id == "E0406"
    assert found.message == f"w.npy is f32[2, 3], w is {type}"
    assert found.help == "declare w: f32[2, 3]"


def test_an_unused_const_is_loaded_too(folder: Path) -> None:
    assert codes('const w: f32[2] = load("w.npy")\n' + in_model("return x"), folder) == ["E0406"]


def test_without_a_folder_nothing_is_loaded() -> None:
    assert codes(const("f32[2, 3]", 'load("w.npy")')) == ["E0407"]


@pytest.mark.skipif(not hasattr(os, "symlink") or os.name == "nt", reason="needs links")
def test_links(folder: Path) -> None:
    (folder / "out.npy").symlink_to(folder.parent / "secret.npy")
    (folder / "in.npy").symlink_to(folder / "w.npy")
    (folder / "away").symlink_to(folder.parent)
    (folder / "loop.npy").symlink_to(folder / "loop.npy")
    assert codes(const("f32[2, 3]", 'load("out.npy")'), folder) == ["E0402"]
    assert codes(const("f32[2, 3]", 'load("away/secret.npy")'), folder) == ["E0402"]
    assert codes(const("f32[2, 3]", 'load("loop.npy")'), folder) == ["E0402"]
    assert codes(const("f32[2, 3]", 'load("in.npy")'), folder) == ["E0402"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_never_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe.npy")
    assert codes(const("f32[2, 3]", 'load("pipe.npy")'), folder) == ["E0401"]


def damaged(folder: Path, name: str, data: bytes) -> list[str]:
    (folder / name).write_bytes(data)
    key = ', "a"' if name.endswith(".npz") else ""
    return codes(const("f32[2, 3]", f'load("{name}"{key})'), folder)


def test_damaged_files(folder: Path) -> None:
    whole = (folder / "w.npy").read_bytes()
    packed = (folder / "packed.npz").read_bytes()
    for cut in (0, 3, 8, 40, len(whole) - 1):
        assert damaged(folder, "cut.npy", whole[:cut]) == ["E0403"], cut
    for cut in (0, 10, len(packed) // 2, len(packed) - 1):
        assert damaged(folder, "cut.npz", packed[:cut]) == ["E0403"], cut
    assert damaged(folder, "text.npy", b"not an array at all, but a text") == ["E0403"]
    assert damaged(folder, "new.npy", b"\x93NUMPY\x09\x00" + whole[8:]) == ["E0403"]
    assert damaged(folder, "header.npy", whole.replace(b"'descr'", b"'d\xffscr'")) == ["E0403"]
    assert damaged(folder, "code.npy", whole.replace(b"(2, 3)", b"(2,f)=")) == ["E0403"]
    assert damaged(folder, "w.txt", whole) == ["E0403"]
    middle = packed.index(b"NUMPY") if b"NUMPY" in packed else len(packed) // 3
    broken = packed[:middle] + bytes(b ^ 0xFF for b in packed[middle : middle + 20]) + packed[middle + 20 :]
    assert damaged(folder, "broken.npz", broken) == ["E0403"]


def test_a_header_cannot_ask_for_memory(folder: Path) -> None:
    whole = (folder / "w.npy").read_bytes()
    huge = whole.replace(b"(2, 3)", b"(9999999999999,)").replace(b"                \n", b"      \n", 1)
    assert damaged(folder, "huge.npy", huge)[0] in ("E0403", "E0406")
    (folder / "same.npy").write_bytes(huge)
    assert codes(const("f32[9999999999999]", 'load("same.npy")'), folder) == ["E0403"]


def test_pickles_are_never_read(folder: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (os.system, (f"touch {folder / 'trapped'}",))

    np.save(folder / "objects.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    assert codes(const("f32[2, 3]", 'load("objects.npy")'), folder) == ["E0404"]
    np.savez(folder / "objects.npz", a=np.array([Trap()], dtype=object))
    assert codes(const("f32[2, 3]", 'load("objects.npz", "a")'), folder) == ["E0404"]
    import pickle

    (folder / "plain.npy").write_bytes(pickle.dumps(Trap()))
    assert codes(const("f32[2, 3]", 'load("plain.npy")'), folder) == ["E0403"]
    assert not (folder / "trapped").exists()


def test_dtypes_that_the_language_does_not_have(folder: Path) -> None:
    np.save(folder / "c.npy", np.zeros((2, 3), np.complex64))
    np.save(folder / "s.npy", np.array(["a", "b"]))
    np.save(folder / "r.npy", np.zeros(2, [("a", "f4")]))
    for name in ("c", "s", "r"):
        assert codes(const("f32[2, 3]", f'load("{name}.npy")'), folder) == ["E0406"]


def test_the_keys_of_an_archive_are_listed(folder: Path) -> None:
    (found,) = diagnostics(const("f32[2, 3]", 'load("w.npz", "weights")'), folder)
    assert found.help == 'its keys are "a", "b"'
    with zipfile.ZipFile(folder / "none.npz", "w"):
        pass
    assert codes(const("f32[2, 3]", 'load("none.npz", "a")'), folder) == ["E0405"]


def test_consts_in_a_circle() -> None:
    assert errors(const("f32[1]", "[w + 1]")) == [("E0206", 1, 7)]
    assert errors("const v: f32[] = w\n" + const("f32[]", "v")) == [("E0206", 1, 7)]


def test_consts_that_use_later_ones_nest() -> None:
    def program(count: int) -> str:
        return "".join(f"const c{i}: f32[] = c{i + 1}\n" for i in range(count)) + const("f32[]", "1", "c0")

    assert codes(program(150).replace("c150", "w")) == []
    assert codes(program(250).replace("c250", "w")) == ["E0105"]
