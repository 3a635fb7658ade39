"""The builder's errors: the code, the user's Python line, the caret, the way out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc.builder import place
from dmlc.diagnostics import render_all
from tests.rows import each_row


@pytest.fixture
def g() -> dmlc.Graph:
    return dmlc.Graph("g")


def refused(call: Callable[[], Any]) -> dmlc.Diagnostic:
    """The diagnostic of a call that is refused at its own line of this file."""
    with pytest.raises(dmlc.DmlcError) as caught:
        call()
    (diagnostic,) = caught.value.diagnostics
    span = diagnostic.span
    assert span is not None
    assert span.source.name == __file__
    lines, first = inspect.getsourcelines(call)
    assert first <= span.line < first + len(lines)
    assert caught.value.exit_code == 1
    return diagnostic


def marked(diagnostic: dmlc.Diagnostic) -> str:
    """The source text under the caret."""
    span = diagnostic.span
    assert span is not None
    assert span.line == span.end_line
    return span.source.line(span.line)[span.column - 1 : span.end_column - 1]


def test_a_wrong_axis_is_shown_as_in_a_program(g: dmlc.Graph) -> None:
    image = g.input("image", dtype="f16", shape=("batch", 3, "H", "W"))
    error = refused(lambda: dmlc.argmax(image, axes=[1, 2, 4]))
    assert error.code.id == "E0301"
    assert error.message == "axis 4 does not exist: image has 4 axes, 0 to 3"
    assert marked(error) == "4"
    shown = render_all([error])
    assert "image = g.input(" in shown
    assert "image has this type" in shown
    assert "^ no such axis" in shown


def test_places_of_operands_and_attributes(g: dmlc.Graph) -> None:
    x, y = g.input("x", "f32", (4, 8)), g.input("y", "f64", (4, 8))
    total = dmlc.exp(x)
    cases = [
        (refused(lambda: dmlc.argmax(x, axes=[1], tie="first")), "E0305", '"first"'),
        (refused(lambda: x + y), "E0310", "y"),
        (refused(lambda: dmlc.where(x > 0, x, y)), "E0310", "y"),
        (refused(lambda: 300 * x.astype("u8")), "E0311", "300"),
        (refused(lambda: 1e300 > x), "E0311", "1e300"),  # noqa: SIM300
        (refused(lambda: x >= 1e300), "E0311", "1e300"),
        (refused(lambda: x.astype("complex64")), "E0304", '"complex64"'),
        (refused(lambda: dmlc.top_k(x, axis=0, k=5)), "E0316", "5"),
        (refused(lambda: dmlc.softmax(total, axes=7)), "E0301", "7"),
        (refused(lambda: -x.astype("u8")), "E0309", 'x.astype("u8")'),
        (refused(lambda: dmlc.where(x > 0, [1.0], x)), "E0335", "[1.0]"),
        (refused(lambda: {} * x), "E0335", "{}"),
        (refused(lambda: dmlc.exp(*[x.astype("i8")])), "E0309", 'dmlc.exp(*[x.astype("i8")])'),
    ]
    for error, code, text in cases:
        assert (error.code.id, marked(error)) == (code, text), error.message


def test_names_in_messages_are_the_programs(g: dmlc.Graph) -> None:
    scores = dmlc.exp(g.input("x", "f32", (4, 8)))
    assert "scores has 2 axes" in refused(lambda: dmlc.argmax(scores, axes=5)).message


def test_a_call_of_several_lines(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", (4, 8))
    error = refused(
        lambda: dmlc.layer_norm(
            x,
            x,
            None,
            axis=3,
        )
    )
    assert error.code.id == "E0301"
    assert marked(error) == "3"


def test_columns_count_characters(g: dmlc.Graph) -> None:
    größe = g.input("größe", "f32", (4, 8))
    assert marked(refused(lambda: dmlc.argmax(größe, axes=[0, 9]))) == "9"


def test_help_is_spelled_in_python(g: dmlc.Graph) -> None:
    x, y = g.input("x", "f32", 3), g.input("y", "f64", 3)
    assert '.astype("float32")' in refused(lambda: x + y).help
    help = refused(lambda: x + np.ones(3)).help
    assert help in ('cast one of them, such as np.ones(3).astype("float32")', "cast operand 2 to f32")
    assert (x + dmlc.cast(np.ones(3), to="f32")).dtype is dmlc.f32
    assert refused(lambda: dmlc.full(shape=(2,), value=0)).help == 'write it, such as dtype="f32"'
    assert refused(lambda: dmlc.concat(x, x)).help == "write it, such as axis=0"


def test_help_names_the_array_to_cast(g: dmlc.Graph) -> None:
    x, ones = g.input("x", "f32", 3), np.ones(3)  # an array has an astype too, which knows the long names alone
    shown = refused(lambda: x + ones).help
    assert shown.endswith('such as ones.astype("float32")'), shown
    assert (x + ones.astype("float32")).dtype is dmlc.f32


def test_mixing_graphs(g: dmlc.Graph) -> None:
    other = dmlc.Graph("other")
    x, y = g.input("x", "f32", 3), other.input("y", "f32", 3)
    error = refused(lambda: x + y)
    assert error.code.id == "E0250"
    assert "other" in error.message
    assert refused(lambda: g.output("z", y)).code.id == "E0250"
    made = [label for label in refused(lambda: x + dmlc.exp(y)).labels if label.text == "the tensor is made here"]
    assert [label.span is not None for label in made] == [True]
    namesake = dmlc.Graph(g.graph.name).input("y", "f32", 3)
    message = refused(lambda: x + namesake).message
    assert message == f"a tensor of another graph that is named {g.graph.name} too is used in graph {g.graph.name}"
    assert refused(lambda: dmlc.concat(x, y, axis=0)).code.id == "E0250"


def test_names_are_taken_once(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", 3)
    g.dim("N")
    g.output("y", x)
    for call in (
        lambda: g.input("x", "f32", 3),
        lambda: g.dim("N"),
        lambda: g.output("y", x),
    ):
        error = refused(call)
        assert error.code.id == "E0204"
        assert len(error.labels) == 2
    assert refused(lambda: g.output("x", x)).code.id == "E0210"


def test_a_refused_name_is_not_taken(g: dmlc.Graph) -> None:
    refused(lambda: g.input("x", "flaot32", 3))
    refused(lambda: g.dim("N", min=5, max=2))
    refused(lambda: g.output("y", 3))
    g.dim("N", min=2, max=5)
    g.output("y", g.input("x", "float32", 3))


@each_row("name", ["", 3, None])
def test_names_are_texts(name: Any) -> None:
    g = dmlc.Graph("g")
    x = g.input("x", "f32", 3)
    for call in (
        lambda: dmlc.Graph(name),
        lambda: g.input(name, "f32", 3),
        lambda: g.output(name, x),
        lambda: g.dim(name),
    ):
        assert refused(call).code.id == "E0251"


@each_row("bounds", [(4, 1), (-1, 4), (1.5, 2), (0, -1), (True, 2)])
def test_bounds_of_dims(bounds: tuple[Any, Any]) -> None:
    g = dmlc.Graph("g")
    assert refused(lambda: g.dim("N", min=bounds[0], max=bounds[1])).code.id == "E0333"


def test_dtypes_that_do_not_exist(g: dmlc.Graph) -> None:
    error = refused(lambda: g.input("x", "flaot32", 3))
    assert (error.code.id, error.help) == ("E0211", 'did you mean "float32"?')
    assert refused(lambda: g.input("x", np.complex64, 3)).code.id == "E0211"
    assert refused(lambda: g.input("x", object, 3)).code.id == "E0211"
    assert refused(lambda: dmlc.constant(["a"])).code.id == "E0211"
    assert refused(lambda: dmlc.constant([1], dtype="i128")).code.id == "E0211"


@each_row("shape", [(-1, 3), (1.5,), (None,), (True,), ("",), 2.0, {1, 2}])
def test_shapes_that_are_none(shape: Any) -> None:
    g = dmlc.Graph("g")
    assert refused(lambda: g.input("x", "f32", shape)).code.id == "E0332"


def test_shapes_of_too_many_axes(g: dmlc.Graph) -> None:
    assert refused(lambda: g.input("x", "f32", (1,) * 65)).code.id == "E0336"
    index = g.input("i", "i64", (1,) * 40)
    assert refused(lambda: dmlc.gather(index, index)).code.id == "E0336"


@pytest.mark.parametrize("operand", [[1.0, 2.0], "x", None, {}])
def test_what_is_no_tensor(g: dmlc.Graph, operand: Any) -> None:
    x = g.input("x", "f32", 2)
    for call in (
        lambda: x + operand,
        lambda: operand - x,
        lambda: dmlc.where(x > 0, operand, x),
        lambda: g.output("y", operand),
    ):
        assert refused(call).code.id == "E0335"


def test_dims_need_a_dtype(g: dmlc.Graph) -> None:
    n = g.dim("N")
    g.input("x", "f32", (n,))
    for call in (lambda: dmlc.exp(n), lambda: dmlc.max(n, 2), lambda: dmlc.sqrt(n / 2)):
        assert refused(call).code.id == "E0330"


def test_several_results_are_not_one(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", 2)
    assert "take one of them apart" in refused(lambda: dmlc.exp(dmlc.top_k(x, k=1))).help


def test_tensors_hold_no_data(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", 2)
    for call in (
        lambda: bool(x),
        lambda: 1 if x > 0 else 2,
        lambda: 0 < x < 1,
        lambda: x in [x + 1],
        lambda: np.asarray(x),
    ):
        assert refused(call).code.id == "E0350"
    with pytest.raises(TypeError, match="ufunc"):
        np.exp(x)


def test_a_call_without_source_still_names_its_line(g: dmlc.Graph) -> None:
    code = compile("dmlc.argmax(x, axes=3)", "<a notebook cell>", "exec")
    with pytest.raises(dmlc.DmlcError) as caught:
        exec(code, {"dmlc": dmlc, "x": g.input("x", "f32", 2)})
    assert "<a notebook cell>:1" in render_all(caught.value.diagnostics)


def test_without_columns_the_line_is_marked(g: dmlc.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after ``python -X no_debug_ranges``, whose code objects have lines alone."""
    positions = place._table
    monkeypatch.setattr(place, "_table", lambda code: [(*lines[:2], None, None) for lines in positions(code)])
    x = g.input("x", "f32", 2)
    error = refused(lambda: dmlc.argmax(x, axes=3))
    assert error.code.id == "E0301"
    assert marked(error) == "error = refused(lambda: dmlc.argmax(x, axes=3))"


@each_row(
    ("data", "dtype"),
    [
        ([[1], [2, 3]], None),
        (["a"], "f32"),
        ([1 + 2j], "f32"),
        ([None], "i32"),
        (2**64, "u64"),
        ({1}, "f32"),
        (10**400, "f32"),
    ],
)
def test_data_that_is_no_array(data: object, dtype: str | None) -> None:
    error = refused(lambda: dmlc.constant(data, dtype=dtype))
    assert error.code.id == "E0335"
    assert error.message.startswith("no array can be made of this data: ")


def test_sizes_and_dtypes_that_are_arrays_or_modules(g: dmlc.Graph) -> None:
    for size in (np.zeros(2), np.array("s"), np.array(3.0)):
        assert refused(lambda size=size: g.input("x", dtype="f32", shape=(size,))).code.id == "E0332"  # type: ignore[misc]
    assert g.input("x", dtype="f32", shape=(np.int64(3), np.array(4))).shape == (3, 4)
    for dtype in (np, "\udcff"):
        assert refused(lambda dtype=dtype: g.input("y", dtype=dtype, shape=(2,))).code.id == "E0211"  # type: ignore[misc]


def test_bounds_of_one_size_and_shapes_of_64_axes() -> None:
    g = dmlc.Graph("g")
    n = g.dim("N", min=3, max=3)
    assert g.input("x", "f32", (n,)).shape == (n,)
    assert len(g.input("deep", "f32", (1,) * 64).shape) == 64
    with pytest.raises(dmlc.DmlcError) as caught:
        g.input("deeper", "f32", (1,) * 65)
    assert caught.value.diagnostics[0].message == "this shape has 65 axes, the limit is 64"


@each_row(
    ("data", "dtype"),
    [([1.5], "i32"), (np.array([300]), "u8"), ([-1.0], "u16"), ([1e40], "f32"), (np.float32(7e4), "f16"), ([2], "bool"),
     (300, "i8"), (2.0**63, "i64")],
)  # fmt: skip
def test_data_that_does_not_fit_its_dtype(data: Any, dtype: str, recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(dmlc.DmlcError, match=r"E0311.*does not fit " + dtype):
        dmlc.constant(data, dtype=dtype)
    assert not recwarn.list


@each_row(
    ("data", "dtype"),
    [([1.0], "i32"), (np.array([255]), "u8"), ([0.1], "f16"), ([np.inf, np.nan], "f16"), ([0, 1], "bool"), ([], "u8"),
     ([2**63], "u64")],
)  # fmt: skip
def test_data_that_fits_its_dtype(data: Any, dtype: str) -> None:
    assert dmlc.constant(data, dtype=dtype).dtype.name == dtype
