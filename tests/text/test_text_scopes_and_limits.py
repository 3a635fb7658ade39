"""Scopes of defaults, mistakes that are reported together, and the exact boundaries of what is read."""

from __future__ import annotations

import re

import numpy as np
import pytest
from text_helpers import codes, diagnostics, errors, graph_of, in_model, source

import dmlc
from dmlc import text
from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.limits import Limits
from dmlc.ops import OPERATIONS
from dmlc.text.elaborate.scope import HIDEABLE
from dmlc.text.syntax.parser import lex
from tests.rows import each_row

# --- defaults of a def


def run(program: str, **feeds: np.ndarray) -> list[float]:
    compiled = dmlc.compile(source(program), target="numpy")
    (result,) = compiled.run(feeds, backend="reference").values()
    return result.reshape(-1).tolist()


CALLER = """
def scaled(x, *, by={default}) {{
    return x * by
}}
def outer(x, *, k=2, axis=0) {{
    local = 5
    return scaled(x)
}}
model m(x: f32[3]) -> (y) {{
    n = full(shape=[], value=7, dtype=f32)
    return {call}
}}
"""


@each_row("name", ["k", "local", "axis", "x"])
@each_row("call", ["outer(x)", "outer(x, k=4)"])
def test_a_default_does_not_see_the_def_that_calls(name: str, call: str) -> None:
    assert codes(CALLER.format(default=name, call=call)) == ["E0202"]


def test_a_default_does_not_see_the_model_that_calls() -> None:
    assert codes(CALLER.format(default="n", call="scaled(x)")) == ["E0202"]


@each_row("call", ["scaled(x)", "outer(x)", "outer(x, k=4)"])
def test_a_default_means_what_it_means_where_the_def_stands(call: str) -> None:
    """A const of the file, although the caller has a parameter of that name."""
    program = "const k: f32[] = 3\n" + CALLER.format(default="k", call=call)
    assert run(program, x=np.ones(3, np.float32)) == [3, 3, 3]


def test_a_default_is_evaluated_at_every_call() -> None:
    program = "const c: f32[] = 3\ndef f(x, *, by=c, plus=c + 1) {\n    return x * by + plus\n}\n"
    program += in_model("y = f(x) - f(x, by=1) - f(x, plus=0)", "return y", inputs="x: f32[1]")
    assert run(program, x=np.ones(1, np.float32)) == [(3 + 4) - (1 + 4) - (3 + 0)]


def test_a_given_none_is_not_replaced_by_the_default() -> None:
    program = "def f(x, *, low=0.0) {\n    return clip(x, min=low, max=1.0)\n}\n"
    program += in_model("y = f(x, low=none)", "return y", inputs="x: f32[1]")
    assert run(program, x=np.array([-2], np.float32)) == [-2]


def test_an_operand_that_is_given_by_name_is_explained() -> None:
    program = "def f(x, *, by=1) {\n    return x * by\n}\n"
    (found,) = diagnostics(program + in_model("y = f(x=x)", "return y"))
    assert (found.code.id, found.help) == (
        "E0305",
        "it is an operand: write it before the keywords, without its name",
    )
    (found,) = diagnostics(program + in_model("y = f(x, bye=2)", "return y"))
    assert (found.code.id, found.help) == ("E0305", 'did you mean "by"?')


# --- mistakes together

BROKEN = ["y = (1 +", "y = ) 2", "y = 1 1", "y == 3", 'y = "a', "y = 0b1"]
NO_RETURN = "def f(x) {\n    z = x\n}\n"


@each_row("statement", BROKEN)
@each_row("first", [True, False])
def test_a_missing_return_is_reported_beside_another_mistake(statement: str, first: bool) -> None:
    other = in_model(statement, "return x")
    program = NO_RETURN + other if first else other + NO_RETURN
    line = 3 if first else other.count("\n") + 3
    found = errors(program)
    assert ("E0111", line, 1) in [(code, at, column) for code, at, column in found]
    assert len(found) == 2


@pytest.mark.parametrize("count", [2, 3])
def test_every_missing_return_is_reported(count: int) -> None:
    program = "".join(NO_RETURN.replace("f(", f"f{i}(") for i in range(count)) + in_model("y = x")
    assert [line for _, line, _ in errors(program)] == [3 * i + 3 for i in range(count + 1)]


# --- the limit on tokens

PROGRAMS = {
    "plain": "model m(x: f32[3]) -> (y) {\n    return x\n}\n",
    "no last newline": "model m(x: f32[3]) -> (y) {\n    return x\n}",
    "comments": "# hi there\nmodel m(x: f32[3]) -> (y) {  # c\n    y = exp(x)   # d e f\n    return y\n}\n# end\n",
    "blanks": "model m(x: f32[3]) -> (y) {   \n\t\n    return x \t \r\n}  \n\n\n",
    "lines in brackets": "const w: f32[2] = [\n 1,\n 2,\n]\nmodel m(x: f32[2]) -> (y) {\n return x\n |> exp()\n}\n",
    "names": "model m(`a b`: f32[3]) -> (y) {\n    return `a b` ** -2 as f16\n}\n",
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_limit_on_tokens_is_exact(name: str) -> None:
    """Names, numbers and signs count: the limit that is their number reads the program, one less does not."""
    program = PROGRAMS[name]
    count = sum(token.type != "NL" for token in lex(source(program)).tokens)
    for limit in range(1, count + 4):
        limits = Limits.of({"tokens": limit})
        if limit >= count:
            text.load(source(program), limits=limits)
            continue
        with pytest.raises(DmlcError) as caught:
            text.load(source(program), limits=limits)
        (found,) = caught.value.diagnostics
        assert found.code.id == "E0116"
        assert re.search(rf" has {count} tokens, the limit is {limit}$", found.message)
        assert f"limits={{'tokens': {count}}}" in found.help


# --- numbers


@each_row("length", [399, 400, 401, 402])
def test_a_number_has_up_to_400_signs(length: int) -> None:
    literal = "0." + "0" * (length - 3) + "1"
    assert len(literal) == length
    assert codes(in_model(f"y = x + {literal}", "return y")) == ([] if length <= 400 else ["E0311"])


@pytest.mark.parametrize("sign", ["+", "-"])
def test_an_intermediate_result_has_up_to_128_bits(sign: str) -> None:
    def folded(number: int) -> list[str]:
        lead = "" if sign == "+" else "-"
        return codes(in_model(f"y = n + ({lead}{number} + 0) * 0", "return y"))

    assert folded(2**127) == folded(2**128 - 1) == []
    assert folded(2**128) == ["E0311"]


@each_row("form", ["1.0 // nan", "nan // 2.0", "inf // inf", "0.0 // 0.0", "nan // nan"])
def test_a_quotient_that_is_not_a_number(form: str) -> None:
    (value,) = run(in_model(f"y = x * 0 + ({form})", "return y", inputs="x: f32[1]"), x=np.ones(1, np.float32))
    assert np.isnan(value)


# --- calls around a mistake


@each_row("depth", [1, 7, 8, 9, 12])
def test_up_to_eight_calls_around_a_mistake_are_shown(depth: int) -> None:
    """The innermost ones, and always the outermost."""
    defs = [f"def f{i}(x) {{\n    return f{i + 1}(x)\n}}\n" for i in range(depth - 1)]
    defs.append(f"def f{depth - 1}(x) {{\n    return reduce_sum(x, axes=[9])\n}}\n")
    (found,) = diagnostics("".join(defs) + in_model("y = f0(x)", "return y"))
    assert found.code.id == "E0301"
    lines = [label.span.line for label in found.labels if label.text == "in this call"]
    inner = [3 * i + 2 for i in reversed(range(depth - 1))]
    outermost = 3 * depth + 2
    assert lines == ([*inner, outermost] if depth <= 8 else [*inner[:7], outermost])


# --- places and names


def test_the_place_of_an_operand_is_the_whole_run_before_it() -> None:
    """In ``a + b + c`` the left operand of the second sign is ``a + b``."""
    (found,) = diagnostics(in_model("z = x * 2", "y = x + z + n", "return y"))
    assert (found.code.id, found.message) == ("E0310", "dtypes differ: x + z is f32, n is i32")
    (found,) = diagnostics(in_model("y = 1 / M + x", "return y", inputs="x: i32[N, M]"))
    assert found.code.id == "E0311"
    assert found.span is not None
    assert (found.span.column, found.span.end_column) == (9, 14)


@each_row("name", ["none", "true", "_", "inf", "f32", "argmax"])
def test_a_result_with_a_quoted_name_may_be_called_anything(name: str) -> None:
    graph = graph_of(in_model("return x", results=f"`{name}`"))
    assert [output for output, _ in graph.outputs] == [name]


@pytest.mark.parametrize("size", [4095, 4096, 4097])
def test_a_list_of_an_attribute_has_up_to_4096_numbers(size: int) -> None:
    ones = f"[{', '.join(['0'] * size)}]"
    (found,) = diagnostics(f"const k: i64[{size}] = {ones}\n" + in_model("y = transpose(x, perm=k)", "return y"))
    assert (found.code.id == "E0331") is (size > 4096), found.message


@each_row(("low", "high", "fits"), [
    (0, 0, True), (0, 2**63 - 1, True), (2**63 - 1, 2**63 - 1, True), (3, 3, True), (0, 2**63, False), (4, 3, False),
    (-1, 3, False),
])  # fmt: skip
def test_bounds_of_a_dim(low: int, high: int, fits: bool) -> None:
    program = f"dim N in {low}..{high}\n" + in_model("return x", inputs="x: f32[N]")
    assert codes(program) == ([] if fits else ["E0333"])


def test_an_operation_that_is_new_takes_no_name_from_older_programs() -> None:
    """A def or a parameter may have the name of a newer operation: it is in ``HIDEABLE``."""
    assert len(set(OPERATIONS) - HIDEABLE) == 63, "add the new operation to HIDEABLE in dmlc/text/elaborate/scope.py"
