"""Names of Python that the pages write, such as ``dmlc.verifying``, exist once dmlc is imported."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = {path.stem for path in ROOT.joinpath("dmlc").iterdir() if not path.name.startswith("_")}


def test_names_of_the_pages_exist_after_a_plain_import() -> None:
    """Each name in a module is asked for in a process of its own, where nothing else has loaded it."""
    names = set()
    for page in [ROOT / "README.md", *ROOT.joinpath("docs").rglob("*.md")]:
        names |= set(re.findall(r"`dmlc\.(\w+(?:\.\w+)*)", page.read_text(encoding="utf-8")))
    inside = {name for name in names if name.partition(".")[0] in PACKAGES}
    assert {"debugging", "std.cross_entropy", "verifying"} <= inside
    for name in sorted(inside):
        before = "dmlc.decompose; " if name == "api.decomposition.stayed" else ""  # its operand is what this returns
        subprocess.run([sys.executable, "-c", f"import dmlc; {before}dmlc.{name}"], check=True, timeout=60)
