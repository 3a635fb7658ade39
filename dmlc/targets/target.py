"""A target: where an artifact is meant to run, and what it may contain. Facts come from the JSON files in ``data``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue.targets import BAD_DATA
from dmlc.ir.answers import Answer
from dmlc.targets.kernel_rows import KernelTable

#: The names of all targets, for type checkers.
TargetName: TypeAlias = Literal[
    "directml", "cpu", "onnx", "numpy", "directml-only", "webgpu",
    "directml:ort-1.20", "directml:ort-1.18", "directml:ort-1.17"
]  # fmt: skip


class TargetFacts(Answer, frozen=True):
    """A runtime that is compiled for: the entries of its data file.

    ``opset`` is the opset of emitted models by default, ``max_opset`` the highest that works there. ``kernels`` names
    the kernel table that nodes are made legal for (None: no table). With ``installed_kernels`` the table of the
    installed library comes first.
    ``own_schemas`` allows operators that only ONNX Runtime declares. With ``native_f16`` f16 is computed as f16
    wherever the schema takes it. ``max_rank`` is the most axes a tensor may have. ``provider`` names the table of the
    execution provider whose placement is reported, ``release`` the onnxruntime that brings it, ``feature_level`` that
    of DirectML there. ``costs`` names the cost model that lowerings are chosen by (None: each node is lowered in one
    way).

    ``code`` is the kind of artifact that the target runs: ``onnx`` or ``numpy``. No file has ``program``, which is the
    language itself, as text or for DirectML's operators. With ``portable`` nothing is assumed of the runtime: a
    normalization or log-sum-exp that ONNX has an operator for stays that operator. With ``wraps_integers`` integer sums
    and products of the runtime wrap modulo 2^n, as in the language. With ``runs_on_cpu`` artifacts also load on ONNX
    Runtime's CPU provider, with the same numbers. Without it the kernels of ``provider`` count beside those of
    ``kernels``, whatever the CPU makes of them.

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


#: Backends by the table of their execution provider.
_BACKENDS = {"dml_ep": "dml", "webgpu_ep": "webgpu"}


class Target(TargetFacts, frozen=True):
    """A runtime that is compiled for. ``table`` are the kernels of the installed library, which no data file holds."""

    table: KernelTable | None = None

    @property
    def backend(self) -> str:
        """The backend that runs the target's models: ``dml``, ``webgpu`` or ``cpu``."""
        return _BACKENDS.get(self.provider or "", "cpu")

    @property
    def family(self) -> str:
        """The name without the release: ``directml`` of ``directml:ort-1.17``."""
        return self.name.partition(":")[0]


_DATA = Path(__file__).with_name("data")


def read_data(file: Path) -> dict[str, Any]:
    """Read a data file of the package, whose contents tests check. Raises ``DmlcError`` E0590 if it is damaged."""
    try:
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise bad_data(file.name, str(error)) from None
    if not isinstance(data, dict) or data.get("schema") != 1:
        raise bad_data(file.name, "it is not a document of schema 1")
    return data


def bad_data(file: str, problem: str) -> DmlcError:
    """E0590 for a file of target data."""
    return fail(BAD_DATA, f"target data {file}: {problem}")


def load_data(name: str) -> dict[str, Any]:
    """The facts of ``data/NAME.json``. Raises ``DmlcError`` E0590."""
    return read_data(_DATA / f"{name}.json")


@lru_cache(maxsize=1)
def _targets() -> dict[str, Target]:
    return parse_targets(read_data(file) for file in (_DATA / "targets").glob("*.json"))


def parse_targets(documents: Iterable[Mapping[str, Any]]) -> dict[str, Target]:
    """The targets of documents; ``like`` takes over what another says."""
    rows = {data["name"]: data for data in documents}
    out = {}
    for name, data in sorted(rows.items(), key=lambda item: (item[1].get("order", 99), item[0])):
        row = {**rows.get(data.get("like"), {}), **data}
        out[name] = Target(**{key: value for key, value in row.items() if key not in ("schema", "order", "like")})
    return out


def target_names() -> tuple[str, ...]:
    return tuple(_targets())


def load_target(name: str) -> Target:
    """The target of that name. Raises ``KeyError``."""
    return _targets()[name]
