"""The record behind an error code, and the registry that every code is declared in once."""

from __future__ import annotations

from dmlc.records import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """A stable code: its page for ``dmlc explain CODE`` lives here.

    ``example`` is a ``.dml`` program that produces the code and ``fixed`` the same program mended;
    the tests compile both. Where no program alone can show the code (a missing file, a wrong flag)
    ``program`` is false and both are shell transcripts.
    """

    id: str
    title: str
    why: str
    example: str
    fixed: str
    program: bool = True

    @property
    def severity(self) -> str:
        return "warning" if self.id.startswith("W") else "error"

    def __str__(self) -> str:
        return self.id


CODES: dict[str, Code] = {}


def declare(id: str, title: str, why: str, *, example: str, fixed: str, program: bool = True) -> Code:
    """Declare a code. Families: E01 syntax, E02 names, E03 types, E04 files, E05 target, W06 advice, I09 bug."""
    if id in CODES:
        raise ValueError(f"code {id} is declared twice")
    code = Code(id, title, " ".join(why.split()), example.strip("\n") + "\n", fixed.strip("\n") + "\n", program)
    CODES[id] = code
    return code
