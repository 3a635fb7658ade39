"""Errors of searches for the node that is wrong (E05)."""

from dmlc.diagnostics.code import declare

NOT_SHOWN = declare(
    "E0565",
    "the fault does not show",
    """`dmlc bisect` and `dmlc repro` look for the node that makes a model wrong. Here the whole model is right. The
    backend gives the expected results on every input that was tried, or the command of `--check` exits with 0. There
    is nothing to find. Give the data that shows the fault with `--input`. Or try other inputs with `--seed`, more of
    them with `--inputs`, or a tighter tolerance with `--rtol` and `--atol`.""",
    example="""
$ dmlc bisect model.onnx --backend cpu
error[E0565]: the fault does not show: same on 24 inputs
""",
    fixed="$ dmlc bisect model.onnx --backend cpu --input x=data.npz",
    program=False,
)

OPEN_RANGE = declare(
    "E0566",
    "several nodes are left",
    """All models that would separate these nodes were skipped: the command of `--check` exits with 125 for them, or
    one side cannot run them. The fault comes in with one of the nodes that are listed.""",
    example="""
$ dmlc bisect model.onnx --check './test {model}'
error[E0566]: 3 nodes are left, all models between them were skipped: Relu a, Neg b, Add c
""",
    fixed="$ dmlc bisect model.onnx --backend cpu",
    program=False,
)

OTHER_STATE = declare(
    "E0567",
    "the state belongs to another run",
    """The file of `--state` keeps the runs of one search. It belongs to the same model, inputs and backends, whatever
    machine it comes from. This one belongs to another run, or it is damaged. Remove it to start anew.""",
    example="""
$ dmlc bisect other.onnx --backend cpu --state search.json
error[E0567]: search.json is the state of another run
""",
    fixed="$ dmlc bisect other.onnx --backend cpu --state other.json",
    program=False,
)

NO_ANSWER = declare(
    "E0568",
    "the command did not check",
    """The command of `--check` exits with 0 for a good model and 125 for a model that it cannot check. 1 and any
    other code up to 124 mean a bad model. 126 and 127 come from the shell where the command cannot be started; 128
    and more, or a signal, where it crashed. A crash may be the fault that is looked for: let the command catch it and
    exit with 1. In Python, a check that is a function returns True, False or None.""",
    example="""
$ dmlc bisect model.onnx --check './tset {model}'
error[E0568]: the command './tset {model}' ended with exit code 127: ./tset: not found
""",
    fixed="$ dmlc bisect model.onnx --check './test {model}'",
    program=False,
)
