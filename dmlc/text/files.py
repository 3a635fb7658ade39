"""``load("w.npy")`` and ``load("w.npz", "key")``: data of a const from the program's folder, and only from there."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from pathlib import Path, PureWindowsPath
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from dmlc.diagnostics import Code
from dmlc.diagnostics.catalogue import files as codes
from dmlc.ir import Tensor, TensorType, as_dtype

#: What NumPy, zipfile and the system raise for files that are not what they should be.
_DAMAGED = (ValueError, EOFError, SyntaxError, struct.error, zipfile.BadZipFile, zlib.error, RuntimeError, KeyError)


class LoadError(Exception):
    """A file that cannot be loaded; the elaboration knows the place."""

    def __init__(self, code: Code, message: str, help: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help


def load_tensor(folder: Path | None, name: str, key: str | None, wanted: TensorType, const: str) -> Tensor:
    """The array in a file below ``folder``, which must be of the type ``wanted``. Raises ``LoadError``.

    The header is compared before any data is read, so that a file cannot ask for more memory than the program does.
    """
    path = _inside(folder, name)
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".npz"):
        raise LoadError(codes.NOT_AN_ARRAY, f"{name} is neither .npy nor .npz", "save it with numpy.save")
    if suffix == ".npy" and key is not None:
        raise LoadError(codes.WHICH_ARRAY, f"{name} has no keys: a .npy file holds one array", f'write load("{name}")')
    try:
        if suffix == ".npy":
            with path.open("rb") as stream:
                array = _read(stream, path.stat().st_size, name, wanted, const)
        else:
            array = _read_zipped(path, name, key, wanted, const)
    except OSError as error:
        raise LoadError(codes.CANNOT_LOAD, f"{name} cannot be read: {error.strerror or error}") from None
    except _DAMAGED:
        raise LoadError(codes.NOT_AN_ARRAY, f"{name} is damaged, or no {suffix} file") from None
    return Tensor(array, note=name if key is None else f"{name}:{key}")


def _inside(folder: Path | None, name: str) -> Path:
    """The path of a plain file below the folder. Raises ``LoadError``."""
    if folder is None:
        message = f'load("{name}") needs a folder, and this program has none'
        raise LoadError(codes.NO_FOLDER, message, "give dmlc the program as a file")
    windows = PureWindowsPath(name)  # knows both separators, drives and network shares
    if windows.drive or windows.root or ".." in windows.parts:
        raise LoadError(codes.OUTSIDE_FOLDER, f"{name} lies outside of the program's folder", "put a copy beside it")
    missing = LoadError(codes.CANNOT_LOAD, f"{name} does not exist in the program's folder")
    if not windows.parts:
        raise LoadError(codes.CANNOT_LOAD, "load needs the name of a file")
    try:
        root = folder.resolve()
        path = root.joinpath(*name.split("/")).resolve()
        if not path.is_relative_to(root):
            message = f"{name} is a link that leads outside of the program's folder"
            raise LoadError(codes.OUTSIDE_FOLDER, message, "put a copy of the file beside the program")
        if path.is_dir():
            raise LoadError(codes.CANNOT_LOAD, f"{name} is a folder")
        if not path.exists():
            raise missing
        if not path.is_file():
            raise LoadError(codes.CANNOT_LOAD, f"{name} is not a plain file")
    except (OSError, RuntimeError, ValueError):  # a circle of links, a name that the system refuses
        raise missing from None
    return path


def _read_zipped(path: Path, name: str, key: str | None, wanted: TensorType, const: str) -> Any:
    with zipfile.ZipFile(path) as archive:
        sizes = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        listed = ", ".join(f'"{k}"' for k in list(sizes)[:10])
        if key is None:
            message = f"{name} holds {len(sizes)} arrays, and load is not told which"
            raise LoadError(codes.WHICH_ARRAY, message, f'write load("{name}", "key"); its keys are {listed}')
        if key not in sizes:
            raise LoadError(codes.WHICH_ARRAY, f'{name} has no array "{key}"', f"its keys are {listed or 'none'}")
        with archive.open(sizes[key]) as stream:
            return _read(stream, sizes[key].file_size, name, wanted, const)


def _read(stream: IO[bytes], size: int, name: str, wanted: TensorType, const: str) -> Any:
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise LoadError(codes.NOT_AN_ARRAY, f"{name} has an unknown version of the .npy format")
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, is_fortran, dtype = read_header(stream)
    if dtype.hasobject:
        help = "save it with a dtype of numbers"
        raise LoadError(codes.PICKLED, f"{name} holds Python objects, which are never read", help)
    _compare(shape, dtype, name, wanted, const)
    needed = math.prod(shape) * dtype.itemsize
    data = stream.read(needed) if needed <= size else b""
    if len(data) < needed:
        raise LoadError(codes.NOT_AN_ARRAY, f"{name} is cut short: its array takes {needed:,} bytes")
    array = np.frombuffer(data, dtype) if needed else np.zeros(0, dtype)
    return array.reshape(shape, order="F" if is_fortran else "C")


def _compare(shape: tuple[int, ...], dtype: np.dtype[Any], name: str, wanted: TensorType, const: str) -> None:
    try:
        found = TensorType(as_dtype(dtype), tuple(shape))
        text = str(found)
    except KeyError:
        found, text = None, f"{dtype}[{', '.join(map(str, shape))}]"
    if found != wanted:
        help = f"declare {const}: {text}" if found is not None else "save it with a dtype of the language"
        raise LoadError(codes.LOADED_TYPE, f"{name} is {text}, {const} is {wanted}", help)
