"""The tables of ``docs/targets.md`` are those of the package."""

from __future__ import annotations

import re

from dmlc.targets.provider import provider
from tools.targets_page import COMMAND, PAGE, page


def test_page_is_current() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), f"rewrite it: {COMMAND}"


def test_every_fault_has_a_row_with_what_is_done_and_a_source() -> None:
    rows = {
        line.split(" | ")[0][2:]: line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"
    }
    for failure in provider("dml_ep").failures:
        cells = rows[f"`{failure.id}`"].split(" | ")
        assert len(cells) == 7 and all(cell.strip(" |") for cell in cells), failure.id
        assert re.search(r"repairs|refuses|warns|advises", cells[5]), failure.id
