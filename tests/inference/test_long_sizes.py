"""Expressions of sizes that a hostile model lets grow: they are followed up to a limit, and are open beyond it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper, parser

import dmlc
from dmlc.cli.console import human_bytes
from dmlc.cli.main import main
from dmlc.inference.fact import is_short
from dmlc.inference.model_facts import facts_of_model
from dmlc.ir import DimExpr, evaluate, floordiv, larger, summed, symbol
from dmlc.placement.costs import total

N, M = symbol("N"), symbol("M")


def made(body: str, inputs: str = "float[N, M] x", constants: str = "") -> ModelProto:
    head = '<ir_version: 8, opset_import: ["": 18]>'
    model = parser.parse_model(f"{head} g ({inputs}) => (float y) {f'<{constants}>' if constants else ''} {{ {body} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def squares(count: int) -> ModelProto:
    chain = " ".join(f"q{i + 1} = Mul (q{i}, q{i})" for i in range(count))
    return made(f"q0 = Shape (x) {chain} y = Reshape (x, q{count})")


def quotients(count: int) -> ModelProto:
    chain = " ".join(f"p{i} = Add (q{i}, k) q{i + 1} = Div (p{i}, t)" for i in range(count))
    return made(f"q0 = Shape (x) {chain} y = Reshape (x, q{count})", constants="int64 k = {3}, int64 t = {2}")


def doubles(count: int) -> ModelProto:
    chain = " ".join(f"f{i + 1} = Concat <axis = 0> (f{i}, f{i})" for i in range(count))
    return made(f"{chain} y = Identity (f{count})", "float[N] f0")


def parts(count: int) -> ModelProto:
    node = helper.make_node("Split", ["x"], [f"y{i}" if i else "y" for i in range(count)], num_outputs=count)
    model = made("y = Relu (x)")
    model.graph.node[0].CopyFrom(node)
    return model


@pytest.mark.parametrize(
    ("target", "make"),
    [("directml", lambda: squares(80)), ("directml", lambda: quotients(500)), ("onnx", lambda: doubles(600))],
)
def test_sizes_that_grow_without_end_are_open(target: str, make: Callable[[], ModelProto]) -> None:
    """Each of these took minutes or did not end: 80 squares are 2^80 factors."""
    begin = process_time()
    dmlc.compile(make(), target=target).to_onnx()
    assert process_time() - begin < 20


@pytest.mark.parametrize(
    ("verb", "make"),
    [("check", lambda: squares(80)), ("compile", lambda: doubles(600)), ("check", lambda: parts(2000))],
)
def test_the_verbs_print_what_they_find(make: Callable[[], ModelProto], verb: str, tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    source.write_bytes(make().SerializeToString())
    options = ["-o", str(tmp_path / "out.onnx")] if verb == "compile" else []
    begin = process_time()
    assert main([verb, str(source), "--target", "directml", *options]) == 0
    assert process_time() - begin < 20


def test_sizes_of_usual_models_are_followed() -> None:
    elements = facts_of_model(squares(3)).facts.of["q3"].elements
    assert elements is not None
    assert [str(size) for size in elements.tolist()] == [" * ".join("N" * 8), " * ".join("M" * 8)]


def test_an_expression_is_short_up_to_its_factors() -> None:
    def power(size: DimExpr, count: int) -> DimExpr:
        out = size
        for _ in range(count - 1):
            out = out * size
        return out

    assert is_short(N)
    assert is_short(power(N, 90))
    assert not is_short(power(N, 100))
    assert is_short(N * (2**62))
    assert not is_short(N * (2**63))
    assert not is_short(N * -(2**63))
    assert not is_short(sum([symbol(f"D{i}") for i in range(30)], N))
    quotient = floordiv(power(N, 60) + 1, M)
    assert is_short(quotient)
    assert not is_short(quotient * floordiv(power(N, 60) + 1, M + 1))
    assert not is_short(larger(power(N, 60), power(M, 60)))
    assert is_short(larger(N, M))


def test_sums_of_many_sizes_are_what_adding_them_gives() -> None:
    sizes = [N, M * 2, 3, N * M, M * -2, 4]
    assert summed([(size, 2) for size in sizes]) == (N + N * M + 7) * 2
    assert summed([]) == 0
    assert total([N, N, 5, M]) == N * 2 + M + 5
    assert total([N, None]) is None
    assert total([]) == 0
    many = [symbol(f"D{i}") for i in range(20_000)]
    begin = process_time()
    assert evaluate(total(many) or 0, {f"D{i}": 1 for i in range(20_000)}) == 20_000
    assert process_time() - begin < 5


def test_more_bytes_than_a_float_holds_have_a_text() -> None:
    assert human_bytes(2**2000).endswith(" TB")
    assert human_bytes(-(2**2000)).startswith("-")
    assert human_bytes(1_800_000) == "1.80 MB"


@pytest.mark.parametrize("k", [-(2**63), 2**63 - 1])
def test_a_diagonal_beyond_every_index(k: int) -> None:
    """NumPy takes no such number; ONNX Runtime may."""
    model = made("t = Trilu (c, k) y = Add (t, x)", "float[2, 2] x", "float[2, 2] c = {1, 2, 3, 4}")
    model.graph.initializer.append(numpy_helper.from_array(np.array(k, np.int64), "k"))
    dmlc.compile(model, target="onnx").to_onnx()
