"""Names of dims that are expressions: read, compared with what was inferred, and never believed against it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper, parser

import dmlc
from dmlc.importers.types import dim_of_text, simpler
from dmlc.ir import floordiv, symbol
from tests.rows import each_row

N, M = symbol("N"), symbol("M")


@each_row(
    ("text", "dim"),
    [
        ("N", N),
        ("2*N + 1", 2 * N + 1),
        ("((N//20)) - 1", floordiv(N, 20) - 1),
        ("N*(M - 3)//2", floordiv(N * (M - 3), 2)),
        ("Q + 1", symbol("Q + 1")),
        ("N % 2", symbol("N % 2")),
        ("N / 2", symbol("N / 2")),
        ("N // 0", symbol("N // 0")),
        ("a b-c", symbol("a b-c")),
        ("__import__('os') + N", symbol("__import__('os') + N")),
        ("+".join(["N"] * 200), symbol("+".join(["N"] * 200))),
    ],
)
def test_texts(text: str, dim: object) -> None:
    assert dim_of_text(text, {"N", "M"}) == dim


def test_the_shorter_of_two_equal_expressions_is_taken() -> None:
    nested = floordiv(floordiv(floordiv(N - 10, 5) + 1 - 3, 2) + 1 - 3, 2) + 1
    assert simpler(nested, floordiv(N, 20) - 1) == floordiv(N, 20) - 1
    assert simpler(nested, floordiv(N, 20)) == nested, "samples differ"
    assert simpler(floordiv(N, 20) - 1, nested) == floordiv(N, 20) - 1, "not shorter"
    assert simpler(nested, M) == nested, "another dim"


CONVOLUTIONS = """<ir_version: 8, opset_import: ["": 18]> g (float[1, 1, N] x) => (float[1, S, 1] y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] rest = {-1}> {
    p = Conv<strides = [5]>(x, a) q = Conv<strides = [2]>(p, b) c = Conv<strides = [2]>(q, b)
    s = Shape(x) first = Gather(s, zero) l = Concat<axis = 0>(first, rest, one) r = Reshape(c, l) y = Neg(r) }"""


@pytest.mark.parametrize("size", ["N//20 - 1", "N//20", "K"])
def test_wrong_expressions_do_no_harm(size: str) -> None:
    """A declared expression changes no number, right or wrong."""
    model = parser.parse_model(CONVOLUTIONS)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_param = size
    for name, length in (("a", 10), ("b", 3)):
        data = np.linspace(-1, 1, length, dtype=np.float32).reshape(1, 1, length)
        model.graph.initializer.append(numpy_helper.from_array(data, name))
    x = np.linspace(0, 1, 210, dtype=np.float32).reshape(1, 1, 210)
    expected = dmlc.compile(model, target="onnx", only_rules=[]).run({"x": x})["y"]
    assert expected.shape == (1, 9, 1)
    np.testing.assert_array_equal(dmlc.compile(model, target="onnx").run({"x": x})["y"], expected)
