"""The rewrites that a ledger says must be applied, held against those that the passes apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.passes.manager import LedgerEntry

#: Keys that are compared. Source locations are not: a program may have been moved or laid out anew.
COMPARED = ("rule", "class", "text", "before", "after")


class Expected:
    """Takes one rewrite after the other, as they are recorded.

    ``rows`` are rewrites as ``codegen.ledger.ledger_rows`` writes them. Each rewrite is compared with the next row as
    soon as it is applied, so that nothing goes on from one that the ledger lacks.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows
        self._taken = 0

    def take(self, entry: LedgerEntry) -> None:
        """Raises ``DmlcError`` E0559 where the rewrite is not the next one of the ledger."""
        number = self._taken + 1
        found = _row(entry)
        if number > len(self._rows):
            count = len(self._rows)
            raise _mismatch(f"the ledger ends after {count} rewrites, and here follows {_shown(found)}")
        row = self._rows[self._taken]
        other = next((key for key in COMPARED if row[key] != found[key]), None)
        if other is not None:
            message = f"rewrite {number} is {_shown(row)} in the ledger, and here {_shown(found)}"
            raise _mismatch(message if _shown(row) != _shown(found) else f"{message}: another {other}")
        self._taken = number

    def finish(self) -> None:
        """Raises ``DmlcError`` E0559 where the ledger has more rewrites than were applied."""
        if self._taken < len(self._rows):
            row = self._rows[self._taken]
            raise _mismatch(f"rewrite {self._taken + 1} of the ledger, {_shown(row)}, does not come about here")


def _row(entry: LedgerEntry) -> dict[str, Any]:
    names = {"before": list(entry.before), "after": list(entry.after)}
    return {"rule": entry.rule, "class": entry.rewrite_class, "text": entry.text, **names}


def _shown(row: Mapping[str, Any]) -> str:
    before, after = (", ".join(row[key]) or "nothing" for key in ("before", "after"))
    return f"{row['rule']} ({row['class']}): {before} -> {after}"


def _mismatch(message: str) -> DmlcError:
    help = "the ledger is that of another program, of other options, of another version of dmlc, or was changed"
    return fail(codes.OTHER_LEDGER, message, help=help)
