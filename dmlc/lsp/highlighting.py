"""Colors of programs in Pygments: documentation and notebooks find the lexer by the names ``dmlc-dml`` and ``dmlc``."""

from __future__ import annotations

import re
from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, include, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

from dmlc.lsp.words import CALLS, CHOICES, DTYPES, KEYWORDS, NUMBERS, SIGNS, pattern_of

_NAME = rf"(?:{pattern_of('NAME')})"
_BRACKETS = ("(", ")", "[", "]", "{", "}", ",", ":")
_OPERATORS = "|".join([re.escape(sign) for sign in SIGNS if sign not in _BRACKETS])


class DmlLexer(RegexLexer):  # type: ignore[misc]  # mypy does not read Pygments
    """Lexer of ``.dml`` programs."""

    name = "dmlc program"
    aliases: ClassVar[list[str]] = ["dmlc-dml", "dmlc", "dml"]
    filenames: ClassVar[list[str]] = ["*.dml"]
    flags = re.MULTILINE
    tokens: ClassVar = {
        "root": [
            (r"\A(dml)(\s+)", bygroups(Keyword.Declaration, Whitespace)),
            (r"^([ \t]*)(use)\b(?=.*\bfrom\b)", bygroups(Whitespace, Keyword.Namespace), "use"),
            (rf"(def)([ \t]+)({_NAME})", bygroups(Keyword.Declaration, Whitespace, Name.Function)),
            (rf"(model)([ \t]+)({_NAME})", bygroups(Keyword.Declaration, Whitespace, Name.Class)),
            (rf"(dim|const)([ \t]+)({_NAME})", bygroups(Keyword.Declaration, Whitespace, Name.Constant)),
            include("expression"),
        ],
        "use": [
            (r"\n", Whitespace, "#pop"),
            (r"\b(from|as)\b", Keyword.Namespace),
            (r"\bstd\b", Name.Namespace),
            include("expression"),
        ],
        "expression": [
            (r"\s+", Whitespace),
            (pattern_of("COMMENT"), Comment.Single),
            (pattern_of("STRING"), String.Double),
            (r"[(\[]", Punctuation, "inside"),
            (words(KEYWORDS, r"\b", r"\b"), Keyword),
            (rf"onnx(\s*\.\s*{_NAME})+(?=\s*\()", Name.Namespace),
            (words(CALLS, r"\b", r"\b(?=\s*\()"), Name.Builtin),
            (rf"{_NAME}(?=\s*\()", Name.Function),
            (words(DTYPES, r"\b", r"\b"), Keyword.Type),
            (words(NUMBERS, r"\b", r"\b"), Keyword.Constant),
            (_NAME, Name),
            (pattern_of("NUMBER"), Number),
            (_OPERATORS, Operator),
            (r"[{}(),:\[\]]", Punctuation),
        ],
        "inside": [
            (r"[)\]]", Punctuation, "#pop"),
            (
                rf"({_NAME})(\s*)(=)(?!=)(\s*)({'|'.join(CHOICES)})\b",
                bygroups(Name.Attribute, Whitespace, Operator, Whitespace, Name.Constant),
            ),
            (rf"({_NAME})(\s*)(=)(?!=)", bygroups(Name.Attribute, Whitespace, Operator)),
            include("expression"),
        ],
    }
