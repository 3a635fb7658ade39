"""A target: where an artifact is meant to run, and what it may contain. Facts come from the JSON files in ``data``."""

from __future__ import annotations

import json
import math
from dataclasses import field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from dmlc.records import dataclass
from dmlc.targets.kernel_rows import KernelTable
from dmlc.targets.schema import Check, bad_data, is_count, is_flag, is_level, is_name, is_text, maybe, need, need_fields


@dataclass(frozen=True, slots=True)
class Target:
    """``opset`` is what is emitted when nothing else is asked for, ``max_opset`` the highest that works there.

    ``kernels`` names the kernel table that nodes are made legal for (None: no table). With ``installed_kernels`` that
    of the installed library comes first: whoever compiles reads it and hands it in as ``table``, which no data file
    says. ``own_schemas`` says whether operators that only ONNX Runtime declares may be emitted, ``native_f16`` whether
    f16 is computed as f16 wherever the schema takes it. ``max_rank`` is the most axes a tensor may have. ``provider``
    names the table of the execution provider whose placement is reported, ``release`` the onnxruntime that brings it,
    ``feature_level`` what DirectML offers there. ``costs`` names the cost model that lowerings are chosen by (None:
    each node is lowered in one way).

    ``code`` is the kind of artifact that the target runs: ``onnx`` or ``numpy``; no file says ``program``, which is the
    language itself, as text or for DirectML's operators. ``portable`` says that nothing is
    assumed of the runtime: a normalization or log-sum-exp that ONNX has an operator for stays that operator.
    ``wraps_integers`` says that integer sums and products of the runtime wrap modulo 2^n, as the language has it.
    ``runs_on_cpu`` says that artifacts also load on ONNX Runtime's CPU provider, with the same numbers; where it is
    false the kernels of ``provider`` count beside those of ``kernels``, whatever the CPU makes of them.

    Decisions ask these fields and the tables. ``name`` and ``family`` are for messages, look-up and caches: a pinned
    release differs from its family in data only.
    """

    name: str
    summary: str
    opset: int
    min_opset: int
    max_opset: int
    ir_version: int
    source: str
    kernels: str | None = None
    installed_kernels: bool = False
    own_schemas: bool = False
    native_f16: bool = False
    max_rank: int | None = None
    provider: str | None = None
    release: str | None = None
    feature_level: str | None = None
    costs: str | None = None
    code: str = "onnx"
    portable: bool = False
    wraps_integers: bool = False
    runs_on_cpu: bool = True
    date: str = ""
    table: KernelTable | None = field(default=None, repr=False, compare=False)

    @property
    def family(self) -> str:
        """The name without the release: ``directml`` of ``directml:ort-1.17``."""
        return self.name.partition(":")[0]


#: What a data file may say.
_DATA = Path(__file__).with_name("data")
_FIELDS = frozenset(each.name for each in fields(Target)) - {"table"}
_KINDS: dict[str, Check] = {
    **dict.fromkeys(("opset", "min_opset", "max_opset", "ir_version", "order"), is_count),
    **dict.fromkeys(
        ("installed_kernels", "own_schemas", "native_f16", "portable", "wraps_integers", "runs_on_cpu"), is_flag
    ),
    **dict.fromkeys(("summary", "source", "date"), is_text),
    **dict.fromkeys(("kernels", "provider", "costs"), maybe(is_name)),
    **dict.fromkeys(("release", "feature_level"), maybe(is_level)),
    "max_rank": maybe(is_count),
    "code": lambda value: value in ("onnx", "numpy"),
}
_REQUIRED = ("summary", "opset", "min_opset", "max_opset", "ir_version", "source", "date")


class DataFile(Protocol):
    """A file of the package, or any other."""

    @property
    def name(self) -> str: ...

    def read_text(self, encoding: str) -> str: ...


def read_data(file: DataFile) -> dict[str, Any]:
    """Read a data file. Raises ``DmlcError`` E0590 if it is not JSON document of schema 1."""
    try:
        data = json.loads(
            file.read_text("utf-8"), object_pairs_hook=_once, parse_constant=_no_number, parse_float=_number
        )
    except RecursionError:
        raise bad_data(file.name, "it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise bad_data(file.name, str(error)) from None
    fine = isinstance(data, dict) and data.get("schema") == 1 and isinstance(data["schema"], int)
    need(fine and not isinstance(data["schema"], bool), file.name, "it is not a document of schema 1")
    out: dict[str, Any] = data
    return out


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"it says {next(name for name in names if names.count(name) > 1)!r} twice")
    return out


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _number(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _no_number(text)


def load_data(name: str) -> dict[str, Any]:
    """The facts of ``data/NAME.json``. Raises ``DmlcError`` E0590."""
    return read_data(_DATA / f"{name}.json")


@lru_cache(maxsize=1)
def _targets() -> dict[str, Target]:
    return parse_targets({file.name: read_data(file) for file in (_DATA / "targets").glob("*.json")})


def parse_targets(documents: dict[str, dict[str, Any]]) -> dict[str, Target]:
    """The targets of documents by file name; ``like`` takes over what another says. Raises ``DmlcError`` E0590."""
    rows: dict[str, tuple[str, dict[str, Any]]] = {}
    for file, data in documents.items():
        need(isinstance(data, dict) and is_name(data.get("name")), file, "a target has a name")
        need(data["name"] not in rows, file, f"there are two targets {data['name']}")
        rows[data["name"]] = (file, data)
        need(is_count(data.get("order", 0)), file, "order is a number")
    out = {}
    for name, (file, data) in sorted(rows.items(), key=lambda item: (item[1][1].get("order", 99), item[0])):
        like = data.get("like")
        need(like is None or (is_name(like) and like in rows), file, f"there is no target {like} to be like")
        row = {**(rows[like][1] if like else {}), **data}
        row = {key: value for key, value in row.items() if key not in ("schema", "order", "like")}
        missing = [key for key in _REQUIRED if key not in row]
        need(not missing, file, f"{', '.join(missing)} must be said")
        unknown = sorted(row.keys() - _FIELDS)
        need(not unknown, file, f"{', '.join(unknown)} mean nothing")
        opsets = [row[key] for key in ("min_opset", "opset", "max_opset")]
        need(all(map(is_count, opsets)) and opsets == sorted(opsets), file, f"opsets {opsets}")
        need_fields(row, _KINDS, file, name)
        out[name] = Target(**row)
    return out


def target_names() -> tuple[str, ...]:
    return tuple(_targets())


def load_target(name: str) -> Target:
    """The target of that name. Raises ``KeyError``."""
    return _targets()[name]
