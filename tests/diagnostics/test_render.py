"""Diagnostics as text: the underline stands under its characters, whatever the line holds."""

from __future__ import annotations

import pytest

from dmlc.diagnostics import CODES, Diagnostic, Label, Source, Span, render
from tests.rows import each_row

CODE = CODES["E0101"]


def shown(*labels: Label) -> list[str]:
    return render(Diagnostic(CODE, "message", labels)).splitlines()


def underlined(text: str, column: int, end: int) -> tuple[str, str]:
    """The part of a line that is shown, and the part of it above the carets."""
    lines = shown(Label(Span(Source("a.dml", text), 1, column, 1, end)))
    source, marks = (line.partition("| ")[2] for line in lines[3:5])
    first = marks.index("^")
    assert marks[first:] == "^" * (len(marks) - first)
    assert len(source) <= 160
    assert len(marks) <= max(len(source), 1)
    return source, source[first : len(marks)]


@each_row("length", [1, 100, 159, 160, 161, 162, 240, 400, 1000])
def test_the_underline_stays_under_the_line_that_is_shown(length: int) -> None:
    text = "".join(chr(ord("a") + i % 26) for i in range(length))
    for column in {1, 2, 79, 80, 81, 82, 100, 159, 160, 161, length - 1, length}:
        for end in {column + 1, column + 2, column + 79, column + 80, column + 81, length, length + 1}:
            if not (1 <= column < end <= length + 1):
                continue
            source, marked = underlined(text, column, end)
            wanted = text[column - 1 : end - 1]
            assert wanted.startswith(marked)
            assert marked
            assert source in text
            assert marked == wanted or (length > 160 and source.endswith(marked))
            if length <= 160:
                assert source == text


@pytest.mark.parametrize("length", [160, 161])
def test_lines_of_up_to_160_columns_are_shown_whole(length: int) -> None:
    text = "x" * length
    assert (underlined(text, length, length + 1)[0] == text) is (length == 160)


def test_the_place_stands_in_the_middle_of_a_long_line() -> None:
    text = "".join(str(i % 10) for i in range(1000))
    source, marked = underlined(text, 501, 504)
    assert (marked, source.index(marked, 70)) == ("012", 79)
    assert len(source) == 160


def test_a_span_of_several_lines_is_underlined_to_the_end_of_its_first() -> None:
    lines = shown(Label(Span(Source("a.dml", "ab cdef\ngh"), 1, 4, 2, 2)))
    assert lines[4].partition("| ")[2] == "   ^^^^"


def test_a_place_behind_the_line_has_its_caret_right_behind_it() -> None:
    lines = shown(Label(Span(Source("a.dml", "abc"), 1, 9, 1, 10), "here"))
    assert lines[4].partition("| ")[2] == "   ^ here"


def test_tabs_stay_tabs_under_the_line() -> None:
    lines = shown(Label(Span(Source("a.dml", "\ta\tb"), 1, 4, 1, 5)))
    assert lines[4].partition("| ")[2] == "\t \t^"


def test_a_carriage_return_is_not_shown() -> None:
    assert shown(Label(Span(Source("a.dml", "ab\r\ncd\r"), 1, 1, 2, 3)))[3:5] == ["1 | ab", "  | ^^"]


def test_labels_are_in_the_order_of_the_text_and_the_gutter_fits_all() -> None:
    source = Source("a.dml", "\n".join("abcdef" for _ in range(120)))
    places = [(9, 5), (110, 1), (9, 2), (3, 1)]
    labels = [Label(Span(source, line, at, line, at + 1), f"{line}:{at}") for line, at in places]
    lines = shown(*labels)
    assert [line.split(" ")[-1] for line in lines if ":" in line and "|" in line and "-->" not in line] == [
        "3:1", "9:5", "9:2", "110:1",
    ]  # fmt: skip
    assert sum("^" in line for line in lines) == 1
    assert "^ 9:5" in "\n".join(lines)
    assert {line.index("|") for line in lines[2:-1]} == {4}
    assert lines[1] == "   --> a.dml:9:5"


def test_a_label_in_another_source_is_a_note_with_its_place() -> None:
    first, second = Source("a.dml", "abc"), Source("b.py", "def")
    lines = shown(Label(Span(first, 1, 1, 1, 2)), Label(Span(second, 1, 2, 1, 3), "made here"))
    assert "  = note: made here at b.py:1:2" in lines


def test_labels_of_one_line_stand_under_one_line() -> None:
    source = Source("a.dml", "y = xyz + n")
    labels = [Label(Span(source, 1, 11, 1, 12), "this is i32"), Label(Span(source, 1, 5, 1, 8), "xyz is f32")]
    assert shown(*labels)[3:6] == ["1 | y = xyz + n", "  |     ---   ^ this is i32", "  |     xyz is f32"]


def test_a_label_that_covers_another_stands_in_a_row_of_its_own() -> None:
    source = Source("a.dml", "ab + cd")
    labels = [
        Label(Span(source, 1, 1, 1, 8), "whole"),
        Label(Span(source, 1, 1, 1, 3), "left"),
        Label(Span(source, 1, 6, 1, 8), "right"),
    ]
    assert shown(*labels)[3:7] == ["1 | ab + cd", "  | ^^^^^^^ whole", "  | --   -- right", "  | left"]


@each_row(
    ("text", "column", "end", "marks"),
    [
        ("\u65e5\u672c = x", 6, 7, "       ^"),
        ("a \u65e5\u672c b", 3, 5, "  ^^^^"),
        ("e\u0301 x", 4, 5, "  ^"),
        ("\uff21\uff22", 2, 3, "  ^^"),
        ("\t\u65e5x", 3, 4, "\t  ^"),
    ],
)
def test_marks_count_the_width_of_wide_characters(text: str, column: int, end: int, marks: str) -> None:
    lines = shown(Label(Span(Source("a.dml", text), 1, column, 1, end)))
    assert lines[4].partition("| ")[2] == marks
