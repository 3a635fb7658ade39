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
    """The graph is broken, or the installed ONNX Runtime does not load a node. A node uses a value that nothing
    makes, lacks an attribute or has one of another type. Two values have one name, or nodes or functions depend on
    one another in a circle. Graphs nest deeper than files hold, or there are no outputs. ONNX Runtime refuses
    operands of the wrong number, type, rank or size, and attributes that the operator does not have. No runtime can
    load such a model; onnx.checker.check_model reports more.""",
    example="dmlc compile cut.onnx -o out.onnx    # a node reads the value h, which no node makes",
    fixed="dmlc compile whole.onnx -o out.onnx    # exported again, with the nodes that make h",
    program=False,
)
