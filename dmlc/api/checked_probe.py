"""The file of a probe, as ``dmlc doctor --probe`` writes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.runtime import files

if TYPE_CHECKING:
    from dmlc.placement.probed import Probe


def checked_probe(given: Any) -> Probe | None:
    """The rows of a file. Raises ``DmlcError`` E0556 (exit code 2) for something else than a path, E0420 and E0569 for
    a file of something else."""
    if given is None:
        return None
    if not isinstance(given, (str, os.PathLike)):
        message = f"probed is the path of a file, not {type(given).__name__}"
        raise fail(codes.UNKNOWN_CHOICE, message, exit_code=2)
    import msgspec

    from dmlc.placement.probed import Probe

    try:
        return msgspec.json.decode(files.read_bytes(Path(given)), type=Probe)
    except msgspec.DecodeError:
        raise fail(codes.BAD_TUNING, f"{given} holds no rows of a probe") from None
