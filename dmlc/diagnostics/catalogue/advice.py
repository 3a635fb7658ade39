"""W06: what works, and could work better.

Warnings are about the target and the numbers, and are errors with ``--strict``. A code declared with ``advice=True`` is
about the source and never changes the exit code.
"""

from dmlc.diagnostics.code import declare

ON_CPU = declare(
    "W0601",
    "a node runs on the CPU",
    """The DirectML execution provider has no kernel for the node: not for the operator, not at this opset, or not for
    these types. ONNX Runtime computes it on the CPU and copies its operands and results. `--strict` makes this an
    error.""",
    example="""
$ dmlc compile erf64.dml     # y = x + 1, x of f64
warning[W0601]: Add runs on the CPU: Add does not take f64
""",
    fixed="$ dmlc compile erf32.dml     # with x of f32",
    program=False,
)

UNKNOWN_NODE = declare(
    "W0602",
    "where a node runs is not known",
    """The tables do not say whether the provider takes the operator, or the types of the node are not known. Nothing is
    guessed. `--strict` makes this an error.""",
    example="""
$ dmlc check custom.onnx
warning[W0602]: it is not known where acme.Warp runs: no table covers the domain acme
""",
    fixed="$ dmlc check custom.onnx     # with the operator written out as ONNX nodes",
    program=False,
)

NOT_IN_F32 = declare(
    "W0603",
    "a number is not in f32",
    """With `--f64 f32` everything of f64 is computed in f32. A constant beyond 3.4e38 is infinite there, and one nearer
    to zero than 1.4e-45 is zero. `--strict` makes this an error.""",
    example="""
$ dmlc compile far.dml --f64 f32     # y = x * 1e300, x of f64
warning[W0603]: 1e+300 is inf in f32
""",
    fixed="$ dmlc compile far.dml               # in f64, on the CPU",
    program=False,
)

F16_OVERFLOW = declare(
    "W0604",
    "an f16 intermediate may overflow",
    """A square or a product before a sum or a mean is computed in f16, whose largest number is 65504. The square of
    anything over 255.9 is infinite, and so is the sum. A range that is known (of u8, a clip, a sigmoid) silences the
    warning where it shows that nothing overflows. `--strict` makes this an error.""",
    example="""
$ dmlc compile power.dml             # y = reduce_mean(x * x), x of f16
warning[W0604]: the square x * x may overflow f16 before its reduce_mean
""",
    fixed="$ dmlc compile power.dml --accumulate f32",
    program=False,
)

MAY_BE_EMPTY = declare(
    "W0605",
    "an operand may have no element",
    """A declared bound lets the size of an operand be 0, while the result holds elements. That concerns a reduction
    over the axis, a concat, a pad. DirectML has no empty tensors: its execution provider makes no operator and leaves
    the result unwritten. `--strict` makes this an error.""",
    example="""
$ dmlc compile total.dml             # dim N in 0..8
warning[W0605]: reduce_sum of f32[N, 4] leaves its result unwritten on DirectML where N is 0
""",
    fixed="$ dmlc compile total.dml --bind N=8  # or dim N in 1..8",
    program=False,
)

WRONG_DECLARATION = declare(
    "W0608",
    "a declared type is wrong",
    """An ONNX model declares types for the results of its nodes. The inputs of a node may give its result another
    element type, rank or fixed size than declared. Then the inferred type counts, as in ONNX Runtime, and the
    compiled model declares it. This is a hint about the source. It never changes the exit code.""",
    example="""
$ dmlc compile losses.onnx
hint[W0608]: a declared type is wrong: loss is declared f32[] and is f32[batch]
""",
    fixed="$ dmlc compile losses.onnx   # exported anew, or without that value_info",
    program=False,
    advice=True,
)

NOT_LOADED = declare(
    "W0609",
    "ONNX Runtime does not load the model at this opset",
    """The model dequantizes int8 data (with a zero point) before a reshape, a transpose, a slice or a maximum pool.
    From opset 21 on, ONNX Runtime 1.28 and later fail to load it. An optimization of theirs inserts a node that their
    own inference refuses. Below opset 21 the model loads, and such an opset is chosen where none is asked for. It
    also loads without optimizations. `--strict` makes this an error.""",
    example="""
$ dmlc compile quantized.onnx --opset 21     # DequantizeLinear of i8, then Transpose
warning[W0609]: ONNX Runtime 1.28 and later do not load DequantizeLinear dq of i8 before a transpose at opset 21
""",
    fixed="$ dmlc compile quantized.onnx",
    program=False,
)

OTHER_NUMBERS = declare(
    "W0610",
    "DirectML computes a node less exactly",
    """DirectML computes the node by another formula, with a larger epsilon or in a narrower type. Its numbers may
    differ by more than rounding from the numbers of other providers. The message names the difference. Nodes that are
    simply wrong there are error E0592. `--strict` makes this an error.""",
    example="""
$ dmlc check gpt.onnx        # with a FastGelu node of com.microsoft
warning[W0610]: FastGelu act may give other numbers: DirectML computes the erf form of GELU, not the tanh form
""",
    fixed="$ dmlc compile gpt.onnx",
    program=False,
)

WEAKNESS = declare(
    "W0611",
    "DirectML does badly at a node for some data or sizes",
    """DirectML computes the node as it is defined, but in a way that fails for some data or sizes. A normalization of
    f16 keeps its variance in f16, which ends at 65504. Some Einsums need memory for the product of all letters. Nodes
    with the same weakness share one message. A range that is known (of bytes, a clip, a sigmoid) silences it for
    normalizations. This is a hint: it never changes the exit code.""",
    example="""
$ dmlc compile norm.dml              # y = layer_norm(x, scale, bias), x of f16
hint[W0611]: LayerNormalization y may do badly: the variance is kept in f16, whose largest number is 65504
""",
    fixed="$ dmlc compile norm.dml --accumulate f32",
    program=False,
    advice=True,
)

HIDES_OPERATION = declare(
    "W0612",
    "a def or a parameter has the name of an operation",
    """The operation came into the language after programs were written that use its name. In this file the name means
    the def. Choose another name to call the operation too. This is a hint: it never changes the exit code.""",
    example="""
def silu(x) {
    return x * sigmoid(1.702 * x)
}

model m(x: f32[4]) -> (y) {
    y = silu(x)
    return y
}
""",
    fixed="""
def quick_gelu(x) {
    return x * sigmoid(1.702 * x)
}

model m(x: f32[4]) -> (y) {
    y = quick_gelu(x)
    return y
}
""",
    advice=True,
)

OPTIMIZER = declare(
    "W0613",
    "ONNX Runtime's optimizer changes the numbers",
    """ONNX Runtime replaces nodes by fewer ones while it loads a model. Some of its rewrites do not check all that they
    need: they take nodes that only look like a layer norm for one. The loaded model then gives other numbers, or does
    not load, although the file is right. `dmlc compile` writes such nodes in a form that no rewrite takes.
    `--strict` makes this an error.""",
    example="""
$ dmlc check quartic.onnx        # c / sqrt(mean(c ** 4) + 1e-5) * w + b
warning[W0613]: ONNX Runtime's LayerNormFusion makes LayerNormalization of Div y, but the power is not 2
""",
    fixed="$ dmlc compile quartic.onnx",
    program=False,
)

NO_CPU_KERNEL = declare(
    "W0614",
    "ONNX Runtime's CPU provider makes no kernel of a node",
    """ONNX Runtime loads the model, and its CPU provider then refuses the attributes of a node. Where the node runs on
    the CPU, no session is created: for the target `cpu` it is error E0554. DirectML's own kernels may take it.
    `--strict` makes this an error.""",
    example="""
$ dmlc check lrn.onnx        # LRN with size=2
warning[W0614]: ONNX Runtime's CPU provider makes no kernel of LRN norm: size_ % 2 == 1 was false
""",
    fixed="$ dmlc check lrn.onnx    # exported with an odd size",
    program=False,
)
