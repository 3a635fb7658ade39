"""E043: ONNX models that are read."""

from dmlc.diagnostics.code import declare

NOT_A_MODEL = declare(
    "E0430",
    "not an ONNX model",
    """The file does not hold a serialized ModelProto with a graph and the versions of the operators it uses. A file of
    PyTorch or TensorFlow, or ONNX's text or JSON form, must be converted first.""",
    example="dmlc compile model.pt.onnx -o out.onnx    # a file of PyTorch under another name",
    fixed="dmlc compile model.onnx -o out.onnx    # written by torch.onnx.export",
    program=False,
)

BROKEN_MODEL = declare(
    "E0431",
    "a model whose graph is broken",
    """A node uses a value that nothing makes, lacks an attribute or has one of another type, two values have one name,
    nodes or functions depend on one another in a circle, graphs nest deeper than files hold, or there are no outputs;
    or the installed ONNX Runtime does not load a node: operands of the wrong number, type, rank or size, an attribute
    that the operator does not have. No runtime can load such a model; onnx.checker.check_model reports more.""",
    example="dmlc compile cut.onnx -o out.onnx    # a node reads the value h, which no node makes",
    fixed="dmlc compile whole.onnx -o out.onnx    # exported again, with the nodes that make h",
    program=False,
)
