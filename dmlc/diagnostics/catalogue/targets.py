"""E05: what a target cannot do."""

from dmlc.diagnostics.code import declare

NEEDS_OPSET = declare(
    "E0501",
    "an operation needs a newer ONNX opset",
    """At the opset that was asked for, ONNX has neither the operator nor an equivalent. The message names the lowest
    opset that works. Without `--opset` the target's own is used, or the lowest one above that has every operator.""",
    example="""
$ dmlc compile gelu.dml --opset 17       # y = onnx.Gelu(x)
error[E0501]: ONNX has Gelu from opset 20 on, not at 17
""",
    fixed="$ dmlc compile gelu.dml --opset 20",
    program=False,
)

NO_EXACT_FORM = declare(
    "E0502",
    "an operation has no exact form for a dtype on the target",
    """The runtime has no kernel for the dtype, and no cast or rewriting around it keeps the numbers. A cast that
    loses precision is yours to write, so that a reader sees it. No kernel runs this node of an ONNX model, so ONNX's
    definition of its operator is used. The definition does not hold at the opset that --opset asks for.""",
    example="""
model m(x: f64[4]) -> (y) {
    y = erf(x)
    return y
}
""",
    slip=("y = erf(x)", "y = erf(x as f32) as f64"),
)

TOO_MANY_AXES = declare(
    "E0503",
    "a tensor has more axes than the target takes",
    """DirectML takes tensors of up to 8 axes. Its execution provider does not fall back to the CPU for larger ones:
    the session would not start. Reductions and reshapes are brought down by merging axes where that is possible.""",
    example="""
model m(x: f32[2, 2, 2, 2, 2, 2, 2, 2, 2]) -> (y) {
    y = transpose(x, perm=[8, 7, 6, 5, 4, 3, 2, 1, 0])
    return y
}
""",
    fixed="""
model m(x: f32[2, 2, 2, 2, 2, 2, 2, 2]) -> (y) {
    y = transpose(x, perm=[7, 6, 5, 4, 3, 2, 1, 0])
    return y
}
""",
)

UNKNOWN_ONNX_OPERATOR = declare(
    "E0504",
    "no such ONNX operator",
    """`onnx.Name(...)` takes the operators of the installed onnx package, spelled as ONNX spells them, and the few of
    `com.microsoft` whose result type is known.""",
    example="""
model m(x: f32[4]) -> (y) {
    y = onnx.Gleu(x)
    return y
}
""",
    slip=("onnx.Gleu", "onnx.Gelu"),
)

ONNX_REFUSES = declare(
    "E0505",
    "ONNX's own inference refuses a call",
    """An operator that is carried through is typed by the inference that ONNX declares for it, at the opset that is
    emitted. It found that the operands, or an operand and an attribute, do not go together.""",
    example="""
model m(x: f32[1, 3, 8, 8], w: f32[4, 3, 3]) -> (y) {
    y = onnx.Conv(x, w)
    return y
}
""",
    slip=("3, 3", "3, 3, 3"),
)

ONNX_RESULT_UNKNOWN = declare(
    "E0506",
    "the type of an ONNX operator's result is not known",
    """Every value has a dtype and a number of axes. Inference leaves this result open. Its rank depends on data or on
    sizes that are not bound, or it is not a tensor of one of the language's dtypes. A size that only the result shows
    is a new dim, which ``size(y, axis=0)`` gives.""",
    example="""
model m(x: f32[4, 3], shape: i64[N]) -> (y) {
    y = onnx.Reshape(x, shape)
    return y
}
""",
    slip=("model m(x: f32[4, 3], shape: i64[N]) -> (y) {", "model m(x: f32[4, 3], shape: i64[2]) -> (y) {"),
)

ONNX_NOT_EVALUABLE = declare(
    "E0507",
    "an ONNX operator cannot be evaluated in NumPy",
    """The reference backend evaluates carried operators with onnx's own reference evaluator, which does not have this
    one, or fails on it.""",
    example="""
$ dmlc run gelu.dml --random 0 --backend reference     # y = onnx.com.microsoft.FastGelu(x)
error[E0507]: com.microsoft.FastGelu has no reference
""",
    fixed="$ dmlc run gelu.dml --random 0 --backend cpu",
    program=False,
)

NO_DML_TEXT = declare(
    "E0508",
    "a model that no program can say",
    """A model becomes a program only if all its values have types of the language and every size follows from the
    sizes of the inputs. No node may hold a graph (If, Loop, Scan), and no input may have a default.""",
    example="""
$ dmlc compile detector.onnx --emit dml -o detector.dml
error[E0508]: node nms_loop (Loop) holds a graph
""",
    fixed="$ dmlc compile detector.onnx -o fused.onnx",
    program=False,
)

NO_NUMPY_CODE = declare(
    "E0570",
    "an operation has no NumPy code",
    """An operator kept from ONNX (`onnx.Name(...)`, or one of an imported model without an operation of the language)
    is known by its schema only. So the generated NumPy code cannot compute it. ONNX output can: it passes the
    operator on.""",
    example="""
$ dmlc compile model.dml -o model.py     # model.dml calls onnx.Gelu(x)
error[E0570]: there is no NumPy code for onnx.Gelu
""",
    fixed="$ dmlc compile model.dml -o model.onnx   # or write it out: 0.5 * x * (1 + erf(x / 1.4142135))",
    program=False,
)

NOT_DECOMPOSED = declare(
    "E0509",
    "a node of a named operator cannot be decomposed",
    """``dmlc decompose --ops`` writes every node of the named operators in primitive ones, or it writes nothing. The
    message names the nodes that cannot be, and why. The type of an operand may be unknown. An optional operand or
    result of attention may be used, or an Einsum repeats a letter in a term. Without ``--ops`` such nodes stay as
    they are.""",
    example="""
$ dmlc decompose model.onnx --ops Einsum
error[E0509]: a node cannot be decomposed: Einsum diagonal: its equation ii->i has ... a letter twice in a term
""",
    fixed="$ dmlc decompose model.onnx     # decomposes all that can be",
    program=False,
)

BAD_DATA = declare(
    "E0590",
    "a file of target data is broken",
    """Targets, kernels and DirectML's tables are data files of the package. One of them, or one that was added for a
    new target, is broken. The message names the file and what is wrong. ``pytest tests/targets`` in a checkout checks
    every row.""",
    example="""
$ dmlc targets
error[E0590]: target data mine.json: it is not a document of schema 1
""",
    fixed='$ dmlc targets     # with "schema": 1 in mine.json',
    program=False,
)

SESSION_FAILS = declare(
    "E0591",
    "a node makes session creation fail on the target",
    """The execution provider takes the node, and DirectML then refuses its types or its rank. The session is not
    created (80070057), and nothing falls back to the CPU. The message names the operator of DirectML, the limit and
    the row that says so. Or the execution provider leaves the node to the CPU provider, which has no kernel for it
    either: ONNX Runtime finds no implementation.""",
    example="""
$ dmlc check mean_of_integers.onnx
error[E0591]: ReduceMean node_0 fails: the provider takes integers here, and DirectML's REDUCE refuses them
""",
    fixed="$ dmlc compile mean_of_integers.onnx -o fixed.onnx",
    program=False,
)

WRONG_NUMBERS = declare(
    "E0592",
    "a node gives wrong numbers on the target",
    """The node runs on the execution provider and its result differs from what ONNX says. For example an empty
    operand leaves the result unwritten, and a cast from floats to bool truncates.""",
    example="""
$ dmlc check mask.onnx
error[E0592]: Cast to_mask is wrong: made as a cast to u8 and a clip to 0..1: 0.25 and -3 become false
""",
    fixed="$ dmlc compile mask.onnx -o fixed.onnx",
    program=False,
)
