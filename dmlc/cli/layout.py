"""Text that fits the terminal: wrapped paragraphs and tables."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterable

#: The width of lines where stdout is not a terminal.
WIDTH = 100
#: The least width that a column is cut to.
_LEAST = 8
#: A command to paste, which stays on one line.
_COMMAND = re.compile("(?<=see: )dmlc .*")


def terminal_width() -> int | None:
    """The columns of the terminal: those of ``COLUMNS``, else of stdout; None where that is not a terminal."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else None
    except (OSError, ValueError):  # a stream without a file, as in tests
        return None


def wrapped(text: str, indent: str = "", hanging: str = "  ") -> str:
    """One paragraph in lines of at most the terminal's width, the later ones indented by ``hanging`` too.

    Where stdout is not a terminal, lines have at most ``WIDTH`` columns, names apart.
    """
    width = max(terminal_width() or WIDTH, len(indent) + len(hanging) + _LEAST)
    lines = textwrap.wrap(
        _COMMAND.sub(lambda command: command[0].replace(" ", "\0"), text),
        width,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return "".join(f"{line}\n" for line in lines).replace("\0", " ")


def prose(text: str) -> str:
    """The text with the lines wrapped that are longer than the terminal is wide, or than ``WIDTH`` elsewhere."""
    width = terminal_width() or WIDTH
    out = ""
    for line in text.splitlines(keepends=True):
        start = line[: len(line) - len(line.lstrip())]
        out += line if len(line.rstrip("\n")) <= width else wrapped(line.strip(), start)
    return out


def fitted(text: str) -> str:
    """The text as ``prose`` if stdout is a terminal; else as it is, for it may hold programs to copy."""
    return text if terminal_width() is None else prose(text)


def table(rows: Iterable[Iterable[str]], indent: str = "", width: int | None = WIDTH) -> str:
    """Columns, aligned, two spaces apart. Where lines are too long, the widest cells take several.

    Lines are as long as the terminal is wide; elsewhere ``width`` columns, names apart, without end if None.
    """
    cells = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in cells if i < len(row)) for i in range(max(map(len, cells), default=0))]
    terminal = terminal_width()
    longest = [max(_longest_word(row[i]) for row in cells if i < len(row)) for i in range(len(widths))]
    most = terminal or width
    if most is not None:
        _narrow(widths, [_LEAST] * len(widths) if terminal else longest, most - len(indent) - 2 * (len(widths) - 1))
    out = ""
    for row in cells:
        columns = [_lines(cell, size) for cell, size in zip(row, widths, strict=False)]
        for number in range(max(map(len, columns), default=1)):
            parts = [lines[number] if number < len(lines) else "" for lines in columns]
            line = "  ".join(part.ljust(size) for part, size in zip(parts, widths, strict=False))
            out += f"{indent}{line.rstrip()}\n"
    return out


def _narrow(widths: list[int], least: list[int], most: int) -> None:
    """Make the widest columns narrower, none below its ``least``, until together they take ``most`` characters."""
    for _ in range(sum(widths) - most):
        wide = [i for i, width in enumerate(widths) if width > least[i]]
        if not wide:
            return
        widths[max(wide, key=widths.__getitem__)] -= 1


def _longest_word(cell: str) -> int:
    return max(map(len, cell.split()), default=0)


def _lines(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, max(width, 1), break_on_hyphens=False) or [""]
