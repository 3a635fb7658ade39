"""Runs the blocks of a page as its reader would: files are written, programs run, commands print what is shown.

A block with a title (```` ```python title="export.py" ````) is written as a file of that name. A ``python`` block
without one runs, with the names of the blocks before it. Each line ``$ dmlc ...`` or ``$ python FILE`` of a
``console`` block runs, and prints the lines below it, where ``...`` stands for any text. Seconds are not compared.
Other blocks are text.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dmlc.cli.main import main

FENCE = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block: its language, the file that it is, its text, and the line where the text starts."""

    language: str
    title: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield Block(match[1], match[2] or "", match[3], text.count("\n", 0, match.start(3)) + 1)


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a console block with the text below it. A command goes on after a backslash."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.replace("\\\n", "").partition("\n")
        yield command, shown.strip("\n")


def run(command: str) -> str:
    """Return the text that a command prints, in the current folder and in this process."""
    program, *words = shlex.split(command)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        if program == "dmlc":
            main(words)
        else:
            assert program == "python", command
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sys, "argv", words)
                runpy.run_path(words[0], run_name="__main__")
    return printed.getvalue().strip("\n")


def matches(printed: str, shown: str) -> bool:
    """If a command printed what a page shows."""
    shown = re.sub(r"\b\d+\.\d+ s\b", "... s", shown)
    pattern = ".*".join(re.escape(part) for part in shown.split("..."))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def run_page(page: Path) -> int:
    """Run the blocks of a page in the current folder; the number of those that did something."""
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for block in blocks(page):
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        elif block.language == "console":
            for command, shown in commands(block):
                printed = run(command)
                assert matches(printed, shown), f"{page.name}:{block.line}: $ {command}\n{printed}"
        else:
            continue
        count += 1
    return count
