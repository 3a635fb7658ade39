"""Argument parser of a command: a slip is one line with a suggestion, not the usage."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from dmlc.diagnostics import did_you_mean
from dmlc.diagnostics.suggest import nearest

_CHOICE = re.compile(r"invalid choice: (.+?) \(choose from (.+)\)$")
_TYPE = re.compile(r"invalid (\w+) value: (.+)$")
_WRONG_USAGE = 2


#: An option with more letters wrong is another option.
_MOST_WRONG = 2
_HELP = {"-h", "--help", "--help-all"}
#: Options of other tools, and those that mean the same here.
_FOREIGN = {
    "--out": "--output",
    "--output-file": "--output",
    "--opset-version": "--opset",
    "--opset_version": "--opset",
    "--target-opset": "--opset",
    "--input-shape": "--shape",
    "--input_shape": "--shape",
    "--overwrite-input-shape": "--shape",
    "--device": "--target",
    "--provider": "--target",
    "--tolerance": "--rtol",
}


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one line.

    ``common`` are the options that ``--help`` shows, where a command has many; ``--help-all`` shows all, in groups.
    """

    def __init__(self, *, common: Iterable[str] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self._common = frozenset(common)
        help = "show all options, in groups" if self._common else argparse.SUPPRESS
        self.add_argument("--help-all", action="store_true", help=help)
        #: Adds options that take long to load, if the command line may have one of them.
        self.rest: Callable[[argparse.ArgumentParser], None] | None = None

    def parse_args(self, args: Iterable[str], namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        """Parse a command line. Exits with code 2 for a wrong one."""
        words = list(args)
        options = [word.partition("=")[0] for word in words if word.startswith("-")]
        known = self._option_string_actions.keys() - _HELP
        if self.rest is not None and not known.issuperset(options):
            self.rest(self)
        self._check_options(words)
        if "--help-all" in words:
            self._common = frozenset()
            self.print_help()
            raise SystemExit(0)
        found, left = self.parse_known_args(words)
        if left and left[0].startswith("-"):
            self.error(f"there is no option {left[0]}; {self.prog} {self._all} lists the options")
        if left:
            compares = "--against" in self._option_string_actions
            guess = f"did you mean --against {left[0]}?" if compares else f"{self.prog} --help shows the expected ones"
            self.error(f"unexpected argument {left[0]}; {guess}")
        return found

    def format_help(self) -> str:
        """Return the help: of a command with many options those that most people need."""
        if not self._common:
            return super().format_help()
        formatter = self._get_formatter()
        named = [action for action in self._actions if not action.option_strings]
        shown = [action for action in self._actions if self._common.intersection(action.option_strings)]
        formatter.add_usage(f"%(prog)s {' '.join(str(action.metavar) for action in named)} [options]", (), ())
        formatter.add_text(self.description)
        for title, actions in (("arguments", named), ("options", shown)):
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text("--help-all shows all options, in groups")
        return formatter.format_help()

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
                near = _FOREIGN.get(name, "")
                near = near if near in known else nearest(name, sorted(known), _MOST_WRONG)
                guess = f"did you mean {near}?" if near else f"{self.prog} {self._all} lists the options"
                self.error(f"there is no option {name}; {guess}")

    @property
    def _all(self) -> str:
        """The option that lists all options."""
        return "--help-all" if self._common else "--help"

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
