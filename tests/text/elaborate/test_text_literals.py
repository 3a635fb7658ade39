"""Numbers while compiling: the language's arithmetic, dims, and the dtype that a number takes."""

from __future__ import annotations

import math

from text_helpers import body_of, codes, diagnostics, errors, graph_of, in_model, types_of

from dmlc.ops.constant import constant_of
from tests.rows import each_row


def value_of(expression: str) -> object:
    """The value of a compile-time expression, read off a scalar constant."""
    value = graph_of(f"model m() -> (y) {{\n    return ({expression}) as f64\n}}\n").outputs[0][1]
    tensor = constant_of(value)
    assert tensor is not None
    return tensor.array.item()


@each_row(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7), ("-2 ** 2", -4), ("2 ** 10", 1024), ("2 ** 3 ** 2", 512), ("7 / 2", 3.5), ("-7 / 2", -3.5),
        ("7 / -2", -3.5), ("4 / 2", 2), ("-4 / 2", -2), ("1 / 2 * 2", 1.0), ("-(1 / 2)", -0.5), ("4 ** (1 / 2)", 2.0),
        ("7 // 2", 3), ("-7 // 2", -4), ("7 // -2", -4), ("7 % 3", 1), ("-7 % 3", 2), ("7 % -3", -2),
        ("7 / 2.0", 3.5), ("7.5 // 2", 3.0), ("-7.5 // 2", -4.0), ("-7.5 % 2", 0.5), ("2.0 ** -1", 0.5),
        ("2 ** 0.5", math.sqrt(2)), ("1 - 1", 0), ("0x10 + 1_0", 26), ("!5", -6), ("6 & 3", 2), ("6 | 3", 7),
        ("6 ^ 3", 5), ("- -3", 3), ("1.0 / 0.0", math.inf), ("-1.0 / 0.0", -math.inf), ("inf", math.inf),
        ("-inf", -math.inf), ("0 ** 0", 1), ("(-1) ** 1_000_001", -1), ("1 ** 99999999999", 1), ("inf - 1", math.inf),
        ("(2 + 3) * (4 - 1)", 15), ("10 - 2 - 3", 5), ("1e-6", 1e-6),
    ],
)  # fmt: skip
def test_arithmetic(expression: str, value: float) -> None:
    assert value_of(expression) == value


@each_row("expression", ["nan", "0.0 / 0.0", "(-8.0) ** 0.5", "1.0 % 0.0", "inf - inf", "inf % 2"])
def test_not_a_number(expression: str) -> None:
    found = value_of(expression)
    assert isinstance(found, float)
    assert math.isnan(found)


@each_row(
    ("expression", "value"),
    [
        ("1 < 2", True), ("1 >= 2", False), ("1 == 1.0", True), ("1 != 1", False), ("true & false", False),
        ("true | false", True), ("true ^ true", False), ("!true", False), ("true == true", True),
        ("(1 < 2) & (2 < 3)", True),
    ],
)  # fmt: skip
def test_truth_values(expression: str, value: bool) -> None:
    (line, _) = body_of(in_model(f"y = argmax(x, keepdims={expression})", "return y"))
    assert ("keepdims=false" in line) is (not value)


@each_row(
    ("expression", "code", "column"),
    [
        ("1 / 0", "E0319", 9), ("1 // 0", "E0319", 10), ("1 % 0", "E0319", 9), ("2 ** -1", "E0320", 10),
        ("9 ** 9 ** 9", "E0311", 5), ("2 ** 128", "E0311", 5), ("2 ** 2 ** 2 ** 2 ** 2 ** 2", "E0311", 10),
        ("1e999", "E0311", 5), ("1e308 * 10", "E0311", 5), ("10.0 ** 400", "E0311", 5), ("true + 1", "E0309", 5),
        ("1 + true", "E0309", 9), ("-true", "E0309", 6), ("!1.5", "E0309", 6), ("1.5 & 1", "E0309", 5),
        ("1 & true", "E0310", 9), ("true < false", "E0309", 5), ("9" * 40, "E0311", 5),
    ],
)  # fmt: skip
def test_wrong_arithmetic(expression: str, code: str, column: int) -> None:
    assert errors(in_model(f"y = x * ({expression})", "return y")) == [(code, 2, column + 9)]


@each_row(
    ("statement", "code", "help"),
    [
        ("y = k * (1 / 2)", "E0311", "k // 2"),
        ("y = (1 / 3) * k", "E0311", "k // 3"),
        ("y = k * (3 / 2)", "E0311", "k * 3 // 2"),
        ("y = (k + k) * (1 / 8)", "E0311", "write (k + k) // 8, which"),
        ("y = k + 1 / 2", "E0311", "(k as f32) + (1 / 2)"),
        ("y = 1 / 2 - k", "E0311", "(1 / 2) - (k as f32)"),
        ("y = k * 0.5", "E0311", "(k as f32) * 0.5"),
        ("y = (3 / 2) as i32", "E0311", "3 // 2"),
        ("y, _ = top_k(x, k=3 / 2)", "E0304", "3 // 2"),
        ("y, _ = top_k(x, k=2.5)", "E0304", "//"),
        ("y = softmax(x, axes=[1 / 2])", "E0304", "1 // 2"),
        ("y = softmax(x, axes=1 / 2)", "E0304", "1 // 2"),
        ("y = cumsum(x, axis=1 / 2)", "E0304", "1 // 2"),
        ("y = reshape(x, shape=[8 / 3, -1])", "E0304", "8 // 3"),
        ("y = transpose(x, perm=[1 / 2, 0])", "E0304", "1 // 2"),
        ("y = slice(x, starts=[0], ends=[3 / 2])", "E0304", "3 // 2"),
        ("y = iota(length=7 / 2, dtype=i32)", "E0304", "7 // 2"),
        ("y = sqrt(1 / 2)", "E0312", "1 / 2 as f32"),
    ],
)
def test_a_misplaced_quotient_says_what_to_write(statement: str, code: str, help: str) -> None:
    found = diagnostics(in_model(statement, "return y", inputs="x: f32[4, 3], k: i32[4, 3]"))
    assert [d.code.id for d in found] == [code]
    assert help in found[0].help


@each_row(("size", "elements"), [("8 / 2", 4), ("9 // 2", 4), ("8 / 2 * 3", 12)])
def test_quotients_of_numbers_that_divide_are_sizes(size: str, elements: int) -> None:
    assert types_of(in_model("return x", inputs=f"x: f32[{size}]")) == [f"f32[{elements}]"]


@each_row("size", ["7 / 2", "1 / 2 * 2", "0.5"])
def test_sizes_with_a_fraction_say_the_floor(size: str) -> None:
    (found,) = diagnostics(in_model("return x", inputs=f"x: f32[{size}]"))
    assert found.code.id == "E0332"
    assert "//" in found.help or "write 1" in found.help


def test_quotients_are_real_through_defs_and_names() -> None:
    program = "def root(x, *, n) {\n    p = 1 / n\n    return x ** p\n}\n" + in_model(
        "y = root(x, n=2)", "z = root(x, n=1)", "return y, z", results="y, z"
    )
    assert body_of(program) == ["y = x ** 0.5", "z = x ** 1.0", "return y, z"]


def test_large_integers_are_intermediate_results() -> None:
    assert value_of("2 ** 100 / 2 ** 98") == 4


def test_a_number_takes_the_dtype_of_the_other_operand() -> None:
    assert body_of(in_model("y = x * 2", "z = n * 2", "return y, z", results="y, z")) == [
        "y = x * 2.0",
        "z = n * 2",
        "return y, z",
    ]


@each_row(
    ("statement", "inputs", "expected"),
    [
        ("y = x + 256", "x: u8[4]", [("E0311", 2, 13)]),
        ("y = x + -1", "x: u8[4]", [("E0311", 2, 13)]),
        ("y = x + 255", "x: u8[4]", []),
        ("y = x + 0.5", "x: i32[4]", [("E0311", 2, 13)]),
        ("y = x + 2.0", "x: i32[4]", []),
        ("y = x + 1e39", "x: f32[4]", [("E0311", 2, 13)]),
        ("y = x + 65504", "x: f16[4]", []),
        ("y = x + 70000", "x: f16[4]", [("E0311", 2, 13)]),
        ("y = x + true", "x: f32[4]", [("E0311", 2, 13)]),
        ("y = x & true", "x: bool[4]", []),
        ("y = x + inf", "x: f16[4]", []),
        ("y = 0.5 * x", "x: i32[4]", [("E0311", 2, 9)]),
        ("y = x / 0", "x: i32[4]", [("E0319", 2, 13)]),
        ("y = x ** -1", "x: i32[4]", [("E0320", 2, 14)]),
    ],
)
def test_it_must_fit(statement: str, inputs: str, expected: list[tuple[str, int, int]]) -> None:
    assert errors(in_model(statement, "return y", inputs=inputs)) == expected


@each_row(
    ("expression", "type"),
    [
        ("1 as f32", "f32[]"), ("1.5 as f16", "f16[]"), ("-1 as i8", "i8[]"), ("true as f32", "f32[]"),
        ("1 as bool", "bool[]"), ("x as f16", "f16[4, 3]"), ("x as f16 as i32", "i32[4, 3]"), ("1 + 2 as f64", "f64[]"),
        ("where(x > 0, 1 as f32, 0)", "f32[4, 3]"), ("1 / 2 as f32", "f32[]"),
    ],
)  # fmt: skip
def test_casts(expression: str, type: str) -> None:
    assert types_of(in_model(f"y = {expression}", "return y")) == [type]


@each_row(
    ("expression", "expected"),
    [
        ("300 as u8", [("E0311", 2, 9)]),
        ("1.5 as i32", [("E0311", 2, 9)]),
        ("x as f8", [("E0211", 2, 14)]),
        ("x as first", [("E0211", 2, 14)]),
        ("x as `f16`", [("E0211", 2, 14)]),
        ("none as f32", [("E0335", 2, 9)]),
        ("[1] as f32", [("E0335", 2, 9)]),
        ("where(x > 0, 1, 0)", [("E0312", 2, 22)]),
        ("sqrt(2)", [("E0312", 2, 14)]),
        ("min(1, 2)", [("E0312", 2, 13)]),
        ("x + none", [("E0308", 2, 13)]),
        ("x + [1, 2, 3]", [("E0335", 2, 13)]),
        ('x + "a"', [("E0335", 2, 13)]),
    ],
)
def test_what_is_no_tensor(expression: str, expected: list[tuple[str, int, int]]) -> None:
    assert errors(in_model(f"y = {expression}", "return x")) == expected


def test_a_number_without_dtype_names_the_way_out() -> None:
    (found,) = diagnostics(in_model("y = where(x > 0, 1, 0)", "return y"))
    assert found.help == "write 1 as f32"
    assert codes(in_model("return 1.5")) == ["E0312"]


def test_a_name_may_stand_for_a_number_or_a_list() -> None:
    lines = body_of(in_model("k = 1 + 1", "ax = [0]", "y = reduce_sum(x, axes=ax) * k", "return y"))
    assert lines == ["t0 = reduce_sum(x, axes=[0])", "y = t0 * 2.0", "return y"]


@each_row(
    ("statement", "code", "help", "mended"),
    [
        ("x + 1.5 * argmax(x)", "E0311", "cast the tensor: 1.5 * (argmax(x) as f32)", "x + 1.5 * (argmax(x) as f32)"),
        ("k + 3_000_000_000", "E0311", "cast the tensor: (k as i64) + 3000000000", "(k as i64) + 3000000000"),
        ("1e39 - abs(x)", "E0311", "cast the tensor: 1e+39 - (abs(x) as f64)", "1e+39 - (abs(x) as f64)"),
        ("(x > 0) | 2", "E0311", "cast the tensor: ((x > 0) as i32) | 2", "((x > 0) as i32) | 2"),
        ("where(x > 0, nan, k)", "E0311", "cast the tensor: (k as f32)", "where(x > 0, nan, (k as f32))"),
        ("exp(x) + relu(k)", "E0310", "cast one of them, such as (relu(k) as f32)", "exp(x) + (relu(k) as f32)"),
        ("exp(x) + (k + k)", "E0310", "cast one of them, such as ((k + k) as f32)", "exp(x) + ((k + k) as f32)"),
        ("softmax(k + k)", "E0309", "cast it, such as ((k + k) as f32)", "softmax(((k + k) as f32))"),
        ("relu(k) ** -1", "E0320", "cast the base to a float first, such as (relu(k) as f32) ** -1",
         "(relu(k) as f32) ** -1"),
    ],
)  # fmt: skip
def test_a_cast_is_made_of_the_expression_that_was_written(statement: str, code: str, help: str, mended: str) -> None:
    """It parses where it is pasted: the program with it has no mistake."""
    (found,) = diagnostics(in_model(f"y = {statement}", "return y", inputs="x: f32[4, 3], k: i32[4, 3]"))
    assert (found.code.id, found.help) == (code, help)
    assert help.endswith(mended) or help[help.index("(") :] in mended
    assert errors(in_model(f"y = {mended}", "return y", inputs="x: f32[4, 3], k: i32[4, 3]")) == []
