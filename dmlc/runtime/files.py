"""Files that the user names: opened with coded errors, written whole or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from dmlc.diagnostics import DmlcError, did_you_mean, fail
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.ir import Array

#: The time that entries of written archives carry, so that the same arrays give the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def read_bytes(path: Path) -> bytes:
    """The whole file. Raises ``DmlcError`` E0420 (exit code 2)."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise cannot("open", path, error) from None


def check_opens(path: Path) -> None:
    """Raises ``DmlcError`` E0420 (exit code 2) for a file that cannot be read; nothing is read."""
    try:
        path.open("rb").close()
    except (OSError, ValueError) as error:
        raise cannot("open", path, error) from None


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file whole: beside it first, then renamed, so that nothing is ever half written.

    What is not a plain file (a device, a pipe) is written in place. Raises ``DmlcError`` E0421 (exit code 2).
    """
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)
            return
        beside = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
        try:
            with beside.open("xb") as file:
                file.write(data)
            if target.exists():
                beside.chmod(target.stat().st_mode & 0o777)
            beside.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except (OSError, ValueError) as error:
        raise cannot("write", path, error) from None


def cannot(verb: str, path: Path, error: Exception) -> DmlcError:
    """The error E0420 of what cannot be opened (``open``), or E0421 of what cannot be written (``write``)."""
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    code = codes.CANNOT_READ if verb == "open" else codes.CANNOT_WRITE
    help = ""
    if verb == "open" and isinstance(error, FileNotFoundError) and path.parent.is_dir():
        help = did_you_mean(path.name, [other.name for other in path.parent.iterdir()])
    return fail(code, f"cannot {verb} {path}: {reason}", help=help, exit_code=2)


# --- arrays


def load_array(path: Path, key: str | None, name: str) -> Array:
    """The array of a ``.npy`` file, or of a ``.npz`` file by ``key`` (else ``name``, else the only one).

    Raises ``DmlcError``: E0420 where the file cannot be opened, E0422 where it holds no such array.
    """
    data = read_bytes(path)
    try:
        loaded: Any = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            if key is not None:
                raise fail(codes.BAD_ARRAY_FILE, f"{path} is one array, it has no keys", help=f"leave :{key} out")
            return loaded
        return _member(loaded, path, key, name)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, SyntaxError, MemoryError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise fail(codes.BAD_ARRAY_FILE, f"{path} holds no array that can be read: {reason}") from None


def _member(archive: Any, path: Path, key: str | None, name: str) -> Array:
    keys = list(archive.keys())
    if key is None:
        key = name if name in keys else keys[0] if len(keys) == 1 else None
    if key is None or key not in keys:
        has = f"it has {', '.join(keys)}" if keys else "it is empty"
        if key is None:
            message, help = f"{path} has several arrays: {', '.join(keys)}", f"say which, as in {path}:{keys[0]}"
        else:
            message, help = f"{path} has no array {key}: {has}", did_you_mean(key, keys)
        raise fail(codes.BAD_ARRAY_FILE, message, help=help)
    member: Array = archive[key]
    return member


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """The arrays as an ``.npz`` archive; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), member.getvalue())
    return buffer.getvalue()
