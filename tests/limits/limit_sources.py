"""Sources of a known size for each limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

import dmlc

MODEL = "model m(x: f32[4]) -> (y) {{\n    y = {}\n    return y\n}}\n"
DOUBLING = "def a(x) {\n    return exp(x)\n}\ndef b(x) {\n    return a(a(x))\n}\ndef c(x) {\n    return b(b(x))\n}\n"


def program(text: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "m.dml").write_text(text)
        return folder / "m.dml"

    return make


def onnx_model(nodes: list[NodeProto], functions: Any = (), shape: tuple[int, ...] = (4,)) -> ModelProto:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", nodes[-1].output[0])]
    graph = helper.make_graph(nodes, "m", infos[:1], infos[1:])
    opsets = [helper.make_opsetid("", 21), *([helper.make_opsetid("f", 1)] if functions else [])]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def saved(model: ModelProto) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "m.onnx").write_bytes(model.SerializeToString())
        return folder / "m.onnx"

    return make


def chain(count: int) -> list[NodeProto]:
    return [helper.make_node("Exp", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(count)]


def functions(depth: int) -> ModelProto:
    """Functions that call the one before twice: the deepest call unfolds to 2^depth - 1 nodes."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("f", 1)]
    made = [helper.make_function("f", "g1", ["a"], ["b"], [helper.make_node("Exp", ["a"], ["b"])], opsets)]
    for i in range(2, depth + 1):
        calls = [helper.make_node(f"g{i - 1}", [a], [b], domain="f") for a, b in (("a", "t"), ("t", "b"))]
        made.append(helper.make_function("f", f"g{i}", ["a"], ["b"], calls, opsets))
    return onnx_model([helper.make_node(f"g{depth}", ["x"], ["y"], domain="f")], made)


def branches(depth: int) -> ModelProto:
    """Ifs inside one another: 1 + 2 * depth nodes."""
    model = onnx_model([helper.make_node("Exp", ["x"], ["y"])])
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, ()))
    del model.graph.node[:]
    graph = model.graph
    for i in range(depth):
        node = graph.node.add(op_type="If", input=["c"], output=["y" if i == 0 else f"b{i}"])
        for branch in ("else_branch", "then_branch"):
            inner = node.attribute.add(name=branch, type=5).g
            inner.name = f"{branch} {i}"
            is_last = branch == "else_branch" or i == depth - 1
            name = f"{branch[0]}{i}" if is_last else f"b{i + 1}"
            inner.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]))
            if is_last:
                inner.node.add(op_type="Exp", input=["x"], output=[name])
            else:
                graph = inner
    return model


def named_size(length: int) -> ModelProto:
    """A model with a size of a long name in a graph inside a node."""
    model = branches(2)
    inner = model.graph.node[0].attribute[1].g
    inner.value_info.append(helper.make_tensor_value_info("b1", TensorProto.FLOAT, ["d" * length]))
    return model


def packed(folder: Path) -> Path:
    np.savez_compressed(folder / "w.npz", w=np.zeros(4, np.float32))
    text = 'const w: f32[4] = load("w.npz", "w")\n' + MODEL.format("x + w")
    return program(text)(folder)


def built(_: Path) -> dmlc.Graph:
    graph = dmlc.Graph("g")
    value = graph.input("x", "f32", (4,))
    for _ in range(7):
        value = dmlc.exp(value)
    graph.output("y", value)
    return graph


_TEXT = MODEL.format("x + 1")
_FILE = onnx_model(chain(2))
#: A limit, its lowest size that reads the source, and the source.
AT: dict[str, tuple[str, int, Callable[[Path], Any]]] = {
    "file_bytes": ("file_bytes", len(_FILE.SerializeToString()), saved(_FILE)),
    "text_bytes": ("text_bytes", len(_TEXT), program(_TEXT)),
    "tokens": ("tokens", 23, program(_TEXT)),
    "brackets": ("nesting", 9, program(MODEL.format("(" * 9 + "x" + ")" * 9))),
    "signs": ("nesting", 9, program(MODEL.format("- " * 9 + "x"))),
    "signs and powers": ("nesting", 6, program(MODEL.format("- - x ** - x ** -x"))),
    "defs": ("nesting", 3, program(DOUBLING + MODEL.format("c(x)"))),
    "functions": ("nesting", 4, saved(functions(4))),
    "statements": ("statements", 1 + 2 + 4, program(DOUBLING + MODEL.format("c(x)"))),
    "nodes": ("nodes", 7, saved(onnx_model(chain(7)))),
    "nodes of a program": ("nodes", 7, program(MODEL.format("x" + " |> exp()" * 7))),
    "nodes of defs": ("nodes", 8, program(DOUBLING + MODEL.format("c(c(x))"))),
    "many nodes of defs": (
        "nodes", 3_000, program(DOUBLING.replace("exp(x)", "x" + " + x" * 750) + MODEL.format("c(x)")),
    ),
    "nodes of a builder": ("nodes", 7, built),
    "nodes of branches": ("nodes", 1 + 2 * 5, saved(branches(5))),
    "nodes of functions": ("nodes", 1 + 22, saved(functions(4))),
    "rank": ("rank", 5, program("model m(x: f32[1, 1, 1, 1, 4]) -> (y) {\n    y = exp(x)\n    return y\n}\n")),
    "rank of a result": (
        "rank", 5, program(MODEL.replace("x: f32[4]", "x: f32[4, 4, 4], i: i64[2, 2, 2]").format("gather(x, i)")),
    ),
    "rank of a model": ("rank", 5, saved(onnx_model(chain(1), shape=(1, 1, 1, 1, 4)))),
    "name_length": ("name_length", 300, program(MODEL.format("x").replace("y", "y" * 300))),
    "quoted name": ("name_length", 300, program(MODEL.format("x").replace("y", f"`{'y' * 300}`"))),
    "name of a value": (
        "name_length", 300, saved(onnx_model([*chain(1), helper.make_node("Exp", ["v1"], ["y" * 300])])),
    ),
    "name of a node": ("name_length", 300, saved(onnx_model([helper.make_node("Exp", ["x"], ["y"], name="n" * 300)]))),
    "name of a size in a branch": ("name_length", 300, saved(named_size(300))),
    "unpacked_bytes": ("unpacked_bytes", 128 + 16, packed),
}  # fmt: skip
#: Cases that are files.
FILES = [case for case in AT if case != "nodes of a builder"]


def at_limit(case: str) -> int:
    """A limit that is far too low."""
    return max(1, AT[case][1] // 3)
