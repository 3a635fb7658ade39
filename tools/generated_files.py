"""The command line of the tools that write generated files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path


def write_or_compare(command: str, description: str | None, files: Mapping[Path, str]) -> int:
    """Write the files with ``--write``, else say whether they are current. Return the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m tools.{command}", description=description)
    parser.add_argument("--write", action="store_true", help="write the files anew")
    if parser.parse_args().write:
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
        return 0
    old = [path.name for path, text in files.items() if path.read_text(encoding="utf-8") != text]
    print(f"not current: {', '.join(old)}; write anew: python -m tools.{command} --write" if old else "current")
    return 1 if old else 0
