"""Runs the blocks of a page as its reader would, with sybil: files are written, programs run, commands print what is
shown.

A block with a title (```` ```python title="export.py" ````) is written as a file of that name. Other ``python`` blocks
run, with the names of the blocks before them. Other ``dml`` blocks are whole programs, laid out and run on random data.
Each line ``$ dmlc ...`` or ``$ python FILE`` of a ``console`` block runs, and prints the lines below it, where ``...``
matches any text. Seconds are not compared, nor the last digits of numbers. Other blocks are text.

What a page takes for granted is made in a comment that its reader does not see: ``<!-- invisible-code: python``. The
comment ``<!-- skip: next -->`` says that the next block needs what is not there.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from sybil import Document, Example, Region, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, SkipParser
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

from dmlc.cli.main import main

_FENCES = RawFencedCodeBlockLexer(re.compile(r'(?P<language>python|dml|console)?(?: title="(?P<title>[^"]+)")?\n'))
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"


def _blocks(document: Document) -> Iterable[Region]:
    """The blocks that do something."""
    for region in _FENCES(document):
        language, title = region.lexemes["language"], region.lexemes["title"]
        if title or language:
            region.parsed = region.lexemes["source"]
            region.evaluator = _write if title else _EVALUATORS[language]
            yield region


def _write(example: Example) -> None:
    path = Path(example.region.lexemes["title"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(example.parsed, encoding="utf-8")


def _run_program(example: Example) -> None:
    Path("program.dml").write_text(example.parsed, encoding="utf-8")
    run("dmlc fmt --check program.dml", 0)
    run("dmlc run program.dml --random 1 --backend cpu", 0)


def _run_commands(example: Example) -> str:
    """Run the commands; return what one of them printed, if that is not what is shown."""
    for command, shown in commands(example.parsed):
        printed = run(command)
        if not matches(printed, shown):
            return f"$ {command}\n{printed}"
    return ""


_run_python = PythonEvaluator()
_EVALUATORS = {"python": _run_python, "dml": _run_program, "console": _run_commands}
_hidden = CodeBlockParser("python", _run_python)
_hidden.lexers = type(_hidden.lexers)(_hidden.lexers[1:])  # fences are ours
PAGES = Sybil([_blocks, _hidden, SkipParser()])


def blocks(page: Path) -> Iterator[Example]:
    """The blocks of a page that do something."""
    return PAGES.parse(page).examples()


def run_page(page: Path) -> int:
    """Run the blocks of a page in the current folder; the number of them."""
    found = list(blocks(page))
    for example in found:
        example.evaluate()
    return len([example for example in found if example.region.lexemes])


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with the text below it. A command goes on after a backslash."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.replace("\\\n", "").partition("\n")
        yield command, shown.strip("\n")


def run(command: str, expected: int | None = None) -> str:
    """Return what a command prints, in the current folder and in this process."""
    program, *words = shlex.split(command, comments=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        if program == "dmlc":
            code = main(words)
            assert expected in (None, code), printed.getvalue()
        else:
            assert program == "python", command
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sys, "argv", words)
                runpy.run_path(words[0], run_name="__main__")
    return printed.getvalue().strip("\n")


def matches(printed: str, shown: str) -> bool:
    """If a command printed what a page shows: the same words, and numbers within 2e-3.

    The last digits of a float differ between processors, and so does the width of a column.
    """
    shown = re.sub(r"\b\d+\.\d+ s\b", "... s", shown)
    pattern, numbers = "", []
    for part in re.split(rf"(\.\.\.|{_NUMBER}|\s+)", shown):
        if part == "...":
            pattern += ".*?"
        elif re.fullmatch(_NUMBER, part):
            pattern += f"({_NUMBER})"
            numbers.append(float(part))
        else:
            pattern += r"\s+" if part.isspace() else re.escape(part)
    match = re.fullmatch(pattern, printed, re.DOTALL)
    return match is not None and np.allclose([float(n) for n in match.groups()], numbers, rtol=2e-3, atol=1e-6)
