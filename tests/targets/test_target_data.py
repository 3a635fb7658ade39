"""The data files: what they must hold, and what a broken one says."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from onnx import defs

from dmlc.diagnostics import DmlcError
from dmlc.targets import load_target, target_names
from dmlc.targets.directml import feature_levels, least_feature_level, level_key, operator_rows
from dmlc.targets.provider import provider
from dmlc.targets.target import load_data, parse_targets, read_data
from tests.rows import each_row
from tools.target_data import check_operators, check_provider, check_targets, read_checked

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


class File:
    name = "mine.json"

    def __init__(self, text: str) -> None:
        self.text = text

    def read_text(self, encoding: str) -> str:
        return self.text


def refused(call: Any, *args: Any) -> str:
    with pytest.raises(DmlcError) as caught:
        call(*args)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "E0590"
    return diagnostic.message


def test_a_new_target_is_a_file() -> None:
    found = parse_targets([BASE, {"name": "other", "like": "mine", "opset": 18}])
    assert (found["mine"].opset, found["other"].opset, found["other"].summary) == (17, 18, "s")


@each_row(
    ("change", "said"),
    [
        ({"opset": 19}, "opsets"),
        ({"like": "nothing"}, "no target nothing"),
        ({"colour": "red"}, "colour mean nothing"),
        ({"name": 3}, "has a name"),
        ({"source": None, "opset": "21"}, "opsets"),
    ],
)
def test_a_broken_target_is_a_coded_error(change: dict, said: str) -> None:
    assert said in refused(check_targets, {"mine.json": {**BASE, **change}})


def test_a_target_says_all_it_must() -> None:
    row = {key: value for key, value in BASE.items() if key != "ir_version"}
    assert "ir_version must be said" in refused(check_targets, {"mine.json": row})
    assert "two targets mine" in refused(check_targets, {"a.json": BASE, "b.json": BASE})


@each_row("text", ["", "{", "[]", '{"schema": 2}'])
def test_a_file_that_is_no_document(text: str) -> None:
    assert "mine.json" in refused(read_checked, File(text))
    assert "mine.json" in refused(read_data, File(text))


@each_row(
    ("path", "value", "said"),
    [
        (("rows", 0, "source"), "", "has a source"),
        (("rows", 0, "introduced"), "9.9", "is a feature level"),
        (("rows", 0, "levels", 0, 0), "9.9", "are feature levels"),
        (("rows", 0, "levels", 0, 1, "InputTensor", 2), "f32 f33", "no type f33"),
        (("rows", 0, "levels", 0, 1, "InputTensor", 0), 0, "ranks"),
        (("rows", 0, "levels"), [], "are feature levels"),
        (("rows", 1, "operator"), "ARGMAX", "two rows"),
        (("rows",), None, "is a list"),
        (("without_limits",), ["FOLD"], "reasons by operator"),
        (("without_limits", "FOLD"), "", "reasons by operator"),
        (("without_limits", "ARGMAX"), "no page", "that have no row"),
    ],
)
def test_a_broken_operator_table(path: tuple, value: Any, said: str) -> None:
    data = copy.deepcopy(load_data("directml_operators"))
    _put(data, path, value)
    assert said in refused(check_operators, data, "directml_operators.json", feature_levels())


@each_row(
    ("path", "value", "said"),
    [
        (("rows", 0, "kernels"), [], "has kernels"),
        (("rows", 0, "kernels", 0, "since"), "13", "the version that it is for"),
        (("rows", 0, "kernels", 0, "types"), {"T": "f31"}, "no type f31"),
        (("rows", 0, "opsets"), [[9, 7]], "opsets"),
        (("rows", 1, "op"), "Abs", "two rows"),
        (("failures", 0, "effect"), "odd", "effect is one of"),
        (("failures", 0, "source"), "", "source must be said"),
    ],
)
def test_a_broken_provider_table(path: tuple, value: Any, said: str) -> None:
    data = copy.deepcopy(load_data("dml_ep"))
    _put(data, path, value)
    assert said in refused(check_provider, data, "dml_ep.json")


def _put(data: Any, path: tuple, value: Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


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
