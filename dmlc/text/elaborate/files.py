"""``load("w.npy")`` and ``load("w.npz", "key")``: data of a const from the program's folders, and only from there."""

from __future__ import annotations

import zipfile
from typing import IO, Any, BinaryIO

from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.catalogue import files as codes
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Tensor, TensorType, as_dtype, npy
from dmlc.ir.plain_file import size_of
from dmlc.text.elaborate.folders import Folders, LoadError, opened


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
