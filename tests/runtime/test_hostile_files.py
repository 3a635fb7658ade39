"""Files made to hurt: each is refused with a code, before it takes memory or time."""

from __future__ import annotations

import io
import os
import socket
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import dmlc
from dmlc.diagnostics.limits import Limits
from dmlc.runtime import dxdispatch_files, files
from tests.rows import each_row

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, pipes and limits of POSIX")

LOADING = "const w: f32[4] = load({})\n\nmodel m(x: f32[4]) -> (y) {{\n    y = x * w\n    return y\n}}\n"


def npy_bytes(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = (header + "\n").encode("latin-1")
    return b"\x93NUMPY" + version + struct.pack("<H" if version[0] == 1 else "<I", len(text)) + text + data


def array_bytes(array: np.ndarray, **options: bool) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def header(shape: str, descr: str = "'<f4'", fortran: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


GOOD = array_bytes(np.arange(4, dtype=np.float32))
#: Headers and data that no array of four numbers has.
BROKEN: dict[str, bytes] = {
    "empty": b"",
    "magic": b"\x93NUMPY",
    "version": b"\x93NUMPY\x09\x00" + GOOD[8:],
    "cut": GOOD[:-1],
    "cut header": GOOD[:40],
    "huge": npy_bytes(header("(1099511627776,)"), b"\0" * 16),
    "huge square": npy_bytes(header("(1099511627776, 1099511627776)"), b"\0" * 16),
    "huge and empty": npy_bytes(header("(0, 2305843009213693952, 2305843009213693952)")),
    "negative": npy_bytes(header("(-4,)"), b"\0" * 16),
    "negative twice": npy_bytes(header("(-2, -2)"), b"\0" * 16),
    "true": npy_bytes(header("(True,)"), b"\0" * 16),
    "long": npy_bytes(header("(" + "1, " * 3000 + ")"), b"\0" * 4),
    "nested": npy_bytes(header("(" * 3000 + ")" * 3000), b"\0" * 4),
    "no tuple": npy_bytes(header("4"), b"\0" * 16),
    "digits": npy_bytes(header("(" + "9" * 6000 + ",)"), b"\0" * 16),
    "call": npy_bytes(header("__import__('os').abort()"), b"\0" * 16),
    "odd dtype": npy_bytes(header("(4,)", "'<q9'"), b"\0" * 16),
    "dtype of nothing": npy_bytes(header("(4,)", "[]"), b"\0" * 16),
    "header length": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"{}",
    "objects": array_bytes(np.array([{}] * 4, dtype=object), allow_pickle=True),
    "objects in fields": npy_bytes(header("(4,)", "[('a', '|O')]"), b"\0" * 32),
    "pickle": b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x01a\x94.",
}


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return buffer.getvalue()


def lying(size: int) -> bytes:
    """An archive whose directory says that its member has that many bytes."""
    data = bytearray(zipped(("w.npy", npy_bytes(header(f"({size // 4},)"), b"\0" * 16))))
    place = data.index(b"PK\x01\x02") + 24
    data[place : place + 4] = struct.pack("<I", size)
    return bytes(data)


ARCHIVES: dict[str, bytes] = {
    "no zip": b"PK\x03\x04" + b"\0" * 100,
    "cut": zipped(("w.npy", GOOD))[:-10],
    "twice": b"",  # made below: zipfile warns of it
    "lzma": zipped(("w.npy", GOOD), method=zipfile.ZIP_LZMA),
    "bzip2": zipped(("w.npy", GOOD), method=zipfile.ZIP_BZIP2),
    "lies": lying(1 << 26),
    "lies largely": lying((1 << 32) - 16),
    "huge": zipped(("w.npy", npy_bytes(header("(1099511627776,)"), b"\0" * 16))),
    "objects": zipped(("w.npy", BROKEN["objects"])),
    "text": zipped(("w.npy", b"hello")),
}
with pytest.warns(UserWarning, match="Duplicate"):
    ARCHIVES["twice"] = zipped(("w.npy", GOOD), ("w.npy", GOOD))


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(dmlc.DmlcError) as caught:
        call()
    str(caught.value)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.code.id


@each_row("name", sorted(BROKEN))
def test_broken_arrays(name: str, tmp_path: Path) -> None:
    (tmp_path / "w.npy").write_bytes(BROKEN[name])
    assert code_of(lambda: files.load_array(tmp_path / "w.npy", None, "w")) == "E0422"
    (tmp_path / "m.dml").write_text(LOADING.format('"w.npy"'))
    objects = name.startswith("objects")
    odd = {"huge": "E0406", "huge square": "E0406", "dtype of nothing": "E0406"}
    assert code_of(lambda: dmlc.compile(tmp_path / "m.dml")) in (
        "E0404" if objects else odd.get(name, "E0403"),
        "E0406",
    )


@each_row("name", sorted(ARCHIVES))
def test_broken_archives(name: str, tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(ARCHIVES[name])
    code = "E0443" if name == "lies largely" else "E0422"
    assert code_of(lambda: files.load_array(tmp_path / "w.npz", None, "w")) == code
    (tmp_path / "m.dml").write_text(LOADING.format('"w.npz", "w"'))
    assert code_of(lambda: dmlc.compile(tmp_path / "m.dml")) in ("E0403", "E0404", "E0406", "E0443")


def test_no_room_is_made_for_data_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "w.npy").write_bytes(BROKEN["huge"])
    (tmp_path / "w.npz").write_bytes(ARCHIVES["huge"])
    for name in ("w.npy", "w.npz"):
        with pytest.raises(dmlc.DmlcError, match="is cut short: its array takes 4,398,046,511,104 bytes"):
            files.load_array(tmp_path / name, None, "w")


def test_arrays_in_fortran_order_keep_their_places(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save(tmp_path / "w.npy", array)
    np.savez_compressed(tmp_path / "w.npz", w=array)
    for name in ("w.npy", "w.npz"):
        np.testing.assert_array_equal(files.load_array(tmp_path / name, None, "w"), array)


def test_seeded_damage(tmp_path: Path) -> None:
    """Any byte may be another: an array, E0422, or E0443 for a size that became huge."""
    chance = np.random.default_rng(0)
    plain, packed = GOOD, zipped(("w.npy", GOOD))
    for turn in range(300):
        data = bytearray(plain if turn % 2 else packed)
        for place in chance.integers(0, len(data), 3):
            data[place] = chance.integers(256)
        (tmp_path / "w.npy").write_bytes(data)
        try:
            files.load_array(tmp_path / "w.npy", None, "w")
        except dmlc.DmlcError as error:
            assert error.diagnostics[0].code.id in ("E0422", "E0443")


# --- memory

BOMBED = """
import resource, sys
from pathlib import Path
import dmlc
from dmlc.runtime import files

resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, 1 << 29))
for name in sys.argv[1:]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        if name.endswith(".dml"):
            dmlc.compile(name)
        else:
            files.load_array(Path(name), None, "w")
        print("read")
    except dmlc.DmlcError as error:
        print(error.diagnostics[0].code.id)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
"""


def test_bombs_take_no_memory(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("w.npy", "w") as member:
        member.write(npy_bytes(header("(67108864,)")))
        for _ in range(256):
            member.write(b"\0" * (1 << 20))
    data = bytearray(bomb.getvalue())
    (tmp_path / "real.npz").write_bytes(data)  # 256 MB of zeros, as it says
    place = data.index(b"PK\x01\x02") + 24
    data[place : place + 4] = struct.pack("<I", (1 << 32) - 2)
    (tmp_path / "more.npz").write_bytes(data)
    with (tmp_path / "sparse.npy").open("wb") as file:
        file.write(npy_bytes(header("(1073741824,)")))
        file.truncate(1 << 33)
    (tmp_path / "m.dml").write_text(LOADING.format('"real.npz", "w"'))
    names = [str(tmp_path / name) for name in ("more.npz", "sparse.npy", "m.dml")]
    done = subprocess.run([sys.executable, "-c", BOMBED, *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["E0443", "E0422", "E0406"]


def test_compressed_arrays_have_a_limit(tmp_path: Path) -> None:
    array = np.zeros(1 << 16, np.float32)
    np.savez(tmp_path / "plain.npz", w=array)
    np.savez_compressed(tmp_path / "small.npz", w=array)
    assert files.load_array(tmp_path / "small.npz", None, "w").shape == array.shape
    few = Limits.of({"unpacked_bytes": 1000})
    assert files.load_array(tmp_path / "plain.npz", None, "w", few).shape == array.shape
    with pytest.raises(dmlc.DmlcError, match=r"save it uncompressed.*'unpacked_bytes': 262272"):
        files.load_array(tmp_path / "small.npz", None, "w", few)
    (tmp_path / "m.dml").write_text(LOADING.replace("f32[4]", "f32[65536]").format('"small.npz", "w"'))
    assert dmlc.compile(tmp_path / "m.dml").signature.name == "m"
    assert code_of(lambda: dmlc.compile(tmp_path / "m.dml", limits={"unpacked_bytes": 1000})) == "E0443"


# --- what is not a plain file


def make(kind: str, path: Path, target: Path) -> None:
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            here = Path.cwd()
            os.chdir(path.parent)  # names of sockets are short
            made.bind(path.name)
            os.chdir(here)
    elif kind == "folder":
        path.mkdir()
    elif kind == "symbolic":
        path.symlink_to(target)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.hardlink_to(target)


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "symbolic", "device", "hard"])
def test_what_a_program_does_not_load(kind: str, tmp_path: Path) -> None:
    (tmp_path / "real.npy").write_bytes(GOOD)
    (tmp_path / "in").mkdir()
    make(kind, tmp_path / "in" / "w.npy", tmp_path / "real.npy")
    (tmp_path / "in" / "m.dml").write_text(LOADING.format('"w.npy"'))
    (tmp_path / "m.dml").write_text(LOADING.format('"in/w.npy"'))
    for program in (tmp_path / "in" / "m.dml", tmp_path / "m.dml"):
        code = code_of(lambda program=program: dmlc.compile(program))
        assert code == ("E0402" if kind in ("symbolic", "device", "hard") else "E0401")


def test_a_symbolic_link_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "w.npy").write_bytes(GOOD)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "m.dml").write_text(LOADING.format('"link/w.npy"'))
    assert code_of(lambda: dmlc.compile(tmp_path / "m.dml")) == "E0402"
    (tmp_path / "m.dml").write_text(LOADING.format('"real/w.npy"'))
    assert dmlc.compile(tmp_path / "m.dml").signature.name == "m"
    (tmp_path / "m.dml").write_text(LOADING.format('"' + "w" * 5000 + '.npy"'))
    assert code_of(lambda: dmlc.compile(tmp_path / "m.dml")) == "E0401"


def model_with(folder: Path, dims: list[int] | None = None, **entries: object) -> Path:
    tensor = TensorProto(name="w", dims=dims or [4], data_type=1, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    infos = [helper.make_tensor_value_info(name, 1, None) for name in "xy"]
    graph = helper.make_graph([node], "m", infos[:1], infos[1:], [tensor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "symbolic", "device", "hard"])
def test_what_a_model_does_not_load(kind: str, tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"\0" * 16)
    make(kind, tmp_path / "w", tmp_path / "real")
    path = model_with(tmp_path, location="w", offset=0, length=16)
    assert code_of(lambda: dmlc.compile(path)) == "E0432"


@each_row(
    ("entries", "code"),
    [
        ({"location": "w" * 5000}, "E0432"),
        ({"location": "w/" * 3000}, "E0432"),
        ({"location": "../w"}, "E0432"),
        ({"location": "a/../../w"}, "E0432"),
        ({"location": "/etc/passwd"}, "E0432"),
        ({"location": "C:\\w"}, "E0432"),
        ({"location": "..\\w"}, "E0432"),
        ({"location": "."}, "E0432"),
        ({"location": ""}, "E0432"),
        ({"location": "w\0x"}, "E0432"),
        ({"location": "w/x"}, "E0433"),
        ({"location": "w", "offset": -1}, "E0434"),
        ({"location": "w", "offset": 1}, "E0434"),
        ({"location": "w", "offset": 2**63}, "E0434"),
        ({"location": "w", "offset": 2**64 - 16}, "E0434"),
        ({"location": "w", "offset": "0x0"}, "E0434"),
        ({"location": "w", "length": 17}, "E0434"),
        ({"location": "w", "length": -16}, "E0434"),
        ({"location": "w", "length": 2**63}, "E0434"),
        ({"location": "w", "dims": [2**62, 4]}, "E0434"),
        ({"location": "w", "dims": [0, 2**40, 2**40]}, "E0434"),
        ({"location": "w", "dims": [-4]}, "E0434"),
    ],
)
def test_references_that_are_not_followed(entries: dict[str, object], code: str, tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"\0" * 16)
    path = model_with(tmp_path, **entries)  # type: ignore[arg-type]
    assert code_of(lambda: dmlc.compile(path).save(tmp_path / "out.onnx")) == code
    assert {each.name for each in tmp_path.iterdir()} == {"w", "m.onnx"}


# --- writing


def test_dxdispatch_leaves_its_folder_alone_where_it_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "m.dml").write_text("model m(x: f32[4]) -> (y) {\n    y = exp(x)\n    return y\n}\n")
    (tmp_path / "elsewhere").mkdir()
    out = tmp_path / "out.dxdispatch.json"
    folder = tmp_path / dxdispatch_files.folder_of(out)
    folder.symlink_to(tmp_path / "elsewhere")
    program = dmlc.compile(tmp_path / "m.dml")
    assert code_of(lambda: program.save(out)) == "E0421"
    assert list((tmp_path / "elsewhere").iterdir()) == []
    folder.unlink()
    program.save(out)
    assert {each.name for each in tmp_path.iterdir()} == {"m.dml", "elsewhere", out.name, folder.name}


def test_names_of_inputs_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    node = helper.make_node("Exp", ["../../x"], ["y"])
    infos = [helper.make_tensor_value_info(name, 1, [2]) for name in ("../../x", "y")]
    model = helper.make_model(helper.make_graph([node], "m", infos[:1], infos[1:]), ir_version=10)
    model.opset_import[0].version = 21
    (tmp_path / "deep" / "er").mkdir(parents=True)
    onnx.save(model, tmp_path / "deep" / "er" / "m.onnx")
    dmlc.compile(tmp_path / "deep" / "er" / "m.onnx").save(tmp_path / "deep" / "er" / "out.dxdispatch.json")
    assert {each.name for each in (tmp_path / "deep" / "er").iterdir()} == {
        "m.onnx", "out.dxdispatch.json", "out.dxdispatch",
    }  # fmt: skip
    assert {each.name for each in (tmp_path / "deep").iterdir()} == {"er"}
    assert {each.name for each in tmp_path.iterdir()} == {"deep"}
