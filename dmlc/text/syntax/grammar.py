"""Lark's parser for ``dml.lark``, with a cache of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import lark
from lark.lexer import Lexer as LarkLexer

from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.text.syntax.tokens import Token
from dmlc.text.syntax.transformer import Transformer

#: The start symbols: the pieces of a program, each parsed alone.
STARTS = ("header", "use", "dim", "const", "def_head", "model_head", "statement", "end")


class TokenLexer(LarkLexer):  # type: ignore[misc]  # mypy does not read Lark
    """Lark's lexer interface for tokens that exist already."""

    def __init__(self, conf: object) -> None:
        """Lark passes its terminals; they are not needed."""

    def lex(self, tokens: Iterable[Token]) -> Iterator[Token]:
        return iter(tokens)


@cache
def grammar() -> str:
    """The text of ``dml.lark``."""
    return Path(__file__).with_name("dml.lark").read_text(encoding="utf-8")


@lru_cache(maxsize=8)
def parser_of(limits: Limits = DEFAULTS) -> Any:
    """Return the ``lark.Lark`` whose ``parse(tokens, start=piece)`` builds the syntax tree."""
    return lark.Lark(
        grammar(),
        parser="lalr",
        lexer=TokenLexer,
        start=list(STARTS),
        maybe_placeholders=False,
        transformer=Transformer(limits),
        cache=cache_file(),
    )


def cache_file() -> str:
    """The file in which Lark keeps the tables of the grammar: the compiled form of ``tables.py``, which pip removes.

    Lark unpickles that file, which can run any code: who can write there can write this module too. It checks that the
    grammar and the versions of Lark and Python are the same, and builds the tables anew if it cannot read the file.
    """
    return cache_from_source(str(Path(__file__).with_name("tables.py")), optimization="")
