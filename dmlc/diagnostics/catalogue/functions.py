"""E03 and E05: ONNX models that a program calls."""

from dmlc.diagnostics.code import declare

OPERAND_DOES_NOT_FIT = declare(
    "E0360",
    "an operand does not fit the input of a called model",
    """An ONNX model that is called takes what its inputs declare: the dtype, the number of axes and the fixed sizes.
    Axes that share a name have one size. Nothing is converted or broadcast. A size that is neither proved nor
    disproved is left to run time.""",
    example="""
use trunk from "backbone.onnx"

model head(image: f16[N, 3, 224, 224]) -> (y) {
    return trunk(image)
}

error[E0360]: image is f16[N, 3, 224, 224], and the input pixels of backbone.onnx is f32
""",
    fixed="""
use trunk from "backbone.onnx"

model head(image: f16[N, 3, 224, 224]) -> (y) {
    return trunk(image as f32)
}
""",
    program=False,
)

CANNOT_JOIN = declare(
    "E0510",
    "called models that cannot be in one model",
    """An ONNX model has one opset for each domain. Nodes of the called models are converted to one opset. If some
    have no equal at any opset of the others, they cannot be joined. So it is with two versions of another domain, and
    with two functions of one name that differ.""",
    example="""
$ dmlc compile head.dml
error[E0510]: node resize of opset 9 and node attend of opset 23 have no opset in common
""",
    fixed="$ python -m onnxscript.tools.convert old.onnx    # or export the older model anew",
    program=False,
)
