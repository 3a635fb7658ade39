"""Names that have a page, such as `W0601` or `dmlc check`, become links to it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from tools.site.sources import in_prose
from tools.site.writing import Pages

#: A name in backticks that is not the text of a link, and a code without backticks.
_NAME = re.compile(r"(?<!\[)`((?:dmlc )?[\w-]+)`(?!\])|(?<![\w`\[#/-])([EWI]\d{4})(?![\w`\]-])(?!\.md)")
#: Folders whose pages have the names of what they describe. Operations are common words in other pages.
_FOLDERS = {"codes": "", "rules": "", "faults": "", "commands": "dmlc "}


def names_of(pages: Pages) -> Mapping[str, str]:
    """Return the page of each name."""
    found = {}
    for path in pages:
        folder, file = PurePosixPath(path).parts[-2:]
        if folder in _FOLDERS and file != "index.md":
            found[_FOLDERS[folder] + file.removesuffix(".md")] = path
    return found


def linked_names(text: str, where: str, pages: Pages) -> str:
    """Return the page with links at the names that have pages, but for headings and its own name."""
    names = names_of(pages)

    def link(match: re.Match[str]) -> str:
        page = names.get(match[1] or match[2])
        if page is None or page == where:
            return match[0]
        return f"[{match[0]}]({os.path.relpath(page, PurePosixPath(where).parent).replace(os.sep, '/')})"

    def lines(prose: str) -> str:
        return "".join(
            line if line.startswith("#") else _NAME.sub(link, line) for line in prose.splitlines(keepends=True)
        )

    return in_prose(text, lines)
