"""The site is built from the pages without a warning, and asks no other host for anything."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

import pytest

from dmlc.diagnostics import CODES
from dmlc.ops import OPERATIONS
from dmlc.passes.inventory import all_rules
from dmlc.targets.target import load_data
from tools.site import language_pages, target_pages
from tools.site.__main__ import build_site, expanded, foreign_loads, write_pages
from tools.site.names import linked_names
from tools.site.sources import ROOT, copied, copy_sources, linked

FAULTS = load_data("dml_ep")["failures"]
LINKED = ("reference/codes/W0601.md", "reference/faults/gelu.md", "reference/commands/check.md")


def test_fences_are_of_a_form_that_every_reader_of_markdown_knows() -> None:
    """GitHub takes any words behind the language; the site takes the title, and drops the rest of the page else."""
    for path in copied():
        if path.endswith(".md"):
            for fence in re.findall(r"^```(.+)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE):
                assert re.fullmatch(r'\w+( title="[\w.]+")?', fence), (path, fence)


def test_links_follow_pages_and_leave_nothing_that_is_not_on_the_site() -> None:
    prose = "[a](../CHANGELOG.md) [b](costs.md#x) [c](../tools/__init__.py) [d](https://x.org)\n"
    code = "```\n[e](../CHANGELOG.md)\n```\n"
    expected = "[a](changelog.md) [b](costs.md#x) c (`tools/__init__.py` in the repository) [d](https://x.org)\n"
    assert linked(prose + code, "docs/verify.md", "verify.md") == expected + code


def test_generated_pages_have_an_example_and_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take one declaration of each kind; the build writes all of them."""
    monkeypatch.setattr(language_pages, "CODES", {"E0301": CODES["E0301"]})
    monkeypatch.setattr(language_pages, "all_rules", lambda: [r for r in all_rules() if r.name == "known-choice"])
    monkeypatch.setattr(language_pages, "FAMILIES", {"Selection": [OPERATIONS["argmax"]]})
    monkeypatch.setattr(target_pages, "load_data", lambda name: {"failures": [f for f in FAULTS if f["id"] == "gelu"]})
    makers = (
        language_pages.code_pages,
        language_pages.rule_pages,
        language_pages.operation_pages,
        target_pages.fault_pages,
    )
    pages = {PurePath(name).stem: text for make in makers for name, text in make().items() if "index" not in name}
    assert "$ dmlc check example.dml\nerror[E0301]: axis 4 does not exist" in pages["E0301"]
    assert (
        "applies: a/Where -> nothing" in pages["known-choice"] and "--skip-rule known-choice" in pages["known-choice"]
    )
    assert "y  u32[2, 1]  [[2], [2]]" in pages["argmax"]
    assert (
        "# Gelu on DirectML: runs on the CPU (gelu)" in pages["gelu"] and "$ dmlc check fault.onnx\n" in pages["gelu"]
    )
    linked = linked_names("See W0601, `gelu` and `dmlc check`.", "index.md", dict.fromkeys(LINKED, ""))
    assert linked == f"See [W0601]({LINKED[0]}), [`gelu`]({LINKED[1]}) and [`dmlc check`]({LINKED[2]})."


def test_a_page_that_loads_from_another_host_is_found(tmp_path: Path) -> None:
    page, fine = tmp_path / "a.html", '<a href="https://x.org">x</a><script src="../bundle.js"></script>'
    page.write_text(fine)
    assert foreign_loads(tmp_path) == []
    page.write_text(fine + '<link rel="stylesheet" href="//fonts.org/a.css"><img src="http://x.org/a.png">')
    assert foreign_loads(tmp_path) == [(page, "//fonts.org/a.css"), (page, "http://x.org/a.png")]


def test_each_page_of_the_repository_is_in_the_navigation(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    copy_sources(tmp_path)
    parts = expanded(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"], tmp_path)
    listed = [page for part in parts if isinstance(part, dict) for pages in part.values() for page in pages]
    assert {where for where in copied().values() if where.endswith(".md")} == {"index.md", *listed}


def test_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """With the packages of the extra ``docs`` alone, for it takes ten seconds; the workflow ``site`` has them."""
    pytest.importorskip("zensical")
    write_pages(tmp_path)
    assert build_site(tmp_path) == 0
    pages = list(tmp_path.joinpath("site").rglob("*.html"))
    assert len(pages) > len(CODES) + len(all_rules()) + len(copied()) // 2
    assert "DirectML" in tmp_path.joinpath("site", "search.json").read_text(encoding="utf-8")
