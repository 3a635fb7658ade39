"""The default of an overridable initializer is not a fact: the compiled model runs with any other value too."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from import_helpers import run_all
from onnx import parser

import dmlc
from dmlc.inference.model_facts import facts_of_model
from tests.rows import each_row

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
I64 = np.int64
#: Results of a default: a body that makes ``r`` of x, the inputs with defaults, and other values for them.
BODIES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "Reshape": ("r = Reshape(x, s)", "int64[2] s", "int64[2] s = {12, 1}", {"s": [3, 4]}),
    "Expand": ("e = Unsqueeze(x, two) r = Expand(e, s)", "int64[3] s", "int64[3] s = {1, 1, 1}", {"s": [3, 4, 2]}),
    "Slice": (
        "r = Slice(x, b, e)",
        "int64[2] b, int64[2] e",
        "int64[2] b = {0, 0}, int64[2] e = {3, 1}",
        {"e": [3, 3]},
    ),
    "TopK": ("r, i = TopK(x, k)", "int64[1] k", "int64[1] k = {1}", {"k": [3]}),
    "Pad": ("r = Pad(x, p)", "int64[4] p", "int64[4] p = {0, 0, 0, -3}", {"p": [0, 1, 0, 2]}),
    "Tile": ("c = Slice(x, zero, one, one) r = Tile(c, n)", "int64[2] n", "int64[2] n = {1, 1}", {"n": [2, 3]}),
    "Resize": (
        'f = Unsqueeze(x, zeroone) g = Resize(f, "", z) r = Squeeze(g, zeroone)',
        "float[4] z",
        "float[4] z = {1, 1, 0.34, 0.25}",
        {"z": [1, 1, 1, 2]},
    ),
    "OneHot": (
        "m = ArgMax <axis = 1, keepdims = 0> (x) r = OneHot(m, d, v)",
        "int64 d",
        "int64 d = {1}",
        {"d": 5},
    ),
    "ConstantOfShape": (
        "r = ConstantOfShape <value = float[1] {2}> (s)",
        "int64[2] s",
        "int64[2] s = {2, 1}",
        {"s": [2, 3]},
    ),
    "Range": (
        "l = Range(b, e, st) f = Cast <to = 1> (l) r = Unsqueeze(f, zero)",
        "int64 b, int64 e, int64 st",
        "int64 b = {0}, int64 e = {1}, int64 st = {1}",
        {"e": 6, "st": 2},
    ),
    "Split": ("r, q = Split <axis = 1> (x, s)", "int64[2] s", "int64[2] s = {1, 3}", {"s": [2, 2]}),
    "ReduceSum": ("h = ReduceSum(x, a) r = Sub(x, h)", "int64[1] a", "int64[1] a = {1}", {"a": [0]}),
    "Gather": ("r = Gather <axis = 1> (x, i)", "int64[1] i", "int64[1] i = {0}", {"i": [3]}),
    "Where": (
        "q = Where(c, x, w) r = Mul(q, w)",
        "bool c, float[1, 1] w",
        "bool c = {1}, float[1, 1] w = {2}",
        {"c": False},
    ),
}
TAILS = {
    "a reduction": "y = ReduceSum <keepdims = 0> (r, one)",
    "a maximum": "y = ReduceMax <axes = [1], keepdims = 0> (r)",
    "its shape": "s_of = Shape(r) y = Cast <to = 1> (s_of)",
    "a softmax": "y = Softmax <axis = 1> (r)",
    "an argmax": "a_of = ArgMax <axis = 1> (r) y = Cast <to = 1> (a_of)",
}
CONSTANTS = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[2] zeroone = {0, 1}, float[2] v = {0, 1}"
)


def overridable(name: str, tail: str, *, inside: bool = False) -> onnx.ModelProto:
    body, inputs, defaults, _ = BODIES[name]
    nodes = f"{body} {TAILS[tail]}"
    if inside:
        nodes = (
            f"t = Constant <value = int64[1] {{1}}> () m_ = ReduceMax <keepdims = 0> (x) c_ = Cast <to = 9> (m_) "
            f"out = If (c_) <then_branch = then_ () => (float[?] y) {{ {nodes} }}, "
            "else_branch = else_ () => (float[?] n_) { n_ = Neg(m_) }>"
        )
    output = "out" if inside else "y"
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[3, 4] x, {inputs}) => (float {output}) <{defaults}, {CONSTANTS}> {{ {nodes} }}""")


def unshaped(m: onnx.ModelProto) -> onnx.ModelProto:
    m.graph.output[0].type.tensor_type.ClearField("shape")
    return m


@each_row("inside", [False, True], ids=["main", "branch"])
@each_row("tail", TAILS)
@pytest.mark.parametrize("name", BODIES)
def test_any_value_may_be_fed(name: str, tail: str, inside: bool) -> None:
    """The targets take turns, one for the main graph and the other for a branch. So does ``exact``."""
    turn = [*BODIES].index(name) + [*TAILS].index(tail)
    target, exact = ("onnx", "directml")[(turn + inside) % 2], turn // 2 % 2 == 0
    m = unshaped(overridable(name, tail, inside=inside))
    kinds = {info.name: info.type.tensor_type.elem_type for info in m.graph.input}
    fed = {
        key: np.asarray(value, onnx.helper.tensor_dtype_to_np_dtype(kinds[key]))
        for key, value in BODIES[name][3].items()
    }
    inputs = ({"x": X}, {"x": X, **fed})
    want = run_all(m, inputs)
    out = dmlc.compile(m, target=target, exact=exact).to_onnx()
    for expected, found in zip(want, run_all(out, inputs), strict=True):
        for old, new in zip(expected, found, strict=True):
            np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6, err_msg=target)


def test_sizes_that_follow_from_a_default_are_not_predicted() -> None:
    m = unshaped(overridable("Reshape", "its shape"))
    shape = facts_of_model(m).facts.of["r"].shape
    assert shape is not None
    assert not any(isinstance(size, int) for size in shape)
