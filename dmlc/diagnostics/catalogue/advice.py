"""W06: what works, and could work better."""

from dmlc.diagnostics.code import declare

ON_CPU = declare(
    "W0601",
    "a node lands on the CPU",
    """The DirectML execution provider has no kernel for the node: not for the operator, not at this opset, or not for
    these types. ONNX Runtime computes it on the CPU and copies its operands and results. `--strict` makes this an
    error.""",
    example="""
$ dmlc compile erf64.dml     # y = x + 1, x of f64
warning[W0601]: Add lands on the CPU: Add does not take f64
""",
    fixed="""
$ dmlc compile erf32.dml     # with x of f32
""",
    program=False,
)

UNKNOWN_NODE = declare(
    "W0602",
    "where a node runs is not known",
    """The tables do not say whether the provider takes the operator, or the types of the node are not known. Nothing is
    guessed.""",
    example="""
$ dmlc check custom.onnx
warning[W0602]: where acme.Warp runs is not known: no table covers the domain acme
""",
    fixed="""
$ dmlc check custom.onnx     # with the operator written out as ONNX nodes
""",
    program=False,
)
