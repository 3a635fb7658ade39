"""Sessions with fixed dims: a few sets of sizes get their own, the others share one that leaves them open."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import dmlc
from dmlc.runtime import fixed_sessions
from dmlc.runtime.fixed_sessions import FixedSessions
from dmlc.targets.provider import provider
from dmlc.targets.session_advice import free_dimensions, session_advice
from tests.rows import each_row


def test_each_set_of_sizes_is_fixed_and_then_none(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Recorded(fixed_sessions.Session):
        def __init__(self, *args: object, dims: object = None, threads: object = None) -> None:
            made.append(dims)
            super().__init__(*args, dims=dims, threads=threads)  # type: ignore[arg-type]

    monkeypatch.setattr(fixed_sessions, "Session", Recorded)
    g = dmlc.Graph("g")
    x = g.input("x", dtype="float32", shape=("N", 2))
    g.output("y", x + 1)
    sessions = FixedSessions(dmlc.compile(g).artifact("onnx"), "cpu")
    for size in (1, 2, 1, 3, 4, 5, 6):
        out = sessions.run({"x": np.zeros((size, 2), np.float32)})
        assert out["y"].shape == (size, 2)
    assert made == [{"N": 1}, {"N": 2}, {"N": 3}, {"N": 4}, None]


@each_row("text", [None, "", "{", "[]", '{"schema": 2, "free_dimensions": ["N"]}', '{"schema": 1}'])
def test_advice_that_cannot_be_read_fixes_nothing(text: str | None) -> None:
    assert free_dimensions(text) == []


def test_advice_is_read_back() -> None:
    facts = provider("dml_ep").session
    assert free_dimensions(session_advice(facts, {"b", "a"}, {"b": [1, 4], "c": [2]}, {})) == ["a", "b"]


# --- the dims that are fixed are those of the emitted model


def sized(input: str, output: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[{input}] x, float[{input}] w) => (float[{output}] y) {{ a = Add (x, w) y = Softmax <axis = 1> (a) }}"""
    )


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int] | None]:
    """Record what each session that is made has fixed."""
    found: list[dict[str, int] | None] = []

    class Recorded(fixed_sessions.Session):
        def __init__(self, *args: object, dims: dict[str, int] | None = None, threads: object = None) -> None:
            found.append(dims)
            super().__init__(*args, dims=dims, threads=threads)  # type: ignore[arg-type]

    monkeypatch.setattr(fixed_sessions, "Session", Recorded)
    return found


@pytest.mark.parametrize(
    ("input", "bind", "names"),
    [
        ("?, ?", {}, []),
        ("N, ?", {}, ["N"]),
        ("?, M", {}, ["M"]),
        ("N, M", {}, ["M", "N"]),
        ("N, M", {"N": 2}, ["M"]),
        ("N, ?", {"N": 2}, []),
        ("N, M", {"N": 2, "M": 3}, []),
        ("unknown_0, ?", {}, ["unknown_0"]),
        ("2, 3", {}, []),
    ],
)
def test_the_advice_names_only_dims_that_inputs_declare(
    made: list[dict[str, int] | None], input: str, bind: dict[str, int], names: list[str]
) -> None:
    program = dmlc.compile(sized(input, input), target="directml", bind=bind)
    model = program.to_onnx()
    declared = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim} - {""}
    (facts,) = dmlc.model_facts(model)
    assert free_dimensions(facts["session"]) == names == sorted(declared)
    sessions = FixedSessions(program.artifact("onnx"), "cpu")
    shapes = [(2, 3)] if "N" in bind or input == "2, 3" else [(2, 3), (4, 3), (5, 3), (6, 3), (7, 3), (8, 3)]
    for shape in shapes:
        feeds = {name: np.zeros(shape, np.float32) for name in ("x", "w")}
        assert sessions.run(feeds)["y"].shape == shape
    rows = "N" in names or "unknown_0" in names
    assert len(made) == (min(len(shapes), 5) if rows else 1)
    assert all(dims is None or list(dims) == names for dims in made)


def test_sizes_of_one_name_that_differ_are_refused() -> None:
    program = dmlc.compile(sized("N, 3", "?, 3"), target="directml")
    feeds = {"x": np.zeros((4, 3), np.float32), "w": np.zeros((1, 3), np.float32)}
    with pytest.raises(dmlc.DmlcError, match="dim N is 4 in axis 0 of x, but 1 in axis 0 of w"):
        FixedSessions(program.artifact("onnx"), "cpu").run(feeds)
