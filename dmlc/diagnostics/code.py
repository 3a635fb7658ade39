"""The record behind an error code, and the registry that every code is declared in once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "advice"]


@dataclass(frozen=True, slots=True)
class Code:
    """A stable code: its page for ``dmlc explain CODE`` lives here.

    ``example`` is a ``.dml`` program that produces the code and ``fixed`` the same program mended;
    the tests compile both. Where no program alone can show the code (a missing file, a wrong flag)
    ``program`` is false and both are shell transcripts. ``advice`` marks a W06 code about the source (an unused name,
    a redundant form, a wrong declaration): it changes no exit code, with ``--strict`` too. The other W06 codes are
    about the target and the numbers.
    """

    id: str
    title: str
    why: str
    example: str
    fixed: str
    program: bool = True
    advice: bool = False

    @property
    def severity(self) -> Severity:
        """Return the severity without ``--strict``."""
        if not self.id.startswith("W"):
            return "error"
        return "advice" if self.advice else "warning"

    def __str__(self) -> str:
        return self.id


CODES: dict[str, Code] = {}


def declare(
    id: str,
    title: str,
    why: str,
    *,
    example: str,
    fixed: str = "",
    slip: tuple[str, str] = ("", ""),
    program: bool = True,
    advice: bool = False,
) -> Code:
    """Declare a code. Families: E01 syntax, E02 names, E03 types, E04 files, E05 target, W06 advice, I09 bug.

    ``slip`` is the wrong text in the example and the right one, where nothing else is to be fixed. Raises
    ``ValueError`` for a code that is there already, and for ``advice`` outside of W06.
    """
    if id in CODES:
        raise ValueError(f"code {id} is declared twice")
    if advice and not id.startswith("W06"):
        raise ValueError(f"{id} cannot be advice: advice has a code of W06")
    wrong, right = (part.strip("\n") + "\n" for part in (example, fixed or example.replace(*slip, 1)))
    code = Code(id, title, " ".join(why.split()), wrong, right, program, advice)
    CODES[id] = code
    return code
