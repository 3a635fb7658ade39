"""Records that print for people: one line, the text of a command, and a table in notebooks."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

#: Cells of a table; the first row has the headings.
Rows: TypeAlias = "list[tuple[str, ...]]"

#: The most lines of ``str``.
_MOST_LINES = 15


class Shown:
    """A record with a ``repr`` of one line, the text of its command as ``str``, and a table for notebooks.

    The package ``dmlc`` has the HTML of records, and the texts and tables of records that do not make their own.
    """

    __slots__ = ()

    def headline(self) -> str:
        """Return the record in one line."""
        raise NotImplementedError

    def to_text(self) -> str:
        """Return the lines that the command line prints."""
        text: str = _printer().text_of(self)
        return text

    def to_rows(self) -> Rows:
        """Return the table of the record: rows of cells, first the headings."""
        rows: Rows = _printer().rows_of(self)
        return rows

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {' '.join(self.headline().split())}>"

    def __str__(self) -> str:
        lines = self.to_text().rstrip("\n").split("\n")
        if len(lines) <= _MOST_LINES:
            return "\n".join(lines)
        more = len(lines) - _MOST_LINES + 1
        return "\n".join([*lines[: _MOST_LINES - 1], f"... and {more} more lines, which to_text() returns"])

    def _repr_html_(self) -> str:
        """Return the answer, the table and the picture as HTML, with nothing of the record unescaped."""
        html: str = _printer().html_of(self)
        return html


def _printer() -> Any:
    """The module that prints records as the commands do, above all layers: the package itself knows it."""
    return import_module("dmlc")._printer()
