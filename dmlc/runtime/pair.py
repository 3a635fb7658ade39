"""A model and the file of its data, written so that at every moment what lies at their names belongs together.

Two renames are not one. So where there is data already, the new model first refers to new data behind the old, in a
file that serves the old model too; when the model is in place, the data moves to the front and the model follows.
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dmlc.ir.plain_file import NotPlain
from dmlc.runtime import files

#: Another compilation into the same folder may be writing; after so long it is told instead.
_PATIENCE_S, _STEP_S = 60.0, 0.02
_ROLES = ("data", "bridge", "onnx", "moved")
_PAGE = 4096


def write_pair(path: Path, data_path: Path, write_data: Callable[[Path], None], model: Callable[[int], bytes]) -> None:
    """Write ``data_path`` and then ``path``, whole or not at all.

    ``write_data`` writes a new file; ``model(start)`` is the model whose data begins at that byte. Where the last
    steps fail, the model that is there is the new one. Raises ``OSError``, and what the two raise.
    """
    if not files.is_plain_output(path) or not files.is_plain_output(data_path):
        raise NotPlain
    data, bridge, final, moved = (files.beside_of(path, role) for role in _ROLES)
    with _locked(path.parent) as is_alone:
        if is_alone:
            _remove_left_over(path)
        try:
            write_data(data)
            _write(final, model(0), path)
            if not data_path.exists():
                _rename_first(data, data_path, final, path)
            elif filecmp.cmp(data, data_path, shallow=False):
                final.replace(path)
            else:
                files.keep_mode(data_path, data)
                length = data.stat().st_size
                _write(moved, model(_build_bridge(data_path, data, bridge)), path)
                _cross((data, bridge, data_path), (final, moved, path), length)
        finally:
            for left in (data, bridge, final, moved):
                with contextlib.suppress(OSError):
                    left.unlink()


def _write(file: Path, data: bytes, replaced: Path) -> None:
    with file.open("xb") as stream:
        stream.write(data)
    files.keep_mode(replaced, file)


def _rename_first(data: Path, data_path: Path, model: Path, path: Path) -> None:
    data.replace(data_path)
    try:
        model.replace(path)
    except BaseException:
        data_path.unlink(missing_ok=True)
        raise


def _build_bridge(old: Path, data: Path, bridge: Path) -> int:
    """The old data with the new behind it, and the new with itself at the same place; that place."""
    length = data.stat().st_size
    start = -(-max(old.stat().st_size, length) // _PAGE) * _PAGE
    with bridge.open("xb") as out:
        for part, place in ((old, 0), (data, start)):
            with part.open("rb") as source:
                out.seek(place)
                shutil.copyfileobj(source, out, 1 << 20)
    with data.open("rb") as source, data.open("r+b") as out:
        out.seek(start)
        for begin in range(0, length, 1 << 20):
            out.write(source.read(min(1 << 20, length - begin)))
    files.keep_mode(old, bridge)
    return start


def _cross(data: tuple[Path, Path, Path], model: tuple[Path, Path, Path], length: int) -> None:
    """Each of these steps leaves a model and the data that it refers to."""
    new_data, bridge, data_path = data
    new_model, moved, path = model
    old_length = data_path.stat().st_size
    bridge.replace(data_path)
    try:
        moved.replace(path)
    except BaseException:
        os.truncate(data_path, old_length)
        raise
    new_data.replace(data_path)
    new_model.replace(path)
    os.truncate(data_path, length)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """One compilation at a time; whether that is certain (it is not on Windows, nor where folders take no locks)."""
    try:
        import fcntl
    except ImportError:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        end = time.monotonic() + _PATIENCE_S
        is_alone = True
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise OSError(errno.EAGAIN, "another compilation writes in its folder") from None
                time.sleep(_STEP_S)
            except OSError:
                is_alone = False
                break
        yield is_alone
    finally:
        os.close(descriptor)


def _remove_left_over(path: Path) -> None:
    """What compilations into the path left that were killed."""
    pattern = re.compile(rf"\.{re.escape(path.name[:40])}\.[0-9a-f]{{8}}\.({'|'.join(_ROLES)})")
    for other in list(path.parent.iterdir()):
        if pattern.fullmatch(other.name):
            with contextlib.suppress(OSError):
                other.unlink()


__all__ = ["write_pair"]
