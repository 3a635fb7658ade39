"""Fuzzed: a target's data files. The first line of an input names the file, the rest is what it says."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from importlib import resources
from typing import Any

from dmlc.ir.dtype import f32
from dmlc.placement import cpu_kernels
from dmlc.targets import cost, directml, dispatch, known_wrong, provider
from dmlc.targets.kernel_rows import KernelTable
from dmlc.targets.target import parse_targets
from tools import target_data

MAX_LEN = 1500
_TARGET = "target.json"
_DATA = resources.files("dmlc.targets").joinpath("data")
_TEXTS = {f.name: f.read_text("utf-8") for f in _DATA.iterdir() if f.name.endswith(".json")}
_OTHER_TARGETS = {
    name: json.loads(_DATA.joinpath(f"targets/{name}").read_text("utf-8")) for name in ("cpu.json", "directml.json")
}
DICTIONARY = ("schema", "rows", "source", "types", "levels", "kernels", "since", "f32", "null", "true", "1e999")


class _File:
    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    def read_text(self, encoding: str) -> str:
        return self.text


# --- each file is read, and what it says is asked for


def _targets(data: dict[str, Any]) -> None:
    target_data.check_targets({**_OTHER_TARGETS, "mine.json": data})
    for target in parse_targets([*_OTHER_TARGETS.values(), data]).values():
        assert target.family is not None
        hash(target)
        if target.feature_level is not None:
            directml.level_key(target.feature_level)


def _provider(data: dict[str, Any]) -> None:
    target_data.check_provider(data, "dml_ep.json")
    table = provider.parse_provider(data)
    for (domain, op), row in table.rows.items():
        assert table.row(domain, op) is row
        for opset in (7, 21):
            for release in (None, "1.20"):
                row.kernel(opset, release)
        table.failures_of(op)


def _optimizer(data: dict[str, Any]) -> None:
    target_data.check_optimizer(data, "ort_optimizer.json")


def _operators(data: dict[str, Any]) -> None:
    target_data.check_operators(data, "directml_operators.json", directml.feature_levels())
    for row in directml.parse_operators(data).values():
        for level in directml.feature_levels()[::3]:
            row.at(level)
        for name in row.levels[0][1]:
            directml.refusal(row, {name: ("f64", 9), "InputTensor": ("bool", None)}, "5.0")


def _costs(data: dict[str, Any]) -> None:
    target_data.check_costs(data, "cost_ort_cpu.json")
    model = cost.parse_costs(data)
    for kernel in data["kernels"]:
        assert model.step(cost.Step(kernel, f32, 10, 10, 2)) >= 0


def _kernels(data: dict[str, Any]) -> None:
    target_data.check_kernels(data, "ort_cpu.json")
    table = KernelTable(data["source"], data["operators"])
    for op in data["operators"]:
        table.dtypes(op, 21, inserted=True)
    table.rows()


def _cpu_operators(data: dict[str, Any]) -> None:
    target_data.check_cpu_operators(data, "cpu_operators.json")
    for rows in cpu_kernels.parse_kernels(data).values():
        for kernel in rows:
            kernel.is_for(21)


def _wrong(data: dict[str, Any]) -> None:
    target_data.check_wrong(data, "ort_cpu_wrong.json")
    for row in known_wrong.parse_wrong(data):
        row.holds_for("1.24.4")
        row.holds_for("1.32.0.dev20261101")
        hash(row)


def _dispatch(data: dict[str, Any]) -> None:
    target_data.check_dispatch(data, "dispatch.json")
    dispatch.DispatchCost(**data["cost"]).microseconds(3, 10)
    default, rows = dispatch.parse_rows(data)
    for row in (default, *rows.values()):
        assert row.count + row.per_row + row.apart >= 0


def _levels(data: dict[str, Any]) -> None:
    target_data.check_levels(data, "feature_levels.json")
    assert directml.level_key(data["least"])


_USES: dict[str, Callable[[dict[str, Any]], None]] = {
    _TARGET: _targets,
    "cost_ort_cpu.json": _costs,
    "cpu_operators.json": _cpu_operators,
    "directml_operators.json": _operators,
    "dispatch.json": _dispatch,
    "webgpu_dispatch.json": _dispatch,
    "dml_ep.json": _provider,
    "webgpu_ep.json": _provider,
    "ort_optimizer.json": _optimizer,
    "dxdispatch_operators.json": _operators,
    "feature_levels.json": _levels,
    "ort_cpu.json": _kernels,
    "ort_cpu_wrong.json": _wrong,
}
assert set(_USES) == {_TARGET, *_TEXTS}


def read(data: bytes) -> str:
    """Raises ``DmlcError``."""
    name, _, text = data.decode("utf-8", "surrogateescape").partition("\n")
    if name not in _USES:
        return "no file"
    _USES[name](target_data.read_checked(_File(name, text)))
    return ""


# --- inputs


def seeds() -> list[bytes]:
    """Each file with a few of its rows, other ones each time."""
    out = []
    for name, text in _TEXTS.items():
        out += [f"{name}\n{json.dumps(_few(json.loads(text), start))}".encode() for start in range(0, 24, 3)]
    for file in sorted(f.name for f in _DATA.joinpath("targets").iterdir() if f.name.endswith(".json")):
        document = json.loads(_DATA.joinpath(f"targets/{file}").read_text("utf-8"))
        out.append(f"{_TARGET}\n{json.dumps({**document, 'name': 'mine'})}".encode())
    return sorted({data for data in out if len(data) <= MAX_LEN})


def _few(data: dict[str, Any], start: int) -> dict[str, Any]:
    """The document with two rows of its tables and short texts."""
    for key, value in data.items():
        if isinstance(value, str):
            data[key] = value[:40]
        elif isinstance(value, list) and key in ("rows", "failures", "wrong", "levels"):
            data[key] = [_short(row) for row in value[start : start + 2] or value[:1]]
        elif isinstance(value, dict) and key in ("operators", "kernels"):
            rows = list(value.items())
            few = rows[start : start + 2] or rows[:1]
            data[key] = dict([*few, *[row for row in rows if row[0] == "others"]])
    if "least" in data:
        data["least"] = data["levels"][0]["level"]
    return data


def _short(row: Any) -> Any:
    if isinstance(row, dict):
        return {key: _short(value) for key, value in row.items()}
    return row[:40] if isinstance(row, str) and len(row) > 60 else row


_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, 3, 7, 21, 99, 1000, 9999, 10_000, 10_001, -1, 1.5, 1.0, -0.0, 1e300, 10**18, 2**63),
    *(10**30, -(10**30), 2**31, "", " ", "\0", "é", "\ud800", "f32", "f33", "f32 f16", "f32 f32", "(f16)", "any"),
    *("others", "float8e4m3fn", "float8", "5.0", "6.4", "999999999.1", "1.", "1.20", "١.٢", "1.0.0.0", "mine", "cpu"),
    *("directml", "fails", "wrong", "cpu", "*", "Add", "REDUCE", "SUM MAX", "i0", "x" * 300),
)


def _odd(rng: random.Random) -> Any:
    turn = rng.random()
    if turn < 0.8:
        return rng.choice(_ODD)
    inner = [rng.choice(_ODD) for _ in range(rng.choice((0, 1, 2, 3)))]
    return inner if turn < 0.9 else {str(rng.choice(_ODD)): each for each in inner}


def mutate(data: bytes, most: int, rng: random.Random, default: Callable[[bytes], bytes]) -> bytes:
    """Another document: some values changed, or some bytes."""
    name, _, text = data.partition(b"\n")
    if rng.random() < 0.1:
        return name + b"\n" + default(text)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return name + b"\n" + default(text) if rng.random() < 0.9 else default(data)
    if rng.random() < 0.02:
        name = rng.choice(list(_USES)).encode()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _change(document, rng)
    out = name + b"\n" + json.dumps(document).encode()
    return out if len(out) <= most else default(data)


def _change(document: Any, rng: random.Random) -> None:
    """One value of the document, found by going down from the top."""
    held = document
    if not isinstance(held, (dict, list)) or not held:
        return
    key = _key(held, rng)
    for _ in range(rng.randrange(9)):
        inner = held[key]
        if not isinstance(inner, (dict, list)) or not inner:
            break
        held, key = inner, _key(inner, rng)
    turn = rng.randrange(10)
    if turn == 0:
        del held[key]
    elif turn == 1:
        copy = json.loads(json.dumps(held[key]))
        if isinstance(held, list):
            held.insert(key, copy)
        else:
            held[rng.choice(("x", "", "since", "types", "like", "table", "name", "min_opset", "é"))] = copy
    elif turn == 2:
        other = _key(held, rng)
        held[key], held[other] = held[other], held[key]
    elif turn == 3 and isinstance(held[key], str):
        words = held[key].split(" ")
        words[rng.randrange(len(words))] = str(rng.choice(_ODD))
        held[key] = " ".join(words)
    elif turn == 4 and type(held[key]) is int:
        held[key] += rng.choice((-2, -1, 1, 2, 10, 1000))
    elif turn == 5 and isinstance(held, list):
        held.append(_odd(rng))
    elif turn == 6 and isinstance(held, dict):
        held[str(rng.choice(_ODD))] = held.pop(key)
    else:
        held[key] = _odd(rng)


def _key(held: Any, rng: random.Random) -> Any:
    return rng.choice(list(held)) if isinstance(held, dict) else rng.randrange(len(held))
