"""Weights of a model: data that stays where it is, in the model or in a file beside it, until it is asked for."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import partial
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO

import numpy as np
from msgspec import Struct
from onnx import AttributeProto, TensorProto, numpy_helper

from dmlc.diagnostics import DmlcError, did_you_mean, fail
from dmlc.diagnostics.catalogue import files as codes
from dmlc.diagnostics.catalogue import models
from dmlc.ir import Array, DType, StoredTensor, Tensor, TensorType
from dmlc.onnx_schema.types import DTYPE_OF

#: Bits of an element, by ONNX's number of the type (onnx.proto, ``TensorProto.DataType``); types that are not listed
#: (strings, those of six bits) have no size that the shape gives.
_BITS: dict[int, int] = {
    TensorProto.FLOAT: 32, TensorProto.UINT8: 8, TensorProto.INT8: 8, TensorProto.UINT16: 16, TensorProto.INT16: 16,
    TensorProto.INT32: 32, TensorProto.INT64: 64, TensorProto.BOOL: 8, TensorProto.FLOAT16: 16,
    TensorProto.DOUBLE: 64, TensorProto.UINT32: 32, TensorProto.UINT64: 64, TensorProto.COMPLEX64: 64,
    TensorProto.COMPLEX128: 128, TensorProto.BFLOAT16: 16, TensorProto.FLOAT8E4M3FN: 8,
    TensorProto.FLOAT8E4M3FNUZ: 8, TensorProto.FLOAT8E5M2: 8, TensorProto.FLOAT8E5M2FNUZ: 8, TensorProto.UINT4: 4,
    TensorProto.INT4: 4, TensorProto.FLOAT4E2M1: 4, TensorProto.FLOAT8E8M0: 8, TensorProto.UINT2: 2,
    TensorProto.INT2: 2,
}  # fmt: skip
#: The typed field that holds the elements where there is no raw data (onnx.proto, ``TensorProto``).
_FIELDS: dict[int, str] = {
    TensorProto.FLOAT: "float_data", TensorProto.DOUBLE: "double_data", TensorProto.INT64: "int64_data",
    TensorProto.UINT32: "uint64_data", TensorProto.UINT64: "uint64_data",
}  # fmt: skip
#: Elements of an array, sizes of 0 left out: NumPy counts bytes in 63 bits, and elements have up to 16.
_MOST_ELEMENTS = 2**59 - 1


def stored(tensor: TensorProto, folder: Path | None) -> Tensor:
    """The weight, unread: its type now, its data when it is asked for. ``folder`` is where external data lies.

    Raises ``DmlcError``: E0432 for a reference to a file that is not followed, E0433 where that file cannot be read,
    E0434 where the data does not fit the shape. The file is checked again when it is read.
    """
    dtype = DTYPE_OF[tensor.data_type]
    size = _checked_size(tensor)
    type = TensorType(dtype, tuple(tensor.dims))
    if tensor.data_location == TensorProto.EXTERNAL:
        data = external(tensor, folder)
        return StoredTensor(type, tensor, partial(_read, data, dtype, type), note=data.location, is_apart=True)
    _check_inline(tensor, size)
    return StoredTensor(type, tensor, partial(_decode, tensor, dtype, type))


def attribute_data(attribute: AttributeProto, op_type: str) -> Array:
    """The tensor that an attribute of a node holds.

    Raises ``DmlcError`` E0431 where its data does not fit its shape, which ONNX's checker does not see for all types,
    or where ONNX has no such type.
    """
    try:
        data: Array = numpy_helper.to_array(attribute.t)
    except (ValueError, KeyError):
        misfit = f"the data of the attribute {attribute.name} of a {op_type} does not fit its shape and type"
        raise fail(models.BROKEN_MODEL, misfit) from None
    return data


# --- data in the model


def byte_size(tensor: TensorProto) -> int | None:
    """The bytes of the data by shape and type, elements of less than a byte packed; None where the type gives none.

    Raises ``DmlcError`` E0434 for a negative size.
    """
    _check_dims(tensor)
    bits = _BITS.get(tensor.data_type)
    return None if bits is None else (prod(tensor.dims) * bits + 7) // 8


def _checked_size(tensor: TensorProto) -> int:
    size = byte_size(tensor)
    assert size is not None
    return size


def _check_dims(tensor: TensorProto) -> None:
    if any(size < 0 for size in tensor.dims):
        raise _misfit(tensor, f"has the shape {list(tensor.dims)}: a size cannot be negative")
    if 0 in tensor.dims and prod(filter(None, tensor.dims)) > _MOST_ELEMENTS:  # NumPy makes no such empty array
        raise _misfit(tensor, f"has the shape {list(tensor.dims)}, which no array can have")


def _check_inline(tensor: TensorProto, size: int) -> None:
    if tensor.HasField("segment"):
        raise _misfit(tensor, "is one segment of a weight, which ONNX never put to use")
    if tensor.HasField("raw_data"):
        have = len(tensor.raw_data)
        if have != size:
            raise _misfit(tensor, f"has {have} bytes of data, its shape {list(tensor.dims)} needs {size}")
        return
    field = _FIELDS.get(tensor.data_type, "int32_data")
    count, want = len(getattr(tensor, field)), prod(tensor.dims)
    if count != want:
        raise _misfit(tensor, f"has {count} elements in {field}, its shape {list(tensor.dims)} needs {want}")


def _decode(tensor: TensorProto, dtype: DType, type: TensorType) -> Any:
    if tensor.HasField("raw_data"):
        return _array(tensor.raw_data, dtype, type)
    return numpy_helper.to_array(tensor)


def _array(data: bytes, dtype: DType, type: TensorType) -> Any:
    return np.frombuffer(data, dtype.numpy.newbyteorder("<")).reshape([d for d in type.shape if isinstance(d, int)])


# --- data in a file beside the model


class External(Struct, frozen=True):
    """Data in a file: ``length`` bytes from ``offset`` on. ``name`` is the weight's, for messages."""

    name: str
    location: str
    path: Path
    offset: int
    length: int


def external(tensor: TensorProto, folder: Path | None) -> External:
    """Return the location of an external weight's data; nothing is read. Raises what ``stored`` raises."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    path = _followed(tensor, location, folder)
    offset = _number(tensor, entries, "offset", 0)
    size = byte_size(tensor)
    length = _number(tensor, entries, "length", size)
    if size is not None and length != size:
        raise _misfit(tensor, f"refers to {length} bytes of {location}, its shape {list(tensor.dims)} needs {size}")
    found = External(tensor.name, location, path, offset, length)
    try:
        status = path.lstat()
    except (OSError, ValueError) as error:
        raise _unreadable(found, error) from None
    _check_file(found, status)
    return found


def open_external(data: External) -> BinaryIO:
    """The file, at the first byte of the data; what is opened is checked again. Raises what ``stored`` raises."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        file = os.fdopen(os.open(data.path, flags), "rb", buffering=0)
    except (OSError, ValueError) as error:
        raise _unreadable(data, error) from None
    try:
        _check_file(data, os.fstat(file.fileno()))
        file.seek(data.offset)
    except BaseException:
        file.close()
        raise
    return file


def blocks(data: External, most: int = 1 << 20) -> Iterator[bytes]:
    """The bytes of the data in order, in blocks of up to ``most``. Raises what ``stored`` raises."""
    with open_external(data) as file:
        left = data.length
        while left:
            part = file.read(min(left, most))
            if not part:
                raise _misfit(data, f"refers to {data.location}, which became shorter while it was read")
            left -= len(part)
            yield part


def read_external(data: External) -> bytes:
    """All bytes of the data. Raises what ``stored`` raises."""
    parts = list(blocks(data, 1 << 30))  # a single read gives at most 2 GiB on Linux
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _read(data: External, dtype: DType, type: TensorType) -> Any:
    return _array(read_external(data), dtype, type)


def _number(tensor: TensorProto, entries: dict[str, str], key: str, default: int | None) -> int:
    text = entries.get(key)
    if text is None and default is not None:
        return default
    if text is None:
        raise _misfit(tensor, f"refers to data without a {key}")
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise _misfit(tensor, f"refers to data with the {key} {text!r}, which is not a number of bytes")
    return int(text)


def _followed(tensor: TensorProto, location: str, folder: Path | None) -> Path:
    """The path of a location: a file below the folder, reached without links. Locations are data of someone else's
    model, so what any system takes for a way out of the folder is refused on all of them."""
    if folder is None:
        raise _refused(tensor, location, "a model that comes from memory has no folder", "give the path of the model")
    windows, posix = PureWindowsPath(location), PurePosixPath(location)
    if not location.strip() or "\0" in location:
        raise _refused(tensor, location, "that names no file")
    if posix.is_absolute() or windows.drive or windows.root:
        raise _refused(tensor, location, "an absolute path could lie anywhere", "put the file into the model's folder")
    if ".." in windows.parts or ".." in posix.parts:
        raise _refused(
            tensor, location, ".. could leave the folder of the model", "put the file into the model's folder"
        )
    path = folder
    for part in posix.parts:
        path = path / part
        if _is_link(tensor, location, path):
            raise _refused(tensor, location, "a symbolic link could lead anywhere", "put the file itself there")
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):  # links of another kind (Windows)
        raise _refused(tensor, location, "it leads out of the folder", "put the file itself there")
    return path


def _is_link(tensor: TensorProto, location: str, path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError as error:  # a name that is too long
        raise _refused(tensor, location, (error.strerror or str(error)).lower()) from None


def _check_file(data: External, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _refused(data, data.location, "that is not a plain file")
    if status.st_nlink > 1:
        help = "put a copy of the file there"
        raise _refused(data, data.location, "a hard link could be a file of someone else", help)
    if data.offset + data.length > status.st_size:
        what = f"refers to bytes {data.offset} to {data.offset + data.length} of {data.location}"
        raise _misfit(data, f"{what}, which has {status.st_size}")


def _refused(tensor: TensorProto | External, location: str, why: str, help: str = "") -> DmlcError:
    return fail(codes.WEIGHT_REFERENCE, f"weight {tensor.name} refers to {location!r}: {why}", help=help)


def _unreadable(data: External, error: Exception) -> DmlcError:
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    near = ""
    if isinstance(error, FileNotFoundError) and data.path.parent.is_dir():
        near = did_you_mean(data.path.name, [other.name for other in data.path.parent.iterdir()])
    message = f"weight {data.name} is in {data.location}, which cannot be read: {reason}"
    return fail(codes.WEIGHT_FILE, message, help=near)


def _misfit(tensor: TensorProto | External, what: str) -> DmlcError:
    return fail(codes.WEIGHT_SIZE, f"weight {tensor.name} {what}")
