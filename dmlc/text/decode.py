"""Bytes of a file to a source."""

from __future__ import annotations

from dmlc.diagnostics import Label, Source, Span, fail, naming
from dmlc.diagnostics.catalogue import syntax as codes
from dmlc.diagnostics.limits import DEFAULTS, Limits

INSTEAD = 'keep large data in a file: const w: f32[1000] = load("w.npy")'


def decode(name: str, data: bytes, limits: Limits = DEFAULTS) -> Source:
    """The program that ``data``, the content of the file ``name``, is.

    UTF-8, with or without a byte order mark. Raises ``DmlcError`` E01 for what is no such text or too long.
    """
    with naming(name):
        return _decoded(name, data, limits)


def _decoded(name: str, data: bytes, limits: Limits) -> Source:
    if len(data) > limits.text_bytes:
        raise limits.passed("text_bytes", f"{name} has", len(data), instead=INSTEAD)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise fail(codes.NOT_TEXT, f"{name} is UTF-16 text", help="save it as UTF-8")
    if b"\0" in data:
        raise fail(codes.NOT_TEXT, f"{name} is not a program but a binary file", help="a program is UTF-8 text")
    try:
        return Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8", "replace").split("\n")
        shown = Source(name, error.object.decode("utf-8", "replace"))
        line, column = len(before), len(before[-1]) + 1
        label = Label(Span(shown, line, column, line, column + 1), f"byte 0x{error.object[error.start]:02x}")
        raise fail(codes.NOT_TEXT, f"{name} is not UTF-8 text", label, help="save it as UTF-8") from None
