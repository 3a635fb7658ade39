"""Positions of an editor: lines and units of each encoding, there and back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position, PositionEncodingKind

from dmlc.lsp.positions import Text

UNITS = {
    PositionEncodingKind.Utf8: "utf-8",
    PositionEncodingKind.Utf16: "utf-16-le",
    PositionEncodingKind.Utf32: "utf-32-le",
}
SIZE = {PositionEncodingKind.Utf8: 1, PositionEncodingKind.Utf16: 2, PositionEncodingKind.Utf32: 4}
TEXTS = st.text("aé😀𝒙\n\r\u2028\x0b", max_size=30)


@pytest.mark.parametrize("encoding", list(UNITS))
@given(text=TEXTS)
def test_there_and_back(encoding: PositionEncodingKind, text: str) -> None:
    """Each character that does not end a line, counted one at a time."""
    here = Text("m.dml", text, encoding)
    line = units = 0
    number = column = 1
    for i, sign in enumerate(text):
        is_end = sign == "\n" or (sign == "\r" and text[i + 1 : i + 2] != "\n" and i + 1 < len(text))
        if sign not in "\r\n":
            assert here.position(number, column) == Position(line, units)
            assert here.place(Position(line, units)) == (number, column)
        units += len(sign.encode(UNITS[encoding])) // SIZE[encoding]
        column += 1
        if is_end:
            line, units = line + 1, 0
        if sign == "\n":
            number, column = number + 1, 1
    assert here.whole.start == Position(0, 0)
    assert len(here.starts) == len(re.split(r"\r\n|\n|\r(?!$)", text))


def test_places_beyond_the_text_are_the_nearest() -> None:
    text = Text("m.dml", "a😀b\nc")
    assert text.place(Position(0, 99)) == (1, 4)
    assert text.place(Position(0, 2)) == (1, 2)  # between the two units of one character
    assert text.place(Position(9, 0)) == (2, 1)
