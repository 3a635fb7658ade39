"""Commands in the helps of code pages work when pasted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import dmlc.diagnostics.catalogue  # noqa: F401  fills CODES
from dmlc.diagnostics import CODES, Code
from tests.command_line import Run
from tests.rows import each_row

#: A program for each code: its page's, and one for a code whose page has a model.
PROGRAMS = [
    *((code, code.example) for code in CODES.values() if code.program),
    (CODES["W0601"], "model m(x: f64[3]) -> (y) {\n    return exp(x)\n}\n"),
]
#: A command in a help, up to the next sentence.
_COMMAND = re.compile(r"(?:does: |see: )dmlc (.+?)(?:;|$)")


#: An expression in a help, up to the next word that is not of it.
_EXPRESSION = re.compile(
    r"(?:write|such as|cast it:|cast the tensor:|as in) ((?!it\b|both\b|a |not\b)[^;]*?)(?: to |, or |;|$)"
)


def expressions_of(err: str) -> list[str]:
    helps = [line.partition("= help: ")[2] for line in err.splitlines() if line.lstrip().startswith("= help: ")]
    found = [text for line in helps for text in _EXPRESSION.findall(line)]
    return [
        text
        for text in found
        if "..." not in text
        and not text.startswith("dml ")
        and re.search(r"[a-z]", text)
        and not re.match(r"\w+=", text)
    ]


def test_expressions_in_helps_of_pages_can_be_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run
) -> None:
    """The expression of a help is made of the names of the program, and is no error of syntax."""
    monkeypatch.chdir(tmp_path)
    tried: list[str] = []

    @each_row(("code", "program"), PROGRAMS)
    def parse(code: Code, program: str) -> None:
        Path("p.dml").write_text(program)
        for text in expressions_of(command_line("check", "p.dml")[2]):
            tried.append(text)
            name = "" if re.match(r"[\w, ]+ = ", text) else "pasted = "
            inputs = "x: f32[4, 4], a: f32[4], b: f32[4], c: f32[4], n: i32[4], count: i32[4], N: f32[4]"
            Path("pasted.dml").write_text(f"model m({inputs}) -> (x) {{\n    {name}{text}\n    return x\n}}\n")
            err = command_line("check", "pasted.dml")[2]
            assert not re.search(r"\[E01\d\d\]", err), f"{text}: {err}"

    parse()
    assert len(tried) > 10, tried


def commands_of(err: str) -> list[str]:
    helps = [line for line in err.splitlines() if line.lstrip().startswith("= help: ")]
    return list(dict.fromkeys(command for line in helps for command in _COMMAND.findall(line)))


def test_commands_in_helps_of_pages_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> None:
    monkeypatch.chdir(tmp_path)
    tried: set[str] = set()

    @each_row(("code", "program"), PROGRAMS)
    def work(code: Code, program: str) -> None:
        Path("p.dml").write_text(program)
        for command in commands_of(command_line("check", "p.dml", "--strict")[2]):
            tried.add(command.split()[0])
            exit_code, _, err = command_line(*shlex.split(command))
            assert exit_code == 0, f"dmlc {command}: {err}"
            if command.startswith("compile "):
                assert f"[{code.id}]" not in err, f"dmlc {command} leaves {code.id}: {err}"

    work()
    assert tried == {"compile", "explain"}, tried
