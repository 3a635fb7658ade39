"""E02: names."""

from dmlc.diagnostics.code import declare

KEYWORD_TWICE = declare(
    "E0201",
    "a keyword is given twice in one call",
    """One of the two would have no effect, or would be edited later and the other forgotten.""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y = argmax(x, axes=0, axes=1)
    return y
}
""",
    slip=("axes=0, axes=1", "axes=0"),
)

UNKNOWN_NAME = declare(
    "E0202",
    "a name that nothing has",
    """A value is named by an input, a const, a parameter of the def, or a line before this one. A def sees only its
    own names, consts and dims.""",
    example="""
model m(logits: f32[4, 3]) -> (y) {
    y = softmax(logit)
    return y
}
""",
    slip=("y = softmax(logit)", "y = softmax(logits)"),
)

UNKNOWN_OPERATION = declare(
    "E0203",
    "an operation that does not exist",
    """The called name is neither an operation (`dmlc ops` lists them) nor a def of this file. Any ONNX operator is
    called as onnx.Name(...).""",
    example="""
model m(x: f32[4, 3]) -> (y) {
    y = argmx(x, axes=[1])
    return y
}
""",
    slip=("argmx", "argmax"),
)

NAME_TWICE = declare(
    "E0204",
    "a name is given twice",
    """A name is assigned once, so that a line means the same wherever it is read. Consts, dims, defs and models have
    names of their own, each of them once in a file.""",
    example="""
model m(x: f32[4]) -> (y) {
    y = x + 1
    y = y * 2
    return y
}
""",
    fixed="""
model m(x: f32[4]) -> (y) {
    z = x + 1
    y = z * 2
    return y
}
""",
)

RESERVED_NAME = declare(
    "E0205",
    "a name that means something already",
    """A def and its parameters cannot have the name of an operation, a dtype or a word that attributes take, such as
    first. The call would have two meanings. true, false, inf, nan, none and _ name nothing unless they are quoted.""",
    example="""
def softmax(x) {
    return exp(x) / reduce_sum(exp(x))
}

model m(x: f32[4]) -> (y) {
    y = softmax(x)
    return y
}
""",
    fixed="""
def plain_softmax(x) {
    return exp(x) / reduce_sum(exp(x))
}

model m(x: f32[4]) -> (y) {
    y = plain_softmax(x)
    return y
}
""",
)

CYCLE = declare(
    "E0206",
    "defs call each other in a circle",
    """A def is unfolded where it is called, so a def that calls itself, directly or through
    others, would never end.""",
    example="""
def twice(x) {
    return once(x) + once(x)
}

def once(x) {
    return twice(x)
}

model m(x: f32[4]) -> (y) {
    y = twice(x)
    return y
}
""",
    slip=("return twice(x)", "return x * 0.5"),
)

RESULT_COUNT = declare(
    "E0207",
    "the number of names and results differs",
    """The left side has as many names as the call has results; `_` drops one. A model returns as many values as its
    head names. Where one value is needed, a call has one result.""",
    example="""
model m(x: f32[4]) -> (y) {
    y = top_k(x, k=2)
    return y
}
""",
    slip=("y = top_k(x, k=2)", "y, _ = top_k(x, k=2)"),
)

UNSOLVED_DIM = declare(
    "E0208",
    "a dim whose size no input gives",
    """The size of a dim is read off an input that has it alone as one of its sizes. A dim that occurs only within
    expressions, in results or in attributes has no value: sizes are checked, not solved for.""",
    example="""
model m(x: f32[N * 2]) -> (y) {
    y = x + 1
    return y
}
""",
    slip=("N * 2", "N"),
)

WHICH_MODEL = declare(
    "E0209",
    "no model, or none of that name, or no choice among several",
    """One model is compiled. Choose one of a file with several: `--model NAME`, or `model="NAME"` in
    Python. A file of defs and consts alone is a library: it is checked, and other programs use it, but it is not
    compiled.""",
    example="""
dim N in 1..64
""",
    fixed="""
dim N in 1..64

model m(x: f32[N]) -> (y) {
    y = x * 0.5
    return y
}
""",
)

NOT_IN_FILE = declare(
    "E0212",
    "a name that the used file does not have",
    """use brings defs and consts that another file declares itself. It does not bring dims and models, nor what that
    file uses from further files. From an ONNX model it brings one function, under any name.""",
    example="""
use cross_entrpy from std

model m(x: f32[4, 3], t: i64[4]) -> (y) {
    y = cross_entrpy(x, t)
    return y
}
""",
    fixed="""
use cross_entropy from std

model m(x: f32[4, 3], t: i64[4]) -> (y) {
    y = cross_entropy(x, t)
    return y
}
""",
)

USE_CIRCLE = declare(
    "E0213",
    "files that use each other in a circle",
    """A file is read with all that it uses, so it cannot use itself, not through others either. Put what both files
    need into a third one.""",
    example='# a.dml\nuse f from "b.dml"\n\n# b.dml\nuse g from "a.dml"\n'
    "error[E0213]: a.dml uses itself: a.dml -> b.dml -> a.dml",
    fixed='# a.dml\nuse f from "b.dml"\n\n# b.dml\nuse g from "c.dml"\n\n# c.dml holds g',
    program=False,
)

FOREIGN_DIM = declare(
    "E0214",
    "a def that needs a dim of its file",
    """Dims belong to the file that declares them and do not come along with a def that another file uses. A def that is
    to be used elsewhere takes such a size as a parameter.""",
    example="# blocks.dml\ndim N in 1..64\ndef f(x) {\n    return reshape(x, shape=[N])\n}\n\n"
    '# head.dml\nuse f from "blocks.dml"\n'
    "error[E0214]: N is a dim of blocks.dml, and dims do not come along with a def",
    fixed="# blocks.dml\ndef f(x, *, size) {\n    return reshape(x, shape=[size])\n}",
    program=False,
)

RESULT_LIKE_INPUT = declare(
    "E0210",
    "a result is named like an input",
    """Inputs and outputs of the ONNX model carry these names, and ONNX has one namespace for both.""",
    example="""
model m(x: f32[4]) -> (x) {
    return x + 1
}
""",
    slip=("model m(x: f32[4]) -> (x) {", "model m(x: f32[4]) -> (y) {"),
)

UNKNOWN_DTYPE = declare(
    "E0211",
    "a dtype that does not exist",
    """The dtypes are f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool.""",
    example="""
model m(x: float32[4]) -> (y) {
    y = x as half
    return y
}
""",
    fixed="""
model m(x: f32[4]) -> (y) {
    y = x as f16
    return y
}
""",
)
