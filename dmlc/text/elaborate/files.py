"""Files of a program's ``load`` and ``use``: from its own folder and the included ones, and nothing outside."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import IO, Any, BinaryIO

from msgspec import Struct

from dmlc.diagnostics import Code, DmlcError, Help, suggestion
from dmlc.diagnostics.catalogue import files as codes
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Tensor, TensorType, as_dtype, npy
from dmlc.ir.plain_file import NotPlain, open_plain, size_of


class LoadError(Exception):
    """A file that cannot be loaded; the elaboration knows the place."""

    def __init__(self, code: Code, message: str, help: Help = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help


class Folders(Struct, frozen=True):
    """Folders of the files that a program names: its ``own`` folder, then the ``include`` folders in order."""

    own: Path | None
    include: tuple[Path, ...] = ()

    def find(self, name: str, call: str) -> Path:
        """The path of a plain file below one of the folders; ``call`` names it in messages. Raises ``LoadError``."""
        folders = [folder for folder in (self.own, *self.include) if folder is not None]
        if not folders:
            message = f"{call} needs a folder, and this program has none"
            raise LoadError(codes.NO_FOLDER, message, "give dmlc the program as a file")
        for folder in folders:
            path = _inside(folder, name)
            if path is not None:
                return path
        where = "the program's folder" if len(folders) == 1 else "the program's folder and the folders of --include"
        known = [found for folder in folders for found in _beside(folder, name)]
        near = suggestion(name, known, spelled=_string) or "name the folder that it is in by --include"
        raise LoadError(codes.CANNOT_LOAD, f"{name} does not exist in {where}", near)


@contextmanager
def opened(path: Path, name: str) -> Iterator[BinaryIO]:
    """A file that ``Folders`` found. Raises ``LoadError`` for what the system refuses, here and inside."""
    try:
        with open_plain(path, links=False) as file:
            yield file
    except NotPlain:
        raise LoadError(codes.CANNOT_LOAD, f"{name} is not a plain file") from None
    except OSError as error:
        raise LoadError(codes.CANNOT_LOAD, f"{name} cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise LoadError(codes.CANNOT_LOAD, f"{name} cannot be read: there is not enough memory") from None


def read_file(path: Path, name: str, most: int) -> bytes:
    """The first bytes of a file, up to a limit. Raises ``LoadError``."""
    with opened(path, name) as file:
        return file.read(most)


def _beside(folder: Path, name: str) -> list[str]:
    """The names of the files in the folder of a missing one, as the program would write them."""
    before = name.rpartition("/")[0]
    try:
        return [f"{before}/{entry.name}" if before else entry.name for entry in sorted((folder / before).iterdir())]
    except (OSError, ValueError):
        return []


def _string(text: str) -> str:
    """A text as a program writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _inside(folder: Path, name: str) -> Path | None:
    """The path of a plain file below the folder; None where there is none. Raises ``LoadError``."""
    windows = PureWindowsPath(name)  # knows both separators, drives and network shares
    if windows.drive or windows.root or ".." in windows.parts:
        help = "put a copy into it, or write a path below a folder and name that folder by --include"
        raise LoadError(codes.OUTSIDE_FOLDER, f"{name} is outside of the program's folder", help)
    if not windows.parts:
        raise LoadError(codes.CANNOT_LOAD, "the name of a file is needed, and this one is empty")
    try:
        path = folder
        for part in name.split("/"):
            path = path / part
            if path.is_symlink():
                message = f"{name} is a symbolic link, or is below one, which could lead anywhere"
                raise LoadError(codes.OUTSIDE_FOLDER, message, "put a copy of the file into the program's folder")
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):  # links of another kind (Windows)
            raise LoadError(codes.OUTSIDE_FOLDER, f"{name} is a link that leads outside of the program's folder")
        if path.is_dir():
            raise LoadError(codes.CANNOT_LOAD, f"{name} is a folder")
        if not path.exists():
            return None
        if path.is_file() and path.stat().st_nlink > 1:
            message = f"{name} is a hard link, which could be a file of someone else"
            raise LoadError(codes.OUTSIDE_FOLDER, message, "put a copy of the file into the program's folder")
    except (OSError, RuntimeError, ValueError):  # a name that the system refuses
        return None
    return path


# --- load("w.npy") and load("w.npz", "key")


def load_tensor(folders: Folders, name: str, key: str | None, wanted: TensorType, const: str, limits: Limits) -> Tensor:
    """The array in a file of ``folders``, which must be of the type ``wanted``. Raises ``LoadError``.

    The header is compared before any data is read, so that a file cannot ask for more memory than the program does.
    """
    path = folders.find(name, f'load("{name}")')
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".npz"):
        raise LoadError(codes.NOT_AN_ARRAY, f"{name} is neither .npy nor .npz", "save it with numpy.save")
    if suffix == ".npy" and key is not None:
        raise LoadError(codes.WHICH_ARRAY, f"{name} has no keys: a .npy file holds one array", f'write load("{name}")')
    try:
        with opened(path, name) as file:
            if suffix == ".npy":
                array = _read(file, size_of(file), name, wanted, const)
            else:
                array = _read_zipped(file, name, key, (wanted, const), limits)
    except DmlcError as error:
        (passed,) = error.diagnostics
        raise LoadError(passed.code, passed.message, passed.help) from None
    except npy.PythonObjects as error:
        raise LoadError(codes.PICKLED, f"{name} {error}", "save it with a dtype of numbers") from None
    except npy.NpyError as error:
        raise LoadError(codes.NOT_AN_ARRAY, f"{name} {error}") from None
    except npy.DAMAGED:
        raise LoadError(codes.NOT_AN_ARRAY, f"{name} is damaged, or no {suffix} file") from None
    return Tensor(array, note=name if key is None else f"{name}:{key}")


def _read_zipped(file: BinaryIO, name: str, key: str | None, wanted: tuple[TensorType, str], limits: Limits) -> Any:
    with zipfile.ZipFile(file) as archive:
        entries = npy.members(archive)
        listed = ", ".join(f'"{k}"' for k in list(entries)[:10])
        if key is None:
            message = f"{name} holds {len(entries)} arrays, and load names none of them"
            raise LoadError(codes.WHICH_ARRAY, message, f'write load("{name}", "key"); its keys are {listed}')
        if key not in entries:
            raise LoadError(codes.WHICH_ARRAY, f'{name} has no array "{key}"', f"its keys are {listed or 'none'}")
        npy.check_member(entries[key], name, limits)
        with archive.open(entries[key]) as stream:
            return _read(stream, entries[key].file_size, name, *wanted)


def _read(stream: IO[bytes], size: int, name: str, wanted: TensorType, const: str) -> Any:
    header = npy.read_header(stream)
    _compare(header, name, wanted, const)
    return npy.read_data(stream, header, size)


def _compare(header: npy.NpyHeader, name: str, wanted: TensorType, const: str) -> None:
    shape, dtype = header.shape, header.dtype
    try:
        found = TensorType(as_dtype(dtype), shape)
        text = str(found)
    except KeyError:
        found, text = None, f"{dtype}[{', '.join(map(str, shape))}]"
    if found != wanted:
        help = f"declare {const}: {text}" if found is not None else "save it with a dtype of the language"
        raise LoadError(codes.LOADED_TYPE, f"{name} is {text}, {const} is {wanted}", help)
