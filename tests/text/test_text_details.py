"""Details of messages, layout and sizes at their boundaries."""

from __future__ import annotations

import itertools
import random

from text_helpers import codes, diagnostics, graph_of, in_model, source

from dmlc import text
from dmlc.diagnostics import CODES, Diagnostic, Label, Source, Span, did_you_mean, to_json
from dmlc.diagnostics.limits import DEFAULTS
from dmlc.text.syntax.parser import MAX_SHOWN, together
from tests.rows import each_row

# --- messages


@each_row(("right", "help"), [
    ("(exp())", "take the parentheses around it away"), ("exp", "write exp()"),
    ("2", "put the part before the next operator in parentheses: (x |> f(a)) + 1"),
    ("exp() + 1", "put the part before the next operator in parentheses: (x |> f(a)) + 1"),
])  # fmt: skip
def test_the_right_side_of_a_pipe(right: str, help: str) -> None:
    (found,) = diagnostics(in_model(f"y = x |> {right}", "return y"))
    assert (found.code.id, found.help) == ("E0108", help)


@each_row("count", [2, 7, 8, 20])
def test_a_circle_of_up_to_eight_names_is_shown_whole(count: int) -> None:
    defs = [f"def g{i}(x) {{\n    return g{(i + 1) % count}(x)\n}}\n" for i in range(count)]
    (found,) = diagnostics("".join(defs) + in_model("return x"))
    names = [f"g{i}" for i in range(count)] + ["g0"]
    shown = names if len(names) <= 8 else [*names[:4], "...", *names[-3:]]
    assert found.message == f"g0 calls itself: {' -> '.join(shown)}"


@each_row("length", [39, 40, 41, 80])
def test_up_to_forty_signs_of_a_token_are_shown(length: int) -> None:
    name = "a" * length
    (found,) = diagnostics(in_model(f"y = x {name}", "return y"))
    assert found.message.endswith(f"found {name}" if length <= 40 else f"found {'a' * 40}...")


@each_row("more", [0, 1, 2, 3])
def test_how_many_errors_are_not_shown(more: int) -> None:
    found = diagnostics(in_model(*[f"a{i} = nothing{i}" for i in range(MAX_SHOWN + more)], "return x"))
    assert len(found) == MAX_SHOWN
    notes = {0: (), 1: ("1 more error is not shown",)}.get(more, (f"{more} more errors are not shown",))
    assert [d.notes for d in found] == [()] * (MAX_SHOWN - 1) + [notes]


def test_two_mistakes_at_one_place_are_two() -> None:
    def at(code: str, column: int) -> Diagnostic:
        return Diagnostic(CODES[code], code, (Label(Span(place, 1, column, 1, column + 1)),))

    place = Source("t.dml", "abc")
    error = together([at("E0301", 2), at("E0302", 1), at("E0302", 2), at("E0301", 2)])
    assert [(d.code.id, d.span and d.span.column) for d in error.diagnostics] == [
        ("E0302", 1), ("E0301", 2), ("E0302", 2),
    ]  # fmt: skip


def test_a_quoted_parameter_may_not_be_called_like_an_operation_either() -> None:
    for name in ("exp", "f32", "none", "first", "load"):
        assert codes(f"def f(`{name}`) {{\n    return 1\n}}\n" + in_model("return x")) == ["E0205"]
        assert codes(f"def f(x, *, `{name}`=1) {{\n    return x\n}}\n" + in_model("return x")) == ["E0205"]


# --- sizes


@each_row(("sizes", "fits"), [
    ([2**63 - 1], True), ([2**63], False), ([2**62, 2], False), ([7, (2**63 - 1) // 7], True),
    ([2**32, 2**31], False), ([2**32 - 1, 2**31], True), ([2**63 - 1, 0], True),
])  # fmt: skip
def test_a_tensor_has_fewer_than_two_to_the_63_elements(sizes: list[int], fits: bool) -> None:
    program = in_model("return x", inputs=f"x: f32[{', '.join(map(str, sizes))}]")
    assert codes(program) == ([] if fits else ["E0332"])


@each_row(("bound", "fits"), [
    (-(2**63), True), (2**63 - 1, True), (-(2**63) - 1, False), (2**63, False),
])  # fmt: skip
def test_an_integer_attribute_has_64_bits(bound: int, fits: bool) -> None:
    for text_ in (f"[{bound}]", f"[0 + {bound}]"):
        statement = f"y = slice(x, starts={text_}, ends=[{2**63 - 1}], axes=[0], steps=[1])"
        assert ("E0311" in codes(in_model(statement, "return y"))) is not fits


def test_only_the_last_call_of_a_pipe_gives_several_results() -> None:
    graph = graph_of(in_model("a, b = x |> onnx.Relu() |> onnx.Split(num_outputs=2)", "return a", inputs="x: f32[4]"))
    assert [len(node.results) for node in graph] == [1, 2]


# --- layout


@each_row("seed", range(20))
def test_numbers_fill_lines_of_up_to_100_columns(seed: int) -> None:
    draw = random.Random(seed)
    numbers = [10 ** draw.randint(0, 8) for _ in range(120)]
    program = f"const w: i64[120] = [{', '.join(map(str, numbers))}]\n" + in_model("return x")
    lines = text.format_source(source(program)).splitlines()
    inside = lines[1 : lines.index("]")]
    assert [int(n) for line in inside for n in line.split(",") if n.strip()] == numbers
    assert max(map(len, lines)) <= 100
    for line, after in itertools.pairwise(inside):
        assert len(line) + 1 + len(after.split()[0]) > 100


@each_row("width", [99, 100, 101])
def test_a_statement_of_100_columns_stays_on_its_line(width: int) -> None:
    head = "y = reshape(x, shape=[4, 3])"
    name = "n" * (width - len("    ") - len(head.replace("y", "", 1)))
    program = in_model(f"{name}{head[1:]}", f"return {name}")
    lines = text.format_source(source(program)).splitlines()
    assert (f"    {name}{head[1:]}" in lines) is (width <= 100)


# --- names that are near


@each_row(("name", "near"), [
    ("argmx", "argmax"), ("ARGMAX", "argmax"), ("softmax2", "softmax"), ("abcd", "abce"), ("xyzw", ""), ("abxy", ""),
])  # fmt: skip
def test_only_a_near_name_is_suggested(name: str, near: str) -> None:
    found = did_you_mean(name, ["argmax", "softmax", "abce", "abqq"])
    assert found == (f'did you mean "{near}"?' if near else "")


def test_the_start_of_a_name_is_nearer_than_another_spelling() -> None:
    known = ["merge-axes-beside", "merge-nested-reductions", "merge-nested", "softmax"]
    assert did_you_mean("merge-neste", known) == 'did you mean "merge-nested"?'
    assert did_you_mean("merge-nested", known[:2]) == 'did you mean "merge-nested-reductions"?'
    assert did_you_mean("soft", known) == 'did you mean "softmax"?'
    assert did_you_mean("mer", known) == ""


@each_row("have", [10**12 - 1, 10**12, 10**12 + 1])
def test_what_no_machine_holds_is_not_counted(have: int) -> None:
    (found,) = DEFAULTS.passed("nodes", "it has", have).diagnostics
    count = f"{have:,}" if have <= 10**12 else "more than 1,000,000,000,000"
    assert found.message == f"it has {count} nodes, the limit is 2,000,000"
    assert (f"limits={{'nodes': {have}}}" in found.help) is (have <= 10**12)


# --- places and help of a call


def test_two_synonyms_are_shown_at_the_second_name() -> None:
    statement = "y = argmax(x, axes=[1], ties=first, axis_direction=increasing)"
    (found,) = diagnostics(in_model(statement, "return y"))
    assert found.message == "ties and axis_direction both say ties"
    assert found.span is not None
    start = 5 + statement.index("axis_direction")
    assert (found.span.column, found.span.end_column) == (start, start + len("axis_direction"))


def test_the_help_for_two_dtypes_casts_the_right_side_to_the_left() -> None:
    for left, right, dtype in (("x", "n", "f32"), ("n", "x", "i32")):
        (found,) = diagnostics(in_model(f"y = {left} + {right}", "return y"))
        assert found.help == f"cast one of them, such as ({right} as {dtype})"
        assert codes(in_model(f"y = {left} + ({right} as {dtype})", "return y")) == []


def test_positions_as_json() -> None:
    (found,) = diagnostics(in_model("y = (x +", "  zz) * 2", "return y"))
    (label,) = to_json(found)["labels"]
    assert label == {"file": "t.dml", "line": 3, "column": 7, "end_line": 3, "end_column": 9, "text": "not found"}
