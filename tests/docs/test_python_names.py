"""Names of Python that the pages write, such as ``dmlc.verifying``, exist once dmlc is imported."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = {path.stem for path in ROOT.joinpath("dmlc").iterdir() if not path.name.startswith("_")}
#: The names of a package are asked for with modules of dmlc that nothing has loaded yet.
_PROGRAM = """
import sys
for statement in sys.stdin.read().splitlines():
    for name in [name for name in sys.modules if name.split(".")[0] == "dmlc"]:
        del sys.modules[name]
    exec(f"import dmlc; {statement}", {})
"""


def test_names_of_the_pages_exist_after_a_plain_import() -> None:
    names = set()
    for page in [ROOT / "README.md", *ROOT.joinpath("docs").rglob("*.md")]:
        names |= set(re.findall(r"`dmlc\.(\w+(?:\.\w+)*)", page.read_text(encoding="utf-8")))
    inside = {name for name in names if name.partition(".")[0] in PACKAGES}
    assert {"debugging", "std.cross_entropy", "verifying"} <= inside
    before = {"api.decomposition.stayed": "dmlc.decompose; "}  # its operand is what this returns
    packages = [list(group) for _, group in groupby(sorted(inside), key=lambda name: name.partition(".")[0])]
    statements = "\n".join("; ".join(f"{before.get(name, '')}dmlc.{name}" for name in group) for group in packages)
    subprocess.run([sys.executable, "-c", _PROGRAM], input=statements, text=True, check=True, timeout=60)


def test_python_blocks_import_what_they_use() -> None:
    """In the text that readers see: blocks made for the tests are hidden from them."""
    for page in [ROOT / "README.md", *ROOT.joinpath("docs").rglob("*.md")]:
        text, before = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL), ""
        for block in re.findall(r"^```python.*\n((?:.*\n)*?)```$", text, re.MULTILINE):
            before += block
            for name in set(re.findall(r"(?<![\w.\"'/])(dmlc|np|onnx|onnxruntime|json)\.", block)):
                assert re.search(rf"import .*\b{name}\b", before), (page.name, name)
