"""Models of one node each of which ended the process where ONNX was asked for its types; run to import them all.

Prints the name of each before it and what came of it after it, so that who started this sees how far it came.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto, helper, numpy_helper

import dmlc
from dmlc.diagnostics import DmlcError

_F, _I = 1, 7
_BYTE, _REAL = numpy_helper.from_array(np.zeros(1, np.uint8)), numpy_helper.from_array(np.zeros(1, np.float32))
_TREE = (
    *("tree_roots", "leaf_targetids", "nodes_falsenodeids", "nodes_truenodeids", "nodes_trueleafs"),
    *("nodes_falseleafs", "nodes_featureids"),
)


def models() -> Iterator[tuple[str, ModelProto]]:
    """Named models; every one is wrong, and says so as late as it can."""
    for kind in (_of_no_type, _of_large_attributes, _of_negative_sizes, _of_other_letters, _inside_others):
        yield from kind()


def _of_no_type() -> Iterator[tuple[str, ModelProto]]:
    lists = {key: [0] for key in _TREE}
    for name, domain, opset, attributes in (
        ("DictVectorizer", "ai.onnx.ml", 1, {}),
        ("EyeLike", "", 9, {"dtype": 1}),
        ("EyeLike", "", 22, {"dtype": 1}),
        ("LabelEncoder", "ai.onnx.ml", 1, {}),
        ("LabelEncoder", "ai.onnx.ml", 4, {"keys_int64s": [1], "values_floats": [1.0]}),
        ("RegexFullMatch", "", 20, {}),
        (
            "TreeEnsemble",
            "ai.onnx.ml",
            5,
            {**lists, "nodes_modes": _BYTE, "nodes_splits": _REAL, "leaf_weights": _REAL},
        ),
    ):
        node = helper.make_node(name, ["made"], ["y"], domain=domain, **attributes)
        yield f"{name} {opset} of no type", _model([_unknown(["x"], ["made"]), node], opset, domain)


def _of_large_attributes() -> Iterator[tuple[str, ModelProto]]:
    for axis in (2**31, 2**63 - 1):
        node = helper.make_node("LayerNormalization", ["x", "x"], ["y", "m"], axis=axis)
        yield f"LayerNormalization of axis {axis}", _model([node], 17)
    for count in (1, 2**33):
        node = helper.make_node("Split", ["x"], ["y", "z"], num_outputs=count)
        yield f"Split in two into {count}", _model([node], 18)


def _of_negative_sizes() -> Iterator[tuple[str, ModelProto]]:
    for opset in (11, 12, 13):
        node = helper.make_node("GatherND", ["x", "made"], ["y"])
        shape = helper.make_tensor_value_info("made", _I, [2, -1000])
        yield f"GatherND {opset} of negative", _model([_unknown(["x"], ["made"]), node], opset, values=[shape])
    node = helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=-1000)
    yield "GatherND of negative batch_dims", _model([node], 13)
    ints = {
        n: numpy_helper.from_array(np.array([v], np.int64), n) for n, v in (("s", 5), ("e", -9), ("a", 0), ("t", -1))
    }
    node = helper.make_node("Slice", ["made", "s", "e", "a", "t"], ["y"])
    shape = helper.make_tensor_value_info("made", _F, [-1, 2])
    model = _model([_unknown(["x"], ["made"]), node], 17, values=[shape])
    model.graph.initializer.extend(ints.values())
    yield "Slice of a size that is said to be below 0", model
    shrunk = helper.make_node("MaxPool", ["x"], ["made"], kernel_shape=[1000])
    model = _model([shrunk, helper.make_node("Slice", ["made", "s", "e", "t"], ["y"])], 17)
    model.graph.initializer.extend(ints.values())
    yield "Slice of a size below 0", model
    far = {"d": [1, 2, 3], "s": [0], "e": [3], "a": [0], "t": [2**31]}
    model = _model([helper.make_node("Slice", ["d", "s", "e", "a", "t"], ["y"])], 17)
    model.graph.initializer.extend(numpy_helper.from_array(np.array(v), n) for n, v in far.items())
    yield "Slice by 2^31", model
    model = _model([_unknown(["x"], ["u"]), helper.make_node("Reshape", ["d", "s"], ["y"])], 14)
    model.graph.initializer.append(numpy_helper.from_array(np.array([0, -1]), "s"))
    model.graph.value_info.append(helper.make_tensor_value_info("d", _F, [-1, 2**62, 2]))
    model.graph.node[0].output[0] = "d"
    yield "Reshape of -2^63 elements", model


def _of_other_letters() -> Iterator[tuple[str, ModelProto]]:
    for equation in ("a.b->ab", "a1b->a", "ab-->a", "a...b...->ab"):
        node = helper.make_node("Einsum", ["made"], ["y"], equation=equation)
        shape = helper.make_tensor_value_info("made", _F, [2, 3])
        yield f"Einsum {equation}", _model([_unknown(["x"], ["made"]), node], 12, values=[shape])


def _inside_others() -> Iterator[tuple[str, ModelProto]]:
    call = helper.make_node("b", ["made"], ["y"], domain="d", overload="c")
    branch = helper.make_graph([call], "branch", [], [ValueInfoProto(name="y")])
    node = helper.make_node("If", ["made"], ["b"], then_branch=branch, else_branch=branch)
    body = helper.make_function("d", "b:c", ["made"], ["b"], [node], [_opset(17), _opset(1, "d")])
    outer = helper.make_node("b:c", ["made"], ["y"], domain="d")
    yield "a function that calls itself", _model([_unknown(["x"], ["made"]), outer], 17, "d", functions=[body])
    eye = helper.make_node("EyeLike", ["made"], ["b"], dtype=1)
    branch = helper.make_graph([eye], "branch", [], [ValueInfoProto(name="b")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    yield "EyeLike in a branch", _model([_unknown(["x"], ["c", "made"]), node], 17)
    body = helper.make_function(
        "mine", "Eye", ["a"], ["b"], [helper.make_node("EyeLike", ["a"], ["b"], dtype=1)], [_opset(17)]
    )
    call = helper.make_node("Eye", ["made"], ["y"], domain="mine")
    yield "EyeLike in a function", _model([_unknown(["x"], ["made"]), call], 17, "mine", functions=[body])


def _opset(version: int, domain: str = "") -> helper.OperatorSetIdProto:
    return helper.make_opsetid(domain, version)


def _unknown(inputs: list[str], outputs: list[str]) -> NodeProto:
    return helper.make_node("Unknown", inputs, outputs, domain="other")


def _model(
    nodes: list[NodeProto], opset: int, domain: str = "", values: list[ValueInfoProto] | None = None, **more: object
) -> ModelProto:
    versions = [_opset(17 if domain else opset), _opset(1, "other")] + ([_opset(opset, domain)] if domain else [])
    x, y = helper.make_tensor_value_info("x", _F, [2, 3, 4]), ValueInfoProto(name="y", type=TypeProto())
    index = numpy_helper.from_array(np.zeros((2, 1), np.int64), "i")
    graph = helper.make_graph([_unknown(["x"], ["u"]), *nodes], "g", [x], [y], [index], value_info=values)
    return helper.make_model(graph, opset_imports=versions, ir_version=8, **more)


def main() -> None:
    for name, model in models():
        print(name, end=": ", flush=True)
        try:
            dmlc.compile(model, target="onnx").to_onnx()
            print("fine", flush=True)
        except DmlcError as error:
            print(error.diagnostics[0].code.id, flush=True)


if __name__ == "__main__":
    main()
