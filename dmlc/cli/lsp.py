"""Serve an editor: mistakes, types, completion and more while a program is typed; it speaks LSP on stdin and stdout."""

from __future__ import annotations

import argparse

from dmlc.cli.console import Console
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.runs import NO_LIBRARY


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(format="text", quiet=False, verbose=False)


def run(args: argparse.Namespace, console: Console) -> int:
    try:
        from dmlc.lsp.server import serve
    except ModuleNotFoundError as error:
        raise fail(NO_LIBRARY, f"{error.name} is not installed", help='pip install "dmlc[lsp]"') from None
    serve()
    return 0
