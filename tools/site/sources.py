"""Pages of the repository as pages of the site: where they go, and links that still lead somewhere."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
#: Pages outside of ``docs/``.
_ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
}
_FOLDERS = {"docs": "", "benchmarks/results": "benchmarks"}
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#:\s]*)(#[^)\s]*)?\)")


@cache
def project_urls() -> Mapping[str, str]:
    """Return the project URLs of ``pyproject.toml``, by name. None has been chosen while there is none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls: dict[str, str] = project.get("urls", {})
    return urls


@cache
def copied() -> Mapping[str, str]:
    """Return the files that the site takes from the repository: the path there, and on the site."""
    files = {path: where for path, where in _ELSEWHERE.items() if path != "README.md"}
    for folder, to in _FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".md", ".svg", ".png"):
                files[path.relative_to(ROOT).as_posix()] = (to / path.relative_to(ROOT / folder)).as_posix()
    return files


def copy_sources(folder: Path) -> None:
    """Write the pages and pictures of the repository to the folder of the site's sources."""
    for path, where in copied().items():
        target = folder / where
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".md":
            target.write_text(linked((ROOT / path).read_text(encoding="utf-8"), path, where), encoding="utf-8")
        else:
            target.write_bytes((ROOT / path).read_bytes())


def linked(text: str, path: str, where: str) -> str:
    """Return the page with its links as they are on the site. Links to other files become names, or addresses in the
    repository if that has one."""

    def link(match: re.Match[str]) -> str:
        mark, words, to, anchor = match[1], match[2], match[3], match[4] or ""
        if not to:
            return match[0]
        inside = os.path.normpath(PurePosixPath(path).parent / to).replace(os.sep, "/")
        here = {**copied(), **_ELSEWHERE}.get(inside)
        if here is None and not (ROOT / inside).exists():
            here = os.path.normpath(PurePosixPath(where).parent / to).replace(os.sep, "/")  # a page that is generated
        if here is not None:
            return f"{mark}[{words}]({os.path.relpath(here, PurePosixPath(where).parent).replace(os.sep, '/')}{anchor})"
        repository = project_urls().get("Repository")
        if repository:
            return f"[{words}]({repository}/blob/main/{inside})"
        return words if inside in words else f"{words} (`{inside}` in the repository)"

    return in_prose(text, lambda prose: _LINK.sub(link, prose))


def in_prose(text: str, change: Callable[[str], str]) -> str:
    """Return the page with a change to all text outside of blocks of code."""
    out, end = "", 0
    for fence in _FENCE.finditer(text):
        out += change(text[end : fence.start()]) + fence[0]
        end = fence.end()
    return out + change(text[end:])
