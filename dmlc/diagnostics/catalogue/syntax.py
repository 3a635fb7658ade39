"""E01: syntax."""

from dmlc.diagnostics.code import declare

UNEXPECTED = declare(
    "E0101",
    "the program does not follow the grammar",
    """Something else was expected at this place. The message lists what is allowed there.""",
    example="""
model m(x: f32[4]) -> y {
    y = x + 1
    return y
}
""",
    slip=("-> y", "-> (y)"),
)

STRAY_CHARACTER = declare(
    "E0102",
    "a character that belongs to nothing",
    """Outside of quotes and comments the language uses letters, digits and a few signs. A name with other
    characters is quoted with backticks.""",
    example="""
model m(x: f32[4]) -> (y) {
    y = ~(x > 0);
    return y
}
""",
    slip=("~(x > 0);", "!(x > 0)"),
)

UNCLOSED_QUOTE = declare(
    "E0103",
    "a quote that is not closed",
    """A string and a quoted name end on the line they begin on, and hold no control characters; a quoted name is
    not empty.""",
    example="""
model m(`in put: f32[4]) -> (y) {
    y = `in put` + 1
    return y
}
""",
    slip=("`in put:", "`in put`:"),
)

BRACKET = declare(
    "E0104",
    "brackets that do not match",
    """Each bracket is closed by its own kind, in the reverse order of opening. Inside ( ) and [ ] a newline does
    not end a statement, so a bracket that is never closed would take the rest of the file.""",
    example="""
model m(x: f32[4]) -> (y) {
    y = (x + 1] * 2
    return y
}
""",
    slip=("y = (x + 1] * 2", "y = (x + 1) * 2"),
)

_DEEP = "(" * 201 + "x" + ")" * 201
NESTING = declare(
    "E0105",
    "an expression nests too deep",
    """Brackets, signs, powers and calls of defs within defs nest at most 200 deep, and so do calls of functions in an
    ONNX model. A deeper expression was hardly written by hand; give parts of it names of their own, or read it with
    `--limit nesting=N`.""",
    example=f"""
model m(x: f32[4]) -> (y) {{
    y = {_DEEP}
    return y
}}
""",
    fixed="""
model m(x: f32[4]) -> (y) {
    y = x
    return y
}
""",
)

MALFORMED_NUMBER = declare(
    "E0106",
    "a malformed number",
    """Integers are decimal (12, 1_000) or hexadecimal (0x1f). Floats have digits on both sides of the point or begin
    with it (0.5, .5). They may have an exponent (1e-6). Underscores are between two digits.""",
    example="""
model m(x: f32[4]) -> (y) {
    y = x * 1__000
    return y
}
""",
    slip=("1__000", "1_000"),
)

CHAINED_COMPARISON = declare(
    "E0107",
    "comparisons do not chain",
    """Mathematics reads 0 < x < 1 as two comparisons, many languages as (0 < x) < 1. Write which one is meant.""",
    example="""
model m(x: f32[4]) -> (y) {
    y = 0 < x < 1
    return y
}
""",
    slip=("0 < x < 1", "(0 < x) & (x < 1)"),
)

PIPE = declare(
    "E0108",
    "the right side of |> is not one call",
    """x |> f(a) is f(x, a): the right side is exactly one call with its parentheses, without operators after it.
    The pipe is the weakest operator, so what follows the call would belong to it.""",
    example="""
model m(x: f32[4]) -> (y) {
    y = x |> softmax
    return y
}
""",
    slip=("softmax", "softmax()"),
)

OPEN_RANGE = declare(
    "E0109",
    "a dim line without one of its bounds",
    """Both bounds are written, and both are inclusive. A dim without bounds is 1 or more and needs no dim line.""",
    example="""
dim n in 8..

model m(x: f32[n]) -> (y) {
    y = x + 1
    return y
}
""",
    slip=("dim n in 8..", "dim n in 8..4096"),
)

VERSION = declare(
    "E0110",
    "a language version that is not known",
    """The optional first line of a file names the version of the language. So a later version can change without
    changing what old files mean. This compiler knows version 1.""",
    example="""
dml 2

model m(x: f32[4]) -> (y) {
    y = x + 1
    return y
}
""",
    slip=("dml 2", "dml 1"),
)

RETURN = declare(
    "E0111",
    "a block does not end in its one return",
    """A model and a def return once, as their last statement: there is no control flow that could return
    earlier.""",
    example="""
model m(x: f32[4]) -> (y) {
    y = x + 1
}
""",
    fixed="""
model m(x: f32[4]) -> (y) {
    y = x + 1
    return y
}
""",
)

NOT_TEXT = declare(
    "E0112",
    "the file is not UTF-8 text",
    """A program is UTF-8 text, with or without a byte order mark. This file is binary, or in another encoding.""",
    example="$ dmlc check model.onnx.dml\nerror[E0112]: model.onnx.dml is not a program but a binary file",
    fixed="$ iconv -f latin1 -t utf-8 old.dml > new.dml\n$ dmlc check new.dml",
    program=False,
)

EMPTY = declare(
    "E0113",
    "the program is empty",
    """The file holds nothing but blanks and comments.""",
    example="""
# nothing here yet
""",
    fixed="""
model m(x: f32[4]) -> (y) {
    return x
}
""",
)

TOO_LONG = declare(
    "E0114",
    "the program is too long",
    """A program has at most 16 MiB. A larger file holds data, which belongs into a .npy file, or is an accident. If it
    is right, `--limit text_bytes=N` reads it.""",
    example="$ dmlc check huge.dml\nerror[E0114]: huge.dml has 52,428,800 bytes, the limit is 16,777,216",
    fixed='const weights: f32[1000, 1000] = load("weights.npy")',
    program=False,
)

LAYOUT = declare(
    "E0118",
    "the layout is not the canonical one",
    """`dmlc fmt --check` writes nothing and reports every program that `dmlc fmt` would change.""",
    example="""
$ dmlc fmt --check head.dml
error[E0118]: head.dml: the layout would change
""",
    fixed="""
$ dmlc fmt head.dml
$ dmlc fmt --check head.dml
""",
    program=False,
)

ESCAPE = declare(
    "E0115",
    "an unknown escape in a string",
    r"""In a string a backslash begins an escape: \\, \", \n or \t. Paths are written with / on every system.""",
    example=r"""
model m(x: f32[4]) -> (y) {
    y = onnx.Gelu(x, approximate="t\anh")
    return y
}
""",
    slip=('approximate="t\\anh"', 'approximate="tanh"'),
)
