"""Some random programs, the same ones every time, and those that once failed."""

import ast
from pathlib import Path

import numpy as np
import pytest

from dmlc.ops import INFIX, OPERATIONS, PREFIX
from tests.versions import ONNX_RUNTIME
from tools.fuzz.judge import failures, judge
from tools.fuzz.programs import FuzzProgram, Line, generate
from tools.fuzz.recipes import BLOCKS, RECIPES
from tools.fuzz.reduce import reduced

REGRESSIONS = sorted((Path(__file__).parents[1] / "regressions").glob("*.dml"))


#: Seeds up to 80 whose program has an operation, or meets a rule, that no program before it does.
SEEDS = (
    *range(22), 24, 25, 26, 28, 29, 30, 34, 37, 40, 42, 47, 49, 52, 56, 57, 59, 61, 62, 63, 65, 66, 73,
)  # fmt: skip


#: Programs that normalize groups of one element, which ONNX Runtime 1.23 refuses in the run.
LATER = (9,) if ONNX_RUNTIME < (1, 24) else ()


@pytest.mark.parametrize("part", range(4))
def test_random_programs(part: int) -> None:
    seeds = [seed for seed in SEEDS[part::4] if seed not in LATER]
    found = [f"seed {seed}: {f}" for seed in seeds for f in failures(generate(seed).text(), seed)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_what_once_failed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    options = {
        k.arg: ast.literal_eval(k.value) for k in ast.parse(f"f({text.splitlines()[0][1:]})").body[0].value.keywords
    }  # type: ignore[attr-defined]
    assert judge(text, options, inputs=24) is None


def test_there_is_a_recipe_for_every_operation() -> None:
    assert {name for name, *_ in RECIPES} == {*OPERATIONS, *INFIX, *PREFIX, *BLOCKS, "[]", "onnx.Div"}


def test_the_same_seed_gives_the_same_program() -> None:
    assert [generate(seed).text() for seed in range(20)] == [generate(seed).text() for seed in range(20)]


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference that errs for one operation makes programs with it fail, and the failure is made small."""
    from dmlc.codegen.numpy import support

    monkeypatch.setattr(support, "_root_mean_square", _twice_the_root)
    lines = (
        Line(("v0",), "+", ("x0", "x0")),
        Line(("v1",), "rms_norm", ("v0", "x1")),
        Line(("v2",), "reduce_sum", ("v1",), (("axes", "[0]"),)),
        Line(("v3",), "tanh", ("x0",)),
    )
    types = {"v0": "f32[3, 4]", "v1": "f32[3, 4]", "v2": "f32[1, 4]", "v3": "f32[3, 4]", "x0": "f32[3, 4]"}
    inputs = (("x0", "f32[3, 4]"), ("x1", "f32[4]"))
    program = FuzzProgram((), (), inputs, lines, ("v2", "v3"), types)
    options = {"target": "numpy"}
    assert judge(program.text(), options) is not None
    small = reduced(program, lambda candidate: judge(candidate.text(), options) is not None)
    assert [line.op for line in small.lines] == ["rms_norm"]


def _twice_the_root(x, axes, epsilon):  # type: ignore[no-untyped-def]
    """The root of the mean of squares plus epsilon, axes kept as size 1."""
    return 2 * np.sqrt(_mean(np.square(x), axes) + epsilon)  # noqa: F821
