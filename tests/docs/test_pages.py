"""The blocks of each page run, as they are written, in an empty folder. The tutorial and the cluster have their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import blocks, run_page
from tools.site.sources import ROOT

PAGES = [
    page
    for page in [ROOT / "README.md", *sorted(ROOT.joinpath("docs").rglob("*.md"))]
    if page.parent.name != "tutorial" and page.name != "many_machines.md" and any(blocks(page))
]


@pytest.mark.usefixtures("sessions_here")
@pytest.mark.filterwarnings("ignore:Specified provider")  # pages name the one of Windows
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(page) > 0


def test_wrong_output_and_a_failing_command_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in ("```console\n$ dmlc --version\ndmlc 9\n```\n", "```python\n1 / 0\n```\n", "```dml\nmodel\n```\n"):
        page = tmp_path / "page.md"
        page.write_text(f"Text.\n\n{wrong}")
        with pytest.raises(Exception, match=r"dmlc 9|division|E0101|expected"):
            run_page(page)
