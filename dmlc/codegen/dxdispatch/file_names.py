"""File names that every system takes, made from the names of tensors and models."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_ODD = re.compile(r"[^A-Za-z0-9._-]")
_ODD_IN_FOLDER = re.compile(r"[^ !#-)+-.0-9;=@-\[\]-{}~]")
#: Systems take 255 bytes, of which a number and the suffix need some.
_LONGEST = 100
#: Names of devices on Windows, also with a suffix (learn.microsoft.com/windows/win32/fileio/naming-a-file).
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9]|lpt[0-9])(?:\.|$)", re.IGNORECASE)


def file_name(name: str) -> str:
    """Return the name with ``_`` for characters that file names do not take, of ASCII.

    DxDispatch passes the UTF-8 of the JSON to the file system as it is, and Windows reads it in another code page
    (``ResolveInputFilePath`` in ``DxDispatch/src/model/JsonParsers.cpp``).
    """
    return _apart(_ODD.sub("_", name)[:_LONGEST] or "_")


def folder_name(name: str) -> str:
    """Return a folder's name of ASCII. A changed name carries a digest, so that two names stay two folders."""
    spelled = _apart(_ODD_IN_FOLDER.sub("_", name))
    return (
        spelled
        if spelled == name
        else f"{spelled}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    )


def _apart(name: str) -> str:
    """Return the name with ``_`` before it if it is a device's."""
    return f"_{name}" if _DEVICE.match(name) else name


def unique(names: Iterable[str], *, ignoring_case: bool = False) -> list[str]:
    """Return names that differ: the first of several equal names stays, the others get a number."""
    taken: set[str] = set()
    out = []
    for name in names:
        found, count = name, 1
        while (key := found.lower() if ignoring_case else found) in taken:
            count += 1
            found = f"{name}_{count}"
        taken.add(key)
        out.append(found)
    return out
