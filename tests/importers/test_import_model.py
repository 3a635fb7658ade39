"""Any valid model is taken, and what is not understood comes out as it went in."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from import_helpers import BOOL, FLOAT, INT64, STRING, info, model, node, operators, run, same, weight
from onnx import TensorProto, helper

import dmlc
from tests.rows import each_row
from tests.versions import needs_onnx_runtime

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def refused(m: onnx.ModelProto, **options: Any) -> dmlc.Diagnostic:
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(m, **options).to_onnx()
    return caught.value.diagnostics[0]


# --- the interface


def test_names_order_and_declared_types_stay() -> None:
    m = model(
        [node("Relu", ["second"], ["b/out:0"]), node("Neg", ["first"], ["a out"])],
        [info("second", ["batch", 3]), info("first", [None, "batch"])],
        [info("a out", ["q", "batch"]), info("b/out:0", None)],
    )
    out = same(m, {"second": X, "first": X})
    assert [i.SerializeToString() for i in out.graph.input] == [i.SerializeToString() for i in m.graph.input]
    assert [i.SerializeToString() for i in out.graph.output] == [i.SerializeToString() for i in m.graph.output]


def test_binding_a_dim_specialises_the_interface() -> None:
    m = model(
        [node("Shape", ["x"], ["s"]), node("Reshape", ["y", "s"], ["z"])],
        [info("x", ["batch", 3]), info("y", [None])],
        [info("z", ["batch", 3])],
    )
    out = dmlc.compile(m, bind={"batch": 2}).to_onnx()
    assert [d.dim_value for d in out.graph.output[0].type.tensor_type.shape.dim] == [2, 3]
    assert operators(out) == ["Reshape"]
    np.testing.assert_array_equal(run(out, {"x": X, "y": X.reshape(-1)})[0], X)


def test_an_unknown_dim_cannot_be_bound() -> None:
    m = model([node("Relu", ["x"], ["y"])], [info("x", ["batch", 3])], [info("y", None)])
    found = refused(m, bind={"bach": 2})
    assert found.code.id == "E0555"
    assert "batch" in (found.help or "")


def test_unused_inputs_and_inputs_as_outputs() -> None:
    m = model(
        [node("Identity", ["x"], ["i"]), node("Identity", ["i"], ["same"]), node("Relu", ["x"], ["dead"])],
        [info("x", [2, 3]), info("unused", [1])],
        [info("same", [2, 3])],
    )
    assert operators(same(m, {"x": X, "unused": X[0, :1]})) == []


def test_one_value_as_two_outputs() -> None:
    m = model(
        [node("Relu", ["x"], ["a"]), node("Identity", ["a"], ["b"])],
        [info("x", [2, 3])],
        [info("b", None), info("a", None)],
    )
    same(m, {"x": X})


# --- weights


def test_an_overridable_weight_is_an_input_with_a_default() -> None:
    m = model(
        [node("Add", ["x", "w"], ["y"])],
        [info("x", [2, 3]), info("w", [3])],
        [info("y", None)],
        [weight("w", [1, 2, 3])],
    )
    out = same(m, {"x": X})
    same(m, {"x": X, "w": np.ones(3, np.float32)})
    assert [t.name for t in out.graph.initializer] == ["w"]
    program = dmlc.compile(m)
    np.testing.assert_array_equal(program.run({"x": X})["y"], np.add(X, [1, 2, 3]))
    np.testing.assert_array_equal(program.run({"x": X, "w": np.zeros(3, np.float32)})["y"], X)
    np.testing.assert_array_equal(program.run({"x": X}, "reference")["y"], np.add(X, [1, 2, 3]))


def test_before_ir_4_listed_weights_are_constants() -> None:
    m = model(
        [node("Mul", ["x", "w"], ["y"])],
        [info("x", [2, 3]), info("w", [])],
        [info("y", None)],
        [weight("w", 1.0)],
        opset=8,
        ir=3,
    )
    out = same(m, {"x": X})
    assert operators(out) == []
    assert [i.name for i in out.graph.input] == ["x"]


def test_a_weight_is_passed_on_as_it_is_stored() -> None:
    stored = helper.make_tensor("w", FLOAT, [3], [1, 2, 3])  # in float_data, not in raw_data
    m = model(
        [node("Conv", ["x", "k"], ["c"]), node("Add", ["c", "w"], ["y"])], [info("x", [1, 1, 3])], [info("y", None)]
    )
    m.graph.initializer.extend([stored, weight("k", [[[2.0]]])])
    out = same(m, {"x": X[None, :1]})
    assert stored.SerializeToString() in [t.SerializeToString() for t in out.graph.initializer]


def test_sparse_weights_and_those_of_foreign_types_survive() -> None:
    values = weight("sw", [5.0])
    sparse = helper.make_sparse_tensor(values, weight("", [1], np.int64), [3])
    m = model(
        [node("Add", ["x", "sw"], ["y"]), node("Cast", ["half"], ["h"], to=FLOAT)],
        [info("x", [3])],
        [info("y", [3]), info("h", [2])],
        [helper.make_tensor("half", TensorProto.BFLOAT16, [2], [1.5, 2.5])],
        sparse_initializer=[sparse],
    )
    out = same(m, {"x": X[0]})
    assert len(out.graph.sparse_initializer) == 1


# --- what the language has no type for


def test_strings() -> None:
    m = model(
        [node("Equal", ["s", "t"], ["e"]), node("Cast", ["e"], ["f"], to=FLOAT), node("Identity", ["s"], ["copy"])],
        [info("s", [2], STRING)],
        [info("f", [2]), info("copy", [2], STRING)],
        [helper.make_tensor("t", STRING, [2], [b"a", b"\xff"])],
        opset=19,
        ir=9,
    )
    same(m, {"s": np.array(["a", "c"], dtype=object)})


def test_sequences_and_optionals() -> None:
    sequence = helper.make_tensor_sequence_value_info("seq", FLOAT, None)
    m = model(
        [
            node("SequenceConstruct", ["x", "x"], ["seq"]),
            node("ConcatFromSequence", ["seq"], ["c"], axis=0),
            node("ReduceSum", ["c"], ["r"]),
            node("Optional", ["x"], ["o"]),
            node("OptionalHasElement", ["o"], ["has"]),
        ],
        [info("x", [2, 3])],
        [sequence, info("r", None), info("has", [], BOOL)],
    )
    same(m, {"x": X})


def test_unknown_ranks_and_unknown_operators_in_foreign_domains() -> None:
    m = model(
        [
            node("Trilu", ["x"], ["t"]),
            node("Gelu", ["t"], ["g"], domain="com.microsoft"),
            node("Neg", ["g"], ["n"]),
            node("ReduceMax", ["n"], ["y"]),
        ],
        [info("x", None)],
        [info("y", None)],
        domains={"com.microsoft": 1},
    )
    out = same(m, {"x": X})
    assert {(o.domain, o.version) for o in out.opset_import} >= {("com.microsoft", 1)}
    custom = model(
        [node("Frob", ["x"], ["y"], domain="my.ops", level=3), node("Relu", ["y"], ["z"])],
        [info("x", [2])],
        [info("z", None)],
        domains={"my.ops": 7},
    )
    out = dmlc.compile(custom).to_onnx()
    assert out.graph.node[0] == custom.graph.node[0]
    assert ("my.ops", 7) in {(o.domain, o.version) for o in out.opset_import}


def test_quantised_models() -> None:
    m = model(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            node("MatMulInteger", ["q", "w", "z"], ["i"]),
            node("Cast", ["i"], ["f"], to=FLOAT),
            node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            node("ReduceSum", ["f"], ["y"]),
        ],
        [info("x", [2, 3])],
        [info("y", None), info("d", None)],
        [weight("s", 0.1), weight("z", 3, np.uint8), weight("w", [[1], [2], [3]], np.uint8)],
    )
    same(m, {"x": X})


# --- control flow


def _branch(name: str, nodes: list[onnx.NodeProto], out: str) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [], [info(out, None)])


def test_a_captured_value_is_a_use() -> None:
    """A chain may not merge over a value that a branch reads."""
    then = _branch("then", [node("Neg", ["mid"], ["t"])], "t")
    other = _branch("else", [node("Abs", ["mid"], ["e"])], "e")
    m = model(
        [
            node("ReduceSum", ["x", "a1"], ["mid"], keepdims=1),
            node("ReduceSum", ["mid", "a0"], ["sum"], keepdims=1),
            node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        ],
        [info("x", [2, 3]), info("c", [], BOOL)],
        [info("sum", None), info("y", None)],
        [weight("a0", [0], np.int64), weight("a1", [1], np.int64)],
    )
    for c in (True, False):
        out = same(m, {"x": X, "c": np.array(c)})
        assert operators(out).count("ReduceSum") == 2


def test_passes_enter_branches() -> None:
    chain = [
        node("ReduceMax", ["x"], ["m1"], axes=[1], keepdims=1),
        node("ReduceMax", ["m1"], ["t"], axes=[0], keepdims=1),
    ]
    other = _branch("else", [node("ReduceMin", ["x"], ["t"], keepdims=1)], "t")  # names of siblings may be equal
    m = model(
        [node("If", ["c"], ["y"], then_branch=_branch("then", chain, "t"), else_branch=other)],
        [info("x", [2, 3]), info("c", [], BOOL)],
        [info("y", None)],
    )
    for c in (True, False):
        out = same(m, {"x": X, "c": np.array(c)})
    inner = {a.name: [n.op_type for n in a.g.node] for a in out.graph.node[0].attribute}
    assert inner == {"then_branch": ["ReduceMax"], "else_branch": ["ReduceMin"]}


def test_a_branch_that_always_runs_is_inlined() -> None:
    then = _branch("then", [node("Neg", ["x"], ["t"])], "t")
    other = _branch("else", [node("Abs", ["x"], ["e"])], "e")
    m = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "one"], ["d"]),
            node("Equal", ["d", "three"], ["c"]),
            node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        ],
        [info("x", ["n", 3])],
        [info("y", None)],
        [weight("one", 1, np.int64), weight("three", 3, np.int64)],
    )
    assert operators(same(m, {"x": X})) == ["Neg"]


def test_loops_keep_their_state_and_see_outside() -> None:
    body = helper.make_graph(
        [
            node("Add", ["state", "outer"], ["next"]),
            node("ReduceSum", ["next"], ["part"], keepdims=0),
            node("Identity", ["cond"], ["going"]),
        ],
        "body",
        [info("i", [], INT64), info("cond", [], BOOL), info("state", [2, 3])],
        [info("going", [], BOOL), info("next", [2, 3]), info("part", [])],
    )
    m = model(
        [node("Relu", ["x"], ["outer"]), node("Loop", ["n", "", "x"], ["last", "parts"], body=body)],
        [info("x", [2, 3]), info("n", [], INT64)],
        [info("last", None), info("parts", None)],
    )
    same(m, {"x": X, "n": np.array(4)})


def test_scans_and_nested_branches() -> None:
    inner = _branch("inner", [node("Add", ["so_far", "item"], ["in"])], "in")
    skip = _branch("skip", [node("Identity", ["so_far"], ["sk"])], "sk")
    body = helper.make_graph(
        [
            node("ReduceMax", ["item"], ["top"], keepdims=0),
            node("Greater", ["top", "zero"], ["c"]),
            node("If", ["c"], ["next"], then_branch=inner, else_branch=skip),
            node("Identity", ["next"], ["out"]),
        ],
        "body",
        [info("so_far", [3]), info("item", [3])],
        [info("next", [3]), info("out", [3])],
    )
    m = model(
        [node("Scan", ["start", "x"], ["end", "all"], body=body, num_scan_inputs=1)],
        [info("x", [2, 3])],
        [info("end", None), info("all", None)],
        [weight("start", [0, 0, 0]), weight("zero", 0.0)],
    )
    same(m, {"x": X})


# --- functions, texts, names


def test_functions_are_inlined() -> None:
    body = helper.make_function(
        "my",
        "Twice",
        ["a"],
        ["b"],
        [node("ReduceSum", ["a"], ["s"], keepdims=1), node("ReduceSum", ["s"], ["b"], keepdims=1)],
        [helper.make_opsetid("", 17)],
    )
    m = model([node("Twice", ["x"], ["y"], domain="my")], [info("x", [2, 3])], [info("y", None)], domains={"my": 1})
    m.functions.append(body)
    assert operators(same(m, {"x": X})) == ["ReduceSum"]


def test_texts_of_the_model_survive() -> None:
    m = model(
        [node("Conv", ["x", "w"], ["mid"], name="c", doc_string="why"), node("Exp", ["mid"], ["y"])],
        [info("x", [1, 1, 3])],
        [info("y", None)],
        [weight("w", [[[1.0]]])],
        value_info=[info("mid", [1, 1, 3])],
        doc_string="of the graph",
    )
    m.doc_string, m.domain, m.model_version = "of the model", "org.example", 12
    helper.set_model_props(m, {"author": "me", "dmlc.version": "old", "dmlc.ledger.01234567": "old"})
    out = same(m, {"x": X[None, :1]})
    assert (out.doc_string, out.domain, out.model_version) == ("of the model", "org.example", 12)
    assert out.graph.doc_string == "of the graph"
    assert {p.key: p.value for p in out.metadata_props if not p.key.startswith("dmlc.")} == {"author": "me"}
    assert [facts["version"] for facts in dmlc.model_facts(out)] == [dmlc.__version__]
    assert "old" not in [p.value for p in out.metadata_props]
    assert [v.name for v in out.graph.value_info] == ["mid"]
    assert out.graph.node[0].doc_string == "why"


def test_odd_names() -> None:
    m = model(
        [
            node("ReduceSum", ["é x", "ax"], ["a b"], name="ReduceSum_0", keepdims=1),
            node("ReduceSum", ["a b", "ax0"], ["ReduceSum_1"], name="", keepdims=1),
            node("Relu", ["ReduceSum_1"], ["const_0"], name="output_const_0"),
        ],
        [info("é x", [2, 3])],
        [info("const_0", None)],
        [weight("ax", [1], np.int64), weight("ax0", [0], np.int64)],
    )
    same(m, {"é x": X})


def test_nodes_out_of_order_are_sorted() -> None:
    m = model([node("Relu", ["a"], ["y"]), node("Neg", ["x"], ["a"])], [info("x", [2, 3])], [info("y", None)])
    assert operators(dmlc.compile(m).to_onnx()) == ["Neg", "Relu"]


# --- broken models


@each_row(
    ("nodes", "words"),
    [
        ([node("Relu", ["nowhere"], ["y"])], "nowhere"),
        ([node("Relu", ["x"], ["z"])], "output y"),
        ([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])], "two values"),
        (
            [node("Add", ["x", "b"], ["a"], name="A"), node("Relu", ["a"], ["b"], name="B"), node("Neg", ["b"], ["y"])],
            "A",
        ),
    ],
)
def test_broken_graphs_are_refused(nodes: list[onnx.NodeProto], words: str) -> None:
    found = refused(model(nodes, [info("x", [2, 3])], [info("y", None)]))
    assert found.code.id == "E0431"
    assert words in found.message


def test_what_is_no_model_is_refused(tmp_path: Any) -> None:
    assert refused(onnx.ModelProto()).code.id == "E0430"
    path = tmp_path / "m.onnx"
    path.write_bytes(b"PK\x03\x04 not a model")
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(path)
    assert caught.value.diagnostics[0].code.id == "E0430"


# --- opsets


@each_row("opset", range(7, 24))
def test_every_opset_is_taken(opset: int) -> None:
    m = model(
        [
            node("Dropout", ["x"], ["d"]),
            node("Softmax", ["d"], ["s"], axis=1),
            node("Flatten", ["s"], ["f"]),
            node("Gemm", ["f", "w", "b"], ["g"]),
            node("ReduceL2", ["g"], ["n"], keepdims=1),
            node("Div", ["g", "n"], ["y"]),
        ],
        [info("x", [2, 3])],
        [info("y", None)],
        [weight("w", np.eye(3)), weight("b", [1, 2, 3])],
        opset=opset,
        ir=3 if opset < 9 else 8,
    )
    if opset < 9:
        m.graph.input.extend([info("w", [3, 3]), info("b", [3])])
    feeds = {"x": X}
    for old, new in zip(run(m, feeds), run(dmlc.compile(m).to_onnx(), feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=2e-6)


def test_a_carried_node_is_converted() -> None:
    m = model(
        [node("Upsample", ["x"], ["u"], mode="nearest", scales=[1.0, 1.0, 2.0, 2.0]), node("ReduceMax", ["u"], ["y"])],
        [info("x", [1, 1, 2, 3])],
        [info("y", None)],
        opset=7,
    )
    out = same(m, {"x": X.reshape(1, 1, 2, 3)})
    assert operators(out) == ["Resize", "ReduceMax"]
    assert out.opset_import[0].version == 21


def test_the_highest_opset_that_fits_is_kept() -> None:
    """A group normalization with a scale for each group has no form from opset 21 on."""
    m = model(
        [node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=1)],
        [info("x", [1, 2, 3]), info("s", [1]), info("b", [1])],
        [info("y", None)],
        opset=18,
    )
    program = dmlc.compile(m)
    assert program.opset == 20
    assert any("opset 20, not 21" in sentence for sentence in program.artifact("onnx").report)
    assert refused(m, opset=21).code.id == "E0501"


def test_a_hardmax_over_several_axes_keeps_the_opset_that_says_it_in_one_node() -> None:
    m = model([node("Hardmax", ["x"], ["y"], axis=1)], [info("x", [2, 3, 4])], [info("y", None)], opset=11, ir=6)
    x = np.array([1, 2, 2] * 8, np.float32).reshape(2, 3, 4)
    out = same(m, {"x": x})
    assert (operators(out), out.opset_import[0].version) == (["Hardmax"], 11)
    assert dmlc.compile(m, opset=13).opset == 13
    np.testing.assert_array_equal(run(dmlc.compile(m, opset=13).to_onnx(), {"x": x})[0], run(m, {"x": x})[0])


@needs_onnx_runtime(1, 24, "does not load opset 24")
def test_a_model_ahead_of_the_target_keeps_an_opset_that_says_it() -> None:
    m = model(
        [node("Swish", ["x"], ["s"]), node("ReduceMax", ["s", "a1"], ["m"]), node("ReduceMax", ["m", "a0"], ["y"])],
        [info("x", [2, 3])],
        [info("y", None)],
        [weight("a0", [0], np.int64), weight("a1", [1], np.int64)],
        opset=24,
        ir=10,
    )
    program = dmlc.compile(m, target="onnx")
    assert program.opset == 24
    assert operators(program.to_onnx()) == ["Swish", "ReduceMax"]
    assert any("opset 24, not 21" in sentence for sentence in program.artifact("onnx").report)
    np.testing.assert_allclose(run(program.to_onnx(), {"x": X})[0], run(m, {"x": X})[0], rtol=2e-6)


@each_row(("dtype", "op", "opset"), [(np.int8, "Add", 13), (np.int32, "Max", 11), (np.uint8, "Min", 11)])
def test_types_that_came_later_are_widened_at_an_older_opset(dtype: Any, op: str, opset: int) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    m = model([node(op, ["a", "b"], ["y"])], [info("a", [3], kind), info("b", [3], kind)], [info("y", [3], kind)])
    out = dmlc.compile(m, target="onnx", opset=opset).to_onnx()
    onnx.checker.check_model(out)
    a, b = np.array([1, 2, 100], dtype), np.array([3, 1, 27], dtype)
    np.testing.assert_array_equal(
        run(out, {"a": a, "b": b})[0], {"Add": a + b, "Max": np.maximum(a, b), "Min": np.minimum(a, b)}[op]
    )


def test_a_model_that_no_later_opset_can_say_is_left_as_it_is() -> None:
    m = model(
        [
            node("Dropout", ["x"], ["d", "mask"]),
            node("ReduceMax", ["d"], ["m"], axes=[1], keepdims=1),
            node("ReduceMax", ["m"], ["y"], axes=[0], keepdims=1),
        ],
        [info("x", [2, 3])],
        [info("y", None), info("mask", None)],
        opset=9,
    )
    program = dmlc.compile(m)
    assert (program.opset, operators(program.to_onnx())) == (9, ["Dropout", "ReduceMax", "ReduceMax"])
    assert any("nothing is rewritten" in sentence for sentence in program.artifact("onnx").report)
    feeds = {"x": X.reshape(2, 3)}
    np.testing.assert_array_equal(run(program.to_onnx(), feeds)[0], run(m, feeds)[0])
    assert refused(m, opset=13).code.id == "E0501"


def test_ifs_with_other_branches_are_not_one() -> None:
    def pair(value: float) -> onnx.GraphProto:
        constant = node("Constant", [], ["o"], value=weight("", np.float32(value)))
        return helper.make_graph([constant], "b", [], [info("o", [])])

    m = model(
        [
            node("If", ["c"], ["a"], then_branch=pair(1), else_branch=pair(2)),
            node("If", ["c"], ["b"], then_branch=pair(3), else_branch=pair(4)),
        ],
        [info("c", [], BOOL)],
        [info("a", None), info("b", None)],
    )
    for c in (True, False):
        same(m, {"c": np.array(c)})


def test_inlined_branches_may_have_nodes_of_one_name() -> None:
    def branch(op: str) -> onnx.GraphProto:
        return helper.make_graph([node(op, ["x"], ["o"], name="n")], "b", [], [info("o", None)])

    m = model(
        [
            node("If", ["c"], ["y"], then_branch=branch("Softplus"), else_branch=branch("Neg")),
            node("If", ["c"], ["z"], then_branch=branch("Softsign"), else_branch=branch("Neg")),
        ],
        [info("x", [2, 3])],
        [info("y", None), info("z", None)],
        [weight("c", True, bool)],
    )
    same(m, {"x": X})


def test_a_default_of_a_type_that_the_language_lacks() -> None:
    m = model(
        [node("Gather", ["s", "i"], ["y"])],
        [info("i", [2], INT64), info("s", [3], STRING)],
        [info("y", None, STRING)],
        [helper.make_tensor("s", STRING, [3], [b"a", b"b", b"c"])],
    )
    same(m, {"i": np.array([2, 0])})


def test_one_value_named_twice_in_the_outputs() -> None:
    same(model([node("Relu", ["x"], ["y"])], [info("x", [2, 3])], [info("y", [2, 3]), info("y", [2, 3])]), {"x": X})


def test_a_flattened_hardmax_of_symbolic_sizes() -> None:
    m = model([node("Hardmax", ["x"], ["y"], axis=0)], [info("x", ["a", "b", 1])], [info("y", None)], opset=12)
    same(m, {"x": X[:, :, None]})


def test_a_loop_without_a_condition_at_an_older_opset() -> None:
    m = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 23]> g (float[3] x, int64 n) => (float[K, 3] z) {
        z = Loop (n, "") <body = b (int64 i, bool c) => (bool d, float[3] y) { d = Identity(c) y = Softmax(x) }> }""")
    out = same(m, {"x": X[0], "n": np.array(2)})
    onnx.checker.check_model(out, full_check=True)
    (loop,) = [node for node in out.graph.node if node.op_type == "Loop"]
    assert [*loop.input] == ["n", ""]


def test_the_declared_shape_of_a_branch_that_always_runs_stays() -> None:
    m = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[3, 1] x) => (float[2, 3, 1] y)
        <bool c = {1}, int64 n = {1}, float[2] items = {1, 2}> {
        v = If (c) <then_branch = t () => (float[3, 1] a) {
            a = Loop (n, "", x) <body = b (int64 i, bool go, float[3, 1] s) => (bool goes, float[] r) {
                r = Neg (s) goes = Identity (go) }> },
            else_branch = e () => (float[3, 1] z) { z = Neg (x) }>
        y = Scan (items) <body = s (float i) => (float[] o) { o = Exp (v) }, num_scan_inputs = 1> }""")
    out = same(m, {"x": X[:1].T.copy()})
    assert [d.dim_value for d in out.graph.value_info[0].type.tensor_type.shape.dim] == [3, 1]
