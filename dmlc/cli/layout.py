"""Text that fits the terminal: wrapped paragraphs and tables."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable

#: The width of lines where stdout is not a terminal.
WIDTH = 100
#: The least width that a column is cut to.
_LEAST = 8


def terminal_width() -> int | None:
    """The columns of the terminal: those of ``COLUMNS``, else of stdout; None where that is not a terminal."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else None
    except (OSError, ValueError):  # a stream without a file, as in tests
        return None


def wrapped(text: str, indent: str = "", hanging: str = "  ", width_elsewhere: int | None = None) -> str:
    """One paragraph in lines of at most the terminal's width, the later ones indented by ``hanging`` too.

    Where stdout is not a terminal, lines have at most ``width_elsewhere`` columns, names apart. Without it there is
    one line.
    """
    width = terminal_width() or width_elsewhere
    if width is None:
        return f"{indent}{text}\n"
    width = max(width, len(indent) + len(hanging) + _LEAST)
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return "".join(f"{line}\n" for line in lines)


def fitted(text: str) -> str:
    """The text with the lines wrapped for which the terminal is too narrow; as it is if stdout is not a terminal."""
    width = terminal_width()
    if width is None:
        return text
    out = ""
    for line in text.splitlines(keepends=True):
        start = line[: len(line) - len(line.lstrip())]
        out += line if len(line) <= width + 1 else wrapped(line.strip(), start)
    return out


def table(rows: Iterable[Iterable[str]], indent: str = "") -> str:
    """Columns, aligned, two spaces apart. On a terminal that is too narrow the widest cells take several lines."""
    cells = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in cells if i < len(row)) for i in range(max(map(len, cells), default=0))]
    width = terminal_width()
    if width is not None:
        _narrow(widths, width - len(indent) - 2 * (len(widths) - 1))
    out = ""
    for row in cells:
        columns = [_lines(cell, size) for cell, size in zip(row, widths, strict=False)]
        for number in range(max(map(len, columns), default=1)):
            parts = [lines[number] if number < len(lines) else "" for lines in columns]
            line = "  ".join(part.ljust(size) for part, size in zip(parts, widths, strict=False))
            out += f"{indent}{line.rstrip()}\n"
    return out


def _narrow(widths: list[int], most: int) -> None:
    """Make the widest columns narrower, until all together take at most so many characters."""
    while sum(widths) > most and max(widths) > _LEAST:
        widest = max(widths)
        next_widest = max((width for width in widths if width < widest), default=0)
        columns = [i for i, width in enumerate(widths) if width == widest]
        spare = -(-(sum(widths) - most) // len(columns))
        for i in columns:
            widths[i] = max(widest - spare, next_widest, _LEAST)


def _lines(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, max(width, 1), break_on_hyphens=False) or [""]
