"""Help of the command line: the common options of a command, all options, all commands."""

from __future__ import annotations

import re

from dmlc.cli.glossary import WORDS
from dmlc.cli.main import DOCUMENTED, VERBS
from dmlc.diagnostics.limits import LIMITS
from dmlc.passes.options import OPTIONS
from tests.command_line import Run
from tests.rows import each_row


@each_row("verb", VERBS)
def test_every_verb_has_help(command_line: Run, verb: str) -> None:
    code, out, err = command_line(verb, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: dmlc {verb}")
    options = command_line(verb, "--help-all")[1] if verb == "compile" else out
    assert ("--format" in options) == (verb in DOCUMENTED)


def test_the_help_of_compile_shows_eight_options_and_all_when_asked(command_line: Run) -> None:
    shown = re.findall(r"^  (?:-\w(?: OUT)?, )?(--[a-z-]+)", command_line("compile", "--help")[1], re.MULTILINE)
    assert len(shown) == 8
    code, out, err = command_line("compile", "--help-all")
    assert (code, err) == (0, "")
    every = set(re.findall(r"^  (?:-\w(?: \w+)?, )?(--[a-z0-9-]+)", out, re.MULTILINE))
    assert {*shown, "--skip-rule", "--ledger", "--limit", "--format"} <= every
    assert len(every) > 25
    assert all(f"\n{group}:\n" in out for group in ("reports", "report", *{o.group for o in OPTIONS.values()} - {""}))


def test_help_all_without_a_command_shows_all_options_of_all_commands(command_line: Run) -> None:
    code, out, err = command_line("--help-all")
    assert (code, err) == (0, "")
    assert out == command_line("--help")[1] + "".join("\n" + command_line(verb, "--help-all")[1] for verb in VERBS)
    assert "--skip-rule RULE" in out


def test_help_and_explained_words_name_no_page_that_needs_a_checkout(command_line: Run) -> None:
    assert "docs/" not in command_line("--help-all")[1]
    for word in WORDS:
        assert "docs/" not in command_line("explain", word)[1], word


def test_the_page_of_limits_has_them_all(command_line: Run) -> None:
    out = " ".join(command_line("explain", "limits")[1].split())
    assert all(f"{limit.name}: {limit.default:,} {limit.unit}." in out for limit in LIMITS.values())
