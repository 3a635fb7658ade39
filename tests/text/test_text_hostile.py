"""Programs that nobody wrote by hand: each ends at once, with a coded error or a graph."""

from __future__ import annotations

import sys
import time

import pytest
from text_helpers import codes, diagnostics, errors, graph_of, in_model, source

from dmlc import text
from dmlc.diagnostics import DmlcError, Source
from dmlc.diagnostics.limits import DEFAULTS
from tests.rows import each_row


@pytest.fixture(autouse=True)
def soon() -> object:
    """No case may take long; the limit is generous for a busy machine."""
    start = time.process_time()
    yield
    assert time.process_time() - start < 30


@pytest.mark.parametrize(("opener", "closer"), [("(", ")"), ("[", "]"), ("exp(", ")"), ("([", "])")])
def test_brackets_nest_two_hundred_deep(opener: str, closer: str) -> None:
    def program(depth: int) -> str:
        levels = depth // len(opener.replace("exp", ""))
        return in_model(f"y = {opener * levels}x{closer * levels}", "return x")

    assert codes(program(200)) in ([], ["E0331"], ["E0331"])
    assert errors(program(202))[0][:2] == ("E0105", 2)
    assert codes(program(100_000)) == ["E0105"]


def test_the_first_bracket_too_many_is_shown() -> None:
    assert errors(in_model("y = " + "(" * 201 + "x" + ")" * 201, "return y")) == [("E0105", 2, 209)]


def test_brackets_that_are_never_closed() -> None:
    assert codes(in_model("y = " + "(" * 100_000)) == ["E0105"]
    assert codes("(" * 150) == ["E0101", "E0104"]
    assert codes(")" * 1000 + "\n") == ["E0104"]
    assert len(codes("}\n" * 1000)) == 20


@pytest.mark.parametrize("sign", ["-", "!", "- !"])
def test_signs_in_a_row(sign: str) -> None:
    assert codes(in_model(f"y = {sign * 20_000}x", "return y")) == ["E0105"]


def test_powers_of_powers() -> None:
    assert codes(in_model("y = x" + " ** x" * 20_000, "return y")) == ["E0105"]
    assert codes(in_model("y = x" + " ** -x" * 5_000, "return y")) == ["E0105"]
    assert codes(in_model("y = x" + " ** 2" * 150, "return y")) == ["E0311"]
    assert len(graph_of(in_model("y = x" + " ** x" * 150, "return y"))) == 150


def test_long_chains_are_no_depth() -> None:
    assert len(graph_of(in_model("y = x" + " + x" * 3_000, "return y"))) == 3_000
    assert len(graph_of(in_model("y = x" + " |> exp()" * 3_000, "return y"))) == 3_000
    assert len(graph_of(in_model("y = x" + " as f32" * 3_000, "return y"))) == 3_000
    program = in_model("y = x" + " * x + x" * 2_000, "return y")
    assert text.parse(source(text.format_source(source(program)))) == text.parse(source(program))


def test_every_level_of_precedence_in_every_bracket() -> None:
    expression = "x"
    for _ in range(199):
        expression = f"(n | n ^ n & n == n + n * -{expression} ** 2 as i32 |> neg())"
    found = codes(in_model(f"y = {expression}", "return y", inputs="x: i32[2], n: i32[2]"))
    assert found == ["E0310"]  # a comparison is bool, and & does not mix it with integers


def test_defs_that_double() -> None:
    lines = ["def g0(x) {\n    return x + 1\n}\n"]
    lines += [f"def g{i}(x) {{\n    return g{i - 1}(g{i - 1}(x))\n}}\n" for i in range(1, 40)]
    assert codes("".join(lines) + in_model("return g39(x)")) == ["E0117"]
    assert codes("".join(lines) + in_model("return x")) == []


def test_defs_that_nest() -> None:
    def program(depth: int) -> str:
        lines = ["def g0(x) {\n    return x + 1\n}\n"]
        lines += [f"def g{i}(x) {{\n    return g{i - 1}(x)\n}}\n" for i in range(1, depth)]
        return "".join(lines) + in_model(f"return g{depth - 1}(x)")

    assert codes(program(200)) == []
    (found,) = diagnostics(program(201))
    assert found.code.id == "E0105"
    assert len(found.labels) <= 9
    assert codes(program(1_000)) == ["E0105"]


def test_deep_defs_of_deep_brackets_end_and_restore_the_recursion_limit() -> None:
    before = sys.getrecursionlimit()
    lines = [f"def g{i}(x) {{\n    return {'exp(' * 60}g{i - 1}(x){')' * 60}\n}}\n" for i in range(1, 100)]
    program = "def g0(x) {\n    return -x\n}\n" + "".join(lines) + in_model("return g99(x)")
    assert len(graph_of(program)) == 99 * 60 + 1
    assert sys.getrecursionlimit() == before


def test_a_circle_of_many_defs() -> None:
    lines = [f"def g{i}(x) {{\n    return g{(i + 1) % 1_000}(x)\n}}\n" for i in range(1_000)]
    assert codes("".join(lines) + in_model("return g0(x)")) == ["E0206"]


@each_row("expression", ["9 ** 9 ** 9", "9**9**9**9**9", "2 ** 1000000000", "7" * 1_000_000,
                                        "0x" + "f" * 1_000_000, "1e" + "9" * 1000, "1" * 5000 + ".5"])  # fmt: skip
def test_large_numbers(expression: str) -> None:
    assert codes(in_model(f"y = x * ({expression})", "return y")) == ["E0311"]
    assert codes(f"const w: f32[] = {expression}\n" + in_model("return x")) == ["E0311"]
    assert codes(f"dim N in 1..{expression}\n" + in_model("return x")) == ["E0311"]


def test_the_length_of_a_program_is_limited() -> None:
    with pytest.raises(DmlcError, match="50,000,000 bytes") as error:
        text.decode("big.dml", b"#" * 50_000_000)
    assert error.value.diagnostics[0].code.id == "E0114"
    with pytest.raises(DmlcError) as error:
        text.parse(Source("big.dml", "# \n" * (DEFAULTS.text_bytes // 3 + 1)))
    assert error.value.diagnostics[0].code.id == "E0114"


@each_row(
    ("data", "place"),
    [
        (b"\x7fELF\x00\x01", None),
        (b"\x08\x07\x12\x00onnx", None),
        (b"\xff\xfem\x00o\x00", None),
        (b"\xfe\xff\x00m", None),
        (b"# caf\xe9\n", (1, 6)),
        (b"dml 1\n# \xc3(\n", (2, 3)),
        (b"\xef\xbb\xbfdml 1\n  \xff", (2, 3)),
        (b"# \xed\xa0\x80", (1, 3)),
    ],
)
def test_what_is_no_text(data: bytes, place: tuple[int, int] | None) -> None:
    with pytest.raises(DmlcError) as error:
        text.decode("t.dml", data)
    (found,) = error.value.diagnostics
    assert found.code.id == "E0112"
    assert (found.span and (found.span.line, found.span.column)) == place


def test_text_is_decoded() -> None:
    assert text.decode("t.dml", b"\xef\xbb\xbf# caf\xc3\xa9\r\n").lines == ["# café\r", ""]
    for empty in (b"", b"\xef\xbb\xbf", b"\n \t\r\n"):
        with pytest.raises(DmlcError) as error:
            text.load(text.decode("t.dml", empty))
        assert error.value.diagnostics[0].code.id == "E0113"


@each_row("character", ["\0", "\x1b", "\x85", "\u2028", "\u200b", "\ud800", "\ufeff", "\x0c", "\U0001f600"])
def test_strange_characters_anywhere(character: str) -> None:
    for program in (in_model(f"y = x {character} + 1", "return y"), character + "model", f"model m(`a{character}"):
        found = diagnostics(program)
        assert found
        assert all(d.code.id.startswith("E01") for d in found)
    assert codes(in_model(f"y = x + 1  # {character}", "return y")) == []


def test_many_lines_are_read_at_an_even_pace() -> None:
    """Linear growth: ten times the lines take about ten times as long, not a hundred."""

    def seconds(count: int) -> float:
        body = [f"v{i + 1} = v{i} * 2 + x" for i in range(count)]
        program = source(in_model(*body, f"return v{count}", inputs="x: f32[4], v0: f32[4]"))
        start = time.process_time()
        text.parse(program)
        return time.process_time() - start

    seconds(10)  # loads the grammar
    assert min(seconds(4_000) for _ in range(2)) < 30 * max(seconds(500) for _ in range(3))
