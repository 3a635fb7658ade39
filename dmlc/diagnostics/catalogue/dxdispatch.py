"""E058: what DxDispatch's JSON cannot say."""

from dmlc.diagnostics.code import declare

NO_OPERATOR = declare(
    "E0580",
    "an operation is not an operator of DirectML",
    """A DxDispatch file holds DirectML operators and no others. Operators that are kept from ONNX (`onnx.Name(...)`,
    or nodes of a model without an operation of the language) are known by their ONNX schema only.
    """,
    example="""
$ dmlc compile gelu.dml -o gelu.dxdispatch.json     # y = onnx.Gelu(x)
error[E0580]: DxDispatch's JSON cannot say onnx.Gelu: the language has no operation for it
""",
    fixed="$ dmlc compile gelu.dml -o gelu.onnx     # or write it out: 0.5 * x * (1 + erf(x / 1.4142135))",
    program=False,
)

UNBOUND = declare(
    "E0581",
    "a size is not known",
    """DirectML operators are made for fixed sizes, so every dim is bound when a DxDispatch file is written. Sizes of an
    ONNX model that have no name are fixed by `--shape`, as the help says.""",
    example="""
$ dmlc compile head.dml -o head.dxdispatch.json
error[E0581]: DxDispatch's JSON holds fixed sizes, and batch is not bound
""",
    fixed="$ dmlc compile head.dml --bind batch=1 -o head.dxdispatch.json",
    program=False,
)

NO_RESULTS = declare(
    "E0584",
    "a file is not a DxDispatch file of dmlc",
    """`dmlc verify` reads the names of inputs and results from the JSON that `dmlc compile` wrote. This file is not
    JSON, or its resources and `writeFile` commands are not as `dmlc` writes them.""",
    example="""
$ dmlc verify head.dml other.dxdispatch.json
error[E0584]: other.dxdispatch.json has no writeFile commands
""",
    fixed="""
$ dmlc compile head.dml --bind batch=1 -o head.dxdispatch.json
$ dmlc verify head.dml head.dxdispatch.json     # after DxDispatch has run
""",
    program=False,
)

EMPTY = declare(
    "E0582",
    "a tensor is empty",
    """DirectML has no tensors without elements, so a DxDispatch file has none either.""",
    example="""
$ dmlc compile head.dml --bind N=0 -o head.dxdispatch.json
error[E0582]: DirectML has no empty tensors, and x is f32[0, 4]
""",
    fixed="$ dmlc compile head.dml --bind N=1 -o head.dxdispatch.json",
    program=False,
)

REFUSED = declare(
    "E0583",
    "DirectML's operator does not take a tensor",
    """DirectML's table of the operator has no such element type or rank at this feature level (the newest one, or
    what `--feature-level` says). No other operators give exactly the same. The message says what the table has.""",
    example="""
$ dmlc compile wide.dml -o wide.dxdispatch.json     # y = erf(x) of f64[4]
error[E0583]: InputTensor of ELEMENT_WISE_ERF takes f16 f32 at feature level 6.4, not f64
""",
    fixed="$ dmlc compile wide.dml -o wide.dxdispatch.json     # y = erf(x as f32) as f64",
    program=False,
)
