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

BAD_NAME = declare(
    "E0251",
    "a name is not a text",
    """Graphs, inputs, outputs and dims are named by texts that are not empty.""",
    example="""
x = g.input("", dtype="f32", shape=(4,))
""",
    fixed='x = g.input("x", dtype="f32", shape=(4,))',
    program=False,
)

NO_TRUTH_VALUE = declare(
    "E0350",
    "a tensor has no value while the graph is built",
    """The builder records what to compute; numbers exist only when the program runs. So Python's `if`,
    `and`, `or`, `not`, `in` and NumPy's functions cannot look into a tensor.""",
    example="""
y = x if x > 0 else -x
""",
    fixed="y = dmlc.where(x > 0, x, -x)",
    program=False,
)

NO_OUTPUTS = declare(
    "E0252",
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
