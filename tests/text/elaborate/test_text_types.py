"""Dims, sizes and written types."""

from __future__ import annotations

from text_helpers import diagnostics, errors, graph_of, in_model, types_of

from dmlc.diagnostics import render
from tests.rows import each_row


@each_row(
    ("line", "expected"),
    [
        ("dim N in 1..64", []),
        ("dim N in 0..0", []),
        ("dim N in 2 * 4..2 ** 6", []),
        ("dim N in 1..0x40", []),
        ("dim N in 64..1", [("E0333", 1, 10)]),
        ("dim N in -1..4", [("E0333", 1, 10)]),
        ("dim N in 1..2.5", [("E0333", 1, 13)]),
        ("dim N in 1..inf", [("E0333", 1, 13)]),
        ("dim N in 1..true", [("E0333", 1, 13)]),
        ("dim N in 1..M", [("E0202", 1, 13)]),
        ("dim N in 1..[2]", [("E0333", 1, 13)]),
        ("dim N in 1..2 ** 64", [("E0333", 1, 13)]),
        ("dim N in 1..2 / 0", [("E0319", 1, 17)]),
    ],
)
def test_bounds(line: str, expected: list[tuple[str, int, int]]) -> None:
    assert errors(f"{line}\n" + in_model("return x", inputs="x: f32[N]")) == expected


def test_declared_bounds_reach_the_graph() -> None:
    graph = graph_of("dim N in 0..64\ndim unused in 1..2\n" + in_model("return x", inputs="x: f32[N, M]"))
    assert graph.dims.bounds == {"N": (0, 64)}


@each_row(
    ("sizes", "expected"),
    [
        ("", "f32[]"),
        ("3", "f32[3]"),
        ("0", "f32[0]"),
        ("N, 2 * N + 1", "f32[N, 2 * N + 1]"),
        ("N, N * N - 1", "f32[N, N * N - 1]"),
        ("N, N // 2", "f32[N, N // 2]"),
        ("N, N + N", "f32[N, 2 * N]"),
        ("2 * 3, 7 // 2", "f32[6, 3]"),
        ("`batch size`, 3", "f32[batch size, 3]"),
        ("N, (N + 1) * 2,", "f32[N, 2 * N + 2]"),
        ("first, max", "f32[first, max]"),
    ],
)
def test_sizes(sizes: str, expected: str) -> None:
    assert types_of(in_model("return x", inputs=f"x: f32[{sizes}]")) == [expected]


@each_row(
    ("sizes", "expected"),
    [
        ("-1", [("E0332", 1, 16)]),
        ("2.5", [("E0332", 1, 16)]),
        ("true", [("E0332", 1, 16)]),
        ("none", [("E0332", 1, 16)]),
        ("_", [("E0332", 1, 16)]),
        ("[3]", [("E0332", 1, 16)]),
        ('"N"', [("E0332", 1, 16)]),
        ("N, N / 2", [("E0332", 1, 19)]),
        ("N, N ** 2", [("E0332", 1, 19)]),
        ("N, N * 1.5", [("E0332", 1, 19)]),
        ("N, N // 0", [("E0319", 1, 24)]),
        ("exp(3)", [("E0331", 1, 16)]),
        ("3 as i64", [("E0331", 1, 16)]),
        ("2 ** 64", [("E0332", 1, 16)]),
        ("N * 2", [("E0208", 1, 16)]),
        ("N, M + N", [("E0208", 1, 19)]),
        (", ".join(["1"] * 65), [("E0336", 1, 12)]),
    ],
)
def test_wrong_sizes(sizes: str, expected: list[tuple[str, int, int]]) -> None:
    assert errors(in_model("return x", inputs=f"x: f32[{sizes}]")) == expected


@each_row("dtype", ["f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"])
def test_dtypes(dtype: str) -> None:
    assert types_of(in_model("return x", inputs=f"x: {dtype}[3]")) == [f"{dtype}[3]"]


@each_row(("dtype", "near"), [("float32", "f32"), ("int64", "i64"), ("half", "f16"), ("f33", "f32")])
def test_unknown_dtypes(dtype: str, near: str) -> None:
    (found,) = diagnostics(in_model("return x", inputs=f"x: {dtype}[3]"))
    assert found.code.id == "E0211"
    assert found.help == f'did you mean "{near}"?'


def test_a_dim_stands_alone_in_some_input() -> None:
    assert errors(in_model("return x", inputs="x: f32[N * 2], z: f32[N]")) == []
    assert errors(in_model("return x", inputs="x: f32[N * 2], z: f32[N * 2]")) == [("E0208", 1, 16)]
    assert errors(in_model("return x", results="y: f32[K, 3]")) == [("E0208", 1, 48)]
    program = "dim N in 1..4\n" + in_model("y = iota(length=N, dtype=i32)", "return y")
    assert errors(program) == [("E0208", 3, 21)]
    assert errors(in_model("y = iota(length=N, dtype=i32)", "return y")) == [("E0202", 2, 21)]


@each_row(
    ("result", "expected"),
    [
        ("y: f32[N, 3]", []),
        ("y", []),
        ("y: f16[N, 3]", [("E0318", 1, 30)]),
        ("y: f32[N]", [("E0318", 1, 30)]),
        ("y: f32[N, 3, 1]", [("E0318", 1, 30)]),
        ("y: f32[N, 4]", [("E0318", 1, 37)]),
        ("y: f32[4, 3]", [("E0318", 1, 34)]),
        ("y: f32[2 * N - N, 3]", []),
        ("y: f32[N + 1, 3]", [("E0318", 1, 34)]),
        ("y: f32[N * 2 // 2, 3]", []),
        ("y: f32[N // 2 * 2, 3]", []),
        ("y: f32[N // 2 + N + 1, 3]", [("E0318", 1, 34)]),
    ],
)
def test_written_result_types_are_checked(result: str, expected: list[tuple[str, int, int]]) -> None:
    assert errors(in_model("return x", inputs="x: f32[N, 3]", results=result)) == expected


def test_what_hangs_on_a_floor_division_is_a_condition() -> None:
    graph = graph_of(in_model("return x", inputs="x: f32[N, 3]", results="y: f32[N // 2 * 2, 3]"))
    assert [str(condition) for condition in graph.conditions] == ["N == 2 * (N // 2)"]
    plain = graph_of(in_model("return x", inputs="x: f32[N, 3]", results="y: f32[N, 3]"))
    assert not plain.conditions


def test_a_dim_of_one_size_is_that_size() -> None:
    assert errors("dim N in 4..4\n" + in_model("return x", inputs="x: f32[N]", results="y: f32[4]")) == []
    assert errors("dim N in 4..5\n" + in_model("return x", inputs="x: f32[N]", results="y: f32[4]")) == [
        ("E0318", 2, 31)
    ]


def test_the_message_of_a_wrong_result_type() -> None:
    program = in_model("z = reduce_sum(x, axes=1)", "return z", inputs="x: f32[N, 3]", results="y: f32[N]")
    (found,) = diagnostics(program)
    assert (
        render(found)
        == """error[E0318]: y is f32[N, 1], not f32[N]
 --> t.dml:1:30
  |
1 | model m(x: f32[N, 3]) -> (y: f32[N]) {
  |                              ^^^^^^ written here
3 |     return z
  |            - this is f32[N, 1]
  = help: write reduce_sum(x, axes=1, keepdims=false); see: dmlc explain E0318
"""
    )


@each_row(
    ("statement", "declared", "help"),
    [
        ("y = argmax(x, axes=[1])", "u8[N]", "write argmax(x, axes=[1], keepdims=false) as u8"),
        ("y = argmax(x, axes=[1])", "u8[N, 1]", "write argmax(x, axes=[1]) as u8"),
        ("y = x + x", "f16[N, 3]", "write (x + x) as f16"),
        ("y = argmax(x, axes=[1])", "u32[N, 3]", "write y: u32[N, 1]"),
        ("y = argmax(x, axes=[1])", "u32[3]", "write y: u32[N, 1]"),
    ],
)
def test_the_help_for_a_wrong_result_keeps_what_was_declared(statement: str, declared: str, help: str) -> None:
    """Axes of size 1 and a cast are all that may differ; else the help declares the result as it is."""
    program = in_model(statement, "return y", inputs="x: f32[N, 3]", results=f"y: {declared}")
    (found,) = diagnostics(program)
    assert found.help == help
    if declared[-2:] != "3]" or "as" in help:
        mended = program.replace(statement, f"y = {help.removeprefix('write ')}")
        assert types_of(mended) == [declared]


@each_row(
    ("call", "type"),
    [
        ("reshape(x, shape=[N * 3])", "f32[3 * N]"),
        ("reshape(x, shape=[3, N])", "f32[3, N]"),
        ("top_k(x, k=N // 2, axis=0) |> pick()", "f32[N // 2, 3]"),
        ("iota(length=2 * N + 1, dtype=i32)", "i32[2 * N + 1]"),
        ("full(shape=[N, N - N + 2], value=1.5, dtype=f16)", "f16[N, 2]"),
        ("one_hot(argmax(x, axes=1), depth=N)", "f32[N, 1, N]"),
        ("full(shape=[-N + 2 * N], value=true, dtype=bool)", "bool[N]"),
    ],
)
def test_dims_stand_in_attributes(call: str, type: str) -> None:
    program = "dim N in 2..64\n"
    if "pick" in call:
        program += in_model("y, _ = top_k(x, k=N // 2, axis=0)", "return y", inputs="x: f32[N, 3]")
    else:
        program += in_model(f"return {call}", inputs="x: f32[N, 3]")
    assert types_of(program) == [type]


@each_row(
    ("statement", "expected"),
    [
        ("y = exp(N)", [("E0330", 2, 13)]),
        ("y, _ = top_k(x, k=n)", [("E0331", 2, 23)]),
        ("y, _ = top_k(x, k=foo)", [("E0202", 2, 23)]),
        ("y, _ = top_k(x, k=N < 2)", [("E0332", 2, 23)]),
        ("y, _ = top_k(x, k=2.0)", [("E0304", 2, 23)]),
        ('y, _ = top_k(x, k="N")', [("E0304", 2, 23)]),
        ("y = reshape(x, shape=[N, q])", [("E0202", 2, 30)]),
        ("y = reshape(x, shape=[N, 2 ** 64])", [("E0311", 2, 30)]),
        ("y = reduce_sum(x, axes=[0, first])", [("E0202", 2, 32)]),
        ("y = reduce_sum(x, axes=N)", [("E0304", 2, 28)]),
        ("y = reduce_sum(x, axes=none)", [("E0304", 2, 28)]),
        ("y = argmax(x, ties=first + 1)", [("E0202", 2, 24)]),
        ("y = argmax(x, dtype=float32)", [("E0304", 2, 25)]),
        ("y = argmax(x, dtype=f32)", [("E0304", 2, 25)]),
        ('y = argmax(x, dtype="u64", ties="last")', []),
        ("y = argmax(x, ties=x)", [("E0304", 2, 24)]),
        ("y = clip(x, min=none, max=6)", []),
    ],
)
def test_dims_and_tensors_in_the_wrong_place(statement: str, expected: list[tuple[str, int, int]]) -> None:
    program = in_model(statement, "return n", inputs="x: f32[N, 3], n: i64[]")
    assert errors(program) == expected


def test_consts_stand_in_attributes() -> None:
    program = "const k: i64[] = 2\nconst ax: i64[2] = [0, 1]\nconst eps: f32[] = 0.5\n" + in_model(
        "a, _ = top_k(x, k=k + 1)", "b = reduce_sum(a, axes=ax)", "c = lp_norm(b, p=k)", "return c"
    )
    assert types_of(program) == ["f32[1, 1]"]


def test_a_dim_and_an_input_of_one_name() -> None:
    """In an attribute the name means the dim, in an expression the tensor; a parameter of a def hides both."""
    program = in_model("y = reshape(x, shape=[n, 1]) * n", "return y", inputs="x: f32[n], n: f32[]")
    assert types_of(program) == ["f32[n, 1]"]
    hidden = "def f(n) {\n    return reshape(n, shape=[n])\n}\n" + in_model("return f(x)", inputs="x: f32[n]")
    assert errors(hidden) == [("E0331", 2, 30)]


def test_a_const_that_only_attributes_use_makes_no_node() -> None:
    program = "const k: i64[] = 2\n" + in_model("y, _ = top_k(x, k=k)", "return y")
    assert [node.op.name for node in graph_of(program)] == ["top_k"]


def test_a_size_is_no_endless_expression() -> None:
    long = " * ".join(["(N + M)"] * 200)
    assert errors(in_model("return x", inputs=f"x: f32[N, M, {long}]"))[0][0] == "E0332"
    nested = "N" + " // M" * 500
    assert errors(in_model("return x", inputs=f"x: f32[N, M, {nested}]"))[0][0] == "E0332"
    many = " + ".join(f"n{i} * n{i + 1}" for i in range(300))
    assert errors(in_model("return x", inputs=f"x: f32[N, {many}]"))[0][0] == "E0332"
