"""Option groups that several verbs share."""

from __future__ import annotations

import argparse

_SOURCE = "a .dml program or an .onnx model; - reads a program from stdin"


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add one or more SRC, for ``run_each``."""
    parser.add_argument("sources", metavar="SRC", nargs="+", help=_SOURCE)


def add_source(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    parser.add_argument("source", metavar="SRC", nargs="?" if optional else None, help=_SOURCE)


def add_report_options(parser: argparse.ArgumentParser, formats: tuple[str, ...] = ("text", "json")) -> None:
    group = parser.add_argument_group("report")
    group.add_argument("--format", choices=formats, default="text", help="json is one document on stdout")
    group.add_argument("-q", "--quiet", action="store_true", help="no messages but errors")
    group.add_argument("-v", "--verbose", action="store_true", help="more messages; a traceback for a bug in dmlc")


def report_options(argv: list[str]) -> argparse.Namespace:
    """Return what ``add_report_options`` finds in a command line whose other options are not known."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_report_options(parser)
    return parser.parse_known_args(argv)[0]
