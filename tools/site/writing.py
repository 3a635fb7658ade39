"""Parts of generated pages: tables, blocks of code, and what commands print."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dmlc.cli.main import main

#: The text of each page by its path on the site.
Pages = Mapping[str, str]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def facts(rows: Sequence[Sequence[str]]) -> str:
    """Return a table of names and what they are; the first is its head."""
    return table(rows[0], rows[1:])


def fence(text: str, language: str = "") -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def console(*words: str) -> str:
    """Return a command of ``dmlc`` with what it prints."""
    return fence(f"$ dmlc {shlex.join(words)}\n{output_of(*words)}", "console")


def output_of(*words: str) -> str:
    """Return what ``dmlc`` prints for these words. Raises ``ValueError`` where it fails; a check may find something."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        exit_code = main(list(words))
    if exit_code > (words[0] == "check"):
        raise ValueError(f"dmlc {shlex.join(words)}: {printed.getvalue()}")
    return printed.getvalue()


def document(*words: str) -> Any:
    """Return what ``dmlc`` prints for these words as data."""
    return json.loads(output_of(*words, "--format", "json"))


@contextlib.contextmanager
def empty_folder() -> Iterator[Path]:
    """Work in a new folder, so that what commands print has no other path."""
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def code(name: str) -> str:
    """Return a name in the type of code."""
    return f"`{name}`"


def plain(text: str) -> str:
    """Return the text of a docstring with the marks of Markdown."""
    return text.replace("``", "`")


def choice(values: Iterable[object]) -> str:
    """Return ``a, b or c``."""
    *first, last = map(str, values)
    return f"{', '.join(first)} or {last}" if first else last
