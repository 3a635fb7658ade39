"""Command lines that paste into cmd, PowerShell and a POSIX shell."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable

#: Words of these characters are one word in each shell; a backslash is, where paths have it.
_PLAIN = re.compile(r"[\w@%+=:,./\\-]+" if os.sep == "\\" else r"[\w@%+=:,./-]+")
#: Characters that some shell reads inside double quotes.
_READ = re.compile(r'["$`\\!]')


def pasteable(words: Iterable[str]) -> str:
    """One line of the words, those with spaces or signs of a shell in double quotes."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if _PLAIN.fullmatch(word):
        return word
    return shlex.quote(word) if _READ.search(word) else f'"{word}"'
