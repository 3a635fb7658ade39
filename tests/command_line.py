"""The type of the fixture ``command_line``, and of those that tests make of it."""

from __future__ import annotations

from collections.abc import Callable

#: Words of a command to its exit code, stdout and stderr.
Run = Callable[..., tuple[int, str, str]]
#: An exit code, a code, and words of a command that fails with them, to its message.
Refused = Callable[..., str]
