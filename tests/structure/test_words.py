"""Docstrings, comments and headings start with a noun or a verb; each thing has one word, each class its own name."""

from __future__ import annotations

import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from definitions import Definition, definitions, definitions_of

import dmlc
from tests.rows import each_row

PACKAGE = Path(dmlc.__file__).parent
#: The package may be an installed one.
CHECKOUT = Path(__file__).parents[2]
MODULES = sorted(PACKAGE.rglob("*.py"))
#: Code that does not ship.
BESIDE = [path for name in ("tests", "tools", "benchmarks", "examples") for path in (CHECKOUT / name).rglob("*.py")]
STUBS = sorted(PACKAGE.rglob("*.pyi"))
PAGES = [*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")]
#: A docstring, comment or heading that starts with one of these has to be decoded: its subject or verb comes late.
LATE_START = re.compile(r"(what|whether|that|those|which|of|where|who|whose|how|why|when)\b", re.IGNORECASE)
MAY_BE_LATE = re.compile("#[#: ]*" + LATE_START.pattern, re.IGNORECASE)
#: Words that must not come back, each with the word to write instead. A quoted word is a name of ONNX.
REPLACED = {
    r"(?<![\"`])\bstretch\w*(?![\"`])": "broadcast",
    r"\b(room|house)s?\b": "layer, package, memory",
    r"\bdoors?\b": "public function, entry point",
    r"\bstrangers?\b": "new user, reviewer",
    r"\b(knowers?|judges?)\b": "provider, comparison",
    r"\bwhere nothing is said\b": "by default",
    r"\b(tells|(is|are) told)\b": "is reported, prints, gives",
    r"(?<!\bthere )\b(is|are) no (?!(long|larg|small|short|dear|round|bett)er\b|more\b|less\b|such\b)[a-z`{]": "is not",
}
#: Names that several modules give to a class: public names of the builder or the API beside those of the graph or of
#: the syntax tree that they stand for.
SHARED_NAMES = {"Graph", "Program", "Tensor"}


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each comment, and of each string with a space: docstrings, messages, help."""
    strings = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type in strings and " " in token.string):
            yield token.start[0], " ".join(token.string.split())


def late_starts(found: Iterable[Definition]) -> list[str]:
    return [f"{d.name}: {d.docstring.splitlines()[0]}" for d in found if d.docstring and LATE_START.match(d.docstring)]


def late_comments(text: str) -> list[str]:
    """Return the late starts among the comments; a comment below another one, in its column, continues it."""
    found, above = [], (-1, -1)
    if not MAY_BE_LATE.search(text):
        return []  # to read the tokens of a file takes long
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            if above != (line - 1, column) and LATE_START.match(token.string.lstrip("#: ")):
                found.append(f"line {line}: {token.string}")
            above = token.start
    return found


def late_headings(page: str) -> list[str]:
    prose = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    return [line for line in re.findall(r"^#+ +([A-Z].*)", prose, re.MULTILINE) if LATE_START.match(line)]


def replaced_words(text: str) -> list[str]:
    line = " ".join(text.replace('"', " ").split())
    if not any(re.search(pattern, line, re.IGNORECASE) for pattern in REPLACED):
        return []  # to read the tokens of a file takes long
    return [
        f"line {line}: {match[0]!r}, write: {instead}"
        for line, found in prose(text)
        for pattern, instead in REPLACED.items()
        for match in re.finditer(pattern, found, re.IGNORECASE)
    ]


def test_docstrings_start_early() -> None:
    assert len(BESIDE) > 400
    found = {path: late_starts(definitions(path)) for path in (*BESIDE, *MODULES, *STUBS)}
    assert not {path.as_posix(): wrong for path, wrong in found.items() if wrong}


def test_comments_start_early() -> None:
    found = {path: late_comments(path.read_text(encoding="utf-8")) for path in (*BESIDE, *MODULES, *STUBS)}
    assert not {path.as_posix(): wrong for path, wrong in found.items() if wrong}


def test_headings_start_early() -> None:
    found = {path.name: late_headings(path.read_text(encoding="utf-8")) for path in PAGES}
    assert len(found) > 15
    assert not {name: wrong for name, wrong in found.items() if wrong}


def test_words_of_the_package() -> None:
    found = {path: replaced_words(path.read_text(encoding="utf-8")) for path in (*MODULES, *STUBS)}
    assert not {path.relative_to(PACKAGE).as_posix(): wrong for path, wrong in found.items() if wrong}


def test_classes_have_names_of_their_own() -> None:
    defined: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for found in definitions(path):
            if found.kind == "class":
                defined[found.name.lstrip("_")].add(path.relative_to(PACKAGE).as_posix())
    assert {name: sorted(places) for name, places in defined.items() if len(places) > 1}.keys() == SHARED_NAMES


@each_row("word", ["What", "Whether", "That", "Those", "Which", "Of", "Where", "How", "Why"])
def test_a_late_start_is_found(word: str) -> None:
    assert late_starts(definitions_of(f'def f():\n    """{word} comes out."""\n')) == [f"f: {word} comes out."]
    fine = 'class A:\n    """Return whether it is so."""\n\n\nclass B:\n    """Offset of a row."""\n'
    assert not late_starts(definitions_of(fine))


@pytest.mark.parametrize("comment", ["#: How a kernel runs.", "x = 1  # why it is one", "# Where\n# x is one."])
def test_a_late_comment_is_found(comment: str) -> None:
    assert len(late_comments(f"def f():\n    pass\n\n\n{comment}\n")) == 1
    assert not late_comments("# Needs of a kernel, and\n# what it gives.\nx = 1  # the first, which is one\n")


def test_a_late_heading_is_found() -> None:
    assert late_headings("# How it runs\n\n```\n# how a comment may begin\n```\n\n## Files\n") == ["How it runs"]


@pytest.mark.parametrize(
    "line",
    [
        "# the axis is stretched",
        'm = "a list is no size"',
        'm = f"{x} are no axes"',
        'def f():\n    """The lowest\n    room of all."""',
    ],
)
def test_a_replaced_word_is_found(line: str) -> None:
    assert len(replaced_words(line)) == 1


@pytest.mark.parametrize(
    "line",
    ['m = "there is no axis"', 'm = "the copy is no longer read"', 'policy = "stretch"', "stretched = 1", 'x = "no"'],
)
def test_other_uses_are_allowed(line: str) -> None:
    assert not replaced_words(line)
