"""Facts are kept as the graph changes: an operand that folds is read by the operators that it tells sizes to."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

import dmlc
from tests.rows import each_row
from tools.canonical_form import canonical_form
from tools.model_checks import run, session

#: Too many elements for the importer to look at: the maximum, 4, is known when it has folded.
_WEIGHT = np.linspace(0, 4, 3000, dtype=np.float32)
_HEAD = '<ir_version: 8, opset_import: ["" : 18]>'
_FOUR = "top = ReduceMax <keepdims = 1> (weight) four = Cast <to = 7> (top)"
_SCALAR = "top = ReduceMax <keepdims = 0> (weight) four = Cast <to = 7> (top)"
_INTS = "int64[1] zero = {0}, int64[1] one = {1}, int64[1] rest = {-1}, int64[2] size = {3, 4}"

#: Bodies, with the input, the output, and the operators that are left.
MODELS = {
    "reshape": (
        "float[N, 12] x", "float[a, b, c] y",
        f"{_FOUR} s = Concat <axis = 0> (zero, four, rest) v = Reshape (x, s) y = Relu (v)", ["Reshape", "Relu"],
    ),
    "transposes behind it": (
        "float[N, 12] x", "float[a, b, c] y",
        f"{_FOUR} s = Concat <axis = 0> (zero, four, rest) v = Reshape (x, s) w = Transpose <perm = [0, 2, 1]> (v)"
        " u = Transpose <perm = [0, 2, 1]> (w) y = ReduceSum <keepdims = 1> (u, rest)", ["Reshape", "ReduceSum"],
    ),
    "range": (
        "float[4] x", "float[a] y",
        f"{_SCALAR} nought = Squeeze (zero) step = Squeeze (one) r = Range (nought, four, step) f = Cast <to = 1> (r)"
        " y = Mul (f, x)", ["Mul"],
    ),
    "slice and expand": (
        "float[3, 4] x", "float[a, b] y",
        f"{_FOUR} s = Slice (x, zero, four, one) t = Expand (s, size) y = Add (t, x)", ["Add"],
    ),
    "top_k": ("float[3, 6] x", "float[a, b] y", f"{_FOUR} y, i = TopK (x, four)", ["TopK"]),
    "operands that are left out": (
        "float[1, 2, 3, 3] x", "float[a, b, c, d] y",
        f"{_FOUR} two = Add (one, one) s = Concat <axis = 0> (one, two, four, four)"
        ' v = Resize <mode = "nearest"> (x, , , s) n = Shape (v) f = Cast <to = 1> (n)'
        " m = ReduceMax <keepdims = 0> (f) y = Mul (x, m)", ["Mul"],
    ),
    "sizes that only the node tells": (
        "float[1, 2, 3, 3] x", "float[a, b, c] y",
        f"{_FOUR} two = Add (one, one) s = Concat <axis = 0> (one, two, four, four)"
        ' v = Resize <mode = "nearest"> (x, , , s) n = Shape (v) p = Slice (n, one, four, zero)'
        " w = Reshape (v, p) y = Relu (w)", ["Resize", "Reshape", "Relu"],
    ),
    "branch": (
        "float[3, 4] x", "float[a, b] y",
        f"{_FOUR} c = Greater (four, one) d = Squeeze (c) y = If (d) <then_branch = t () => (float[p, q] o) "
        "{ s = Concat <axis = 0> (four, rest) v = Reshape (x, s) o = Neg (v) }, "
        "else_branch = e () => (float[p, q] z) { z = Neg (x) }>", ["Reshape", "Neg"],
    ),
}  # fmt: skip


def model_of(name: str) -> ModelProto:
    given, made, body, _ = MODELS[name]
    model = parser.parse_model(f"{_HEAD} g ({given}) => ({made}) <{_INTS}> {{ {body} }}")
    model.graph.initializer.append(numpy_helper.from_array(_WEIGHT, "weight"))
    onnx.checker.check_model(model)
    return model


@each_row("target", ["onnx", "cpu", "directml"])
@each_row("name", MODELS)
def test_what_folds_is_read_by_its_users(name: str, target: str) -> None:
    source = model_of(name)
    program = dmlc.compile(source, target=target)
    model = program.to_onnx()
    assert [node.op_type for node in model.graph.node] == MODELS[name][3]
    assert "read-again" in {entry.rule for entry in program.ledger}
    assert canonical_form(dmlc.compile(model, target=target).to_onnx()) == canonical_form(model)
    shape = [size.dim_value or 2 for size in source.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}
    expected, found = run(session(source), feeds), run(session(model), feeds)
    assert expected.keys() == found.keys()
    assert all(np.array_equal(expected[key], found[key]) for key in expected)


@pytest.mark.parametrize("name", MODELS)
def test_leaving_the_rule_out_leaves_the_nodes(name: str) -> None:
    program = dmlc.compile(model_of(name), target="onnx", skip_rules=["read-again"])
    assert "read-again" not in {entry.rule for entry in program.ledger}


def test_a_type_that_is_known_by_now_reaches_all_that_depends_on_it() -> None:
    """Sizes of a chain behind the reshape are known, so that the sum is divided by a number."""
    body = " ".join(f"v{i + 1} = {'Relu' if i % 2 else 'Neg'} (v{i})" for i in range(20))
    text = f"{_FOUR} s = Concat <axis = 0> (four, rest) v0 = Reshape (x, s) {body}"
    text += " n = Shape (v20) m = Cast <to = 1> (n) y = Mul (m, both)"
    head = f"{_INTS}, float[2] both = {{1, 1}}"
    model = parser.parse_model(f"{_HEAD} g (float[3, 4] x) => (float[2] y, float[a, b] v20) <{head}> {{ {text} }}")
    model.graph.initializer.append(numpy_helper.from_array(_WEIGHT, "weight"))
    emitted = dmlc.compile(model, target="onnx").to_onnx()
    assert not {"Shape", "Cast", "Mul"} & {node.op_type for node in emitted.graph.node}


def test_a_body_reads_what_folds_around_it() -> None:
    """The branch captures a shape that is a constant by now, and undoes what it reshapes."""
    text = f"{_FOUR} s = Concat <axis = 0> (four, rest) y = If (c) <then_branch = t () => (float[p, q] o) "
    text += "{ v = Reshape (x, s) w = Transpose <perm = [1, 0]> (v) u = Transpose <perm = [1, 0]> (w) o = Neg (u) }, "
    text += "else_branch = e () => (float[p, q] z) { z = Neg (x) }>"
    model = parser.parse_model(f"{_HEAD} g (float[3, 4] x, bool c) => (float[a, b] y) <{_INTS}> {{ {text} }}")
    model.graph.initializer.append(numpy_helper.from_array(_WEIGHT, "weight"))
    program = dmlc.compile(model, target="onnx")
    emitted = program.to_onnx()
    (branch,) = emitted.graph.node
    assert "read-again" in {entry.rule for entry in program.ledger}
    assert [node.op_type for node in branch.attribute[0].g.node] in (["Reshape", "Neg"], ["Neg"])
    assert canonical_form(dmlc.compile(emitted, target="onnx").to_onnx()) == canonical_form(emitted)
