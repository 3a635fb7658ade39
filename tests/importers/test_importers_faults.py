"""Models that ONNX Runtime refuses to load are refused, with the node's name; those that it loads are not."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

import dmlc
from dmlc.cli.main import main
from dmlc.diagnostics import DmlcError
from tests.kit import refusal
from tests.rows import each_row
from tests.versions import ONNX_RUNTIME
from tools.broken_nodes import compared

X = "float[2,3] x"


def model(body: str, inputs: str = X, opset: int = 17, result: str = "float y", more: str = "") -> ModelProto:
    text = f'<ir_version: 8, opset_import: ["": {opset}{more}]> g ({inputs}) => ({result}) {{ {body} }}'
    made = parser.parse_model(text)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


IMAGE = "float[1,2,8,8] x"
#: (name of the node, inputs, body)
BROKEN: list[tuple[str, str, str]] = [
    ("dilations", IMAGE, "[dilations] y = MaxPool<kernel_shape=[2,2], dilations=[1,1,1]>(x)"),
    ("strides", IMAGE, "[strides] y = MaxPool<kernel_shape=[2,2], strides=[1]>(x)"),
    ("pads", IMAGE, "[pads] y = AveragePool<kernel_shape=[2,2], pads=[1,1]>(x)"),
    ("kernel", IMAGE, "[kernel] y = MaxPool<kernel_shape=[2,2,2]>(x)"),
    ("conv", IMAGE + ", float[4,2,3,3] w", "[conv] y = Conv<kernel_shape=[3,3], strides=[1,1,1]>(x, w)"),
    ("flat", "float[3] x, float[4,2,3,3] w", "[flat] y = Conv(x, w)"),
    ("sizes", "float[2,3] x, float[2,4] z", "[sizes] y = Add(x, z)"),
    ("later", "float[2,3] x, float[3,2] z", "r = Relu(x) t = Transpose(z) s = Exp(z) [later] y = Mul(r, s)"),
    ("truth", "float[2,3] x, float[2,4] z", "[truth] c = Greater(x, z) y = Cast<to=1>(c)"),
    ("choice", "bool[2,5] c, float[2,3] x", "[choice] y = Where(c, x, x)"),
    ("join", "float[2,3] x, float[3,3] z", "[join] y = Concat<axis=1>(x, z)"),
    ("ranks", "float[2,3] x, float[3] z", "[ranks] y = Concat<axis=0>(x, z)"),
    ("end", X, "[end] y = Concat<axis=2>(x, x)"),
    ("product", "float[2,3] x, float[4,5] z", "[product] y = MatMul(x, z)"),
    ("gemm", "float[2,3] x, float[4,5] z", "[gemm] y = Gemm(x, z)"),
    ("vector", "float[2,3,4] x, float[4,5] z", "[vector] y = Gemm(x, z)"),
    ("perm", X, "[perm] y = Transpose<perm=[0,1,2]>(x)"),
    ("twice", X, "[twice] y = Transpose<perm=[0,0]>(x)"),
    ("soft", X, "[soft] y = Softmax<axis=2>(x)"),
    ("flatten", X, "[flatten] y = Flatten<axis=3>(x)"),
    ("arg", X, "[arg] i = ArgMax<axis=2>(x) y = Cast<to=1>(i)"),
    ("gather", "float[2,3] x, int64[1] i", "[gather] y = Gather<axis=2>(x, i)"),
    ("mean", X, "[mean] y = ReduceMean<axes=[2]>(x)"),
    ("squeeze", X, "a = Constant<value = int64[1] {1}>() [squeeze] y = Squeeze(x, a)"),
    ("beyond", X, "a = Constant<value = int64[1] {5}>() [beyond] y = Unsqueeze(x, a)"),
    ("split", X, "s = Constant<value = int64[2] {1, 3}>() [split] y, z = Split<axis=1>(x, s)"),
    ("expand", X, "s = Constant<value = int64[2] {2, 4}>() [expand] y = Expand(x, s)"),
    ("mixed", "float[2,3] x, int64[2,3] z", "[mixed] y = Add(x, z)"),
    ("text", "string[2] s", "[text] y = Relu(s)"),
    ("logic", X, "[logic] c = And(x, x) y = Cast<to=1>(c)"),
    ("floats", "float[2,3] x, float[1] i", "[floats] y = Gather(x, i)"),
    ("to", X, "[to] y = Cast(x)"),
    ("axis", X, "[axis] y = Concat(x, x)"),
    ("spaces", "float[1,4,2,2] x", "[spaces] y = DepthToSpace(x)"),
    ("unknown", X, "[unknown] y = Relu<alpha=1.0>(x)"),
    ("kind", X, "[kind] y = LeakyRelu<alpha=1>(x)"),
    ("few", X, "[few] y = Add(x)"),
    ("many", X, "[many] y = Relu(x, x)"),
    ("results", X, "[results] y, z = Relu(x)"),
    ("pooled", IMAGE, '[pooled] y = MaxPool<kernel_shape=[2,2], auto_pad="SAME">(x)'),
    ("moded", IMAGE, '[moded] y = DepthToSpace<blocksize=1, mode="dcr">(x)'),
    ("activated", "float[3,2,4] x, float[1,9,4] w, float[1,9,3] r",
     '[activated] y = GRU<hidden_size=3, activations=["Tanh", "Foo"]>(x, w, r)'),
    ("single", "float[3,2,4] x, float[1,9,4] w, float[1,9,3] r",
     '[single] y = GRU<hidden_size=3, activations=["Tanh"]>(x, w, r)'),
    ("oneway", "float[3,2,4] x, float[2,3,4] w, float[2,3,3] r",
     '[oneway] y = RNN<hidden_size=3, direction="bidirectional", activations=["Tanh"]>(x, w, r)'),
    ("inside", "bool c, float[2,3] x, float[2,4] z",
     "y = If(c) <then_branch = t () => (float[2,3] a) { [inside] a = Add(x, z) }, "
     "else_branch = e () => (float[2,3] b) { b = Relu(x) }>"),
]  # fmt: skip


#: Faults with which ONNX Runtime before 1.28 loads a model; it fails in each run.
LOADED = {"gemm"} if ONNX_RUNTIME < (1, 28) else set[str]()


@each_row(("name", "inputs", "body"), BROKEN, ids=[name for name, *_ in BROKEN])
def test_a_model_that_does_not_load_is_refused(name: str, inputs: str, body: str) -> None:
    made = model(body, inputs)
    assert name in LOADED or refusal(made), "ONNX Runtime loads it"
    with pytest.raises(DmlcError) as caught:
        dmlc.compile(made, target="onnx").require_sound()
    assert {d.code.id for d in caught.value.diagnostics} == {"E0431"}
    (message,) = [d.message for d in caught.value.diagnostics]
    assert name in message


#: Models that load, though something is unusual about them.
FINE: dict[str, ModelProto] = {
    "other count": model("s = Constant<value = int64[2] {2, 4}>() y = Reshape(x, s)"),
    "blocks": model("y = DepthToSpace<blocksize=2>(x)", "float[1,3,2,2] x"),
    "letters": model("r = Exp(x) y = Einsum<equation=\"ij,jk->ik\">(r, z)", "float[2,3] x, float[4,3] z"),
    "dilations": model("y = MaxPool<kernel_shape=[2,2], dilations=[1,1]>(x)", IMAGE),
    "no word": model('y = MaxPool<kernel_shape=[2,2], auto_pad="">(x)', IMAGE),
    "more activations": model('y = RNN<hidden_size=3, activations=["Tanh", "Relu"]>(x, w, r)',
                              "float[3,2,4] x, float[1,3,4] w, float[1,3,3] r"),
    "broadcast": model("y = Add(x, z)", "float[2,3] x, float[1,3] z"),
    "open": model("y = Add(x, z)", "float[N,3] x, float[M,3] z"),
    "negative axis": model("y = Softmax<axis=-2>(x)"),
    "axis at the end": model("y = Flatten<axis=2>(x)"),
    "kept shape": model("s = Constant<value = int64[2] {0, -1}>() y = Reshape(x, s)"),
    "matrix by vector": model("y = MatMul(x, z)", "float[2,3] x, float[3] z"),
    "empty": model("y = Concat<axis=0>(x, z)", "float[2,3] x, float[0,3] z"),
    "computed": model("s = Shape(x) y = Reshape(z, s)", "float[2,3] x, float[7] z"),
    "fed shape": model("y = Reshape(x, s)", "float[2,3] x, int64[2] s"),
    "contrib": model("h = com.microsoft.FusedMatMul(x, z) y = Relu(h)", "float[2,3] x, float[3,4] z",
                     more=', "com.microsoft": 1'),
    "contrib of ONNX's domain": model("y = SimplifiedLayerNormalization<axis=-1>(x, s)", "float[2,3] x, float[3] s"),
    "unsorted": model("y = Exp(h) h = Relu(x)"),
    "in a branch": model(
        "y = If(c) <then_branch = t () => (float[2,3] a) { a = Add(x, z) }, "
        "else_branch = e () => (float[2,3] b) { b = Relu(x) }>", "bool c, float[2,3] x, float[1,3] z"),
    "in a loop": model(
        "n = Constant<value = int64 {3}>() c = Constant<value = bool {1}>() y = Loop(n, c, x) <body = b "
        "(int64 i, bool k, float[2,3] v) => (bool k2, float[9,9] w) { k2 = Identity(k) w = Add(v, x) }>"),
}  # fmt: skip


def declared(shape: list[int]) -> ModelProto:
    """A value in between that is declared with another shape than it has."""
    made = model("h = Relu(x) y = Add(h, x)")
    made.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, shape))
    return made


#: A function of ONNX for which ONNX Runtime has a kernel, and infers nothing.
FINE |= {
    "function": model("c = GreaterOrEqual(x, z) y = Cast<to=1>(c)", "float[2,3] x, float[3] z"),
    "function of other sizes": model("c = GreaterOrEqual(x, z) y = Cast<to=1>(c)", "float[2,3] x, float[2,4] z", 15),
}
FINE |= {"wrong size": declared([2, 4]), "wrong rank": declared([2])}
#: ONNX's inference takes axes whose rank it does not know for axes that are left out.
FINE |= {
    "axes of unknown rank": model(
        "p = Constant<value_ints = [0, 1]>() f = Constant<value_int = 0>() "
        "a = Scan(items)<body = b (float i) => (int64[] o) { o = Constant<value_ints = [2]>() }, num_scan_inputs = 1> "
        'b = Gather<axis = 0>(a, f) y = Pad(x, p, "", b)',
        "float[1,1,1] x, float[2] items",
        18,
    )
}


@each_row("name", [name for name in FINE if name != "function of other sizes"])
@each_row("target", ["onnx", "directml"])
def test_a_model_that_loads_is_not(name: str, target: str) -> None:
    assert refusal(FINE[name]) == ""
    assert dmlc.compile(FINE[name], target=target).load_check().errors == ()


@pytest.mark.emits_invalid("its sizes do not broadcast, in the source either")
@each_row("target", ["onnx", "directml"])
def test_a_model_that_loads_at_its_own_opset_alone_is_refused(target: str) -> None:
    """ONNX Runtime loads it at the opset of the source alone, and runs it at none."""
    found = FINE["function of other sizes"]
    assert refusal(found) == ""
    program = dmlc.compile(found, target=target)
    with pytest.raises(DmlcError, match=r"E0554.*GreaterOrEqual c: Incompatible dim.*as it is, at opset 15"):
        program.require_sound()


def test_a_policy_of_sizes_beside_scales_is_refused() -> None:
    """An attribute that came with opset 18."""
    node = '[policy] y = Resize<keep_aspect_ratio_policy="WORD">(x, "", s)'
    made = [model(node.replace("WORD", word), f"{IMAGE}, float[4] s", 18) for word in ("stretch", "not_larger")]
    assert refusal(made[0]) == "" != refusal(made[1])
    dmlc.compile(made[0])
    with pytest.raises(DmlcError, match=r"E0431.*Resize policy: a keep_aspect_ratio_policy is for sizes"):
        dmlc.compile(made[1])


def test_each_faulty_node_is_reported() -> None:
    body = "[one] a = Add(x, z) [two] b = MatMul(x, z) c = Exp(a) y = Add(c, b)"
    with pytest.raises(DmlcError) as caught:
        dmlc.compile(model(body, "float[2,3] x, float[2,4] z"))
    messages = [d.message for d in caught.value.diagnostics]
    assert [name in message for name, message in zip(("one", "two"), messages, strict=True)] == [True, True]


def test_an_unknown_word_is_refused_with_the_nearest_one() -> None:
    """A graph inside a node and a function, whose call gives the word, too."""
    node = '[near] y = Resize<mode="lineer">(x, "", s)'
    branches = "then_branch = t () => (float y) { NODE }, else_branch = e () => (float b) { b = Relu(x) }"
    inside = f"r = If(c) <{branches.replace('NODE', node)}>"
    for made in (
        model(node, f"{IMAGE}, float[4] s"),
        model(inside, f"{IMAGE}, float[4] s, bool c", result="float r"),
        CALLED,
    ):
        with pytest.raises(DmlcError) as caught:
            dmlc.compile(made, target="numpy")
        (found,) = caught.value.diagnostics
        assert found.message == 'node Resize near: its attribute mode must be nearest, linear or cubic, not "lineer"'
        assert found.help == 'did you mean "linear"?'


CALLED = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[1,2,8,8] x, float[4] s) => (float y) '
    '{ y = own.scaled<way="lineer">(x, s) } '
    '<domain: "own", opset_import: ["": 17]> scaled <way> (x, s) => (y) '
    '{ [near] y = Resize<mode: string = @way>(x, "", s) }'
)


def test_fixed_dims_are_checked() -> None:
    made = model("[sum] y = Add(x, z)", "float[N,3] x, float[M,3] z")
    dmlc.compile(made, bind={"N": 4, "M": 4})
    with pytest.raises(DmlcError, match="sum"):
        dmlc.compile(made, bind={"N": 4, "M": 5})


def test_overridable_defaults_are_not_facts() -> None:
    made = model("y = Reshape(x, s)", "float[2,3] x, int64[2] s")
    made.graph.initializer.append(helper.make_tensor("s", TensorProto.INT64, [2], [2, 4]))
    assert refusal(made) == ""
    assert dmlc.compile(made, target="onnx").load_check().errors == ()


def test_check_refuses_what_does_not_load(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"{tmp_path}/m.onnx"
    onnx.save(model("[pool] y = MaxPool<kernel_shape=[2,2], dilations=[1,1,1]>(x)", IMAGE), path)
    for verb in (["check", path], ["compile", path, "-o", f"{tmp_path}/o.onnx"]):
        assert main(verb) == 1
        assert "E0431" in (said := "".join(capsys.readouterr())) and "pool" in said


@pytest.mark.emits_invalid("it compiles broken models")
def test_what_runs_is_not_refused_and_what_does_not_load_is() -> None:
    """Node tests broken in one way each: rank, size, element type, attribute, operands (a fixed part of them)."""
    right, over, missed = compared(one_in=240)
    assert (over, missed) == ([], [])
    assert right > 100


def test_a_number_that_is_no_element_type_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = model("y = Relu(x)")
    made.graph.input[0].type.tensor_type.elem_type = 77
    onnx.save(made, tmp_path / "m.onnx")
    with pytest.raises(DmlcError, match=r"E0431.*x is of element type 77, which ONNX does not have"):
        dmlc.compile(tmp_path / "m.onnx")
    for words, code in ((["inspect"], 0), (["verify"], 1), (["bisect"], 1)):  # these look at the file as it is
        assert main([*words, str(tmp_path / "m.onnx")]) == code
    assert "I0901" not in "".join(capsys.readouterr())


def test_one_operand_is_counted_as_one() -> None:
    with pytest.raises(DmlcError, match=r"E0431.*node Relu y: it has 2 inputs, and takes 1"):
        dmlc.compile(model("y = Relu(x, x)"), strict=True)
