"""Interfaces, inputs that do not work, models that do not run: what the verdict says of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from model_pairs import BF16, BOOL, F32, F64, I32, I64, chain, floats, ints, model, node, reductions, verify_models
from onnx import TensorProto, helper, numpy_helper, parser

from dmlc.runtime.hosts import WORKER
from tests.rows import each_row

IDENTITY = chain("Identity")


def test_the_same_seed_gives_the_same_verdict() -> None:
    pair = reductions("ReduceSum", (1,), (0,)), reductions("ReduceSum", (0, 1))
    assert verify_models(*pair, seed=5) == verify_models(*pair, seed=5)
    assert verify_models(*pair, seed=5).to_json() == verify_models(*pair, seed=5).to_json()


def test_json_and_text() -> None:
    verdict = verify_models(IDENTITY, chain("Abs"), inputs=3, seed=2)
    found = json.loads(json.dumps(verdict.to_json()))
    assert (found["verdict"], found["status"], found["ok"], found["seed"]) == ("different", "different", False, 2)
    assert found["inputs"] == {"asked": 3, "ran": 3, "skipped": 0}
    first = found["outputs"][0]["first_difference"]
    assert (first["input"], first["pattern"], first["of"]) == (0, "normal", 6)
    assert first["original"] == -first["result"]
    assert verdict.case is not None
    assert verdict.case["x"][tuple(first["index"])] == np.float32(first["original"])
    text = verdict.to_text()
    assert text.splitlines()[0] == "different: y on 3 of 3 inputs, seed 2"
    assert "became" in text


@each_row(
    ("result", "words"),
    [
        (
            model(node("Identity", ["x"], ["z"]), outputs=("z",)),
            "the outputs are y in the original and z in the result",
        ),
        (
            model(node("Identity", ["w"], ["y"]), inputs={"w": (F32, (2, 3))}),
            "the inputs are x in the original and w in the result",
        ),
        (chain("Identity", dtype=F64), "input x is float32 in the original and float64 in the result"),
        (chain("Identity", x=(3, 2)), "input x has the shape [2, 3] in the original and [3, 2] in the result"),
        (chain("Identity", x=(2, 3, 1)), "input x has the shape [2, 3] in the original and [2, 3, 1] in the result"),
        (model(node("Nothing", ["x"], ["y"])), "the result: ONNX Runtime refuses"),
    ],
)
def test_interfaces_that_changed(result: onnx.ModelProto, words: str) -> None:
    verdict = verify_models(IDENTITY, result)
    assert verdict.status == "different"
    assert words in verdict.to_text()


@each_row("factors", ["1e30, 1e30, 1e-30, 1e-30", "1e-30, 1e-30, 1e15, 1e15"])
def test_products_leave_the_range_in_one_order(factors: str) -> None:
    """The products of the rows are infinite and 0, or 0 and a number; those of the columns are numbers."""
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[2, 2] x) => (float[1, 1] y)
    <float[2, 2] c = {{{factors}}}, float low = {{1.0}}, float high = {{2.0}}> {{
        n = Clip(x, low, high)
        k = Mul(n, c)
        p = ReduceProd<axes = [0]>(k)
        y = ReduceProd<axes = [1]>(p)
    }}"""
    turned = text.replace("[0]>(k)", "[1]>(k)").replace("[1]>(p)", "[0]>(p)")
    assert verify_models(parser.parse_model(text), parser.parse_model(turned)).status != "different"


def test_f16_that_a_runtime_keeps_in_f32() -> None:
    """All numbers are 0 in f16, and the first is the largest; in f32 another is."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[4, 8] x) => (float16[4, 8] y) <float small = {1e-9}> {
        n = Mul(x, small)
        h = Cast<to = 10>(n)
        y = Hardmax(h)
    }"""
    rounded = text.replace("y = Hardmax(h)", "k = Identity(h)\ny = Hardmax(k)")
    verdict = verify_models(parser.parse_model(text), parser.parse_model(rounded))
    assert verdict.status in ("equal", "within"), verdict.to_text()
    wrong = rounded.replace("Hardmax(k)", "Hardmax<axis = 0>(k)")
    assert verify_models(parser.parse_model(text), parser.parse_model(wrong), inputs=4).status == "different"


@pytest.mark.parametrize("ends", [("Softmax", "Hardmax<axis = 0>"), ("Exp", "Log")])
def test_f16_that_a_runtime_keeps_in_f32_across_one_node(ends: tuple[str, str]) -> None:
    """ONNX Runtime has no f16 kernel for the ends, and computes a single Identity between them in f32 as well."""
    first, last = ends
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float16[4, 8] x) => (float16[4, 8] y) {{
        n = {first}(x)
        y = {last}(n)
    }}"""
    rounded = text.replace("y =", "k = Identity(n)\nm = Identity(k)\ny =").replace("(n)\n    }", "(m)\n    }")
    verdict = verify_models(parser.parse_model(text), parser.parse_model(rounded))
    assert verdict.status == "within", verdict.to_text()
    wrong = rounded.replace("m = Identity(k)", "m = Neg(k)")
    assert verify_models(parser.parse_model(text), parser.parse_model(wrong), inputs=4).status == "different"


def test_large_sums_of_i64_are_rounded_by_a_runtime() -> None:
    """ONNX Runtime from 1.27 on gives an even mean of one odd number beyond 2^53."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (int64[2, 1] x) => (int64[2, 1] y)
    <int64[2, 1] c = {1, 3}, int64 large = {9007199254740992}> {
        n = Mul(x, c)
        m = Clip(n, large)
        k = Add(m, c)
        y = ReduceMean<axes = [1]>(k)
    }"""
    same = text.replace("ReduceMean<axes = [1]>", "Identity")
    assert verify_models(parser.parse_model(text), parser.parse_model(same)).status != "different"


@pytest.mark.parametrize("op", ["", "Constant"])
def test_a_nan_of_a_weight_must_stay(op: str) -> None:
    """Nothing overflows where a weight is NaN, so that numbers instead are wrong, on each input."""

    def with_weight(second: float) -> onnx.ModelProto:
        text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y) { y = Add(x, w) }"""
        made, weight = parser.parse_model(text), numpy_helper.from_array(np.array([1, second, 3], np.float32), "w")
        if op:
            made.graph.node.insert(0, helper.make_node(op, [], ["w"], value=weight))
        else:
            made.graph.initializer.append(weight)
        return made

    verdict = verify_models(with_weight(np.nan), with_weight(2))
    assert verdict.outputs[0].counts == (("different", verdict.inputs),)
    assert verify_models(with_weight(np.nan), with_weight(np.nan)).ok


def test_the_order_of_outputs_counts() -> None:
    nodes = [node("Neg", ["x"], ["a"]), node("Abs", ["x"], ["b"])]
    verdict = verify_models(model(*nodes, outputs=("a", "b")), model(*nodes, outputs=("b", "a")))
    assert "outputs are a, b in the original and b, a in the result" in verdict.reason


def test_an_original_that_cannot_run_is_not_verified() -> None:
    broken = model(node("Nothing", ["x"], ["y"]))
    verdict = verify_models(broken, broken)
    assert (verdict.status, verdict.ok) == ("not verified", False)
    assert "the original: ONNX Runtime refuses" in verdict.reason
    never = model(node("Reshape", ["x", "s"], ["y"]), x=(2, 3), constants={"s": ints(5, 7)})
    verdict = verify_models(never, never)
    assert verdict.status == "not verified"
    assert verdict.reason.startswith("the original does not run: ")


def test_inputs_that_the_original_fails_on_are_skipped() -> None:
    """A count of repeats that is not negative: many integers are none."""
    nodes = [node("Div", ["c", "s"], ["y"]), node("ReduceSum", ["x", "a"], ["s"])][::-1]
    constants = {"a": ints(0), "c": np.array([7], np.int32)}
    division = model(*nodes, dtype=I32, x=(3,), constants=constants)
    verdict = verify_models(division, division)
    assert verdict.ok
    assert verdict.skipped
    assert verdict.ran + len(verdict.skipped) == 12
    assert "the original fails" in verdict.to_text()  # with an error, or by ending its process


def test_sizes_are_found() -> None:
    """Reshape to rows of 4: only some sizes fit."""
    rows = model(node("Reshape", ["x", "s"], ["y"]), x=("N", "M"), constants={"s": ints(-1, 4, 4)})
    assert verify_models(rows, rows).status == "equal"
    one = model(
        node("Add", ["a", "b"], ["y"]),
        inputs={"a": (F32, (None, "N")), "b": (F32, (None, "N + 0"))},
    )
    assert verify_models(one, one).status == "equal"


def test_unknown_ranks_and_sizes_below_zero() -> None:
    image = model(node("GlobalMaxPool", ["x"], ["y"]), x=None)
    assert verify_models(image, image).ok
    dynamic = chain("Identity", x=("?", "?"))
    dynamic.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert verify_models(dynamic, dynamic).status == "equal"


def test_a_bound_dim_has_the_size_of_the_result() -> None:
    verdict = verify_models(chain("Identity", x=("N", 3)), chain("Identity", x=(5, 3)))
    assert verdict.status == "equal"
    other = model(node("Identity", ["x"], ["y"]), x=(5, "M"))
    assert verify_models(chain("Identity", x=("N", 3)), other).status == "equal"


def test_indices_stay_in_range() -> None:
    inputs = {"table": (F32, (5, 2)), "i": (I64, ("N",))}
    nodes = [node("Cast", ["i"], ["j"], to=I32), node("Gather", ["table", "j"], ["y"])]
    gathered = model(*nodes, inputs=inputs)
    verdict = verify_models(gathered, gathered)
    assert verdict.status == "equal"
    assert not verdict.skipped
    weights = {"table": np.zeros((7, 2), np.float32)}
    looked_up = model(*nodes, inputs={"i": (I64, (4,))}, constants=weights)
    assert not verify_models(looked_up, looked_up).skipped


def test_integers_that_are_shapes() -> None:
    shaped = model(node("Expand", ["x", "s"], ["y"]), inputs={"x": (F32, (1, 1)), "s": (I64, (2,))})
    verdict = verify_models(shaped, shaped)
    assert verdict.ok, verdict.to_text()


def test_types_that_numpy_lacks() -> None:
    nodes = [node("Cast", ["x"], ["y"], to=BF16), node("Cast", ["x"], ["f"], to=TensorProto.FLOAT8E4M3FN)]
    narrow = model(*nodes, outputs=("y", "f"), opset=19)
    assert verify_models(narrow, narrow).status == "equal"
    wrong = model(
        node("Neg", ["x"], ["n"]), node("Cast", ["n"], ["y"], to=BF16), nodes[1], outputs=("y", "f"), opset=19
    )
    assert verify_models(narrow, wrong, inputs=4).status == "different"
    fed = chain(("Cast", {"to": F32}), "Neg", ("Cast", {"to": BF16}), dtype=BF16)
    assert verify_models(fed, fed).status == "equal"
    assert verify_models(fed, chain("Identity", dtype=BF16), inputs=4).status == "different"


def test_strings_bools_sequences() -> None:
    inputs = {"t": (TensorProto.STRING, (4,)), "b": (BOOL, (4,)), "x": (F32, (4,))}
    nodes = [
        node("Where", ["b", "t", "u"], ["y"]),
        node("SequenceConstruct", ["x", "x"], ["s"]),
    ]
    words = {"u": np.array(["?"], object)}
    texts = model(*nodes, inputs=inputs, constants=words, outputs=("y", "s"))
    assert verify_models(texts, texts).status == "equal"
    nodes[0] = node("Where", ["b", "u", "t"], ["y"])
    assert verify_models(texts, model(*nodes, inputs=inputs, constants=words, outputs=("y", "s"))).status == "different"
    listed = model(node("ConcatFromSequence", ["l"], ["y"], axis=0), inputs={})
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(F32, (2, 2)))
    listed.graph.input.append(helper.make_value_info("l", kind))
    assert verify_models(listed, listed).status == "equal"


def test_a_folded_default_is_found() -> None:
    """An initializer that is listed as an input can be overridden; a rewrite must not take it for a constant."""
    fed = {"x": (F32, (2, 3)), "c": (F32, (3,))}
    constants = {"c": np.ones(3, np.float32)}
    open_default = model(node("Mul", ["x", "c"], ["y"]), inputs=fed, constants=constants)
    assert verify_models(open_default, open_default).status == "equal"
    folded = model(node("Identity", ["x"], ["y"]), inputs=fed, constants=constants)
    assert verify_models(open_default, folded).status == "different"
    for old in (open_default, folded):
        old.ir_version = 3  # nothing can be overridden
    assert verify_models(open_default, folded).status == "equal"


def test_control_flow_is_run_and_looked_into() -> None:
    def branches(op: str) -> onnx.ModelProto:
        def branch(name: str) -> onnx.GraphProto:
            return helper.make_graph([node(op, ["x"], ["r"], keepdims=0)], name, [], [onnx.ValueInfoProto(name="r")])

        choose = node("If", ["b"], ["y"], then_branch=branch("then"), else_branch=branch("else"))
        return model(choose, inputs={"x": (F32, (2, 3)), "b": (BOOL, ())})

    assert verify_models(branches("ReduceMax"), branches("ReduceMax")).status == "equal"
    assert verify_models(branches("ReduceMax"), branches("ReduceMin")).status == "different"


def test_external_data(tmp_path: Path) -> None:
    weights = np.arange(12, dtype=np.float32).reshape(3, 4)
    (tmp_path / "w.bin").write_bytes(weights.tobytes())
    apart = model(node("MatMul", ["x", "w"], ["y"]), constants={"w": weights})
    tensor = apart.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    path = tmp_path / "apart.onnx"
    path.write_bytes(apart.SerializeToString())
    inside = model(node("MatMul", ["x", "w"], ["y"]), constants={"w": weights})
    assert verify_models(path, inside).status == "equal"
    assert verify_models(apart, str(path), folder=tmp_path).status == "equal"
    numpy_helper.to_array(inside.graph.initializer[0])
    inside.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights + 1, "w"))
    assert verify_models(path, inside).status == "different"


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "cannot be read" in verify_models(tmp_path / "none.onnx", IDENTITY).reason


def test_a_kernel_that_ends_its_process_costs_an_input() -> None:
    """The lowest integer divided by -1 is SIGFPE on x86."""
    nodes = [node("Mul", ["x", "m"], ["p"]), node("Sub", ["p", "l"], ["low"]), node("Div", ["low", "d"], ["y"])]
    constants = {
        "m": np.array(0, np.int32),
        "l": np.array(2**31 - 1, np.int32),
        "d": np.array(-1, np.int32),
    }
    fine = model(*nodes, dtype=I32, constants=constants)
    assert verify_models(fine, fine, inputs=1).ok
    nodes.insert(2, node("Sub", ["low", "one"], ["lowest"]))
    nodes[3] = node("Div", ["lowest", "d"], ["y"])
    fatal = model(*nodes, dtype=I32, constants={**constants, "one": np.array(1, np.int32)})
    verdict = verify_models(fatal, fatal, inputs=1)
    if verdict.status == "not verified":  # on other processors it is defined
        assert "ended its process" in verdict.reason
        other = verify_models(fine, fatal, inputs=1)
        assert other.status == "different"
        assert "ended its process" in other.reason
    assert verify_models(IDENTITY, IDENTITY).status == "equal"


def test_a_run_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKER, "limit", 0.3)
    body = helper.make_graph(
        [node("Identity", ["c"], ["c2"]), node("Sin", ["v"], ["v2"])],
        "body",
        [
            helper.make_tensor_value_info("i", I64, ()),
            helper.make_tensor_value_info("c", BOOL, ()),
            helper.make_tensor_value_info("v", F32, (2, 3)),
        ],
        [helper.make_tensor_value_info("c2", BOOL, ()), helper.make_tensor_value_info("v2", F32, (2, 3))],
    )
    constants = {"n": np.array(2**62, np.int64), "on": np.array(True)}
    endless = model(node("Loop", ["n", "on", "x"], ["y"], body=body), constants=constants)
    WORKER.start()
    verdict = verify_models(endless, endless, inputs=1)
    assert verdict.status == "not verified"
    assert "took longer" in verdict.reason


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match="no class of rewrites"):
        verify_models(IDENTITY, IDENTITY, allowed="fast")
    with pytest.raises(ValueError, match="at least one"):
        verify_models(IDENTITY, IDENTITY, inputs=0)


def test_constants_alone() -> None:
    fixed = model(node("Identity", ["c"], ["y"]), inputs={}, constants={"c": floats(1.0, 2.0)})
    assert verify_models(fixed, fixed).status == "equal"
    other = model(node("Identity", ["c"], ["y"]), inputs={}, constants={"c": floats(1.0, 3.0)})
    assert verify_models(fixed, other).status == "different"


def test_over_nothing_the_original_may_fail() -> None:
    """An axis of size 0 has no index: where the original fails nothing is compared, nor where it has a number
    that nothing defines and the result fails."""
    index = model(node("ArgMax", ["x"], ["y"], axis=1), x=(3, "N"))
    assert verify_models(index, index).status == "equal"
    nothing = model(node("ArgMax", ["x"], ["y"], axis=1), x=(3, 0))
    assert verify_models(nothing, nothing).status == "not verified"
    counted = model(
        node("ReduceSum", ["x", "a"], ["s"]), node("Cast", ["s"], ["y"], to=I64), x=(3, 0), constants={"a": ints(1)}
    )
    verdict = verify_models(counted, nothing, inputs=3)
    assert (verdict.status, len(verdict.skipped)) == ("not verified", 3)
    assert "a reduction over nothing, which ONNX does not define" in verdict.to_text()
    some = model(
        node("ReduceSum", ["x", "a"], ["s"]), node("Cast", ["s"], ["y"], to=I64), x=(3, 2), constants={"a": ints(1)}
    )
    cut = [node("Slice", ["x", "o", "o", "a"], ["z"]), node("ArgMax", ["z"], ["y"], axis=1)]
    verdict = verify_models(some, model(*cut, x=(3, 2), constants={"o": ints(0), "a": ints(1)}), inputs=3)
    assert verdict.status == "different"
    assert "the result fails" in verdict.reason


def test_a_sequence_may_leave_the_range_too() -> None:
    """A sequence's parts are excused as tensors are, and nothing else is."""

    def parts(*ops: tuple[str, str]) -> onnx.ModelProto:
        nodes = [node(op, ["x" if i == 0 else "h", by], ["h" if i == 0 else "t"]) for i, (op, by) in enumerate(ops)]
        made = model(*nodes, node("SequenceConstruct", ["t", "x"], ["y"]), x=(3, 5), constants={"c": floats(2.0**-128)})
        made.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(F32, (3, 5))))
        return made

    squares = parts(("Mul", "x"), ("Mul", "c"))
    verdict = verify_models(squares, parts(("Mul", "c"), ("Mul", "x")))
    assert verdict.ok, verdict.to_text()
    assert "overflowed" in verdict.to_text()
    assert verify_models(squares, parts(("Mul", "c"), ("Add", "x"))).status == "different"


def looked_up(nodes: str, element: str = "string") -> str:
    made = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 3]> m ({element}[N, 2] x, float[M, 1] z) => (float y) {{
            {nodes}
        }}
    """)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return verify_models(made, made, inputs=6).status


ENCODER = "= ai.onnx.ml.OneHotEncoder"
FIRST = "zero = Constant <value_ints = [0]> () a = ai.onnx.ml.ArrayFeatureExtractor (x, zero)"


@each_row(
    ("nodes", "element"),
    [
        (f'y {ENCODER} <cats_strings = ["red", "blue"], zeros = 0> (x)', "string"),
        (f"y {ENCODER} <cats_int64s = [17, 40], zeros = 0> (x)", "int64"),
        (f'{FIRST} y {ENCODER} <cats_strings = ["red", "blue"], zeros = 0> (a)', "string"),
        (
            f'p {ENCODER} <cats_strings = ["red", "blue"], zeros = 0> (x) '
            f'q {ENCODER} <cats_strings = ["blue", "green"], zeros = 0> (x) y = Concat <axis = 2> (p, q)',
            "string",
        ),
    ],
)
def test_categories_that_an_encoder_must_know_are_fed(nodes: str, element: str) -> None:
    assert looked_up(nodes, element) == "equal"


def test_known_and_unknown_words_are_fed_where_both_are_taken() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 3]> m (string[4, 3] x) => (float[4, 3] y) {
            y = ai.onnx.ml.LabelEncoder <keys_strings = ["red", "blue"], values_floats = [VALUES]> (x)
        }
    """
    known, other = (onnx.parser.parse_model(text.replace("VALUES", values)) for values in ("1.0, 2.0", "1.0, 3.0"))
    assert verify_models(known, known, inputs=6).status == "equal"
    verdict = verify_models(known, other, inputs=6)
    assert verdict.status == "different" and verdict.case is not None
    assert {"blue"} < set(verdict.case["x"].reshape(-1).tolist())
