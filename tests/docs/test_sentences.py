"""Sentences of the pages are short: of each page nine in ten have at most 25 words."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from dmlc.cli.glossary import WORDS
from dmlc.diagnostics import CODES, catalogue
from dmlc.passes.inventory import all_rules
from tests.rows import each_row
from tools.site.sources import ROOT, copied

assert catalogue, "importing the catalogue declares the codes"
MOST_WORDS = 25
PAGES = [ROOT / "README.md", *sorted(ROOT / path for path in copied() if path.endswith(".md"))]
_BLOCK = re.compile(r"^```.*?^```$|^---\n.*?^---$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`+[^`]*`+")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")


def sentences(text: str) -> list[str]:
    """Return the sentences of the paragraphs and list items; headings, tables and code are not sentences."""
    paragraphs: list[list[str]] = [[]]
    for line in _BLOCK.sub("\n", text).splitlines():
        if not line.strip() or line.startswith(("#", "|", ":::", "<")):
            paragraphs.append([])
        elif _ITEM.match(line):
            paragraphs.append([_ITEM.sub("", line)])
        else:
            paragraphs[-1].append(line)
    found = []
    for paragraph in paragraphs:
        prose = _LINK.sub(r"\1", _CODE.sub("code", " ".join(paragraph))).replace("**", "")
        found += [part for part in re.split(r"(?<=[^.][.!?])\s+", prose) if part.strip()]
    return found


def words(sentence: str) -> int:
    return len([word for word in sentence.split() if re.search(r"\w", word)])


def percentile(counts: list[int]) -> int:
    """Return the number that nine in ten do not exceed."""
    return sorted(counts)[max(0, -(-len(counts) * 9 // 10) - 1)] if counts else 0


@each_row("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_sentences_of_a_page_are_short(page: Path) -> None:
    found = sentences(page.read_text(encoding="utf-8"))
    longest = sorted(found, key=words, reverse=True)
    most = percentile(list(map(words, found)))
    assert most <= MOST_WORDS, f"{most} words, in {len(found)} sentences; the longest: {longest[:3]}"


def test_each_change_is_listed_once_and_shortly() -> None:
    """A merge may bring a removed list back."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^##+ .*", text, re.MULTILINE) == ["## Unreleased", "### Added", "### Changed", "### Fixed"]
    entries = re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)
    assert len(set(entries)) == len(entries)
    assert not [entry for entry in entries if entry.count("\n") > 1]


def test_a_long_sentence_is_found() -> None:
    text = (
        "# A heading\n\nOne `of a` kind. Two [a link](x.md).\n\n- three\n- "
        + "word " * 30
        + "\n\n| a | b |\n\n```\ncode\n```\n"
    )
    assert [words(sentence) for sentence in sentences(text)] == [3, 3, 1, 30]
    assert percentile([3, 3, 1, 30]) == 30


def test_sentences_of_declarations_are_short() -> None:
    """The generated pages have them."""
    rules = {rule.name: inspect.getdoc(rule.kind) or "" for rule in all_rules()}
    codes = {code.id: code.why for code in CODES.values()}
    texts = {**rules, **codes, **{word.name: word.text for word in WORDS.values()}}
    counts = {name: list(map(words, sentences(text.replace("``", "`")))) for name, text in texts.items()}
    assert not [name for name, found in counts.items() if percentile(found) > MOST_WORDS]
