"""Argument parser of a verb: a slip is one line with a suggestion, not the usage."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from typing import NoReturn

from dmlc.diagnostics import did_you_mean

_CHOICE = re.compile(r"invalid choice: (.+?) \(choose from (.+)\)$")
_TYPE = re.compile(r"invalid (\w+) value: (.+)$")
_WRONG_USAGE = 2


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one line."""

    def parse_args(self, args: Iterable[str], namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        """Parse a command line. Exits with code 2 for a wrong one."""
        words = list(args)
        self._check_options(words)
        found, left = self.parse_known_args(words)
        if left and left[0].startswith("-"):
            self.error(f"there is no option {left[0]}; {self.prog} --help lists the options")
        if left:
            self.error(f"unexpected argument {left[0]}; {self.prog} --help shows the expected ones")
        return found

    def error(self, message: str) -> NoReturn:
        """Print one line on stderr and exit with code 2."""
        sys.stderr.write(f"{self.prog}: {self._plain(message)}\n")
        raise SystemExit(_WRONG_USAGE)

    def _check_options(self, words: list[str]) -> None:
        """Exit with a suggestion for an option that does not exist: argparse would take its value for SRC."""
        known = self._option_string_actions
        for word in words:
            if word == "--":
                return
            name = word.partition("=")[0]
            if word.startswith("--") and " " not in name and name not in known:
                near = _nearest(name, known)
                self.error(f"there is no option {name}; {near or f'{self.prog} --help lists the options'}")

    def _plain(self, message: str) -> str:
        text = message.removeprefix("argument ")
        choice = _CHOICE.search(text)
        if choice:
            names = [name.strip("' ") for name in choice[2].split(",")]
            near = _nearest(choice[1].strip("'"), names)
            found = f"{choice[1]} is not one of {', '.join(names)}"
            return text[: choice.start()] + found + (f"; {near}" if near else "")
        wrong = _TYPE.search(text)
        if wrong:
            kind = {"int": "an integer", "float": "a number"}.get(wrong[1], f"of the form {wrong[1]}")
            return text[: wrong.start()] + f"{wrong[2]} is not {kind}"
        text = re.sub(r"^(.+): expected one argument$", r"\1 needs a value", text)
        text = re.sub(r"^(.+): expected at least one argument$", r"\1 needs a value", text)
        return re.sub(r"^the following arguments are required: (.+)$", r"\1 is needed", text)


def _nearest(name: str, candidates: Iterable[str]) -> str:
    return did_you_mean(name, candidates).replace('"', "")
