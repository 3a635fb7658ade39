"""Files are written whole or not at all; arrays are read or refused with a reason."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import dmlc
from dmlc.runtime import files


def refused(path: Path, key: str | None = None) -> tuple[str, int, str]:
    with pytest.raises(dmlc.DmlcError) as caught:
        files.load_array(path, key, "x")
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.code.id, caught.value.exit_code, diagnostic.message


def test_arrays_by_file_and_key(tmp_path: Path) -> None:
    a, b = np.arange(3), np.arange(4.0)
    np.save(tmp_path / "a.npy", a)
    np.savez(tmp_path / "one.npz", only=a)
    np.savez(tmp_path / "two.npz", x=a, y=b)
    assert files.load_array(tmp_path / "a.npy", None, "x").tolist() == a.tolist()
    assert files.load_array(tmp_path / "one.npz", None, "x").tolist() == a.tolist()
    assert files.load_array(tmp_path / "two.npz", None, "x").tolist() == a.tolist()
    assert files.load_array(tmp_path / "two.npz", "y", "x").tolist() == b.tolist()
    with pytest.raises(dmlc.DmlcError, match="several arrays: x, y"):
        files.load_array(tmp_path / "two.npz", None, "z")
    with pytest.raises(dmlc.DmlcError, match=r'no array yy.*did you mean "y"'):
        files.load_array(tmp_path / "two.npz", "yy", "z")
    assert refused(tmp_path / "a.npy", "key")[:2] == ("E0422", 1)


def test_files_that_hold_no_array(tmp_path: Path) -> None:
    np.save(tmp_path / "whole.npy", np.arange(1000))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "whole.npz", x=np.arange(1000))
    for name, size in (("whole.npy", 500), ("whole.npy", 20), ("whole.npz", 500), ("whole.npy", 0)):
        cut = tmp_path / f"cut{Path(name).suffix}"
        cut.write_bytes((tmp_path / name).read_bytes()[:size])
        assert refused(cut)[:2] == ("E0422", 1)
    (tmp_path / "text.npy").write_text("hello")
    for name in ("text.npy", "objects.npy"):
        assert refused(tmp_path / name)[:2] == ("E0422", 1)
    with pytest.raises(dmlc.DmlcError, match=r"text\.npy is neither an \.npy nor an \.npz file"):
        files.load_array(tmp_path / "text.npy", None, "x")


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "data.npy").write_bytes(b"")
    assert refused(tmp_path)[:2] == ("E0420", 2)
    assert refused(tmp_path / "a\0b")[:2] == ("E0420", 2)
    with pytest.raises(dmlc.DmlcError, match='did you mean "data\\.npy"'):
        files.load_array(tmp_path / "dta.npy", None, "x")
    (tmp_path / "link.npy").symlink_to("nowhere.npy")
    with pytest.raises(dmlc.DmlcError, match=r"E0420.*it is a link to nowhere\.npy, which does not exist"):
        files.load_array(tmp_path / "link.npy", None, "x")


def test_archives_are_the_same_for_the_same_arrays(tmp_path: Path) -> None:
    arrays = {"file": np.arange(3), "a/b": np.float32(2.5), "": np.zeros((0, 2))}
    data = files.npz_bytes(arrays)
    assert data == files.npz_bytes(arrays)
    (tmp_path / "out.npz").write_bytes(data)
    with np.load(tmp_path / "out.npz") as back:
        assert {name: back[name].tolist() for name in back.files} == {
            k: np.asarray(v).tolist() for k, v in arrays.items()
        }


def test_writing_leaves_nothing_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.bin"
    target.write_bytes(b"before")
    target.chmod(0o640)

    def fail(self: Path, other: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        with pytest.raises(dmlc.DmlcError, match="no space left on device") as caught:
            files.write_bytes(target, b"after")
    assert caught.value.exit_code == 2
    assert target.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["out.bin"]
    files.write_bytes(target, b"after")
    assert target.read_bytes() == b"after"
    assert target.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["out.bin"]


def test_writing_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for target in (tmp_path / "no" / "such", tmp_path, tmp_path / "file" / "below", tmp_path / "a\0b"):
        with pytest.raises(dmlc.DmlcError) as caught:
            files.write_bytes(target, b"x")
        assert (caught.value.diagnostics[0].code.id, caught.value.exit_code) == ("E0421", 2)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="links and devices of POSIX")
def test_devices_are_written_in_place_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for _ in range(2):  # a link to nothing, and to a file
        with pytest.raises(dmlc.DmlcError, match=r"symbolic link to .*real: name that file itself"):
            files.write_bytes(tmp_path / "link", b"x")
        files.write_bytes(tmp_path / "real", b"y")
    assert (tmp_path / "real").read_bytes() == b"y"
    files.write_bytes(Path(os.devnull), b"x")
    assert Path(os.devnull).is_char_device()
    (tmp_path / "null").symlink_to(os.devnull)  # as /dev/stdout is a link
    files.write_bytes(tmp_path / "null", b"x")
