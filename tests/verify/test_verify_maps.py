"""Sequences of maps, as classifiers give them: their values have the dtype that the model declares, not Python's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from model_pairs import F32, I64, chain, model, node, verify_models
from onnx import TensorProto, helper

import dmlc
from dmlc.verifying import compare
from dmlc.verifying.comparison import Comparison
from dmlc.verifying.parts import are_alike, as_one_array
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("sessions_here")

ML = "ai.onnx.ml"
#: The keys of the maps, and how ZipMap names them.
KEYS: dict[str, dict[str, Any]] = {
    "int64": {"classlabels_int64s": [3, 5, 11]},
    "string": {"classlabels_strings": ["setosa", "versicolor", "virginica"]},
}
GENERATOR = np.random.default_rng(0)
WEIGHTS = GENERATOR.standard_normal((4, 3)).astype(np.float32)


def classifier(nodes: Sequence[onnx.NodeProto], labels: dict[str, Any], **constants: np.ndarray[Any, Any]) -> Any:
    """A model from ``x`` to the maps ``y``, which are made of the tensor ``p``."""
    zipped = node("ZipMap", ["p"], ["y"], domain=ML, **labels)
    made = model(*nodes, zipped, x=("N", 4), constants=constants, opset=15, ir=8)
    made.opset_import.append(helper.make_opsetid(ML, 3))
    key = I64 if "classlabels_int64s" in labels else TensorProto.STRING
    value = helper.make_tensor_type_proto(F32, ())
    made.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_map_type_proto(key, value)))
    return made


def linear(labels: dict[str, Any], *, sign: float = 1) -> onnx.ModelProto:
    made = node(
        "LinearClassifier",
        ["x"],
        ["label", "p"],
        domain=ML,
        coefficients=[float(v) for v in (sign * WEIGHTS.T).reshape(-1)],
        intercepts=[0.1, -0.2, 0.3],
        post_transform="SOFTMAX",
        **{name.replace("int64s", "ints"): values for name, values in labels.items()},
    )
    return classifier([made], labels)


def dense(labels: dict[str, Any], *, turned: bool) -> onnx.ModelProto:
    """Softmax of a product; the product is a sum that may come in another order."""
    order = np.arange(4)[::-1] if turned else np.arange(4)
    nodes = [
        node("Gather", ["x", "order"], ["g"], axis=1),
        node("MatMul", ["g", "w"], ["h"]),
        node("Softmax", ["h"], ["p"], axis=1),
    ]
    return classifier(nodes, labels, order=order, w=np.ascontiguousarray(WEIGHTS[order]))


def trees(labels: dict[str, Any], *, leaf: float = 0.75) -> onnx.ModelProto:
    """Two trees of one branch each."""
    names = ["class_ids", "class_nodeids", "class_treeids", "class_weights"]
    leaves = [[0, 1, 2, 0], [1, 2, 1, 2], [0, 0, 1, 1], [leaf, 0.25, 0.5, 0.5]]
    made = node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "p"],
        domain=ML,
        nodes_featureids=[0, 0, 0, 1, 0, 0],
        nodes_falsenodeids=[2, 0, 0, 2, 0, 0],
        nodes_truenodeids=[1, 0, 0, 1, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * 2,
        nodes_nodeids=[0, 1, 2] * 2,
        nodes_treeids=[0, 0, 0, 1, 1, 1],
        nodes_values=[0.1, 0.0, 0.0, -0.2, 0.0, 0.0],
        post_transform="NONE",
        **dict(zip(names, leaves, strict=True)),
        **labels,
    )
    return classifier([made], labels)


def bayes(labels: dict[str, Any], seed: int = 0) -> onnx.ModelProto:
    """Normal densities, as converters of naive Bayes classifiers write them."""
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((3, 4)).astype(np.float32)
    spreads = (1 + generator.random((3, 4))).astype(np.float32)
    nodes = [
        node("Unsqueeze", ["x", "one"], ["u"]),
        node("Sub", ["u", "centres"], ["d"]),
        node("Pow", ["d", "two"], ["q"]),
        node("Div", ["q", "spreads"], ["r"]),
        node("ReduceSum", ["r", "last"], ["s"], keepdims=0),
        node("Mul", ["s", "half"], ["h"]),
        node("Sub", ["priors", "h"], ["joint"]),
        node("ReduceLogSumExp", ["joint"], ["norm"], axes=[1], keepdims=1),
        node("Sub", ["joint", "norm"], ["log"]),
        node("Exp", ["log"], ["p"]),
    ]
    constants = {
        "one": np.array([1]),
        "two": np.array(2, np.float32),
        "half": np.array(0.5, np.float32),
        "last": np.array([2]),
        "centres": centres,
        "spreads": spreads,
        "priors": np.array([-1.0, -2.0, -0.5], np.float32),
    }
    return classifier(nodes, labels, **constants)


@each_row(("keys", "target"), [*((keys, "directml") for keys in KEYS), ("int64", "cpu"), ("string", "onnx")])
@each_row("make", [linear, trees, bayes, lambda labels: dense(labels, turned=False)])
def test_compiled_classifiers_are_verified(make: Any, keys: str, target: str) -> None:
    verdict = dmlc.compile(make(KEYS[keys]), target=target).verify(24)
    assert verdict.ok, verdict.to_text()


@each_row("seed", range(8))
def test_what_the_original_itself_rounds_away_is_no_difference(seed: int) -> None:
    """exp(a - log_sum_exp(a)) of numbers near 10,000 knows no third digit; softmax(a), which it becomes, does."""
    verdict = dmlc.compile(bayes(KEYS["int64"], seed)).verify(24)
    assert verdict.ok, verdict.to_text()


@pytest.mark.parametrize("keys", KEYS)
def test_another_order_of_sums_is_within(keys: str) -> None:
    a, b = dense(KEYS[keys], turned=False), dense(KEYS[keys], turned=True)
    verdict = verify_models(a, b)
    assert verdict.status == "within", verdict.to_text()
    assert verify_models(a, b, allowed="exact").status == "different"


@pytest.mark.parametrize("keys", KEYS)
def test_wrong_values_are_found(keys: str) -> None:
    labels = KEYS[keys]
    verdict = verify_models(linear(labels), linear(labels, sign=-1))
    assert verdict.status == "different"
    (output,) = verdict.to_json()["outputs"]
    place, key = output["first_difference"]["index"]
    assert isinstance(place, int)
    assert key in next(iter(labels.values()))
    assert output["largest_error"]["absolute"] > 0
    assert verify_models(trees(labels), trees(labels, leaf=0.7501)).status == "different"


def test_other_keys_and_types_are_found() -> None:
    words, numbers = KEYS["string"], KEYS["int64"]
    other = {"classlabels_strings": ["setosa", "versicolor", "iris"]}
    assert verify_models(linear(words), linear(other)).status == "different"
    assert "output y is seq(map(string" in verify_models(linear(words), linear(numbers)).reason
    tensor = chain("Identity", x=("N", 4))
    assert verify_models(linear(words), tensor).status == "different"


def one(a: Any, b: Any, kind: str | None) -> Comparison:
    return compare({"y": a}, {"y": b}, kinds={"y": kind} if kind else None)["y"]


@each_row(("kind", "unit"), [("float32", 2.0**-23), ("float16", 2.0**-10), ("float64", 2.0**-52)])
@each_row("wrap", [lambda m: m, lambda m: [m], lambda m: [m, {"c": 0.5}], lambda m: {7: m}])
def test_values_are_compared_in_their_dtype(kind: str, unit: float, wrap: Any) -> None:
    def table(first: float) -> Any:
        return wrap({"a": first, "b": 2.0**-20})

    found = one(table(1.0), table(1.0 + unit), kind)
    assert (found.status, found.errors.ulp) == ("within", 1)
    assert one(table(1.0), table(1.0 + 2e4 * unit), kind).status == "different"


def test_small_values_are_held_against_the_largest_of_the_table() -> None:
    assert one([{1: 1.0, 2: 1e-9}], [{1: 1.0, 2: 2e-9}], "float32").status == "within"
    assert one([{1: 1.0}, {1: 1e-9}], [{1: 1.0}, {1: 2e-9}], "float32").status == "within"
    assert one([{1: 1e-9}], [{1: 2e-9}], "float32").status == "different"


@each_row(
    ("a", "b", "what"),
    [
        ([{1: 0.5}], [{2: 0.5}], "part 0: keys [1] became [2]"),
        ([{1: 0.5}], [{"1": 0.5}], "part 0: keys [1] became ['1']"),
        ([{1: 0.5}], [{1: 0.5}, {1: 0.5}], "1 parts became 2 parts"),
        ([{1: 0.5}], [{1: 0.75}], "values differ at [0, 1]: 0.5 became 0.75 (1 of 1 element)"),
        ({"k": 1}, {"k": 2}, "values differ at ['k']: 1 became 2 (1 of 1 element)"),
        ({"k": "a"}, {"k": "b"}, "values differ at ['k']: 'a' became 'b' (1 of 1 element)"),
        ([{1: 0.5}], [{1: float("nan")}], "NaN or infinity at another place at [0, 1]"),
    ],
)
def test_where_tables_differ(a: Any, b: Any, what: str) -> None:
    found = one(a, b, "float32")
    assert found.status == "different"
    assert str(found.difference).startswith(what)


def test_parts_as_one_array() -> None:
    table = [{2: 0.5, 1: 0.25}, {2: 1.0, 1: 0.0}]
    made = as_one_array(table, "float32")
    assert made.dtype == np.float32
    assert made.tolist() == [0.25, 0.5, 0.0, 1.0]
    assert as_one_array([{1: "a"}], "float32") == [{1: "a"}]
    assert are_alike(table, [{1: 0.0, 2: 0.0}] * 2)
    assert not are_alike(table, table[:1])
    assert not are_alike([np.zeros(2)], [np.zeros((2, 1))])
    assert not are_alike([None], [np.zeros(2)])
