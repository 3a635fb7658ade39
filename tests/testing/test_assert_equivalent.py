"""``dmlc.testing``: what users' own suites call."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis.errors import NoSuchExample
from onnx import parser

import dmlc
import dmlc.testing
from dmlc.cli.main import VERBS
from dmlc.diagnostics import DmlcError
from dmlc.testing import assert_equivalent, breaking_inputs
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("sessions_here")

ROOT = Path(__file__).parents[2]
OPSET = '<ir_version: 8, opset_import: ["": 17]>'


def model(factor: float = 2.0, last: str = "Softmax") -> onnx.ModelProto:
    text = f"c = Constant<value = float {{{factor}}}>() t = Mul(x, c) y = {last}(t)"
    return parser.parse_model(f"{OPSET} g (float[N, 3] x) => (float[N, 3] y) {{ {text} }}")


PROGRAM = dmlc.Source(
    "dim N in 2..5\nmodel m(x: f32[N, 4] in -3.0..3.0, i: i64[N], k: f16[2]) -> (y) {\n"
    "    y = gather(x, i, axis=1)\n    return y\n}\n",
    "m.dml",
)


# --- assert_equivalent


def test_equal_models_pass() -> None:
    assert_equivalent(model(), model())
    assert_equivalent(model(), dmlc.compile(model(), target="cpu"))
    assert_equivalent(model())
    assert_equivalent(dmlc.compile(model(), target="cpu"), model(), inputs={"x": np.ones((2, 3), np.float32)})


@pytest.mark.parametrize("inputs", [3, {"x": np.float32([[1, 2, 3]])}], ids=["made up", "given"])
def test_the_message_has_the_verdict_the_element_and_the_node(inputs: Any) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_equivalent(model(), model(2.5), inputs=inputs)
    message = str(caught.value)
    assert "different: y" in message
    assert "first difference: t" in message
    assert "Mul" in message
    assert re.search(r"at \[\d+, \d+\]", message)
    assert "ulp" in message
    assert message.splitlines()[-1].startswith("FAILED | ")


def test_a_source_file_is_named_with_its_place(tmp_path: Path) -> None:
    a, b = tmp_path / "a.dml", tmp_path / "b.dml"
    a.write_text("model m(x: f32[3]) -> (y) {\n    t = x * 2\n    y = exp(t)\n    return y\n}\n")
    b.write_text(a.read_text().replace("* 2", "* 3"))
    with pytest.raises(AssertionError, match=r"a\.dml:2:9"):
        assert_equivalent(a, b)


def test_keywords_are_those_of_locate() -> None:
    with pytest.raises(AssertionError):
        assert_equivalent(model(), model(2.0001), rtol=1e-7)
    assert_equivalent(model(), model(2.0001), rtol=0.1, atol=0.1)
    feeds = {"x": np.zeros((1, 3), np.float32)}
    assert_equivalent(model(), inputs=feeds, expected={"y": np.full((1, 3), 1 / 3, np.float32)})
    with pytest.raises(AssertionError):
        assert_equivalent(model(), inputs=feeds, expected={"y": np.zeros((1, 3), np.float32)})


def test_nothing_compared_is_a_failure() -> None:
    other = parser.parse_model(f"{OPSET} g (float[N, 3] z) => (float[N, 3] y) {{ y = Exp(z) }}")
    with pytest.raises((AssertionError, DmlcError)):
        assert_equivalent(model(), other)


def test_a_source_that_cannot_be_read_is_an_error_of_its_own() -> None:
    with pytest.raises(DmlcError):
        assert_equivalent("none.onnx", model())


# --- breaking_inputs


@given(feeds=breaking_inputs(PROGRAM))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_feeds_fit_the_program(feeds: dict[str, np.ndarray]) -> None:
    x, i, k = feeds["x"], feeds["i"], feeds["k"]
    assert (x.dtype, i.dtype, k.dtype) == (np.float32, np.int64, np.float16)
    assert 2 <= x.shape[0] <= 5
    assert x.shape[1:] == (4,)
    assert i.shape == x.shape[:1]
    assert np.all((x >= -3) & (x <= 3))
    assert np.all((i >= -4) & (i < 4))


@pytest.mark.parametrize(
    ("what", "holds"),
    [
        ("NaN", lambda x: np.isnan(x).any()),
        ("infinities", lambda x: np.isinf(x).any()),
        ("ties", lambda x: x.size > 3 and len(np.unique(x)) < x.size / 2),
        ("large", lambda x: (np.abs(x) > 100).any()),
        ("one row", lambda x: x.shape[0] == 1),
        ("several rows", lambda x: x.shape[0] > 2),
        ("no rows", lambda x: x.shape[0] == 0),
    ],
)
def test_every_kind_is_drawn(what: str, holds: Any) -> None:
    """The first example that has it is enough: it is not made smaller."""
    drawn = settings(max_examples=2000, phases=[Phase.generate])
    found = find(breaking_inputs(model()), lambda feeds: bool(holds(feeds["x"])), settings=drawn)
    assert holds(found["x"]), what


@pytest.mark.parametrize("holds", [lambda x: not np.isfinite(x).all(), lambda x: x.size == 0])
def test_without_specials_all_numbers_are_ordinary(holds: Any) -> None:
    strategy = breaking_inputs(model(), specials=False)
    with pytest.raises(NoSuchExample):
        find(strategy, lambda feeds: bool(holds(feeds["x"])), settings=settings(max_examples=200))


def test_a_wrong_model_is_found_and_shrunk() -> None:
    """The shifted form loses nothing, the plain one overflows."""
    wrong = parser.parse_model(f"""{OPSET} g (float[N, 3] x) => (float[N, 3] y) {{
        c = Constant<value = float {{2.0}}>() t = Mul(x, c) e = Exp(t) s = ReduceSum<keepdims = 1>(e) y = Div(e, s)
    }}""")
    a, b = dmlc.compile(model(), target="onnx"), dmlc.compile(wrong, target="onnx", only_rules=())

    def parts(feeds: dict[str, np.ndarray]) -> bool:
        with np.errstate(all="ignore"):
            return not np.allclose(a.run(feeds, "cpu")["y"], b.run(feeds, "cpu")["y"], equal_nan=True)

    found = find(breaking_inputs(a), parts, settings=settings(max_examples=500))
    with pytest.raises(AssertionError, match="FAILED"):
        assert_equivalent(model(), wrong, inputs=found)


def test_data_that_cannot_be_made_up_is_an_error() -> None:
    made = parser.parse_model(
        f"{OPSET} g (seq(float[3]) x) => (float y) {{ i = Constant<value = int64 {{0}}>() y = SequenceAt(x, i) }}"
    )
    with pytest.raises(DmlcError) as caught:
        breaking_inputs(made)
    assert caught.value.diagnostics[0].code.id == "E0427"


def test_without_hypothesis_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ModuleNotFoundError, match="pip install hypothesis"):
        breaking_inputs(model())
    assert_equivalent(model(), model(), inputs=2)


def test_the_module_is_an_attribute_of_the_package() -> None:
    assert dmlc.testing.assert_equivalent is assert_equivalent


# --- the page and the hooks


def test_the_example_of_the_page_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)  # options of this suite, which the example has not
    text = (ROOT / "docs" / "testing.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "test_scores.py"
    path.write_text(code)
    assert pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(tmp_path), str(path)]) == 0


def hooks() -> list[dict[str, str]]:
    """The hooks of the file, which is a list of flat mappings."""
    out: list[dict[str, str]] = []
    for line in (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8").splitlines():
        if line.startswith("- "):
            out.append({})
        key, colon, value = line[2:].partition(": ")
        assert colon, line
        out[-1][key] = value
    return out


def test_the_hooks_have_what_pre_commit_wants() -> None:
    assert [hook["id"] for hook in hooks()] == ["dmlc-fmt", "dmlc-check"]
    for hook in hooks():
        assert {"id", "name", "entry", "language", "files"} <= hook.keys()
        assert hook["language"] == "python"
        command, verb, *_ = shlex.split(hook["entry"])
        assert command == "dmlc"
        assert verb in VERBS


@each_row(
    ("hook", "path", "wanted"),
    [
        ("dmlc-fmt", "a/m.dml", True),
        ("dmlc-fmt", "a/m.onnx", False),
        ("dmlc-check", "m.dml", True),
        ("dmlc-check", "m.onnx", True),
        ("dmlc-check", "m.onnx.py", False),
    ],
)
def test_a_hook_takes_its_files(hook: str, path: str, wanted: bool) -> None:
    (found,) = [one for one in hooks() if one["id"] == hook]
    assert bool(re.search(found["files"], path)) is wanted


def test_a_hook_fails_where_its_verb_does(tmp_path: Path) -> None:
    from dmlc.cli.main import main

    good, bad = tmp_path / "good.dml", tmp_path / "bad.dml"
    good.write_text("model m(x: f32[3]) -> (y) {\n    y = exp(x)\n    return y\n}\n")
    bad.write_text("model m(x: f32[3]) -> (y) {\n    return z\n}\n")
    entries = {hook["id"]: shlex.split(hook["entry"])[1:] for hook in hooks()}
    assert main([*entries["dmlc-check"], str(good)]) == 0
    assert main([*entries["dmlc-check"], str(good), str(bad)]) == 1
    assert main([*entries["dmlc-fmt"], str(good)]) == 0
