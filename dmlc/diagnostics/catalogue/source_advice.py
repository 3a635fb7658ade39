"""W06: advice about the text of a program. It changes no exit code, with ``--strict`` too."""

from dmlc.diagnostics.code import declare

HIDDEN_DIM = declare(
    "W0620",
    "a value hides a dim of its name",
    """An input or a value of the model has the name of a dim. In an expression the name means the value; in types and
    in attributes it means the dim. This is advice: it never changes the exit code.""",
    example="""
$ dmlc compile grid.dml              # model grid(x: f32[W], W: f32[]) ...
advice[W0620]: W names a value and a dim: in expressions it is the value
""",
    fixed="""
$ dmlc compile grid.dml              # model grid(x: f32[W], width: f32[]) ...
""",
    program=False,
    advice=True,
)
