"""Target ``directml-only``: integers by the kernels of the device, an artifact that says so, the reference for it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from msgspec.structs import replace
from onnx import TensorProto, defs, helper, parser
from onnx_cases import Bench, build_part, declared

import dmlc
from dmlc.cli.main import main
from dmlc.diagnostics import DmlcError, Source
from dmlc.ir import DTYPE_BY_NAME, DTYPES, FLOATS, DType, Operation
from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.constant import CONSTANT
from dmlc.ops.reduce import REDUCE_SUM
from dmlc.targets import load_target
from dmlc.targets.capabilities import Capabilities
from dmlc.targets.provider import provider
from tests.rows import each_row
from tools.model_checks import without_metadata

OPERATIONS = [op for op in ALL_OPERATIONS if op is not CONSTANT]


def compiled(text: str, target: str = "directml-only", **options: object) -> dmlc.Program:
    return dmlc.compile(Source("m.dml", text), target=target, **options)  # type: ignore[arg-type]


def operators(program: dmlc.Program) -> Counter[str]:
    return Counter(node.op_type for node in program.to_onnx().graph.node if node.op_type != "Constant")


def of(dtype: str, call: str) -> str:
    return f"model m(x: {dtype}[4, 8], b: {dtype}[4, 8]) -> (y) {{\n    return {call}\n}}\n"


#: dtypes, the call, the one node.
ONE_NODE = [
    ("i32 i64 u32 u64", "reduce_sum(x, axes=[1])", "ReduceSum"),
    ("i32 i64 u32 u64", "reduce_sum(x, axes=[0, 1])", "ReduceSum"),
    ("i32 i64 u32 u64 f32", "reduce_prod(x, axes=[1])", "ReduceProd"),
    ("i32 i64 u32 u64", "reduce_sum_square(x, axes=[1])", "ReduceSumSquare"),
    ("i32 i64", "reduce_l1(x, axes=[1])", "ReduceL1"),
    ("i64 u32 u64", "reduce_max(x, axes=[1])", "ReduceMax"),
    ("i32", "x ** b", "Pow"),
    ("i64 u32 u64", "min(x, b)", "Min"),
    ("i64", "clip(x, min=1, max=9)", "Clip"),
    ("i64", "sign(x)", "Sign"),
    ("u32 u64 i32 i64", "cumsum(x, axis=1)", "CumSum"),
    ("u64 u16 u32", "argmax(x, axes=[1], dtype=i64)", "ArgMax"),
]


@each_row(("dtypes", "call", "node"), ONE_NODE, ids=[f"{row[2]} {row[0]}" for row in ONE_NODE])
def test_one_node_on_the_device(dtypes: str, call: str, node: str) -> None:
    for dtype in dtypes.split():
        program = compiled(of(dtype, call))
        assert operators(program) == {node: 1}, dtype
        assert program.verify(6).ok
        (row,) = program.placement().nodes
        assert row.where == "provider"


@pytest.mark.parametrize("call", ["x ** 3", "x ** 0", "x ** 1"])
def test_constant_powers_stay_products(call: str) -> None:
    """The provider makes CONSTANT_POW of them, which takes no integers."""
    program = compiled(of("i32", call))
    assert "Pow" not in operators(program)
    assert program.verify(6).ok


def test_directml_keeps_what_the_cpu_computes_too() -> None:
    program = compiled(of("i64", "reduce_sum(x, axes=[1])"), "directml")
    assert "ReduceSum" not in operators(program)
    numbers = np.full((4, 8), 2**61, np.int64)
    found = program.run({"x": numbers, "b": numbers}, backend="cpu")
    np.testing.assert_array_equal(found["y"], numbers.sum(axis=1, keepdims=True))


def test_types_of_the_language_that_the_device_lacks_are_widened_as_before() -> None:
    for dtype, call in (("i16", "reduce_sum(x, axes=[1])"), ("i8", "reduce_prod(x, axes=[0])"), ("u32", "x ** b")):
        program = compiled(of(dtype, call))
        assert operators(program)["Cast"] >= 2
        assert program.verify(6).ok


#: Floats mean the same for both targets, so that one program of all of them shows that nothing differs.
FAMILIES = {"floats": FLOATS, "others": [dtype for dtype in DTYPES if not dtype.is_float]}


def calls(op: Operation, dtypes: list[DType], target: str) -> dmlc.Program:
    """A program with a sixth of the calls of each dtype; the next dtype has others. Raises ``DmlcError``."""
    cases = Bench()
    for dtype in dtypes:
        build_part(cases, op, dtype, DTYPES.index(dtype), 6)
    cases.outputs = [(f"{number} {name}", value) for number, (name, value) in enumerate(cases.outputs)]
    graph = dmlc.Graph("calls")
    graph.graph = cases.done()
    return dmlc.compile(graph, target=target)


def for_both(op: Operation, dtypes: list[DType]) -> tuple[dmlc.Program, dmlc.Program] | None:
    """The programs for target directml and for the device only, if the first compiles."""
    try:
        plain = calls(op, dtypes, "directml")
    except DmlcError:
        return None
    return plain, calls(op, dtypes, "directml-only")


def is_same(both: tuple[dmlc.Program, dmlc.Program]) -> bool:
    plain, only = both
    return without_metadata(only.to_onnx()) == without_metadata(plain.to_onnx())


@pytest.mark.parametrize("family", FAMILIES)
@each_row("op", OPERATIONS, ids=lambda op: op.name)
def test_every_operation_is_no_worse_than_for_directml(op: Operation, family: str) -> None:
    """No more nodes, none that fails, none more on the CPU, and the numbers of the references.

    A program of all dtypes is compared first. If it differs, programs of one dtype are made, for one dtype in three.
    Operations take turns: of floats, which differ in nothing, every third is tried.
    """
    if family == "floats" and OPERATIONS.index(op) % 3:
        return
    dtypes = [d for d in FAMILIES[family] if op in declared(d) and (op.name, d.name) != ("iota", "bool")]
    together = for_both(op, dtypes) if dtypes else None
    if not dtypes or (together and is_same(together)):
        return
    for dtype in dtypes[OPERATIONS.index(op) % 3 :: 3]:
        both = for_both(op, [dtype])
        if both is None or is_same(both):
            continue
        plain, only = both
        try:
            plain.require_sound()
        except DmlcError:
            continue
        only.require_sound()
        assert len(only.placement().nodes) <= len(plain.placement().nodes), dtype
        assert only.placement().count("cpu") <= plain.placement().count("cpu"), dtype
        verdict = only.verify(1)
        assert verdict.ok or not plain.verify(1).ok, (dtype, verdict.to_text())  # powers of negative numbers


def test_the_artifact_says_so() -> None:
    text = of("i64", "reduce_sum(x, axes=[1])")
    (facts,) = dmlc.model_facts(compiled(text).to_onnx())
    assert facts["runs_on"] == "DmlExecutionProvider"
    assert facts["target"] == "directml-only"
    for target in ("directml", "cpu", "onnx", "directml:ort-1.18"):
        (facts,) = dmlc.model_facts(compiled(text, target).to_onnx())
        assert "runs_on" not in facts


def test_older_feature_levels_have_fewer_types() -> None:
    target = load_target("directml-only")
    for level, expected in (("6.4", True), ("5.0", True), ("4.1", False)):
        capabilities = Capabilities(replace(target, feature_level=level), 21)
        assert capabilities.takes("ReduceSum", DTYPE_BY_NAME["u64"]) is expected
        assert capabilities.is_native(REDUCE_SUM, DTYPE_BY_NAME["u64"]) is expected
    assert not Capabilities(load_target("directml"), 21).is_native(REDUCE_SUM, DTYPE_BY_NAME["u64"])


def test_types_that_onnx_lacks_are_listed() -> None:
    """``not_onnx`` of the kernels, from ONNX's schemas: nothing else would make a model that no runtime reads."""
    for opset in range(11, 22):
        capabilities = Capabilities(load_target("directml-only"), opset)
        for domain, op in provider("dml_ep").rows:
            try:
                schema = defs.get_schema(op, opset, domain)
            except defs.SchemaError:
                continue
            allowed = {c.type_param_str: " ".join(c.allowed_type_strs) for c in schema.type_constraints}
            for parameter, types in allowed.items():
                for dtype in DTYPES:
                    if not capabilities.accepts(op, dtype, parameter):
                        continue
                    name = TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(np.dtype(dtype.numpy))).lower()
                    assert f"({name})" in types, (op, opset, parameter, dtype)


def test_types_that_onnx_lacks_are_not_taken() -> None:
    capabilities = Capabilities(load_target("directml-only"), 20)
    assert capabilities.takes("ReduceMax", DTYPE_BY_NAME["u64"])
    assert not capabilities.takes("ReduceMax", DTYPE_BY_NAME["u16"])


# --- models


def imported(body: str) -> dmlc.Program:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {body}')
    return dmlc.compile(model, target="directml-only")


@pytest.mark.parametrize(
    "body",
    [
        "(float[1,1,5,5] x) => (float[1,1,3,3] y) <float[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}> { y = Conv(x, w) }",
        "(float[4,4] x) => (float[4,4] y) { y = Selu<alpha = 1.5>(x) }",
        "(float[6] x) => (int64[1,n] y) { z = Relu(x) y = NonZero(z) }",
        "(float[2,3] x, int64[2,3] i) => (float[2] y) <int64[1] o = {0}> { a = HardSigmoid(x)"
        " s = ReduceSum<keepdims = 0>(a) j = ReduceSum<keepdims = 0>(i) f = Cast<to = 1>(j) t = Add(s, f)"
        " k = Unsqueeze(t, o) y = Concat<axis = 0>(k, k) }",
    ],
    ids=["conv", "selu", "sizes from data", "several"],
)
def test_models_are_verified_by_the_reference_and_single_nodes(body: str) -> None:
    verdict = imported(body).verify(6)
    assert verdict.ok, verdict.to_text()


# --- the command line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.dml").write_text(of("i64", "reduce_sum(x, axes=[1])"))
    return tmp_path


def command(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(list(argv))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.usefixtures("folder")
def test_run_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = command(capsys, "run", "m.dml", "--target", "directml-only", "--random", "1")
    assert code == 0
    assert out.startswith("y ")
    assert "ran on the reference: directml-only makes no promise for the CPU provider" in err
    _, plain, err = command(capsys, "run", "m.dml", "--random", "1")
    assert plain == out
    assert "promise" not in err
    _, _, err = command(capsys, "run", "m.dml", "--target", "directml-only", "--random", "1", "--backend", "cpu")
    assert "ran on ONNX Runtime's CPU provider: directml-only makes no promise" in err


@pytest.mark.usefixtures("folder")
def test_verify_reads_the_artifact_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(capsys, "compile", "m.dml", "--target", "directml-only", "--verify", "3")[0] == 0
    code, out, err = command(capsys, "verify", "m.dml", "m.onnx")
    assert code == 0
    assert out.startswith("same on 24 inputs: every number is equal")
    assert "m.onnx is computed by the reference: it makes no promise for the CPU provider" in err
    model = onnx.load("m.onnx")
    model.graph.node[0].op_type = "ReduceProd"
    onnx.save(model, "m.onnx")
    assert command(capsys, "verify", "m.dml", "m.onnx")[0] == 1


@pytest.mark.usefixtures("folder")
def test_the_target_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\ndirectml-only " in command(capsys, "targets")[1]
    assert command(capsys, "check", "m.dml", "--target", "directml-only")[0] == 0
    assert command(capsys, "targets", "directml-only", "--op", "ReduceSum")[0] == 0
