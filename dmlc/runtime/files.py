"""Files that the user names: opened with coded errors, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import numpy as np

from dmlc.diagnostics import DmlcError, did_you_mean, fail, naming
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.counted import first_of
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.diagnostics.suggest import nearest
from dmlc.ir import Array, Graph, StoredTensor, npy
from dmlc.ir.plain_file import NotPlain, holds_model, open_plain, size_of
from dmlc.ops.constant import ConstantAttributes

#: Begins each .npy file.
_MAGIC = b"\x93NUMPY"
#: Advice for a file that is too large, by the limit that it exceeds.
_INSTEAD = {"file_bytes": "export it with its weights in files of their own", "text_bytes": "load data from .npy files"}
#: The time that entries of written archives carry, so that the same contents give the same bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)


def read_bytes(path: Path, limits: Limits = DEFAULTS, *, is_model: bool = False) -> bytes:
    """The whole of a plain file; pipes and devices are not waited for.

    Raises ``DmlcError`` E0420 (exit code 2) where it cannot be read, E0440 or E0114 where it is larger than a file
    or a program may be.
    """
    name = "text_bytes" if path.suffix.lower() == ".dml" and not is_model else "file_bytes"
    with naming(str(path)):
        try:
            with _open(path) as file:
                size = size_of(file)
                if size > getattr(limits, name):
                    raise limits.passed(name, f"{path} has", size, instead=_INSTEAD[name])
                return file.read()
        except (OSError, ValueError, MemoryError) as error:  # ValueError: a name with a NUL in it
            raise cannot("open", path, error) from None


def is_model_file(path: Path) -> bool:
    """Tell by its content if a file holds an ONNX model; by its suffix if it cannot be read."""
    try:
        with _open(path) as file:
            return holds_model(file.read(4096), path.name)
    except (OSError, ValueError):  # whoever reads it says so
        return path.suffix.lower() == ".onnx"


def _open(path: Path) -> BinaryIO:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return open_plain(path)


def write_bytes(path: Path, data: bytes, final: Path | None = None) -> None:
    """Write a file whole: beside it first, then renamed, so that nothing is ever half written.

    A device or a pipe is written in place; a symbolic link to a file is refused, as nothing but what is named is ever
    written. Raises ``DmlcError`` E0421 (exit code 2), which names ``final``, the path that the caller renames it to.
    """
    try:
        if not is_plain_output(path):
            _write_in_place(path, data)
            return
        beside = beside_of(path)
        try:
            with beside.open("xb") as file:
                file.write(data)
            keep_mode(path, beside)
            beside.replace(path)
        except BaseException:
            remove([beside])
            raise
    except (OSError, ValueError) as error:
        raise cannot("write", final or path, error) from None


def remove(paths: Iterable[Path]) -> None:
    """Remove files; one that is gone, or that cannot be removed, is left."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def is_plain_output(path: Path) -> bool:
    """Return whether an output path is a regular file or does not exist yet; False for a device or pipe.

    Raises ``OSError`` for a folder, a block device, a socket, and a symbolic link to anything but a device or pipe.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:  # or a link that leads to nothing
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISREG(mode):
        if path.is_symlink():
            raise link_error(path)
        return True
    if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
        raise NotPlain
    return False


def link_error(path: Path) -> OSError:
    """Links are not written through: they could have come with a folder of someone else."""
    return OSError(errno.ELOOP, f"it is a symbolic link to {os.path.realpath(path)}: name that file itself")


def _write_in_place(path: Path, data: bytes) -> None:
    # a pipe that nobody reads would be waited for; without waiting the system says so
    try:
        descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "nobody reads the pipe") from None
        raise
    with os.fdopen(descriptor, "wb") as file:
        if hasattr(os, "O_NONBLOCK"):
            os.set_blocking(descriptor, True)
        file.write(data)


def beside_of(path: Path, role: str = "new") -> Path:
    """A name in the same folder that no file has, whatever the length of the path's own."""
    return path.with_name(f".{path.name[:40]}.{uuid4().hex[:8]}.{role}")


def keep_mode(old: Path, new: Path) -> None:
    """The permissions of what is replaced."""
    with contextlib.suppress(FileNotFoundError):
        new.chmod(old.stat().st_mode & 0o777)


def referred(path: Path) -> str:
    """The name of a file that a written file beside it refers to, in text. Raises ``DmlcError`` E0421 (exit code 2)."""
    try:
        path.name.encode()
    except UnicodeEncodeError:
        message = f"cannot write {path}: what refers to it is UTF-8, and its name is not"
        raise fail(codes.CANNOT_WRITE, message, help="give the output another name", exit_code=2) from None
    return path.name


def cannot(verb: str, path: Path, error: Exception) -> DmlcError:
    """The error E0420 of what cannot be opened (``open``), or E0421 of what cannot be written (``write``)."""
    reason = getattr(error, "strerror", None) or str(error) or "there is not enough memory"
    reason = reason if isinstance(error, NotPlain) or "symbolic link to" in reason else reason.lower()
    code = codes.CANNOT_READ if verb == "open" else codes.CANNOT_WRITE
    help = ""
    if verb == "write" and isinstance(error, FileNotFoundError) and not path.parent.is_dir():
        reason = f"there is no folder {path.parent}"
    if verb == "open" and isinstance(error, FileNotFoundError) and path.parent.is_dir():
        near = nearest(path.name, [other.name for other in path.parent.iterdir() if other.name != path.name], 2)
        help = f'did you mean "{near}"?' if near else ""
        if path.is_symlink():
            help = f"it is a link to {path.readlink()}, which does not exist"
    return fail(code, f"cannot {verb} {path}: {reason}", help=help, exit_code=2)


# --- arrays


def array_keys(path: Path) -> list[str]:
    """The keys of a ``.npz`` file; none of a file that is not one. Raises ``DmlcError`` E0420, E0422."""
    try:
        with _open(path) as file:
            if file.read(2) != b"PK":
                return []
            file.seek(0)
            with zipfile.ZipFile(file) as archive:
                return list(npy.members(archive))
    except npy.NpyError as error:
        raise fail(codes.BAD_ARRAY_FILE, f"{path} {error}") from None
    except npy.DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise fail(codes.BAD_ARRAY_FILE, f"{path} holds no array that can be read: {reason}") from None
    except (OSError, ValueError) as error:
        raise cannot("open", path, error) from None


def load_array(path: Path, key: str | None, name: str, limits: Limits = DEFAULTS) -> Array:
    """The array of a ``.npy`` file, or of a ``.npz`` file by ``key`` (else ``name``, else the only one).

    Raises ``DmlcError``: E0420 where the file cannot be opened, E0422 where it holds no such array, E0443 where it
    unpacks to too much.
    """
    try:
        file = _open(path)
    except (OSError, ValueError) as error:
        raise cannot("open", path, error) from None
    try:
        with file:
            return _array_in(file, path, key, name, limits)
    except npy.NpyError as error:
        raise fail(codes.BAD_ARRAY_FILE, f"{path} {error}") from None
    except (*npy.DAMAGED, OSError, MemoryError) as error:  # OSError: an archive that leads to bytes before its own
        reason = " ".join(str(error).split()) or type(error).__name__
        raise fail(codes.BAD_ARRAY_FILE, f"{path} holds no array that can be read: {reason}") from None


def named_arrays(
    paths: Iterable[str | os.PathLike[str]], limits: Limits = DEFAULTS
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The arrays ``in::NAME`` and ``out::NAME`` of ``.npz`` files by NAME; the first file that has one decides.

    Raises ``DmlcError`` for a file that cannot be read.
    """
    found: dict[str, dict[str, Array]] = {"in": {}, "out": {}}
    for path in map(Path, paths):
        for key in array_keys(path):
            side, sign, value = key.partition("::")
            if sign and side in found:
                found[side].setdefault(value, load_array(path, key, value, limits))
    return found["in"], found["out"]


def _array_in(file: BinaryIO, path: Path, key: str | None, name: str, limits: Limits) -> Array:
    if file.read(2) == b"PK":
        file.seek(0)
        with zipfile.ZipFile(file) as archive:
            entry = _member(npy.members(archive), path, key, name)
            npy.check_member(entry, str(path), limits)
            with archive.open(entry) as stream:
                unpacked: Array = npy.read_data(stream, npy.read_header(stream), entry.file_size)
                return unpacked
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        help = "numpy.save and numpy.savez write such files"
        raise fail(codes.BAD_ARRAY_FILE, f"{path} is neither an .npy nor an .npz file", help=help)
    file.seek(0)
    header = npy.read_header(file)
    if key is not None:
        raise fail(codes.BAD_ARRAY_FILE, f"{path} is one array, it has no keys", help=f"leave :{key} out")
    array: Array = npy.read_data(file, header, size_of(file))
    return array


def _member(entries: Mapping[str, zipfile.ZipInfo], path: Path, key: str | None, name: str) -> zipfile.ZipInfo:
    keys = list(entries)
    if key is None:
        key = name if name in keys else keys[0] if len(keys) == 1 else None
    if key is None or key not in keys:
        listed = first_of(keys, 10)
        has = f"it has {listed}" if keys else "it is empty"
        if key is not None:
            message, help = f"{path} has no array {key}: {has}", did_you_mean(key, keys)
        elif keys:
            message, help = f"{path} has several arrays: {listed}", f"say which, as in {path}:{keys[0]}"
        else:
            message, help = f"{path} has no arrays", ""
        raise fail(codes.BAD_ARRAY_FILE, message, help=help)
    return entries[key]


def spare_weights(graph: Graph, path: Path) -> None:
    """Raises ``DmlcError`` E0421 where a path that is to be written holds weights that a model was read with."""
    folder: Path | None = getattr(graph.origin or graph.joined, "folder", None)
    if folder is None:
        return
    for node in graph:
        tensor = node.attributes.value if isinstance(node.attributes, ConstantAttributes) else None
        if isinstance(tensor, StoredTensor) and tensor.is_apart:
            with contextlib.suppress(OSError, ValueError):  # one of the two does not exist
                if path.samefile(folder / tensor.note):
                    help = "give the output another name"
                    message = f"cannot write {path}: weights of the source are in it"
                    raise fail(codes.CANNOT_WRITE, message, help=help, exit_code=2)


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """The arrays as an ``.npz`` archive; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", EPOCH), member.getvalue())
    return buffer.getvalue()
