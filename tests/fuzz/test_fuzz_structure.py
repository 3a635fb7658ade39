"""Random models of varied structure, the same ones every time, and those that once failed."""

import ast
import contextlib
from collections import Counter
from pathlib import Path

import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.passes import recognize_reduce
from tests.rows import each_row
from tests.versions import NEWEST_IR
from tools.fuzz.batch import run_isolated
from tools.fuzz.onnx_models import Grower, MisfitError
from tools.fuzz.refusals import REFUSALS, is_allowed
from tools.fuzz.structure_grower import Recipe, StructureGrower, StructureModel
from tools.fuzz.structure_judge import choices, judge, original
from tools.fuzz.structure_models import generate
from tools.fuzz.structure_names import CHANGES
from tools.fuzz.structure_recipes import STRUCTURES
from tools.model_checks import session

REGRESSIONS = sorted((Path(__file__).parents[1] / "regressions" / "structured").glob("*.onnxtxt"))


def test_structured_models() -> None:
    """In a process of its own: ONNX Runtime crashes on some models, and what crashes on the original is left out."""
    found = run_isolated("structure", 0, 40, smaller=False)
    assert found.cases == 40
    texts = [f"seed {failure['seed']}: {failure['failure']}\n{failure['text']}" for failure in found.failures]
    assert not texts, "\n".join(texts)


@each_row("path", REGRESSIONS, ids=lambda path: path.stem)
def test_models_that_once_failed(path: Path) -> None:
    """The first line has the options, and ``external`` where the data is in a file of its own."""
    lines = path.read_text(encoding="utf-8").splitlines()
    call = ast.parse(f"f({lines[0][1:]})", mode="eval").body
    assert isinstance(call, ast.Call)
    options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    external = options.pop("external", False)
    model = parser.parse_model("\n".join(line for line in lines if line[:1] != "#"))
    counts: Counter[str] = Counter()
    for seed in range(3):
        assert judge(StructureModel(model, external), options, seed, counts) is None
    assert not any(kind.startswith("dropped") for kind in counts), "the original runs"


def test_the_same_seed_gives_the_same_model() -> None:
    first, second = ([generate(seed).model.SerializeToString() for seed in range(8)] for _ in range(2))
    assert first == second
    model = generate(3).model
    assert choices(3, model) == choices(3, model)


def test_models_vary_in_structure() -> None:
    """Every change, body, opset range and IR version is there among a few hundred models."""
    traits, opsets, versions = Counter[str](), set(), set()
    for seed in range(160):
        case = generate(seed)
        traits.update(case.traits)
        opsets.add(next(entry.version for entry in case.model.opset_import if entry.domain == ""))
        versions.add(case.model.ir_version)
    assert {change.__name__ for _, change in CHANGES} <= traits.keys()
    assert {"if", "loop", "scan", "function", "external"} <= traits.keys()
    assert min(opsets) == 7 and max(opsets) >= 23
    assert versions >= {3, 4, *range(6, NEWEST_IR + 1)}


@each_row("recipe", [recipe for _, recipe in STRUCTURES], ids=lambda recipe: recipe.__name__)
def test_every_recipe_makes_something(recipe: Recipe) -> None:
    for seed in range(60):
        grower = StructureGrower(seed)
        with contextlib.suppress(MisfitError):
            grower.grown([(2, recipe), (1, _start)])
        if any(node.op_type not in ("Cast", "Unsqueeze") for node in grower.nodes):
            return
    pytest.fail("it makes nothing")


def _start(grower: Grower) -> None:
    x = grower.one("Cast", grower.any(), to=grower.rng.choice((onnx.TensorProto.FLOAT, onnx.TensorProto.INT64)))
    grower.unsqueeze(x, [0])


# --- the judge finds what is wrong

_MEAN = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,8] x, bool c) => (float[2,1] y) <int64[1] axes = {1}, float count = {7}>
{
  y = If (c) <then_branch: graph = t () => (float[2,1] a) { s = ReduceSum (x, axes) a = Div (s, count) },
              else_branch: graph = e () => (float[2,1] b) { b = ReduceMax (x) }>
}"""


def test_a_wrong_rewrite_inside_a_branch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that forgets what it divides by."""
    case = StructureModel(parser.parse_model(_MEAN.replace("ReduceMax (x)", "ReduceMax <axes: ints = [1]> (x)")))
    assert judge(case, {"target": "cpu"}, 0) is None
    monkeypatch.setattr(recognize_reduce, "_why_other_number", lambda *facts: None)
    found = judge(case, {"target": "cpu"}, 0)
    assert found is not None and found.kind == "different"


def test_an_invalid_model_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes of one name, and a result that the checker does not take."""
    case = StructureModel(parser.parse_model(_MEAN.replace("ReduceMax (x)", "ReduceMax <axes: ints = [1]> (x)")))
    emit = dmlc.Program.to_onnx

    def spoiled(program: dmlc.Program) -> onnx.ModelProto:
        model = onnx.ModelProto.FromString(emit(program).SerializeToString())
        model.graph.node.append(onnx.helper.make_node("Softmax", ["x"], ["unused"], axes=[0]))
        return model

    monkeypatch.setattr(dmlc.Program, "to_onnx", spoiled)
    found = judge(case, {"target": "cpu"}, 0)
    assert found is not None and found.kind == "checker"


def test_overridable_initializers_are_fed_with_other_values() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[2,8] x, int64[2] shape, int64[1] k) => (float[] y, int64[] i) <int64[2] shape = {4,4}, int64[1] k = {2}>
    { r = Reshape (x, shape) y, i = TopK (r, k) }"""
    model = parser.parse_model(text)
    assert {i.name for i in session(model).get_overridable_initializers()} == {"shape", "k"}
    found = [original(model, seed) for seed in range(4)]
    fed = [feeds for source in found if source is not None for feeds in source.feeds]
    assert {tuple(feeds["shape"].tolist()) for feeds in fed if "shape" in feeds} - {(4, 4)}
    assert {feeds["k"].item() for feeds in fed if "k" in feeds} - {2}


def test_only_listed_refusals_are_accepted() -> None:
    for code in ("E0501", "E0502", "E0503", "E0504", "E0557", "E0591", "E0592", "I0901"):
        assert not is_allowed(code, "anything", {"target": "directml"})
    assert all(refusal.reason and refusal.message for refusal in REFUSALS)
