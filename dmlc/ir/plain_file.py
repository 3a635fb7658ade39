"""Files that are opened for reading: plain ones only, so that no pipe or device is waited for."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

#: So many bytes of a file show whether it holds a model or a program.
_START = 4096
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
#: Comments, then the end or a word that a program starts with; its words are in the grammar (a test checks it).
_PROGRAM = re.compile(rb"(?:\s|#[^\n]*(?:\n|\Z))*(?:\Z|(?:dml|use|dim|const|def|model)\b)")
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class NotPlain(OSError):
    """A pipe, a device, a socket; ``strerror`` says so."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "it is not a plain file")


def open_plain(path: Path, *, links: bool = True) -> BinaryIO:
    """The file, opened without waiting for anything. Without ``links`` it is neither a symbolic nor a hard link.

    Raises ``OSError``, of which ``NotPlain`` is one, and ``ValueError`` for a name that no file can have.
    """
    file = os.fdopen(os.open(path, _FLAGS | (0 if links else getattr(os, "O_NOFOLLOW", 0))), "rb")
    try:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NotPlain
        if not links and status.st_nlink > 1:
            raise OSError(errno.EMLINK, "it is a hard link")
    except BaseException:
        file.close()
        raise
    return file


def holds_model(data: bytes, name: str) -> bool:
    """Tell an ONNX model from a program by the content of a file: a model has control characters.

    ``data`` is the start of the content. ``name`` decides if it is neither: an empty file, or a text that does not
    start as a program does (the pointer to a file that is stored elsewhere, the page of a server).
    """
    start = data[:_START]
    if start.startswith(b"\x08"):  # the tag of ir_version, which is written first
        return True
    suffix = Path(name).suffix.lower()
    if suffix == ".dml" or start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    if _CONTROL.search(start):
        return True
    if suffix != ".onnx" or not start.strip():
        return suffix == ".onnx"
    return _PROGRAM.match(start) is None


def size_of(file: BinaryIO) -> int:
    """The bytes of an open file."""
    return os.fstat(file.fileno()).st_size
