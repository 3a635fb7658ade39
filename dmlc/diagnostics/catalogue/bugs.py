"""I09: bugs of ours."""

from dmlc.diagnostics.code import declare

INTERNAL = declare(
    "I0901",
    "a bug in dmlc",
    """Something that should never happen did. Your program may be right; please report it with the
    program and the lines that `-v` prints.""",
    example="$ dmlc compile model.dml\nerror[I0901]: ...",
    fixed="$ dmlc compile model.dml -v   # prints the Python traceback to put into a report",
    program=False,
)
