"""A model and the file of its weights, written so that a model at its path always has its weights.

The weights' file is named after its content, so new weights never replace those that the old model needs. They are
written first, the model is renamed second, and old weights are removed last.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from dmlc.ir.plain_file import NotPlain
from dmlc.runtime import files

_DIGITS = 16


def write_pair(
    path: Path,
    write_data: Callable[[Path], str],
    model: Callable[[str], bytes],
    spared: Iterable[Path],
    shared: str = "",
) -> None:
    """Write ``path`` and its weights, and remove other weights of that name except those ``spared``.

    ``write_data`` writes a new file and returns the hex digest of its content; ``model(name)`` returns the model that
    refers to the file ``name``. If ``shared`` is set, it is the start of that name, and no weights are removed. Raises
    ``OSError``, and what the two raise; then the old model is whole.
    """
    if not files.is_plain_output(path):
        raise NotPlain
    with _locked(path.parent):
        files.remove(_numbered(path.parent, f".{path.name[:40]}.", 8, ".pair"))  # compilations that were killed
        beside, final = files.beside_of(path, "pair"), files.beside_of(path, "pair")
        stem = shared or path.name
        old = set(_numbered(path.parent, f"{stem}.", _DIGITS, ".data"))
        new: set[Path] = set()
        try:
            data = path.with_name(f"{stem}.{write_data(beside)[:_DIGITS]}.data")
            with final.open("xb") as stream:
                stream.write(model(data.name))
            for written in (beside, final):
                files.keep_mode(path, written)
            new = {data} - old
            beside.replace(data)
            final.replace(path)
        except BaseException:
            files.remove([beside, final, *new])
            raise
        if shared:
            return
        needed = {data.resolve(), *[file.resolve() for file in spared]}
        files.remove([file for file in old if file.resolve() not in needed])


def _numbered(folder: Path, before: str, digits: int, after: str) -> list[Path]:
    """Return the files of a folder whose name has so many hex digits between two texts."""
    return list(folder.glob(glob.escape(before) + "[0-9a-f]" * digits + after))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other compilations out of the folder: one could remove weights whose model another is about to rename.

    Windows and some file systems have no such lock. There a model whose weights were removed fails to load.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
