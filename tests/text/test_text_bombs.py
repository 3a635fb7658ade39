"""Small programs that ask for much: refused before it is made, or nothing is made of it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from text_helpers import codes, errors, in_model

import dmlc
from dmlc.diagnostics import DmlcError, Source
from tests.rows import each_row


def doubled(count: int) -> str:
    return in_model(
        "v0 = gather(x, x)", *[f"v{i} = gather(v{i - 1}, v{i - 1})" for i in range(1, count)],
        f"return v{count - 1}", inputs="x: i64[2, 2, 2]",
    )  # fmt: skip


def long_defs(calls: int, operations: int) -> str:
    head = "def g(x) {\n    return x" + " + x" * operations + "\n}\n"
    lines = [f"v{i} = g({f'v{i - 1}' if i else 'x'})" for i in range(calls)]
    return head + in_model(*lines, f"return v{calls - 1}")


BOMBS: dict[str, tuple[str, Callable[[], str]]] = {
    "100,000 parentheses": ("E0105", lambda: in_model("y = " + "(" * 100_000 + "x" + ")" * 100_000, "return y")),
    "2 million tokens": ("E0116", lambda: in_model("y = x" + "+x" * 1_000_000, "return y")),
    "a name of a million letters": ("E0442", lambda: in_model("y" * 1_000_000 + " = x", "return x")),
    "a quoted name of a million letters": ("E0442", lambda: in_model("`" + "y" * 1_000_000 + "` = x", "return x")),
    "axes that double": ("E0336", lambda: doubled(30)),
    "2,000 calls of a long def": ("E0441", lambda: long_defs(2_000, 3_000)),
    "an input of 2^80 numbers": ("E0332", lambda: in_model("return x", inputs="x: f32[1099511627776, 1099511627776]")),
}


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_bombs(name: str) -> None:
    code, make = BOMBS[name]
    program = make()
    start = time.process_time()
    assert codes(program) == [code]
    assert time.process_time() - start < 30  # generous, for a busy machine


@each_row(
    "line",
    [
        "y = x + full(shape=[1099511627776], value=1, dtype=f32)",
        "y = onnx.ConstantOfShape(s)",
        "y = onnx.Slice(x, s, s)",
        "y = onnx.Expand(x, s)",
    ],
)
def test_nothing_is_made_of_what_is_large(line: str) -> None:
    program = in_model(line, "return y", inputs="x: f32[1], s: i64[2147483647]")
    start = time.process_time()
    try:
        dmlc.compile(Source("m.dml", program)).to_onnx()
    except DmlcError as error:
        assert error.exit_code == 1
    assert time.process_time() - start < 30


def test_the_place_is_shown() -> None:
    assert errors(doubled(30)) == [("E0336", 6, 10)]
    assert errors(in_model("a = x", "y" * 20_000 + " = x", "return x")) == [("E0442", 3, 5)]


def test_short_names_on_long_lines_are_fine() -> None:
    assert codes(in_model("y = x" + " + x" * 4_000, "return y")) == []
    assert codes(in_model(f"y = x  # {'z' * 20_000}", "return y")) == []
    assert codes(in_model(f'y = onnx.Gelu(x, approximate="{"z" * 20_000}")', "return y")) != ["E0442"]
