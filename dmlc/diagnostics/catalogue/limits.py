"""Limits that a file or a program passes, in the families of what they guard; ``dmlc.diagnostics.limits`` has them."""

from dmlc.diagnostics.code import declare

TOKENS = declare(
    "E0116",
    "the program has too many tokens",
    """Names, numbers and signs are counted before anything is made of them, for each takes some hundred bytes. A
    program with millions of them holds data, which belongs into a .npy file, or was written by a machine: then raise
    the limit.""",
    example="""
$ dmlc check huge.dml
error[E0116]: huge.dml has 6,000,000 tokens, the limit is 2,000,000
""",
    fixed="$ dmlc check huge.dml --limit tokens=6000000",
    program=False,
)

STATEMENTS = declare(
    "E0117",
    "the defs unfold to too many statements",
    """A def is unfolded wherever it is called, so defs that call others twice double with each call. Thirty such defs
    make a thousand million statements.""",
    example="""
$ dmlc check doubling.dml
error[E0117]: the defs unfold to 65,535 statements, the limit is 50,000
""",
    fixed="$ dmlc check doubling.dml --limit statements=65535",
    program=False,
)

RANK = declare(
    "E0336",
    "a tensor has too many axes",
    """NumPy's arrays have up to 64 axes, DirectML's up to 8. Operations that add axes to what they have added
    could otherwise make shapes of any length: gather(x, x) doubles the axes.""",
    example=f"""
model m(x: f32[{"1, " * 64}1]) -> (y) {{
    y = exp(x)
    return y
}}
""",
    fixed="""
model m(x: f32[1]) -> (y) {
    y = exp(x)
    return y
}
""",
)

FILE_BYTES = declare(
    "E0440",
    "a file is too large to be read",
    """A file is read as a whole, so its size is looked at first. A model file holds less than 2 GiB, which is a limit
    of its format: larger weights are in another file, which has no limit.""",
    example="""
$ dmlc compile huge.onnx -o out.onnx
error[E0440]: huge.onnx has 4,294,967,296 bytes, the limit is 2,147,483,647
""",
    fixed="""
$ dmlc compile exported.onnx -o out.onnx    # written with external data: onnx.save(..., save_as_external_data=True)
""",
    program=False,
)

NODES = declare(
    "E0441",
    "a graph has too many nodes",
    """A million nodes take about a minute and some gigabytes. All graphs of a model count, also those inside of
    nodes. So do the bodies of its functions wherever they are called: functions that call others twice double with
    each call.""",
    example="""
$ dmlc compile unrolled.onnx -o out.onnx
error[E0441]: the model has 3,000,000 nodes, the limit is 2,000,000
""",
    fixed="$ dmlc compile unrolled.onnx -o out.onnx --limit nodes=3000000",
    program=False,
)

NAME_LENGTH = declare(
    "E0442",
    "a name is too long",
    """Names of values, nodes, dims and weights are kept in the output and shown in messages. One of thousands of
    characters comes from a program that went wrong, or wants to fill the memory of tools that copy it.""",
    example="""
$ dmlc compile odd.onnx -o out.onnx
error[E0442]: the name xxxxxxxxxxxxxxxxxxxx... has 1,000,000 characters, the limit is 10,000
""",
    fixed="$ dmlc compile odd.onnx -o out.onnx --limit name_length=1000000",
    program=False,
)

UNPACKED_BYTES = declare(
    "E0443",
    "an archive unpacks to too much",
    """A compressed array may take a thousand times the bytes of its file; what it will take is looked at before it is
    unpacked. Arrays that are not compressed have no limit.""",
    example="""
$ dmlc run head.dml --input x=data.npz
error[E0443]: data.npz unpacks to 4,294,967,296 bytes, the limit is 1,073,741,824
""",
    fixed="$ dmlc run head.dml --input x=data.npz --limit unpacked_bytes=4294967296",
    program=False,
)

FOLDED_ELEMENTS = declare(
    "W0606",
    "a constant is not computed while compiling: it is too large",
    """A node whose operands are constants is computed once, while compiling. It is not if one of them or a result has
    more elements than the limit: the output would grow by them. The node stays, and is computed whenever the model
    runs. `dmlc explain` shows it.""",
    example="""
$ dmlc explain model.onnx    # fold: W0606: f32[4096, 4096] has 16,777,216 elements, the limit is 1,048,576
""",
    fixed="$ dmlc explain model.onnx --limit folded_elements=16777216",
    program=False,
)

FOLDED_BYTES = declare(
    "W0607",
    "a constant is not computed while compiling: together they are too large",
    """The constants that are computed while compiling are kept in memory and written to the output. When they take as
    many bytes as the limit, the other nodes of constants stay. `dmlc explain` shows them.""",
    example="""
$ dmlc explain model.onnx    # fold: W0607: the constants would take 1,080,000,000 bytes, the limit is ...
""",
    fixed="$ dmlc explain model.onnx --limit folded_bytes=2000000000",
    program=False,
)
