"""The TextMate grammar and the snippets of the VS Code extension, written from the tables of the language:
``python -m tools.textmate_grammar --write`` writes them anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dmlc.lsp.completion import ITEMS
from dmlc.lsp.words import CALLS, CHOICES, DTYPES, KEYWORDS, NUMBERS, SIGNS
from tools.generated_files import write_or_compare

FOLDER = Path(__file__).parents[1] / "editors" / "vscode"
GRAMMAR, SNIPPETS = FOLDER / "syntaxes" / "dml.tmLanguage.json", FOLDER / "snippets" / "dml.json"
#: The patterns of the grammar, as Oniguruma writes them.
_NAME = r"(?:[\p{L}_][\p{L}\p{M}\p{N}_]*|`[^`\x00-\x1f\x7f]+`)"
_NUMBER = (
    r"(?<![\p{L}\p{N}_])(?:0[xX][0-9a-fA-F_]+|(?:[0-9][0-9_]*(?:\.[0-9][0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?)"
)
_SUFFIX = ".dmlc-dml"
_BRACKETS = ("(", ")", "[", "]", "{", "}", ",", ":", ".")


def _any(texts: Iterable[str]) -> str:
    return rf"(?<![\p{{L}}\p{{N}}_`])(?:{'|'.join(texts)})(?![\p{{L}}\p{{N}}_])"


def _match(pattern: str, scope: str, **captures: str) -> dict[str, Any]:
    rule: dict[str, Any] = {"match": pattern}
    if scope:
        rule["name"] = scope + _SUFFIX
    if captures:
        rule["captures"] = {number[1:]: {"name": name + _SUFFIX} for number, name in captures.items()}
    return rule


def _declared(keyword: str, scope: str) -> dict[str, Any]:
    return _match(rf"(?<![\p{{L}}\p{{N}}_`])({keyword})\s+({_NAME})", "", _1="keyword.declaration", _2=scope)


def grammar() -> dict[str, Any]:
    """The grammar. A bracket opens a rule of its own, in which names before ``=`` are attributes."""
    signs = "|".join(re.escape(sign) for sign in SIGNS if sign not in _BRACKETS)
    expression = [
        _match("#.*$", "comment.line.number-sign"),
        {
            "begin": '"',
            "end": '"|$',
            "name": f"string.quoted.double{_SUFFIX}",
            "patterns": [_match(r"\\.", "constant.character.escape")],
        },
        {"begin": r"[(\[]", "end": r"[)\]]", "patterns": [{"include": "#inside"}]},
        _match(_any(KEYWORDS), "keyword.control"),
        _match(rf"(?<![\p{{L}}\p{{N}}_`.])onnx(?:\s*\.\s*{_NAME})+(?=\s*\()", "support.function.onnx"),
        _match(_any(CALLS) + r"(?=\s*\()", "support.function.builtin"),
        _match(rf"{_NAME}(?=\s*\()", "entity.name.function"),
        _match(_any(DTYPES), "storage.type"),
        _match(_any(NUMBERS), "constant.language"),
        _match(_NAME, "variable.other"),
        _match(_NUMBER, "constant.numeric"),
        _match(signs, "keyword.operator"),
    ]
    attribute = rf"({_NAME})\s*(=)(?!=)"
    repository = {
        "expression": {"patterns": expression},
        "inside": {
            "patterns": [
                _match(
                    rf"{attribute}\s*({'|'.join(CHOICES)})(?![\p{{L}}\p{{N}}_])", "",
                    _1="variable.parameter", _2="keyword.operator", _3="constant.other",
                ),
                _match(attribute, "", _1="variable.parameter", _2="keyword.operator"),
                {"include": "#expression"},
            ]
        },
    }  # fmt: skip
    used = {
        "begin": r"^\s*(use)\b(?=.*\bfrom\b)",
        "end": "$",
        "beginCaptures": {"1": {"name": f"keyword.control.import{_SUFFIX}"}},
        "patterns": [
            _match(r"\b(from|as)\b", "keyword.control.import"),
            _match(r"\bstd\b(?=\s*(?:#|$))", "support.module"),
            {"include": "#expression"},
        ],
    }
    declared = [
        _declared("def", "entity.name.function"),
        _declared("model", "entity.name.class"),
        _declared("dim", "variable.other.constant"),
        _declared("const", "variable.other.constant"),
    ]
    header = _match(r"\A\s*(dml)\s+(\d+)", "", _1="keyword.declaration", _2="constant.numeric")
    return {
        "name": "dmlc program",
        "scopeName": "source.dmlc-dml",
        "patterns": [header, used, *declared, {"include": "#expression"}],
        "repository": repository,
    }


def snippets() -> dict[str, Any]:
    """The snippets: the items of a file, as completion offers them."""
    return {word: {"prefix": word, "body": text.split("\n")} for word, text in ITEMS.items()}


def files() -> dict[Path, str]:
    """The text of each file."""
    made = {GRAMMAR: grammar(), SNIPPETS: snippets()}
    return {path: json.dumps(content, indent=1, ensure_ascii=False) + "\n" for path, content in made.items()}


if __name__ == "__main__":
    raise SystemExit(write_or_compare("textmate_grammar", __doc__, files()))
