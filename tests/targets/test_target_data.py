"""The data files: what the tables say, and what a damaged file says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import defs

from dmlc.diagnostics import DmlcError
from dmlc.targets import load_target, target_names
from dmlc.targets.directml import feature_levels, least_feature_level, level_key, operator_rows
from dmlc.targets.provider import provider
from dmlc.targets.target import parse_targets, read_data
from tests.rows import each_row

BASE: dict[str, Any] = {
    "schema": 1,
    "name": "mine",
    "summary": "s",
    "opset": 17,
    "min_opset": 11,
    "max_opset": 18,
    "ir_version": 8,
    "source": "s",
    "date": "2026-11-21",
}


def refused(call: Any, *args: Any) -> str:
    with pytest.raises(DmlcError) as caught:
        call(*args)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "E0590"
    return diagnostic.message


def test_a_new_target_is_a_file() -> None:
    found = parse_targets([BASE, {"name": "other", "like": "mine", "opset": 18}])
    assert (found["mine"].opset, found["other"].opset, found["other"].summary) == (17, 18, "s")


@each_row("text", ["", "{", "[]", '{"schema": 2}'])
def test_a_file_that_is_no_document(text: str, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(text)
    assert "mine.json" in refused(read_data, tmp_path / "mine.json")


def test_levels_are_in_order() -> None:
    levels = feature_levels()
    assert len(levels) == 15
    assert list(levels) == sorted(levels, key=level_key)
    assert (levels[0], levels[-1], least_feature_level()) == ("1.0", "6.4", "5.0")


def test_rows_name_directml_operators_and_their_tensors() -> None:
    table = provider("dml_ep")
    for row in table.rows.values():
        if row.tensors is None:
            continue
        known = operator_rows()[row.directml[0]]
        assert set(row.tensors) <= set(known.levels[0][1]), row.op


def test_the_ranges_of_opsets_are_those_of_onnx() -> None:
    """A kernel takes a node only where the operator's since_version is exactly its own."""
    newest = min(defs.onnx_opset_version(), 28)
    for (domain, op), row in provider("dml_ep").rows.items():
        if domain or op in ("LayerNormalization", "SimplifiedLayerNormalization"):
            continue
        versions = {kernel.since for kernel in row.kernels}
        for opset in range(7, newest + 1):
            try:
                schema = defs.get_schema(op, opset, "")
            except defs.SchemaError:
                continue
            takes = not schema.deprecated and schema.since_version in versions
            if not schema.deprecated:
                assert row.usable(opset) == takes, (op, opset)
            if takes:
                kernel = row.kernel(opset)
                assert kernel is not None
                assert kernel.since == schema.since_version


@each_row(
    ("op", "opset", "release", "since"),
    [
        ("Transpose", 21, "1.24", 21),
        ("Transpose", 23, "1.24", None),
        ("Transpose", 21, "1.20", None),
        ("Transpose", 20, "1.20", 13),
        ("Cast", 19, "1.17", None),
        ("Cast", 18, "1.17", 13),
        ("ReduceMax", 20, "1.24", 20),
        ("ScatterElements", 18, "1.24", None),
        ("TopK", 24, "1.24", None),
    ],
)
def test_kernels_by_opset_and_release(op: str, opset: int, release: str, since: int | None) -> None:
    row = provider("dml_ep").row("", op)
    assert row is not None
    kernel = row.kernel(opset, release)
    assert (kernel and kernel.since) == since


@each_row("name", [name for name in target_names() if name.startswith("directml:")])
def test_the_ceiling_of_a_release_is_where_the_basics_are_kept(name: str) -> None:
    target = load_target(name)
    assert target.family == "directml"
    assert target.provider is not None
    table = provider(target.provider)
    basics = [table.rows["", op] for op in ("Cast", "Reshape", "Transpose", "Identity", "Unsqueeze", "ReduceSum")]
    assert all(row.kernel(target.max_opset, target.release) for row in basics)
    assert not all(row.kernel(target.max_opset + 1, target.release) for row in basics)


def test_failures_name_operators_of_the_table() -> None:
    table = provider("dml_ep")
    ids = [failure.id for failure in table.failures]
    assert len(ids) == len(set(ids))
    known = {op for _, op in table.rows} | {"*", "GroupNormalization"}
    for failure in table.failures:
        assert failure.operators <= known, failure.id
