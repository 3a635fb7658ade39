"""E03: types, shapes and attributes."""

from dmlc.diagnostics.code import declare

AXIS_OUT_OF_RANGE = declare(
    "E0301",
    "an axis does not exist",
    """Axes count from 0, or from -1 backwards. The operand has fewer axes than the number asks for.""",
    example="""
model m(image: f16[4, 3, 8, 8]) -> (peak) {
    peak = argmax(image, axes=[1, 2, 4])
    return peak
}
""",
    slip=("peak = argmax(image, axes=[1, 2, 4])", "peak = argmax(image, axes=[1, 2, 3])"),
)

DUPLICATE_AXIS = declare(
    "E0302",
    "an axis is named twice",
    """A list of axes is a set; naming an axis twice (also once as a negative number) is a slip.""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y = reduce_sum(x, axes=[1, -1])
    return y
}
""",
    slip=("1, -1", "1"),
)

EMPTY_AXES = declare(
    "E0303",
    "an empty list of axes",
    """ONNX reads an empty list as "all axes" in one place and as "none" in another. So the language has no empty
    list: leave the attribute out for its default.""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y = reduce_sum(x, axes=[])
    return y
}
""",
    slip=("x, axes=[]", "x"),
)

WRONG_ATTRIBUTE = declare(
    "E0304",
    "an attribute has a wrong value",
    """The attribute takes another kind of value: a word it knows, an integer, a dtype of its list.""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y = argmax(x, axes=[1], ties=frist)
    return y
}
""",
    slip=("ties=frist", "ties=first"),
)

UNKNOWN_ATTRIBUTE = declare(
    "E0305",
    "an operation has no such attribute",
    """The keyword is not one of the operation's attributes; `dmlc ops NAME` lists them.""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y = argmax(x, axis=[1], ties=first)
    return y
}
""",
    slip=("axis=", "axes="),
)

MISSING_ATTRIBUTE = declare(
    "E0306",
    "a required attribute is missing",
    """The attribute has no default because none would be safe to guess.""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y, _ = top_k(x)
    return y
}
""",
    slip=("y, _ = top_k(x)", "y, _ = top_k(x, k=2)"),
)

BOTH_SYNONYMS = declare(
    "E0307",
    "an attribute is given under two names",
    """`axis_direction` and `ties` (or `order`) say the same thing. Giving both is an error even if they agree: one of
    them would be edited later and the other forgotten.""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y = argmax(x, ties=first, axis_direction=increasing)
    return y
}
""",
    slip=("y = argmax(x, ties=first, axis_direction=increasing)", "y = argmax(x, ties=first)"),
)

OPERAND_COUNT = declare(
    "E0308",
    "wrong number of operands",
    """The operation takes another number of operands. Attributes are keywords and never positional.""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y = argmax(x, 1)
    return y
}
""",
    slip=("y = argmax(x, 1)", "y = argmax(x, axes=[1])"),
)

OPERAND_DTYPE = declare(
    "E0309",
    "an operand has a dtype that the operation does not take",
    """Each operation names the dtypes it is defined for; `dmlc ops NAME` prints them.""",
    example="""
model m(x: i32[4, 3]) -> (y) {
    y = softmax(x)
    return y
}
""",
    slip=("y = softmax(x)", "y = softmax(x as f32)"),
)

MIXED_DTYPES = declare(
    "E0310",
    "operands of different dtypes",
    """Tensors of different dtypes do not mix without a cast: a silent promotion would decide about
    precision in your place.""",
    example="""
model m(x: f32[4, 3], n: i32[4, 3]) -> (y) {
    y = x + n
    return y
}
""",
    slip=("y = x + n", "y = x + (n as f32)"),
)

LITERAL_DOES_NOT_FIT = declare(
    "E0311",
    "a number does not fit the dtype",
    """A literal takes the dtype of the other operand and must be one of its values. An integer is in range and has no
    fraction. A float does not overflow. Sizes are computed in i64, so each number in one must fit that.""",
    example="""
model m(x: u8[4]) -> (y) {
    y = x + 256
    return y
}
""",
    slip=("y = x + 256", "y = x + 255"),
)

INTEGER_QUOTIENT = declare(
    "E0343",
    "a real quotient of integers",
    """`/` is real division, whose result integer tensors cannot hold. `//` is the integer quotient, rounded down; cast
    with `as f32` for the real one. ONNX's quotient of integers, truncated toward zero, is `onnx.Div(a, b)`.""",
    example="""
model m(count: i32[4]) -> (y) {
    y = count / 2
    return y
}
""",
    slip=("count / 2", "(count as f32) / 2"),
)

NO_DTYPE = declare(
    "E0312",
    "a number needs a dtype here",
    """A tensor is needed and no other operand gives the number its dtype; `as` gives it one.""",
    example="""
model m(x: f32[4]) -> (y) {
    y = where(x > 0, 1, 0)
    return y
}
""",
    slip=("y = where(x > 0, 1, 0)", "y = where(x > 0, 1 as f32, 0)"),
)

DOES_NOT_BROADCAST = declare(
    "E0313",
    "shapes do not broadcast",
    """Broadcasting follows NumPy: sizes are compared from the last axis; they must be equal or one of
    them 1. A symbolic size broadcasts against another only where it is proved equal or 1.""",
    example="""
model m(a: f32[4, 3], b: f32[4]) -> (y) {
    y = a + b
    return y
}
""",
    slip=("y = a + b", "y = a + unsqueeze(b, axes=1)"),
)

RANK_ZERO = declare(
    "E0314",
    "argmax or top_k of a scalar",
    """argmax, argmin, top_k and hardmax choose among elements along axes; a scalar has no axes.""",
    example="""
model m(x: f32[]) -> (y) {
    y = argmax(x)
    return y
}
""",
    slip=("y = argmax(x)", "y = argmax(reshape(x, shape=[1]))"),
)

EMPTY_SELECTION = declare(
    "E0315",
    "argmax, top_k or an integer mean over nothing",
    """There is nothing to choose, and no mean to truncate. The axes hold no element: a size is 0, or may be by
    its `dim` line.""",
    example="""
dim n in 0..8

model m(x: f32[n, 3]) -> (y) {
    y = argmax(x, axes=0)
    return y
}
""",
    slip=("0..8", "1..8"),
)

K_OUT_OF_RANGE = declare(
    "E0316",
    "k is out of range",
    """top_k takes 1 <= k <= the length of the axis.""",
    example="""
model m(x: f32[4, 3]) -> (v, i) {
    v, i = top_k(x, k=4)
    return v, i
}
""",
    slip=("v, i = top_k(x, k=4)", "v, i = top_k(x, k=3)"),
)

WRONG_SHAPE = declare(
    "E0317",
    "shapes do not fit the operation",
    """The sizes of the operands, or of an operand and an attribute, do not go together.""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y = reshape(x, shape=[5, 2])
    return y
}
""",
    slip=("y = reshape(x, shape=[5, 2])", "y = reshape(x, shape=[6, 2])"),
)

RESULT_TYPE = declare(
    "E0318",
    "a result does not have the type that was written",
    """A written result type is checked against the inferred one: dtype, rank and every size.""",
    example="""
model m(x: f32[4, 3]) -> (y: f32[4]) {
    y = reduce_sum(x, axes=1)
    return y
}
""",
    slip=("y = reduce_sum(x, axes=1)", "y = reduce_sum(x, axes=1, keepdims=false)"),
)

DIVISION_BY_ZERO = declare(
    "E0319",
    "division by a constant zero",
    """Integer division and remainder by zero are unspecified at run time; with a constant it can only
    be a slip.""",
    example="""
model m(x: i32[4]) -> (y) {
    y = x // 0
    return y
}
""",
    slip=("y = x // 0", "y = x // 2"),
)

NEGATIVE_POWER = declare(
    "E0320",
    "an integer to a negative constant power",
    """An integer to a negative power is a fraction, which an integer tensor cannot hold; cast the base to a
    float first.""",
    example="""
model m(x: i32[4]) -> (y) {
    y = x ** -1
    return y
}
""",
    slip=("y = x ** -1", "y = (x as f32) ** -1"),
)

DIM_AS_TENSOR = declare(
    "E0330",
    "a dim where a tensor is needed",
    """A dim, or a number made of dims, takes the dtype of the tensor that it is combined with. Here nothing gives
    a dtype: write it with as.""",
    example="""
model m(x: f32[N, 3]) -> (y) {
    y = x / sqrt(N)
    return y
}
""",
    slip=("y = x / sqrt(N)", "y = x / sqrt(N as f32)"),
)

NOT_KNOWN = declare(
    "E0331",
    "a value that is not known while compiling",
    """Attributes, bounds and consts are known before the program runs: numbers, lists, words, dtypes, dims, consts and
    what plain operators make of them. A tensor that is computed is not.""",
    example="""
model m(x: f32[4, 3], n: i64[]) -> (y) {
    y, _ = top_k(x, k=n)
    return y
}
""",
    fixed="""
model m(x: f32[4, 3]) -> (y) {
    y, _ = top_k(x, k=2)
    return y
}
""",
)

WRONG_SIZE = declare(
    "E0332",
    "not a size",
    """Sizes are integers, dims, and + - * // of them. An integer is 0 or more. A tensor has at most 64 axes and 2^63
    - 1 elements, results too. The sizes of a const are integers.""",
    example="""
model m(x: f32[N, 2.5]) -> (y) {
    y = x + 1
    return y
}
""",
    slip=("model m(x: f32[N, 2.5]) -> (y) {", "model m(x: f32[N, 2]) -> (y) {"),
)

WRONG_BOUNDS = declare(
    "E0333",
    "the bounds of a dim hold no size",
    """Bounds are integers from 0 on, both inclusive, the lower one first.""",
    example="""
dim n in 64..1

model m(x: f32[n]) -> (y) {
    y = x + 1
    return y
}
""",
    slip=("64..1", "1..64"),
)

CONST_SHAPE = declare(
    "E0334",
    "a const's numbers do not have its shape",
    """The lists of a const nest as deep as its type has axes, and each has as many elements as its axis. Nothing is
    broadcast; `full` makes a tensor of equal elements.""",
    example="""
const w: f32[2, 2] = [[1, 2], [3]]

model m(x: f32[2]) -> (y) {
    y = matmul(w, x)
    return y
}
""",
    slip=("const w: f32[2, 2] = [[1, 2], [3]]", "const w: f32[2, 2] = [[1, 2], [3, 4]]"),
)

NOT_A_TENSOR = declare(
    "E0335",
    "a list, a word or none where a tensor is needed",
    """Operands are tensors or numbers. A list of numbers becomes a tensor as a const.""",
    example="""
model m(x: f32[3]) -> (y) {
    y = x + [1, 2, 3]
    return y
}
""",
    fixed="""
const steps: f32[3] = [1, 2, 3]

model m(x: f32[3]) -> (y) {
    y = x + steps
    return y
}
""",
)

SHAPE_DOES_NOT_FIT = declare(
    "E0337",
    "a given shape does not fit the input",
    """`--shape x=1,3,48,192` fixes the sizes of an input, or its rank where that is open; `_` leaves a size open. A
    size that the input fixes stays. A dim has one size wherever it is used: one given by `--bind`, by another input
    or by another axis is the same.""",
    example="""
$ dmlc compile head.dml --shape image=1,4,48,48
error[E0337]: image=1,4,48,48 gives axis 1 the size 4, and image has 3 there
""",
    fixed="$ dmlc compile head.dml --shape image=1,3,48,48",
    program=False,
)

WRONG_INDEX = declare(
    "E0340",
    "not an index",
    """An index is NumPy's basic indexing: integers and dims, slices, and at most one ... for the axes between. Rows by
    number are taken by gather, a new axis is made by unsqueeze, and elements are chosen by where.""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y = x[none, 0]
    return y
}
""",
    slip=("y = x[none, 0]", "y = unsqueeze(x[0], axes=[0])"),
)

INDEX_OUT_OF_RANGE = declare(
    "E0341",
    "an index does not exist",
    """Indices count from 0, or from -1 backwards. The axis, or the list, has fewer elements than the index asks for. A
    slice is clamped, an integer is not.""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y = x[:, 3]
    return y
}
""",
    slip=(":, 3", ":, 2"),
)

WRONG_RANGE = declare(
    "E0342",
    "a wrong range of an input",
    """A range promises that every element of an input is within two bounds, both inclusive. Bounds are numbers known
    while compiling, of the dtype of the input, and the lower one comes first. Only inputs of a model have ranges, and
    inputs of bool have none.""",
    example="""
model m(score: f32[N] in 1.0..0.0) -> (y) {
    y = sqrt(score)
    return y
}
""",
    slip=("1.0..0.0", "0.0..1.0"),
)
