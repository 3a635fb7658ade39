"""Fixes as data: the pages of the codes, misspelt names, what other languages write, and how edits are made."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from onnx import defs

import dmlc
import dmlc.diagnostics.catalogue
from dmlc import text
from dmlc.diagnostics import CODES, Code, Diagnostic, DmlcError, Source, did_you_mean, render, suggestion, to_json
from dmlc.diagnostics.fix import Edit, Proposal, edited, sentences, text_of
from dmlc.ops import OPERATIONS
from tests.rows import each_row

PROGRAMS = [code for code in CODES.values() if code.program]
#: The codes whose page shows a program with a fix. The others leave a choice: another name, number or shape.
WITH_FIX = {
    *("E0101", "E0102", "E0104", "E0106", "E0107", "E0108", "E0110", "E0111"),
    *("E0201", "E0202", "E0203", "E0207", "E0211", "E0212"),
    *("E0301", "E0302", "E0303", "E0304", "E0305", "E0307", "E0308", "E0309", "E0310", "E0312", "E0314", "E0316"),
    *("E0318", "E0320", "E0330", "E0333", "E0341", "E0342", "E0343", "E0504"),
}
INPUTS = "x: f32[4, 3], m: bool[4, 3], n: i32[4, 3]"


def program(*statements: str, inputs: str = INPUTS, results: str = "y") -> str:
    body = "".join(f"    {line}\n" for line in statements)
    return f"model m({inputs}) -> ({results}) {{\n{body}}}\n"


def diagnostics(text_of_program: str) -> list[Diagnostic]:
    try:
        return list(text.load(Source("t.dml", text_of_program)).advice)
    except DmlcError as error:
        return list(error.diagnostics)


def fixed(text_of_program: str, *, unsafe: bool = False) -> str:
    return dmlc.fix(dmlc.Source(text_of_program, "t.dml"), unsafe=unsafe).text


# --- pages


@each_row("code", [code for code in PROGRAMS if code.id in WITH_FIX], ids=str)
def test_the_program_of_a_page_with_its_fixes_is_the_mended_one(code: Code) -> None:
    found = dmlc.fix(dmlc.Source(code.example), unsafe=True)
    assert found.text == code.fixed
    assert code.id in {made.code for made in found.made}


def test_the_codes_with_a_fix_are_these() -> None:
    found = {code.id for code in PROGRAMS if dmlc.fix(dmlc.Source(code.example), unsafe=True).made}
    assert found == WITH_FIX


@each_row("code", PROGRAMS, ids=str)
def test_safe_fixes_of_a_page_are_among_those_of_the_mended_program(code: Code) -> None:
    """Safe fixes alone leave the program, or make it the mended one."""
    assert fixed(code.example) in (code.example, code.fixed)


@each_row("code", PROGRAMS, ids=str)
def test_the_mended_program_of_a_page_has_nothing_to_fix(code: Code) -> None:
    assert fixed(code.fixed) == code.fixed


# --- names


@each_row(("name", "known", "safe"), [
    ("logit", ["logits"], True),
    ("logit", ["logits", "logits_2"], True),
    ("logit", ["logits", "logic"], False),
    ("frist", ["first", "last"], True),
    ("SoftMax", ["softmax", "log_softmax"], True),
    ("weight_1", ["weight_2"], False),
    ("x", ["xs"], False),
    ("weig", ["weights"], False),
    ("cross_entrpoy", ["cross_entropy", "binary_cross_entropy"], True),
    ("mask", ["mast", "task"], False),
    ("reduce_sun", ["reduce_sum", "reduce_min"], True),
])  # fmt: skip
def test_a_slip_of_one_name_alone_is_safe(name: str, known: list[str], safe: bool) -> None:
    found = suggestion(name, known)
    assert isinstance(found, Proposal)
    assert found.safe is safe


@pytest.mark.parametrize("kind", ["missing", "doubled", "swapped", "wrong"])
def test_a_safe_fix_of_a_misspelt_operation_gives_that_operation(kind: str) -> None:
    known, safe = list(OPERATIONS), 0
    for name in known:
        for i in range(len(name) - 1):
            slips = {
                "missing": name[:i] + name[i + 1 :],
                "doubled": name[:i] + name[i] + name[i:],
                "swapped": name[:i] + name[i + 1] + name[i] + name[i + 2 :],
                "wrong": name[:i] + "q" + name[i + 1 :],
            }
            found = suggestion(slips[kind], known) if slips[kind] not in known else ""
            if isinstance(found, Proposal) and found.safe:
                assert found.changes[0].text == name
                safe += 1
    assert safe > 100


def test_a_suggested_name_is_written_in_quotes_where_it_needs_them() -> None:
    source = program("y = softmax(`in putt`)", "return y", inputs="`in put`: f32[4]")
    assert "softmax(`in put`)" in fixed(source)


def test_names_of_a_used_file_are_fixed_and_the_file_itself_is_not(tmp_path: Path) -> None:
    (tmp_path / "blocks.dml").write_text("def scaled(x) {\n    return softmx(x)\n}\n")
    main = f'use scald from "blocks.dml"\n\n{program("y = scald(x)", "return y")}'
    (tmp_path / "main.dml").write_text(main)
    found = dmlc.fix(dmlc.Source(main, tmp_path / "main.dml"))
    assert found.text == main.replace("scald", "scaled")
    assert (tmp_path / "blocks.dml").read_text() == "def scaled(x) {\n    return softmx(x)\n}\n"
    assert [d.fix is not None for d in found.diagnostics] == [True]
    assert found.diagnostics[0].source_name.endswith("blocks.dml")


# --- what other languages write

#: A statement and the one that safe fixes make of it.
SAFE = [
    ("y = x.sum(axis=1)", "y = reduce_sum(x, axes=[1], keepdims=false)"),
    ("y = x.sum(axis=(0, -1))", "y = reduce_sum(x, axes=[0, -1], keepdims=false)"),
    ("y = x.mean(axis=1, keepdims=True)", "y = reduce_mean(x, axes=[1])"),
    ("y = x.sum(axis=None)", "y = reduce_sum(x, keepdims=false)"),
    ("y = np.argmax(x, axis=-1)", "y = argmax(x, axes=[-1], keepdims=false)"),
    ("y = torch.softmax(x, dim=1)", "y = softmax(x, axes=[1])"),
    ("y = x.clip(0, 1)", "y = clip(x, min=0, max=1)"),
    ("y = x.astype(f16) ** 2", "y = (x as f16) ** 2"),
    ("y = x.T", "y = transpose(x)"),
    ("y = (x + 1).T", "y = transpose(x + 1)"),
    ("y = (x + 1).shape[1] * x", "y = size(x + 1, axis=1) * x"),
    ("y = exp(x).abs() * x", "y = abs(exp(x)) * x"),
    ("y = x * np.inf", "y = x * inf"),
    ("y = x.shape[1] * x", "y = size(x, axis=1) * x"),
    ("y = concat([x, x], axis=0)", "y = concat(x, x, axis=0)"),
    ("y = concatenate([x, x], axis=0)", "y = concat(x, x, axis=0)"),
    ("y = softmax(x, dim=-1)", "y = softmax(x, axes=-1)"),
    ("y = reduce_sum(x, dim=(0, 1))", "y = reduce_sum(x, axes=[0, 1])"),
    ("y = reshape(x, [3, 4])", "y = reshape(x, shape=[3, 4])"),
    ("y = m and not n == n or m", "y = m & !(n == n) | m"),
    ("y = not m", "y = !m"),
    ("y = m && m || m", "y = m & m | m"),
    ("y = x is not x", "y = x != x"),
    ("y = ~m", "y = !m"),
    ("y = x if m else x * 2", "y = where(m, x, x * 2)"),
    ("y = exp(x if m else (x if m else 2 * x))", "y = exp(where(m, x, (where(m, x, 2 * x))))"),
    ("y = reduce_sum(x, axes=(0, 1))", "y = reduce_sum(x, axes=[0, 1])"),
    ("y = reduce_sum(x, axes: [1])", "y = reduce_sum(x, axes=[1])"),
    ("y = reduce_sum(x, dim=1)", "y = reduce_sum(x, axes=1)"),
    ("y = reduce_sum(x, axis=[1], keepdim=false)", "y = reduce_sum(x, axes=[1], keepdims=false)"),
    ("y = reduce_sum(x, axes=1.0, keepdims=False)", "y = reduce_sum(x, axes=1, keepdims=false)"),
    ("y = reduce_sum(x, keepdims=0)", "y = reduce_sum(x, keepdims=false)"),
    ("y = top_k(x, k=2, dim=1)[0]", "y = top_k(x, k=2, axis=1)[0]"),
    ("y = sort(x, axes=[-1])", "y = sort(x, axis=-1)"),
    ("y = where(True, x, x)", "y = where(true, x, x)"),
    ("y = onnx.Clip(x, None)", "y = onnx.Clip(x, none)"),
    ("y = onnx.relu(x)", "y = onnx.Relu(x)"),
    ("y = onnx.Scatter(x, n, x)", "y = onnx.ScatterElements(x, n, x)"),
    ("y = onnx.Gelu(x, approximate='tanh')", 'y = onnx.Gelu(x, approximate="tanh")'),
    ("y = onnx.Gelu(x, approximate=\u201ctanh\u201d)", 'y = onnx.Gelu(x, approximate="tanh")'),
    ("y = x as float16", "y = x as f16"),
    ("y = 2 * n as i64 as f32 ** -2", "y = 2 * (n as i64 as f32) ** -2"),
    ("y = x @ w", "y = matmul(x, w)"),
    ("y = exp(x) @ (w + 1)", "y = matmul(exp(x), (w + 1))"),
    ("y = exp(r @ w) * 2", "y = exp(matmul(r, w)) * 2"),
    ("y = n >= 1 ? x : -x  # b ? c : d", "y = where(n >= 1, x, -x)  # b ? c : d"),
    ("y = exp(m == m ? x[0:4, :] : x)", "y = exp(where(m == m, x[0:4, :], x))"),
    ("y = x |> softmax", "y = x |> softmax()"),
    ("y = x |> (softmax())", "y = x |> softmax()"),
    ("y = 0 < x <= 3", "y = (0 < x) & (x <= 3)"),
    ("y = x * 1__0 + 0b11", "y = x * 1_0 + 3"),
    ("y = x \u2212\u00a01", "y = x - 1"),
    ("let y = x;", "y = x"),
    ("y := x", "y = x"),
    ("y = x; z = y", "y = x\n    z = y"),
]
#: A statement, and the one that fixes make of it which are not safe: they choose.
UNSAFE = [
    ("y = x.max(1)", "y = reduce_max(x, axes=[1], keepdims=false)"),
    ("y = max(x, axes=[1])", "y = reduce_max(x, axes=[1])"),
    ("y = x + n * 2", "y = x + ((n * 2) as f32)"),
    ("y = softmax(n)", "y = softmax(n as f32)"),
    ("y = softmax(n * 2)", "y = softmax((n * 2) as f32)"),
    ("y = softmax(-n)", "y = softmax(-n as f32)"),
    ("y = n |> softmax()", "y = n as f32 |> softmax()"),
    ("y = x * (m - m)", "y = x * ((m as f32) - (m as f32))"),
    ("y = argmax(x, ties=decreasing) as f32", "y = argmax(x, ties=last) as f32"),
    ("y = top_k(x, k=1, axis_direction=smallest)[0]", "y = top_k(x, k=1, axis_direction=increasing)[0]"),
    ("y = x & x", "y = (x as bool) & (x as bool)"),
    ("y = x & m", "y = (x as bool) & m"),
    ("y = m | 1", "y = m | true"),
    ("y = n ** -1", "y = (n as f32) ** -1"),
    ("y = where(m, -1, 0)", "y = where(m, -1 as f32, 0)"),
    ("y = softmax(x, axes=[7])", "y = softmax(x, axes=[1])"),
    ("y = reduce_sum(x, axes=[0, 1, 1])", "y = reduce_sum(x, axes=[0, 1])"),
    ("y = reduce_sum(x, axes=[])", "y = reduce_sum(x)"),
    ("y = x[5]", "y = x[3]"),
    ("y = 007 * x", "y = 7 * x"),
    ("y = where(x = 0, x, x)", "y = where(x == 0, x, x)"),
    ("y = reduce_sum(axes=[0], keepdims=false, x * 2)", "y = reduce_sum(x * 2, axes=[0], keepdims=false)"),
    ("y = exp(x x)", "y = exp(x, x)"),
]
MORE = f"{INPUTS}, w: f32[3, 2], r: f32[4, 3]"


@each_row(("wrong", "right"), SAFE, ids=[wrong for wrong, _ in SAFE])
def test_a_habit_of_another_language_is_fixed(wrong: str, right: str) -> None:
    assert fixed(program(wrong, "return y", inputs=MORE)) == program(right, "return y", inputs=MORE)


@each_row(("wrong", "right"), UNSAFE, ids=[wrong for wrong, _ in UNSAFE])
def test_a_fix_that_chooses_is_not_safe(wrong: str, right: str) -> None:
    source = program(wrong, "return y")
    assert fixed(source) == source
    (first, *_) = [d for d in diagnostics(source) if d.fix is not None]
    assert first.fix is not None
    assert edited(first.labels[0].span.source, first.fix.edits) == program(right, "return y")


def test_a_value_that_is_changed_gets_a_name_of_its_own_for_all_later_reads() -> None:
    scaled = "def scaled(x, *, y) {\n    return x * y\n}\n\n"
    source = scaled + program("y = x", "y += x - 1", "z = scaled(y, y=2) if m else y.exp()", "y *= 2", "return y")
    assert fixed(source).splitlines()[6:] == [
        "    y_2 = y + (x - 1)",
        "    z = where(m, scaled(y_2, y=2), exp(y_2))",
        "    y_3 = y_2 * 2",
        "    return y_3",
        "}",
    ]


def test_a_product_that_is_returned_is_fixed() -> None:
    source = "model m(r: f32[4, 3], w: f32[3, 2]) -> (y) {\n    return r @ w\n}\n"
    assert fixed(source) == source.replace("r @ w", "matmul(r, w)")


def test_one_size_of_a_dim_is_its_upper_bound() -> None:
    source = "dim N = 64\nmodel m(x: f32[N]) -> (y) {\n    return x\n}\n"
    assert fixed(source, unsafe=True) == source.replace("= 64", "in 1..64")


def test_the_results_of_the_head_are_returned_where_nothing_is() -> None:
    source = "model m(x: f32[4]) -> (y, z) {\n  z = x\n  y = x + 1\n}\n"
    assert fixed(source) == source.replace("+ 1\n", "+ 1\n  return y, z\n")
    unknown = "model m(x: f32[4]) -> (y, z) {\n  y = x + 1\n}\n"
    assert fixed(unknown) == unknown


@each_row("statement", ["y = (x, x)", "a, b = (x, x)", "y = x.sum(axis=1, dtype=f16)", "y = [x]"])
def test_nothing_is_fixed_safely_where_something_would_be_lost(statement: str) -> None:
    source = program(statement, "return y")
    assert fixed(source) == source


@each_row("expression", [
    "sort(x, ascending=true)", "cumsum(x, axis=0, inclusive=true)", "argmax(x, axes=[0], ties=least)",
    "gelu(x, approximate=tan)", "rsqrt(x)", "sqr(x)", "onnx.Rsqrt(x)", "erfc(x)", "sinh(x)", "acos(x)", "tan(x)",
    "prelu(x)", "hstack(x, x)", "reduce_std(x)", "reduce_var(x)", "matmul(w_q, w_k)", "left_on + 1", "m and m | m",
    "m | m and m", "m ^ m and m", "m && m | m", "m is m & m", "x.where(m, x)", "np.transpose(x, 0, 1)",
    "torch.cat([x, x], 1)", "torch.stack([x, x], 1)", "x.sum(1, True)", "x.gather(1, n)", "x.max(1)",
])  # fmt: skip
def test_what_has_two_readings_is_not_fixed_safely(expression: str) -> None:
    inputs = f"{INPUTS}, w_q: f32[3, 3], left_in: f32[4]"
    source = program(f"y = {expression}", "return y", inputs=inputs)
    assert fixed(source) == source


def test_operations_of_other_libraries_are_no_misspelt_ones() -> None:
    """But for names of the same letters."""
    foreign = {name for module in (np, np.linalg, np.ma, np.ndarray, math) for name in dir(module)}
    foreign |= {schema.name for schema in defs.get_all_schemas()}
    known = list(OPERATIONS)
    for name in foreign - {*known}:
        found = suggestion(name, known)
        if isinstance(found, Proposal) and found.safe:
            assert found.changes[0].text.replace("_", "") == name.replace("_", "").casefold()


@each_row(("wrong", "right"), [
    ("m and m or m", "m & m | m"), ("m || m", "m | m"), ("m & m and m", "m & m & m"), ("m or m | m", "m | m | m"),
    ("m or m and m", "m | m & m"),
])  # fmt: skip
def test_words_that_bind_alike_are_fixed(wrong: str, right: str) -> None:
    assert fixed(program(f"y = {wrong}", "return y")) == program(f"y = {right}", "return y")


@each_row(("wrong", "right"), [
    ("top_k(x, 2)", "top_k(x, k=2)"), ("one_hot(n, 4)", "one_hot(n, depth=4)"), ("softmax(x, 1)", "axes=[1]"),
    ("full([3], 1)", "full(shape=[3], value=1)"),
])  # fmt: skip
def test_a_number_by_position_is_the_attribute_that_is_needed(wrong: str, right: str) -> None:
    found = diagnostics(program(f"y = {wrong}", "return y"))[0]
    assert right in found.help


def test_a_size_that_a_def_gets_is_no_number_to_replace() -> None:
    best = "def best(v, *, k) {\n    t, _ = top_k(v, k=k)\n    return t\n}\n\n"
    (found, *_) = diagnostics(best + program("y = best(x, k=9)", "return y"))
    assert found.code.id == "E0316"
    assert found.fix is None


# --- messages and edits


@each_row("wrong", [code.example for code in PROGRAMS] + [program(w, "return y") for w, _ in SAFE + UNSAFE])
def test_the_help_says_what_the_fix_writes(wrong: str) -> None:
    """A help that names a spelling in quotes or after `write` has it in its edits, unless it is a pattern of a, b."""
    for found in diagnostics(wrong):
        if found.fix is None:
            continue
        assert found.help
        assert found.fix.title
        if found.help.startswith("did you mean"):
            assert found.fix.edits[0].text.strip('"`').split("(")[0] in found.help
        if len(found.fix.edits) == 1 and found.help.startswith("write ") and " a " not in f" {found.help}(":
            new = found.fix.edits[0].text
            assert new.split("(")[0].split(" ")[0] in found.help


def test_a_help_has_no_question_mark_before_a_semicolon() -> None:
    for wrong in (*[code.example for code in PROGRAMS], program("y = softmax(x, axs=[1])", "return y")):
        for found in diagnostics(wrong):
            assert "?;" not in render(found) + str(DmlcError(found))
    assert sentences("did you mean x?", "", "it takes y", "see z") == "did you mean x? it takes y; see z"


def test_a_fix_is_plain_data_in_json() -> None:
    (found,) = diagnostics(program("y = softmx(x)", "return y"))
    edit = {"file": "t.dml", "line": 2, "column": 9, "end_line": 2, "end_column": 15, "text": "softmax"}
    assert to_json(found)["fix"] == {"title": "replace `softmx` with `softmax`", "safe": True, "edits": [edit]}
    (found,) = diagnostics(program("y = x / 0 as i32", "return y", inputs="x: i32[4]"))[:1]
    assert to_json(found)["fix"] is None
    assert pickle.loads(pickle.dumps(DmlcError(found))).diagnostics[0].fix == found.fix


def test_a_mistake_in_python_has_no_fix() -> None:
    g = dmlc.Graph("g")
    x = g.input("x", "f32", (4, 3))
    with pytest.raises(DmlcError) as refused:
        dmlc.argmax(x, axes=4)
    assert refused.value.diagnostics[0].fix is None
    with pytest.raises(DmlcError):
        dmlc.fix("model.dml")  # type: ignore[arg-type]


# --- making edits


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_rest_of_the_text_stays_as_it_is(end: str) -> None:
    wrong = program("y = softmx(x)  # \U0001f600 is \u00e9", "", "  z=x; w = x", "return y").replace("\n", end)
    right = wrong.replace("softmx", "softmax").replace("z=x; w", f"z=x{end}      w")
    assert fixed(wrong) == right


def test_columns_count_characters() -> None:
    wrong = program("y = softmax(`\U0001f600`) + softmx(`\U0001f600`)", "return y", inputs="`\U0001f600`: f32[4]")
    assert fixed(wrong) == wrong.replace("softmx", "softmax")
    (found,) = diagnostics(wrong)
    assert found.fix is not None
    assert text_of(found.fix.edits[0].span) == "softmx"


def test_edits_are_made_in_any_order_and_insertions_too() -> None:
    source = Source("t.dml", "abc\ndef")

    def edit(line: int, column: int, end_line: int, end_column: int, new: str) -> Edit:
        return Edit(dmlc.diagnostics.Span(source, line, column, end_line, end_column), new)

    edits = [edit(2, 2, 2, 2, "_"), edit(1, 1, 1, 2, "A"), edit(1, 3, 2, 1, ""), edit(2, 4, 2, 4, "!")]
    assert edited(source, edits) == edited(source, edits[::-1]) == "Abd_ef!"


def test_many_mistakes_are_fixed_in_many_rounds() -> None:
    """A report shows 20 mistakes at most."""
    statements = [f"v{i} = softmx(x)" for i in range(150)]
    wrong = program(*statements, "return v0")
    found = dmlc.fix(dmlc.Source(wrong))
    assert found.text == wrong.replace("softmx", "softmax")
    assert len(found.made) == 150


def test_fixing_ends_and_its_result_has_nothing_left_to_fix() -> None:
    for wrong, _ in SAFE + UNSAFE:
        once = fixed(program(wrong, "return y", inputs=MORE), unsafe=True)
        assert fixed(once, unsafe=True) == once


def test_names_are_suggested_in_another_case() -> None:
    assert did_you_mean("SOFTMAX", ["softmax"]) == 'did you mean "softmax"?'
