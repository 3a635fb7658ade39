"""``decompose``: each operator goes, the numbers stay, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, helper, parser
from passes.decompose.decompose_models import MODELS, WITHOUT_KERNEL, model, runs_here

import dmlc
from dmlc.api.decomposition import stayed
from dmlc.cli.main import main
from dmlc.diagnostics import DmlcError
from dmlc.onnx_schema.nested import all_nodes
from dmlc.passes.decompose import OPERATORS
from tests.rows import each_row
from tests.versions import NEEDS_EXACT_LAYER_NORM
from tools.model_checks import run, session
from tools.result_comparison import differences

CASES = [
    pytest.param(operator, made, id=f"{operator}-{number}")
    for operator, models in MODELS.items()
    for number, made in enumerate(models)
]
#: Elements of an input's open size.
_OPEN = 4


def feeds_of(made: ModelProto) -> dict[str, np.ndarray]:
    """Seeded data: normal numbers, small integers."""
    rng = np.random.default_rng(7)
    out = {}
    for info in made.graph.input:
        shape = [dim.dim_value or _OPEN for dim in info.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        data = rng.integers(-5, 6, shape) if dtype.kind == "i" else rng.normal(0.5, 2, shape)
        out[info.name] = data.astype(dtype)
    return out


def operators(made: ModelProto) -> set[str]:
    return {f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in all_nodes(made.graph.node)}


def check_numbers(original: ModelProto, made: ModelProto) -> None:
    feeds = feeds_of(original)
    assert differences(run(session(original), feeds), run(session(made), feeds)) == []


def test_every_operator_has_a_model() -> None:
    assert MODELS.keys() | WITHOUT_KERNEL.keys() == set(OPERATORS)


@each_row(("operator", "made"), [case for case in CASES if runs_here(*case.values)])
def test_operator_goes_and_numbers_stay(operator: str, made: ModelProto) -> None:
    program = dmlc.decompose(made, [operator])
    found = program.to_onnx()
    assert operator in operators(made)
    assert operator not in operators(found)
    assert {entry.rewrite_class for entry in program.ledger} <= {"exact", "reassociates"}
    check_numbers(made, found)


@each_row(("operator", "made"), CASES)
def test_without_names_all_go(operator: str, made: ModelProto) -> None:
    program = dmlc.decompose(made)
    assert stayed(program) == ()
    assert not operators(program.to_onnx()) & set(OPERATORS)


@pytest.mark.parametrize("pair", WITHOUT_KERNEL["com.microsoft.GroupNorm"], ids=["plain", "activation"])
def test_group_norm_of_the_last_axis(pair: tuple[ModelProto, ModelProto]) -> None:
    made, same = pair
    found = dmlc.decompose(made, ["GroupNorm"]).to_onnx()
    assert "com.microsoft.GroupNorm" not in operators(found)
    check_numbers(same, found)


# --- what stays


def two_operators() -> ModelProto:
    return model("float[N, 8] x, float[8] s, float[8] b", "n = LayerNormalization(x, s, b) y = Softmax(n)")


def test_other_nodes_stay_as_the_model_has_them() -> None:
    made = two_operators()
    made.graph.node[1].name = "last"
    made.graph.node[1].doc_string = "kept"
    made.graph.node.insert(0, helper.make_node("Relu", ["x"], ["r"], name="first"))
    made.graph.node[1].input[0] = "r"
    found = dmlc.decompose(made, ["LayerNormalization"]).to_onnx()
    assert [n for n in found.graph.node if n.op_type == "Softmax"] == [made.graph.node[2]]
    assert found.graph.node[0] == made.graph.node[0]
    assert [i.name for i in found.graph.input] == ["x", "s", "b"]
    assert found.opset_import == made.opset_import
    again = dmlc.decompose(found, ["LayerNormalization"])
    assert again.ledger == ()


def test_values_keep_their_names() -> None:
    found = dmlc.decompose(two_operators(), ["LayerNormalization"]).to_onnx()
    assert "n" in {name for node in found.graph.node for name in node.output}


def test_large_means_lose_no_digits() -> None:
    """E[x * x] - E[x] * E[x] would be far off."""
    made = two_operators()
    feeds = {"x": np.float32([[1000, 1001, 1002, 1003, 1000, 1001, 1002, 1003]]), "s": np.ones(8, np.float32)}
    feeds["b"] = np.zeros(8, np.float32)
    found = run(session(dmlc.decompose(made).to_onnx()), feeds)
    centred = feeds["x"].astype(np.float64) - feeds["x"].mean(dtype=np.float64)
    normal = centred / np.sqrt((centred**2).mean() + 1e-5)
    powers = np.exp(normal)
    np.testing.assert_allclose(found["y"], powers / powers.sum(), rtol=1e-5)


def test_softmax_of_large_numbers_does_not_overflow() -> None:
    made = model("float[N, 8] x", "y = Softmax(x) z = ReduceLogSumExp(x)", output="float y, float z")
    found = run(session(dmlc.decompose(made).to_onnx()), {"x": np.full((1, 8), 1000, np.float32)})
    np.testing.assert_allclose(found["y"], 0.125)
    np.testing.assert_allclose(found["z"], 1000 + np.log(8), rtol=1e-6)


@each_row("opset", [8, 9, 10, 11, 12])
@each_row("kind", [TensorProto.DOUBLE, TensorProto.FLOAT])
def test_log_sum_exp_at_older_opsets(opset: int, kind: int) -> None:
    """Kernels of Clip take f64 from opset 12 on."""
    x = helper.make_tensor_value_info("x", kind, [2, 3])
    y = helper.make_tensor_value_info("y", kind, [2, 1])
    graph = helper.make_graph([helper.make_node("ReduceLogSumExp", ["x"], ["y"], axes=[1])], "g", [x], [y])
    original = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    made = dmlc.decompose(original).to_onnx()
    assert "ReduceLogSumExp" not in operators(made)
    assert ("Clip" in operators(made)) is (kind == TensorProto.FLOAT or opset >= 12)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    feeds = {"x": np.array([[1, 2, 3], [-np.inf, -np.inf, 700]], dtype)}
    wanted, given = (run(session(m), feeds)["y"] for m in (original, made))
    np.testing.assert_allclose(given, wanted, rtol=4 * np.finfo(dtype).eps)  # a sum of three powers and a logarithm


def test_graphs_inside_nodes_are_decomposed() -> None:
    made = parser.parse_model("""<ir_version: 8, opset_import: ["": 21]> g (bool c, float[3, 4] x) => (float[3, 4] y) {
        y = If (c) <then_branch = t () => (float[3, 4] p) { p = Softmax (x) },
                    else_branch = e () => (float[3, 4] q) { q = Relu (x) }>
    }""")
    found = dmlc.decompose(made, ["Softmax"]).to_onnx()
    assert "Softmax" not in operators(found)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for truth in (True, False):
        feeds = {"c": np.array(truth), "x": x}
        assert differences(run(session(made), feeds), run(session(found), feeds)) == []


@NEEDS_EXACT_LAYER_NORM
def test_round_trip_gives_the_first_nodes() -> None:
    made = two_operators()
    for target in ("directml", "cpu", "onnx"):
        first = dmlc.compile(made, target=target).to_onnx()
        again = dmlc.compile(dmlc.decompose(made).to_onnx(), target=target).to_onnx()
        assert [n.op_type for n in again.graph.node] == [n.op_type for n in first.graph.node], target


def test_parts_stay_parts_at_level_basic() -> None:
    """ONNX Runtime fuses a layer norm again, unless its optimizer is turned off."""
    found = dmlc.decompose(two_operators(), ["LayerNormalization"]).to_onnx()
    assert "LayerNormalization" not in _optimized(found, ort.GraphOptimizationLevel.ORT_ENABLE_BASIC, [])
    level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert "LayerNormalization" not in _optimized(found, level, ["LayerNormFusion"])


def _optimized(made: ModelProto, level: ort.GraphOptimizationLevel, without: list[str]) -> set[str]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.log_severity_level = 4
        options.optimized_model_filepath = str(Path(folder) / "out.onnx")
        ort.InferenceSession(made.SerializeToString(), options, ["CPUExecutionProvider"], disabled_optimizers=without)
        return operators(onnx.load(options.optimized_model_filepath))


# --- names and errors


def test_a_name_without_a_domain_means_every_domain() -> None:
    made = MODELS["com.microsoft.Gelu"][0]
    assert operators(dmlc.decompose(made, ["Gelu"]).to_onnx()) & {"com.microsoft.Gelu", "Gelu"} == set()
    assert len(dmlc.decompose(made, ["com.microsoft.Gelu"]).ledger) == 1
    assert dmlc.decompose(MODELS["Gelu"][0], ["com.microsoft.Gelu"]).ledger == ()


@pytest.mark.parametrize("ops", [["Conv"], ["LayerNorm"], ["Softmax", "Sofmax"], [""], []])
def test_a_name_that_cannot_be_is_refused_with_those_that_can(ops: list[str]) -> None:
    with pytest.raises(DmlcError) as caught:
        dmlc.decompose(two_operators(), ops)
    assert (caught.value.diagnostics[0].code.id, caught.value.exit_code) == ("E0556", 2)
    if ops:
        assert "LayerNormalization" in caught.value.diagnostics[0].help


def head_model(inputs: str, call: str, output: str = "float y") -> ModelProto:
    """A node of ``com.microsoft``."""
    return model(inputs, call.replace("= ", "= com.microsoft.", 1), own=True, output=output)


QKV = "float[2, 3, 8] q, float[2, 4, 8] k, float[2, 4, 8] v"
ROTARY = "float[1, 3, 8] x, int64[1, 3] i, float[6, 4] c, float[6, 4] s"
#: Nodes that cannot be decomposed, and words of the reason.
STAYS = {
    "diagonal": (model("float[3, 3] a", 'y = Einsum<equation = "ii->i">(a)'), "twice"),
    "training": (
        model(
            "float[2, 3, 4] x, float[3] s, float[3] b, float[3] m, float[3] v",
            "y, p, q = BatchNormalization<training_mode = 1>(x, s, b, m, v)",
        ),
        "trains",
    ),
    "training up to opset 13": (
        model("float[2, 3, 4] x, float[3] s, float[3] b, float[3] m, float[3] v",
              "y, p, q, r, t = BatchNormalization(x, s, b, m, v)", opset=9, output="float y, float p"),
        "trains",
    ),
    "statistics of each element": (
        model("float[2, 3, 4] x, float[3, 4] s, float[3, 4] b, float[3, 4] m, float[3, 4] v",
              "y = BatchNormalization<spatial = 0>(x, s, b, m, v)", opset=7),
        "channel",
    ),
    "past": (
        head_model(
            "float[1, 1, 8] q, float[1, 2, 4, 4] past, float[1, 2, 4, 4] more",
            "y, pk, pv = MultiHeadAttention<num_heads = 2>(q, q, q, , , , past, more)",
            "float y, float pk, float pv",
        ),
        "past",
    ),
    "present": (
        head_model(QKV, "y, pk, pv = MultiHeadAttention<num_heads = 2>(q, k, v)", "float y, float pk, float pv"),
        "are used",
    ),
    "mask of one axis": (
        head_model(f"{QKV}, int32[2] m", "y = MultiHeadAttention<num_heads = 2>(q, k, v, , m)"),
        "its mask has 1 axes",
    ),
    "packed query": (
        head_model("float[2, 3, 2, 3, 4] q", "y = MultiHeadAttention<num_heads = 2>(q)"),
        "its query is packed",
    ),
    "rotary": (
        head_model(
            "float[2, 4, 8] x, float[8, 24] w, float[24] b", "y = Attention<num_heads = 2, do_rotary = 1>(x, w, b)"
        ),
        "its query is packed",
    ),
    "packed key": (
        head_model(
            "float[2, 3, 8] q, float[2, 4, 2, 2, 4] k", "y = MultiHeadAttention<num_heads = 2>(q, k)"
        ),
        "its key or value is packed",
    ),
    "key by head and value not": (
        head_model(
            "float[2, 3, 8] q, float[2, 2, 4, 4] k, float[2, 4, 8] v", "y = MultiHeadAttention<num_heads = 2>(q, k, v)"
        ),
        "its key or value is packed",
    ),
    "interleaved": (head_model(ROTARY, "y = RotaryEmbedding<interleaved = 1>(x, i, c, s)"), "interleaved"),
    "packed batch": (head_model(ROTARY, "y = RotaryEmbedding<is_packed_batching = 1>(x, i, c, s)"), "packed"),
    "part of the head": (
        head_model(ROTARY, "y = RotaryEmbedding<num_heads = 1, rotary_embedding_dim = 4>(x, i, c, s)"),
        "a part of the head",
    ),
    "scaled": (head_model(ROTARY, "y = RotaryEmbedding<scale = 2.0>(x, i, c, s)"), "scales"),
    "a head alone": (head_model(ROTARY.replace("1, 3, 8", "3, 8"), "y = RotaryEmbedding(x, i, c, s)"), "2 axes"),
    "offset": (
        head_model(ROTARY.replace("int64[1, 3] i", "int64[1] i"), "y = RotaryEmbedding(x, i, c, s)"),
        "offset",
    ),
    "statistics of f16": (
        model("float16[2, 8] x, float16[8] s, float16[8] b", "y = LayerNormalization<stash_type = 10>(x, s, b)",
              output="float16 y"),
        "statistics",
    ),
    "statistics of groups": (
        model("float16[2, 6, 4, 4] x, float16[6] s, float16[6] b",
              "y = GroupNormalization<num_groups = 3, stash_type = 10>(x, s, b)", output="float16 y"),
        "statistics",
    ),
    "groups with a second result": (
        parser.parse_model("""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
            g (float[2, 6, 4] x, float[6] s) => (float[2, 6, 4] y, float[2, 6, 4] z)
            { y, z = com.microsoft.GroupNorm <groups = 3, channels_last = 0> (x, s, s) }"""),
        "its further results are used",
    ),
    "channels without elements": (
        model("float[2, 6] x, float[6] s, float[6] b", "y = GroupNormalization<num_groups = 3>(x, s, b)"),
        "its operand has 2 axes",
    ),
    "rows of numbers": (
        model("float[6] x, float[1] s, float[1] b, float[1] m, float[1] v", "y = BatchNormalization(x, s, b, m, v)"),
        "channel",
    ),
    "open rank": (
        model("float[4, 4] x, int64[n] s", "r = Reshape(x, s) y = Gelu(r)"),
        "not known",
    ),
    "axes of the model's user": (
        model("float[4, 4] x, int64[1] a", "y = ReduceL2(x, a)"),
        "operands such as axes, are not known",
    ),
}  # fmt: skip


@each_row("name", STAYS)
def test_a_node_that_cannot_be_is_an_error_if_it_is_named(name: str) -> None:
    made, reason = STAYS[name]
    operator = next(iter(operators(made) & set(OPERATORS)))
    with pytest.raises(DmlcError) as caught:
        dmlc.decompose(made, [operator])
    assert caught.value.diagnostics[0].code.id == "E0509"
    message = caught.value.diagnostics[0].message
    assert operator in message
    assert reason in message
    program = dmlc.decompose(made)
    assert len(stayed(program)) == 1
    assert operator in operators(program.to_onnx())


def test_an_equation_has_a_term_for_each_operand() -> None:
    with pytest.raises(DmlcError, match="the numbers of terms and of operands differ"):
        dmlc.decompose(model("float[3, 3] a", 'y = Einsum<equation = "ij,jk->ik">(a)'))


# --- sources and the command line


def test_a_program_is_compiled_first() -> None:
    source = dmlc.Source(
        "model m(x: f32[N, 8]) -> (y) {\n    y = softmax(relu(x), axes=[1])\n    return y\n}\n", "m.dml"
    )
    g = dmlc.Graph("m")
    g.output("y", dmlc.softmax(dmlc.relu(g.input("x", dtype="float32", shape=("N", 8))), axes=(1,)))
    for written in (source, g):
        found = dmlc.decompose(written, ["Softmax"]).to_onnx()
        assert operators(found) == {"Relu", "ReduceMax", "Sub", "Exp", "ReduceSum", "Div"}


def test_the_ledger_names_the_operators() -> None:
    document = dmlc.decompose(two_operators(), ["Softmax"]).ledger_document()
    assert document["options"]["decompose"] == ["Softmax"]
    assert len(document["rewrites"]) == 1


def test_verify_compares_with_the_model() -> None:
    assert dmlc.decompose(two_operators()).verify(5).ok


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(two_operators(), "m.onnx")
    assert main(["decompose", "m.onnx", "--ops", "LayerNormalization,Softmax"]) == 0
    assert "m.decomposed.onnx: 1 LayerNormalization, 1 Softmax decomposed" in capsys.readouterr().err
    assert not operators(onnx.load("m.decomposed.onnx")) & {"LayerNormalization", "Softmax"}
    assert main(["decompose", "m.onnx", "--ops", "Softmax", "-o", "n.onnx", "--format", "json", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["decomposed"], document["stayed"], document["class"]) == ({"Softmax": 1}, [], "reassociates")
    assert main(["decompose", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(OPERATORS)


@pytest.mark.parametrize(
    ("call", "text", "words", "rewrite_class"),
    [
        ("y = Relu(x)", "nothing decomposed, 1 node, ", "", "exact"),
        ("y = Hardmax(x)", "1 Hardmax decomposed, ", "same bits, ", "exact"),
        ("h = Hardmax(x) y = Softmax(h)", "1 Hardmax, 1 Softmax decomposed, ", "rounding may change, ", "reassociates"),
    ],
)
def test_class_is_that_of_the_rewrites(
    call: str, text: str, words: str, rewrite_class: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model("float[N, 8] x", call), path)
    assert main(["decompose", str(path), "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert text in captured.err
    assert words in captured.err
    assert json.loads(captured.out)["class"] == rewrite_class


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["m.onnx", "--ops", "Conv"], 2, '"Conv" cannot be decomposed'),
        (["m.onnx", "--ops", "?; operators"], 2, '"?; operators" cannot be decomposed'),
        (["m.onnx", "-o", "m.onnx"], 2, "OUT is SRC"),
        (["m.onnx", "-o", "m.py"], 2, "OUT is an .onnx file"),
        (["-"], 2, "give an output file"),
        ([], 2, "SRC is needed"),
        (["none.onnx"], 2, "none.onnx"),
    ],
)
def test_wrong_usage(
    words: list[str],
    code: int,
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(two_operators(), "m.onnx")
    assert main(["decompose", *words]) == code
    assert text in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]


def test_stays_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(STAYS["diagonal"][0], tmp_path / "m.onnx")
    assert main(["decompose", str(tmp_path / "m.onnx"), "--format", "json"]) == 0
    captured = capsys.readouterr()
    (row,) = json.loads(captured.out)["stayed"]
    assert row["operator"] == "Einsum"
    assert "twice" in row["reason"]
    assert "stays" in captured.err


def test_hardmax_takes_the_first_of_equal_elements() -> None:
    made = model("float[N, 3] x", "y = Hardmax(x)")
    found = run(session(dmlc.decompose(made).to_onnx()), {"x": np.float32([[1, 2, 2], [0, 0, 0]])})
    np.testing.assert_array_equal(found["y"], [[0, 1, 0], [1, 0, 0]])


def test_f16_is_computed_in_f32() -> None:
    made = model("float16[N, 8] x", "y = Softmax(x)", output="float16 y")
    found = dmlc.decompose(made).to_onnx()
    types = {n.op_type: n for n in found.graph.node}
    assert next(a.i for a in types["Cast"].attribute) in (TensorProto.FLOAT, TensorProto.FLOAT16)
    assert [n.op_type for n in found.graph.node].count("Cast") == 2
