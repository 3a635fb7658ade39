"""Escapes: names come from models, which may be hostile. Each form of output has one function."""

from __future__ import annotations

import html
import json
import unicodedata
from typing import Any

#: Categories of characters that show nothing, or change the order of others.
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def plain(text: str) -> str:
    """The text with its control, formatting and bidirectional characters as ``\\uXXXX``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in _HIDDEN else c for c in text)


def shortened(text: str, longest: int) -> str:
    """The plain text with at most ``longest`` characters: the middle is left out."""
    text = plain(text)
    if len(text) <= longest:
        return text
    head = (longest - 1) // 2
    return f"{text[:head]}…{text[head + 1 - longest :]}"


def markup(text: str) -> str:
    """The plain text for HTML and SVG, in attributes too."""
    return html.escape(plain(text), quote=True)


def script(data: Any) -> str:
    """The data as JSON that may be inside of a ``<script>``."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def dot(text: str) -> str:
    """The plain text for a quoted string of the DOT language."""
    return plain(text).replace("\\", "\\\\").replace('"', '\\"')


def mermaid(text: str) -> str:
    """The plain text for a quoted label of Mermaid: all but letters, digits and a few signs as entities."""
    return "".join(c if c.isalnum() or c in " ._/:-," else f"#{ord(c)};" for c in plain(text))
