"""A hundred random ONNX models, the same ones every time, and those that once failed."""

import ast
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, helper, parser

from dmlc.passes import recognize_reduce
from tests.rows import each_row
from tests.versions import ONNX_RUNTIME
from tools.fuzz.onnx_judge import choices, failures, judge
from tools.fuzz.onnx_models import Grower, MisfitError, generate
from tools.fuzz.onnx_patterns import PATTERNS
from tools.fuzz.onnx_recipes import OPERATORS, computed_reshape
from tools.fuzz.reduce import reduced_model

REGRESSIONS = sorted((Path(__file__).parents[1] / "regressions").glob("*.onnxtxt"))


#: Models with noop_with_empty_axes and without axes, of which ONNX Runtime 1.23 reduces all.
LATER = (8,) if ONNX_RUNTIME < (1, 24) else ()


@pytest.mark.parametrize("start", range(0, 40, 20))
def test_random_models(start: int) -> None:
    seeds = [seed for seed in range(start, start + 20) if seed not in LATER]
    found = [f"seed {seed}: {f}" for seed in seeds for f in failures(generate(seed), seed)]
    assert not found, "\n".join(found)


@each_row("path", REGRESSIONS, ids=lambda path: path.stem)
def test_models_that_once_failed(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    call = ast.parse(f"f({lines[0][1:]})", mode="eval").body
    assert isinstance(call, ast.Call)
    options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    assert judge(parser.parse_model("\n".join(line for line in lines if line[:1] != "#")), options, inputs=24) is None


def test_the_same_seed_gives_the_same_model() -> None:
    first, second = ([generate(seed).SerializeToString() for seed in range(10)] for _ in range(2))
    assert first == second
    model = generate(3)
    assert choices(3, model) == choices(3, model)


@pytest.mark.parametrize("recipe", [recipe for _, recipe in (*OPERATORS, *PATTERNS)], ids=lambda f: f.__name__)
def test_every_recipe_makes_something(recipe: Callable[[Grower], object]) -> None:
    """Each is drawn with the casts that give it its dtype and sizes of 1 that it may squeeze."""
    made = []

    def counted(grower: Grower) -> None:
        nodes = len(grower.nodes)
        recipe(grower)
        made.append(len(grower.nodes) > nodes)

    for seed in range(40):
        with contextlib.suppress(MisfitError):
            Grower(seed).model(((2, counted), (1, _start)))
        if any(made):
            return
    pytest.fail("it makes nothing")


def _start(grower: Grower) -> None:
    x = grower.one("Cast", grower.any(), to=grower.rng.choice((TensorProto.BOOL, TensorProto.INT64, TensorProto.FLOAT)))
    grower.unsqueeze(x, [0])


def test_squeezed_axes_out_of_order_are_typed_as_kernels_drop_them() -> None:
    grower = Grower(0)
    grower.opset, grower.kinds["x"] = 10, (TensorProto.FLOAT, (1, 1, 1, 5))
    assert grower.kinds[grower.squeeze("x", [2, 1])] == (TensorProto.FLOAT, (1, 5))


def test_a_computed_size_of_0_does_not_go_into_a_reshape() -> None:
    grower = Grower(0)
    grower.kinds["x"] = (TensorProto.FLOAT, (0, 0))
    grower.values.append("x")
    with pytest.raises(MisfitError):
        computed_reshape(grower)


def test_a_wrong_rewrite_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that forgets what it divides by makes models fail, and the failure is made small."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("ReduceSum", ["a", "axes"], ["b"]),
        helper.make_node("Div", ["b", "count"], ["c"]),
        helper.make_node("Exp", ["a"], ["d"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", TensorProto.FLOAT, [2, 8])],
        [info("c", TensorProto.FLOAT, [2, 1]), info("d", TensorProto.FLOAT, [2, 8])],
        [
            helper.make_tensor("axes", TensorProto.INT64, [1], [1]),
            helper.make_tensor("count", TensorProto.FLOAT, [], [7.0]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = {"target": "cpu"}
    assert judge(model, options) is None
    monkeypatch.setattr(recognize_reduce, "_why_other_number", lambda *facts: None)
    found = judge(model, options)
    assert found is not None and found.kind == "different"

    def fails(candidate: ModelProto) -> bool:
        failure = judge(candidate, options, inputs=1)
        return failure is not None and failure.kind == found.kind

    small = reduced_model(model, fails).graph
    assert [node.op_type for node in small.node] == ["ReduceSum", "Div"]
    assert [info.name for info in small.output] == ["c"]
