"""Codes that only the Python builder can raise; their examples are Python."""

from dmlc.diagnostics.code import declare

OTHER_GRAPH = declare(
    "E0250",
    "a tensor of another graph",
    """A tensor belongs to the graph whose input it came from. Two graphs share no tensors; constants
    made with `dmlc.constant` may be used in any.""",
    example="""
a = dmlc.Graph("a")
b = dmlc.Graph("b")
x = a.input("x", dtype="f32", shape=(4,))
y = b.input("y", dtype="f32", shape=(4,))
b.output("z", x + y)
""",
    fixed="""
g = dmlc.Graph("g")
x = g.input("x", dtype="f32", shape=(4,))
y = g.input("y", dtype="f32", shape=(4,))
g.output("z", x + y)
""",
    program=False,
)

NAME_TAKEN = declare(
    "E0251",
    "a name is taken",
    """Inputs, outputs and dims are found by their names, so each name stands for one of its kind, and
    an output cannot be named like an input.""",
    example="""
x = g.input("x", dtype="f32", shape=(4,))
g.output("x", dmlc.exp(x))
""",
    fixed="""
x = g.input("x", dtype="f32", shape=(4,))
g.output("y", dmlc.exp(x))
""",
    program=False,
)

BAD_NAME = declare(
    "E0252",
    "a name is not a text",
    """Graphs, inputs, outputs and dims are named by texts that are not empty.""",
    example="""
x = g.input("", dtype="f32", shape=(4,))
""",
    fixed="""
x = g.input("x", dtype="f32", shape=(4,))
""",
    program=False,
)

BAD_BOUNDS = declare(
    "E0253",
    "the bounds of a dim hold no size",
    """Bounds are integers from 0 on, both inclusive, the lower one first.""",
    example="""
n = g.dim("N", min=64, max=1)
""",
    fixed="""
n = g.dim("N", min=1, max=64)
""",
    program=False,
)

NOT_A_TENSOR = declare(
    "E0350",
    "a tensor is wanted",
    """Operands and outputs are tensors, NumPy arrays (constants) or, beside a tensor, numbers. A list is
    wrapped in `dmlc.constant`, which shows its dtype.""",
    example="""
y = dmlc.where(x > 0, [1.0, 2.0], x)
""",
    fixed="""
y = dmlc.where(x > 0, dmlc.constant([1.0, 2.0], dtype="f32"), x)
""",
    program=False,
)

NO_TRUTH_VALUE = declare(
    "E0351",
    "a tensor has no value while the graph is built",
    """The builder records what to compute; numbers exist only when the program runs. So Python's `if`,
    `and`, `or`, `not`, `in` and NumPy's functions cannot look into a tensor.""",
    example="""
y = x if x > 0 else -x
""",
    fixed="""
y = dmlc.where(x > 0, x, -x)
""",
    program=False,
)

NO_SUCH_DTYPE = declare(
    "E0352",
    "the language has no such dtype",
    """Tensors have one of f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool, given as a NumPy dtype, its
    name, the short name, or as dmlc.f32 and so on.""",
    example="""
x = g.input("x", dtype="complex64", shape=(4,))
""",
    fixed="""
x = g.input("x", dtype="float32", shape=(4, 2))
""",
    program=False,
)

BAD_SHAPE = declare(
    "E0353",
    "a shape is not a list of sizes",
    """A size is an integer from 0 on, a text that names a dim, or an expression of dims.""",
    example="""
x = g.input("x", dtype="f32", shape=(-1, 4))
""",
    fixed="""
x = g.input("x", dtype="f32", shape=("N", 4))
""",
    program=False,
)

NO_OUTPUTS = declare(
    "E0254",
    "a graph without outputs",
    """A program that gives nothing back cannot be compiled; name its results.""",
    example="""
g = dmlc.Graph("g")
x = g.input("x", dtype="f32", shape=(4,))
y = dmlc.exp(x)
dmlc.compile(g)
""",
    fixed="""
g = dmlc.Graph("g")
x = g.input("x", dtype="f32", shape=(4,))
y = dmlc.exp(x)
g.output("y", y)
dmlc.compile(g)
""",
    program=False,
)

UNSOLVED_DIM = declare(
    "E0354",
    "no input tells the size of a dim",
    """The sizes of dims are read from the fed arrays, so each dim stands alone as a size of at least one input;
    expressions of dims are checked, not solved.""",
    example="""
n = g.dim("N")
x = g.input("x", dtype="f32", shape=(n * 8,))
""",
    fixed="""
n = g.dim("N")
x = g.input("x", dtype="f32", shape=(n, 8))
""",
    program=False,
)
