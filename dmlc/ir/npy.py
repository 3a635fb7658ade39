"""Arrays in ``.npy`` files and ``.npz`` archives. The header is checked before memory is allocated for the data."""

from __future__ import annotations

import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from typing import IO, Any

import numpy as np
from msgspec import Struct
from numpy.lib import format as npy

from dmlc.diagnostics.limits import Limits

#: Errors that NumPy and zipfile raise for files that are not what they should be.
DAMAGED = (
    *(ValueError, TypeError, EOFError, SyntaxError, KeyError, IndexError, OverflowError, RecursionError, RuntimeError),
    *(struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
#: Methods that NumPy compresses with. Others shrink zeros without a limit.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class NpyError(Exception):
    """A file that holds no array that is read; the text goes on after the file's name."""


class PythonObjects(NpyError):
    """Pickled objects, which could run any code."""


class NpyHeader(Struct, frozen=True):
    """Header of a ``.npy`` file. ``nbytes`` is the size of the array's data."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> NpyHeader:
    """The header at the start of a stream. Raises ``NpyError``, and one of ``DAMAGED``."""
    version = npy.read_magic(stream)
    reader = _READERS.get(version)
    if reader is None:
        raise NpyError("has an unknown version of the .npy format")
    with warnings.catch_warnings():  # a header that Python 2 wrote is read, and warned of
        warnings.simplefilter("ignore")
        shape, is_fortran, dtype = reader(stream)
    if dtype.hasobject:
        raise PythonObjects("holds Python objects, which are never read")
    if any(isinstance(size, bool) or not 0 <= size < 1 << 62 for size in shape):
        raise NpyError(f"says that its array has the shape {list(shape)}")
    return NpyHeader(shape, bool(is_fortran), dtype)


def read_data(stream: IO[bytes], header: NpyHeader, size: int) -> Any:
    """The array after its header, in a stream of ``size`` bytes in all. Raises ``NpyError``, and one of ``DAMAGED``."""
    data = stream.read(header.nbytes) if header.nbytes <= size else b""
    if len(data) < header.nbytes:
        raise NpyError(f"is cut short: its array takes {header.nbytes:,} bytes")
    array = np.frombuffer(data, header.dtype) if data else np.zeros(0, header.dtype)
    return array.reshape(header.shape, order="F" if header.is_fortran else "C")


def members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an ``.npz`` archive by key. Raises ``NpyError`` where two have one key."""
    out: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        key = entry.filename.removesuffix(".npy")
        if key in out:
            raise NpyError(f"has two arrays {key}")
        out[key] = entry
    return out


def check_member(entry: zipfile.ZipInfo, name: str, limits: Limits) -> None:
    """Reject a member that could unpack to far more memory than the file is large.

    Raises ``NpyError`` for an unknown compression, and ``DmlcError`` E0443 beyond the limit; ``name`` is for the
    message.
    """
    if entry.compress_type not in _METHODS:
        raise NpyError("is compressed in a way that NumPy does not use")
    if entry.compress_type != zipfile.ZIP_STORED and entry.file_size > limits.unpacked_bytes:
        instead = "save it uncompressed, with numpy.savez"
        raise limits.passed("unpacked_bytes", f"{name} unpacks to", entry.file_size, instead=instead)
