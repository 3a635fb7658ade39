"""Moving nodes between opsets: every change of every operator is an addition or has a row."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, defs, helper, numpy_helper

from dmlc.onnx_schema.moves.draft import KnownValues, as_it_is
from dmlc.onnx_schema.versions import ROWS, fits, move, obstacle
from tests.rows import each_row

HISTORY: dict[str, list[Any]] = {}
for _schema in sorted(defs.get_all_schemas_with_history(), key=lambda s: s.since_version):
    if _schema.domain == "":
        HISTORY.setdefault(_schema.name, []).append(_schema)
#: Successive versions that matter to opsets from 7 on.
PAIRS = {
    f"{name} of {older.since_version} and {newer.since_version}": (older, newer)
    for name, versions in HISTORY.items()
    for older, newer in pairwise(versions)
    if newer.since_version > 7
}
NEWEST = defs.onnx_opset_version()


def only_adds(older: Any, newer: Any) -> bool:
    """True if every form of the older version is one of the newer, and means the same by what schemas can say."""
    if older.deprecated or newer.deprecated:
        return False
    for name, attribute in older.attributes.items():
        after = newer.attributes.get(name)
        if after is None or after.type != attribute.type or (after.required and not attribute.required):
            return False
        if attribute.default_value != after.default_value:
            return False
    if any(a.required for name, a in newer.attributes.items() if name not in older.attributes):
        return False
    single = defs.OpSchema.FormalParameterOption.Single
    for before, after in ((older.inputs, newer.inputs), (older.outputs, newer.outputs)):
        if len(after) < len(before) or any(f.option == single for f in after[len(before) :]):
            return False
        for a, b in zip(before, after, strict=False):
            if a.option != b.option and a.option != single:
                return False
    return True


def test_every_change_is_an_addition_or_has_a_row() -> None:
    for pair, (older, newer) in PAIRS.items():
        row = ROWS.get((newer.name, newer.since_version))
        assert only_adds(older, newer) or row is not None, pair
        if row is not None:
            assert row.why, pair
            assert row.up is not as_it_is or row.down is not as_it_is or row.becomes, pair


def test_an_attribute_that_went_is_refused_or_has_a_row() -> None:
    refused = 0
    for schemas in HISTORY.values():
        for older, newer in pairwise(schemas):
            for name in older.attributes.keys() - newer.attributes.keys():
                if (newer.name, newer.since_version) in ROWS or newer.deprecated:
                    continue
                value = [1] if "INT" in str(older.attributes[name].type) and name == "consumed_inputs" else 1
                n = node(newer.name, "a", "b", **{name: value})
                assert obstacle(n, older.since_version, newer.since_version) == (
                    f"{name} went with opset {newer.since_version}"
                )
                refused += 1
    assert refused > 50


def test_every_row_is_of_a_version_that_there_is() -> None:
    for (op, since), row in ROWS.items():
        assert (row.op, row.since) == (op, since)
        if since > NEWEST:
            continue  # an older onnx is installed
        assert since in [s.since_version for s in HISTORY[op]][1:]
        assert not row.becomes or any(s.since_version == since for s in HISTORY[row.becomes])


def test_an_addition_is_not_touched_upwards() -> None:
    for pair, (older, newer) in PAIRS.items():
        if (newer.name, newer.since_version) in ROWS or older.deprecated:
            continue
        node = NodeProto(op_type=newer.name, input=["a", "b"], output=["c"])
        moved = move(node, older.since_version, newer.since_version, str)
        assert moved is not None, pair
        assert (list(moved.nodes), moved.constants) == ([node], []), pair


def test_an_added_attribute_is_refused_downwards_unless_it_is_the_default() -> None:
    pairs = {pair: versions for pair, versions in PAIRS.items() if versions[0].since_version >= 11}
    assert len(pairs) > 100
    for pair, (older, newer) in pairs.items():
        check_added_attributes(pair, older, newer)


def check_added_attributes(pair: str, older: Any, newer: Any) -> None:
    single = defs.OpSchema.FormalParameterOption.Single
    plain = [f"i{i}" for i, f in enumerate(older.inputs) if f.option == single] or ["i0"]
    for name, attribute in newer.attributes.items():
        if name in older.attributes or (newer.name, newer.since_version) in ROWS or older.deprecated:
            continue
        if attribute.type == defs.OpSchema.AttrType.INT:
            value: Any = attribute.default_value.i + 1
        elif attribute.type == defs.OpSchema.AttrType.STRING:
            value = "other"
        else:
            value = [1]
        node = helper.make_node(newer.name, plain, ["o"], **{name: value})
        why = obstacle(node, newer.since_version, older.since_version)
        assert why == f"{name} came with opset {newer.since_version}", pair
        if attribute.default_value.name:
            node = helper.make_node(newer.name, plain, ["o"])
            node.attribute.append(attribute.default_value)
            moved = move(node, newer.since_version, older.since_version, str)
            assert moved is not None, pair
            assert name not in [a.name for a in moved.nodes[0].attribute], pair
            assert name in [a.name for a in node.attribute], pair  # the node that was given stays as it is


def node(op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> NodeProto:
    return helper.make_node(op, list(inputs), [f"o{i}" for i in range(outputs)], **attributes)


def known(constants: dict[str, Any] | None = None, types: dict[str, tuple[int, Any]] | None = None) -> KnownValues:
    data = {name: np.asarray(value) for name, value in (constants or {}).items()}
    protos = {name: helper.make_tensor_type_proto(*type) for name, type in (types or {}).items()}
    return KnownValues(constant=data.get, type=protos.get)


F = TensorProto.FLOAT


def test_what_is_the_same_is_the_same_object() -> None:
    for n in (node("Conv", "x", "w"), node("LSTM", "x", "w", "r"), node("If", "c"), node("Gelu", "x")):
        have = 21
        moved = move(n, have, 20, str)
        assert moved is not None
        assert moved.nodes[0] == n
    n = node("Conv", "x", "w")
    moved = move(n, 9, 21, str)
    assert moved is not None
    assert moved.nodes[0] is n


def test_other_domains_and_unknown_operators_always_fit() -> None:
    for n in (node("ReduceMean", "x", axes=[1], domain="com.example"), node("SimplifiedLayerNormalization", "x", "s")):
        assert fits(n, 11, 21)
        assert fits(n, 21, 11)
        assert fits(n, 21, 7)
        moved = move(n, 11, 21, str)
        assert moved is not None
        assert moved.nodes[0] is n


def test_the_default_domain_has_two_names() -> None:
    assert not fits(node("Softmax", "x", domain="ai.onnx"), 11, 13)


@each_row(
    ("n", "have", "want", "why"),
    [
        (node("Gelu", "x"), 20, 19, "Gelu came with opset 20"),
        (node("LayerNormalization", "x", "s"), 17, 16, "LayerNormalization came with opset 17"),
        (node("BatchNormalization", *"xsbmv", spatial=0), 7, 9, "a size may be 0"),
        (node("BatchNormalization", *"xsbmv", spatial=0, outputs=3), 7, 21, "makes statistics as it trains"),
        (node("BatchNormalization", *"xsbmv", outputs=3), 9, 14, "what it computes for training changed"),
        (node("BatchNormalization", *"xsbmv", training_mode=1, outputs=3), 15, 13, "training changed with opset 14"),
        (node("Dropout", "x", outputs=2), 7, 12, "its mask is ones since opset 12"),
        (node("Dropout", "x", "", "t"), 12, 11, "training_mode is computed"),
        (node("Resize", "x", "r", "s", coordinate_transformation_mode="tf_half_pixel_for_nn"), 11, 13, "taken out"),
        (node("Resize", "x", "", "s", coordinate_transformation_mode="half_pixel_symmetric"), 19, 18, "opset 19"),
        (node("Pad", "x", "p", mode="wrap"), 19, 18, "mode wrap came with opset 19"),
        (node("ScatterND", "x", "i", "u", reduction="max"), 18, 17, "reduction max came with opset 18"),
        (node("ReduceMean", "x", "a"), 18, 17, "axes is computed"),
        (node("ReduceSum", "x", noop_with_empty_axes=1), 13, 11, "it reduces over no axis"),
        (node("Softmax", "x"), 11, 13, "a size may be 0"),
        (node("Softmax", "x", axis=1), 13, 11, "all axes from axis on are one"),
        (node("RoiAlign", "x", "r", "b"), 16, 11, "it shifts by half a pixel"),
        (node("GroupNormalization", "x", "s", "b", num_groups=2), 18, 21, "the number of channels is not known"),
        (node("GroupNormalization", "x", "s", "b", num_groups=2), 21, 20, "deprecated"),
        (node("AveragePool", "x", ceil_mode=1, count_include_pad=1, kernel_shape=[2, 2]), 18, 19, "hang over"),
        (node("AveragePool", "x", pads=[0, 0, 1, 1], count_include_pad=1, kernel_shape=[2, 2]), 18, 21, "hang over"),
        (node("AveragePool", "x", auto_pad="SAME_LOWER", count_include_pad=1), 22, 18, "hang over"),
        (node("Scan", "", "x"), 8, 9, "the axis of the batch"),
        (node("Cast", "x", to=TensorProto.FLOAT8E4M3FN), 19, 18, "does not give tensor(float8e4m3fn)"),
        (node("Cast", "x", to=TensorProto.FLOAT8E4M3FNUZ), 23, 24, "infinity becomes another number"),
        (node("Relu", "x"), 21, 10, "converted to opset 11 at the lowest"),
        (node("Concat", "x", "y", axis=-1), 11, 8, "converted to opset 11 at the lowest"),
        (node("Attention", "q", "k", "v", "", "", "", "n"), 24, 23, "an input or output came with opset 24"),
    ],
    ids=lambda v: v.op_type if isinstance(v, NodeProto) else None,
)  # fmt: skip
def test_what_does_not_fit(n: NodeProto, have: int, want: int, why: str) -> None:
    assert why in obstacle(n, have, want)
    assert not fits(n, have, want)
    assert move(n, have, want, str) is None


def test_types_that_came_or_went() -> None:
    n = node("Relu", "x")
    assert fits(n, 14, 13)  # nothing is known of the types
    assert fits(n, 14, 13, known(types={"x": (F, [2])}))
    assert obstacle(n, 14, 13, known(types={"x": (TensorProto.INT32, [2])})) == (
        "Relu of opset 13 does not take tensor(int32)"
    )
    erf = node("Erf", "x")
    assert fits(erf, 9, 13, known(types={"x": (F, [2])}))
    assert not fits(erf, 9, 13, known(types={"x": (TensorProto.INT32, [2])}))
    sequences = KnownValues(type={"s": helper.make_sequence_type_proto(helper.make_tensor_type_proto(F, None))}.get)
    assert fits(node("Identity", "s"), 16, 14, sequences)
    assert not fits(node("Identity", "s"), 14, 13, sequences)


def test_an_exponent_of_a_type_of_its_own() -> None:
    n = node("Pow", "x", "e")
    assert fits(n, 13, 11, known(types={"x": (F, [2]), "e": (F, [])}))
    mixed = known(types={"x": (TensorProto.DOUBLE, [2]), "e": (F, [])})
    assert fits(n, 13, 12, mixed)
    assert obstacle(n, 13, 11, mixed) == "Pow of opset 7 takes no tensor(double) beside tensor(float)"


@pytest.mark.skipif(NEWEST < 28, reason="the installed onnx has no opset 28")
def test_the_remainder_of_floats_is_new() -> None:
    n = node("Mod", "x", "y")
    assert not fits(n, 28, 27)
    assert not fits(n, 28, 27, known(types={"x": (F, [2])}))
    assert fits(n, 28, 21, known(types={"x": (TensorProto.INT32, [2])}))
    assert fits(node("Mod", "x", "y", fmod=1), 28, 21)
    assert fits(n, 21, 28)


def test_a_softmax_of_one_axis_with_elements_stays_one_node() -> None:
    n = node("Softmax", "x")
    moved = move(n, 11, 13, str, known(types={"x": (F, ["N", "C", 1, 1])}))
    assert moved is not None
    assert [each.op_type for each in moved.nodes] == ["Softmax"]
    assert moved.nodes[0].attribute[0].i == 1
    assert not fits(node("Softmax", "x", axis=1), 13, 11, known(types={"x": (F, [2, 3, "N"])}))
    assert fits(node("Softmax", "x", axis=-1), 13, 11, known(types={"x": (F, [2, 3, "N"])}))


def test_names_of_constants_are_asked_for() -> None:
    asked: list[str] = []

    def fresh(base: str) -> str:
        asked.append(base)
        return f"{base}_7"

    moved = move(node("Slice", "x", starts=[0], ends=[2], axes=[1]), 9, 21, fresh)
    assert moved is not None
    assert asked == ["starts", "ends", "axes"]
    assert list(moved.nodes[0].input) == ["x", "starts_7", "ends_7", "axes_7"]
    assert [t.name for t in moved.constants] == ["starts_7", "ends_7", "axes_7"]
    assert [numpy_helper.to_array(t).tolist() for t in moved.constants] == [[0], [2], [1]]


def test_graphs_inside_and_names_stay() -> None:
    inner = helper.make_graph([node("ReduceMean", "x", axes=[0])], "inner", [], [])
    n = node("If", "c", name="branch", then_branch=inner, else_branch=inner)
    n.doc_string = "says something"
    moved = move(n, 13, 11, str)
    assert moved is not None
    assert moved.nodes[0] == n


def test_asking_is_cheap() -> None:
    nodes = [node("Conv", "x", "w"), node("LSTM", "x", "w", "r"), node("Resize", "x", "", "s"), node("Loop", "m", "c")]
    for n in nodes:
        fits(n, 13, 21)
    begin = time.perf_counter()
    for _ in range(1000):
        for n in nodes:
            fits(n, 13, 21)
    assert (time.perf_counter() - begin) / 4000 < 100e-6  # about one microsecond; a busy machine may take longer
