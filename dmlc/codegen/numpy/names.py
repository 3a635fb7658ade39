"""Python names for the inputs, values and dims of a graph."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterable

_BUILTINS = frozenset(dir(builtins))
#: Names that read like digits (pycodestyle E741); an input keeps such a name.
_LIKE_DIGITS = frozenset("lIO")
_LONGEST_LOCAL = 32


def identifier(text: str) -> str:
    """A valid identifier as near to ``text`` as can be: a keyword gets a trailing ``_``, other signs become ``_``.

    A valid identifier stays as it is, where Python itself reads it back unchanged (NFKC).
    """
    if not (text.isidentifier() and unicodedata.normalize("NFKC", text) == text):
        text = re.sub(r"\W", "_", text, flags=re.ASCII) or "_"
        if not text.isidentifier():
            text = f"_{text}"
    # `_` alone receives what nobody uses.
    return f"{text}_" if keyword.iskeyword(text) or text == "_" else text


class PythonNames:
    """Names that are taken, and new ones beside them."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}  # up to where the numbers behind a name are taken

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def add(self, name: str) -> str:
        """``name``, or ``name_2`` and so on where it is taken; taken from now on."""
        found, number = name, self._numbers.get(name, 1)
        while found in self._taken:
            number += 1
            found = f"{name.rstrip('_')}_{number}"
        self._taken.add(found)
        self._numbers[name] = number
        return found

    def local(self, text: str) -> str:
        """A local variable: not too long, no builtin, nothing that reads like a digit."""
        name = identifier(text)[:_LONGEST_LOCAL]
        if name in _BUILTINS or name in _LIKE_DIGITS:
            name = f"{name}_"
        return self.add(name)

    def constant(self, text: str) -> str:
        """A private constant of the module."""
        return self.add(f"_{identifier(text)[:_LONGEST_LOCAL].strip('_').upper() or 'CONSTANT'}")
