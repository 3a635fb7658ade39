"""The harness finds the guards; running it takes long and is not part of the suite."""

import ast
from pathlib import Path

from mutants import mutants

ROOT = Path(__file__).parents[2]


def test_each_mutant_is_a_module_without_one_guard() -> None:
    found = list(mutants(ROOT))
    assert len(found) > 150
    for mutant in found:
        original = (ROOT / mutant.path).read_text("utf-8")
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(original)), mutant.place


def test_what_a_guard_is(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(
        "def check(x) -> Miss | None:\n"
        "    if x.é and not x.b:\n"
        "        return Miss('no')\n"
        "    if x.c:\n"
        "        return None\n"
        "    return used(x) or self.plain(x)\n"
    )
    found = [(m.line, m.text, m.source.splitlines()[m.line - 1].strip()) for m in mutants(tmp_path, ".")]
    assert found == [
        (6, "used(x)", "return None or self.plain(x)"),
        (6, "self.plain(x)", "return used(x) or None"),
        (2, "x.é and not x.b", "if False:"),
    ]
