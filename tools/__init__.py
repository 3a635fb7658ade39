"""Commands that look for faults for longer than the suite does: ``python -m tools.fuzz`` and others."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def environment() -> dict[str, str]:
    """The variables of a child process that imports from where this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
