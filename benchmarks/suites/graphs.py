"""Generated models and programs of any size, for the suites that time the compiler."""

from __future__ import annotations

import random as numbers

from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8


def model(form: str, nodes: int) -> ModelProto:
    """About so many nodes: patterns that a fusing compiler finds, one after the other (``chain``) or each on one of the
    last eight results (``dag``)."""
    random = numbers.Random(nodes)
    writer = _Writer()
    values = ["x"]
    pattern = 0
    while len(writer.nodes) < nodes:
        source = values[-1] if form == "chain" else random.choice(values[-8:])
        y = _PATTERNS[pattern % len(_PATTERNS)](writer, source)
        pattern += 1
        if form == "dag" and len(values) > 2:
            y = writer.node("Add", y, random.choice(values[-8:]))
        values.append(y)
    shape = [2, 8, 16]
    ends = [helper.make_tensor_value_info(values[-1], TensorProto.FLOAT, shape)]
    starts = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(writer.nodes, form, starts, ends, writer.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


class _Writer:
    def __init__(self) -> None:
        import numpy as np

        self.nodes: list[object] = []
        self.constants = [
            numpy_helper.from_array(np.array(2, np.float32), "two"),
            numpy_helper.from_array(np.array(1e-5, np.float32), "tiny"),
            numpy_helper.from_array(np.array([1], np.int64), "axis1"),
            numpy_helper.from_array(np.array([2], np.int64), "axis2"),
            numpy_helper.from_array(np.linspace(0.5, 1.5, 16, dtype=np.float32), "scale"),
        ]

    def node(self, op_type: str, *operands: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(operands), [name], f"n{len(self.nodes)}", **attributes))
        return name

    def reduce(self, kind: str, x: str, axis: int) -> str:
        if kind == "Sum":
            return self.node("ReduceSum", x, f"axis{axis}", keepdims=1)
        return self.node(f"Reduce{kind}", x, axes=[axis], keepdims=1)


def _chained(w: _Writer, x: str) -> str:
    return w.node("Add", x, w.reduce("Sum", w.reduce("Sum", x, 2), 1))


def _softmax(w: _Writer, x: str) -> str:
    e = w.node("Exp", w.node("Sub", x, w.reduce("Max", x, 2)))
    return w.node("Div", e, w.reduce("Sum", e, 2))


def _norm(w: _Writer, x: str) -> str:
    centred = w.node("Sub", x, w.reduce("Mean", x, 2))
    variance = w.reduce("Mean", w.node("Mul", centred, centred), 2)
    return w.node("Div", centred, w.node("Sqrt", w.node("Add", variance, "tiny")))


def _plain(w: _Writer, x: str) -> str:
    return w.node("Tanh", w.node("Mul", w.node("Relu", x), "scale"))


def _moved(w: _Writer, x: str) -> str:
    return w.node("Transpose", w.node("Neg", w.node("Transpose", x, perm=[0, 2, 1])), perm=[0, 2, 1])


_PATTERNS = (_chained, _softmax, _plain, _norm, _moved)


def text(lines: int) -> str:
    """A program of so many lines with a call, an infix expression or a pipe on each."""
    body = ["model m(x: f32[2, 8, 16]) -> (y) {", "    v0 = x"]
    for n in range(1, lines - 4):
        a, b = f"v{n - 1}", f"v{max(0, n - 3)}"
        body.append(
            (
                f"    v{n} = {a} + reduce_sum({b}, axes=[1, 2], keepdims=true)",
                f"    v{n} = ({a} * 0.5 + {b}) / (1.0 + abs({a}))",
                f"    v{n} = {a} |> tanh() |> clip(min=-1.0, max=1.0)",
                f"    v{n} = max({a}, {b} - 0.25)  # the larger",
            )[n % 4]
        )
    return "\n".join([*body, f"    y = v{lines - 5}", "    return y", "}", ""])
