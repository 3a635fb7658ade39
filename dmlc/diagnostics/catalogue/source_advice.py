"""W06: advice about the text of a program. It changes no exit code, with ``--strict`` too."""

from dmlc.diagnostics.code import declare

HIDDEN_DIM = declare(
    "W0620",
    "a value hides a dim of its name",
    """An input or a value of the model has the name of a dim. In an expression the name means the value; in types and
    in attributes it means the dim. This is a hint: it never changes the exit code.""",
    example="""
$ dmlc compile grid.dml              # model grid(x: f32[W], W: f32[]) ...
hint[W0620]: W names a value and a dim: in expressions it is the value
""",
    fixed="$ dmlc compile grid.dml              # model grid(x: f32[W], width: f32[]) ...",
    program=False,
    advice=True,
)

UNUSED = declare(
    "W0621",
    "an input or a value is not used",
    """Nothing reads the input or the value, and it is not returned. An input that alone gives the size of a dim counts
    as used. This is a hint: it never changes the exit code.""",
    example="""
$ dmlc compile head.dml              # top_v, top_i = top_k(x, k=5), and only top_v is returned
hint[W0621]: top_i is not used
""",
    fixed="$ dmlc compile head.dml              # top_v, _ = top_k(x, k=5)",
    program=False,
    advice=True,
)
