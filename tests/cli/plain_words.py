"""Rules for output: no banned word, right plurals, and lines of at most 100 columns, names and source apart."""

from __future__ import annotations

import re

WIDTH = 100
#: Words that must not be in the output, each with the words to write instead.
BANNED = {
    r"open (size|dim|rank)s?": "dynamic size",
    r"(runs?|are|is) alone": "not fused",
    r"lands? on": "runs on",
    r"hangs? on": "requires, depends on",
    r"transfers?": "CPU/GPU copy",
    r"is fine for": "the result",
    r"near[- ]miss(es)?": "missed rewrite",
    r"fed": "given",
    r"that parts|behind it agree": "that differs, last matching tensors",
    r"(is|are) told|tells|is said": "is reported, prints",
    r"stands?|standing|lies": "is",
    r"beside": "next to, with",
    r"of its own": "own",
    r"(that|those) of": "the noun",
    r"extremes?": "maximum or minimum",
    r"search(es|ed|ing)?": "argmax, reduced, look for",
    r"spellings?": "form",
    r"verbs?": "command",
    r"feeds?|feeding": "give",
    r"so many|strangers?|stray|habits?|homes?": "plain words",
    r"doors?|rooms?|houses?|judges?": "entry point, memory, comparison",
    r"the answer is no": "check failed",
}
#: Nouns that output counts; the plural of most has an s more.
_NOUNS = {
    noun: f"{noun}s" for noun in ("element", "error", "file", "graph", "input", "line", "model", "node", "operator")
}
_NOUNS |= {noun: f"{noun}s" for noun in ("output", "round", "run", "step", "value", "warning")}
_NOUNS |= {"axis": "axes", "copy": "copies", "dispatch": "dispatches"}
_NUMBER = r"(?<![\w.,^/=-])(?<!- )(?<!< )"
WRONG_PLURAL = re.compile(rf"{_NUMBER}(1 ({'|'.join(_NOUNS.values())})|(?!1 )\d(?:[\d,]*\d)? ({'|'.join(_NOUNS)}))\b")
#: A word that is a name, a path, an expression or a signature.
_NAME = re.compile(r"\S*[\w)][./_@=\[(:|]\S+|\S*[a-z][A-Z]\S*|\S{25,}|--\S+")
#: Lines that show a source as it is.
_OF_SOURCE = re.compile(r"\s*\d* \| |\s*--> ")
#: Words of ONNX Runtime about a model.
_BY_OTHERS = re.compile("(?<=ONNX Runtime refuses the model: ).*")
#: Commands that show program text, or values of one tensor a line.
_SHOWS_TEXT = re.compile(r"(explain [EWI]\d|diff |verify |inspect |bench |compile .*--verify)")


def wrong_words(text: str) -> list[str]:
    return [
        f"{line!r}: write {instead}"
        for line in text.splitlines()
        if not line.startswith("also: ")  # other names of a word, which a reader may look up
        for pattern, instead in BANNED.items()
        if re.search(rf"(?<![\w/.-])({pattern})(?![\w(=/.-])", line, re.IGNORECASE)
    ]


def wrong_plurals(text: str) -> list[str]:
    return [line for line in text.splitlines() if WRONG_PLURAL.search(line)]


def long_lines(text: str) -> list[str]:
    """Return the lines with more than ``WIDTH`` columns if their names were short, source and what others say apart."""
    text = _BY_OTHERS.sub("", text)
    return [
        line
        for line in text.splitlines()
        if len(line) > WIDTH
        and not _OF_SOURCE.match(line)
        and len(" ".join(_NAME.sub(lambda name: name[0][:8], line).split())) > WIDTH
    ]


def assert_plain(text: str, command: str) -> None:
    """Output of a command, which is given without ``dmlc``."""
    assert not wrong_words(text), wrong_words(text)
    assert not wrong_plurals(text), wrong_plurals(text)
    if not _SHOWS_TEXT.match(command):
        assert not long_lines(text), long_lines(text)
