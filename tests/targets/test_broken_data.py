"""Every data file passes its checks; broken in seeded random ways: E0590, or a table that can be used."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import pytest

from dmlc.diagnostics import DmlcError
from dmlc.targets import cost, directml, dispatch, known_wrong, provider
from dmlc.targets.kernel_rows import KernelTable
from dmlc.targets.target import parse_targets
from tests.rows import each_row
from tools import target_data

DATA = resources.files("dmlc.targets").joinpath("data")
TEXTS: dict[str, str] = {f.name: f.read_text("utf-8") for f in DATA.iterdir() if f.name.endswith(".json")}
TARGETS: dict[str, str] = {f.name: f.read_text("utf-8") for f in DATA.joinpath("targets").iterdir()}


class File:
    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def read_text(self, encoding: str) -> str:
        return self.text


def use_targets(data: dict[str, Any]) -> None:
    documents = {name: json.loads(text) for name, text in TARGETS.items()}
    target_data.check_targets({**documents, "mine.json": data})
    for each in parse_targets([*documents.values(), data]).values():
        assert each.family
        assert hash(each)


def use_provider(data: dict[str, Any]) -> None:
    target_data.check_provider(data, "dml_ep.json")
    table = provider.parse_provider(data)
    for row in list(table.rows.values())[:40]:
        for opset in (7, 21):
            row.kernel(opset, "1.20")
    assert table.failures_of("ReduceMax") is not None


def use_operators(data: dict[str, Any]) -> None:
    target_data.check_operators(data, "directml_operators.json", directml.feature_levels())
    for row in list(directml.parse_operators(data).values())[:20]:
        directml.refusal(row, {"InputTensor": ("f64", 4)}, "5.0")


def use_costs(data: dict[str, Any]) -> None:
    target_data.check_costs(data, "cost_ort_cpu.json")
    model = cost.parse_costs(data)
    from dmlc.ir.dtype import f32

    model.step(cost.Step("ReduceMax", f32, 10, 10, 2))


def use_kernels(data: dict[str, Any]) -> None:
    from dmlc.ir.dtype import f32

    target_data.check_kernels(data, "ort_cpu.json")
    table = KernelTable(data["source"], data["operators"])
    assert f32 in table.dtypes("Add", 21) or table.rows() is not None


def use_cpu_operators(data: dict[str, Any]) -> None:
    target_data.check_cpu_operators(data, "cpu_operators.json")


def use_wrong(data: dict[str, Any]) -> None:
    target_data.check_wrong(data, "ort_cpu_wrong.json")
    for row in known_wrong.parse_wrong(data):
        row.holds_for("1.24.4")


def use_dispatch(data: dict[str, Any]) -> None:
    target_data.check_dispatch(data, "dispatch.json")
    dispatch.DispatchCost(**data["cost"]).microseconds(3, 10)
    default, rows = dispatch.parse_rows(data)
    assert default.count + sum(row.count for row in rows.values()) >= 0


def use_levels(data: dict[str, Any]) -> None:
    target_data.check_levels(data, "feature_levels.json")
    assert directml.level_key(data["least"])


def use_optimizer(data: dict[str, Any]) -> None:
    target_data.check_optimizer(data, "ort_optimizer.json")
    table = provider.parse_provider(json.loads(TEXTS["dml_ep.json"]), data)
    assert len(table.rewrites) == sum("DirectML" in row.get("devices", ("DirectML",)) for row in data["rewrites"])


USES: dict[str, Callable[[dict[str, Any]], None]] = {
    "dml_ep.json": use_provider,
    "directml_operators.json": use_operators,
    "dxdispatch_operators.json": use_operators,
    "cost_ort_cpu.json": use_costs,
    "cpu_operators.json": use_cpu_operators,
    "ort_cpu.json": use_kernels,
    "ort_cpu_wrong.json": use_wrong,
    "webgpu_ep.json": use_provider,
    "dispatch.json": use_dispatch,
    "webgpu_dispatch.json": use_dispatch,
    "feature_levels.json": use_levels,
    "ort_optimizer.json": use_optimizer,
}


def test_every_file_is_used_here() -> None:
    assert set(TEXTS) == set(USES)


@each_row("name", sorted({*TEXTS, *TARGETS}))
def test_a_data_file_passes_its_checks(name: str) -> None:
    data = target_data.read_checked(File(name, {**TEXTS, **TARGETS}[name]))
    if name in TEXTS:
        USES[name](data)


def test_all_targets_pass_their_checks() -> None:
    target_data.check_targets({name: json.loads(text) for name, text in TARGETS.items()})


# --- mutations

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**30, -(10**30), 2**31, float("nan"), float("inf"), "", " ", "\0", "é\ud800",
    "f33", "f32 f32", "999999999.1", "1.", [], [[]], [[], []], [0, 1], [1, 0, "x"], {}, {"T": 3}, {"": None},
    "x" * 5000,
)  # fmt: skip


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    stack = [data]
    while stack:
        held = stack.pop()
        for key in held if isinstance(held, dict) else range(len(held)):
            yield held, key
            if isinstance(held[key], (dict, list)):
                stack.append(held[key])


def mutate(data: Any, chance: random.Random) -> None:
    held, key = chance.choice(list(places(data)))
    kind = chance.randrange(5)
    if kind == 0:
        del held[key]
    elif kind == 1 and isinstance(held, list):
        held.insert(0, copy.deepcopy(held[key]))
    elif kind == 2:
        other, name = chance.choice(list(places(data)))
        held[key] = copy.deepcopy(other[name])
    elif kind == 3 and isinstance(held, dict):
        held[chance.choice(["x", "", "since", "types", "like", "table", "constant"])] = copy.deepcopy(held[key])
    else:
        held[key] = copy.deepcopy(chance.choice(ODD))


def judged(call: Callable[[Any], None], data: Any) -> bool:
    """True if it was accepted; anything but E0590 fails."""
    try:
        call(data)
    except DmlcError as error:
        assert [d.code.id for d in error.diagnostics] == ["E0590"]
        str(error)
        return False
    return True


def shortened(data: Any) -> Any:
    """The document with the first rows of its tables, so that a mutation hits more than rows."""
    for key in ("rows", "failures"):
        if isinstance(data.get(key), list):
            data[key] = data[key][:6]
    for key in ("operators", "kernels"):
        if isinstance(data.get(key), dict):
            keep = ("Add", "others", *list(data[key])[:5])
            data[key] = {name: row for name, row in data[key].items() if name in keep}
    return data


@pytest.mark.parametrize("name", sorted(USES))
def test_a_broken_table(name: str) -> None:
    use, whole = USES[name], json.loads(TEXTS[name])
    use(whole)
    small = json.dumps(shortened(whole))
    chance = random.Random(name)
    accepted = 0
    for _ in range(500):
        data = json.loads(small)
        for _ in range(chance.choice([1, 1, 1, 3])):
            mutate(data, chance)
        accepted += judged(use, data)
    assert 0 < accepted < 450


@each_row("name", sorted(TARGETS))
def test_a_broken_target(name: str) -> None:
    chance = random.Random(name)
    accepted = 0
    for _ in range(300):
        data = json.loads(TARGETS[name])
        data["name"] = "mine"
        for _ in range(chance.choice([1, 1, 1, 3])):
            mutate(data, chance)
        accepted += judged(use_targets, data)
    assert 0 < accepted < 250


@pytest.mark.parametrize("name", ["dispatch.json", "feature_levels.json"])
def test_broken_bytes(name: str) -> None:
    """The text cut, doubled and peppered."""
    text, chance = TEXTS[name], random.Random(1)
    for _ in range(200):
        place, end = sorted(chance.choices(range(len(text)), k=2))
        broken = chance.choice([text[:place], text[place:], text[:place] + text[end:], text[:end] + text[place:],
                                text[:place] + chance.choice('{}[]":,\0é9') + text[place:]])  # fmt: skip
        judged(lambda text: USES[name](target_data.read_checked(File(name, text))), broken)


@each_row(
    "text",
    [
        "[" * 200_000,
        '{"schema": 1, "a": ' * 200_000,
        '{"schema": 1, "opset": ' + "9" * 10_000 + "}",
        '{"schema": 1, "x": NaN}',
        '{"schema": 1, "x": -Infinity}',
        '{"schema": 1, "x": 1e999}',
        '{"schema": 1, "name": "a", "name": "b"}',
        '{"schema": true}',
        '{"schema": 1.0}',
    ],
    ids=["brackets", "braces", "digits", "nan", "infinity", "overflow", "twice", "true", "float"],
)
def test_documents_that_are_refused_at_once(text: str) -> None:
    with pytest.raises(DmlcError, match="E0590"):
        target_data.read_checked(File("mine.json", text))


@each_row("last", [10**9, 10**30, True, 21.0, "21"])
def test_opsets_of_a_kernel_table_are_few(last: object) -> None:
    data = {"source": "s", "operators": {"Add": [[11, last, {"T": "f32"}]]}}
    with pytest.raises(DmlcError, match="E0590"):
        target_data.check_kernels(data, "mine.json")
