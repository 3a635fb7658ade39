"""Files with measurements of a device: times of lowerings, and rows of a probe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.runtime import files

if TYPE_CHECKING:
    from dmlc.placement.probed import Probe

_Document = TypeVar("_Document")
_SCHEMA = 1


def read_measured(path: Path, kind: type[_Document], contents: str) -> _Document:
    """The document in a file. Raises ``DmlcError`` E0420 for a file that cannot be read, E0569 for one without such
    ``contents``."""
    import msgspec

    data = files.read_bytes(path)
    try:
        schema = msgspec.json.decode(data, type=dict).get("schema")
        if schema not in (None, _SCHEMA):
            raise fail(codes.BAD_TUNING, f"{path} has schema {schema}, not {_SCHEMA}: another dmlc wrote it")
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:
        raise fail(codes.BAD_TUNING, f"{path} has no {contents}") from None


def checked_probe(given: Any) -> Probe | None:
    """The rows of a file that ``dmlc doctor --probe`` wrote. Raises as ``read_measured``, and ``DmlcError`` E0556 (exit
    code 2) for something else than a path."""
    if given is None:
        return None
    if not isinstance(given, (str, os.PathLike)):
        message = f"probed is the path of a file, not {type(given).__name__}"
        raise fail(codes.UNKNOWN_CHOICE, message, exit_code=2)
    from dmlc.placement.probed import Probe

    return read_measured(Path(given), Probe, "rows of a probe")
