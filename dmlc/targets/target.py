"""A target: where an artifact is meant to run, and what it may contain. Facts come from the JSON files in ``data``."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import resources
from typing import Any, Protocol

from dmlc.targets.schema import bad_data, need


@dataclass(frozen=True, slots=True)
class Target:
    """``opset`` is what is emitted when nothing else is asked for, ``max_opset`` the highest that works there.

    ``kernels`` names the kernel table that nodes are made legal for (None: no table). ``own_schemas`` says whether
    operators that only ONNX Runtime declares may be emitted, ``native_f16`` whether f16 is computed as f16 wherever the
    schema takes it. ``max_rank`` is the most axes a tensor may have. ``distrusts`` are the ONNX operators whose kernel
    gives wrong numbers there, so that they are spelled by others. ``provider`` names the table of
    the execution provider whose placement is told, ``release`` the onnxruntime that brings it, ``feature_level`` what
    DirectML offers there.
    """

    name: str
    summary: str
    opset: int
    min_opset: int
    max_opset: int
    ir_version: int
    source: str
    kernels: str | None = None
    own_schemas: bool = False
    native_f16: bool = False
    max_rank: int | None = None
    distrusts: tuple[str, ...] = ()
    provider: str | None = None
    release: str | None = None
    feature_level: str | None = None
    date: str = ""

    @property
    def family(self) -> str:
        """The name without the release: ``directml`` of ``directml:ort-1.17``."""
        return self.name.partition(":")[0]


_FIELDS = frozenset(field.name for field in fields(Target))
_REQUIRED = ("summary", "opset", "min_opset", "max_opset", "ir_version", "source", "date")


class DataFile(Protocol):
    """A file of the package, or any other."""

    @property
    def name(self) -> str: ...

    def read_text(self, encoding: str) -> str: ...


def read_data(file: DataFile) -> dict[str, Any]:
    """What a data file holds. Raises ``DmlcError`` E0590 where it is no JSON document of schema 1."""
    try:
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise bad_data(file.name, str(error)) from None
    need(isinstance(data, dict) and data.get("schema") == 1, file.name, "it is no document of schema 1")
    out: dict[str, Any] = data
    return out


def load_data(name: str) -> dict[str, Any]:
    """The facts of ``data/NAME.json``. Raises ``DmlcError`` E0590."""
    return read_data(resources.files("dmlc.targets").joinpath(f"data/{name}.json"))


@lru_cache(maxsize=1)
def _targets() -> dict[str, Target]:
    files = [
        file
        for file in resources.files("dmlc.targets").joinpath("data/targets").iterdir()
        if file.name.endswith(".json")
    ]
    return parse_targets({file.name: read_data(file) for file in files})


def parse_targets(documents: dict[str, dict[str, Any]]) -> dict[str, Target]:
    """The targets of documents by file name; ``like`` takes over what another says. Raises ``DmlcError`` E0590."""
    rows: dict[str, tuple[str, dict[str, Any]]] = {}
    for file, data in documents.items():
        need(isinstance(data.get("name"), str), file, "a target has a name")
        need(data["name"] not in rows, file, f"there are two targets {data['name']}")
        rows[data["name"]] = (file, data)
    out = {}
    for name, (file, data) in sorted(rows.items(), key=lambda item: (item[1][1].get("order", 99), item[0])):
        like = data.get("like")
        need(like is None or like in rows, file, f"there is no target {like} to be like")
        row = {**(rows[like][1] if like else {}), **data}
        row = {key: value for key, value in row.items() if key not in ("schema", "order", "like")}
        missing = [key for key in _REQUIRED if key not in row]
        need(not missing, file, f"{', '.join(missing)} must be said")
        unknown = sorted(row.keys() - _FIELDS)
        need(not unknown, file, f"{', '.join(unknown)} mean nothing")
        opsets = [row[key] for key in ("min_opset", "opset", "max_opset")]
        need(all(isinstance(o, int) for o in opsets) and opsets == sorted(opsets), file, f"opsets {opsets}")
        out[name] = Target(**{**row, "distrusts": tuple(row.get("distrusts", ()))})
    return out


def target_names() -> tuple[str, ...]:
    return tuple(_targets())


def load_target(name: str) -> Target:
    """The target of that name. Raises ``KeyError``."""
    return _targets()[name]
