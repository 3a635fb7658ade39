"""``check --node-data``: the file for Model Explorer."""

from __future__ import annotations

import argparse
from pathlib import Path

from dmlc.api.checking import CheckResult
from dmlc.cli.console import Console, UsageError
from dmlc.runtime import files
from dmlc.views.explorer.node_data import node_data


def check_node_data(args: argparse.Namespace) -> None:
    """Raises ``UsageError`` where no file can be written: of several SRC, and for another suffix."""
    if len(args.sources) > 1:
        raise UsageError("--node-data is about one SRC")
    if Path(args.node_data).suffix.lower() != ".json":
        raise UsageError(f"node data is a .json file, not {args.node_data}")


def write_node_data(path: str, result: CheckResult, console: Console) -> None:
    """Write the file. Raises ``DmlcError`` E0421 (exit code 2) where it cannot be written, ``UsageError`` for a target
    without a placement."""
    if result.placement is None:
        raise UsageError("--node-data needs a target whose placement is known, such as directml")
    if result.program is None:
        console.say(f"{path}: not written, for the target refuses the model")
        return
    files.write_bytes(Path(path), node_data(result.program, result.placement).encode())
    console.say(f"{path}: node data for Model Explorer")
