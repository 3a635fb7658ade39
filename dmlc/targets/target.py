"""A target: where an artifact is meant to run, and what it may contain. Facts come from the JSON files in ``data``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """``opset`` is what is emitted when nothing else is asked for, ``max_opset`` the highest that works there.

    ``kernels`` names the kernel table that nodes are made legal for (None: no table). ``own_schemas`` says whether
    operators that only ONNX Runtime declares may be emitted, ``native_f16`` whether f16 is computed as f16 wherever the
    schema takes it. ``max_rank`` is the most axes a tensor may have. ``distrusts`` are ONNX operators that its
    provider computes wrongly, so that they are written out.
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


@lru_cache(maxsize=1)
def _rows() -> dict[str, Any]:
    rows: dict[str, Any] = load_data("targets")["targets"]
    return rows


def load_data(name: str) -> dict[str, Any]:
    """The facts of ``data/NAME.json``."""
    text = resources.files("dmlc.targets").joinpath(f"data/{name}.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def target_names() -> tuple[str, ...]:
    return tuple(_rows())


def load_target(name: str) -> Target:
    """The target of that name. Raises ``KeyError``."""
    row = _rows()[name]
    return Target(name=name, **{**row, "distrusts": tuple(row.get("distrusts", ()))})
