"""``decompose`` where each size has a name of its own: the operator demands that they fit, so its parts do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from passes.decompose.decompose_models import MODELS, WITHOUT_KERNEL, model, own, runs_here
from passes.decompose.test_decompose import feeds_of, operators
from passes.pass_helpers import context

import dmlc
from dmlc.api.decomposition import stayed
from dmlc.diagnostics import DmlcError
from dmlc.importers import import_model
from dmlc.ir.verifier import verify
from dmlc.passes.decompose import OPERATORS, Decompose
from tests.rows import each_row
from tests.versions import needs_onnx_runtime
from tools.model_checks import run, session
from tools.node_tests import onnx_node_tests
from tools.result_comparison import NODE_TOLERANCES, differences

#: Models that the table of all operators lacks.
_MORE: dict[str, list[ModelProto]] = {
    "LayerNormalization": [
        model("double[3, 8] x, double[8] s, double[8] b", "y = LayerNormalization(x, s, b)", output="double y"),
        model("float[3, 8] x, float[8] s", "y = LayerNormalization(x, s)", opset=17),
        model("float[2, 3, 4, 5] x, float[3, 4, 5] s, float[4, 5] b", "y = LayerNormalization<axis = 1>(x, s, b)"),
        model("float[3, 8] x, float[8] s", "n = LayerNormalization(x, s) y = Add(n, s)"),
        model("float[3, 8] x, float[1] s, float[1] b", "y = LayerNormalization(x, s, b)"),
    ],
    "Gemm": [
        model("double[3, 4] x, double[4, 5] w", "y = Gemm(x, w)", output="double y"),
        model("float[3, 4] x, float[4, 5] w, float[3, 5] c", "y = Gemm(x, w, c)"),
        model("float[3, 4] x, float[4, 5] w, float[3, 1] c", "y = Gemm(x, w, c)"),
        model("float[3, 4] x, float[4, 5] w, float[1] c", "g = Gemm(x, w, c) y = Mul(g, g)"),
    ],
    "com.microsoft.MultiHeadAttention": [
        model(
            "float[2, 3, 8] q, float[2, 4, 8] k, float[2, 4, 8] v",
            f"{own('a = MultiHeadAttention<num_heads = 2>(q, k, v)')} y = Add(a, q)",
            own=True,
        ),
        model(
            "double[2, 3, 8] q, double[2, 4, 8] k, double[2, 4, 8] v",
            "a = Cast<to = 1>(q) c = Cast<to = 1>(k) d = Cast<to = 1>(v) "
            + own("y = MultiHeadAttention<num_heads = 2>(a, c, d)"),
            own=True,
        ),
    ],
    "com.microsoft.RotaryEmbedding": [
        model(
            f"{x}, float[6, 4] c, float[6, 4] s",
            f"i = Constant<value = int64[1, 3] {{2, 0, 5}}>() {own('y = RotaryEmbedding(x, i, c, s)')}",
            own=True,
        )
        for x in ("float[1, 2, 3, 8] x", "float[1, 3, 16] x")
    ],
    "GroupNormalization": [
        model("float[2, 6, 5] x, float[6] s, float[6] b", "y = GroupNormalization<num_groups = 6>(x, s, b)"),
        model("float[2, 6, 5] x, float[1] s, float[1] b", "y = GroupNormalization<num_groups = 1>(x, s, b)", opset=18),
    ],
}
CASES = [
    pytest.param(operator, made, id=f"{operator}-{number}")
    for table in (MODELS, _MORE, {name: [pair[0] for pair in pairs] for name, pairs in WITHOUT_KERNEL.items()})
    for operator, models in table.items()
    for number, made in enumerate(models)
]
#: Operators that need sizes, and words of the reason why a node without them stays.
_NEEDS_SIZES = {
    "Einsum": "the sizes of",
    "Hardmax": "whose sizes may be 0, needs opset 14",
}


def apart(made: ModelProto, opens: Callable[[int], bool] = lambda index: True) -> ModelProto:
    """The model with a name of its own for each size of the inputs whose number is to be open."""
    out = ModelProto.FromString(made.SerializeToString())
    for index, info in enumerate(out.graph.input):
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            if opens(index):
                dim.dim_param = f"{info.name}_{axis}"
    for info in out.graph.output:
        info.type.tensor_type.ClearField("shape")
    return out


#: The inputs whose sizes are open.
OPEN = {
    "all": lambda index: True,
    "the first": lambda index: index == 0,
    "all but the first": lambda index: index > 0,
    "every second": lambda index: index % 2 == 1,
}


def check_stays(program: dmlc.Program) -> None:
    for node in stayed(program):
        assert _NEEDS_SIZES[node.operator] in node.reason
        assert not program.ledger


def in_turn(cases: Sequence[Any]) -> list[tuple[str, ModelProto, str]]:
    """Each case with all sizes open, and with one of the other sets in turn."""
    others = [which for which in OPEN if which != "all"]
    return [(*case.values, which) for n, case in enumerate(cases) for which in ("all", others[n % len(others)])]


@each_row(("operator", "made", "which"), in_turn([case for case in CASES if runs_here(*case.values)]))
def test_numbers_stay_where_each_size_has_a_name(operator: str, made: ModelProto, which: str) -> None:
    program = dmlc.decompose(apart(made, OPEN[which]))
    check_stays(program)
    left = operators(program.to_onnx())
    assert operator not in left or operator in _NEEDS_SIZES
    if operator not in WITHOUT_KERNEL:
        feeds = feeds_of(made)
        assert differences(run(session(made), feeds), run(session(program.to_onnx()), feeds)) == []


@each_row(("operator", "made", "which"), in_turn(CASES[1:]))
def test_graph_keeps_its_invariants(operator: str, made: ModelProto, which: str) -> None:
    graph = import_model(apart(made, OPEN[which]))
    ctx = context(opset=graph.opset, decompose=frozenset(OPERATORS))
    Decompose().run(graph, ctx)
    verify(graph)


def test_parts_have_no_nodes_for_the_sizes() -> None:
    """Sizes that are not proved equal need no Reshape: the operators are those that stand in the model of one name."""
    scale, other = ("float[N, 8] x, float[8] s", "float[A, B] x, float[C] s")
    found = [dmlc.decompose(model(inputs, "y = LayerNormalization(x, s)")).to_onnx() for inputs in (scale, other)]
    assert [n.op_type for n in found[0].graph.node] == [n.op_type for n in found[1].graph.node]


BROADCASTS = needs_onnx_runtime(1, 24, "broadcasts no scale and no bias of a layer normalization")


@pytest.mark.parametrize(
    ("inputs", "call", "shapes"),
    [
        pytest.param(
            "float[N, M] x, float[K] s, float[L] b",
            "y = LayerNormalization(x, s, b)",
            [(3, 4), (1,), (4,)],
            marks=BROADCASTS,
        ),
        pytest.param(
            "float[N, M, P] x, float[K, L] s",
            "y = LayerNormalization<axis = 1>(x, s)",
            [(2, 3, 4), (3, 1)],
            marks=BROADCASTS,
        ),
        pytest.param("float[N, 8] x, float[K] s", "y = LayerNormalization(x, s)", [(2, 8), (1,)], marks=BROADCASTS),
        ("float[N, M] x, float[K, L] w, float[P, Q] c", "y = Gemm(x, w, c)", [(2, 3), (3, 4), (2, 1)]),
        ("float[N, M] x, float[3, 4] w, float[Q] c", "y = Gemm(x, w, c)", [(2, 3), (3, 4), (1,)]),
        ("float[N, M] x, float[K] s", "y = LayerNormalization(x, s)", [(0, 4), (4,)]),
    ],
)
def test_operands_still_broadcast_at_run_time(inputs: str, call: str, shapes: list[tuple[int, ...]]) -> None:
    made = model(inputs, call)
    rng = np.random.default_rng(3)
    names = [info.name for info in made.graph.input]
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in zip(names, shapes, strict=True)}
    found = dmlc.decompose(made).to_onnx()
    assert not operators(found) & set(OPERATORS)
    assert differences(run(session(made), feeds), run(session(found), feeds)) == []


_OLD = {
    "Hardmax": model("float[N, M, P] x", "y = Hardmax<axis = 1>(x)", opset=11),
    "com.microsoft.MultiHeadAttention": model(
        "float[B, S, D] q, float[B, T, D] k", own("y = MultiHeadAttention<num_heads = 2>(q, k, k)"), opset=12, own=True
    ),
    "Einsum": model("float[N, M] a, float[M, P, Q] b", 'y = Einsum<equation = "ij,jkl->ikl">(a, b)', opset=12),
}


@each_row(("operator", "made"), _OLD.items())
def test_a_node_stays_where_its_opset_has_no_form_for_the_parts(operator: str, made: ModelProto) -> None:
    """A Reshape before opset 14 copies where a size is 0."""
    program = dmlc.decompose(made)
    (node,) = stayed(program)
    assert node.operator == operator
    assert "whose sizes may be 0, needs opset 14" in node.reason
    assert operators(program.to_onnx()) == {operator}
    with pytest.raises(DmlcError, match="E0509"):
        dmlc.decompose(made, [operator])


def test_verify_finds_the_sizes_that_run() -> None:
    made = model("float[N, M] x, float[K] s, float[L] b", "y = LayerNormalization(x, s, b)")
    assert dmlc.decompose(made).verify(5).ok


def _node_tests() -> dict[str, Any]:
    wanted = ("layer_normalization", "rms_normalization", "group_normalization", "gemm", "batchnorm_e", "instancenorm")
    return {
        name: case
        for name, case in onnx_node_tests().items()
        if name.startswith(wanted) and not name.endswith(("expanded", "training_mode"))
    }


def test_node_tests_of_onnx_with_each_size_named() -> None:
    cases = _node_tests()
    assert len([name for name in cases if "layer" in name or "rms" in name]) >= 29
    for name, case in cases.items():
        program = dmlc.decompose(apart(case.model))
        assert stayed(program) == (), name
        for inputs, outputs in case.data_sets:
            feeds = dict(zip([info.name for info in case.model.graph.input], inputs, strict=True))
            wanted = dict(zip([info.name for info in case.model.graph.output], outputs, strict=True))
            assert differences(wanted, run(session(program.to_onnx()), feeds), NODE_TOLERANCES) == [], name


# --- parts that never fit


def test_sizes_that_contradict_each_other_leave_the_node() -> None:
    """ONNX Runtime runs such a model as long as the branch does not run."""
    made = model(
        "bool c, float[2, 8] x, float[6] s",
        "y = If (c) <then_branch = t () => (float[2, 8] p) { p = LayerNormalization (x, s) },"
        " else_branch = e () => (float[2, 8] q) { q = Softmax (x) }>",
    )
    program = dmlc.decompose(made)
    (node,) = stayed(program)
    assert node.operator == "LayerNormalization"
    assert node.reason == "shapes [2, 8] and [6] do not broadcast: 8 against 6"
    assert operators(program.to_onnx()) & {"LayerNormalization", "Softmax", "Mul", "Sub"} == {
        "LayerNormalization",
        "Sub",
    }
