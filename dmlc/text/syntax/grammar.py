"""Lark's parser for ``dml.lark``, with a cache of its tables in the user's own folder."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import lark
from lark.lexer import Lexer as LarkLexer

import dmlc
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
    cached = cache_file()
    return lark.Lark(
        grammar(),
        parser="lalr",
        lexer=TokenLexer,
        start=list(STARTS),
        maybe_placeholders=False,
        transformer=Transformer(limits),
        cache=str(cached) if cached else False,
    )


# --- the cache


def cache_file() -> Path | None:
    """Return the file in which Lark keeps the tables of the grammar, or None if none is safe.

    Lark unpickles that file, which can run any code. So the folder and the file belong to this user, nobody else can
    write them, and neither is a link. Both are created if they are missing.
    """
    key = f"{dmlc.__version__} {lark.__version__} {sys.version_info[:2]} {grammar()}"
    try:
        folder = _cache_folder() / "dmlc"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(folder, stat.S_IFDIR) or not all(map(_keeps_names, folder.parents)):
            return None
        file = folder / f"grammar-{hashlib.sha256(key.encode()).hexdigest()[:16]}.pickle"
        if not file.exists():
            file.touch(mode=0o600)
        return file if _is_private(file, stat.S_IFREG) else None
    except (OSError, RuntimeError):  # a read-only file system, a user without a home
        return None


def _cache_folder() -> Path:
    """Return the folder of the user's caches, without links in its path."""
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if Path(named).is_absolute():
        return Path(named).resolve()
    return (Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")).resolve()


def _is_private(path: Path, kind: int) -> bool:
    """Check that ``path`` is a file or folder of this user that nobody else can write."""
    if sys.platform == "win32":
        return not path.is_symlink()  # Windows keeps other users out of a profile
    found = path.lstat()
    return stat.S_IFMT(found.st_mode) == kind and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _keeps_names(folder: Path) -> bool:
    """Check that nobody but this user and the administrator can rename what stands in ``folder``."""
    if sys.platform == "win32":
        return True
    found = folder.stat()
    is_shared = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    return found.st_uid in (0, os.geteuid()) and not is_shared
