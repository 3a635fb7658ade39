"""Output of a verb: results and JSON to stdout, messages to stderr."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dmlc.cli.layout import fitted
from dmlc.cli.progress import Progress, is_terminal
from dmlc.diagnostics import Diagnostic, DmlcError, to_json
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.diagnostics.grouping import group_json, grouped, render_groups

if TYPE_CHECKING:
    from dmlc.ir.answers import Answer
    from dmlc.verifying import Verdict

#: The version of every JSON document that is printed.
SCHEMA = 1
_BUG = 3
_CONTROL = re.compile(r"\x1b(?!\[(?:0|1|1;3[1346])m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")


class UsageError(Exception):
    """Wrong usage that argparse cannot see; one line is shown and the exit code is 2."""


class Console:
    """The voice of one command."""

    def __init__(self, verb: str, args: argparse.Namespace, collected: list[dict[str, Any]] | None = None) -> None:
        self.verb = verb
        self._collected = collected  # takes the JSON documents where several files share one
        self.json: bool = getattr(args, "format", "text") == "json"
        self.quiet: bool = bool(getattr(args, "quiet", False))
        self.verbose: bool = bool(getattr(args, "verbose", False))
        self._warnings: list[Diagnostic] = []
        self._kept: dict[str, Any] = {}

    # --- stdout

    def result(self, text: str, *, verbatim: bool = False) -> None:
        """Text that the command was asked for; ``verbatim`` if it is a program."""
        if not self.json:
            shown = text if verbatim else printable(fitted(text))
            sys.stdout.write(shown if shown.endswith("\n") or not shown else shown + "\n")

    def document(self, answer: Answer | Mapping[str, Any], *, ok: bool = True) -> None:
        """The command's one JSON document, where JSON was asked for."""
        if self.json:
            fields = answer if isinstance(answer, Mapping) else answer.to_json()
            head = {"schema": SCHEMA, "command": self.verb, "ok": ok}
            body = {
                **head,
                **self._kept,
                **fields,
                "diagnostics": fields.get("diagnostics", [to_json(d) for d in self._warnings]),
                "warnings": [group_json(d) for d in grouped(self._warnings) if d.severity == "warning"],
            }
            if self._collected is None:
                _write_json(body)
            else:
                self._collected.append(body)

    def keep(self, fields: Mapping[str, Any]) -> None:
        """Keep fields for the JSON document, that of a failure too."""
        self._kept |= fields

    def documents(self, found: list[dict[str, Any]]) -> None:
        """The document of several files, where JSON was asked for: that of each under ``files``."""
        if self.json:
            _write_json({"schema": SCHEMA, "files": found})

    # --- stderr

    def say(self, text: str) -> None:
        """A message about the work; ``-q`` silences it."""
        if not self.quiet:
            sys.stderr.write(printable(text if text.endswith("\n") else text + "\n"))

    def detail(self, text: str) -> None:
        """Print a line that only ``-v`` shows."""
        if self.verbose:
            self.say(text)

    def warn(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Diagnostics of what was done all the same: text on stderr, or part of the JSON document. ``-q`` leaves the
        errors."""
        found = list(diagnostics)
        self.record(found)
        shown = [d for d in found if not self.quiet or d.severity == "error"]
        if shown and not self.json:
            sys.stderr.write(printable(render_groups(shown, color=self._color(), verbose=self.verbose)))

    def record(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Keep diagnostics for the JSON document alone: the text of the command has them."""
        self._warnings += diagnostics

    def judged(self, verdict: Verdict) -> None:
        """Print a verdict about what is written; of one that fails, ``-q`` leaves the error."""
        if self.quiet:
            self.warn(verdict.diagnostics)
        else:
            self.say(verdict.to_text())
            self.record(verdict.diagnostics)

    def wrong_usage(self, text: str) -> None:
        """Print what argparse could not see; ``-q`` does not silence it."""
        sys.stderr.write(printable(f"dmlc {self.verb}: {text}\n"))

    def fail(self, error: DmlcError, source: str | None = None) -> int:
        """Show an error; its exit code. ``source`` names the file in a document of several."""
        if self.json:
            found = [to_json(d) for d in (*error.diagnostics, *self._warnings)]
            named = {} if source is None else {"source": source}
            self.document({**named, "diagnostics": found, "exit_code": error.exit_code}, ok=False)
        else:
            sys.stderr.write(printable(render_groups(error.diagnostics, color=self._color(), verbose=self.verbose)))
        if self.verbose and error.exit_code == _BUG:
            traceback.print_exception(error)
        return error.exit_code

    def unexpected(self, error: Exception | SystemExit) -> int:
        """Show an exception that is not a ``DmlcError``: a library that cannot be used, or a bug in dmlc.

        Raises ``error`` again if it is an ``OSError`` or a ``SystemExit`` of dmlc itself.
        """
        from dmlc.diagnostics.libraries import unusable_library

        found = unusable_library()
        if found is not None:
            return self.fail(found)
        if isinstance(
            error, (OSError, SystemExit)
        ):  # the files that commands name are dealt with where they are opened
            raise error
        return self.bug(error)

    def bug(self, error: Exception) -> int:
        """Show what should never have happened."""
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        note = "" if self.verbose else "run it again with -v and put the lines into a report"
        code = self.fail(DmlcError(Diagnostic(INTERNAL, what, help=note), exit_code=_BUG))
        if self.verbose:
            traceback.print_exception(error)
        return code

    def progress(self, label: str) -> Progress:
        """A line on the terminal for work that takes a while."""
        return Progress(label, shown=not self.quiet and is_terminal(sys.stderr))

    def _color(self) -> bool:
        if os.environ.get("NO_COLOR"):  # an empty one counts as unset: no-color.org
            return False
        return bool(os.environ.get("FORCE_COLOR")) or is_terminal(sys.stderr)


def printable(text: str) -> str:
    """The text with control characters as escapes, but for newlines, tabs and colors: names in a model may hold any,
    and a terminal would obey them."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _write_json(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, indent=2, allow_nan=False, default=asdict)
    sys.stdout.write(text + "\n")
    return text


#: More bytes are not told apart; a hostile model can ask for more than a float holds.
_LARGEST = 10**300


def human_bytes(number: int, *, short: bool = False) -> str:
    """Three digits and a unit: ``1.80 MB``; if ``short``, without zeros at the end: ``1.8 MB``."""
    units = ["B", "kB", "MB", "GB", "TB"]
    size = float(max(-_LARGEST, min(number, _LARGEST)))
    while abs(size) >= 999.5 and len(units) > 1:
        size /= 1000
        units.pop(0)
    digits = 0 if units[0] == "B" or abs(size) >= 99.95 else 1 if abs(size) >= 9.995 else 2
    text = f"{size:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits and short else text} {units[0]}"
