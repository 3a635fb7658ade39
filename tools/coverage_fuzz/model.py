"""Fuzzed: bytes as an ONNX model, read as ``dmlc compile`` does before the passes."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from dmlc import importers
from dmlc.codegen.artifact import signature_of
from dmlc.ir.verifier import verify
from tools.coverage_fuzz.model_changes import DICTIONARY, mutate
from tools.fuzz.broken_models import base_models, ints

MAX_LEN = 420
_TARGET_OPSET, _LEAST_OPSET = 21, 7
#: Random valid models that take part.
_GROWN = 120


def read(data: bytes) -> str:
    """Raises ``DmlcError``. One in four graphs is checked for its invariants."""
    model = importers.read_model(Path("fuzz.onnx"), data)
    with importers.blaming(model):
        graph = importers.import_model(model)
        importers.choose_opset(graph, _TARGET_OPSET, _LEAST_OPSET, asked=False)
        importers.says_flattened(graph, _TARGET_OPSET)
        names = [name for name, _ in signature_of(graph).outputs]
        if zlib.crc32(data) % 4 == 0 and len(set(names)) == len(names):  # ONNX allows an output that is said twice
            verify(graph)
    return ""


def seeds(grown: int = _GROWN) -> list[bytes]:
    """The models of the suite, of its generator, and a few of what those leave out."""
    models = [*base_models(), *_corners()]
    if grown:
        from tools.fuzz.onnx_models import generate

        models += [generate(seed).model for seed in range(grown)]
    out = {model.SerializeToString(deterministic=True) for model in models}
    return sorted(data for data in out if len(data) <= MAX_LEN)


def _corners() -> list[ModelProto]:
    node, info = helper.make_node, helper.make_tensor_value_info
    x, y = info("x", TensorProto.FLOAT, ["n", 3]), info("y", TensorProto.FLOAT, None)
    truth = numpy_helper.from_array(np.array(True), "c")
    body = helper.make_graph(
        [node("Identity", ["on"], ["on2"]), node("Add", ["a", "x"], ["b"])],
        "body",
        [info("i", TensorProto.INT64, []), info("on", TensorProto.BOOL, []), info("a", TensorProto.FLOAT, ["n", 3])],
        [info("on2", TensorProto.BOOL, []), info("b", TensorProto.FLOAT, ["n", 3])],
    )
    row = [info(name, TensorProto.FLOAT, [3]) for name in ("s", "r", "t", "u")]
    scan = helper.make_graph([node("Add", ["s", "r"], ["t"]), node("Relu", ["r"], ["u"])], "scan", row[:2], row[2:])
    call = [node("Twice", ["x"], ["y"], domain="mine", by=2)]
    twice = helper.make_function("mine", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [_opset("", 17)])
    graphs: list[tuple[GraphProto, int, list[onnx.FunctionProto]]] = []

    def add(nodes: list[NodeProto], weights: list[TensorProto] | None = None, opset: int = 17) -> None:
        graphs.append((helper.make_graph(nodes, "g", [x], [y], weights or []), opset, []))

    add([node("Loop", ["m", "c", "x"], ["y"], body=body)], [ints("m"), truth])
    add([node("Loop", ["", "c", "x"], ["y"], body=body)], [truth])
    add([node("Scan", ["s", "x"], ["f", "y"], body=scan, num_scan_inputs=1)], [_floats("s", 3)])
    add([node("If", ["c"], ["y"], then_branch=_branch(), else_branch=_branch())], [truth])
    add([node("SequenceConstruct", ["x", "x"], ["q"]), node("ConcatFromSequence", ["q"], ["y"], axis=0)])
    add([node("Shape", ["x"], ["d"]), node("Gather", ["d", "k"], ["e"], axis=0), node("Unsqueeze", ["e", "k0"], ["h"]),
         node("Concat", ["h", "w"], ["s"], axis=0), node("Reshape", ["x", "s"], ["y"])],
        [numpy_helper.from_array(np.array(0, np.int64), "k"), ints("k0", 0), ints("w", 3)])  # fmt: skip
    add([node("Range", ["a", "b", "d"], ["r"]), node("Cast", ["r"], ["f"], to=1), node("Add", ["x", "f"], ["y"])],
        [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("a", 0), ("b", 3), ("d", 1))])  # fmt: skip
    add([node("Constant", [], ["k"], value_ints=[1, 3]), node("Expand", ["x", "k"], ["y"])])
    add([node("Resize", ["x", "", "s"], ["y"], mode="nearest")], [_floats("s", 2)], 13)
    add([node("OneHot", ["h", "d", "v"], ["y"], axis=-1), node("ArgMax", ["x"], ["h"], axis=0)],
        [ints("d", 4), _floats("v", 2)])  # fmt: skip
    add([node("Split", ["x", "p"], ["y", "z"], axis=1)], [ints("p", 1, 2)])
    add([node("Gelu", ["x"], ["y"], domain="com.microsoft")])
    add([node("Softmax", ["x"], ["h"], axis=0), node("Hardmax", ["h"], ["y"], axis=1)], opset=11)
    add([node("TopK", ["x"], ["y", "i"], k=2, axis=1)], opset=9)
    graphs.append((helper.make_graph(call, "g", [x], [y]), 17, [twice]))
    return [
        helper.make_model(
            graph,
            opset_imports=[_opset("", o), _opset("mine", 1), _opset("com.microsoft", 1)],
            ir_version=8,
            functions=f,
        )
        for graph, o, f in graphs
    ]


def _branch() -> GraphProto:
    result = helper.make_tensor_value_info("h", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node("Exp", ["x"], ["h"])], "branch", [], [result])


def _floats(name: str, count: int) -> TensorProto:
    return numpy_helper.from_array(np.ones(count, np.float32), name)


def _opset(domain: str, version: int) -> onnx.OperatorSetIdProto:
    return helper.make_opsetid(domain, version)


__all__ = ["DICTIONARY", "MAX_LEN", "mutate", "read", "seeds"]
