"""A backend with a fault, as a program that checks models: it computes them with ONNX Runtime and one wrong kernel.

``python faulty_backend.py MODEL INPUTS.npz FAULT`` exits with 0 if the results are those of the file, 1 if not, 125 if
it cannot run the model. ``FAULT`` is ``node:NAME`` for a wrong kernel of one node, or ``fused:A+B`` for a wrong kernel
of an operator A that an operator B alone reads. That kernel is used only if the value between them is not an output.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, helper, numpy_helper


def broken(model: ModelProto, fault: str) -> ModelProto:
    """The model as the faulty backend understands it: the results of wrong kernels are 1 larger."""
    kind, _, what = fault.partition(":")
    out = ModelProto()
    out.CopyFrom(model)
    graph = out.graph
    graph.initializer.append(numpy_helper.from_array(np.array(1, np.float32), "one//"))
    nodes = list(graph.node)
    wrong = (
        [n for n, node in enumerate(nodes) if node.name == what] if kind == "node" else _fused(graph, *what.split("+"))
    )
    for number in reversed(wrong):
        node = nodes[number]
        name, node.output[0] = node.output[0], f"{node.output[0]}//right"
        nodes.insert(number + 1, helper.make_node("Add", [node.output[0], "one//"], [name], f"fault {number}"))
    del graph.node[:]
    graph.node.extend(nodes)
    return out


def _fused(graph: onnx.GraphProto, before: str, after: str) -> list[int]:
    """The numbers of the nodes B that a kernel computes together with a node A before them."""
    makers = {name: node.op_type for node in graph.node for name in node.output}
    counts = Counter(name for node in graph.node for name in node.input)
    counts.update(info.name for info in graph.output)
    return [
        number
        for number, node in enumerate(graph.node)
        if node.op_type == after and any(makers.get(name) == before and counts[name] == 1 for name in node.input)
    ]


def run(model: ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [info.name for info in model.graph.output]
    return dict(zip(names, session.run(names, feeds), strict=True))


def main(path: str, data: str, fault: str) -> int:
    model = onnx.load(path)
    onnx.checker.check_model(model)
    with np.load(data) as arrays:
        case = dict(arrays)
    feeds = {name[4:]: array for name, array in case.items() if name.startswith("in::")}
    try:
        found = run(broken(model, fault), feeds)
    except Exception as error:
        print(error)
        return 125
    wrong = [name for name, array in found.items() if not np.allclose(array, case[f"out::{name}"], equal_nan=True)]
    print("wrong:", *wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
