"""Operators of opset 23 and later in models for DirectML: by ONNX's definition, so that the model is of opset 21."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models.fixture_parameters import parameters
from onnx import defs, parser
from onnx.reference import ReferenceEvaluator

import dmlc
from dmlc.diagnostics import DmlcError
from tests.rows import each_row
from tools.model_checks import run, session
from tools.node_tests import onnx_node_tests

#: Operators that came after opset 21 and have a definition.
NEWER = ("attention_", "rotary_embedding", "rms_normalization", "swish", "tensorscatter", "tensor_scatter")


@cache
def cases() -> dict[str, Any]:
    found = onnx_node_tests()
    named = {n: c for n, c in found.items() if n.startswith(NEWER) and not n.endswith(("_expanded", "_bf16"))}
    return dict(sorted(named.items()))


@each_row("name", [n for i, n in enumerate(cases()) if i % 4 == 0 or "causal" in n or "bool" in n])
def test_node_tests_of_newer_operators_are_compiled_to_opset_21(name: str) -> None:
    case = cases()[name]
    program = dmlc.compile(case.model, target="directml")
    model = program.to_onnx()
    assert program.opset <= 21
    found = session(model)
    for inputs, outputs in case.data_sets:
        feeds = dict(zip([i.name for i in case.model.graph.input], inputs, strict=False))
        for (key, got), want in zip(run(found, feeds).items(), outputs, strict=True):
            half = want.dtype == np.float16
            np.testing.assert_allclose(got, want, rtol=1e-2 if half else 1e-4, atol=5e-3 if half else 1e-5, err_msg=key)


def first_cases() -> dict[str, onnx.ModelProto]:
    """A node test of each operator that came after opset 21, whether it has a definition or not."""
    since: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            since[schema.name] = min(schema.since_version, since.get(schema.name, schema.since_version))
    out: dict[str, onnx.ModelProto] = {}
    for case in onnx_node_tests().values():
        for node in case.model.graph.node[:1]:
            if since.get(node.op_type, 0) > 21:
                out.setdefault(node.op_type, case.model)
    return out


@each_row("target", ["directml", "cpu"])
def test_sizes_that_no_declaration_relates(target: str) -> None:
    """Some definitions of ONNX are for fixed sizes alone: the operator stays then."""
    assert len(first_cases()) > 5
    for name, source in first_cases().items():
        made = onnx.ModelProto()
        made.CopyFrom(source)
        for number, dim in enumerate(d for i in made.graph.input for d in i.type.tensor_type.shape.dim):
            dim.dim_param = f"d{number}"
        for info in made.graph.output:
            info.type.tensor_type.ClearField("shape")
        assert dmlc.compile(made, target=target).to_onnx().graph.node, name


@pytest.mark.parametrize("path", [item for item in parameters("torch") if "dyn23" in str(item)])
def test_transformers_of_opset_23_are_on_directml_whole(path: Path) -> None:
    source = onnx.load(path, load_external_data=False)
    data = np.load(path.with_suffix(".npz"))
    sizes = {
        dim.dim_param: size
        for info in source.graph.input
        for dim, size in zip(info.type.tensor_type.shape.dim, data[f"in::{info.name}"].shape, strict=True)
        if dim.dim_param
    }
    program = dmlc.compile(path, target="directml", bind=sizes)
    report = program.placement()
    assert program.opset == 21
    assert (report.count("cpu"), report.count("unknown"), report.fails) == (0, 0, False)


BODY = "g (float[2,3,4] x) => (float[2,3,4] y) { h = Exp(x) y = Swish(h) }"


def test_other_targets_keep_the_newer_opset() -> None:
    made = parser.parse_model(f'<ir_version: 11, opset_import: ["": 24]> {BODY}')
    for target, opset in (("directml", 21), ("cpu", 24), ("onnx", 24)):
        program = dmlc.compile(made, target=target)
        assert program.opset == opset, target


def test_asked_opset_is_reached_for_every_target() -> None:
    made = parser.parse_model(f'<ir_version: 11, opset_import: ["": 24]> {BODY}')
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
    (want,) = ReferenceEvaluator(made).run(None, {"x": x})
    for target in ("directml", "cpu", "onnx"):
        program = dmlc.compile(made, target=target, opset=20)
        np.testing.assert_allclose(program.run({"x": x}, backend="cpu")["y"], want, rtol=1e-5)


@pytest.mark.skipif(not defs.has("SwiGLU"), reason="the installed onnx does not have SwiGLU")
def test_definition_with_a_newer_operator_in_it() -> None:
    text = "g (float[2,3] a, float[2,3] b) => (float[2,3] y) { y = SwiGLU(a, b) }"
    made = parser.parse_model(f'<ir_version: 11, opset_import: ["": 28]> {text}')
    program = dmlc.compile(made, target="directml")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Sigmoid", "Mul", "Mul"]
    assert program.opset == 21
    a, b = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 2, np.float32)
    got = program.run({"a": a, "b": b}, backend="cpu")["y"]
    np.testing.assert_allclose(got, 2 * a / (1 + np.exp(-a)), rtol=1e-5)


def test_operator_without_a_definition_keeps_its_opset() -> None:
    text = "g (float[2,3] x, int64 axis) => (float[2,3] y)"
    made = parser.parse_model(f'<ir_version: 11, opset_import: ["": 26]> {text} {{ y = CumProd(x, axis) }}')
    assert dmlc.compile(made, target="directml").opset == 26
    with pytest.raises(DmlcError, match="CumProd"):
        dmlc.compile(made, target="directml", opset=21)


def test_inside_of_a_branch() -> None:
    made = parser.parse_model(
        '<ir_version: 11, opset_import: ["": 24]> g (bool c, float[2,3] x) => (float[2,3] y)'
        " { y = If(c) <then_branch = t () => (float[2,3] a) { a = Swish(x) },"
        " else_branch = e () => (float[2,3] b) { b = Neg(x) }> }"
    )
    program = dmlc.compile(made, target="directml")
    assert program.opset <= 21
    x = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)
    for flag in (True, False):
        got = program.run({"c": np.array(flag), "x": x}, backend="cpu")["y"]
        np.testing.assert_allclose(got, x / (1 + np.exp(-x)) if flag else -x, rtol=1e-5)
