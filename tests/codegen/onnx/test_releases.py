"""Pinned releases differ from their family in data only: what they refuse is in a row of the tables."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from onnx_cases import Bench, build_part, declared

import dmlc
from dmlc.diagnostics import DmlcError, Source
from dmlc.ir import DTYPES, DType, Operation
from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.constant import CONSTANT
from dmlc.targets import load_target, target_names
from dmlc.targets.provider import parse_provider, provider
from dmlc.targets.target import load_data
from tests.rows import each_row

OPERATIONS = [op for op in ALL_OPERATIONS if op is not CONSTANT]
DIRECTML = [name for name in target_names() if load_target(name).provider is not None]
RELEASES = [name for name in DIRECTML if ":" in name]


def dtypes_of(op: Operation) -> list[DType]:
    return [dtype for dtype in DTYPES if op in declared(dtype) and (op.name, dtype.name) != ("iota", "bool")]


@lru_cache(maxsize=4096)
def refusal(op: Operation, dtypes: tuple[DType, ...], target: str, opset: int, turn: int) -> str:
    """The messages that a program of the operation is refused with, of all dtypes together; empty if it compiles.

    The program has a third of the calls of each dtype, by turn.
    """
    cases = Bench()
    for dtype in dtypes:
        build_part(cases, op, dtype, turn + DTYPES.index(dtype), len(RELEASES))
    graph = dmlc.Graph("calls")
    cases.outputs = [(f"{number} {name}", value) for number, (name, value) in enumerate(cases.outputs)]
    graph.graph = cases.done()
    try:
        program = dmlc.compile(graph, target=target, opset=opset)
        if (OPERATIONS.index(op) + turn) % len(RELEASES) == 0:
            program.require_sound()
    except DmlcError as error:
        return "; ".join(f"{d.code.id} {d.message}" for d in error.diagnostics)
    return ""


@pytest.mark.parametrize("target", RELEASES)
@each_row("op", OPERATIONS, ids=lambda op: op.name)
def test_every_operation_compiles_for_every_release(op: Operation, target: str) -> None:
    """At the highest opset of the release; what the newest release refuses there may be refused.

    A third of the calls of each dtype; the next dtype and the next release take others. The releases take turns at
    loading what they make, and each operation misses one of them.
    """
    if (OPERATIONS.index(op) + RELEASES.index(target) + 1) % len(RELEASES) == 0:
        return
    opset, dtypes, turn = load_target(target).max_opset, dtypes_of(op), RELEASES.index(target)
    wrong = []
    for dtype in dtypes if refusal(op, tuple(dtypes), target, opset, turn) else ():
        said = refusal(op, (dtype,), target, opset, turn)
        if said and not refusal(op, (dtype,), "directml", opset, turn):
            wrong.append(f"{dtype}: {said}")
    assert not wrong, "\n".join(wrong)


SEARCH = """
model m(x: f64[4, 8]) -> (y) {
    y = gather_elements(x, argmax(x, axes=[1], keepdims=true), axis=1)
    return y
}
"""
LAYER_NORM = """
model m(x: f32[4, 768], g: f32[768], b: f32[768]) -> (y) {
    return layer_norm(x, g, b)
}
"""


@each_row("target", DIRECTML)
@each_row("opset", [13, 17, 18, 20, 21])
def test_an_optional_rewrite_never_refuses_a_program(target: str, opset: int) -> None:
    if opset > load_target(target).max_opset:
        return
    for dtype in ("f64", "f32", "i8", "u8", "i16"):
        program = dmlc.compile(Source("t.dml", SEARCH.replace("f64", dtype)), target=target, opset=opset)
        program.require_sound()


@pytest.mark.parametrize("target", DIRECTML)
def test_releases_take_the_same_rules(target: str) -> None:
    """At one opset, a rule that a release of the tables does not concern fires for each of them."""
    source = Source("t.dml", SEARCH)
    want = [(e.rule, e.text) for e in dmlc.compile(source, target="directml", opset=18).ledger]
    assert [(e.rule, e.text) for e in dmlc.compile(source, target=target, opset=18).ledger] == want


@pytest.mark.parametrize(
    ("target", "operator", "level"),
    [
        ("directml:ort-1.17", "MEAN_VARIANCE_NORMALIZATION1", "5.0"),
        ("directml:ort-1.18", "MEAN_VARIANCE_NORMALIZATION2", "6.3"),
        ("directml:ort-1.20", "MEAN_VARIANCE_NORMALIZATION2", "6.3"),
        ("directml", "MEAN_VARIANCE_NORMALIZATION2", "6.3"),
    ],
)
def test_layer_norm_is_the_operator_of_the_release(target: str, operator: str, level: str) -> None:
    program = dmlc.compile(Source("t.dml", LAYER_NORM), target=target)
    program.require_sound()
    report = program.placement()
    assert operator in [name for node in report.nodes for name in node.directml]
    assert report.level == level


BOOLS = "model m(x: u8[4]) -> (y) {\n    return cast(x, to=bool)\n}\n"
CLIP = "model m(x: u64[4]) -> (y) {\n    return clip(x, max=3)\n}\n"


@pytest.mark.parametrize(("text", "failure", "last"), [(BOOLS, "cast-integer-bool", "1.20"), (CLIP, "clip-64", "1.19")])
def test_a_fault_of_older_releases_is_repaired_there(text: str, failure: str, last: str) -> None:
    known = next(f for f in provider("dml_ep").failures if f.id == failure)
    assert known.last_release == last
    source = Source("t.dml", text)
    newest = [(node.op_type, all(node.input)) for node in dmlc.compile(source, opset=18).to_onnx().graph.node]
    for target in RELEASES:
        program = dmlc.compile(source, target=target, opset=18)
        program.require_sound()
        assert not any(finding.limit == known.what for _, finding in program.placement().findings)
        made = [(node.op_type, all(node.input)) for node in program.to_onnx().graph.node]
        assert (made != newest) is known.in_release(load_target(target).release)
        dtype = np.uint8 if "u8" in text else np.uint64
        x = np.array([0, 1, 5, 255], dtype)
        want = x.astype(bool) if dtype is np.uint8 else np.minimum(x, 3)
        np.testing.assert_array_equal(program.run({"x": x}, "cpu")["y"], want)


def test_ranges_of_releases() -> None:
    data = load_data("dml_ep")
    earlier = [{"until": until, "directml": [name], "source": "s"} for until, name in (("1.3", "OLD"), ("1.10", "MID"))]
    row = {"op": "A", "opsets": [[7, 28]], "directml": ["NEW"], "kernels": [{"since": 1, "types": {}}]}
    rows = [{**row, "earlier": earlier}]
    base = {"operators": "A", "effect": "wrong", "what": "w", "repair": "r", "source": "s"}
    failures = [{**base, "id": "mid", "from": "1.4", "until": "1.10"}, {**base, "id": "late", "from": "1.9"}]
    table = parse_provider({**data, "rows": rows, "failures": failures})
    parsed = table.rows["", "A"]
    for release, operator, ids in (
        ("1.2", "OLD", set()), ("1.3", "OLD", set()), ("1.4", "MID", {"mid"}), ("1.9", "MID", {"mid", "late"}),
        ("1.10", "MID", {"mid", "late"}), ("1.11", "NEW", {"late"}), (None, "NEW", {"late"}),
    ):  # fmt: skip
        assert parsed.in_release(release).directml == (operator,)
        assert {f.id for f in table.failures_of("A", release)} == ids
