"""Runs one input and says what came of it: an answer, a refusal with a code, or a crash."""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.render import render_all

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

#: Limits that no small input may reach: seconds of the processor, and bytes by which it lifts the process's peak.
MOST_SECONDS, MOST_BYTES = 3.0, 256 << 20
#: Seconds within which no small input can have done harm.
_SOON = 0.05
#: A reader of bytes: it returns a short word for what they are ("" or a note); a mistake in them raises ``DmlcError``.
Reader = Callable[[bytes], str]


@dataclass(frozen=True)
class Crash:
    """A failure that no input may cause. ``place`` is where in dmlc it happened: crashes of one place are one."""

    kind: str
    place: str
    text: str


def judge(read: Reader, data: bytes) -> str | Crash:
    """The word that the reader gives, the code of the first error, or a crash."""
    start = time.monotonic()
    try:
        found = _outcome(read, data)
    except Exception as error:
        return _crash(error)
    if time.monotonic() - start < _SOON:  # nothing large is done so soon, and the questions below take long
        return found
    return _measured(read, data, start) or found


def _measured(read: Reader, data: bytes, since: float) -> Crash | None:
    """True if it is slow on a machine that does nothing else, or large: it is run again."""
    if peak() - _Peak.last > MOST_BYTES:
        grown, _Peak.last = peak() - _Peak.last, peak()
        return Crash("memory", "", f"{grown >> 20} MiB for {len(data)} bytes")
    _Peak.last = peak()
    if time.monotonic() - since < MOST_SECONDS / 3:
        return None
    start = time.process_time()
    with contextlib.suppress(Exception):
        _outcome(read, data)
    seconds = time.process_time() - start
    return Crash("slow", "", f"{seconds:.1f} s for {len(data)} bytes") if seconds > MOST_SECONDS else None


def _outcome(read: Reader, data: bytes) -> str:
    try:
        return read(data)
    except DmlcError as error:
        if error.exit_code == 3 or any(d.code.id.startswith("I") for d in error.diagnostics):
            raise
        assert error.diagnostics, "an error without a message"
        assert str(error)
        if zlib.crc32(data) % 4 == 0:  # as slow as many a refusal itself
            assert render_all(error.diagnostics)
        return error.diagnostics[0].code.id


def _crash(error: Exception) -> Crash:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{Path(f.filename).stem}.{f.name}" for f in frames if "dmlc" in Path(f.filename).parts]
    kind = type(error).__name__
    text = "".join(traceback.format_exception(error, limit=-12))
    if kind == "DmlcError":
        kind, own = "I09", [str(error)[:60]]
    if isinstance(error, RecursionError):
        own = own[-1:]
    return Crash(kind, " ".join(own[-2:]), text)


class _Peak:
    """The last answer of ``peak``."""

    last = 1 << 62  # until the first input that takes its time: what was loaded does not count


def peak() -> int:
    """The most bytes that the process ever held; 0 where the system does not say."""
    if resource is None:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
