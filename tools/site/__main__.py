"""Build the documentation site in ``build/``: ``python -m tools.site``.

``pip install ".[docs]"`` installs what it needs. ``--pages`` writes the pages and does not build the site.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.site import command_pages, language_pages, target_pages
from tools.site.names import linked_names
from tools.site.sources import ROOT, copy_sources, project_urls
from tools.site.writing import Pages

BUILD = ROOT / "build"
#: Elements for which a browser loads something from another host.
_LOADED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=[\"']?((?:https?:)?//[^\"'> ]*)")
#: The makers of the generated pages.
_MAKERS = (
    language_pages.code_pages,
    language_pages.rule_pages,
    language_pages.operation_pages,
    language_pages.word_pages,
    target_pages.target_pages,
    target_pages.fault_pages,
    command_pages.command_pages,
    command_pages.schema_pages,
    command_pages.limit_pages,
    command_pages.option_pages,
)


def write_pages(build: Path) -> None:
    """Write ``docs/`` and ``mkdocs.yml`` of the site to the folder."""
    import yaml

    pages = build / "docs"
    shutil.rmtree(pages, ignore_errors=True)
    copy_sources(pages)
    generated = generated_pages()
    for name, text in generated.items():
        path = pages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in pages.rglob("*.md"):
        name = path.relative_to(pages).as_posix()
        path.write_text(linked_names(path.read_text(encoding="utf-8"), name, generated), encoding="utf-8")
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    settings["nav"] = expanded(settings["nav"], pages)
    if address := project_urls().get("Documentation"):
        settings["site_url"] = address
    build.joinpath("mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


def generated_pages() -> Pages:
    """Return the pages that are written from the declarations."""
    return {name: text for make in _MAKERS for name, text in make().items()}


def expanded(entries: list[Any], pages: Path) -> list[Any]:
    """Return the navigation with the pages of each pattern; a part without pages is left out."""
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, dict):
            parts = {title: expanded(part, pages) for title, part in entry.items()}
            found += [{title: part} for title, part in parts.items() if part]
        else:
            new = sorted(path.relative_to(pages).as_posix() for path in pages.glob(entry))
            found += [page for page in new if page not in found]
    return found


def main() -> int:
    """Write the pages, then build them without a warning. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("--pages", action="store_true", help="write the pages to build/docs alone")
    args = parser.parse_args()
    write_pages(BUILD)
    return 0 if args.pages else build_site(BUILD)


def build_site(build: Path) -> int:
    """Build the pages of the folder into its folder ``site``. Return the exit code: 1 for a warning, or for a page that
    makes a browser load something from another host."""
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", str(build / "mkdocs.yml")]
    exit_code = subprocess.run(command, check=False).returncode
    loads = foreign_loads(build / "site")
    for page, address in loads:
        print(f"{page.relative_to(build)} loads {address}")
    return exit_code or int(bool(loads))


def foreign_loads(site: Path) -> list[tuple[Path, str]]:
    """Return the pages that load something from another host, with the addresses."""
    pages = [(page, page.read_text(encoding="utf-8")) for page in sorted(site.rglob("*.html"))]
    return [(page, address) for page, text in pages for address in _LOADED.findall(text)]


if __name__ == "__main__":
    sys.exit(main())
