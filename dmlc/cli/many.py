"""Verbs that take several files: the others are done though one fails, and JSON is one document."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from dmlc.cli.console import Console, UsageError
from dmlc.diagnostics import DmlcError

_WRONG_USAGE = 2


def run_each(args: argparse.Namespace, console: Console, run_one: Callable[[argparse.Namespace, Console], int]) -> int:
    """Run ``run_one`` for each of ``args.sources``, as ``args.source``; the largest exit code.

    The JSON document of one file is its own; of several it has theirs under ``files``. Raises what ``run_one`` raises
    for one file.
    """
    if len(args.sources) == 1:
        return run_one(_for_one(args, args.sources[0]), console)
    documents: list[dict[str, Any]] = []
    code = 0
    for name in args.sources:
        voice = Console(console.verb, args, documents)
        try:
            code = max(code, run_one(_for_one(args, name), voice))
            sys.stdout.flush()  # messages of the next file go to stderr
        except DmlcError as error:
            code = max(code, voice.fail(error, source=name))
        except UsageError as error:
            code = max(code, _WRONG_USAGE)
            voice.wrong_usage(str(error))
            voice.document({"source": name, "exit_code": _WRONG_USAGE, "message": str(error)}, ok=False)
    console.documents(documents)
    return code


def _for_one(args: argparse.Namespace, name: str) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(args), "source": name})
