"""The programs of the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = [path for folder in ("examples", "dmlc", "tests") for path in sorted((ROOT / folder).rglob("*.dml"))]
