"""Fresh processes that compile the same sources under other circumstances, and what differs between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools import ROOT

WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class Circumstances:
    """Circumstances that must not matter: the seed of hashes, where objects lie in memory, the current folder, the
    spelling of the source's path, the Python, and whether it checks assertions."""

    seed: str = "0"
    shake: int | None = None
    folder: Path | None = None
    relative: bool = False
    python: str = sys.executable
    optimized: bool = False

    def __str__(self) -> str:
        parts = [self.python, f"PYTHONHASHSEED={self.seed}"]
        parts += [f"memory shaken by {self.shake}"] * (self.shake is not None)
        parts += [f"in {self.folder}"] * (self.folder is not None) + ["relative paths"] * self.relative
        return ", ".join(parts + ["-O"] * self.optimized)


def run(
    root: Path, names: Sequence[str], targets: Sequence[str], how: Circumstances, keep: Path | None = None
) -> dict[str, str]:
    """The digests of everything that is made of the sources. Raises ``RuntimeError`` where the process fails."""
    folder = how.folder or root
    spelled = os.path.relpath(root, folder) if how.relative else str(root.resolve())
    command = [how.python, *(["-O"] if how.optimized else []), str(WORKER)]
    command += [] if keep is None else ["--keep", str(keep.resolve())]
    done = subprocess.run(
        command,
        input=json.dumps({"root": spelled, "names": list(names), "targets": list(targets), "shake": how.shake}),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": how.seed, "PYTHONPATH": str(ROOT)},
    )
    if done.returncode:
        raise RuntimeError(f"{how}: {done.stderr[-3000:]}")
    found: dict[str, str] = json.loads(done.stdout)
    return found


def differences(first: Mapping[str, str], second: Mapping[str, str], only: Iterable[str] | None = None) -> list[str]:
    """The outputs that are not the same bytes, or that only one has; of the sources that ``only`` names, if it does."""
    wanted = None if only is None else set(only)
    labels = [label for label in dict.fromkeys((*first, *second)) if wanted is None or label.split(" ")[0] in wanted]
    return [label for label in labels if first.get(label) != second.get(label)]
